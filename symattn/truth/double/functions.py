"""Functions of numbers with an error: how far values lie apart when arguments do, and what the library's own function errs by.

Two libraries give the values. :data:`NUMPY` takes NumPy's functions under an assumption that is stated with the result;
:data:`OWNED` takes the exponential of :mod:`.exponential`, with its proof, what can be made of that, and balls for the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import flint
import numpy as np
import sympy as sp

from symattn.readings.balls import precision
from symattn.truth.double import exponential
from symattn.truth.double.approx import FLOOR, FULL, SAFE, Approx, Array, U, exactly, is_zero, outward, rows
from symattn.truth.double.arithmetic import Room, add, checked, multiply

__all__ = ["NUMPY", "OWNED", "Library", "absolute", "exp", "extremum", "logarithm", "power", "reciprocal", "smooth", "step"]

ULPS = 4
"""What NumPy's float64 functions are assumed to err by, in units of the last place; it is what their authors state."""
ASSUMPTION = f"NumPy's float64 functions ({{}}) err by at most {ULPS} ulp"
TINY = 2.0**-1070
"""Beyond the relative error: what a function may lose where its value is subnormal."""
_erf = np.frompyfunc(math.erf, 1, 1)


@dataclass(frozen=True)
class Library:
    """Where values of functions come from.

    Parameters
    ----------
    functions
        Name -> values of an array.
    rel, abs
        How far a value may be from the exact one at its argument, relative and absolute, by name; ``""`` for all others.
    proven
        Whether that is a theorem.
    """

    functions: Mapping[str, Callable[..., Array]]
    rel: Mapping[str, float]
    abs: Mapping[str, float]
    proven: bool

    def error(self, name: str) -> tuple[float, float]:
        """The relative and the absolute error of a function."""
        return self.rel.get(name, self.rel[""]), self.abs.get(name, self.abs[""])

    def assumption(self, used: set[str]) -> str | None:
        """What is assumed of the functions that were used; None for nothing."""
        return None if self.proven or not used else ASSUMPTION.format(", ".join(sorted(used)))


def _by_balls(name: str, bits: int = 90) -> Callable[[Array], Array]:
    """The values of a function of python-flint, each rounded from a ball of so many bits (NaN where it is not finite)."""

    def f(v: Array) -> Array:
        with precision(bits):
            flat = [_nearest(getattr(flint.arb(x), name)()) if math.isfinite(x) else x for x in v.ravel().tolist()]
        return np.array(flat, dtype=np.float64).reshape(v.shape)

    return f


def _nearest(x: Any) -> float:
    """A float64 next to a ball that knows its value to more than 60 bits; NaN where it does not."""
    if not x.is_finite():
        return math.nan
    return float(x.mid()) if x.is_exact() or x.rel_accuracy_bits() > 60 else math.nan


def _sigmoid(v: Array) -> Array:
    small = np.exp(-np.abs(v))
    return np.asarray(np.where(v < 0, small, 1.0) / (1 + small))


NUMPY = Library(
    {
        **{n: getattr(np, n) for n in ("exp", "log", "tanh", "sinh", "cosh", "sin", "cos")},
        "atan": np.arctan,
        "erf": lambda v: np.asarray(_erf(v), dtype=np.float64),
    },
    {"": 2 * ULPS * U},
    {"": TINY, "sin": 2 * ULPS * U, "cos": 2 * ULPS * U},
    False,
)
"""NumPy's functions; of sin and cos only ulps of 1 are assumed."""

OWNED = Library(
    {"exp": exponential.exp, **{n: _by_balls(n) for n in ("log", "tanh", "sinh", "cosh", "sin", "cos", "atan", "erf")}},
    {"": 2 * U, "exp": exponential.RELATIVE},
    {"": TINY, "exp": exponential.ABSOLUTE},
    True,
)
"""Functions with a proof: :mod:`.exponential`, and balls, rounded."""


def expm1_above(d: Any) -> Any:
    """At least ``e^d - 1`` for d >= 0; infinite from 600 on.

    Up to 1, ``d (1 + d/2 + d^2/4) >= e^d - 1``; beyond, ``2^(1.5 d)`` by NumPy's exp2, twice to cover whatever that errs by.
    """
    d = np.asarray(d, dtype=np.float64)
    small = d * (1 + d * (0.5 + d * 0.25)) * (1 + 2.0**-40)
    if np.max(d, initial=0.0) <= 1:
        return small
    with np.errstate(all="ignore"):
        return np.where(d <= 1, small, np.where(d < 600, 2 * np.exp2(1.5 * np.minimum(d, 600)), np.inf))


