"""Numbers that nobody typed: inputs drawn from a seed, short and exact, so that a derivation can start from words alone.

Every real number is a multiple of 1/4; masks, lengths, numbers of documents, pages and buckets are whole, and drawn so that every
query sees a key where that can be. Words are not drawn. Each tensor has a stream of its own, named after its field (each word's
vector after the word), so the same seed gives the same numbers whatever else a definition reads. The streams are those of
:class:`random.Random` seeded with text, which Python keeps from version to version.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

from symattn.axes import Array
from symattn.errors import InputValueError, LimitError, nearest
from symattn.fields import BY_LETTER, field_of, kind_of

if TYPE_CHECKING:
    from symattn.definition import Definition
    from symattn.derivation.examples import Example
    from symattn.program import Program

WIDTH = 4
"""The width of the embedding where nothing says it."""
LARGEST = 64
"""No size that is asked for is beyond this: the numbers are printed."""
ATTEMPTS = 60
"""How often whole numbers and masks are drawn anew until every query sees a key."""
REACH = 4
"""How many quarters the largest number has."""


def numbers(seed: int, name: str, shape: Sequence[int], kind: str = "real") -> Array:
    """Multiples of 1/4 from -1 to 1 (above 0 where they are to be positive, from 0 on where they are at most 1).

    >>> numbers(1, "w_q", (2, 3)).tolist() == numbers(1, "w_q", (2, 3)).tolist()
    True
    """
    stream = random.Random(f"{seed}:{name}")  # noqa: S311
    low = {"positive": 1, "factor": 1, "unit": 0}.get(kind, -REACH)
    found = np.empty(tuple(shape), dtype=object)
    for at in np.ndindex(*shape):
        found[at] = Fraction(low + math.floor(stream.random() * (REACH - low + 1)), 4)
    return found


def vectors(seed: int, words: Iterable[str], width: int) -> dict[str, Array]:
    """A vector for each word, which depends on the word and the seed alone.

    >>> short, long = vectors(1, ["cat"], 4), vectors(1, ["the", "cat"], 4)
    >>> short["cat"].tolist() == long["cat"].tolist()
    True
    """
    return {word: numbers(seed, f"embedding:{word}", (width,)) for word in dict.fromkeys(words)}


def sizes_asked(given: Mapping[str, Any], where: str) -> dict[str, int]:
    """Sizes by name, checked.

    Raises
    ------
    InputValueError, LimitError
        When one is no positive integer, or is too large to be shown.

    >>> sizes_asked({"dmodel": 4}, "--size")
    {'dmodel': 4}
    """
    found = {}
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputValueError(f"{where}: {name}: got {value!r}; a size is an integer from 1 on")
        if value > LARGEST:
            raise LimitError(f"{where}: {name}: got {value}; numbers are drawn for sizes up to {LARGEST}")
        found[name] = value
    return found


def example_of(
    definition: Definition,
    seed: int,
    *,
    tokens: Sequence[str] = (),
    memory: Sequence[str] = (),
    vocabulary: Sequence[str] = (),
    sizes: Mapping[str, int] | None = None,
) -> Example:
    """An example whose words are given and whose numbers are all drawn.

    Parameters
    ----------
    definition
        What the numbers are for; with ``tokens`` it starts from them.
    seed
        The same seed gives the same numbers.
    tokens, memory, vocabulary
        The words at the queries, those of the memory, and further words of the vocabulary.
    sizes
        ``dmodel``, ``d``, ``dv``, ``dff`` ...; and ``n``, ``m`` where there are no words. What is not said: dmodel 4, d and dv
        that divided by the heads, dff twice dmodel, three positions.

    Raises
    ------
    InputValueError, LimitError
        When a size is no positive integer or is too large.

    >>> from symattn.definition import Definition
    >>> example = example_of(Definition(start="tokens"), 1, tokens=["the", "cat"])
    >>> example.arrays["embedding"].shape, example.vocabulary
    ((2, 4), ('the', 'cat'))
    """
    from symattn.derivation.examples import Example
    from symattn.numbers import exact_array

    asked = sizes_asked(sizes or {}, "sizes")
    arrays: dict[str, Array] = {}
    words = tuple(dict.fromkeys((*tokens, *memory, *vocabulary)))
    if words:
        rows = vectors(seed, words, asked.get("dmodel", WIDTH))
        if tokens:
            arrays["embedding"] = np.stack(list(rows.values()))
            arrays["tokens"] = exact_array([words.index(w) for w in tokens])
        if memory:
            arrays["memory"] = np.stack([rows[w] for w in memory])
    fields = {k: v for k, v in definition.changed.items() if k not in ("start", "cross", "lse")}
    return Example(
        name=f"seed {seed}",
        title=" ".join(tokens) or f"numbers of seed {seed}",
        about=f"All numbers are drawn from the seed {seed}.",
        definition=fields if tokens else {**fields, "start": definition.start},
        arrays=arrays,
        tokens=tuple(tokens),
        memory=tuple(memory) or tuple(tokens),
        vocabulary=words if tokens else (),
        follow=len(tokens) - 1 if tokens else None,
        decimals=True,
        seed=seed,
        sizes=asked,
    )


def fill(example: Example, program: Program, definition: Definition, given: Mapping[str, Array]) -> dict[str, Array]:
    """Arrays for the inputs of a program that an example with a seed does not give, incoming gradients included.

    Raises
    ------
    InputValueError
        When a size is asked for that the program has not.
    """
    assert example.seed is not None
    known = _sizes(example, program, definition, given)
    wanted = [name for name in program.inputs if name not in given and _is_drawn(name, definition)]
    found: dict[str, Array] = {}
    for attempt in range(ATTEMPTS):
        found = {name: _drawn(example.seed, name, program, definition, known, attempt) for name in wanted}
        if not {"M", *program.discrete} & found.keys() or _sees(program, {**given, **found}, known):
            break
    return found


def _is_drawn(name: str, definition: Definition) -> bool:
    """Everything but the numbers of words and directions."""
    prefix, base = kind_of(name, definition.parameters)
    return (
        name in definition.parameters
        or name in definition.arrays
        or (base in BY_LETTER and prefix in ("", "grad_") and base != "tok")
    )


def _drawn(
    seed: int, name: str, program: Program, definition: Definition, known: Mapping[sp.Symbol, sp.Integer], attempt: int
) -> Array:
    """One input; whole numbers and masks have other values at every attempt."""
    shape = [int(s.xreplace(known)) for s in program.shapes[name]]
    sizes = {str(s): int(n) for s, n in known.items()}
    own = name in definition.parameters or name in definition.arrays
    prefix, base = ("", name) if own else kind_of(name, definition.parameters)
    field = name if own else field_of(name, definition.parameters)
    again = f"{field}:{attempt}" if attempt else field
    if prefix:
        return numbers(seed, field, shape)
    if base == "page":
        return permutation(seed, field, shape, int(program.shapes["Kc"][-3].xreplace(known)))
    if base in ("doc", "doc_q", "doc_k"):
        return (
            np.cumsum(integers(seed, "doc", shape, 0, 1), axis=-1, dtype=object) if shape else integers(seed, "doc", shape, 0, 1)
        )
    if base == "len" or name == definition.prefix:
        return integers(seed, again, shape, 1, sizes["m"] if "m" in sizes else sizes["T"] * sizes["Bc"])
    if base in ("M", "drop"):
        return np.minimum(integers(seed, again, shape, 0, 2), 1)
    if own and name in program.discrete:
        return integers(seed, again, shape, 0, sizes.get("n", 2))
    if not own and BY_LETTER[base].kind == "integer":
        return integers(seed, again, shape, 0, sizes.get(BY_LETTER[base].below, 2) - 1)
    if base == "p" or name == definition.dropout_p:
        return np.asarray(numbers(seed, field, shape, "positive") / 2, dtype=object)
    if own:
        return numbers(seed, field, shape, "real" if name in definition.arrays else "positive")
    return numbers(seed, field, shape, BY_LETTER[base].kind)


def integers(seed: int, name: str, shape: Sequence[int], low: int, high: int) -> Array:
    """Whole numbers from ``low`` to ``high``.

    >>> integers(1, "key_lengths", (3,), 2, 2).tolist()
    [Fraction(2, 1), Fraction(2, 1), Fraction(2, 1)]
    """
    stream = random.Random(f"{seed}:{name}")  # noqa: S311
    found = np.empty(tuple(shape), dtype=object)
    for at in np.ndindex(*shape):
        found[at] = Fraction(low + math.floor(stream.random() * (high - low + 1)))
    return found


def permutation(seed: int, name: str, shape: Sequence[int], count: int) -> Array:
    """Different numbers below ``count``, along the last axis again and again; as many as there are.

    >>> sorted(permutation(1, "block_table", (3,), 3).tolist())
    [Fraction(0, 1), Fraction(1, 1), Fraction(2, 1)]
    """
    stream = random.Random(f"{seed}:{name}")  # noqa: S311
    left: list[int] = []
    found = np.empty(tuple(shape), dtype=object)
    for at in np.ndindex(*shape):
        left = left or list(range(count))
        found[at] = Fraction(left.pop(math.floor(stream.random() * len(left))))
    return found


def _sees(program: Program, arrays: Mapping[str, Array], known: Mapping[sp.Symbol, sp.Integer]) -> bool:
    """Whether every query sees a key, where a program has weights."""
    from symattn.derivation.work import Worksheet

    if "P" not in program:
        return True
    sheet = Worksheet(program, arrays, {s: int(n) for s, n in known.items()}, origin=0)
    *rows, width = sheet.shape("P")
    return all(any(sheet.defined("P", (*at, j)) for j in range(width)) for at in np.ndindex(*rows))


def _sizes(example: Example, program: Program, definition: Definition, given: Mapping[str, Array]) -> dict[sp.Symbol, sp.Integer]:
    """A number for every size: as the given arrays show, as asked for, or a default."""
    names = {str(s) for s in program.sizes}
    heads, kv_heads = definition.head_counts
    found = {"H": heads, "Hkv": kv_heads, "G": heads // kv_heads}
    for name, array in given.items():
        for s, length in zip(program.shapes[name], array.shape, strict=True):
            if s.is_Symbol:
                found.setdefault(str(s), length)
    for name, length in example.sizes.items():
        if name not in {*names, "dmodel"}:
            raise InputValueError(f"{example.name}: {name}: this definition has no such size. {nearest(name, names)}")
        if found.setdefault(name, length) != length:
            raise InputValueError(f"{example.name}: {name}: {length} is asked for, and the numbers given show {found[name]}")
    width = found.setdefault("dmodel", WIDTH)
    each = width // heads if width % heads == 0 else width
    found = {"n": 3, "d": each, "dv": each, "dout": width, "dff": 2 * width, "dmemory": width, "dr": 2, **found}
    found.setdefault("m", found["n"])
    found.setdefault("pages", found.get("T", 2))
    return {s: sp.Integer(found.get(str(s), 2)) for s in program.sizes}
