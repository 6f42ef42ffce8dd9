r"""Scores of a block of rows as exact integers in words, their row maxima, and their exponentials as limbs.

A score is ``c y`` with a real number ``c > 0`` and an exact ``y``, the sum of a dot product of sliced matrices, and of given
numbers times ``ratio`` (their coefficient over ``c``). The words of ``N = -y`` are ``N = sum over k of word[k] 2^(top - w k)``
with ``0 <= word[k] < 2^w`` for ``k > 0``. With a lower bound ``mu`` of ``N`` over the kept keys of a row that is near to the
least one, ``x = N - mu >= 0``, and ``exp(score) = exp(-c mu) exp(-c x)``; ``-c mu`` is the *shift* of the row, and stands for its
maximum. ``mu`` is taken over as many words as it needs for ``c x < 2^-4`` at the largest score, so ``exp(-c x) >= 0.93`` there.

*Error.* Dot products are exact. A ratio is rounded so that the exponent moves by less than ``2^-(F+5)``, and words beyond the
precision are dropped, which moves it by less than ``2^-(F+5)`` too; both are in the two units that
:func:`symattn.truth.limbs.tables.exponential_error` has for the cuts of ``x``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sp

from symattn.errors import UnfitError
from symattn.readings.specials import NEGATIVE, Ball
from symattn.truth.limbs.data import Batch, Bools, Data
from symattn.truth.limbs.forms import Dot, Plain, Score
from symattn.truth.limbs.products import BITS, CHUNK, Multiplier, rounded
from symattn.truth.limbs.rows import Rows, dyadic
from symattn.truth.limbs.slices import EXACT, WIDEST, Floats, Sliced, extent, sliced, width_for
from symattn.truth.limbs.tables import Exponentials, digit_width, digits_for, lowest_bit, top_bits

Integers = npt.NDArray[np.int64]
FAR = 1 << 62
"""A word that no kept score has."""
SUM = 53
"""Bits of an integer that is added to a word: words are dropped so many bits below what the precision needs."""
FARTHEST = 64
"""Binary exponent that what is added to a score may have: its ratio, a ball, then still has more bits than are needed."""
WORDS = 60
"""Words that a score may take."""


class Dots:
    """The exact products of two matrices, slice by slice: ``sum over a, b of left[a] right[b]``, each exact in float64."""

    def __init__(self, dot: Dot, data: Data, batch: Batch, sign: int = 1) -> None:
        channels = data.axes.channels(dot.left)
        left, right = data.row_matrix(dot.left, batch, channels), data.key_matrix(dot.right, batch, channels)
        room = math.ceil(math.log2(max(left.shape[1], 1)))
        widest = min(WIDEST, (EXACT - 2 - room) // 2 + 1)
        extents = [data.extent_of(x) for x in (dot.left, dot.right)]
        self.width = max(width_for(max(1, top - bottom), widest) for top, bottom in extents)
        self.left, right_ = (sliced(m, self.width, e) for m, e in zip((sign * left, right), extents, strict=True))
        self.right = Sliced(tuple(np.ascontiguousarray(d.T) for d in right_.digits), right_.width, right_.exponent)
        self.bound = _norms(left) * float(_norms(right).max(initial=0.0))
        self.count = self.left.count + self.right.count - 1
        if self.count > WORDS:
            raise UnfitError("the inputs of a dot product spread over too many binary exponents")

    @property
    def top(self) -> int:
        """The exponent of the unit of the first products."""
        return self.left.exponent + self.right.exponent - 2 * self.width

    def products(self, rows: slice, keys: slice) -> list[tuple[int, Floats]]:
        """``(k, integers)`` in units of ``2^(top - width k)``: one for each ``k`` where few slices meet, else more."""
        out: list[tuple[int, Floats]] = []
        few = min(self.left.count, self.right.count) <= 4
        for a, left in enumerate(self.left.digits):
            for b, right in enumerate(self.right.digits):
                g = left[rows] @ right[:, keys]
                if few and a and b < self.right.count - 1:
                    known = out[a + b][1]
                    np.add(known, g, out=known)
                else:
                    out.append((a + b, g))
        return out


def _norms(x: Floats) -> Floats:
    """Bounds on the Euclidean norms of the rows of a matrix."""
    largest = np.abs(x).max(axis=1, initial=0.0)
    scale = np.where(largest > 0, largest, 1.0)
    return np.asarray(np.sqrt(np.square(x / scale[:, None]).sum(axis=1)) * scale * (1 + 2.0**-30))


class Scores:
    """One score of a program in one batch, ready to be evaluated block by block.

    Parameters
    ----------
    score, data, batch
        What, of which inputs, in which batch.
    coefficients
        The coefficients that all rows share, as balls, for the first part; those of the others are asked of the rows.
    multiplier
        Of the precision in use.
    """

    def __init__(self, score: Score, data: Data, batch: Batch, rows: Rows, multiplier: Multiplier) -> None:
        self.score, self.data, self.batch = score, data, batch
        self.multiplier, self.limbs = multiplier, multiplier.limbs
        first = next((k for k, (a, c) in enumerate(score.parts) if isinstance(a, Dot) and data.axes.level(c) == "batch"), None)
        if first is None:
            raise UnfitError("a score has no dot product whose coefficient all rows share")
        atom, coefficient = score.parts[first]
        c = rows.evaluate(coefficient)[0]
        if not isinstance(c, Ball) or not c.is_finite() or c.contains(0):
            raise UnfitError("the coefficient of a dot product is 0 or has no value")
        self.sign = 1 if c > 0 else -1
        self.c = abs(c)
        assert isinstance(atom, Dot)
        self.dots = Dots(atom, data, batch, -self.sign)
        self.width = self.dots.width
        self.others = [(a, e) for k, (a, e) in enumerate(score.parts) if k != first and isinstance(a, Plain)]
        if len(self.others) + 1 < len(score.parts):
            raise UnfitError("a score is the sum of two dot products")
        self.log_c = math.log2(float(self.c.upper()))
        self._layout()
        self._tables()

    def _layout(self) -> None:
        """The unit of the first word, and where the numbers that are added to the dot product lie."""
        self.top = self.dots.top
        self.reach = float(self.dots.bound.max(initial=0.0))
        self.plain: list[tuple[Plain, Any, tuple[int, int] | None]] = []
        for atom, coefficient in self.others:
            self.plain.append((atom, coefficient, self._extent(atom)))

    def _extent(self, atom: Plain) -> tuple[int, int] | None:
        """The extent of a given tensor; that of positions is looked at block by block."""
        if not isinstance(atom.expr, sp.Indexed):
            return None
        values, _ = self.data.at_batch(atom.expr, self.batch, finite=False)
        return extent(values[np.isfinite(values)])

    def _tables(self) -> None:
        """Digit tables for ``0 <= x <= cap``; beyond, the exponential is below ``2^-(F+2)``."""
        unit = self.log_c + self.top
        needed = math.log2((BITS * self.limbs + 2) * math.log(2)) - unit
        reach = math.log2(max(2 * self.reach, 2.0**-900)) - self.top + 2 if not self.plain else 61
        bits = math.ceil(min(needed, reach, 61))
        self.cap = max(1, 1 << max(bits, 0)) if bits <= 61 else FAR
        scaled = self.c * dyadic(self.top)
        points = len(self.data.batches) * self.data.rows * self.data.keys
        lowest = lowest_bit(scaled, self.limbs)
        self.words = -(-max(0, SUM + 4 - lowest) // self.width) + 1
        if not self.plain:
            self.words = min(self.words, self.dots.count)
            lowest = max(lowest, -self.width * (self.dots.count - 1))
        if self.words > WORDS:
            raise UnfitError("the scores spread over too many binary exponents")
        width = min(digit_width(points), self.width)
        found = digits_for(scaled, min(lowest, top_bits(self.cap) - 1), top_bits(self.cap), self.limbs, width)
        self.digits = len(found)
        self.exponentials = Exponentials(found, self.width, self.multiplier)
        self.unit = scaled

    def block(self, rows: Rows, here: slice, keys: slice, keep: Bools | None) -> tuple[list[Integers], list[Any]]:
        """The words of ``x`` for a block, and the shift of every row (-oo where no key is kept)."""
        words = None
        while words is None:
            words = self._numbers(rows, here, keys, keep)
        self._carry(words)
        empty = np.zeros(here.stop - here.start, dtype=bool)
        if keep is not None:
            words[0][~keep] = FAR
            empty = np.asarray(~keep.any(axis=1))
        least = self._subtract(words, keep)
        np.minimum(words[0], self.cap, out=words[0])
        one = [self.unit]
        for _ in range(len(least) - 1):
            one.append(one[-1] / (1 << self.width))
        shifts: list[Any] = []
        for at, row in enumerate(zip(*(v.tolist() for v in least), strict=True)):
            total = Ball(0)
            for unit, v in zip(one, row, strict=True):
                total = total - unit * v
            shifts.append(NEGATIVE if empty[at] else total)
        return words, shifts

    def _numbers(self, rows: Rows, here: slice, keys: slice, keep: Bools | None) -> list[Integers] | None:
        """The words of ``N``, not yet carried; None where the first word had to be moved to hold them."""
        shape = (here.stop - here.start, keys.stop - keys.start)
        words: list[Integers | None] = [None] * self.words
        for k, g in self.dots.products(here, keys):
            at = k + (self.top - self.dots.top) // self.width
            if at < self.words:
                _into(words, at, g)
        for atom, coefficient, within in self.plain:
            above = self._add_plain(words, atom, rows.evaluate(coefficient), within, here, keys, keep)
            if above:
                self.top += self.width * above
                self._tables()
                return None
        return [np.zeros(shape, dtype=np.int64) if w is None else w for w in words]

    def _add_plain(
        self,
        words: list[Integers | None],
        atom: Plain,
        coefficients: Sequence[Any],
        within: tuple[int, int] | None,
        here: slice,
        keys: slice,
        keep: Bools | None,
    ) -> int:
        """Add ``-ratio`` times given numbers; the number of words that are missing before the first one, if any."""
        values = self.data.plain(atom, self.batch, here, keys, keep)
        parts = sliced(values, self.width, within)
        ratios = [-self.sign * v / self.c for v in coefficients]
        digits, unit = self._ratio_digits(ratios, parts)
        for a, part in enumerate(parts.digits):
            for b, digit in enumerate(digits):
                at = (self.top - (parts.unit(a) + unit - self.width * b)) // self.width
                if at < self.words and digit.any():
                    if at < 0:
                        return -at
                    _into(words, at, part * digit[:, None])
        return 0

    def _ratio_digits(self, ratios: Sequence[Any], parts: Sliced) -> tuple[list[Floats], int]:
        """Ratios as balanced digits: ``sum over b of digits[b] 2^(unit - width b)``, on a grid that fits the words."""
        largest = max((float(abs(r).upper()) for r in ratios), default=0.0)
        if math.log2(max(largest, 2.0**-900)) + parts.exponent + self.log_c > FARTHEST:
            raise UnfitError("a number that is added to a score is too large")
        exponent = math.frexp(largest)[1] + 1 - self.width if largest else 0
        exponent += (self.top - parts.unit(0) - exponent) % self.width
        lowest = -(BITS * self.limbs + 8) - math.ceil(self.log_c) - parts.exponent
        count = max(1, -(-(exponent - lowest) // self.width) + 1)
        last = exponent - self.width * (count - 1)
        half, mask = 1 << (self.width - 1), (1 << self.width) - 1
        table = np.zeros((count, len(ratios)))
        for k, v in enumerate(rounded(r, last) for r in ratios):
            for b in range(count - 1, 0, -1):
                r = v & mask
                r -= (mask + 1) if r >= half else 0
                table[b, k], v = r, (v - r) >> self.width
            table[0, k] = v
        return list(table), exponent

    def _carry(self, words: list[Integers]) -> None:
        mask = (1 << self.width) - 1
        for k in range(len(words) - 1, 0, -1):
            words[k - 1] += words[k] >> self.width
            words[k] &= mask

    def _subtract(self, words: list[Integers], keep: Bools | None) -> list[Integers]:
        """Take the least number of every row off, by as many words as it takes to have it near enough; give those words."""
        least = [words[0].min(axis=1)]
        near: Bools | None = None
        unit = self.log_c + self.top
        while unit > -5 and len(least) < len(words):
            k = len(least)
            same = np.asarray(words[k - 1] == least[-1][:, None])
            near = same if near is None else near & same
            least.append(np.where(near, words[k], FAR).min(axis=1))
            unit -= self.width
        least[0] = np.where(least[0] == FAR, 0, least[0])
        for k, v in enumerate(least):
            words[k] -= v[:, None]
        if len(least) > 1:
            self._carry(words)
        return least

    def exponentials_into(self, words: Sequence[Integers], keep: Bools | None, out: Floats) -> None:
        """``exp(-c x)/2`` of a block into ``out`` of shape (rows, limbs, keys); 0 where not kept.

        A few rows at a time, and of these the range of keys that is kept in one of them.
        """
        count, length = words[0].shape
        step = max(1, CHUNK // length)
        buffer = np.empty((self.limbs, min(CHUNK, count * length)))
        for r in range(0, count, step):
            s = min(count, r + step)
            first, last = (0, length) if keep is None else _range_of(keep[r:s])
            out[r:s, :, :first] = 0.0
            out[r:s, :, last:] = 0.0
            for a in range(first, last, CHUNK):
                b = min(last, a + CHUNK)
                here = buffer[:, : (s - r) * (b - a)]
                self.exponentials.evaluate([w[r:s, a:b].reshape(-1) for w in words], here)
                target = out[r:s, :, a:b]
                np.copyto(target.transpose(1, 0, 2), here.reshape(self.limbs, s - r, b - a))
                if keep is not None and not keep[r:s, a:b].all():
                    np.multiply(target, keep[r:s, None, a:b], out=target)


def _range_of(keep: Bools) -> tuple[int, int]:
    """The range of keys outside which no row keeps one.

    >>> _range_of(np.array([[False, True, False, False], [False, False, True, False]])), _range_of(np.zeros((2, 3), bool))
    ((1, 3), (0, 0))
    """
    some = np.flatnonzero(keep.any(axis=0))
    return (int(some[0]), int(some[-1]) + 1) if some.size else (0, 0)


def _into(words: list[Integers | None], at: int, values: Floats) -> None:
    """Add integers to a word."""
    whole = values.astype(np.int64)
    known = words[at]
    if known is None:
        words[at] = whole
    else:
        np.add(known, whole, out=known)
