"""Scalar expressions and conditions of numbers with an error, on the grid of some indices."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, Protocol

import numpy as np
import sympy as sp

from symattn.errors import ProgramError
from symattn.program import Tensor
from symattn.readings.subscripts import Subscripts
from symattn.truth.double import functions as fn
from symattn.truth.double.approx import FULL, Approx, Array, U, exactly, rows
from symattn.truth.double.arithmetic import add, multiply
from symattn.truth.double.functions import Library
from symattn.truth.double.kinds import Axes, constant_of, kind_of, layout_of, negated, ordered, power_of_two

__all__ = ["Known", "Terms"]


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

    def room(self, shape: tuple[int, ...]) -> Array | None:
        """An array that may be overwritten, where one of a large shape is needed."""
        ...

    def dying(self, name: str) -> bool:
        """Whether nobody needs a tensor any more once it has been read, so that its array may be overwritten."""
        ...


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
        kind = kind_of(e)
        if kind == "read":
            return self.read(e)
        if kind == "exp":
            self.known.used.add("exp")
            return fn.exp(self.value(e.args[0]), self.known.library, self.known.room)
        if kind == "power":
            return self.power(e.base, e.exp)
        rule: Callable[[Any], Approx] = getattr(self, kind)
        return rule(e)

    def number(self, e: sp.Expr) -> Approx:
        """A number: exact where float64 has it."""
        return constant_of(e, len(self.axes))

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
        for t in ordered(e):
            minus = isinstance(t, sp.Mul) and t.args[0] is sp.S.NegativeOne
            v = self.value(negated(t) if minus and out is not None else t)
            out = v if out is None else add(out, v, minus, self.known.room)
        assert out is not None
        return out

    def product(self, e: sp.Mul) -> Approx:
        """The product of the factors, the small ones first."""
        out: Approx | None = None
        negative = False
        for t in ordered(e):
            if t is sp.S.NegativeOne:
                negative = True
                continue
            v = self.value(t)
            out = v if out is None else multiply(out, v, self.known.room)
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
            if exponent.whole and exponent.exact and base.is_Rational and power_of_two(base):
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
        name, sub, order, spread = layout_of(x, self.axes)
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
