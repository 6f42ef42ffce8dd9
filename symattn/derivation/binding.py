"""An example laid under a definition: the fields that it asks for, and its arrays under the names of the program's tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import sympy as sp

from symattn.definition import Definition
from symattn.derivation.examples import ARRAYS, Array, Example
from symattn.derivation.work import Worksheet
from symattn.errors import DefinitionError, EmptyRowError, InputValueError, ShapeError
from symattn.fields import field_of
from symattn.numbers import exact_array
from symattn.program import Program
from symattn.readings.sizes import find_sizes

WEIGHTS = ("WQ", "WK", "WV", "WO")


def definition_of(example: Example, definition: Definition | None = None) -> Definition:
    """The definition of an example: its own fields, over them what is changed in ``definition``; the file says where it starts.

    Raises
    ------
    DefinitionError
        When a field does not exist or contradicts another; the message names the example.

    >>> from symattn.derivation.examples import load
    >>> definition_of(load("two-words-causal"))
    Definition(start='tokens', causal='top-left')
    """
    own = dict(example.fields)
    changed = dict(definition.changed) if definition is not None else {}
    for structural in ("start", "cross", "output_projection"):
        changed.pop(structural, None)
    try:
        return Definition.of(**{**own, **changed})
    except DefinitionError as why:
        raise DefinitionError(f"{example.name}: [definition]: {why}") from why


def inputs_of(example: Example, program: Program) -> tuple[dict[str, Array], dict[sp.Symbol, int]]:
    """The arrays of an example by the names of the program's inputs, and the sizes; absent weights are identity matrices.

    Raises
    ------
    InputValueError
        When the program needs an input that the example does not give.
    ShapeError
        When shapes do not fit the program or each other, or an identity would not be square.
    """
    given: dict[str, Array] = {}
    fields = {field_of(n): n for n in program.inputs}
    fields |= {field_of(n): n for n in program.inputs if n.startswith("d") and n[1:] in program}
    for key, array in example.arrays.items():
        if key in fields:
            given[fields[key]] = _fitted(key, array, program.shapes[fields[key]], example)
        elif key not in ("grad_out",):
            raise InputValueError(
                f"{example.name}: {key}: this definition reads no such input; it reads {', '.join(sorted(fields))}"
            )
    shapes = {n: a.shape for n, a in given.items()}
    known = _known_sizes(program, shapes, example)
    for name in WEIGHTS:
        if name in program.inputs and name not in given:
            given[name] = _identity(name, program, known, example)
    seeds = {n for n in program.inputs if n.startswith("d") and n[1:] in program}
    missing = [n for n in program.inputs if n not in given and n not in seeds]
    if missing:
        raise InputValueError(f"{example.name}: missing: {_keys(missing)}; this definition reads {_keys(program.inputs)}")
    try:
        sizes = find_sizes(program, {n: a.shape for n, a in given.items()}, known)
    except ShapeError as why:
        raise ShapeError(f"{example.name}: {why}") from why
    return given, sizes


def _key(field: str) -> str:
    """The key of a TOML file for a field name."""
    return next((key for key, name in ARRAYS.items() if name == field), field)


def _keys(names: Iterable[str]) -> str:
    return ", ".join(sorted(_key(field_of(n)) for n in names))


def _fitted(key: str, array: Array, shape: tuple[sp.Expr, ...], example: Example) -> Array:
    """One number stands for one per head; axes of length one in front are dropped."""
    while array.ndim > len(shape) and array.shape[0] == 1:
        array = array[0]
    if array.ndim != len(shape):
        want = "one number" if not shape else f"{len(shape)} axes ({', '.join(map(str, shape))})"
        raise ShapeError(f"{example.name}: {_key(key)}: got an array of shape {array.shape}; this definition takes {want}")
    return array


def _known_sizes(program: Program, shapes: Mapping[str, tuple[int, ...]], example: Example) -> dict[sp.Symbol | str, int]:
    """The sizes that the given arrays show; a weight that is absent is square."""
    known: dict[sp.Symbol, int] = {}

    def note(size: sp.Expr, length: int, where: str) -> None:
        if isinstance(size, sp.Symbol) and known.setdefault(size, length) != length:
            raise ShapeError(f"{example.name}: {_key(where)}: has length {length} where {size} is {known[size]} elsewhere")

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
        raise ShapeError(
            f"{example.name}: {_key(field_of(name))}: absent, so the identity, but it would have {lengths[-2]} rows and "
            f"{lengths[-1]} columns; give it"
        )
    return np.broadcast_to(exact_array(np.eye(lengths[-1], dtype=int)), tuple(lengths)).copy()


def refuse_empty_rows(example: Example, sheet: Worksheet) -> None:
    """Raise where a query has no key at all: what the convention ``empty_row="error"`` asks for.

    Raises
    ------
    EmptyRowError
        Naming the first such query.
    """
    *rows, width = sheet.shape("P")
    for at in np.ndindex(*rows):
        if not any(sheet.defined("P", (*at, j)) for j in range(width)):
            raise EmptyRowError(f"{example.name}: query {at[-1] + 1} sees no key, and the definition says empty_row='error'")


def is_identity(array: Array) -> bool:
    """Whether the last two axes of an array hold identity matrices.

    >>> is_identity(exact_array([[1, 0], [0, 1]])), is_identity(exact_array([[1, 0], [1, 1]]))
    (True, False)
    """
    if array.ndim < 2 or array.shape[-1] != array.shape[-2]:
        return False
    return bool((array == exact_array(np.eye(array.shape[-1], dtype=int))).all())
