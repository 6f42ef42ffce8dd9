"""Sums, products and powers of boxes: the error of the operands carried over, and the rounding of the operation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from symattn.readings.boxes import OWN_NORMAL, OWN_TINY, Array, Box, U, exactly, finish, marks_of, settled
from symattn.readings.units import Unit

__all__ = ["add", "integer_power", "multiply", "power_of_two", "reciprocal"]


def power_of_two(b: Box) -> bool:
    """Whether the box is one exact power of two: multiplying with it rounds nothing."""
    return b.value.size == 1 and b.exact and abs(float(np.frexp(b.value)[0].flat[0])) == 0.5


def add(boxes: Sequence[Box], unit: Unit) -> Box:
    """The sum, in any order: one rounding of the result for two summands, of the sum of sizes for each further addition."""
    if all(b.index for b in boxes):
        return exactly(reduce(np.add, [b.value for b in boxes]), index=True)
    boxes = [settled(b, unit) for b in boxes]
    value, own, bound = (_total(boxes, name) for name in ("value", "own", "bound"))
    k = len(boxes) - 1
    nonneg = all(b.nonneg for b in boxes)
    least = (lambda: _total(boxes, "low") * (1 - unit.u) ** (k - 1)) if nonneg else None
    rounding = np.abs(value) if k == 1 else reduce(np.add, [np.abs(b.value) for b in boxes])
    finite = bool(np.isfinite(np.max(rounding, initial=0.0)))
    rounding = np.multiply(rounding, k * U) if finite else np.where(np.isfinite(value), k * U * rounding, 0.0)
    if k > 1:
        more = (k - 1) * (1 + 2 * k * unit.u) * unit.u * _total(boxes, "size")
        bound = bound + (more if finite else np.where(np.isfinite(value), more, 0.0))
    return finish(value, own + rounding, bound, least, unit.u, unit.tiny, nonneg, **marks_of(*boxes))


def _total(boxes: Sequence[Box], name: str) -> Array:
    return reduce(np.add, [getattr(b, name) for b in boxes])


def multiply(a: Box, b: Box, unit: Unit) -> Box:
    """The product: ``|ka kb - ta tb| <= ra |kb| + |ta| rb``, and one rounding unless a factor is an exact power of two."""
    if a.index and b.index:
        return exactly(a.value * b.value, index=True)
    a, b = settled(a, unit), settled(b, unit)
    value = a.value * b.value
    free = power_of_two(a) or power_of_two(b)
    size, own, bound = np.abs(value), _moved(a, b, "own"), _moved(a, b, "bound")
    if np.min(size, initial=1.0) >= OWN_NORMAL and all(np.isfinite(np.max(x, initial=0.0)) for x in (size, own, bound)):
        own = own if free else own + np.multiply(size, U)
    else:
        own = own + np.where((a.true_size > 0) & (b.true_size > 0), (0.0 if free else U) * size + OWN_TINY, 0.0)
        infinite = np.isinf(value) & (np.isinf(a.value) | np.isinf(b.value)) & np.isfinite(a.bound) & np.isfinite(b.bound)
        zero = ((a.size == 0) & np.isfinite(b.size)) | ((b.size == 0) & np.isfinite(a.size))
        own, bound = (np.where(infinite | zero, 0.0, x) for x in (own, bound))
        bound = np.where(np.isinf(value) & ~infinite, np.inf, bound)
    nonneg = a.nonneg and b.nonneg
    negative_one = free and (abs(_scalar(a)) == 1 or abs(_scalar(b)) == 1)
    u, tiny = (0.0 if free else unit.u), (0.0 if negative_one else unit.tiny)
    return finish(value, own, bound, lambda: a.low * b.low, u, tiny, nonneg, **marks_of(a, b))


def _moved(a: Box, b: Box, radius: str) -> Array:
    """``ra |b| + |a| rb``, with the size of b that is meant; a factor that everyone has exactly adds nothing."""
    ra, rb = getattr(a, radius), getattr(b, radius)
    if a.exact or b.exact:
        one, other = (a.value, rb) if a.exact else (b.value, ra)
        found = np.abs(one) * other
        return found if np.isfinite(np.max(found, initial=0.0)) else ra * b.size + a.true_size * rb
    first = ra * (np.abs(b.value) if radius == "own" else b.size)
    return np.asarray(first + a.true_size * rb)


def _scalar(b: Box) -> float:
    return float(b.value.flat[0]) if b.value.size == 1 else 0.0


def reciprocal(a: Box, unit: Unit) -> Box:
    """``1/x``: ``|1/k - 1/t| = |k - t| / (|k| |t|)``, and one rounding."""
    if a.index:
        return exactly(1.0 / a.value, index=True)
    value = 1.0 / a.value
    own = a.own / (np.abs(a.value) * a.true_low) + U * np.abs(value)
    bound = np.where(a.bound == 0, 0.0, a.bound / (a.low * a.true_low))
    low = 1.0 / a.size
    return finish(value, own, bound, low, unit.u, unit.tiny, a.nonneg, **marks_of(a))


def integer_power(a: Box, p: int, unit: Unit) -> Box:
    """``x^p`` for an integer p, by multiplication."""
    if p < 0:
        return reciprocal(integer_power(a, -p, unit), unit)
    out = reduce(lambda x, y: multiply(x, y, unit), [a] * p) if p else exactly(1.0, index=True)
    return replace(out, nonneg=True) if p % 2 == 0 else out
