"""Sums, differences, products and selections of numbers with an error: the rules that every other one is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symattn.truth.double.approx import (
    FLOOR,
    FULL,
    HUGE,
    LEAST,
    SAFE,
    UP,
    WHOLE,
    Approx,
    Array,
    Coefficient,
    U,
    is_zero,
    outward,
    rows,
    times,
)
from symattn.truth.double.norms import kept

__all__ = ["Room", "add", "checked", "fewer", "joined", "masked", "multiply", "selected"]

WEIGHTS = 3
"""How many weights an :class:`~symattn.truth.double.approx.Approx` keeps."""


Room = Callable[[tuple[int, ...]], "Array | None"]
"""Where large arrays come from; None leaves it to NumPy."""


def into(a: Approx, b: Approx, room: Room | None = None) -> Array | None:
    """An array that the result of an operation on both may overwrite."""
    shape = np.broadcast_shapes(a.value.shape, b.value.shape)
    for x in (a, b):
        if x.temporary and x.value.shape == shape:
            return x.value
    return None if room is None else room(shape)


def add(a: Approx, b: Approx, minus: bool = False, room: Room | None = None) -> Approx:
    """The sum or the difference: errors add up, and one rounding; integers stay exact.

    >>> from symattn.truth.double.approx import exactly
    >>> one, third = exactly([1.0]), Approx(np.array([1 / 3]), rel=U)
    >>> float(add(one, third).full()[0]) <= 1.67 * 2.0**-53
    True
    """
    large = _large(a, b)
    size = _size_of_sum(a, b, large)
    whole = a.whole and b.whole and bool(np.max(size) <= WHOLE)
    special = a.special or b.special
    lost = ~(np.isfinite(a.value) & np.isfinite(b.value)) if special else None
    error: Any = 0.0
    for x in (a, b):
        if not is_zero(x.abs):
            error = error + (rows(x.abs) if large else x.abs)
        if not is_zero(x.rel):
            error = error + times(x.rel, x.size(large), large)
    weights = a.weights + b.weights
    operation = np.subtract if minus else np.add
    most = _most(operation, a, b)
    most = _most(operation, b, a) if most is None and not minus else most
    value = operation(a.value, b.value, out=into(a, b, room))
    nonneg = a.nonneg and b.nonneg and not minus
    made = Approx(value, 0.0 if whole else U, outward(error), weights, nonneg, whole, special, True, size if large else None)
    made.most = most
    return checked(fewer(made), lost)


def _most(operation: Any, a: Approx, b: Approx) -> Array | None:
    """At least every value of a row of ``a + b`` or ``a - b``, where b has one value for it: rounding keeps order."""
    if a.norms is None or a.special or b.value.shape[-1:] != (1,) or a.value.ndim != b.value.ndim:
        return None
    found = kept(a.norms, "most", a.value)
    return None if found is None else np.asarray(operation(found, b.value))


def _size_of_sum(a: Approx, b: Approx, large: bool) -> Array:
    return np.asarray((a.size(large) + b.size(large)) * UP)


def _large(a: Approx, b: Approx) -> bool:
    return bool(np.broadcast(a.value, b.value).size > FULL)


def multiply(a: Approx, b: Approx, room: Room | None = None) -> Approx:
    """The product: ``|ta tb - va vb| <= ea |vb| + |va| eb + ea eb``, and one rounding; integers stay exact.

    >>> third = Approx(np.array([1 / 3]), rel=U)
    >>> float(multiply(third, third).rel) <= 3.01 * 2.0**-53
    True
    """
    large = _large(a, b)
    sa, sb = a.size(large), b.size(large)
    size = np.asarray(sa * sb * UP)
    whole = a.whole and b.whole and bool(np.max(size) <= WHOLE)
    special = a.special or b.special
    lost = ~(np.isfinite(a.value) & np.isfinite(b.value)) if special else None
    uncertain = _uncertain(a, b) if special else None
    free = whole or _power_of_two(a) or _power_of_two(b)
    rel: Any = a.rel + b.rel + a.rel * b.rel + (0.0 if free else U)
    rel = (rows(rel) if large else rel) * UP
    error: Any = 0.0
    weights: list[tuple[Coefficient, Approx]] = []
    for x, y, sy in ((a, b, sb), (b, a, sa)):
        grown = 1.0 + (rows(y.rel) if large else y.rel)
        if not is_zero(x.abs):
            c = (rows(x.abs) if large else x.abs) * grown
            if large and not y.temporary and y.value.shape[-1:] != (1,) and y.value.ndim:
                weights.append((c, y.changed(weights=())))
            else:
                error = error + times(c, sy)
        for c, w in x.weights:
            c = rows(c) if large else c
            if large and not y.temporary and y.value.shape[-1:] != (1,) and w.value.size <= FULL < y.value.size:
                weights.append((c * w.size(True) * grown, y.changed(weights=())))
            else:
                weights.append((c * (sy * grown), w))
    if not (is_zero(a.abs) and not a.weights) and not (is_zero(b.abs) and not b.weights):
        error = error + times(a.plain().error(large), b.plain().error(large))
    if not whole:
        error = error + (FLOOR if size.min() > SAFE else FLOOR * (np.greater(sa, 0) & np.greater(sb, 0)))
    value = np.multiply(a.value, b.value, out=into(a, b, room))
    if uncertain is not None:
        value = np.where(uncertain, np.nan, value)
    made = Approx(
        value,
        rel,
        outward(error),
        joined([(np.maximum(c * UP, LEAST), w) for c, w in weights]),
        a.nonneg and b.nonneg,
        whole,
        special,
        True,
        size if large else None,
    )
    return checked(fewer(made), lost)


def _uncertain(a: Approx, b: Approx) -> Array | None:
    """Where a product has an infinite factor and the other one has an error: it may be of any sign, or 0."""
    found = [np.isinf(y.value) for x, y in ((a, b), (b, a)) if y.special and not x.exact]
    return found[0] | found[1] if len(found) == 2 else found[0] if found else None


def _power_of_two(a: Approx) -> bool:
    """Whether a factor is one power of two: products with it are not rounded unless they are tiny."""
    return a.value.size == 1 and a.exact and abs(float(np.frexp(a.value.flat[0])[0])) == 0.5


def joined(weights: list[tuple[Coefficient, Approx]]) -> tuple[tuple[Coefficient, Approx], ...]:
    """Terms with the same weight as one."""
    found: list[tuple[Coefficient, Approx]] = []
    for c, w in weights:
        for k, (other, v) in enumerate(found):
            if _same(v.value, w.value):
                found[k] = ((other + c) * UP, v)
                break
        else:
            found.append((c, w))
    return tuple(found)


def _same(a: Array, b: Array) -> bool:
    """Whether two arrays are one, or small and equal."""
    if a is b:
        return True
    if a.shape != b.shape:
        return False
    if a.size <= FULL:
        return bool(np.array_equal(a, b))
    return a.strides == b.strides and a.__array_interface__["data"] == b.__array_interface__["data"]


def fewer(a: Approx) -> Approx:
    """The same with few weights; those beyond are taken into ``abs``."""
    if len(a.weights) <= WEIGHTS and a.large:
        return a
    if not a.weights:
        return a
    kept = WEIGHTS if a.large else 0
    error: Any = a.abs
    for c, w in a.weights[kept:]:
        error = error + times(c, w.size(a.large))
    return a.changed(abs=outward(error), weights=a.weights[:kept])


def checked(a: Approx, legitimate: Array | None = None) -> Approx:
    """The same, with NaN for what overflowed; ``legitimate`` says where infinite values come from infinite operands."""
    size = a.size()
    if (size if isinstance(size, float) else size.max()) < HUGE:
        return a
    known = np.abs(a.value) < HUGE
    if legitimate is not None:
        known = known | legitimate
    value = np.where(known, a.value, np.nan)
    return a.changed(value=value, special=True, whole=False, bound=None, temporary=True)


def masked(keep: Array) -> slice:
    """The range of the last axis outside which a mask holds throughout."""
    if keep.size <= FULL:
        return slice(0, keep.shape[-1])
    lost = np.flatnonzero(~keep.all(axis=tuple(range(keep.ndim - 1))))
    return slice(int(lost[0]), int(lost[-1]) + 1) if len(lost) else slice(0, 0)


def selected(a: Approx, keep: Array, some: Array | None = None) -> Approx:
    """The values where a mask holds, exact zeros elsewhere.

    ``some`` is whether the mask keeps anything along the last axis, where that is known.
    """
    full = np.broadcast_shapes(a.value.shape, keep.shape)
    if a.temporary and a.value.shape == full:
        value = a.value
        part: Any = (..., masked(keep)) if keep.shape[-1:] == full[-1:] != () else ...
        np.copyto(value[part], 0.0, where=~keep[part])
    else:
        value = np.where(keep, a.value, 0.0)
    rel, error, weights = a.rel, a.abs, a.weights
    if not a.exact:
        found = keep if value.size <= FULL else keep.any(axis=-1, keepdims=True) if some is None else some

        def kept(c: Coefficient) -> Coefficient:
            if is_zero(c):
                return c
            r = rows(c) if value.size > FULL else c
            return np.where(found, r, 0.0)

        if not found.all() or not _finite(rel, error, *(c for c, _ in weights)):
            rel, error, weights = kept(rel), kept(error), tuple((kept(c), w) for c, w in weights)
    special = a.special and not bool(np.isfinite(np.max(np.abs(value), initial=0.0)))
    return a.changed(value=value, rel=rel, abs=error, weights=weights, special=special, temporary=True)


def _finite(*coefficients: Coefficient) -> bool:
    return all(bool(np.isfinite(np.max(c))) for c in coefficients)
