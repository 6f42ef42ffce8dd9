"""Numbers with an error: a float64 array, and a bound of its distance from the exact values that is much smaller than the array.

An :class:`Approx` on a grid of indices says, element by element, with v the value and t what it stands for,

    |t - v| <= rel |v| + abs + sum over k of c_k |W_k|          where v is finite,

``t = v`` where v is infinite, and nothing where v is NaN. The coefficients ``rel``, ``abs`` and ``c_k`` broadcast against v: on a
large grid they have an axis of length 1 for the last index, so that they cost no pass over it. The weights W are tensors that
are there anyway: an error that is proportional to the weights of a softmax stays so until they are summed.

**Rounding of the bound itself.** A coefficient is made of at most 64 additions, products, quotients, roots and maxima of numbers
that are not negative; each errs by at most U relative, or by 2^-1074 where it underflows. Multiplying the result by
``UP = 1 + 2^-45 >= (1 - U)^-66`` covers the first. For the second, ``abs`` is 0 or at least ``FLOOR = 2^-1060``, which
every product of a coefficient and a size that are there gets (:func:`times`), ``c_k`` is at least 2^-900 and ``rel`` 0 or at
least U / 2.
Functions that sum more terms say so where they do (:mod:`.norms`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = "np.ndarray[Any, Any]"
Coefficient: TypeAlias = "np.ndarray[Any, Any] | float"

__all__ = ["FULL", "UP", "Approx", "Array", "Coefficient", "U", "add", "exactly", "is_zero", "multiply", "outward", "selected"]

U = 2.0**-53
"""Unit roundoff of float64."""
UP = 1 + 2.0**-45
FLOOR = 2.0**-1060
LEAST = 2.0**-900
HUGE = 2.0**900
"""Values from here on count as overflow: what is made of them is not known."""
WHOLE = 2.0**53
"""Integers up to here are exact in float64, and so are their sums and products."""
FULL = 1 << 13
"""Elements up to which coefficients are kept for every element."""
WEIGHTS = 3
"""How many weights an :class:`Approx` keeps."""


@dataclass(eq=False)
class Approx:
    """Float64 values and what they may be off by, see the module.

    Parameters
    ----------
    value
        Float64 array, one axis an index of the grid; length 1 where it does not depend on the index.
    rel, abs
        Coefficients: arrays that broadcast to the grid, or the float 0.
    weights
        Pairs ``(c, W)``; of W only the values count.
    nonneg
        No exact value is negative.
    whole
        All values are exact integers.
    special
        Some values may be infinite or NaN.
    temporary
        Nobody else holds the array: it may be overwritten.
    bound
        At least every finite ``|v|``, where it is known without a look at the values.
    norms
        Where norms of the array and of views of it are kept, if that is worth it: it is read by many blocks.
    """

    value: Array
    rel: Coefficient = 0.0
    abs: Coefficient = 0.0
    weights: tuple[tuple[Coefficient, Approx], ...] = ()
    nonneg: bool = False
    whole: bool = False
    special: bool = False
    temporary: bool = False
    bound: Coefficient | None = None
    norms: dict[Any, Any] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.value, np.ndarray):
            self.value = np.asarray(self.value)

    @property
    def exact(self) -> bool:
        """Whether there is no error at all."""
        return is_zero(self.rel) and is_zero(self.abs) and not self.weights

    @property
    def large(self) -> bool:
        """Whether the grid is so large that coefficients are kept for its rows only."""
        return self.value.size > FULL

    def size(self, large: bool | None = None) -> Coefficient:
        """At least every finite ``|v|``: element by element on a small grid, over the last axis on a large one."""
        large = self.large if large is None else large
        if self.value.size <= FULL:
            found: Array = np.abs(self.value)
            if self.special:
                found = np.where(np.isfinite(found), found, 0.0)
        elif self.bound is None:
            found = _largest(self.value, self.special)
            self.bound = found
        else:
            found = np.asarray(self.bound)
        return rows(found) if large else found

    def error(self, large: bool | None = None) -> Coefficient:
        """At least ``|t - v|``: element by element on a small grid, over the last axis on a large one."""
        large = self.large if large is None else large
        if self.exact:
            return 0.0
        total: Any = self.abs if not large else rows(self.abs)
        if not is_zero(self.rel):
            total = total + times(self.rel, self.size(large), large)
        for c, w in self.weights:
            total = total + times(c, w.size(large), large)
        return outward(total)

    def full(self) -> Array:
        """At least ``|t - v|`` for every element: a pass over the grid for each term."""
        with np.errstate(all="ignore"):
            out = np.zeros(self.value.shape) + self.abs
            if not is_zero(self.rel):
                out = out + times(self.rel, np.abs(self.value))
            for c, w in self.weights:
                out = out + times(c, np.abs(w.value))
            out = np.array(outward(out))
            value = np.broadcast_to(self.value, out.shape)
            out[np.isnan(out) | np.isnan(value)] = np.inf
            out[np.isinf(value)] = 0.0
        return out

    def changed(self, **changes: Any) -> Approx:
        """The same with changes; an :class:`Approx` is never changed itself."""
        out = object.__new__(Approx)
        out.__dict__.update(self.__dict__, **changes)
        if "value" in changes and "norms" not in changes:
            out.norms = None
        return out

    def mapped(self, f: Callable[[Array], Array]) -> Approx:
        """The same with every array moved by ``f``, which keeps axes of length 1 (a transposition, a reshaping)."""

        def move(c: Any) -> Any:
            return c if isinstance(c, float) or not c.ndim else f(c)

        return self.changed(
            value=f(self.value),
            rel=move(self.rel),
            abs=move(self.abs),
            weights=tuple((move(c), w.mapped(f)) for c, w in self.weights) if self.weights else (),
            bound=None if self.bound is None else move(self.bound),
            temporary=False,
            norms=self.norms,
        )

    def plain(self) -> Approx:
        """The same with the weights taken into ``abs``."""
        if not self.weights:
            return self
        more: Any = self.abs
        for c, w in self.weights:
            more = more + times(c, w.size(self.large), self.large)
        return self.changed(abs=outward(more), weights=())


def is_zero(c: Coefficient) -> bool:
    """Whether a coefficient is the float 0, that of no error."""
    return isinstance(c, float) and c == 0.0


SAFE = 2.0**-1000
"""Coefficients in absolute units from here on are not changed by anything that underflows on the way to them."""


def outward(c: Coefficient) -> Coefficient:
    """A coefficient in absolute units after its own roundings; 0 stays 0."""
    if isinstance(c, float):
        return c * UP + FLOOR if c else 0.0
    c = c * UP
    return c if c.min() > SAFE else c + FLOOR * (c > 0)


def times(c: Coefficient, size: Coefficient, large: bool = False) -> Any:
    """The product of a coefficient and a size, more where both are there and it underflows."""
    c = rows(c) if large else c
    out = np.asarray(c * size)
    return out if out.min() > SAFE else out + FLOOR * (np.greater(c, 0) & np.greater(size, 0))


def rows(c: Coefficient) -> Coefficient:
    """A coefficient for the whole of the last axis."""
    if isinstance(c, float) or c.ndim == 0 or c.shape[-1] == 1:
        return c
    return np.asarray(c.max(axis=-1, keepdims=True))


def _largest(v: Array, special: bool) -> Array:
    """The largest finite ``|v|`` along the last axis."""
    if special:
        v = np.where(np.isfinite(v), v, 0.0)
    return np.asarray(np.maximum(v.max(axis=-1, keepdims=True), -v.min(axis=-1, keepdims=True)))


def exactly(value: Any, ndim: int = 0, **marks: Any) -> Approx:
    """Numbers without an error.

    >>> exactly([2.0, 0.5]).exact, exactly(3.0).whole
    (True, True)
    """
    v = np.asarray(value, dtype=np.float64)
    v = v.reshape((1,) * (ndim - v.ndim) + v.shape)
    low, high = (float(v.min()), float(v.max())) if v.size else (0.0, 0.0)
    special = not (np.isfinite(low) and np.isfinite(high))
    marks.setdefault("nonneg", low >= 0)
    marks.setdefault("whole", not special and v.size <= FULL and bool((v == np.rint(v)).all() and (np.abs(v) <= WHOLE).all()))
    return Approx(v, special=special, **marks)


def into(a: Approx, b: Approx) -> Array | None:
    """An array that the result of an operation on both may overwrite."""
    shape = np.broadcast_shapes(a.value.shape, b.value.shape)
    for x in (a, b):
        if x.temporary and x.value.shape == shape:
            return x.value
    return None


def add(a: Approx, b: Approx, minus: bool = False) -> Approx:
    """The sum or the difference: errors add up, and one rounding; integers stay exact.

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
    value = (np.subtract if minus else np.add)(a.value, b.value, out=into(a, b))
    nonneg = a.nonneg and b.nonneg and not minus
    made = Approx(value, 0.0 if whole else U, outward(error), weights, nonneg, whole, special, True, size if large else None)
    return checked(fewer(made), lost)


def _size_of_sum(a: Approx, b: Approx, large: bool) -> Array:
    return np.asarray((a.size(large) + b.size(large)) * UP)


def _large(a: Approx, b: Approx) -> bool:
    return bool(np.broadcast(a.value, b.value).size > FULL)


def multiply(a: Approx, b: Approx) -> Approx:
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
    value = np.multiply(a.value, b.value, out=into(a, b))
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


def selected(a: Approx, keep: Array, some: Array | None = None) -> Approx:
    """The values where a mask holds, exact zeros elsewhere.

    ``some`` is whether the mask keeps anything along the last axis, where that is known.
    """
    full = np.broadcast_shapes(a.value.shape, keep.shape)
    if a.temporary and a.value.shape == full:
        value = a.value
        np.copyto(value, 0.0, where=~keep)
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


def total(parts: Sequence[Approx]) -> Approx:
    """The sum of several."""
    out = parts[0]
    for p in parts[1:]:
        out = add(out, p)
    return out