def exp(a: Approx, library: Library, room: Room | None = None) -> Approx:
    """``e^x``: a distance d of the argument is a factor between ``e^-d`` and ``e^d``.

    Values found of arguments up to ``most`` are at most ``e^most`` with the error of a value, and so is the value found of
    ``most`` at least: two errors bound them without a look at them.
    """
    d = a.error()
    top = float(np.max(a.size(), initial=0.0))
    rel, tiny = library.error("exp")
    grown = 0.0 if is_zero(d) else expm1_above(d)
    lost: Array | None = np.isinf(a.value) if a.special else None
    most = None if a.most is None else library.functions["exp"](a.most)
    made = library.functions["exp"](a.value, out=a.value if a.temporary else None if room is None else room(a.value.shape))
    some = (grown + 1.0) * (tiny + FLOOR) if top > 690 or a.special else 0.0
    bound = None
    if made.size > FULL and not a.special:
        bound = np.array(rows(made)) if most is None else most * (1 + 2.0**-40) + FLOOR
    out = Approx(made, (grown + rel) * (1 + 2.0**-40), some, (), True, False, a.special, True, bound)
    return checked(out, lost)


def relative(a: Approx) -> Any:
    """At least ``|t - v| / |v|``; not below 1 where t may be 0 or of the other sign."""
    if is_zero(a.abs) and not a.weights:
        return a.rel
    with np.errstate(all="ignore"):
        out = a.full() / np.abs(a.value) * (1 + 2.0**-40) + FLOOR
    return rows(np.where(np.isnan(out), np.inf, out)) if a.large else np.where(np.isnan(out), np.inf, out)


def reciprocal(a: Approx) -> Approx:
    """``1/x``: a relative error r becomes ``r / (1 - r)``."""
    r = relative(a)
    with np.errstate(all="ignore"):
        value = np.divide(1.0, a.value)
        grown = np.where(np.less(r, 1), r / (1 - np.minimum(r, 1)), np.inf) if not is_zero(r) else 0.0
    lost = ~np.isfinite(a.value) if a.special else None
    value = np.where(a.value == 0, np.nan, value) if not np.all(a.value) else value
    special = a.special or not bool(np.isfinite(np.max(np.abs(value), initial=0.0)))
    normal = not special and bool(np.min(np.abs(value), initial=np.inf) > SAFE)
    out = Approx(value, grown * (1 + 2.0**-40) + U, 0.0 if normal else FLOOR, (), a.nonneg, False, special, True)
    return checked(out, lost)


def logarithm(a: Approx, library: Library) -> Approx:
    """``log x``, -oo at an exact 0: a relative error r moves it by at most ``r / (1 - r)``."""
    r = relative(a)
    with np.errstate(all="ignore"):
        value = library.functions["log"](np.where(a.value > 0, a.value, 1.0))
        moved = np.where(np.less(r, 1), r / (1 - np.minimum(r, 1)), np.inf) if not is_zero(r) else 0.0
    zero = (a.value == 0) & (a.full() == 0)
    if zero.any() and not is_zero(moved):
        moved = np.where(zero, 0.0, moved) if not a.large else moved
    value = np.where(a.value > 0, value, np.where(zero, -np.inf, np.nan))
    value = np.where(np.isposinf(a.value), np.inf, value) if a.special else value
    rel, tiny = library.error("log")
    special = not bool(np.isfinite(value).all())
    return Approx(value, rel * (1 + 2.0**-40), outward(moved + tiny), (), False, False, special, True)


def power(a: Approx, p: sp.Rational, library: Library) -> Approx:
    """``x^p`` for a number p: by multiplication where it is an integer, by square roots where it is half of one."""
    if p.is_Integer:
        return whole_power(a, int(p))
    if p.is_Rational and p.q == 2:
        root = square_root(a)
        return whole_power(root, int(p.p))
    logs = logarithm(a, library)
    return exp(multiply(logs, number(p, a.value.ndim)), library)


def number(p: sp.Expr, ndim: int) -> Approx:
    """A number, rounded once."""
    value = float(p)
    exact = p.is_Rational and sp.Rational(value) == p
    return exactly(np.full((1,) * ndim, value)) if exact else Approx(np.full((1,) * ndim, value), 2 * U, nonneg=value >= 0)


def whole_power(a: Approx, p: int) -> Approx:
    """``x^p`` for an integer p."""
    if p < 0:
        return reciprocal(whole_power(a, -p))
    base, out = a.changed(temporary=False), exactly(1.0, a.value.ndim)
    even = p % 2 == 0
    while p:
        if p & 1:
            out = base if out.value.size == 1 and out.exact and out.value.flat[0] == 1 else multiply(out, base)
        p >>= 1
        base = multiply(base, base) if p else base
        base = base.changed(temporary=False)
    return out.changed(nonneg=True, temporary=False) if even else out.changed(temporary=False)


def square_root(a: Approx) -> Approx:
    """``sqrt x``, correctly rounded: ``|sqrt t - sqrt v| <= |t - v| / sqrt v``, and at most ``sqrt |t - v|``."""
    with np.errstate(all="ignore"):
        value = np.sqrt(a.value)
        if is_zero(a.abs) and not a.weights:
            return Approx(value, a.rel + 2 * U, 0.0, (), True, False, a.special or bool(np.isnan(value).any()), True)
        moved = a.full()
        error = np.fmin(np.where(value > 0, moved / value, np.inf), np.sqrt(moved))
    fine = a.nonneg | (a.value > moved) | (moved == 0)
    value = np.where(fine, value, np.nan)
    error = np.where(np.isnan(error), np.inf, error)
    special = a.special or not bool(np.isfinite(value).all())
    return Approx(value, U, outward(rows(error) if a.large else error), (), True, False, special, True)


