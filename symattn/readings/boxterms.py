"""Scalar expressions and conditions over boxes: every operation of an expression tree is one operation of the kernel."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import sympy as sp

from symattn.arithmetic import Arithmetic
from symattn.errors import ProgramError
from symattn.program import Tensor, integer_symbols, name_of, reads, subscripts_of
from symattn.readings import boxes as bx
from symattn.readings import boxfunctions as fn
from symattn.readings import merging
from symattn.readings.boxarithmetic import add, multiply
from symattn.readings.boxes import Array, Box
from symattn.readings.decisions import YES
from symattn.readings.domain import open_grid
from symattn.readings.products import align
from symattn.readings.subscripts import Subscripts
from symattn.readings.units import Unit, fits

Axes = tuple[sp.Symbol, ...]

FUNCTIONS = frozenset(("exp", "log", "Abs", "sign", "floor", "ceiling", "Max", "Min", *fn.SMOOTH))
"""The functions that there is a rule for, powers apart."""


@dataclass(frozen=True)
class Known:
    """What an evaluation knows so far: the boxes of the tensors, the sizes, the declared arithmetic."""

    boxes: dict[str, Box]
    sizes: Mapping[sp.Symbol, int]
    arithmetic: Arithmetic
    subscripts: Subscripts
    lagging: frozenset[str] | None = None
    """Tensors that grow with what a row maximum is late by, where that is common to all that they are compared with."""

    @property
    def late(self) -> float:
        """What the maxima in use are late by and boxes are freed of: those of tensors that lag are divided by its exponential."""
        return 0.0 if self.lagging is None else self.arithmetic.stale

    @property
    def compute(self) -> Unit:
        """The rounding of an elementwise operation."""
        return Unit.of(self.arithmetic.compute, self.arithmetic.flush_to_zero)


class Terms:
    """Boxes of scalar expressions on the grid of some indices; arrays have an axis of length 1 for indices not carried.

    Parameters
    ----------
    known
        Tensors, sizes and arithmetic.
    axes
        The indices of the grid, in order.
    """

    def __init__(self, known: Known, axes: Axes) -> None:
        self.known, self.axes, self.unit = known, axes, known.compute
        self._grid = known.subscripts.grid(axes, [known.sizes[a] for a in axes])
        self._in_exponent = False

    def box(self, e: sp.Expr) -> Box:
        """The box of an expression.

        Raises
        ------
        ProgramError
            For a function without a rounding rule.
        """
        if isinstance(e, sp.Indexed):
            return self._read(e)
        if isinstance(e, sp.Symbol):
            return self._symbol(e)
        if e.is_number:
            return self._number(e)
        if isinstance(e, sp.Add):
            return add([self.box(a) for a in e.args], self.unit)
        if isinstance(e, sp.Mul):
            return reduce(lambda a, b: multiply(a, b, self.unit), [self.box(a) for a in _signs_first(e.args)])
        if isinstance(e, sp.exp) or (isinstance(e, sp.Pow) and e.base.is_number and not e.exp.is_number):
            return self._exponential(e)
        if isinstance(e, sp.Pow) and e.exp.is_number:
            return fn.power(self.box(e.base), e.exp, self.unit, self._error("power"))
        if isinstance(e, sp.Pow):
            return fn.general_power(self.box(e.base), self.box(e.exp), self.unit, self._error("power"))
        if isinstance(e, sp.Piecewise):
            return self._piecewise(e)
        return self._function(e)

    def _error(self, name: str) -> float:
        return self.known.arithmetic.function_errors(name)

    def _symbol(self, e: sp.Symbol) -> Box:
        if e in self._grid:
            return bx.exactly(self._grid[e], index=True)
        value = self.known.subscripts.steps.get(e, self.known.sizes.get(e))
        return self._read(e) if value is None else bx.exactly(self._full(value), index=True)

    def _full(self, x: float) -> Array:
        return np.full((1,) * len(self.axes), float(x))

    def _number(self, e: sp.Expr) -> Box:
        if e.is_Rational or e in (sp.oo, -sp.oo, sp.nan):
            return bx.exactly(self._full(float(e)), index=True)
        value, operations = float(sp.N(e, 25)), int(sp.count_ops(e))
        error = self._full((1 + operations) * self.unit.u * abs(value))
        return bx.finish(self._full(value), self._full(bx.U * abs(value)), error, None, 0.0, self.unit.tiny, value >= 0)

    def _read(self, x: Tensor) -> Box:
        b = self.known.boxes[name_of(x)]
        sub = subscripts_of(x)
        as_it_is = b.held is None and not b.index and not b.gauge and b.held_by(self.unit.name)
        if all(s in self._grid for s in sub) and len(set(sub)) == len(sub) and self._fills(b, sub):
            axes, sizes = self.axes, self.known.sizes  # and not self: a box that is found late would keep all others alive
            b = b.map(lambda a: align(a, tuple(sub), axes, sizes))
        else:
            grid = self._grid_of(b, sub)
            where, bad = self.known.subscripts.locate(x, b.value.shape, grid)
            shape = (1,) * len(self.axes)
            b = b.map(lambda a: np.reshape(a[where], np.broadcast_shapes(np.shape(a[where]), shape)))
            if bad is not None:
                b = replace(bx.select(~bad, b, np.nan), nonneg=b.nonneg)
            past = self.known.subscripts.beyond(x, self.known.boxes[name_of(x)].value.shape, grid)
            if past is not None:
                b = bx.select(~past, b)
        if b.gauge and not self._in_exponent:
            size = np.where(np.isfinite(b.value), b.size + self.known.late, 0.0)
            more = self.known.arithmetic.shift_roundings * self.unit.u * size
            b = replace(b, bound=b.bound + more, rescalings=0)
        if as_it_is:
            return b
        if b.held is None and not b.index:
            return bx.stored(b, self.unit).marked(held=None)
        return bx.stored(b, self.unit) if b.held is not None and not fits(b.held, self.unit.name) else b

    def _fills(self, b: Box, axes: Axes) -> bool:
        """Whether the axes of a box are those of the grid, and not longer because the grid is a block of rows."""
        return b.value.shape == tuple(self.known.sizes[a] for a in axes)

    def _grid_of(self, b: Box, subscripts: Axes) -> dict[sp.Symbol, Array]:
        """The grid for a look-up: of a tensor that has the rows of a block only, its first row is the block's first."""
        origin, sizes = self.known.subscripts.origin, self.known.sizes
        if any(s in origin and n == sizes[s] for s, n in zip(subscripts, b.value.shape, strict=True)):
            return open_grid(self.axes, [sizes[a] for a in self.axes])
        return self._grid

    def _exponential(self, e: sp.Expr) -> Box:
        base, exponent = (np.e, e.args[0]) if isinstance(e, sp.exp) else (float(e.base), e.exp)
        if base <= 0:
            raise ProgramError(f"no rounding rule for {e}: the base of a power with a varying exponent must be positive")
        before, self._in_exponent = self._in_exponent, True
        a = bx.settled(self.box(exponent), self.unit)
        if self.known.arithmetic.folded:
            a = self._folded(exponent, a)
        if self.known.arithmetic.merged:
            a = self._merged(exponent, a)
        if self.known.late and any(self.known.boxes[name_of(x)].gauge for x in reads(exponent)):
            a = self._more(a, 4 * self.unit.u * self.known.late)
        self._in_exponent = before
        again = 1 + a.rescalings
        return fn.exponential(a, self.unit, (1 + self._error("exp")) ** again - 1, again * self.unit.tiny, base)

    def _folded(self, exponent: sp.Expr, a: Box) -> Box:
        """An exponent ``z - m`` that may be formed as ``c r - fl(c m)`` with the unscaled score r.

        ``c m`` is rounded, and so is the product or the fma; a rescaling ``c (m - m')`` has two roundings, of which the list has
        one. All of it is at most ``u (|m| + 2 |z - m|)``.
        """
        shifts = [self._read(x) for x in reads(exponent) if self.known.boxes[name_of(x)].gauge]
        if not shifts:
            return a
        more = np.multiply(a.size, 2 * self.unit.u)
        for s in shifts:
            more = more + self.unit.u * np.where(np.isfinite(s.value), s.size, 0.0)
        return self._more(a, more)

    def _merged(self, exponent: sp.Expr, a: Box) -> Box:
        """An exponent ``z - m`` of a row whose parts are put together."""
        shifts = [x for x in reads(exponent) if self.known.boxes[name_of(x)].gauge]
        if not shifts:
            return a
        there = set().union(*(x.free_symbols for x in shifts))
        keys = math.prod(self.known.sizes[x] for x in self.axes if x not in there)
        size = reduce(np.add, [np.where(np.isfinite(s.value), s.size, 0.0) for s in map(self._read, shifts)])
        return self._more(a, merging.of_exponent(self.known.arithmetic, a.size, size, keys))

    @staticmethod
    def _more(b: Box, error: Array | float) -> Box:
        """The box with a further error where it is a number."""
        more = np.asarray(b.bound + error)
        more *= bx.UP
        if not all(np.isfinite(f(b.value, initial=0.0)) for f in (np.min, np.max)):
            more = np.where(np.isfinite(b.value), more, b.bound)
        return b.changed(bound=more, low=lambda: np.zeros_like(more))

    def _piecewise(self, e: sp.Piecewise) -> Box:
        out = bx.exactly(self._full(np.nan))
        for value, condition in reversed(e.args):
            (mask, doubt), b = self.holds(condition), bx.settled(self.box(value), self.unit)
            joined = Box(
                np.where(mask, b.value, out.value),
                np.where(mask, b.bound, out.bound),
                np.where(mask, b.low, out.low),
                np.where(mask, b.own, out.own),
                nonneg=b.nonneg and (out.nonneg or bool(np.all(mask))),
                rescalings=max(b.rescalings, out.rescalings),
            )
            out = unknown(joined, doubt if np.any(doubt) else None)
        return out

    def _function(self, e: sp.Expr) -> Box:
        name = e.func.__name__
        args = [self.box(a) for a in e.args]
        if name in ("Max", "Min"):
            return fn.extremum(args, self.unit, name == "Max")
        if name == "Mod" and all(a.index for a in args):
            return bx.exactly(np.mod(args[0].value, args[1].value), index=True)
        if name in ("sign", "floor", "ceiling"):
            return fn.step(name, args[0])
        a = bx.settled(args[0], self.unit)
        if name == "Abs":
            return fn.absolute(a)
        if name == "log":
            b = fn.logarithm(a, self.unit, self._error("log"))
            late = any(name_of(x) in (self.known.lagging or ()) for x in reads(e))
            return self._more(b, (self._error("log") + self.unit.u) * self.known.late) if late else b
        if name in fn.SMOOTH:
            return fn.smooth(name, a, self.unit, self._error(name))
        there = ", ".join(sorted(FUNCTIONS))
        raise ProgramError(f"the rounding reading has no rule for the function {name} in `{e}`; it has {there} and powers")

    def holds(self, condition: sp.Basic) -> tuple[Array, Array]:
        """Where a condition holds for the float64 values, and where the true or a computed value could turn it."""
        yes, no = self._decide(condition)
        doubt = ~(yes | no)
        return (yes | (self._by_value(condition) & doubt) if np.any(doubt) else yes), doubt

    def _decide(self, c: sp.Basic) -> tuple[Array, Array]:
        """Where a condition certainly holds, and where it certainly does not."""
        if c in (sp.true, sp.false):
            yes = np.full((1,) * len(self.axes), bool(c))
            return yes, ~yes
        if isinstance(c, sp.Not):
            yes, no = self._decide(c.args[0])
            return no, yes
        if isinstance(c, (sp.And, sp.Or)):
            pairs = [self._decide(a) for a in c.args]
            every = reduce(np.logical_and, [p[0 if isinstance(c, sp.And) else 1] for p in pairs])
            some = reduce(np.logical_or, [p[1 if isinstance(c, sp.And) else 0] for p in pairs])
            return (every, some) if isinstance(c, sp.And) else (some, every)
        (alo, ahi), (blo, bhi) = (_range(b) for b in self._sides(c))
        if isinstance(c, (sp.Eq, sp.Ne)):
            apart = (ahi < blo) | (bhi < alo)
            same = (alo == ahi) & (blo == bhi) & (alo == blo)
            return (same, apart) if isinstance(c, sp.Eq) else (apart, same)
        return (ahi < blo, bhi <= alo) if isinstance(c, (sp.Lt, sp.Gt)) else (ahi <= blo, bhi < alo)

    def _by_value(self, c: sp.Basic) -> Array:
        """Where a condition holds for the float64 values."""
        if c in (sp.true, sp.false):
            return np.full((1,) * len(self.axes), bool(c))
        if isinstance(c, sp.Not):
            return ~self._by_value(c.args[0])
        if isinstance(c, (sp.And, sp.Or)):
            return reduce(np.logical_and if isinstance(c, sp.And) else np.logical_or, [self._by_value(a) for a in c.args])
        a, b = (x.value for x in self._sides(c))
        if isinstance(c, (sp.Eq, sp.Ne)):
            return (a == b) if isinstance(c, sp.Eq) else (a != b)
        return a < b if isinstance(c, (sp.Lt, sp.Gt)) else a <= b

    def _sides(self, c: sp.Basic) -> tuple[Box, Box]:
        """The two sides of a comparison, the one that should be smaller first."""
        if not isinstance(c, sp.core.relational.Relational):
            raise ProgramError(f"no condition: `{c}`")
        a, b = self.box(c.lhs), self.box(c.rhs)
        return (b, a) if isinstance(c, (sp.Gt, sp.Ge)) else (a, b)


