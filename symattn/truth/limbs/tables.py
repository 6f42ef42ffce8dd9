r"""The exponential of exact integers by digit tables: one table entry for each digit of the integer, multiplied up.

For an integer ``x >= 0`` in units of ``u``, written in digits ``x = sum of g_t 2^(p_t)``, ``exp(-c u x)`` is the product of
``exp(-c u 2^(p_t) g_t)``. The table of the first digit holds half of that (so that it is at most 1/2); those of the others
hold it less 1, whose leading limbs are 0, which shortens the products. No series and no range reduction.

*Error of an entry.* A table of ``2^w`` entries is the product of two tables of about ``2^(w/2)`` entries that are rounded from
balls (each within 1 unit, the factors are at most 1 in absolute value), made with one limb more: an entry is then within
``2 + product_error`` units of that limb, less than ``2^-20`` units of the last one that is kept (``L <= 40``). That limb, at most
half a unit, is left out, which rounds to nearest. So entries are correctly rounded but for near ties, and one that is off by
a unit is seen.

*Error of the exponential.* ``(1 + a)(1 + b) - 1 = a + b + a b`` with both factors in (0, 1] adds the errors of ``a`` and ``b``
and one product's; so with ``g`` digits ``exp(-c u x)/2`` is within ``g ENTRY_ERROR + g product_error`` units: see
:func:`exponential_error`. Cutting ``x`` below the lowest digit and above ``cap`` adds less than one unit each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import flint
import numpy as np
import numpy.typing as npt

from symattn.readings.balls import precision
from symattn.truth.limbs.products import BITS, Multiplier, from_integers, product_error, rounded

Floats = npt.NDArray[np.float64]

ENTRY_ERROR = 0.5 + 2.0**-20
"""How far an entry of a table may be off, in units."""
NARROWEST = 8
"""Bits of a digit at least: all digits below one together are then hardly larger than the largest entry of its table."""


def exponential_error(digits: int, limbs: int) -> float:
    """A bound on the error of ``exp(-c u x)/2``, in units, the cuts of ``x`` included.

    >>> round(exponential_error(6, 8), 3)
    21.5
    """
    return digits * (ENTRY_ERROR + product_error(limbs)) + 2


@dataclass(frozen=True)
class Digit:
    """A digit of the integers: ``width`` bits from bit ``shift`` on, counted from the unit of the first word.

    Parameters
    ----------
    rows
        Table of shape (2^width, limbs - zeros).
    zeros
        How many leading limbs of every entry are 0, and not kept.
    """

    shift: int
    width: int
    rows: Floats
    zeros: int


def digit_width(points: int) -> int:
    """How wide digits are for so many exponentials: wide tables pay when they are used often.

    >>> digit_width(100), digit_width(10**6)
    (8, 14)
    """
    return 8 if points < 20_000 else 11 if points < 150_000 else 13 if points < 600_000 else 14


def digits_for(c: flint.arb, bottom: int, top: int, limbs: int, width: int) -> tuple[Digit, ...]:
    """Tables for the bits ``bottom`` to ``top`` of integers whose exponential is ``exp(-c x)``, the highest first."""
    count = max(1, -(-(top - bottom) // width))
    bits = max(-(-(top - bottom) // count), NARROWEST)
    found: list[Digit] = []
    at = top
    mantissa, exponent = (int(v) for v in c.mid().man_exp())
    radius = tuple(int(v) for v in c.rad().man_exp())
    while at > bottom or not found:
        at -= bits
        rows, zeros = _table((mantissa, exponent, *radius), at, bits, limbs, not found)
        found.append(Digit(at, bits, rows, zeros))
    return tuple(found)


@lru_cache(maxsize=32)
def _table(c: tuple[int, int, int, int], shift: int, width: int, limbs: int, first: bool) -> tuple[Floats, int]:
    """``exp(-c 2^shift v)`` for all ``v`` of ``width`` bits: half of it in the ``first`` table, less 1 in the others."""
    deep = limbs + 1
    bits = BITS * deep
    high = width // 2
    low = width - high
    with precision(bits + 64 + 2 * width):
        step = (_dyadic(c[0], c[1]) + flint.arb(0, 1) * _dyadic(c[2], c[3])) * _dyadic(1, shift)
        lows = _powers(step, 1 << low)
        highs = _powers(step * (1 << low), 1 << high)
        right = from_integers([rounded(x - 1, -bits) for x in lows], deep)
        left = from_integers([rounded(x / 2 if first else x - 1, -bits) for x in highs], deep)
    table = _outer(left, right, deep, first)[:limbs]
    zeros = 0
    while zeros < limbs - 1 and not table[zeros].any():
        zeros += 1
    rows = np.ascontiguousarray(table[zeros:].T)
    rows.flags.writeable = False
    return rows, zeros


def _outer(left: Floats, right: Floats, limbs: int, first: bool) -> Floats:
    """``left (1 + right)``, less what the form of the entries leaves out, for all pairs."""
    n, m = right.shape[1], left.shape[1]
    group = max(1, min(m, 8192 // n))
    multiplier = Multiplier(limbs, group * n)
    out = np.zeros((limbs, m * n))
    for a in range(0, m, group):
        b = min(m, a + group)
        x, t = np.repeat(left[:, a:b], n, axis=1), np.tile(right, (1, b - a))
        add = ((x, 0),) if first else ((x, 0), (t, 0))
        multiplier.multiply(x, 0, t, 0, out[:, a * n : b * n], add)
    return out


def _dyadic(mantissa: int, exponent: int) -> flint.arb:
    whole = flint.arb(flint.fmpz(mantissa))
    return whole * (flint.fmpz(1) << exponent) if exponent >= 0 else whole / (flint.fmpz(1) << -exponent)


def _powers(step: flint.arb, count: int) -> list[flint.arb]:
    """``exp(-step v)`` for ``v`` from 0 on, by repeated products of balls."""
    base, out = (-step).exp(), [flint.arb(1)]
    for _ in range(count - 1):
        out.append(out[-1] * base)
    return out


class Exponentials:
    """``exp(-c x)/2`` as limbs, for exact integers ``x`` given in words.

    Parameters
    ----------
    digits
        Tables, the highest digit first.
    width
        Bits of each word after the first.
    """

    def __init__(self, digits: Sequence[Digit], width: int, multiplier: Multiplier) -> None:
        self.digits, self.width, self.multiplier = tuple(digits), width, multiplier
        limbs, most = multiplier.limbs, multiplier.most
        self._buffers = [np.empty((limbs, most)) for _ in range(3)]
        self._rows = np.empty(most * limbs)
        self._index, self._more = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)

    def evaluate(self, words: Sequence[npt.NDArray[np.int64]], out: Floats) -> None:
        """Write ``exp(-c x)/2`` of the integers in ``words`` (each of shape (numbers,)) to ``out`` of shape (limbs, numbers)."""
        size, multiply = out.shape[1], self.multiplier.multiply
        here, there, entry = (b[:, :size] for b in self._buffers)
        if len(self.digits) == 1:
            self._look_up(words, self.digits[0], True, out)
            return
        zeros = self._look_up(words, self.digits[-1], False, here)
        for digit in self.digits[-2:0:-1]:
            z = self._look_up(words, digit, False, entry)
            zeros = multiply(here, zeros, entry, z, there, ((entry, z), (here, zeros)))
            here, there = there, here
        z = self._look_up(words, self.digits[0], True, entry)
        entry[:z] = 0.0
        top = multiply(here, zeros, entry, 0, out, ((entry, 0),))
        out[:top] = 0.0

    def _look_up(self, words: Sequence[npt.NDArray[np.int64]], digit: Digit, first: bool, out: Floats) -> int:
        """The table entries of one digit of every number, and how many of their limbs are 0."""
        size = out.shape[1]
        index, width = self._index[:size], self.width
        if digit.shift >= 0:
            np.right_shift(words[0], digit.shift, out=index)
        else:
            at = -(digit.shift // width)
            offset = digit.shift + width * at
            if at < len(words):
                np.right_shift(words[at], offset, out=index)
            else:
                index[:] = 0
            if offset + digit.width > width and at <= len(words):
                more = self._more[:size]
                np.left_shift(words[at - 1], width - offset, out=more)
                np.bitwise_or(index, more, out=index)
        if not (first and digit.shift >= 0):
            np.bitwise_and(index, (1 << digit.width) - 1, out=index)
        columns = digit.rows.shape[1]
        rows = self._rows[: size * columns].reshape(size, columns)
        np.take(digit.rows, index, axis=0, out=rows, mode="clip")
        np.copyto(out[digit.zeros :], rows.T)
        if first:
            out[: digit.zeros] = 0.0
        return digit.zeros


def top_bits(cap: int) -> int:
    """Bits of integers up to ``cap``."""
    return max(1, cap.bit_length())


def lowest_bit(c: flint.arb, limbs: int) -> int:
    """The bit below which a cut of ``x`` changes ``exp(-c x)`` by less than ``2^-(F+4)``."""
    return math.floor(-(BITS * limbs + 4) - math.log2(float(abs(c).upper())) - 1e-9)