SLOPES: Mapping[str, float] = {"tanh": 1.0, "sin": 1.0, "cos": 1.0, "erf": 1.1283791671, "atan": 1.0, "sigmoid": 0.25}
"""Functions whose slope is at most this everywhere."""
RANGES: Mapping[str, float] = {"tanh": 1.0, "sin": 1.0, "cos": 1.0, "erf": 1.0, "atan": 1.5707963268, "sigmoid": 1.0}


def smooth(name: str, a: Approx, library: Library) -> Approx:
    """A function of :data:`SLOPES`, or sinh or cosh, whose slope is bounded where the argument is."""
    if library.proven and name in ("tanh", "sigmoid") and a.large:
        return _by_exp(name, a, library)
    if name == "sigmoid":
        return _by_exp(name, a, library)
    error = a.error()
    value = library.functions[name](a.value)
    rel, tiny = library.error(name)
    nonneg = name in ("cosh",) or (a.nonneg and name in ("tanh", "erf", "atan", "sinh"))
    if name in SLOPES:
        moved: Any = SLOPES[name] * error if not is_zero(error) else 0.0
        bound: Any = np.full((1,) * value.ndim, 2 * RANGES[name]) if value.size > FULL else None
    else:
        with np.errstate(all="ignore"):
            moved = error * np.exp2(1.5 * (a.size() + error)) if not is_zero(error) else 0.0
        bound = None
    special = a.special or not bool(np.isfinite(np.max(np.abs(value), initial=0.0)))
    value = np.where(np.isfinite(a.value), value, np.nan) if a.special else value
    return checked(Approx(value, rel * (1 + 2.0**-40), outward(moved + tiny), (), nonneg, False, special, True, bound))


def _by_exp(name: str, a: Approx, library: Library) -> Approx:
    """Tanh and sigmoid by the exponential of a number that is not positive: ``u = e^-|x|``, ``1/(1 + u)`` or ``u/(1 + u)``."""
    small = np.abs(a.value) * (-2.0 if name == "tanh" else -1.0)
    one = exactly(1.0, a.value.ndim)
    u = exp(exactly(small), library).changed(temporary=False)
    below = reciprocal(add(one, u))
    if name == "sigmoid":
        positive = below.changed(temporary=False)
        value = np.where(a.value < 0, (u.value * positive.value), positive.value)
        made = Approx(
            value,
            np.max(u.rel) + np.max(positive.rel) * 2 + 2 * U,
            np.max(u.plain().abs) + np.max(positive.plain().abs),
            (),
            True,
        )
        slope = 0.25
    else:
        part = multiply(add(one, u, minus=True), below)
        made = part.changed(value=np.where(a.value < 0, -part.value, part.value), nonneg=a.nonneg)
        slope = 1.0
    error: Any = made.plain().abs
    moved = slope * a.error() if not a.exact else 0.0
    special = a.special
    value = np.where(np.isfinite(a.value), made.value, np.nan) if special else made.value
    bound = np.full((1,) * value.ndim, 2.0) if value.size > FULL else None
    return Approx(value, made.rel, outward(error + moved + FLOOR), (), made.nonneg, False, special, True, bound)


def absolute(a: Approx) -> Approx:
    """``|x|``: exact."""
    return a.changed(value=np.abs(a.value), nonneg=True, temporary=True)


def extremum(parts: list[Approx], most: bool) -> Approx:
    """The largest or smallest of several: it moves by at most the largest error."""
    f = np.maximum if most else np.minimum
    out = parts[0]
    for b in parts[1:]:
        value = f(out.value, b.value)
        large = bool(value.size > FULL)
        error: Any = 0.0
        if not (out.exact and b.exact):
            error = np.maximum(out.error(large), b.error(large))
        nonneg = (out.nonneg or b.nonneg) if most else (out.nonneg and b.nonneg)
        special = out.special or b.special
        whole = out.whole and b.whole
        out = Approx(value, 0.0, error, (), nonneg, whole, special and not np.isfinite(value).all(), True)
    return out


def step(name: str, a: Approx) -> Approx:
    """sign, floor or ceiling: exact where no step lies within the error, not known elsewhere."""
    f = {"sign": np.sign, "floor": np.floor, "ceiling": np.ceil}[name]
    value = f(a.value)
    if not a.exact:
        reach = a.full() * (1 + 2.0**-40)
        with np.errstate(all="ignore"):
            low, high = np.nextafter(a.value - reach, -np.inf), np.nextafter(a.value + reach, np.inf)
            sure = (f(low) == f(high)) | (reach == 0)
        value = np.where(sure, value, np.nan)
    value = np.where(np.isfinite(a.value), value, np.nan) if a.special and name != "sign" else value
    special = not bool(np.isfinite(value).all())
    whole = not special and bool(np.max(np.abs(value), initial=0.0) <= 2.0**53)
    return Approx(value, 0.0, 0.0, (), a.nonneg, whole, special, True)
