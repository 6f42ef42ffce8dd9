"""The points at which a statement is evaluated: the grid of its indices, restricted by ``where``, solved for ``a = I``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sp

from symattn.errors import InputValueError, UndecidedError
from symattn.indexed import condition_text
from symattn.program import Statement, integer_symbols
from symattn.readings.decisions import NO, OPEN, OUTSIDE, UNDEFINED, YES, States, total
from symattn.readings.subscripts import Grid, Subscripts

Bools = npt.NDArray[np.bool_]

Judge = Callable[[sp.Basic, Grid, int], Sequence[int]]
"""States of a condition that reads computed numbers, at so many points."""


@dataclass(frozen=True)
class Mask:
    """A condition on the grid of some of the indices of a statement, in their order."""

    axes: tuple[sp.Symbol, ...]
    keep: Bools

    def over(self, axes: Sequence[sp.Symbol]) -> Bools:
        """The mask on a grid of more axes, as an array that broadcasts."""
        order = sorted(range(len(self.axes)), key=lambda k: list(axes).index(self.axes[k]))
        shape = [self.keep.shape[self.axes.index(a)] if a in self.axes else 1 for a in axes]
        return self.keep.transpose(order).reshape(shape)

    def onto(self, axes: Sequence[sp.Symbol]) -> Mask:
        """Where the mask keeps anything, seen from some of its axes only."""
        lost = tuple(k for k, a in enumerate(self.axes) if a not in axes)
        return Mask(tuple(a for a in self.axes if a in axes), np.asarray(self.keep.any(axis=lost), dtype=bool))


@dataclass(frozen=True)
class Points:
    """A list of points: the value of each index, one entry a point."""

    at: dict[sp.Symbol, npt.NDArray[np.int64]]
    count: int


def grid(axes: Sequence[sp.Symbol], sizes: Sequence[int], masks: Sequence[Mask] = ()) -> Points:
    """The points of a grid that every mask keeps, in the order of an array.

    >>> a, b = sp.symbols("a b", integer=True)
    >>> p = grid((a, b), (2, 2), [Mask((a, b), np.array([[True, False], [True, True]]))])
    >>> p.count, p.at[a].tolist(), p.at[b].tolist()
    (3, [0, 1, 1], [0, 0, 1])
    """
    if not axes:
        kept = int(all(m.keep.all() for m in masks))
        return Points({}, kept)
    if masks:
        keep = np.ones((), dtype=bool)
        for m in masks:
            keep = keep & m.over(axes)
        index = np.nonzero(np.broadcast_to(keep, tuple(sizes)))
    else:
        index = tuple(v.reshape(-1) for v in np.indices(tuple(sizes), dtype=np.int64))
    return Points(dict(zip(axes, index, strict=True)), len(index[0]))


def open_grid(axes: Sequence[sp.Symbol], sizes: Sequence[int]) -> dict[sp.Symbol, npt.NDArray[np.int64]]:
    """An index array for each axis, shaped so that they broadcast to the grid."""
    return {
        a: np.arange(n, dtype=np.int64).reshape([-1 if b == a else 1 for b in axes]) for a, n in zip(axes, sizes, strict=True)
    }


def masks_of(
    statement: Statement,
    conditions: Sequence[sp.Basic],
    size: Callable[[sp.Symbol], int],
    subscripts: Subscripts,
    judge: Judge,
    doubtful: list[Mask] | None = None,
) -> list[Mask]:
    """The masks of a statement, one for each condition, so that a contraction can put each where it belongs.

    Conditions on given numbers come first; those that read computed ones are judged only where the first ones hold. Where a list
    ``doubtful`` is given, points at which computed numbers do not decide are kept, and masks of these are put there.

    Raises
    ------
    UndecidedError
        At a point that the other conditions keep, when the numbers do not decide.
    InputValueError
        At such a point, when a look-up in the condition is out of range, or the condition has no value.
    """
    found: list[tuple[sp.Basic, tuple[sp.Symbol, ...], States]] = []
    plain: list[Mask] = []
    for c in sorted(conditions, key=lambda c: not subscripts.decidable(c)):
        used = integer_symbols(c)
        axes = tuple(a for a in statement.domain if a in used)
        shape = tuple(size(a) for a in axes)
        if subscripts.decidable(c):
            states = subscripts.states(c, axes, shape)
            plain.append(Mask(axes, states != NO))
        else:
            states = np.zeros(shape, dtype=np.int8)
            points = grid(axes, shape, [m.onto(axes) for m in plain])
            states[tuple(points.at[a] for a in axes)] = judge(c, points.at, points.count) if axes else judge(c, {}, 1)[0]
            if doubtful is not None and (states == OPEN).any():
                doubtful.append(Mask(axes, states == OPEN))
                states = np.where(states == OPEN, YES, states)
        found.append((c, axes, states))
    masks = [Mask(axes, states == YES) for _, axes, states in found]
    for k, (_, axes, states) in enumerate(found):
        if (states > YES).any():
            _refuse(statement, size, [*masks[:k], Mask(axes, states > YES), *masks[k + 1 :]], found, k)
    return masks


def _refuse(
    statement: Statement,
    size: Callable[[sp.Symbol], int],
    masks: list[Mask],
    found: list[tuple[sp.Basic, tuple[sp.Symbol, ...], States]],
    k: int,
) -> None:
    """Raise when an open condition matters at some point."""
    others = [m if i == k else Mask(m.axes, found[i][2] != NO) for i, m in enumerate(masks)]
    hit = grid(statement.domain, [size(a) for a in statement.domain], others)
    if not hit.count:
        return
    point = {a: int(v[0]) for a, v in hit.at.items()}
    condition, axes, states = found[k]
    where = ", ".join(f"{a}={v}" for a, v in point.items())
    state = states[tuple(point[a] for a in axes)]
    if state == UNDEFINED:
        at = ", ".join(f"{a}={point[a]}" for a in axes) or "any point"
        raise InputValueError(f"{statement.name}: the condition `{condition_text(condition)}` has no value at {at}")
    if state == OUTSIDE:
        raise InputValueError(f"{statement.name}: a look-up in the condition is out of range at {where}, in `{statement}`")
    raise UndecidedError(f"{statement.name}: the condition is not decided at this precision at {where}, in `{statement}`")


def solvable(statement: Statement, subscripts: Subscripts) -> tuple[sp.Symbol, sp.Expr, sp.Basic] | None:
    """A condition ``a = I`` whose I reads integers and not a: (a, I, condition). Then a need not be looped over (a scatter)."""
    for c in statement.conditions:
        if isinstance(c, sp.Eq) and subscripts.readable(c) and total(c):
            for a, e in ((c.lhs, c.rhs), (c.rhs, c.lhs)):
                if a in statement.domain and a not in integer_symbols(e) and not isinstance(e, sp.Integer):
                    return a, e, c
    return None


def solved(points: Points, a: sp.Symbol, length: int, value: Any) -> Points:
    """Points with the index ``a`` set to ``value``, without those where that is no index in range."""
    v = np.broadcast_to(np.asarray(value), (points.count,))
    if v.dtype == object:
        whole = np.array([Fraction(q).denominator == 1 for q in v.tolist()], dtype=bool)
        v = np.array([math.floor(q) for q in v.tolist()], dtype=np.int64)
    else:
        whole = np.ones(points.count, dtype=bool)
    keep = whole & (v >= 0) & (v < length)
    at = {**points.at, a: v}
    return Points({k: w[keep] for k, w in at.items()}, int(keep.sum()))
