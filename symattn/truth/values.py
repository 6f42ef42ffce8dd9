"""What an enclosure rests on: midpoints and radii as a tier left them, turned into exact numbers only where those are asked for.

A tensor of millions of elements stays what it is - float64 arrays, scaled integers, balls - and answers in two ways: ``approx``
gives float64 arrays that enclose every element, ``exact`` the fractions of some. Most questions are settled by the first.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from symattn.formats import Exact, above, floor_log2
from symattn.readings.balls import SCALE, parts
from symattn.readings.specials import Special

__all__ = ["Balls", "Floats", "Objects", "Scaled", "Values", "object_array"]

Array: TypeAlias = npt.NDArray[Any]
Doubles: TypeAlias = npt.NDArray[np.float64]
Each: TypeAlias = Callable[[Array], Array]

REACH = 1000
"""A midpoint beyond 2^1000 is told by its fraction and not by float64."""
TINY = math.ulp(0.0)
SLACK = 1 + 2.0**-50


class Values(ABC):
    """Midpoints and radii of the elements of a tensor: each exact value lies in ``[mid - rad, mid + rad]``.

    A special value (NaN, an infinity) is a midpoint with radius 0; where nothing is known the radius is infinite.
    """

    shape: tuple[int, ...]
    sharp: bool = False
    """Whether ``approx`` is what there is: fractions tell no more."""

    @property
    def size(self) -> int:
        """How many elements there are."""
        return math.prod(self.shape)

    @abstractmethod
    def approx(self) -> tuple[Doubles, Doubles]:
        """Float64 midpoints and radii that enclose what the exact ones do; an infinite radius where float64 does not reach."""

    @abstractmethod
    def magnitudes(self) -> tuple[Doubles, Doubles]:
        """The sizes of midpoints and radii, each within 2^-28 of itself; infinite or 0 where float64 does not reach."""

    @abstractmethod
    def exact(self, at: npt.NDArray[np.intp] | None = None) -> tuple[list[Exact], list[Exact]]:
        """Midpoints and radii, of all elements in the order of a flat array or of those at some flat positions."""

    @abstractmethod
    def points(self) -> npt.NDArray[np.bool_]:
        """Where the radius is 0."""

    def unknown(self) -> npt.NDArray[np.bool_]:
        """Where nothing is known: the radius is infinite."""
        return np.asarray(np.isinf(self.magnitudes()[1]) & ~self.points(), dtype=bool)

    def lost(self) -> npt.NDArray[np.bool_]:
        """Where ``exact`` gives less than is known: numbers too large or too small to be written out as fractions."""
        return np.zeros(self.shape, dtype=bool)

    @abstractmethod
    def each(self, f: Each) -> Values:
        """The values with their elements moved: ``f`` takes an array of the tensor's shape to one of the elements in it."""


class Objects(Values):
    """Object arrays of exact numbers.

    >>> one = np.array([Fraction(1, 3), -math.inf], dtype=object)
    >>> Objects(one, np.array([Fraction(0), Fraction(0)])).approx()[0]
    array([0.33333333,       -inf])
    """

    def __init__(self, mid: Array, rad: Array) -> None:
        self.mid, self.rad, self.shape = mid, rad, mid.shape

    def approx(self) -> tuple[Doubles, Doubles]:
        """See :class:`Values`."""
        return _pairs([_double(*v) for v in zip(self.mid.ravel().tolist(), self.rad.ravel().tolist(), strict=True)], self.shape)

    def magnitudes(self) -> tuple[Doubles, Doubles]:
        """See :class:`Values`."""
        mids, rads = (np.array([_size(x) for x in a.ravel().tolist()]).reshape(self.shape) for a in (self.mid, self.rad))
        return mids, rads

    def exact(self, at: npt.NDArray[np.intp] | None = None) -> tuple[list[Exact], list[Exact]]:
        """See :class:`Values`."""
        found = (self.mid.ravel(), self.rad.ravel())
        mids, rads = (a if at is None else a[at] for a in found)
        return mids.tolist(), rads.tolist()

    def points(self) -> npt.NDArray[np.bool_]:
        """See :class:`Values`."""
        return np.asarray(self.rad == 0, dtype=bool).reshape(self.shape)

    def each(self, f: Each) -> Values:
        """See :class:`Values`."""
        return Objects(f(self.mid), f(self.rad))


