"""Boxes: a float64 value, how far it is from the true one, and how far from the true one a kernel may be.

All arrays of a box broadcast against each other. Every rule here returns a box that is right whatever the roundings were:
radii are inflated and lower bounds deflated by a few float64 roundings after each operation, so that the evaluation of the
bound in float64 is itself covered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from symattn.readings.units import Unit, fits, representable

Array: TypeAlias = "np.ndarray[Any, Any]"

U = 2.0**-53
"""Unit roundoff of float64, in which the values of boxes are computed."""
OWN_FUNCTION = 2.0**-50
"""Relative error of NumPy's float64 functions (4 ulp)."""
OWN_TINY = 2.0**-1022
OWN_NORMAL = 2.0**-1021
"""Products of float64 numbers from here on have no absolute error."""
UP, DOWN = 1 + 2.0**-49, 1 - 2.0**-49
"""Outward: what a radius or a lower bound is multiplied with, to cover the float64 roundings of its own evaluation."""


@dataclass(frozen=True)
class Box:
    """An enclosure of a tensor: the true values t and the computed values k of a kernel.

    ``low`` and ``least`` may be given as functions: few boxes are ever asked for them.

    Parameters
    ----------
    value
        The values v as float64 computes them.
    bound
        Every conforming kernel has ``|k - t| <= bound``; infinite where the declared arithmetic promises nothing.
    low
        ``|k| >= low``, and k has the sign of v where ``low > 0``.
    own
        ``|v - t| <= own``. For tensors below a row maximum, t belongs to the maximum that the kernel used.
    nonneg
        No computed value is negative.
    index
        Exact index arithmetic (numbers, indices, sizes), not yet in a float format.
    held
        Name of the format that holds the computed value; ``None`` for an input, exact as it came.
    gauge
        A ``range_only`` tensor: whatever value the kernel used, the outputs do not depend on it.
    rescalings
        How often a sum over this tensor may be multiplied by a correction of the running maximum.
    least
        ``|t| >= least``, where more is known than ``|v| - own``.
    """

    value: Array
    bound: Array
    low: Array
    own: Array
    nonneg: bool = False
    index: bool = False
    held: str | None = None
    gauge: bool = False
    rescalings: int = 0
    least: Array | Callable[[], Array] | None = None

    @cached_property
    def true_size(self) -> Array:
        """At least ``|t|``."""
        return np.abs(self.value) if self.exact else np.abs(self.value) + self.own

    @cached_property
    def true_low(self) -> Array:
        """At most ``|t|``."""
        least = np.maximum(np.abs(self.value) - self.own, 0.0) * DOWN
        return least if self.least is None else np.maximum(least, _found(self.least))

    @cached_property
    def size(self) -> Array:
        """At least ``|k|``."""
        if self.exact:
            return self.true_size
        size = reached(self.value, self.own, self.bound)
        size *= UP
        return size

    @cached_property
    def exact(self) -> bool:
        """Whether value, true value and computed value are one."""
        return not (some(self.own) or some(self.bound))

    def map(self, f: Callable[[Array], Array]) -> Box:
        """The box with every array moved by ``f`` (a transposition, a selection)."""
        known = self.least
        least = None if known is None else (lambda: f(_found(known)))
        out = self.changed(value=f(self.value), bound=f(self.bound), own=f(self.own), low=lambda: f(self.low), least=least)
        out.__dict__.update({n: f(self.__dict__[n]) for n in _SIZES if n in self.__dict__})
        return out

    def marked(self, **marks: Any) -> Box:
        """The same box with other marks; what has been found of its sizes is kept."""
        out = self.changed(low=lambda: self.low, **marks)
        out.__dict__.update({n: self.__dict__[n] for n in (*_SIZES, "exact", "_held_by") if n in self.__dict__})
        return out

    def true(self, own: Array) -> Box:
        """The box of the true values alone."""
        return self.changed(low=lambda: self.low, bound=np.zeros_like(self.bound), own=own, index=False)

    def changed(self, *, low: Array | Callable[[], Array], **changes: Any) -> Box:
        """The box with changes, without asking for ``low``."""
        return replace(self, low=low, **changes)  # type: ignore[arg-type]

    @cached_property
    def _held_by(self) -> dict[str, bool]:
        return {}

    def held_by(self, format: str) -> bool:
        """Whether the box is exact and the format has all its values."""
        if format not in self._held_by:
            self._held_by[format] = self.exact and bool(np.all(representable(self.value, format)))
        return self._held_by[format]


