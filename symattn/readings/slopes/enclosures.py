"""The numeric half of a sweep: factors as arrays with a radius, and what a slope adds to the bound.

``sum over F of |slope| e`` needs the absolute value of a sum of monomials. One monomial factors into matrix products. For
several, the factors that all share are taken out; the rest X is evaluated element by element where that is small, and otherwise
bounded by ``sum W |X| <= sqrt(sum W a) sqrt(sum (W/a) X^2)`` for whatever a > 0, where X^2 expands into matrix products; ``a`` is
the size of X over the output's columns, which makes the two sides close also where few elements carry the weight.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce

import numpy as np
import sympy as sp

from symattn.program import name_of, subscripts_of
from symattn.readings import boxes as bx
from symattn.readings.boxes import Array, Box
from symattn.readings.boxterms import Axes, Known, Terms, combined, masks_of
from symattn.readings.products import Operand, align, contract
from symattn.readings.slopes.planning import Contraction, Leaf, Mask, Monomial, Named, Plan
from symattn.readings.slopes.rules import BETWEEN, WHOLE

__all__ = ["Enclosures"]

EACH = 2**21
"""Up to so many points a slope of several monomials is evaluated element by element."""
TINY = 2.0**-1022


class _Leaves(dict[str, Box]):
    """The boxes that factors are made of: ``x`` for true values, ``x^`` for what lies between true and computed ones."""

    def __init__(self, boxes: Mapping[str, Box], whole: Mapping[str, Box], own: Callable[[str], Array]) -> None:
        super().__init__()
        self._boxes, self._whole, self._own = boxes, whole, own

    def __missing__(self, name: str) -> Box:
        plain = name.rstrip(BETWEEN + WHOLE)
        b = (self._whole if name.endswith(WHOLE) else self._boxes)[plain]
        if name != plain:
            self[name] = bx.as_given(b)
        else:
            self[name] = b.true(self._own(name))
        return self[name]


class Enclosures:
    """The factors of a plan as arrays: a value and a radius that holds every true and computed value of it.

    Parameters
    ----------
    plan
        Which factors there are.
    known
        Sizes, arithmetic and boxes.
    whole
        Boxes of statements' expressions before any refinement.
    own
        By name: at most how far the values of a tensor are from the true ones.
    shared
        Where factors that several outputs have in common are kept.
    each
        Up to so many points, slopes are evaluated element by element.
    """

    def __init__(
        self,
        plan: Plan,
        known: Known,
        whole: Mapping[str, Box],
        own: Callable[[str], Array],
        shared: dict[Leaf | Mask, tuple[Array, Array | None]],
        each: int = EACH,
    ) -> None:
        self.plan, self.known, self.each = plan, known, each
        self.sizes = plan.sizes
        self._leaves = replace(known, boxes=_Leaves(known.boxes, whole, own))
        self._shared = shared
        self._made: dict[int, tuple[Array, Array | None]] = {}
        self._sizes: dict[int, Array] = {}
        self._absolutes: dict[int, Array] = {}

    def factor(self, k: int) -> tuple[Array, Array | None]:
        """Value and radius (None for 0) of a factor."""
        if k not in self._made:
            f = self.plan.factors[k]
            if isinstance(f, Contraction):
                self._made[k] = self._contraction(f)
            else:
                if f not in self._shared:
                    self._shared[f] = self._leaf(f) if isinstance(f, Leaf) else self._mask(f)
                self._made[k] = self._shared[f]
        return self._made[k]

    def _leaf(self, f: Leaf) -> tuple[Array, Array | None]:
        shape = [self.sizes[a] for a in f.axes]
        if isinstance(f.expr, sp.Indexed) and subscripts_of(f.expr) == f.axes and not f.conditions:
            b = self._leaves.boxes[name_of(f.expr)]
        else:
            terms = Terms(self._leaves, f.axes)
            b = bx.settled(terms.box(f.expr), terms.unit)
            b = b.map(lambda a: np.broadcast_to(a, shape))
        value, radius = b.value, b.own
        if f.conditions:
            keep = combined(masks_of(self.known, f.conditions, f.axes), f.axes, self.known)
            assert keep is not None
            value, radius = np.where(keep, value, 0.0), np.where(keep, radius, 0.0)
        if isinstance(f.expr, sp.Indexed) and np.isnan(np.max(value, initial=0.0)):  # what no finite output reads
            value, radius = np.where(np.isnan(value), 0.0, value), np.where(np.isnan(value), 0.0, radius)
        return value, radius if bx.some(radius) else None

    def _mask(self, f: Mask) -> tuple[Array, Array | None]:
        keep = combined(masks_of(self.known, (f.condition,), f.axes), f.axes, self.known)
        assert keep is not None
        return np.broadcast_to(keep, [self.sizes[a] for a in f.axes]).astype(np.float64), None

    def _contraction(self, f: Contraction) -> tuple[Array, Array | None]:
        value: Array = np.zeros([self.sizes[a] for a in f.axes])
        radius: Array = np.zeros_like(value)
        for m in f.items:
            value = value + m.coefficient * contract([(self.factor(k)[0], ix) for k, ix in m.factors], f.axes, (), self.sizes)
            lost = self._depth(m.factors, f.axes) * 2.0**-53
            radius = radius + abs(m.coefficient) * self._radius(m.factors, f.axes, lost=lost) * (1 + 2 * lost)
        return value, radius * bx.UP

    def _depth(self, factors: Sequence[Named], out: Axes) -> float:
        """How many float64 roundings a sum of products may have in a row."""
        return self.plan.space({a for _, ix in factors for a in ix} - set(out)) + 4.0 * len(factors) + 8

    def _radius(self, factors: Sequence[Named], out: Axes, weights: Sequence[Operand] = (), lost: float = 0.0) -> Array:
        """``sum (prod (|v| + r) - prod |v|)`` without cancellation: one factor's radius after the other.

        With ``lost``, the sum of ``prod |v|`` times that is added, in the same product as some radius: as part of it.
        """
        total: Array = np.full([self.sizes[a] for a in out], 0.0 if factors else lost)
        inexact = [p for p, (f, _) in enumerate(factors) if self.factor(f)[1] is not None]
        for p in inexact or ([0] if lost and factors else []):
            (f, ix), r = factors[p], self.factor(factors[p][0])[1]
            if lost:
                r = lost * self._absolute(f) if r is None else r + lost * self._absolute(f)
                lost = 0.0
            assert r is not None
            before = [(self._absolute(k), axes) for k, axes in factors[:p]]
            ops = [*weights, *before, (r, ix), *(self.size(g) for g in factors[p + 1 :])]
            total = total + contract(ops, out, (), self.sizes)
        return total

    def _absolute(self, k: int) -> Array:
        """``|v|`` of a factor."""
        if k not in self._absolutes:
            self._absolutes[k] = np.abs(self.factor(k)[0])
        return self._absolutes[k]

    def size(self, f: Named) -> Operand:
        """The largest size of a factor, with its indices."""
        if f[0] not in self._sizes:
            value, radius = self.factor(f[0])
            self._sizes[f[0]] = self._absolute(f[0]) if radius is None else bx.reached(value, radius)
        return self._sizes[f[0]], f[1]

    def weighed(self, monomials: Sequence[Monomial], error: Array, at: Axes) -> Array:
        """``sum over F of |slope[F]| error[F]`` on the grid of the output: at least that, for every slope in the enclosure."""
        free = self.plan.free
        if not bx.some(error):
            return np.zeros([self.sizes[a] for a in free])
        bags = [Counter(m.factors) for m in monomials]
        common = list(reduce(lambda x, y: x & y, bags).elements())
        weights = self._merged([(error, at), *(self.size(f) for f in common)])
        rest = [Monomial(m.coefficient, tuple((b - Counter(common)).elements())) for m, b in zip(monomials, bags, strict=True)]
        if len(rest) == 1:
            found = abs(rest[0].coefficient) * self._summed([*weights, *(self.size(f) for f in rest[0].factors)])
        else:
            found = self._several(rest, weights)
        summed = {a for ix in [at, *(f[1] for m in monomials for f in m.factors)] for a in ix} - set(free)
        count = self.plan.space(summed)
        return (found + count * TINY) * (1 + (count + 64) * 2.0**-50)

    def _summed(self, operands: Sequence[Operand]) -> Array:
        return contract(operands, self.plan.free, (), self.sizes)

    def _several(self, rest: Sequence[Monomial], weights: list[Operand]) -> Array:
        free = self.plan.free
        radius = sum(abs(m.coefficient) * self._radius(m.factors, free, weights) for m in rest)
        found = np.zeros([self.sizes[a] for a in free]) + radius
        carried = [ix for _, ix in weights] + [ix for m in rest for _, ix in m.factors]
        axes = tuple(dict.fromkeys((*free, *(a for ix in carried for a in ix))))
        if self.plan.space(axes) <= self.each:
            return found + self._summed([*weights, (self._dense(rest, axes), axes)])
        return found + self._cauchy(rest, weights)

    def _dense(self, rest: Sequence[Monomial], axes: Axes) -> Array:
        """At least ``|X|``, element by element."""
        total, size = np.zeros((1,) * len(axes)), np.zeros((1,) * len(axes))
        for m in rest:
            parts = [align(self.factor(k)[0], ix, axes, self.sizes) for k, ix in m.factors]
            one = reduce(np.multiply, parts, np.full((1,) * len(axes), m.coefficient))
            total, size = total + one, size + np.abs(one)
        return np.broadcast_to(np.abs(total) + size * (2 * len(rest) + 16) * 2.0**-53, [self.sizes[a] for a in axes])

    def _cauchy(self, rest: Sequence[Monomial], weights: list[Operand]) -> Array:
        carried = {a for _, ix in weights for a in ix}
        axes = tuple(dict.fromkeys(a for m in rest for _, ix in m.factors for a in ix))
        row = tuple(a for a in axes if a not in self.plan.free or a in carried)
        left, right = weights, weights
        if row != axes and row and self.plan.space(row) <= 4 * max(a.size for a, _ in weights):
            a = np.sqrt(self.squares(rest, [], row))
            top = float(np.max(a, initial=0.0))
            a = np.maximum(a, 1e-12 * top + 1e-300) if np.isfinite(top) else np.ones_like(a)
            left, right = self._merged([*weights, (a, row)]), self._merged([*weights, (1 / a, row)])
        return np.sqrt(self._summed(left) * self.squares(rest, right, self.plan.free))

    def squares(self, rest: Sequence[Monomial], weights: list[Operand], out: Axes) -> Array:
        """At least ``sum W X^2``: the products of X's monomials, and what float64 may have lost where they cancel."""
        total = diagonal = np.zeros([self.sizes[a] for a in out])
        depth = 8.0
        for p, m in enumerate(rest):
            for n in rest[p:]:
                factors = [(self.factor(k)[0], ix) for k, ix in (*m.factors, *n.factors)]
                c = m.coefficient * n.coefficient * (1 if n is m else 2)
                part = c * contract(_squared([*weights, *factors]), out, (), self.sizes)
                total = total + part
                if n is m:
                    diagonal = diagonal + np.abs(part)
                    summed = {a for _, ix in [*weights, *factors] for a in ix} - set(out)
                    depth = max(depth, self.plan.space(summed) + 8.0)
        return np.maximum(total, 0.0) + 4 * len(rest) * depth * 2.0**-53 * diagonal

    def _merged(self, weights: Sequence[Operand]) -> list[Operand]:
        """Weights on indices of the largest one multiplied into it."""
        big = max((ix for _, ix in weights), key=lambda ix: self.plan.space(ix))
        inside = [align(a, ix, big, self.sizes) for a, ix in weights if set(ix) <= set(big)]
        one = np.broadcast_to(reduce(np.multiply, inside), [self.sizes[a] for a in big])
        return [(one, big), *(w for w in weights if not set(w[1]) <= set(big))]


def _squared(operands: Sequence[Operand]) -> list[Operand]:
    """Equal operands multiplied together first."""
    out: dict[tuple[int, Axes], Operand] = {}
    for a, ix in operands:
        key = (id(a), ix)
        out[key] = (out[key][0] * a, ix) if key in out else (a, ix)
    return list(out.values())
