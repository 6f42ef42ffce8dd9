"""The recogniser of contractions: a sum of products as a batched matrix product, whatever its tensors are called.

``sum over R of f1(..) f2(..) ...``: factors are grouped by the indices that they carry; those without a bound index are taken
out of the sum, and the others merged until two groups are left. Their common indices are batch (free) and contracted (bound).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from math import prod

import numpy as np
import sympy as sp

from symattn.program import Statement, integer_symbols
from symattn.readings.domain import Bools, Mask

Axes = tuple[sp.Symbol, ...]


@dataclass(frozen=True)
class Contraction:
    """``outer * sum over bound of left * right``, with axes (batch, row, bound) and (batch, bound, column)."""

    outer: sp.Expr
    left: sp.Expr
    right: sp.Expr
    batch: Axes
    row: Axes
    column: Axes
    bound: Axes

    @property
    def left_axes(self) -> Axes:
        """Axes of the left operand."""
        return (*self.batch, *self.row, *self.bound)

    @property
    def right_axes(self) -> Axes:
        """Axes of the right operand."""
        return (*self.batch, *self.bound, *self.column)

    @property
    def axes(self) -> Axes:
        """Axes of the product."""
        return (*self.batch, *self.row, *self.column)


def contraction(statement: Statement, term: sp.Expr, size: Callable[[sp.Symbol], int]) -> Contraction | None:
    """One term of a sum as a contraction, or None where it is none or a matrix product gains nothing.

    >>> from symattn.program import indices, tensor
    >>> i, j, c = indices("i j c")
    >>> s = Statement(tensor("S", i, j), tensor("Q", i, c) * tensor("K", j, c), (c,))
    >>> found = contraction(s, s.expr, lambda a: 2)
    >>> found.row, found.column, found.bound
    ((j,), (i,), (c,))
    """
    over = set(statement.over)
    if statement.reduce != "sum" or not over:
        return None
    domain = statement.domain
    groups: dict[frozenset[sp.Symbol], sp.Expr] = {}
    outer: list[sp.Expr] = []
    for f in sp.Mul.make_args(term):
        used = integer_symbols(f) & set(domain)
        if used & over:
            groups[frozenset(used)] = groups.get(frozenset(used), sp.S.One) * f
        else:
            outer.append(f)
    while len(groups) > 2:
        a, b = _cheapest(list(groups), size)
        e = groups.pop(a) * groups.pop(b)
        groups[a | b] = groups.get(a | b, sp.S.One) * e
    if len(groups) < 2:
        return None
    a, b = groups
    if a <= b or b <= a or not over <= a & b:
        return None
    x, y = groups[a], groups[b]
    free = list(statement.indices)

    def order(s: Set[sp.Symbol]) -> Axes:
        return tuple(k for k in domain if k in s)

    batch = tuple(s for s in free if s in a and s in b)
    return Contraction(sp.Mul(*outer), x, y, batch, order((a - b) - over), order((b - a) - over), order(over))


def _cheapest(
    groups: list[frozenset[sp.Symbol]], size: Callable[[sp.Symbol], int]
) -> tuple[frozenset[sp.Symbol], frozenset[sp.Symbol]]:
    """The two groups whose product has the fewest elements beyond what they have already."""
    pairs = [(a, b) for k, a in enumerate(groups) for b in groups[k + 1 :]]

    def volume(s: Set[sp.Symbol]) -> int:
        return prod(size(a) for a in s)

    return min(
        pairs,
        key=lambda p: (volume(p[0] | p[1]) - max(volume(p[0]), volume(p[1])), sorted(map(str, p[0])), sorted(map(str, p[1]))),
    )


@dataclass(frozen=True)
class Placed:
    """Where the masks of a contraction go: on the left operand, on the right one, on the result."""

    left: tuple[Mask, ...]
    right: tuple[Mask, ...]
    result: tuple[Mask, ...]


def volumes(c: Contraction, size: Callable[[sp.Symbol], int]) -> tuple[int, int, int, int]:
    """The numbers of batches, rows, bound points and columns."""
    z, r, x, q = (prod(size(a) for a in axes) for axes in (c.batch, c.row, c.bound, c.column))
    return z, r, x, q


def touched(c: Contraction, placed: Placed, size: Callable[[sp.Symbol], int], left: Bools, right: Bools) -> tuple[Bools, Bools]:
    """Where the product has a point that the masks keep, and where a kept point has an operand that is not finite.

    Parameters
    ----------
    c, placed, size
        The contraction, its masks, and the number of values of an index.
    left, right
        Where the operands are not finite, on the grids of their axes.

    Returns
    -------
    tuple
        Two boolean arrays of shape (batches, rows, columns); the masks of the result are not in them.
    """
    z, r, x, q = volumes(c, size)

    def keep(axes: Axes, masks: Sequence[Mask]) -> Bools:
        out: Bools = np.ones([size(a) for a in axes], dtype=bool)
        for m in masks:
            out = out & m.over(axes)
        return out

    def meet(a: Bools, b: Bools) -> Bools:
        return np.asarray(np.matmul(a.reshape(z, r, x).astype(np.float64), b.reshape(z, x, q).astype(np.float64)) > 0)

    lkeep, rkeep = keep(c.left_axes, placed.left), keep(c.right_axes, placed.right)
    some: Bools = np.ones((z, r, q), dtype=bool)
    if placed.left or placed.right:
        some = meet(lkeep, rkeep)
    if left.any() or right.any():
        return some, meet(left & lkeep, rkeep) | meet(lkeep, right & rkeep)
    return some, np.zeros((z, r, q), dtype=bool)


def place(c: Contraction, masks: Sequence[Mask]) -> Placed | None:
    """Put every mask on an operand or on the result; None where one lies across them."""
    left, right, result = [], [], []
    for m in masks:
        axes = set(m.axes)
        if axes <= set(c.axes):
            result.append(m)
        elif axes <= set(c.left_axes):
            left.append(m)
        elif axes <= set(c.right_axes):
            right.append(m)
        else:
            return None
    return Placed(tuple(left), tuple(right), tuple(result))