def _range(b: Box) -> tuple[Array, Array]:
    """Bounds of true and computed values."""
    reach = b.own + b.bound
    lo, hi = b.value - reach, b.value + reach
    least = np.minimum(b.low, b.true_low) if not b.exact else b.low
    lo = np.where((b.low > 0) & (b.value > 0), np.maximum(lo, least), lo)
    hi = np.where((b.low > 0) & (b.value < 0), np.minimum(hi, -least), hi)
    return lo, hi


def _signs_first(factors: Sequence[sp.Expr]) -> list[sp.Expr]:
    """Exact numbers first, so that a power of two among them costs no rounding."""
    return sorted(factors, key=lambda f: not f.is_number)


@dataclass(frozen=True)
class Mask:
    """Where a condition holds, on the grid of the indices in it, and where rounding errors could turn it."""

    keep: Array
    axes: Axes
    doubt: Array


def masks_of(known: Known, conditions: Sequence[sp.Basic], domain: Axes) -> list[Mask]:
    """The conditions of a statement, one mask each. What given numbers decide is in no doubt."""
    out = []
    for c in conditions:
        used = integer_symbols(c)
        axes = tuple(a for a in domain if a in used)
        shape = [known.sizes[a] for a in axes]
        if known.subscripts.decidable(c):
            states = known.subscripts.states(c, axes, shape)
            out.append(Mask(states == YES, axes, states > YES))
            continue
        keep, doubt = Terms(known, axes).holds(c)
        out.append(Mask(np.broadcast_to(keep, shape), axes, np.broadcast_to(doubt, shape)))
    return out


