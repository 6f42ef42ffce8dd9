"""Bounds of sums of products from norms: what a contraction of two float64 arrays may be off by, without a second one.

For arrays A of shape (z, r, x) and B of shape (z, q, x) every bound is of ``sum over x of c |A| |B|``, and the product of one
factor for each r and one for each q. It is one of

    max c  |A_r|_1 |B_q|_inf,    max c  |A_r|_2 |B_q|_2  (Cauchy-Schwarz),    max c  |A_r|_inf |B_q|_1

where c does not depend on x, and ``(|A| c max over q of |B|)_r`` - a product of a matrix with a vector - where it does and A is
not negative. On a large array only one norm is taken: the sum where it is not negative (the weights of a softmax have 1), else
the Euclidean one.

Each norm is rounded outward: a sum of N terms that are not negative errs by at most gamma_N <= N 2^-52, and squares that
underflow or overflow are not used (norms below 2^-400 or above 2^400 are replaced by ``sqrt(N) max``).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symattn.truth.double.approx import FULL, UP, Array, U

__all__ = ["Matrix", "dot_bound", "gamma", "inflation", "keep", "kept"]


def gamma(count: int) -> float:
    """At least ``N u / (1 - N u)``: the relative error of a sum of N terms in any order, products with it.

    >>> gamma(128) >= 128 * 2.0**-53
    True
    """
    return count * U / (1 - count * U) * UP


def inflation(count: int) -> float:
    """What a computed sum of ``count`` terms that are not negative is multiplied with, to be at least the exact one."""
    return (1 + count * 4 * U) * UP


class Matrix:
    """The absolute values of an array of shape (z, r, x), by their norms along x; each is found when it is asked for.

    Parameters
    ----------
    value
        The array; finite.
    nonneg
        Whether no value is negative.
    slack
        A number that is added to every absolute value: what the exact ones may be larger by.
    top
        At least the largest absolute value of each row, where it is known: shape (z, r, 1).
    small
        Whether a pass over the array costs nothing beside the product.
    cache
        Where norms of views of one array that nobody changes are kept.
    """

    def __init__(
        self,
        value: Array,
        nonneg: bool = False,
        slack: float = 0.0,
        top: Array | None = None,
        small: bool = True,
        cache: dict[Any, Any] | None = None,
    ) -> None:
        self.value, self.nonneg, self.slack = value, nonneg, slack
        self.small = small or bool(value.size <= FULL)
        self.count = value.shape[2]
        self._top = top
        self._found: dict[Any, Any] = {} if cache is None or slack else cache.setdefault(_layout(value), {})
        if cache and not slack and value.flags.c_contiguous:
            sums = kept(cache, "sum", value)
            if sums is not None:
                self._found.setdefault("sum", sums)

    def sum(self) -> Array:
        """``sum over x of |A|``."""
        if "sum" not in self._found:
            if _constant(self.value):
                v = np.abs(self.value[:, :, :1]) * self.count
            elif self.nonneg:
                v = np.matmul(self.value, np.ones(self.count))[..., None]
            else:
                v = _sizes(self.value)
            self._found["sum"] = v * inflation(self.count) + self.slack * self.count * UP
        return self._found["sum"]

    def _largest(self) -> Array:
        if self._top is None and _constant(self.value):
            self._top = np.abs(self.value[:, :, :1])
        if self._top is None:
            if "top" not in self._found:
                v = self.value
                self._found["top"] = np.maximum(v.max(axis=2, keepdims=True), -v.min(axis=2, keepdims=True))
            self._top = self._found["top"]
        return self._top

    def top(self) -> Array:
        """``max over x of |A|``."""
        return np.asarray((self._largest() + self.slack) * UP)

    def heights(self) -> Array:
        """``max over r of |A|`` for each x."""
        if "heights" not in self._found:
            v = self.value
            self._found["heights"] = np.maximum(v.max(axis=1, keepdims=True), -v.min(axis=1, keepdims=True))
        return np.asarray((self._found["heights"] + self.slack) * UP)

    def norm(self) -> Array:
        """``sqrt(sum over x of |A|^2)``."""
        if "norm" not in self._found:
            root = math.sqrt(self.count) * UP
            if _constant(self.value):
                self._found["norm"] = self._largest() * root + self.slack * root
                return self._found["norm"]
            v = np.sqrt(_squares(self.value))[..., None] * inflation(self.count)
            fine = (v > 2.0**-400) & (v < 2.0**400)
            if not fine.all():
                v = np.where(fine, v, self._largest() * root)
            self._found["norm"] = v + self.slack * root
        return self._found["norm"]


def _across(a: Array) -> Array:
    """A column of a (z, q, 1) as a row (z, 1, q)."""
    return a.transpose(0, 2, 1)


def _squares(v: Array) -> Array:
    """``sum over x of v^2``."""
    return np.asarray(np.vecdot(v, v) if v.strides[2] == v.itemsize else np.einsum("zrx,zrx->zr", v, v))


def keep(cache: dict[Any, Any], what: str, v: Array, rows: Array) -> None:
    """Keep a number for each row of an array, for whoever asks for it of the same rows.

    ``sum`` is at least the sum of absolute values, ``most`` the largest value.
    """
    if v.flags.c_contiguous and v.size:
        cache[_rows_of(what, v)] = rows


def kept(cache: dict[Any, Any], what: str, v: Array) -> Array | None:
    """What has been kept of the rows of an array, of shape (..., 1)."""
    found = cache.get(_rows_of(what, v)) if v.flags.c_contiguous else None
    return None if found is None else np.asarray(found).reshape(*v.shape[:-1], 1)


def _rows_of(what: str, v: Array) -> tuple[Any, ...]:
    """Which rows of which length a contiguous array has."""
    return what, v.__array_interface__["data"][0], v.size, v.shape[-1]


def _constant(v: Array) -> bool:
    """Whether an array is one column that is repeated."""
    return v.strides[2] == 0 and v.shape[2] > 0


PIECE = 256
"""Terms that are summed at a time where the absolute values need an array of their own."""


def _sizes(v: Array) -> Array:
    """``sum over x of |v|`` of shape (z, r, 1), piece by piece: small arrays come from memory that is there."""
    pieces = [np.abs(v[:, :, k : k + PIECE]).sum(axis=2, keepdims=True) for k in range(0, v.shape[2], PIECE)]
    return np.asarray(sum(pieces[1:], pieces[0])) if pieces else np.zeros((*v.shape[:2], 1))


def _layout(v: Array) -> tuple[Any, ...]:
    return v.__array_interface__["data"][0], v.shape, v.strides


def dot_bound(c: Array | float, a: Matrix | None, b: Matrix | None, count: int) -> tuple[Array, Array]:
    """Factors (z, r, 1) and (z, 1, q) whose product is at least ``sum over x of c |A[r, x]| |B[q, x]|``.

    Parameters
    ----------
    c
        Not negative, broadcasts to (z, r, x).
    a, b
        The factors, both of shape (z, rows, x); None stands for ones.
    count
        The length of x.

    >>> x, y = np.array([[[3.0, 4.0]]]), np.array([[[1.0, 1.0]]])
    >>> row, column = dot_bound(1.0, Matrix(x), Matrix(y), 2)
    >>> 7 <= float((row * column)[0, 0, 0]) < 7.1
    True
    """
    c = np.asarray(c, dtype=np.float64)
    if c.ndim == 3 and c.shape[2] > 1:
        if a is not None and (a.nonneg or a.small):
            return _weighted(c, a, b, count) * inflation(count) * UP, ONE
        c = c.max(axis=2, keepdims=True)
    row, column = _pair(a, b, count)
    return c * row * UP, column


ONE = np.ones((1, 1, 1))


def _weighted(c: Array, a: Matrix, b: Matrix | None, count: int) -> Array:
    """``sum over x of c |A| max over q of |B|``: a matrix times a vector where c does not depend on r."""
    w = np.ones((1, 1, count)) if b is None else b.heights()
    left = a.value if a.nonneg else np.abs(a.value)
    if c.shape[1] == 1:
        out = np.matmul(left, (c * w).transpose(0, 2, 1))
    else:
        out = np.einsum("zrx,zrx->zr", *np.broadcast_arrays(left, c * w))[..., None]
    return np.asarray(out + (c * w).sum(axis=2, keepdims=True) * a.slack)


def _pair(a: Matrix | None, b: Matrix | None, count: int) -> tuple[Array, Array]:
    """The best of the pairs of norms that are cheap."""
    if a is None or b is None:
        m = b if a is None else a
        if m is None:
            return ONE * count, ONE
        v = m.sum() if m.nonneg or m.small else m.norm() * (math.sqrt(count) * UP)
        return (ONE, _across(v)) if a is None else (v, ONE)
    weights = next((m for m in (a, b) if m.nonneg and not m.small), None)
    if a.value.size <= FULL and b.value.size <= FULL:
        pairs = [(a.sum(), b.top()), (a.norm(), b.norm()), (a.top(), b.sum())]
        row, column = min(pairs, key=lambda p: float(p[0].max() * p[1].max()))
    elif weights is not None:
        row, column = (a.sum(), b.top()) if weights is a else (a.top(), b.sum())
    else:
        row, column = a.norm(), b.norm()
    return row, _across(column)
