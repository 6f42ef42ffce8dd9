"""Tensors that blocks give: slices put side by side, or parts that are added up."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from symattn.truth.double.approx import FULL, UP, Approx, Array, U, outward, rows, times
from symattn.truth.double.arithmetic import multiply

__all__ = ["Gathered", "as_approx", "light"]


class Gathered:
    """A whole tensor, filled by blocks; where it is put together from slices, their coefficients are kept as they are.

    Parameters
    ----------
    shape
        The shape of the whole.
    reduce
        How blocks that give parts of the same elements are put together; ``None`` where each element comes from one block.

    >>> whole = Gathered([2], "sum")
    >>> for k in range(3):
    ...     whole.put(Approx(np.array([0.1]), U), (slice(1, 2),))
    >>> whole.value, bool(2.9 * 0.1 * U < whole.full()[1] < 8 * 0.3 * U), float(whole.full()[0])
    (array([0. , 0.3]), True, 0.0)
    """

    def __init__(self, shape: Sequence[int], reduce: str | None) -> None:
        self.reduce = reduce
        start = {"max": -np.inf, "prod": 1.0}.get(reduce or "", 0.0)
        self.value: Array = np.full(tuple(shape), start)
        self.large = self.value.size > FULL
        self.error: Array = np.zeros((*shape[:-1], 1) if self.large and shape else tuple(shape))
        self.reach = np.zeros_like(self.error)
        self.parts: list[tuple[tuple[slice, ...], Approx]] = []
        self.nonneg = self.whole = True
        self.special = reduce == "max"

    # the running sum never exceeds the sum of sizes in ``reach``, so each addition errs by at most U times that

    def put(self, a: Approx, place: tuple[slice, ...]) -> None:
        """A part that a block gives, in the place where it belongs."""
        self.nonneg, self.whole, self.special = self.nonneg and a.nonneg, self.whole and a.whole, self.special or a.special
        whole: Any = (..., *place)
        value = self.value[whole]
        if self.reduce is None:
            value[...] = a.value
            self.parts.append((place, light(a).changed(value=value)))
            return
        where: Any = (..., *place[:-1], slice(None)) if self.large else whole
        error = self.error[where]
        if self.reduce == "sum":
            value += a.value
            if self.special:
                value[~np.isfinite(value)] = np.nan
            reach = self.reach[where]
            reach += a.size(self.large) * UP
            exact = a.exact and self.whole and bool(reach.max() <= 2.0**53)
            if not exact:
                error[...] = outward(error + a.error(self.large) + times(2 * U, reach))
            self.whole = exact
            return
        before = Approx(value.copy(), 0.0, error)
        if self.reduce == "prod":
            after = multiply(before, a)
        else:
            most = np.maximum(value, a.value)
            moved = np.maximum(before.error(self.large), a.error(self.large))
            after = Approx(most, 0.0, np.where(np.isfinite(rows(most) if self.large else most), moved, 0.0))
        value[...] = after.value
        error[...] = after.error(self.large)

    def full(self) -> Array:
        """At least ``|t - v|`` for every element."""
        if self.reduce is not None:
            return self.approx.full()
        out = np.zeros(self.value.shape)
        for place, a in self.parts:
            out[place] = a.full()
        return out

    @cached_property
    def approx(self) -> Approx:
        """The tensor for statements that read it."""
        error = self.full() if self.reduce is None else self.error
        return Approx(self.value, 0.0, error if np.any(error) else 0.0, (), self.nonneg, self.whole, self.special)


def as_approx(a: Approx | Gathered) -> Approx:
    """A tensor for statements that read it."""
    return a.approx if isinstance(a, Gathered) else a


def light(a: Approx) -> Approx:
    """The same without weights that are as large as a block, or in an array that the next block overwrites."""
    thin = tuple((c, w) for c, w in a.weights if _thin(w, a))
    if len(thin) == len(a.weights):
        return a
    more: Any = a.abs
    for c, w in a.weights:
        if not _thin(w, a):
            more = more + times(c, w.size(a.large), a.large)
    return a.changed(abs=outward(more), weights=thin)


def _thin(w: Approx, a: Approx) -> bool:
    """Whether a weight is kept with a result."""
    return w.value.size <= min(FULL, a.value.size // 4)