def combined(masks: Sequence[Mask], axes: Axes, known: Known) -> Array | None:
    """All masks at once on the grid of ``axes``; None for none."""
    if not masks:
        return None
    return reduce(np.logical_and, [align(m.keep, m.axes, axes, known.sizes) for m in masks])


def doubtful(masks: Sequence[Mask], free: Axes, over: Axes, known: Known) -> Array | None:
    """On the grid of ``free``: whether rounding errors could turn a condition at some point that the others may keep."""
    if not any(np.any(m.doubt) for m in masks):
        return None
    axes = (*free, *over)
    maybe = reduce(np.logical_and, [align(m.keep | m.doubt, m.axes, axes, known.sizes) for m in masks])
    any_doubt = reduce(np.logical_or, [align(m.doubt, m.axes, axes, known.sizes) for m in masks])
    found = maybe & any_doubt
    return np.asarray(found.any(axis=tuple(range(len(free), len(axes)))))


def there_or_zero(b: Box, inside: Box, where: Array | None) -> Box:
    """The box where rounding errors could turn a condition: the true and the computed value are each 0 or in ``inside``."""
    if where is None:
        return b
    reach = np.abs(inside.value) + (inside.own + inside.bound)
    reach = np.where(np.isnan(reach), np.inf, reach) * bx.UP
    bound, own = (np.where(where, reach, x) for x in (b.bound, b.own))
    return replace(b, bound=bound, own=own, low=np.where(where, 0.0, b.low), least=None)


def unknown(b: Box, where: Array | None) -> Box:
    """The box without a bound where something is in doubt."""
    if where is None:
        return b
    bound, own = (np.where(where, np.inf, x) for x in (b.bound, b.own))
    return replace(b, bound=bound, own=own, low=np.where(where, 0.0, b.low), least=None)