class _Late:
    """A field that may be given as a function, called when the field is first read."""

    def __get__(self, box: Box | None, owner: type) -> Array:
        if box is None:
            raise AttributeError("low")
        box.__dict__["_low"] = found = _found(box.__dict__["_low"])
        return found

    def __set__(self, box: Box, value: Array | Callable[[], Array]) -> None:
        box.__dict__["_low"] = value


def _found(x: Array | Callable[[], Array]) -> Array:
    if not callable(x):
        return x
    with np.errstate(all="ignore"):
        return x()


Box.low = _Late()  # type: ignore[assignment]

_SIZES = ("true_size", "true_low", "size")


def exactly(value: Any, **marks: Any) -> Box:
    """The box of numbers that everyone has exactly.

    >>> exactly(2.0).exact
    True
    """
    v = np.asarray(value, dtype=np.float64)
    zero = np.zeros_like(v)
    return Box(v, zero, np.abs(v), zero, nonneg=bool(np.all(v >= 0)), **marks)


def some(radius: Array) -> bool:
    """Whether a radius is not 0 everywhere.

    >>> some(np.zeros(3)), some(np.array([0.0, np.nan]))
    (False, True)
    """
    if np.ndim(radius) and np.size(radius) and radius[(0,) * np.ndim(radius)] != 0:
        return True
    return bool(np.max(radius, initial=0.0) != 0)


def reached(value: Array, *radii: Array | float) -> Array:
    """``|value| + radii``, in a new array.

    >>> reached(np.array([-1.0, 2.0]), np.array(0.5), 1.0)
    array([2.5, 3.5])
    """
    out = np.asarray(np.abs(value))
    shape = np.broadcast_shapes(out.shape, *map(np.shape, radii))
    out = out if out.shape == shape else np.array(np.broadcast_to(out, shape))
    for r in radii:
        out += r
    return out


def finish(
    value: Array,
    own: Array,
    bound: Array,
    low: Array | Callable[[], Array] | None,
    u: float | Array,
    tiny: float | Array,
    nonneg: bool = False,
    **marks: Any,
) -> Box:
    """A box after one rounding of the kernel of relative size ``u`` and absolute size ``tiny``; zeros stay zeros."""
    own, bound = _radius(own), _radius(bound)
    if not (_is_zero(u) and _is_zero(tiny)):
        bound = _rounded(bound, value, own, u, tiny)

    def lowest() -> Array:
        rest = np.abs(value) - (own + bound)
        rest = np.asarray(np.maximum(rest, 0.0))
        if low is not None:
            least = _found(low) * (1 - u) - tiny
            rest = np.fmax(rest, least if nonneg else np.where(least > 0, least, 0.0))
            rest = np.maximum(rest, 0.0)
        rest = np.asarray(rest)
        rest *= DOWN
        return np.where(np.isnan(rest), 0.0, rest) if np.isnan(np.max(rest, initial=0.0)) else rest

    return Box(value, bound, lowest, own, nonneg=nonneg, **marks)  # type: ignore[arg-type]


def _radius(r: Array) -> Array:
    """A radius after its own evaluation: rounded up, infinite where it is no number."""
    r = np.asarray(r * UP)
    return np.where(np.isnan(r), np.inf, r) if np.isnan(np.max(r, initial=0.0)) else r


def _rounded(bound: Array, value: Array, own: Array, u: float | Array, tiny: float | Array) -> Array:
    """The bound after one rounding, which adds nothing to a zero and nothing to an infinite value."""
    error = reached(value, own, bound, *(np.zeros(np.shape(x)) for x in (u, tiny) if np.ndim(x)))
    there = True if _is_zero(tiny) or np.min(error, initial=np.inf) > 0 else error > 0
    finite = bool(np.isfinite(np.max(error, initial=0.0)))
    error *= u
    if there is True:
        error += tiny
    else:
        error += tiny * there
    if not finite:
        error = np.where(np.isfinite(value), error, 0.0)
    error += bound
    error *= UP
    return error


def stored(b: Box, unit: Unit) -> Box:
    """The box after it is rounded to a format, unless that holds it already; what overflows has no bound."""
    before = b
    if b.held is None and b.held_by(unit.name):
        return b.marked(held=unit.name)
    if b.held is None:  # an input, or a copy of one: a number that the format has is not rounded
        known = (b.bound == 0) & (b.own == 0) & representable(b.value, unit.name)
        u, tiny = np.where(known, 0.0, unit.u), np.where(known, 0.0, unit.tiny)
        b = finish(b.value, b.own / UP, b.bound / UP, lambda: before.low, u, tiny, b.nonneg, **marks_of(b))
    elif not fits(b.held, unit.name):
        b = finish(b.value, b.own / UP, b.bound / UP, lambda: before.low, unit.u, unit.tiny, b.nonneg, **marks_of(b))
    if not _most(b) <= unit.top:
        over = (b.size > unit.top) & np.isfinite(b.value)
        if np.any(over):
            b = replace(b, bound=np.where(over, np.inf, b.bound), low=np.where(over, 0.0, b.low))
    return b.marked(held=unit.name)


