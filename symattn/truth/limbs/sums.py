"""Exact sums of integers with binary exponents: words of 24 bits on a common grid, in int64, carried when they are read."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from symattn.truth.limbs.products import BITS, joined

Integers = npt.NDArray[np.int64]
CARRIED = 256
"""Additions to a number after which words are carried, so that none comes near 2^63: each adds less than 2^54."""


class Words:
    """``sum over j of words[j] 2^(top - 24 (j+1))`` for an array of numbers.

    What is below the last word is cut off, which costs at most one unit of it each time.

    Parameters
    ----------
    shape
        Of the array.
    top
        Exponent of a bound of the sums; it rises, by a word before the first one, where it turns out too low.
    count
        Number of words.

    >>> w = Words((1,), 24, 2)
    >>> w.add(np.array([5]), 3)
    >>> w.add(np.array([-1]), -2)
    >>> w.integers(), w.unit
    ([666894336], -24)
    >>> 666894336 * 2.0**-24
    39.75
    """

    def __init__(self, shape: tuple[int, ...], top: int, count: int) -> None:
        self.shape, self.top = shape, top
        self.words: Integers = np.zeros((count, *shape), dtype=np.int64)
        self._counts = np.zeros(shape[0] if shape else 1, dtype=np.int64)
        self._before, self._carried = 0, True

    @property
    def added(self) -> int:
        """How often a number was added to, at most."""
        return self._before + int(self._counts.max(initial=0))

    @property
    def unit(self) -> int:
        """Exponent of the unit of the last word."""
        return self.top - BITS * len(self.words)

    def add(self, values: Integers, unit: int, here: slice = slice(None)) -> None:
        """Add ``values 2^unit`` for integers below 2^54 in absolute value; they are split where a word ends.

        ``here`` says to which part of the first axis.
        """
        at = -(-(self.top - unit) // BITS) - 1
        while at < 1:
            self._rise()
            at += 1
        shift = unit - (self.top - BITS * (at + 1))
        last = len(self.words) - 1
        if at > last:
            values, at, shift = values >> min(BITS * (at - last) - shift, 63), last, 0
        if int(self._counts.max(initial=0)) >= CARRIED:
            self.digits()
        self._counts[here] += 1
        self._carried = False
        above = values >> (BITS - shift)
        self.words[at - 1, here] += above
        above <<= BITS - shift
        np.subtract(values, above, out=above)
        above <<= shift
        self.words[at, here] += above

    def _rise(self) -> None:
        """Put a word before the first one."""
        self.words = np.concatenate([np.zeros((1, *self.shape), dtype=np.int64), self.words])
        self.top, self._carried = self.top + BITS, False

    def digits(self) -> Integers:
        """The words, balanced: each but the first is at most 2^23 in absolute value."""
        if self._carried:
            return self.words
        half, self._before, self._carried = 1 << (BITS - 1), self.added, True
        self._counts[:] = 0
        for j in range(len(self.words) - 1, 0, -1):
            carry = (self.words[j] + half) >> BITS
            self.words[j] -= carry << BITS
            self.words[j - 1] += carry
        return self.words

    def integers(self) -> list[int]:
        """The numbers as integers in the unit of the last word."""
        digits = self.digits()
        return joined(digits.reshape(len(digits), -1))

    def settle(self) -> None:
        """Carry, and raise ``top`` where the sums are larger than half of ``2^top``."""
        digits = self.digits()
        while int(np.abs(digits[0]).max(initial=0)) > 1 << (BITS - 1):
            self._rise()
            digits = self.digits()

    def part(self, here: slice) -> Words:
        """The sums of a part of the first axis, settled."""
        self.settle()
        found = Words((0,), self.top, 0)
        found.words, found._before = self.words[:, here], self.added
        found.shape = found.words.shape[1:]
        return found

    def limbs(self) -> npt.NDArray[np.float64]:
        """The numbers as limbs relative to ``2^top``, which rises where they are larger than half of it."""
        self.settle()
        scale = np.ldexp(1.0, -BITS * np.arange(1, len(self.words) + 1)).reshape(-1, *(1,) * len(self.shape))
        return np.asarray(self.words * scale, dtype=np.float64)