class Floats(Values):
    """Float64 arrays; the radius may be one for a row or for all.

    >>> half = Floats(np.array([0.5, math.nan]), np.array([2.0**-50, math.inf]))
    >>> half.exact()
    ([Fraction(1, 2), Fraction(0, 1)], [Fraction(1, 1125899906842624), inf])
    """

    sharp = True

    def __init__(self, mid: Array, rad: Array) -> None:
        self.mid, self.shape = np.asarray(mid, dtype=np.float64), np.shape(mid)
        self.rad = np.broadcast_to(np.asarray(rad, dtype=np.float64), self.shape)

    def approx(self) -> tuple[Doubles, Doubles]:
        """See :class:`Values`."""
        known = self.rad < math.inf  # not where it is NaN
        return np.where(known, self.mid, 0.0), np.where(known, self.rad, math.inf)

    def magnitudes(self) -> tuple[Doubles, Doubles]:
        """See :class:`Values`."""
        mids, rads = self.approx()
        return np.abs(mids), rads

    def exact(self, at: npt.NDArray[np.intp] | None = None) -> tuple[list[Exact], list[Exact]]:
        """See :class:`Values`."""
        mids, rads = (a.ravel() if at is None else a.ravel()[at] for a in self.approx())
        return [_fraction(m) for m in mids.tolist()], [_fraction(r) for r in rads.tolist()]

    def points(self) -> npt.NDArray[np.bool_]:
        """See :class:`Values`."""
        return np.asarray(self.rad == 0, dtype=bool)

    def each(self, f: Each) -> Values:
        """See :class:`Values`."""
        return Floats(f(self.mid), f(self.rad))


class Scaled(Values):
    """Integers times a power of two; the radius, in absolute units, may be one for a row or for all.

    Parameters
    ----------
    integers
        Array of int64 or of Python's integers.
    exponent
        The value is ``integer * 2^exponent``.
    radius
        Array or number: fractions or float64; infinite where nothing is known.

    >>> third = Scaled(np.array([5592405]), -24, Fraction(1, 2**24))
    >>> third.exact()
    ([Fraction(5592405, 16777216)], [Fraction(1, 16777216)])
    """

    def __init__(self, integers: Array, exponent: int, radius: Any) -> None:
        self.integers, self.exponent, self.shape = integers, int(exponent), integers.shape
        self.radius = np.broadcast_to(np.asarray(radius, dtype=None if isinstance(radius, np.ndarray) else object), self.shape)

    def approx(self) -> tuple[Doubles, Doubles]:
        """See :class:`Values`."""
        mids, rads = self._mids(), self._rads()
        wide = (rads + np.abs(mids) * 2.0**-52 + TINY) * SLACK
        known = np.isfinite(mids) & (wide < math.inf)
        return np.where(known, mids, 0.0), np.where(known, wide, math.inf)

    def magnitudes(self) -> tuple[Doubles, Doubles]:
        """See :class:`Values`."""
        return np.abs(self._mids()), self._rads()

    def _mids(self) -> Doubles:
        return np.array([_ldexp(k, self.exponent) for k in self.integers.ravel().tolist()], dtype=np.float64).reshape(self.shape)

    def _rads(self) -> Doubles:
        if self.radius.dtype == np.float64:
            return np.asarray(self.radius, dtype=np.float64)
        kept: dict[Exact, float] = {}  # the same few fractions for all
        found = [kept[r] if r in kept else kept.setdefault(r, above(r)) for r in self.radius.ravel().tolist()]
        return np.array(found, dtype=np.float64).reshape(self.shape)

    def exact(self, at: npt.NDArray[np.intp] | None = None) -> tuple[list[Exact], list[Exact]]:
        """See :class:`Values`."""
        whole, rads = (a.ravel() if at is None else a.ravel()[at] for a in (self.integers, self.radius))
        unit = Fraction(2) ** self.exponent
        return [k * unit for k in whole.tolist()], [_fraction(r) for r in rads.tolist()]

    def points(self) -> npt.NDArray[np.bool_]:
        """See :class:`Values`."""
        return np.asarray(self.radius == 0, dtype=bool).reshape(self.shape)

    def each(self, f: Each) -> Values:
        """See :class:`Values`."""
        return Scaled(f(self.integers), self.exponent, f(self.radius))


