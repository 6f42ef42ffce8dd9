"""Exact sums of integers with binary exponents: words of 24 bits on a common grid, in int64, carried when they are read."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from symattn.truth.limbs.products import BITS, joined

Integers = npt.NDArray[np.int64]
_MASK = (1 << BITS) - 1
_LOW = 31


class Words:
    """``sum over j of words[j] 2^(top - 24 (j+1))`` for an array of numbers.

    What is below the last word is cut off, which costs less than one unit of it each time.

    Parameters
    ----------
    shape
        Of the array.
    top
        Exponent of a bound: the sums stay below ``2^(top + 30)``.
    count
        Number of words.

    >>> w = Words((1,), 24, 2)
    >>> w.add(np.array([5]), 3)
    >>> w.add(np.array([-1]), -2)
    >>> w.integers(), w.unit
    ([671088384], -24)
    >>> 40 - 0.25 == 671088384 * 2.0**-24 - 0.25
    True
    """

    def __init__(self, shape: tuple[int, ...], top: int, count: int) -> None:
        self.shape, self.top = shape, top
        self.words: Integers = np.zeros((count, *shape), dtype=np.int64)
        self.added = 0

    @property
    def unit(self) -> int:
        """Exponent of the unit of the last word."""
        return self.top - BITS * len(self.words)

    def add(self, values: Integers, unit: int) -> None:
        """Add ``values 2^unit`` for integers below 2^62."""
        high = values >> _LOW
        self._put(values - (high << _LOW), unit)
        self._put(high, unit + _LOW)
        self.added += 1

    def _put(self, values: Integers, unit: int) -> None:
        """Add integers below 2^32."""
        at = -(-(self.top - unit) // BITS) - 1
        while at < 0:
            self.words = np.concatenate([np.zeros((1, *self.shape), dtype=np.int64), self.words])
            self.top, at = self.top + BITS, at + 1
        shifted = values << (unit - (self.top - BITS * (at + 1)))
        last = len(self.words) - 1
        if at > last:
            shift = BITS * (at - last)
            shifted, at = shifted >> min(shift, 63), last
        if at == 0:
            self.words[0] += shifted
        else:
            self.words[at] += shifted & _MASK
            self.words[at - 1] += shifted >> BITS

    def digits(self) -> Integers:
        """The words, balanced: each but the first is at most 2^23 in absolute value."""
        half = 1 << (BITS - 1)
        for j in range(len(self.words) - 1, 0, -1):
            carry = (self.words[j] + half) >> BITS
            self.words[j] -= carry << BITS
            self.words[j - 1] += carry
        return self.words

    def integers(self) -> list[int]:
        """The numbers as integers in the unit of the last word."""
        digits = self.digits()
        return joined(digits.reshape(len(digits), -1))

    def limbs(self) -> npt.NDArray[np.float64]:
        """The numbers as limbs relative to ``2^top``; they are below ``2^(top-1)``, which the caller knows."""
        digits = self.digits()
        scale = np.ldexp(1.0, -BITS * np.arange(1, len(digits) + 1)).reshape(-1, *(1,) * len(self.shape))
        return digits * scale
