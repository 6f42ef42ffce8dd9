"""The scores and the weights of every softmax of a derivation, whole, for the pictures that are drawn of them.

Which tensors these are is read from the program: the softmax that :mod:`symattn.readings.typesetting.softmax` finds by its
structure. Scores are given with so many digits that whoever computes with them again in float64 starts from the nearest float.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Context
from fractions import Fraction
from itertools import product as cartesian
from typing import TYPE_CHECKING, Any

import sympy as sp

from symattn.derivation.enclose import BITS, bounds
from symattn.errors import DefinitionError, InputValueError, LimitError, ShapeError, UndecidedError
from symattn.indexed import conjuncts, name_of, reads, tensor
from symattn.program import Program, Statement
from symattn.readings import balls
from symattn.readings.typesetting.softmax import Softmax, find_softmax

if TYPE_CHECKING:
    from symattn.derivation.values import Numbers

LARGEST = 32
"""Weights with more rows or columns have no picture on a page."""
HEADS = 4
DIGITS = 20
"""Significant digits of a number that is computed with again: more than a float64 holds."""
SEEN = "seen"
"""The name of a tensor of this module: 1 where a score is computed."""
PLACES = 4
"""Decimals in a picture, at most."""


@dataclass(frozen=True)
class HeadMap:
    """Scores and weights of one head; None stands where nothing is computed.

    Parameters
    ----------
    leading
        The indices of the head, counted from 0.
    printed
        The weights in decimals that are right in every digit.
    weights, scores
        The same weights, and what the exponential is taken of, in decimals of 20 digits. A score outside of a mask that only
        positions decide is there too.
    extras
        The logits beside the keys in every row: a sink.
    """

    leading: tuple[int, ...]
    printed: tuple[tuple[str | None, ...], ...]
    weights: tuple[tuple[str | None, ...], ...]
    scores: tuple[tuple[str | None, ...], ...] = ()
    extras: tuple[tuple[str, ...], ...] = ()

    @property
    def masked(self) -> bool:
        """Whether some weights are left out by the mask."""
        return any(x is None for row in self.weights for x in row)


@dataclass(frozen=True)
class WeightMap:
    """The weights of one softmax.

    Parameters
    ----------
    weights, scores
        The names of the tensors; ``scores`` is empty where the exponential is taken of more than a tensor.
    shape
        The shape of the weights; where it is larger than a page shows, there are no ``heads``.
    heads
        The first heads.
    digits
        Decimals of what is printed.
    row_words, column_words
        The words at the queries and at the keys, or nothing. Text of the user.
    positions
        Whether the columns are positions, so that a causal mask has a meaning; not so for the words of a vocabulary.
    followed
        The followed query.
    """

    weights: str
    scores: str
    shape: tuple[int, ...]
    heads: tuple[HeadMap, ...]
    digits: int
    row_words: tuple[str, ...] = ()
    column_words: tuple[str, ...] = ()
    positions: bool = True
    followed: int | None = None

    @property
    def live(self) -> bool:
        """Whether there is all that it takes to compute the weights again."""
        return all(h.scores for h in self.heads) and bool(self.heads)


def weight_maps(numbers: Numbers, largest: int = LARGEST, heads: int = HEADS) -> tuple[WeightMap, ...]:
    """The weights of every softmax whose statements are there, in order.

    Raises
    ------
    UndecidedError
        When a weight is not decided at the largest precision.
    """
    found = []
    for softmax in find_softmax(numbers.program):
        shape = numbers.sheet.shape(softmax.name)
        if len(shape) >= 2 and softmax.over in softmax.weights.indices[-2:]:
            found.append(_map(numbers, softmax, shape, largest, heads))
    return tuple(found)


def _map(numbers: Numbers, softmax: Softmax, shape: tuple[int, ...], largest: int, heads: int) -> WeightMap:
    turn = _turn(softmax)
    shape = (*shape[:-2], *shape[-2:][::turn])
    rows, columns = numbers.axis_words(softmax.name)[-2:][::turn]
    query, key = softmax.weights.indices[-2:][::turn]
    digits = min(numbers.digits, PLACES)
    drawn = max(shape[-2:]) <= largest
    scores = _scores(numbers, softmax) if drawn else None
    leading = list(cartesian(*map(range, shape[:-2])))[: heads if drawn else 0]
    return WeightMap(
        softmax.name,
        name_of(softmax.score) if isinstance(softmax.score, sp.Indexed) else "",
        shape,
        tuple(_head(numbers, softmax, at, digits, scores) for at in leading),
        digits,
        rows,
        columns,
        numbers.axis_key(key, numbers.program.dims[key]) not in ("", "vocabulary"),
        numbers.followed(query),
    )


def _turn(softmax: Softmax) -> int:
    """1 where a row of the tensor is of a query, -1 where it is of a key; a picture has a row for each query."""
    return 1 if softmax.weights.indices[-1] == softmax.over else -1


def _head(numbers: Numbers, softmax: Softmax, at: tuple[int, ...], digits: int, scores: Mapping[str, Any] | None) -> HeadMap:
    turn = _turn(softmax)
    height, width = numbers.sheet.shape(softmax.name)[-2:][::turn]
    places = [[(*at, *(r, c)[::turn]) for c in range(width)] for r in range(height)]
    kept = [[numbers.sheet.defined(softmax.name, x) for x in row] for row in places]

    def filled(write: Any) -> tuple[tuple[str | None, ...], ...]:
        return tuple(
            tuple(write(x) if k else None for x, k in zip(row, ks, strict=True)) for row, ks in zip(places, kept, strict=True)
        )

    printed = filled(lambda x: numbers.decimal(softmax.name, x, digits))
    whole = filled(lambda x: long_decimal(numbers, softmax.name, x))
    if scores is None:
        return HeadMap(at, printed, whole)
    axes = dict(zip(softmax.weights.indices, range(len(softmax.weights.indices)), strict=True))
    try:
        order = [axes[s] for s in softmax.score.indices]
        extras = tuple(tuple(_extra(numbers, e, axes, places[r][0]) for e in softmax.extras) for r in range(height))
        known = tuple(
            tuple(_digits_of(scores["score"][tuple(x[k] for k in order)]) if scores["seen"][x] != 0 else None for x in row)
            for row in places
        )
    except (KeyError, UndecidedError, LimitError):
        return HeadMap(at, printed, whole)  # a logit that is no tensor, or is not finite
    if any(k and s is None for ks, row in zip(kept, known, strict=True) for k, s in zip(ks, row, strict=True)):
        return HeadMap(at, printed, whole)
    return HeadMap(at, printed, whole, known, extras)


def _extra(numbers: Numbers, logit: sp.Expr, axes: Mapping[sp.Symbol, int], row: tuple[int, ...]) -> str:
    """A logit beside the keys in a row: an element of a tensor, or a number such as the 0 of softmax-off-by-one.

    Raises
    ------
    KeyError
        When it is neither.
    """
    if logit.is_Rational:
        return _decimal(Fraction(int(logit.p), int(logit.q)))
    if not isinstance(logit, (sp.Indexed, sp.Symbol)):
        raise KeyError(str(logit))
    return long_decimal(numbers, name_of(logit), tuple(row[axes[a]] for a in getattr(logit, "indices", ())))


def _scores(numbers: Numbers, softmax: Softmax) -> dict[str, Any] | None:
    """The scores as balls, and where they are computed, also outside of the conditions on positions.

    None where the exponential is of no single tensor.
    """
    if not isinstance(softmax.score, sp.Indexed) or name_of(softmax.score) not in numbers.program:
        return None
    name = name_of(softmax.score)
    plain = numbers.program.with_statements(numbers.program.statements, (name,)).live()
    for gone in (_of_positions(plain, softmax), frozenset()):
        program = _without(plain, numbers.program, softmax, gone)
        try:
            read = {n: a for n, a in numbers.arrays.items() if n in program.inputs}
            found = balls.evaluate(program, read, sizes=numbers.sizes, bits=BITS[1])
        except (DefinitionError, InputValueError, ShapeError, UndecidedError):
            continue  # a position that the mask leaves out cannot be read
        return {"score": found[name], "seen": found[SEEN]}
    return None


def _of_positions(program: Program, softmax: Softmax) -> frozenset[sp.Basic]:
    """The conditions of the mask that only positions decide."""
    free = set(program.dims) | {s for d in program.dims.values() for s in d.free_symbols}
    return frozenset(c for c in conjuncts(softmax.weights.where) if not reads(c) and c.free_symbols <= free)


def _without(program: Program, whole: Program, softmax: Softmax, gone: frozenset[sp.Basic]) -> Program:
    """The statements of the scores without some conditions, and one that is 1 where the weights keep all others."""

    def left(where: sp.Basic) -> sp.Basic:
        return sp.And(*(c for c in conjuncts(where) if c not in gone))

    seen = Statement(tensor(SEEN, *softmax.weights.indices), sp.Integer(1), where=left(softmax.weights.where))
    dims = {a: whole.dims[a] for a in seen.indices}
    return program.with_statements(
        (*(replace(s, where=left(s.where)) for s in program), seen), (*program.outputs, SEEN), dims=dims
    )


def long_decimal(numbers: Numbers, name: str, index: tuple[int, ...]) -> str:
    """An element of a tensor in 20 significant digits, of which the last may be off by one.

    Raises
    ------
    UndecidedError
        When the enclosure stays too wide.
    """
    if name not in numbers.program:
        return _decimal(Fraction(numbers.arrays[name][index]))
    for bits in BITS[1:]:
        known = numbers.sheet.enclose.ball(numbers.sheet.full(name, index), bits)  # a floor may be known by its exact value alone
        for ball in (numbers.enclosures(bits)[name][index], known):
            said = _digits_of(ball)
            if said is not None:
                return said
    raise UndecidedError(f"{name}: {DIGITS} digits are not decided at {BITS[-1]} bits")


def _digits_of(ball: Any) -> str | None:
    """A ball in 20 significant digits; None where it is not finite or too wide for that."""
    try:
        mid, rad = bounds(ball)
    except (UndecidedError, LimitError):
        return None
    narrow = rad <= abs(mid) / 10**DIGITS or rad <= Fraction(1, 10**40)
    return _decimal(mid) if narrow else None


def _decimal(x: Fraction) -> str:
    return str(Context(prec=DIGITS).divide(x.numerator, x.denominator).normalize())
