"""An example laid under a definition: the fields that it asks for, and its arrays under the names of the program's tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import sympy as sp

from symattn.axes import Axes
from symattn.definition import Definition
from symattn.derivation.drawn import fill
from symattn.derivation.examples import ARRAYS, Array, Example
from symattn.derivation.work import Worksheet
from symattn.directions import PREFIX, check_directions, moving
from symattn.errors import FileFormatError, InputValueError, ShapeError, SymattnError
from symattn.evaluation import refuse_open_block
from symattn.fields import BY_LETTER, field_of, kind_of
from symattn.numbers import exact_array
from symattn.positions import refuse_widths
from symattn.program import Program
from symattn.readings.sizes import find_sizes

STRUCTURAL = ("start", "cross", "output_projection")
"""Fields that the arrays of an example decide."""
WEIGHTS = ("WQ", "WK", "WV", "WO")
WEIGHT_FORMS = {
    **dict.fromkeys(("w_q", "w_k"), "(H, dmodel, d) or (dmodel, H*d)"),
    "w_v": "(H, dmodel, dv) or (dmodel, H*dv)",
    "w_o": "(H, dv, dout) or (H*dv, dout)",
}


def definition_of(example: Example, definition: Definition | None = None) -> Definition:
    """The definition of an example: its own fields, over them what is changed in ``definition``; the file says where it starts.

    Raises
    ------
    FileFormatError
        When a field of the example itself does not exist, cannot be read or contradicts another.
    DefinitionError, GrammarError
        When its fields and those of ``definition`` contradict each other; the message names the example.

    >>> from symattn.derivation.examples import load
    >>> definition_of(load("two-words-causal"))
    Definition(start='tokens', causal='top-left')
    """
    own = dict(example.fields)
    changed = dict(definition.changed) if definition is not None else {}
    for structural in structural_of(example):
        changed.pop(structural, None)
    try:
        return Definition.of(**{**own, **changed})
    except SymattnError as why:
        refuse_fields(example)
        raise type(why)(f"{example.name}: [definition]: {why}") from why


def structural_of(example: Example) -> tuple[str, ...]:
    """The fields that an example decides: where weights are drawn, the definition says whether there is a W_O."""
    return STRUCTURAL if example.seed is None else ("start", "cross") if "tokens" in example.arrays else ()


def redefined(example: Example, definition: Definition) -> Example:
    """The example with exactly this definition, also where it takes a field back to its default.

    Its heading says "changed" where it asked for another, and its sentence, which may be about that one, is left out.

    >>> from symattn.derivation.examples import load
    >>> other = redefined(load("two-words-causal"), Definition(start="tokens"))
    >>> other.title, definition_of(other)
    ('two words, causal, changed', Definition(start='tokens'))
    """
    asked = definition_of(example)
    if not example.definition or definition.replace(lse=asked.lse) == asked:
        return example
    fields = {name: value for name, value in definition.changed.items() if name not in structural_of(example)}
    return replace(example, definition=fields, title=changed_title(example), about="")


def changed_title(example: Example) -> str:
    """The heading of an example under another definition."""
    return f"{example.title or example.name}, changed"


def refuse_fields(example: Example) -> None:
    """Raise where the fields that an example gives make no definition by themselves.

    Raises
    ------
    FileFormatError
        Naming the example and the field.
    """
    try:
        Definition.of(**example.fields)
    except SymattnError as why:
        raise FileFormatError(f"{example.name}: [definition]: {why}") from why


def moved_by(example: Example, program: Program, definition: Definition) -> tuple[str, ...]:
    """The tensors of a forward program that an example gives a direction for.

    Raises
    ------
    InputValueError, UnknownNameError
        For a direction of what the definition does not read, or does not differentiate by.

    >>> from dataclasses import replace
    >>> from symattn.derivation.examples import load
    >>> found = load("two-words")
    >>> moving = replace(found, arrays={**found.arrays, "tangent_w_q": found.arrays["w_q"]})
    >>> moved_by(moving, definition_of(found).program(), definition_of(found))
    ('WQ',)
    """
    given = [key for key in example.arrays if key.startswith(PREFIX) and key not in definition.parameters]
    try:
        check_directions(definition, given)
    except SymattnError as why:
        raise type(why)(f"{example.name}: {why}") from why
    known = moving(program, definition.parameters)
    return tuple(known[key] for key in given)


def inputs_of(
    example: Example, program: Program, definition: Definition | None = None
) -> tuple[dict[str, Array], dict[sp.Symbol, int]]:
    """The arrays of an example by the names of the program's inputs, and the sizes; absent weights are identity matrices.

    The parameters of the ``definition`` are their own field names. A projection for several heads may be one matrix or one for
    each head, as in :func:`symattn.binding.bind`: ``(dmodel, H*d)`` or ``(H, dmodel, d)``, ``(H*dv, dout)`` or ``(H, dv, dout)``.

    Raises
    ------
    InputValueError
        When the program needs an input that the example does not give.
    FileFormatError
        When shapes do not fit the program or each other, or an identity would not be square.
    """
    given: dict[str, Array] = {}
    definition = definition or Definition()
    refuse_open_block(definition)
    names = {n: _field(n, definition) for n in program.inputs}
    fields = {field: n for n, field in names.items()}
    for key, array in example.arrays.items():
        if key in fields:
            name = fields[key]
            given[name] = _fitted(key, _with_heads(name, array, program, definition, example), program.shapes[name], example)
        elif key != "grad_out" and not _direction(key, definition):
            raise InputValueError(f"{example.name}: {_key(key)}: this definition reads no such input; it reads {_keys(fields)}")
    if example.seed is not None:
        given |= fill(example, program, definition, given)
    shapes = {n: a.shape for n, a in given.items()}
    known = _known_sizes(program, shapes, example)
    for name in WEIGHTS:
        if name in program.inputs and name not in given:
            given[name] = _identity(name, program, known, example)
    free = {n for n, field in names.items() if field.startswith(("grad_", PREFIX)) and n not in definition.parameters}
    missing = [n for n in program.inputs if n not in given and n not in free]
    if missing:
        wanted = _keys(names[n] for n in missing)
        raise InputValueError(
            f"{example.name}: missing: {wanted}; this definition reads {_keys(fields)}{_remedy(missing, example)}"
        )
    try:
        sizes = find_sizes(program, {n: a.shape for n, a in given.items()}, known)
        widths = {a.name: n for a, n in sizes.items()}
        refuse_widths(definition, widths.get("dr", widths.get("d", 2)))
    except ShapeError as why:
        raise FileFormatError(f"{example.name}: {why}") from why
    return given, sizes


def _remedy(missing: Iterable[str], example: Example) -> str:
    """How to give what is missing although the numbers are drawn."""
    if example.seed is None:
        return ""
    if "tok" in missing:
        return """. It starts from words: give some with --tokens "the cat sat" (in a file, tokens = ["the", "cat", "sat"])"""
    return f". It cannot be drawn: give it in a file (--example FILE) that says [weights] seed = {example.seed} for the rest"


def _field(name: str, definition: Definition) -> str:
    """The field name of an input of a derived program: that of a direction goes by what moves, ``tangent_grad_out`` included."""
    kind, _ = kind_of(name, definition.parameters)
    return (
        PREFIX + field_of(name[:-2], definition.parameters)
        if kind in ("tangent_", "hvp_")
        else field_of(name, definition.parameters)
    )


def _direction(key: str, definition: Definition) -> bool:
    """Whether a key of an example is a direction of the definition, which a derivation without tangent leaves alone."""
    return key in moving(definition.program(), definition.parameters)


def _key(field: str) -> str:
    """The key of a TOML file for a field name."""
    return next((key for key, name in ARRAYS.items() if name == field), field)


def _keys(fields: Iterable[str]) -> str:
    return ", ".join(sorted(map(_key, fields)))


def _with_heads(name: str, array: Array, program: Program, definition: Definition, example: Example) -> Array:
    """An array with the head axes of the program: heads of a projection may stand side by side, query heads need no groups."""
    letter = kind_of(name, definition.parameters)[1]
    letter = letter if letter in BY_LETTER else letter.removeprefix("d")
    if letter not in BY_LETTER or letter in definition.parameters:
        return array
    heads, kv_heads = definition.heads or 1, definition.kv_heads or definition.heads or 1
    if letter in WEIGHTS and array.ndim == 2 and len(program.shapes[name]) > 2:
        own = heads if letter in ("WQ", "WO") else kv_heads
        length = array.shape[0 if letter == "WO" else 1]
        if length % own:
            raise FileFormatError(
                f"{example.name}: {_key(_field(name, definition))}: {length} {'rows' if letter == 'WO' else 'columns'} cannot be "
                f"shared by {own} heads; give {WEIGHT_FORMS[field_of(letter)]}"
            )
        array = (
            array.reshape(own, -1, array.shape[1]) if letter == "WO" else np.moveaxis(array.reshape(len(array), own, -1), 1, 0)
        )
    roles = {"WQ": "Hac", "WO": "Hef"}.get(letter, BY_LETTER[letter].axes.removeprefix("b"))
    if roles[:1] == "H" and array.ndim == len(roles) == len(program.shapes[name]) - 1 and len(array) == heads:
        return Axes(heads, kv_heads, False, definition.grouping == "tiled").into(array, roles)
    return array


def _fitted(key: str, array: Array, shape: tuple[sp.Expr, ...], example: Example) -> Array:
    """One number stands for one per head; axes of length one in front are dropped."""
    while array.ndim > len(shape) and array.shape[0] == 1:
        array = array[0]
    if array.ndim != len(shape):
        axes = ", ".join(map(str, shape))
        want = "one number" if not shape else WEIGHT_FORMS.get(key) if len(shape) > 2 else None
        want = want or f"{len(shape)} axes ({axes})"
        raise FileFormatError(f"{example.name}: {_key(key)}: got an array of shape {array.shape}; this definition takes {want}")
    return array


def _known_sizes(program: Program, shapes: Mapping[str, tuple[int, ...]], example: Example) -> dict[sp.Symbol | str, int]:
    """The sizes that the given arrays show; a weight that is absent is square."""
    known: dict[sp.Symbol, int] = {}

    def note(size: sp.Expr, length: int, where: str) -> None:
        if isinstance(size, sp.Symbol) and known.setdefault(size, length) != length:
            raise FileFormatError(f"{example.name}: {_key(where)}: has length {length} where {size} is {known[size]} elsewhere")

    for name, shape in shapes.items():
        for size, length in zip(program.shapes[name], shape, strict=True):
            note(size, length, field_of(name))
    absent = [n for n in WEIGHTS if n in program.inputs and n not in shapes]
    for _ in range(len(absent) + 1):
        for name in absent:
            rows, columns = program.shapes[name][-2:]
            for a, b in ((rows, columns), (columns, rows)):
                if a in known and b not in known:
                    note(b, known[a], field_of(name))
    return dict(known)


def _identity(name: str, program: Program, known: Mapping[Any, int], example: Example) -> Array:
    shape = program.shapes[name]
    lengths = [known[s] if isinstance(s, sp.Symbol) and s in known else int(s) if s.is_Integer else 0 for s in shape]
    if 0 in lengths:
        raise InputValueError(f"{example.name}: {_key(field_of(name))}: absent, and its shape cannot be seen; give it")
    if lengths[-1] != lengths[-2]:
        raise FileFormatError(
            f"{example.name}: {_key(field_of(name))}: absent, so the identity, but it would have {lengths[-2]} rows and "
            f"{lengths[-1]} columns; give it"
        )
    return np.broadcast_to(exact_array(np.eye(lengths[-1], dtype=int)), tuple(lengths)).copy()


def refuse_empty_rows(example: Example, sheet: Worksheet) -> None:
    """Raise where a query has no key at all: what the convention ``empty_row="error"`` asks for.

    Raises
    ------
    FileFormatError
        Naming the first such query.
    """
    *rows, width = sheet.shape("P")
    for at in np.ndindex(*rows):
        if not any(sheet.defined("P", (*at, j)) for j in range(width)):
            raise FileFormatError(
                f"{example.name}: query {at[-1] + 1} (counted from 1) sees no key, and the definition says empty_row='error'"
            )
