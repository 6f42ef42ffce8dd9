"""Sums, maxima and contractions of numbers with an error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from symattn.truth.double.approx import FLOOR, FULL, LEAST, UP, WHOLE, Approx, Array, Coefficient, is_zero, outward, rows, times
from symattn.truth.double.arithmetic import checked, fewer, joined, masked, multiply
from symattn.truth.double.norms import Matrix, dot_bound, gamma, inflation
from symattn.truth.double.norms import keep as kept_rows

__all__ = ["contracted", "largest", "product", "summed"]


def _gone(c: Any, axes: tuple[int, ...], f: Any) -> Any:
    """A coefficient reduced over some axes, which stay with length 1."""
    return c if isinstance(c, float) or np.ndim(c) == 0 else f(c, axis=axes, keepdims=True)


def _dropped(c: Any, axes: tuple[int, ...]) -> Any:
    return c if isinstance(c, float) or np.ndim(c) == 0 else c.reshape([n for k, n in enumerate(c.shape) if k not in axes])


def summed(a: Approx, shape: Sequence[int], axes: tuple[int, ...], extra: Array | None = None) -> Approx:
    """The sum over the last axes of a grid: gamma_N of the sum of absolute values, and the sum of the errors.

    Parameters
    ----------
    a, shape
        The terms, and the shape of the grid.
    axes
        Which axes are summed over: the last ones.
    extra
        A further error of each term.
    """
    count = math.prod(shape[k] for k in axes)
    full = np.broadcast_to(a.value, tuple(shape))
    value = full.sum(axis=axes)
    special = a.special and not bool(np.isfinite(value).all())
    if special:
        value = np.where(np.isfinite(value), value, np.nan)
    if a.nonneg:
        sizes = np.abs(value) * inflation(count)
        if a.norms is not None and not special and axes == (full.ndim - 1,):
            kept_rows(a.norms, "sum", full, sizes)
    elif full.size <= FULL or len(axes) != 1:
        sizes = np.abs(full).sum(axis=axes) * inflation(count)
    else:
        sizes = np.sqrt(np.einsum("...j,...j->...", full, full)) * (math.sqrt(count) * inflation(count))
        sizes = np.where((sizes > 2.0**-400) & (sizes < 2.0**400), sizes, _dropped(rows(a.size()), axes) * (count * UP))
    sizes = np.where(np.isfinite(sizes), sizes, 0.0)
    whole = a.whole and bool(np.max(sizes, initial=0.0) <= WHOLE)
    rel: Any = _dropped(_gone(a.rel, axes, np.max), axes)
    g = 0.0 if whole else gamma(count)
    relative = rel + g * (1 + rel) if a.nonneg else 0.0
    error: Any = 0.0 if a.nonneg else times(rel + g * (1 + rel), sizes)
    if not is_zero(a.abs):
        error = error + _over(a.abs, shape, axes, count)
    for c, w in a.weights:
        error = error + times(_dropped(_gone(c, axes, np.max), axes), _over(w, shape, axes, count))
    if extra is not None:
        error = error + np.broadcast_to(extra, tuple(shape)).sum(axis=axes) * inflation(count)
    whole = whole and is_zero(error)
    made = Approx(value, relative * UP, 0.0 if whole else outward(error), (), a.nonneg, whole, special, True)
    return checked(made)


def _over(x: Approx | Coefficient, shape: Sequence[int], axes: tuple[int, ...], count: int) -> Any:
    """The sum of sizes or of errors over some axes."""
    if isinstance(x, float):
        return x * count * UP
    if isinstance(x, Approx):
        if x.special:
            return _over(x.size(), shape, axes, count)
        v = x.value
        if x.nonneg or v.size <= FULL or len(axes) != 1 or v.shape[axes[0]] == 1:
            x = v if x.nonneg else np.abs(v)
        else:
            n = np.sqrt(np.einsum("...j,...j->...", v, v)) * (math.sqrt(count) * inflation(count))
            return np.where((n > 2.0**-400) & (n < 2.0**400), n, _dropped(rows(x.size()), axes) * (count * UP))
    x = np.asarray(x)
    if x.ndim == 0:
        return x * count * UP
    there = math.prod(x.shape[k] for k in axes)
    return x.sum(axis=axes) * (inflation(there) * (count / there) * UP)


def largest(a: Approx, keep: Array | None, shape: Sequence[int], axes: tuple[int, ...]) -> Approx:
    """The maximum over the last axes where a mask holds, -oo over nothing: it moves by at most the largest error."""
    value = np.broadcast_to(a.value, tuple(shape))
    error: Any = a.error()
    special = a.special
    if keep is not None:
        error = np.where(keep if value.size <= FULL else keep.any(axis=-1, keepdims=True), error, 0.0)
        special = True
    found = value.max(axis=axes) if keep is None else _largest_kept(value, keep, axes)
    if a.norms is not None and not special and axes == (value.ndim - 1,):
        kept_rows(a.norms, "most", value, found)
    special = special and not bool(np.isfinite(found).all())
    out = _dropped(_gone(error, axes, np.max), axes)
    if special and not isinstance(out, float):
        out = np.where(np.isinf(found), 0.0, out)
    return Approx(found, 0.0, out, (), a.nonneg and not special, a.whole and not special, special, True)


def _largest_kept(value: Array, keep: Array, axes: tuple[int, ...]) -> Array:
    """The maximum where a mask holds: without the mask where it holds throughout."""
    some = masked(keep)
    parts = [np.max(value[..., some], axis=axes, where=keep[..., some], initial=-np.inf)]
    parts += [value[..., s].max(axis=axes) for s in (slice(some.start), slice(some.stop, None)) if value[..., s].size]
    return np.asarray(reduce(np.maximum, parts))


def product(a: Approx, shape: Sequence[int], count: int) -> Approx:
    """The product over the last axes, factor by factor."""
    a = a.plain()
    lead = tuple(shape[:-count])

    def flat(c: Any) -> Any:
        return np.broadcast_to(c, tuple(shape)).reshape(*lead, -1) if np.ndim(c) else c

    v, rel, error = flat(a.value), flat(a.rel), flat(a.abs)
    out: Approx | None = None
    for k in range(v.shape[-1]):
        r, e = (c if np.ndim(c) == 0 else c[..., k] for c in (rel, error))
        x = Approx(v[..., k], r, e, (), a.nonneg, a.whole, a.special)
        out = x if out is None else multiply(out, x)
    assert out is not None
    return out


def contracted(a: Approx, b: Approx, out: Array | None = None) -> Approx:
    """``sum over x of A[z, r, x] B[z, q, x]`` of finite numbers, of shape (z, r, q).

    With ``|tA| <= |A| + eA`` the error is at most ``sum |A| eB + eA (|B| + eB)``, and gamma_x of the sum of sizes for whatever
    order the products are added in, fused or not; x products may underflow. The values are put into ``out`` where it is given.
    """
    count, (z, r, _), q = a.value.shape[2], a.value.shape, b.value.shape[1]
    value = np.empty((z, r, q)) if out is None else out
    if r == q == 1:
        np.vecdot(a.value[:, 0], b.value[:, 0], out=value[:, 0, 0])
    else:
        turned = q < r and a.value.strides[1] == a.value.itemsize and value.size > FULL
        if turned:  # BLAS is a quarter faster where the longer operand comes last, and is not transposed
            value = value.reshape(z, q, r).transpose(0, 2, 1)
        for k in range(z):  # one by one: a batch whose operands are transposed takes twice the time
            if turned:
                np.matmul(b.value[k], a.value[k].T, out=value[k].T)
            else:
                np.matmul(a.value[k], b.value[k].T, out=value[k])
    g = gamma(count)
    slack, grown = (0.0, 1.0) if b.exact else (float(np.max(_slack(b))), 1.0 + float(np.max(b.rel)))
    small = [2 * x.value.size <= max(y.value.size, z * r * q) for x, y in ((a, b), (b, a))]
    left, right = (Matrix(x.value, x.nonneg, 0.0, _top(x), s, x.norms) for x, s in zip((a, b), small, strict=True))
    high = Matrix(b.value, b.nonneg, slack, _top(b), small[1]) if slack != 0 else right
    row, column = dot_bound(1.0, left, right, count)
    size = row * rows(column) * UP
    whole = a.whole and b.whole and bool(size.max() <= WHOLE)
    own = 0.0 if whole else g
    found = [dot_bound(a.rel * grown + own, left, high, count)] if not is_zero(a.rel) else [(own * row, column)]
    if not is_zero(b.rel):
        found.append(_turned(dot_bound(b.rel, right, left, count)))
    for x, m, other in ((a, left, high), (b, right, left)):
        for c, w in _terms(x):
            of = None if w is None else m if w.value is x.value else _of_weight(w, x.value, m)
            pair = dot_bound(c, of, other, count)
            found.append((pair[0] * grown, pair[1]) if x is a else _turned(pair))
    error: Any = 0.0 if whole else count * FLOOR
    weights: list[tuple[Coefficient, Approx]] = []
    for p in [] if whole and a.exact and b.exact else found:
        if z * r * q <= FULL or p[1].shape[2] == 1:
            error = error + p[0] * p[1]
        else:
            weights.append((np.maximum(p[0] * UP, LEAST), Approx(p[1])))
    made = Approx(value, 0.0, outward(error), joined(weights), a.nonneg and b.nonneg, whole, False, True, size)
    return checked(fewer(made))


def _of_weight(w: Approx, v: Array, m: Matrix) -> Matrix:
    """A weight at every element of the rows of a value, so that its norms are those of whole rows."""
    spread = w.value if w.value.shape[2] == v.shape[2] else np.broadcast_to(w.value, (*w.value.shape[:2], v.shape[2]))
    return Matrix(spread, w.nonneg, small=m.small, cache=w.norms)


def _turned(pair: tuple[Array, Array]) -> tuple[Array, Array]:
    """Factors for (q, r) as factors for (r, q)."""
    return pair[1].transpose(0, 2, 1), pair[0].transpose(0, 2, 1)


def _terms(a: Approx) -> list[tuple[Coefficient, Approx | None]]:
    """The errors that are not relative, each with its weight; None is a weight of ones."""
    found: list[tuple[Coefficient, Approx | None]] = [(np.maximum(c, LEAST), w) for c, w in a.weights]
    return found if is_zero(a.abs) else [*found, (a.abs, None)]


def _slack(a: Approx) -> Coefficient:
    """At least what an exact value may be larger by than the value."""
    return 0.0 if a.exact else a.changed(rel=0.0).error()


def _top(a: Approx) -> Array | None:
    """The size of the rows where it is known."""
    if not a.large or a.bound is None or np.ndim(a.bound) == 0:
        return None
    return np.broadcast_to(rows(a.bound), (*a.value.shape[:2], 1))
