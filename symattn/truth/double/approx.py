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

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = "np.ndarray[Any, Any]"
Coefficient: TypeAlias = "np.ndarray[Any, Any] | float"

__all__ = [
    "FLOOR",
    "FULL",
    "HUGE",
    "LEAST",
    "SAFE",
    "UP",
    "WHOLE",
    "Approx",
    "Array",
    "Coefficient",
    "U",
    "exactly",
    "is_zero",
    "outward",
    "rows",
    "times",
]

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
    most
        At least every value of a row, along the last axis, where it is known.
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
    most: Array | None = None

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
        if "value" in changes:
            out.most = None
            if "norms" not in changes:
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
