"""Statements with a condition ``a = I``: values are put where an expression says, and added up there."""

from __future__ import annotations

import numpy as np
import sympy as sp

from symattn.program import Statement
from symattn.truth.double.approx import FLOOR, WHOLE, Approx, Array
from symattn.truth.double.arithmetic import selected
from symattn.truth.double.masks import Grounds, masks_of
from symattn.truth.double.norms import gamma, inflation
from symattn.truth.double.terms import Terms

__all__ = ["scattered"]


def scattered(known: Grounds, s: Statement, a: sp.Symbol, value: sp.Expr, condition: sp.Basic) -> Approx:
    """``where a = I``: the other indices are looped over, I is put for a, and values are added where they belong."""
    axes = tuple(b for b in s.domain if b != a)
    shape, (length,) = known.shape(axes), known.shape((a,))
    conditions = [c.xreplace({a: value}) for c in s.conditions if c is not condition]
    masks = masks_of(known, conditions, axes)
    at, bad = known.subscripts.value(value, known.subscripts.grid(axes, shape))
    at = np.broadcast_to(np.asarray(at), shape)
    whole = at == np.floor(at.astype(np.float64))
    at = np.floor(at.astype(np.float64)).astype(np.int64)
    keep = whole & (at >= 0) & (at < length)
    unsure: Array = np.zeros(shape, dtype=bool) if masks.doubt is None else masks.doubt & keep
    inside = (at >= 0) & (at < length)
    unsure = unsure if bad is None else unsure | (np.broadcast_to(bad, shape) & inside)
    more = masks.keep(axes)
    keep = (keep if more is None else keep & more) & ~unsure
    v = selected(Terms(known, axes).value(s.expr.xreplace({a: value})), keep)
    points = np.nonzero(np.broadcast_to(keep | unsure, shape))
    index = tuple((at if b == a else np.indices(shape)[axes.index(b)])[points] for b in s.indices)
    values = np.broadcast_to(np.where(unsure, np.nan, v.value), shape)[points]
    errors = np.broadcast_to(v.full(), shape)[points] if not v.exact else np.zeros(len(values))
    full = known.shape(s.indices)
    out, size, error, count = (np.zeros(full) for _ in range(4))
    for target, x in ((out, values), (size, np.abs(values)), (error, errors), (count, np.ones(len(values)))):
        np.add.at(target, index, x) if index else np.add(target, x.sum(), out=target)
    top = int(count.max(initial=0.0))
    exact = v.exact and (top <= 1 or (v.whole and bool(np.max(size, initial=0.0) < WHOLE)))
    more_error = 0.0 if exact else (error + gamma(top) * size) * inflation(top) + (error > 0) * FLOOR
    return Approx(out, 0.0, more_error, (), v.nonneg, v.whole and exact, not bool(np.isfinite(out).all()), True)
