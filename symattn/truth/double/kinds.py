"""What a scalar expression is: which rule evaluates it, where a read lies on a grid, a number as float64; each found once."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp

from symattn.program import Tensor, integer_symbols, name_of, reads, subscripts_of
from symattn.readings.balls import TABLE as BALLS
from symattn.readings.balls import parts, precision
from symattn.readings.code import constant
from symattn.readings.subscripts import loose_symbols
from symattn.truth.double.approx import Approx, U, exactly

__all__ = ["Axes", "constant_of", "kind_of", "layout_of", "negated", "of_indices", "ordered", "power_of_two"]

Axes = tuple[sp.Symbol, ...]

TINY = 2.0**-1060
"""What is added to the error of a number that may be subnormal."""


@lru_cache(maxsize=4096)
def ordered(e: sp.Mul | sp.Add) -> tuple[sp.Expr, ...]:
    """The parts of a sum or a product, those with fewer indices first: what is small is combined before what is large."""
    return tuple(sorted(e.args, key=lambda a: (len(integer_symbols(a)), not a.is_number, sp.default_sort_key(a))))


@lru_cache(maxsize=1024)
def number_of(e: sp.Expr) -> tuple[float, bool]:
    """A number rounded to float64, NaN where it is too large, and whether it is exact."""
    if e.is_Rational:
        try:
            value = int(e.p) / int(e.q)
        except OverflowError:
            return np.nan, False
        return value, bool(sp.Rational(value) == e)
    if e in (sp.oo, -sp.oo, sp.nan):
        return float(e), True
    with precision(200):
        mid, rad = parts(constant(e, BALLS.namespace))
    return float(mid), rad == 0 and float(mid) == mid


_INTEGRAL = (sp.Add, sp.Mul, sp.floor, sp.ceiling, sp.Mod, sp.Max, sp.Min, sp.Abs, sp.Symbol, sp.Integer)


@lru_cache(maxsize=4096)
def _positional(e: sp.Expr) -> bool:
    """Whether an expression is made of indices, sizes and integers by exact operations, divisions inside floor too."""
    if not loose_symbols(e) or reads(e) or any(not a.is_integer for a in e.free_symbols):
        return False
    kinds = (*_INTEGRAL, sp.Rational, sp.Pow) if e.is_integer else _INTEGRAL
    return all(isinstance(x, kinds) and not (x.is_Pow and x.exp != -1) for x in sp.preorder_traversal(e))


_COMPARED = (sp.And, sp.Or, sp.Not, sp.core.relational.Relational, sp.Add, sp.Mul, sp.Max, sp.Min, sp.Symbol, sp.Integer)


@lru_cache(maxsize=4096)
def of_indices(c: sp.Basic) -> bool:
    """Whether a condition compares sums and products of indices, sizes and integers: float64 decides it on open grids.

    >>> from symattn.program import indices
    >>> i, j = indices("i j")
    >>> of_indices(sp.Le(j, i + 2)), of_indices(sp.Le(j, i / 2))
    (True, False)
    """
    return all(isinstance(x, _COMPARED) and (not x.is_Symbol or bool(x.is_integer)) for x in sp.preorder_traversal(c))


@lru_cache(maxsize=8192)
def kind_of(e: sp.Expr) -> str:
    """Which rule an expression falls under."""
    if isinstance(e, sp.Indexed):
        return "read"
    if isinstance(e, sp.Symbol):
        return "symbol"
    if e.is_number:
        return "number"
    if _positional(e):
        return "position"
    kinds = ((sp.Add, "sum"), (sp.Mul, "product"), (sp.exp, "exp"), (sp.Pow, "power"), (sp.Piecewise, "piecewise"))
    return next((name for kind, name in kinds if isinstance(e, kind)), "function")


@lru_cache(maxsize=8192)
def layout_of(x: Tensor, axes: Axes) -> tuple[str, Axes, tuple[int, ...], tuple[Any, ...] | None]:
    """The name and the subscripts of a read; where these are distinct axes of the grid, which ones, and how they are spread."""
    sub = subscripts_of(x)
    if len(set(sub)) != len(sub) or not all(s in axes for s in sub):
        return name_of(x), sub, (), None
    return name_of(x), sub, tuple(axes.index(s) for s in sub), tuple(slice(None) if a in sub else None for a in axes)


@lru_cache(maxsize=1024)
def constant_of(e: sp.Expr, ndim: int) -> Approx:
    """A number on a grid of so many axes."""
    value, exact = number_of(e)
    found = np.full((1,) * ndim, value)
    if exact:
        return exactly(found)
    return Approx(found, 2 * U, TINY, nonneg=value >= 0, special=not np.isfinite(value))


@lru_cache(maxsize=4096)
def negated(t: sp.Expr) -> sp.Expr:
    """A product without its leading -1."""
    return sp.Mul(*t.args[1:])


def power_of_two(q: sp.Rational) -> bool:
    """Whether a number is a power of two other than 1."""
    n = int(q.p) if q.q == 1 else int(q.q) if q.p == 1 else 0
    return n > 1 and n & (n - 1) == 0
