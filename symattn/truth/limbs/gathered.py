"""Sums over keys, and sums over rows, of limbs times given matrices: exact matrix products, flushed before they could round."""

from __future__ import annotations

import math

import numpy as np

from symattn.truth.limbs.products import BITS, scales
from symattn.truth.limbs.slices import Floats, Sliced, inner_length
from symattn.truth.limbs.sums import Words

KEPT_BYTES = 1 << 26
"""Sums over rows in float64 up to this size are kept from block to block."""
MARGIN = 3
"""Words that a sum has beyond the limbs of what is summed."""


class Matrix:
    """A given matrix in slices, side by side, for one product with all of them."""

    def __init__(self, slices: Sliced) -> None:
        self.width = width = slices.digits[0].shape[1]
        self.side_by_side = np.ascontiguousarray(np.concatenate(slices.digits, axis=1))
        views = tuple(self.side_by_side[:, b * width : (b + 1) * width] for b in range(slices.count))
        self.slices = Sliced(views, slices.width, slices.exponent)
        self.inner = inner_length(BITS, slices.width)
        self.units = [slices.unit(b) for b in range(slices.count)]


def words_of(
    sums: Floats,
    words: Words,
    matrix: Matrix,
    exponent: int,
    here: slice = slice(None),
) -> None:
    """Add sums (limbs, numbers..., slices, columns) of limbs relative to ``2^exponent`` times slices to exact words."""
    for k, scale in enumerate(scales(sums.shape[0]).tolist()):
        for b, unit in enumerate(matrix.units):
            values = (sums[k, :, b] * scale).astype(np.int64)
            words.add(values, exponent - BITS * (k + 1) + unit, here)


def top_for(exponent: int, matrix: Matrix, terms: int) -> int:
    """Exponent of a bound on sums of so many terms below ``2^exponent`` times numbers of a matrix."""
    return exponent + matrix.slices.exponent + terms.bit_length()


class RowSums:
    """``sum over j of X[i, j] A[j, e]`` for the rows of a block."""

    def __init__(self, rows: int, limbs: int, matrix: Matrix, exponent: int, keys: int) -> None:
        self.rows, self.limbs, self.matrix, self.exponent = rows, limbs, matrix, exponent
        self.words = Words((rows, matrix.width), top_for(exponent, matrix, keys), limbs + MARGIN)
        self._sums: Floats = np.zeros((rows * limbs, matrix.side_by_side.shape[1]))
        self._terms = 0

    def add(self, block: Floats, first: int) -> None:
        """Add the keys from ``first`` on of limbs (rows, limbs, keys)."""
        count = block.shape[2]
        flat = block.reshape(self.rows * self.limbs, count)
        for a in range(0, count, self.matrix.inner):
            b = min(count, a + self.matrix.inner)
            if self._terms + b - a > self.matrix.inner:
                self.flush()
            product = flat[:, a:b] @ self.matrix.side_by_side[first + a : first + b]
            if self._terms:
                np.add(self._sums, product, out=self._sums)
            else:
                self._sums = product
            self._terms += b - a

    def flush(self) -> None:
        """Move what is summed to the exact words."""
        if self._terms:
            shape = (self.rows, self.limbs, self.matrix.slices.count, self.matrix.width)
            words_of(self._sums.reshape(shape).transpose(1, 0, 2, 3), self.words, self.matrix, self.exponent)
            self._terms = 0


class KeySums:
    """``sum over i of X[i, j] A[i, c]`` for all keys, block of rows by block of rows.

    Sums of several blocks are kept in float64 while they are exact; where that takes more than ``KEPT_BYTES``, each block goes to
    the exact words at once.
    """

    def __init__(self, keys: int, limbs: int, matrix: Matrix, rows: int) -> None:
        self.keys, self.limbs, self.matrix, self.rows = keys, limbs, matrix, rows
        self.exponent = 0
        self.words: Words | None = None
        shape = (limbs, keys, matrix.side_by_side.shape[1])
        self._sums: Floats | None = np.zeros(shape) if 8 * math.prod(shape) <= KEPT_BYTES else None
        self._terms = 0

    def begin(self, exponent: int, rows: int) -> None:
        """Announce a block of so many rows, of limbs relative to ``2^exponent``; there are at most ``matrix.inner`` of them."""
        if self._terms and (exponent != self.exponent or self._terms + rows > self.matrix.inner):
            self.flush()
        self.exponent = exponent
        self._terms += rows
        if self.words is None and self._sums is None:
            self.words = self._made()

    def _made(self) -> Words:
        top = top_for(self.exponent, self.matrix, self.rows)
        return Words((self.keys, self.matrix.width), top, self.limbs + MARGIN)

    def add(self, block: Floats, rows: slice, first: int) -> None:
        """Add the keys from ``first`` on of limbs (rows, limbs, keys)."""
        count, limbs, size = block.shape
        here = slice(first, first + size)
        product = (block.reshape(count, limbs * size).T @ self.matrix.side_by_side[rows]).reshape(limbs, size, -1)
        if self._sums is not None:
            np.add(self._sums[:, here], product, out=self._sums[:, here])
            return
        assert self.words is not None
        shape = (limbs, size, self.matrix.slices.count, self.matrix.width)
        words_of(product.reshape(shape), self.words, self.matrix, self.exponent, here)

    def flush(self) -> None:
        """Move what is summed to the exact words."""
        if self.words is None:
            self.words = self._made()
        if self._terms and self._sums is not None:
            shape = (self.limbs, self.keys, self.matrix.slices.count, self.matrix.width)
            words_of(self._sums.reshape(shape), self.words, self.matrix, self.exponent)
            self._sums.fill(0.0)
        self._terms = 0

    def finished(self) -> Words:
        """The sums, when nothing more is added: the memory of what was not flushed is let go of."""
        self.flush()
        self._sums = None
        assert self.words is not None
        return self.words


def inner_products(sums: RowSums, left: Sliced, rows: slice) -> Words:
    """``sum over e of A[i, e] G[i, e]`` of a given matrix and sums over keys, exactly."""
    digits = sums.words.digits()
    top = sums.words.top + left.exponent + left.digits[0].shape[1].bit_length()
    words = Words((rows.stop - rows.start,), top, len(digits) + left.count + 1)
    for b, d in enumerate(left.digits):
        found = np.einsum("jre,re->jr", digits, d[rows].astype(np.int64))
        for j in range(len(digits)):
            words.add(found[j], sums.words.top - BITS * (j + 1) + left.unit(b))
    return words
