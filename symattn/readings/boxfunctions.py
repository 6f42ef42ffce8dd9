"""Boxes of functions: how far apart the values of a function are at the true and at the computed argument, for each function.

A smooth function moves by at most its greatest slope over the box times the radius; exp, log and powers have sharper rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import sympy as sp

from symattn.readings.boxarithmetic import integer_power
from symattn.readings.boxes import OWN_FUNCTION, OWN_TINY, Array, Box, exactly, finish, settled
from symattn.readings.units import Unit

_erf = np.frompyfunc(math.erf, 1, 1)


def exponential(a: Box, unit: Unit, error: float, tiny: float, base: float = math.e) -> Box:
    """``base^x``: ``|e^k - e^t| <= e^t (e^r - 1)``; the computed value stays above ``e^t e^-r``."""
    rate = abs(math.log(base)) * (1 + 2.0**-50)
    value = np.exp(a.value) if base == math.e else np.power(base, a.value)
    ends = [float(f(a.value, initial=0.0)) for f in (np.min, np.max)]
    own = _expm1(rate, a.own, 700.0)
    own += OWN_FUNCTION
    own = own * value if np.shape(own) != np.shape(value) else np.multiply(own, value, out=own)
    own *= 1 + OWN_FUNCTION
    own += OWN_TINY
    grow = _expm1(rate, a.bound, np.inf)
    bound = (value + own) * grow
    if not (np.all(np.isfinite(ends)) and math.log(base) * ends[base >= 1] <= 700.0):
        finite = np.isfinite(a.value)
        own, bound = np.where(finite, own, 0.0), np.where(finite, bound, 0.0)
        bound = np.where(np.isinf(value) & finite, np.inf, bound)
    before = own

    def low() -> Array:
        return np.asarray(np.maximum(value - before, 0.0) * _falling(rate * a.bound * (1 + 2.0**-50)))

    near = rate * float(np.max(a.bound, initial=0.0)) <= SMALL  # value - own - bound says as much then
    return finish(value, own, bound, None if near else low, error, tiny, True, rescalings=a.rescalings)


SMALL = 2.0**-8
"""Up to here a few terms of the series of an exponential bound it."""


def _expm1(rate: float, r: Array, beyond: float) -> Array:
    """At least ``e^x - 1`` for ``x = rate r >= 0``, in a new array; from 700 on, ``beyond`` stands for the value at infinity.

    Up to :data:`SMALL` it is ``x (1 + X (1/2 + X))`` with the largest x for X: more than the series by 0.2 % at most.
    """
    most = rate * float(np.max(r, initial=0.0))
    if most <= SMALL:
        return np.asarray(r * (rate * (1 + most * (0.5 + most)) * (1 + 2.0**-50)))
    x = rate * r
    grown = np.expm1(np.minimum(x, 700.0))
    return np.asarray(grown if np.isfinite(beyond) else np.where(x > 700.0, np.inf, grown))


def _falling(x: Array) -> Array:
    """At most ``e^-x`` for x >= 0, but for roundings of float64."""
    return np.asarray(1 - x * (1 - x * (0.5 - x / 6))) if np.max(x, initial=0.0) <= SMALL else np.exp(-np.minimum(x, 745.0))


def logarithm(a: Box, unit: Unit, error: float) -> Box:
    """``log x``, -oo at an exact 0: ``|log k - log t| <= max(log((t + r)/t), log(t/low))``, and ``<= r / min(k, t)``."""
    value = np.log(a.value)
    none = a.size == 0
    least = np.minimum(a.low, a.true_low)
    own = np.where(a.own == 0, 0.0, a.own / a.true_low) + OWN_FUNCTION * np.abs(value) + OWN_TINY
    sides = np.maximum(np.log1p(a.bound / a.true_low), np.log(a.true_size / a.low) + 2.0**-50)
    bound = np.where(a.bound == 0, 0.0, np.fmin(a.bound / least, sides))
    bound = np.where((a.low <= 0) & (a.bound > 0), np.inf, bound)
    own, bound = (np.where(none, 0.0, x) for x in (own, bound))
    return finish(value, own, bound, None, error, unit.tiny, rescalings=a.rescalings)


def real_power(a: Box, p: sp.Rational, unit: Unit, error: float) -> Box:
    """``x^p`` for a rational p that is no integer, of a base that is not negative."""
    root = _rational_root(a, p) if a.index and a.value.size == 1 else None
    if root is not None:
        return exactly(np.full(a.value.shape, root), index=True)
    a, q = settled(a, unit), float(p)
    value = np.power(a.value, q)
    least = np.minimum(a.low, a.true_low)
    steep = abs(q) * np.maximum(np.power(a.true_low, q - 1), np.power(a.true_size, q - 1))
    own = np.where(a.own == 0, 0.0, a.own * steep) + OWN_FUNCTION * np.abs(value)
    steep = abs(q) * np.maximum(np.power(least, q - 1), np.power(a.size, q - 1))
    bound = np.where(a.bound == 0, 0.0, a.bound * steep)
    if 0 < q < 1 and a.nonneg:
        own = np.fmin(own, np.power(a.own, q) + OWN_FUNCTION * np.abs(value))
        bound = np.fmin(bound, np.power(a.bound, q))
    known = (a.low > 0) | (a.bound == 0) | bool(a.nonneg and q > 0)
    bound = np.where(known, bound, np.inf)
    low = np.power(a.low, q) if q > 0 else np.power(a.size, q)
    roundings = {sp.Rational(1, 2): 1, sp.Rational(-1, 2): 2}.get(p)
    u = error if roundings is None else roundings * unit.u
    return finish(value, own, bound, low, u, unit.tiny, True, rescalings=a.rescalings)


def _rational_root(a: Box, p: sp.Rational) -> float | None:
    """``x^p`` of an integer where that is rational."""
    v = float(a.value.flat[0])
    root = sp.Integer(int(v)) ** p if v == int(v) else None
    return float(root) if root is not None and root.is_Rational else None


def extremum(boxes: Sequence[Box], unit: Unit, largest: bool) -> Box:
    """The largest (smallest) of several: it moves by at most the greatest radius; nothing is rounded."""
    f = np.maximum if largest else np.minimum
    if all(b.index for b in boxes):
        return exactly(reduce(f, [b.value for b in boxes]), index=True)
    boxes = [settled(b, unit) for b in boxes]
    value, own, bound = (
        reduce(g, [getattr(b, x) for b in boxes]) for g, x in ((f, "value"), (np.maximum, "own"), (np.maximum, "bound"))
    )
    nonneg = (any if largest else all)(b.nonneg for b in boxes)
    return finish(value, own, bound, None, 0.0, 0.0, nonneg, rescalings=max(b.rescalings for b in boxes))


def _tanh_slope(v: Array, r: Array) -> Array:
    return 1 - np.tanh(np.maximum(np.abs(v) - r, 0.0)) ** 2 + 2.0**-50


def _erf_slope(v: Array, r: Array) -> Array:
    return 2 / math.sqrt(math.pi) * np.exp(-(np.maximum(np.abs(v) - r, 0.0) ** 2)) * (1 + 2.0**-48)


def _sigmoid(v: Array) -> Array:
    small = np.exp(-np.abs(v))
    return np.asarray(np.where(v < 0, small, 1.0) / (1 + small))


def _sigmoid_slope(v: Array, r: Array) -> Array:
    """``s (1 - s)``, which falls with the distance from 0: taken where the box is nearest to it."""
    nearest = np.maximum(np.abs(v) - r, 0.0)
    return _sigmoid(nearest) * _sigmoid(-nearest) * (1 + 2.0**-48)


SMOOTH: Mapping[str, tuple[Callable[[Array], Array], Callable[[Array, Array], Any], float]] = {
    "tanh": (np.tanh, _tanh_slope, 2.0),
    "sin": (np.sin, lambda v, r: 1.0, 2.0),
    "cos": (np.cos, lambda v, r: 1.0, 2.0),
    "erf": (lambda v: np.asarray(_erf(v), dtype=np.float64), _erf_slope, 2.0),
    "atan": (np.arctan, lambda v, r: 1.0, math.pi),
    "sigmoid": (_sigmoid, _sigmoid_slope, 1.0),
}
"""Function -> its values, its greatest slope on ``[v - r, v + r]``, the diameter of its range."""


def smooth(name: str, a: Box, unit: Unit, error: float) -> Box:
    """A function of :data:`SMOOTH`."""
    f, slope, diameter = SMOOTH[name]
    value = f(a.value)
    own = a.own * slope(a.value, a.own) + OWN_FUNCTION * np.abs(value) + np.where(value == 0, 0.0, OWN_TINY)
    bound = np.where(a.bound == 0, 0.0, np.fmin(a.bound * slope(a.value, a.own + a.bound), diameter))
    return finish(
        value,
        own,
        bound,
        None,
        error,
        unit.tiny,
        name == "sigmoid" or (a.nonneg and name in ("tanh", "erf", "atan")),
        rescalings=a.rescalings,
    )


def absolute(a: Box) -> Box:
    """``|x|``: exact, and never negative."""
    return replace(a, value=np.abs(a.value), nonneg=True)


def step(name: str, a: Box) -> Box:
    """``sign`` or ``floor``: a step function is exact where no step lies in the box."""
    f = {"sign": np.sign, "floor": np.floor, "ceiling": np.ceil}[name]
    if a.index:
        return exactly(f(a.value), index=True)
    value, reach = f(a.value), a.own + a.bound
    lo, hi = f(a.value - reach), f(a.value + reach)
    still = lo == hi
    if name == "sign":
        still = still | ((a.low > 0) & (a.own < np.abs(a.value)))
    jump = np.where(still, 0.0, hi - lo)
    return finish(value, np.where(a.own == 0, 0.0, jump), jump, None, 0.0, 0.0, a.nonneg, rescalings=a.rescalings)


def general_power(a: Box, b: Box, unit: Unit, error: float) -> Box:
    """``x^y``, both computed: on a box of positive bases the corners hold the extremes; elsewhere numbers must be exact."""
    a, b = settled(a, unit), settled(b, unit)
    value = np.asarray(np.power(a.value, b.value))
    own = _corners(a.value, a.own, b.value, b.own) + OWN_FUNCTION * np.abs(value)
    bound = _corners(a.value, a.own + a.bound, b.value, b.own + b.bound)
    marks = {"rescalings": max(a.rescalings, b.rescalings)}
    return finish(value, own, bound, None, error, unit.tiny, bool(np.all(a.value - a.own - a.bound >= 0)), **marks)


def _corners(x: Array, dx: Array, y: Array, dy: Array) -> Array:
    """How far apart the values of ``x^y`` on a box are: 0 on a point, without bound where x may be 0 or less."""
    found = [np.power(np.maximum(x + p * dx, 0.0), y + q * dy) for p in (-1, 1) for q in (-1, 1)]
    spread = (reduce(np.maximum, found) - reduce(np.minimum, found)) * (1 + 2.0**-48) + 2.0**-50 * np.abs(found[0])
    return np.where((dx == 0) & (dy == 0), 0.0, np.where(x - dx > 0, spread, np.inf))


def power(a: Box, p: sp.Expr, unit: Unit, error: float) -> Box:
    """``x^p`` for a number p."""
    return integer_power(a, int(p), unit) if p.is_Integer else real_power(a, p, unit, error)