def _most(b: Box) -> float:
    """At least ``|k|`` of every element, or no number: by the largest of each array, where no array of sizes was needed yet."""
    if "size" in b.__dict__ or b.value.size == 0:
        return float(np.max(b.size, initial=0.0))
    far = max(float(np.max(b.value)), -float(np.min(b.value)))
    return (far + float(np.max(b.own)) + float(np.max(b.bound))) * UP


def marks_of(*boxes: Box) -> dict[str, Any]:
    """The marks that a result takes from what it is made of."""
    return {"rescalings": max(b.rescalings for b in boxes)}


def settled(b: Box, unit: Unit) -> Box:
    """Index arithmetic brought into the compute format: exact where it fits, else within two roundings."""
    if not b.index:
        return b
    whole = b.value == np.rint(b.value)
    known = whole | ~np.isfinite(b.value) | _dyadic(b.value)
    own = np.where(known, 0.0, 4 * U * np.abs(b.value))
    fits_in = representable(b.value, unit.name) & known
    bound = np.where(fits_in, 0.0, 2 * unit.u * np.abs(b.value) + unit.tiny)
    low = np.maximum(np.abs(b.value) - (own + bound), 0.0)
    return replace(b, own=own, bound=bound, low=low, index=False, held=unit.name)


def _dyadic(v: Array) -> Array:
    """Where a quotient of integers below 2^29 has at most 24 bits: then float64 did not round it (an odd divisor gives 53)."""
    scaled = np.ldexp(np.frexp(v)[0], 24)
    return scaled == np.rint(scaled)


def select(mask: Array, kept: Box, other: float = 0.0) -> Box:
    """The box where the mask holds, and an exact number elsewhere."""
    exact = 0.0 if np.isnan(other) else abs(other)
    least = kept.least
    return kept.changed(
        value=np.where(mask, kept.value, other),
        bound=np.where(mask, kept.bound, 0.0),
        low=lambda: np.where(mask, kept.low, exact),
        own=np.where(mask, kept.own, 0.0),
        nonneg=kept.nonneg and other >= 0,
        least=None if least is None else (lambda: np.where(mask, _found(least), exact)),
    )


def as_given(b: Box, error: Array | float = 0.0) -> Box:
    """The box of a tensor whose computed value counts as the true one, but for an error that is carried on.

    What a kernel computed from may lie anywhere within ``own + bound`` of v.
    """
    if b.gauge:
        return b

    def low() -> Array:
        return b.low

    bound = np.zeros_like(b.bound)
    if not _is_zero(error):
        bound += error
    own = np.asarray(b.own + b.bound)
    own *= UP
    return b.changed(own=own, bound=bound, low=low, least=low if _is_zero(error) else None)


def _is_zero(x: Array | float) -> bool:
    return isinstance(x, float) and x == 0.0


def refined(b: Box, bound: Array) -> Box:
    """The box with a smaller bound that was found in another way."""
    bound = np.fmin(b.bound, bound)
    least = np.maximum(np.abs(b.value) - (b.own + bound), 0.0) * DOWN
    return replace(b, bound=bound, low=np.fmax(b.low, np.where(np.isnan(least), 0.0, least)))


def zeros(shape: Sequence[int]) -> Box:
    """A box of exact zeros, to be filled by :func:`placed`."""
    return Box(np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(shape), nonneg=True)


def placed(whole: Box, part: Box, place: tuple[Any, ...], first: bool) -> Box:
    """The box with another one put at ``place`` of its arrays, in place; its marks hold for both, zeros apart (``first``)."""
    for name in ("value", "bound", "low", "own"):
        getattr(whole, name)[place] = getattr(part, name)
    held = part.held if first else whole.held
    if held is not None and held != part.held:
        held = None if part.held is None else part.held if fits(held, part.held) else held if fits(part.held, held) else "float64"
    return replace(
        whole,
        nonneg=whole.nonneg and part.nonneg,
        held=held,
        gauge=whole.gauge or part.gauge,
        rescalings=max(whole.rescalings, part.rescalings),
    )
