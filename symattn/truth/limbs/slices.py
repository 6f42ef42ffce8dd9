"""Exact dyadic arrays cut into integer slices, so that their matrix products in float64 are exact.

An array ``A`` is held as ``A = sum over b of digits[b] 2^(exponent - width (b+1))`` with integers ``|digits[b]| <= 2^(width-1)``
in float64. A product of two slices summed over ``r`` terms is an integer of at most ``r 2^(w1-1) 2^(w2-1)``; while that is
at most 2^53 every partial sum is exact in whatever order (and with or without fused operations) the BLAS takes them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

EXACT = 53
"""Bits of an integer that float64 holds exactly."""
CHUNK = 1 << 14
"""Numbers that are looked at at a time: what is in between stays in the cache."""
NARROWEST, WIDEST = 16, 24
"""Widths of a slice: below, the extraction of digits would span three words; above, a product leaves no room for a sum."""


@dataclass(frozen=True)
class Sliced:
    """``sum over b of digits[b] 2^(exponent - width (b+1))``.

    Parameters
    ----------
    digits
        Arrays of one shape, float64 that are integers of absolute value at most ``2^(width-1)``.
    width, exponent
        Bits of a slice, and the binary exponent of the number that has a one before the first slice.
    """

    digits: tuple[Floats, ...]
    width: int
    exponent: int

    @property
    def count(self) -> int:
        """Number of slices."""
        return len(self.digits)

    def unit(self, b: int) -> int:
        """The exponent of the unit of a slice."""
        return self.exponent - self.width * (b + 1)


def doubles(x: object) -> Floats | None:
    """An array of exact numbers as float64 where float64 holds every one of them, and all are finite; else None.

    >>> doubles(np.array([Fraction(1, 8), 3], dtype=object)), doubles([Fraction(1, 3)])
    (array([0.125, 3.   ]), None)
    """
    a = np.asarray(x)
    if a.dtype.kind in "OUS" or a.dtype == np.longdouble != np.float64:
        return _from_exact(a)
    with np.errstate(all="ignore"):
        out = np.asarray(a, dtype=np.float64)
    if a.dtype.kind in "iu" and a.size and int(max(abs(int(a.min())), abs(int(a.max())))) > 2**EXACT:
        return None
    return out if bool(np.isfinite(out).all()) else None


def _from_exact(a: Array) -> Floats | None:
    from symattn.numbers import exact_array

    values = exact_array(a).ravel().tolist()
    if not all(isinstance(v, Fraction) for v in values):
        return None
    try:
        floats = [float(v) for v in values]
    except OverflowError:
        return None
    if any(Fraction(f) != v for f, v in zip(floats, values, strict=True)):
        return None
    return np.array(floats, dtype=np.float64).reshape(a.shape)


def extent(x: Floats) -> tuple[int, int]:
    """``(top, bottom)``: every number is a multiple of ``2^bottom`` and at most ``2^(top-1)`` in absolute value.

    >>> extent(np.array([0.75, -6.0]))
    (4, -2)
    """
    flat = x.ravel()
    found = [e for e in (_extent(flat[k : k + CHUNK]) for k in range(0, flat.size, CHUNK)) if e is not None]
    return (max(top for top, _ in found), min(bottom for _, bottom in found)) if found else (1, 0)


def _extent(x: Floats) -> tuple[int, int] | None:
    nonzero = x[x != 0.0]
    if nonzero.size == 0:
        return None
    bits = nonzero.view(np.int64)
    exponent = (bits >> 52) & 0x7FF
    if not exponent.all():  # a subnormal number: its significand has leading zeros
        significand, exponent = np.frexp(nonzero)
        whole, exponent = np.ldexp(significand, EXACT).astype(np.int64), exponent.astype(np.int64) + 1022
    else:
        whole = (bits & ((1 << 52) - 1)) | (1 << 52)
    lowest = ((whole & -whole).astype(np.float64).view(np.int64) >> 52) - 1023
    return int(exponent.max()) - 1021, int((exponent + lowest).min()) - 1075


def bits_of(x: Floats) -> int:
    """How many bits the common grid of an array takes."""
    top, bottom = extent(x)
    return max(1, top - bottom)


def width_for(bits: int, widest: int) -> int:
    """The width of equal slices of a grid of so many bits, as few as can be.

    >>> width_for(42, 24), width_for(53, 22), width_for(3, 24)
    (21, 18, 16)
    """
    count = -(-bits // widest)
    return max(NARROWEST, -(-bits // count))


def sliced(x: Floats, width: int, within: tuple[int, int] | None = None) -> Sliced:
    """An array cut into slices of a width: exactly, each by rounding what is left to nearest. ``within``: its :func:`extent`.

    >>> s = sliced(np.array([0.75, -(2.0**-20)]), 16)
    >>> [d.tolist() for d in s.digits], s.exponent
    ([[24576.0, 0.0], [0.0, -2048.0]], 1)
    """
    top, bottom = within or extent(x)
    count = max(1, -(-(top - bottom) // width))
    rest = _scaled(x, -top)
    digits = []
    for b in range(count - 1):
        magic = math.ldexp(1.5, EXACT - 1 - width * (b + 1))
        part = (rest + magic) - magic
        rest = rest - part
        digits.append(_scaled(part, width * (b + 1)))
    digits.append(_scaled(rest, width * count))
    return Sliced(tuple(digits), width, top)


def _scaled(x: Floats, exponent: int) -> Floats:
    """``x 2^exponent``; the callers see to it that no bit is lost."""
    return np.ldexp(x, exponent)


def inner_length(*widths: int) -> int:
    """How many products of two slices may be summed exactly: ``2^53`` over the largest product.

    >>> inner_length(24, 21)
    1024
    """
    return int(2 ** (EXACT - sum(w - 1 for w in widths)))
