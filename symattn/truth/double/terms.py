"""Scalar expressions and conditions of numbers with an error, on the grid of some indices."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, reduce
from typing import Any, Protocol

import numpy as np
import sympy as sp

from symattn.errors import ProgramError
from symattn.program import Tensor, integer_symbols, name_of, reads, subscripts_of
from symattn.readings.balls import TABLE as BALLS
from symattn.readings.balls import parts, precision
from symattn.readings.code import constant
from symattn.readings.subscripts import Subscripts, loose_symbols
from symattn.truth.double import functions as fn
from symattn.truth.double.approx import FULL, Approx, Array, U, add, exactly, multiply, rows
from symattn.truth.double.functions import Library

__all__ = ["Known", "Terms", "of_indices"]

Axes = tuple[sp.Symbol, ...]

TINY = 2.0**-1060
"""What is added to the error of a number that may be subnormal."""


class Known(Protocol):
    """What expressions are evaluated from."""

    subscripts: Subscripts
    library: Library
    used: set[str]

    def tensor(self, name: str) -> Approx:
        """A tensor, of the shape of its indices."""
        ...

    def shape(self, axes: Axes) -> tuple[int, ...]:
        """The number of values of each of some indices."""
        ...

    def dying(self, name: str) -> bool:
        """Whether nobody needs a tensor any more once it has been read, so that its array may be overwritten."""
        ...


@lru_cache(maxsize=4096)
def _ordered(e: sp.Mul | sp.Add) -> tuple[sp.Expr, ...]:
    """The parts of a sum or a product, those with fewer indices first: what is small is combined before what is large."""
    return tuple(sorted(e.args, key=lambda a: (len(integer_symbols(a)), not a.is_number, sp.default_sort_key(a))))


@lru_cache(maxsize=1024)
def _number(e: sp.Expr) -> tuple[float, bool]:
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
def _kind(e: sp.Expr) -> str:
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
def _layout(x: Tensor, axes: Axes) -> tuple[str, Axes, tuple[int, ...], tuple[Any, ...] | None]:
    """The name and the subscripts of a read; where these are distinct axes of the grid, which ones, and how they are spread."""
    sub = subscripts_of(x)
    if len(set(sub)) != len(sub) or not all(s in axes for s in sub):
        return name_of(x), sub, (), None
    return name_of(x), sub, tuple(axes.index(s) for s in sub), tuple(slice(None) if a in sub else None for a in axes)


@lru_cache(maxsize=1024)
def _as_approx(e: sp.Expr, ndim: int) -> Approx:
    value, exact = _number(e)
    found = np.full((1,) * ndim, value)
    if exact:
        return exactly(found)
    return Approx(found, 2 * U, TINY, nonneg=value >= 0, special=not np.isfinite(value))


class Terms:
    """Values of expressions on a grid.

    Parameters
    ----------
    known
        Tensors, sizes, functions.
    axes
        The indices of the grid, in order.
    """

    def __init__(self, known: Known, axes: Axes) -> None:
        self.known, self.axes = known, axes
        self.shape = known.shape(axes)

    @property
    def grid(self) -> dict[sp.Symbol, Array]:
        """The values of the indices, shaped so that they broadcast."""
        return self.known.subscripts.grid(self.axes, self.shape)

    def value(self, e: sp.Expr) -> Approx:
        """The value of an expression.

        Raises
        ------
        ProgramError
            For a function without a rule.
        """
        kind = _kind(e)
        if kind == "read":
            return self.read(e)
        if kind == "exp":
            self.known.used.add("exp")
            return fn.exp(self.value(e.args[0]), self.known.library)
        if kind == "power":
            return self.power(e.base, e.exp)
        rule: Callable[[Any], Approx] = getattr(self, kind)
        return rule(e)

    def number(self, e: sp.Expr) -> Approx:
        """A number: exact where float64 has it."""
        return _as_approx(e, len(self.axes))

    def symbol(self, e: sp.Symbol) -> Approx:
        """An index, a size or a scalar tensor."""
        if e in self.axes:
            return exactly(self.grid[e])
        steps, sizes = self.known.subscripts.steps, self.known
        if e in steps:
            return self.number(sp.Integer(steps[e]))
        if e.is_integer:
            return self.number(sp.Integer(int(self.known.subscripts.symbol(e, {}))))
        a = sizes.tensor(str(e))
        return a.mapped(lambda v: v.reshape((1,) * len(self.axes)))

    def position(self, e: sp.Expr) -> Approx:
        """Arithmetic of indices and sizes: exact, then rounded once."""
        found, _ = self.known.subscripts.value(e, self.grid)
        v = np.asarray(found)
        v = v.reshape((1,) * (len(self.axes) - v.ndim) + v.shape)
        value = v.astype(np.float64)
        if v.dtype != object and bool((np.abs(v) <= 2**53).all()):
            return exactly(value, whole=True)
        return Approx(value, 2 * U, nonneg=bool((value >= 0).all()))

    def sum(self, e: sp.Add) -> Approx:
        """The sum of the terms; one with a minus is subtracted."""
        out: Approx | None = None
        for t in _ordered(e):
            minus = isinstance(t, sp.Mul) and t.args[0] is sp.S.NegativeOne
            v = self.value(_negated(t) if minus and out is not None else t)
            out = v if out is None else add(out, v, minus)
        assert out is not None
        return out

    def product(self, e: sp.Mul) -> Approx:
        """The product of the factors, the small ones first."""
        out: Approx | None = None
        negative = False
        for t in _ordered(e):
            if t is sp.S.NegativeOne:
                negative = True
                continue
            v = self.value(t)
            out = v if out is None else multiply(out, v)
        assert out is not None
        if not negative:
            return out
        return out.changed(value=np.negative(out.value), nonneg=False, temporary=True)

    def power(self, base: sp.Expr, p: sp.Expr) -> Approx:
        """A power with a number as base or exponent, or any of a positive base."""
        if p.is_number:
            self.known.used |= set() if p.is_Rational and p.q <= 2 else {"exp", "log"}
            if p is sp.S.NegativeOne:
                return fn.reciprocal(self.value(base))
            return fn.power(self.value(base), p, self.known.library)
        exponent = self.value(p)
        if base.is_number and base.is_positive:
            if exponent.whole and exponent.exact and base.is_Rational and _power_of_two(base):
                return self._exact_power(base, exponent)
            logs = self.number(sp.log(base))
            self.known.used.add("exp")
            return fn.exp(multiply(exponent, logs), self.known.library)
        self.known.used |= {"exp", "log"}
        logs = fn.logarithm(self.value(base), self.known.library)
        return fn.exp(multiply(exponent, logs), self.known.library)

    def _exact_power(self, base: sp.Expr, exponent: Approx) -> Approx:
        shift = float(sp.log(base, 2)) * exponent.value
        fine = np.abs(shift) < 900
        value = np.where(fine, np.ldexp(1.0, np.where(fine, shift, 0.0).astype(np.int64)), np.nan)
        return Approx(value, special=not bool(fine.all()), nonneg=True, temporary=True)

    def function(self, e: sp.Expr) -> Approx:
        """A function by name."""
        name = e.func.__name__
        if name in ("Max", "Min"):
            return fn.extremum([self.value(a) for a in e.args], name == "Max")
        if name == "Mod":
            a, b = (self.value(x) for x in e.args)
            if not (a.exact and b.exact and a.whole and b.whole):
                raise ProgramError(f"no float64 bound for `{e}`: Mod is of integers")
            return exactly(np.mod(a.value, b.value))
        if name == "Heaviside":
            return self.piecewise(sp.Piecewise((0, e.args[0] < 0), (e.args[1], sp.Eq(e.args[0], 0)), (1, True)))
        a = self.value(self._quotient(e.args[0]) if name in ("floor", "ceiling") else e.args[0])
        if name in ("sign", "floor", "ceiling"):
            return fn.step(name, a)
        if name == "Abs":
            return fn.absolute(a)
        self.known.used.add(name if name != "sigmoid" else "exp")
        if name == "log":
            return fn.logarithm(a, self.known.library)
        if name in (*fn.SLOPES, "sinh", "cosh"):
            return fn.smooth(name, a, self.known.library)
        raise ProgramError(f"no float64 bound for the function {name} in `{e}`")

    @staticmethod
    def _quotient(e: sp.Expr) -> sp.Expr:
        return e

    # reads

    def read(self, x: Tensor) -> Approx:
        """A tensor at the points of the grid."""
        name, sub, order, spread = _layout(x, self.axes)
        a = self.known.tensor(name)
        if not sub:
            return a.mapped(lambda v: v.reshape((1,) * len(self.axes)))
        if spread is None or any(n != self.shape[k] for n, k in zip(a.value.shape, order, strict=True)):
            return self.looked_up(x, a)
        if sub == self.axes:
            return a.changed(temporary=self.known.dying(name))
        ndim, turn = len(sub), tuple(sorted(range(len(sub)), key=order.__getitem__))
        straight = turn == tuple(range(ndim))
        return a.mapped(lambda v: (v if straight else v.transpose(turn))[spread] if v.ndim == ndim else v)

    def looked_up(self, x: Tensor, a: Approx) -> Approx:
        """A tensor at computed places."""
        a = a.plain()
        shape, grid = a.value.shape, self.grid
        where, bad = self.known.subscripts.locate(x, shape, grid)
        past = self.known.subscripts.beyond(x, shape, grid)

        def take(c: Any) -> Any:
            if np.ndim(c) == 0:
                return c
            found = np.broadcast_to(c, shape)[where]
            found = np.reshape(found, np.broadcast_shapes(found.shape, (1,) * len(self.axes)))
            return found if past is None else np.where(past, 0.0, found)

        value = take(a.value)
        if bad is not None and np.any(bad):
            value = np.where(bad, np.nan, value)
        special = not bool(np.isfinite(value).all())
        return Approx(value, _rare(take(a.rel), value), _rare(take(a.abs), value), (), a.nonneg, a.whole and not special, special)

    # conditions

    def piecewise(self, e: sp.Piecewise) -> Approx:
        """The value of the branch that is taken; not known where a condition is not decided."""
        out = Approx(np.full((1,) * len(self.axes), np.nan), special=True)
        for expr, condition in reversed(e.args):
            yes, no = self.decide(condition)
            a = self.value(expr)
            if yes.all() and yes.size == 1:
                out = a
                continue
            value = np.where(yes, a.value, np.where(no, out.value, np.nan))
            error = np.where(
                yes,
                a.error(False) if not a.large else rows(a.error(True)),
                out.error(False) if not out.large else out.error(True),
            )
            special = not bool(np.isfinite(value).all())
            whole = a.whole and (out.whole or bool(yes.all())) and not special
            nonneg = a.nonneg and (out.nonneg or bool(yes.all()))
            known: Any = 0.0 if a.exact and out.exact else _rare(error, value)
            out = Approx(value, 0.0, known, (), nonneg, whole, special, True)
        return out

    def decide(self, c: sp.Basic) -> tuple[Array, Array]:
        """Where a condition certainly holds, and where it certainly does not."""
        if c in (sp.true, sp.false):
            yes = np.full((1,) * len(self.axes), bool(c))
            return yes, ~yes
        if isinstance(c, sp.Not):
            yes, no = self.decide(c.args[0])
            return no, yes
        if isinstance(c, (sp.And, sp.Or)):
            pairs = [self.decide(a) for a in c.args]
            every, some = (np.logical_and, np.logical_or) if isinstance(c, sp.And) else (np.logical_or, np.logical_and)
            return reduce(every, [p[0] for p in pairs]), reduce(some, [p[1] for p in pairs])
        if not isinstance(c, sp.core.relational.Relational):
            raise ProgramError(f"no condition: `{c}`")
        a, b = self.value(c.lhs), self.value(c.rhs)
        if isinstance(c, (sp.Gt, sp.Ge)):
            a, b = b, a
        if a.exact and b.exact and not a.special and not b.special:
            compare = {sp.Eq: np.equal, sp.Ne: np.not_equal, sp.Lt: np.less, sp.Gt: np.less}.get(type(c), np.less_equal)
            yes = compare(a.value, b.value)
            return yes, ~yes
        (alo, ahi), (blo, bhi) = _range(a), _range(b)
        if isinstance(c, (sp.Eq, sp.Ne)):
            apart, same = (ahi < blo) | (bhi < alo), (alo == ahi) & (blo == bhi) & (alo == blo)
            return (same, apart) if isinstance(c, sp.Eq) else (apart, same)
        return (ahi < blo, bhi <= alo) if isinstance(c, (sp.Lt, sp.Gt)) else (ahi <= blo, bhi < alo)


def _range(a: Approx) -> tuple[Array, Array]:
    """Ends of what holds the exact values; NaN, which nothing is compared with, where nothing is known."""
    if a.exact:
        return a.value, a.value
    with np.errstate(all="ignore"):
        reach = a.full()
        low, high = np.nextafter(a.value - reach, -np.inf), np.nextafter(a.value + reach, np.inf)
        settled = reach == 0
        return np.where(settled, a.value, low), np.where(settled, a.value, high)


def _rare(c: Any, value: Array) -> Any:
    """A coefficient of the size that the grid allows."""
    return rows(np.asarray(c)) if np.ndim(c) and value.size > FULL else c


@lru_cache(maxsize=4096)
def _negated(t: sp.Expr) -> sp.Expr:
    return sp.Mul(*t.args[1:])


def _power_of_two(q: sp.Rational) -> bool:
    n = int(q.p) if q.q == 1 else int(q.q) if q.p == 1 else 0
    return n > 1 and n & (n - 1) == 0
