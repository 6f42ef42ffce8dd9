"""Where the indices of statements and of products of matrices lie: batches, rows, columns, what is summed over."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
import sympy as sp

from symattn.program import Statement, integer_symbols, subscripts_of
from symattn.readings.contraction import Contraction, contraction
from symattn.truth.double.approx import Approx, Array
from symattn.truth.double.kinds import Axes

__all__ = ["axes_of", "by_small_factors", "first", "in_order", "merged", "pairing", "split"]


def pairing(s: Statement, term: sp.Expr) -> Contraction | None:
    """``sum over j of A[i, j] B[i, j]``: a product of rows with columns for each i."""
    domain, over = set(s.domain), set(s.over)
    inner = [f for f in sp.Mul.make_args(term) if integer_symbols(f) & over]
    if len(inner) != 2 or not all(isinstance(f, sp.Indexed) and integer_symbols(f) & domain == domain for f in inner):
        return None
    outer = sp.Mul(*[f for f in sp.Mul.make_args(term) if f not in inner])
    return Contraction(outer, inner[0], inner[1], s.indices, (), (), s.over)


def by_small_factors(s: Statement, term: sp.Expr, size: Callable[[sp.Symbol], int]) -> Contraction | None:
    """``sum over i of A[i, j] B[i, c] f[i]``: f is a factor of the smaller operand; None where no factor is like that."""
    inner = [f for f in sp.Mul.make_args(term) if integer_symbols(f) & set(s.over)]
    used = {f: integer_symbols(f) & set(s.domain) for f in inner}
    small = [f for f in inner if any(used[f] < used[g] for g in inner)]
    c = contraction(s, sp.Mul(*[f for f in sp.Mul.make_args(term) if f not in small]), size) if small else None
    if c is None:
        return None
    left, right = c.left, c.right
    for f in small:
        fit = [axes for axes in (c.left_axes, c.right_axes) if used[f] <= set(axes)]
        if not fit:
            return None
        if min(fit, key=lambda axes: math.prod(map(size, axes))) == c.left_axes:
            left = left * f
        else:
            right = right * f
    return replace(c, left=left, right=right)


def in_order(c: Contraction, indices: Axes) -> Contraction:
    """The contraction with its operands so that the rows of the result come before its columns."""
    first = min((indices.index(a) for a in c.row), default=-1)
    second = min((indices.index(a) for a in c.column), default=len(indices))
    if first <= second:
        return c
    return Contraction(c.outer, c.right, c.left, c.batch, c.column, c.row, c.bound)


def merged(a: Approx, shape: Sequence[int], parts: tuple[int, int], to: tuple[int, int, int]) -> Approx:
    """An operand as (batch, row, bound); coefficients keep length 1 where they have it along a whole group."""
    ends = (0, parts[0], parts[0] + parts[1], len(shape))
    if parts == (1, 1) and len(shape) == 3 and a.value.shape == to:
        return a
    if parts == (0, 1) and len(shape) == 2:
        return a.mapped(_under_one).changed(temporary=a.temporary)

    def merge(v: Array) -> Array:
        if v.ndim != len(shape):
            return v
        wide, out = list(v.shape), []
        for k in range(3):
            group = range(ends[k], ends[k + 1])
            if any(v.shape[g] != 1 for g in group):
                for g in group:
                    wide[g] = shape[g]
                out.append(to[k])
            else:
                out.append(1)
        return np.broadcast_to(v, wide).reshape(out)

    temporary = a.temporary
    a = a.mapped(merge)
    value = a.value if a.value.shape == to else np.broadcast_to(a.value, to)
    return a.changed(value=value, temporary=temporary, norms=a.norms)


@lru_cache(maxsize=4096)
def _axes_of(target: sp.Basic, over: Axes) -> tuple[Axes, Axes]:
    free = subscripts_of(target)
    return free, free + over


def axes_of(s: Statement) -> tuple[Axes, Axes]:
    """The free indices and all indices of a statement."""
    return _axes_of(s.target, s.over)


def first(v: Array) -> Array:
    """The only batch of an array of three axes; others stay."""
    return v[0] if v.ndim == 3 else v


def _under_one(v: Array) -> Array:
    return v[None] if v.ndim == 2 else v


def split(v: Array, whole: tuple[int, int, int], shape: Sequence[int], parts: tuple[int, int]) -> Array:
    """The reverse, for a result of shape (batch, row, column)."""
    if v.ndim != 3:
        return v
    ends = (0, parts[0], parts[0] + parts[1], len(shape))
    out: list[int] = []
    for k in range(3):
        group = shape[ends[k] : ends[k + 1]]
        out += group if v.shape[k] == whole[k] and math.prod(group) == whole[k] else [1] * len(group)
    return v.reshape(out)