class Balls(Values):
    """Balls of python-flint, and special values.

    >>> import flint
    >>> third = Balls(np.array([flint.arb(1) / 3, flint.arb(2)], dtype=object))
    >>> third.points().tolist(), third.exact(np.array([1]))
    ([False, True], ([Fraction(2, 1)], [Fraction(0, 1)]))
    """

    def __init__(self, balls: Array, scale: int = SCALE) -> None:
        self.balls, self.scale, self.shape = balls, scale, balls.shape

    def approx(self) -> tuple[Doubles, Doubles]:
        """See :class:`Values`."""
        return _pairs([_narrow(x) for x in self.balls.ravel().tolist()], self.shape)

    def magnitudes(self) -> tuple[Doubles, Doubles]:
        """See :class:`Values`."""
        found = [
            (abs(x.value), 0.0) if isinstance(x, Special) else (abs(float(x.mid())), float(x.rad()))
            for x in self.balls.ravel().tolist()
        ]
        return _pairs(found, self.shape)

    def exact(self, at: npt.NDArray[np.intp] | None = None) -> tuple[list[Exact], list[Exact]]:
        """See :class:`Values`."""
        flat = self.balls.ravel()
        found = [parts(x, self.scale) for x in (flat if at is None else flat[at]).tolist()]
        return [m for m, _ in found], [r for _, r in found]

    def points(self) -> npt.NDArray[np.bool_]:
        """See :class:`Values`."""
        found = [isinstance(x, Special) or bool(x.is_exact()) for x in self.balls.ravel().tolist()]
        return np.array(found, dtype=bool).reshape(self.shape)

    def lost(self) -> npt.NDArray[np.bool_]:
        """See :class:`Values`."""
        found = np.zeros(self.size, dtype=bool)
        with np.errstate(divide="ignore", invalid="ignore"):
            far = np.flatnonzero(~(np.abs(np.log2(self.magnitudes()[0].ravel())) < 1000))
        for k in far.tolist():
            x = self.balls.ravel()[k]
            if not isinstance(x, Special) and x.is_finite() and x.mid() != 0:
                mantissa, e = map(int, x.mid().man_exp())
                found[k] = abs(e + mantissa.bit_length()) > self.scale
        return found.reshape(self.shape)

    def each(self, f: Each) -> Values:
        """See :class:`Values`."""
        return Balls(f(self.balls), self.scale)


def object_array(values: Sequence[Any], shape: tuple[int, ...] | None = None) -> Array:
    """An object array of a list of numbers."""
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out if shape is None else out.reshape(shape)


def _fraction(x: Any) -> Exact:
    if isinstance(x, float):
        return Fraction(x) if math.isfinite(x) else x
    return x if isinstance(x, Fraction) else Fraction(x)


def _ldexp(k: int, exponent: int) -> float:
    """An integer times a power of two, within one float64 spacing of it; infinite beyond 2^1000."""
    extra = max(k.bit_length() - 900, 0)
    if k.bit_length() + exponent > REACH:
        return math.inf
    return math.ldexp(float(k >> extra), exponent + extra)


def _double(m: Any, r: Any) -> tuple[float, float]:
    """An exact midpoint and radius as float64 numbers that enclose as much."""
    if isinstance(m, float):
        return (m, r) if r == 0 else (0.0, math.inf)
    if isinstance(r, float) or (m and floor_log2(m) > REACH) or (r and floor_log2(r) > REACH):
        return 0.0, math.inf
    mid = m.numerator / m.denominator
    return mid, above(r + abs(Fraction(mid) - m))


def _size(x: Any) -> float:
    """The size of an exact number as float64, infinite or 0 beyond its range."""
    if isinstance(x, float) or not x:
        return abs(float(x))
    e = floor_log2(x)
    return math.inf if e > REACH else 0.0 if e < -REACH else abs(x.numerator / x.denominator)


def _narrow(x: Any) -> tuple[float, float]:
    """A ball as float64 numbers that enclose as much: its midpoint is read to one spacing, its radius has 30 bits."""
    if isinstance(x, Special):
        return x.value, 0.0
    mid, rad = float(x.mid()), float(x.rad())
    if not (math.isfinite(mid) and math.isfinite(rad)):
        return 0.0, math.inf
    exact = x.is_exact() and abs(mid) < 1e300 and x == mid
    return mid, 0.0 if exact else (rad + abs(mid) * 2.0**-52 + TINY) * SLACK + TINY


def _pairs(found: list[tuple[float, float]], shape: tuple[int, ...]) -> tuple[Doubles, Doubles]:
    mids, rads = (np.array(v, dtype=np.float64).reshape(shape) for v in (zip(*found, strict=True) if found else ((), ())))
    return mids, rads
