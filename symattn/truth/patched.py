"""Values put together of others: a tensor of which some elements are what another tier found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from symattn.formats import Exact
from symattn.truth.values import Array, Doubles, Each, Objects, Values, object_array

__all__ = ["Joined", "Patched"]


class Joined(Values):
    """Values of several kinds one after another, each flat: what single elements of a tensor were found to be.

    >>> from symattn.truth.values import Floats, Scaled
    >>> Joined([Floats(np.array([1.0]), np.array([0.0])), Scaled(np.array([3]), -1, 0)]).exact()[0]
    [Fraction(1, 1), Fraction(3, 2)]
    """

    def __init__(self, pieces: Sequence[Values]) -> None:
        self.pieces = tuple(pieces)
        self.shape = (sum(p.size for p in self.pieces),)
        self._starts = np.cumsum([0, *(p.size for p in self.pieces)])

    def approx(self) -> tuple[Doubles, Doubles]:
        """See :class:`Values`."""
        found = [p.approx() for p in self.pieces]
        return np.concatenate([m for m, _ in found]), np.concatenate([r for _, r in found])

    def magnitudes(self) -> tuple[Doubles, Doubles]:
        """See :class:`Values`."""
        found = [p.magnitudes() for p in self.pieces]
        return np.concatenate([m for m, _ in found]), np.concatenate([r for _, r in found])

    def exact(self, at: npt.NDArray[np.intp] | None = None) -> tuple[list[Exact], list[Exact]]:
        """See :class:`Values`."""
        at = np.arange(self.size) if at is None else at
        mids, rads = np.empty(len(at), dtype=object), np.empty(len(at), dtype=object)
        of = np.searchsorted(self._starts, at, side="right") - 1
        for k, p in enumerate(self.pieces):
            here = np.flatnonzero(of == k)
            mids[here], rads[here] = map(object_array, p.exact(at[here] - self._starts[k]))
        return mids.tolist(), rads.tolist()

    def points(self) -> npt.NDArray[np.bool_]:
        """See :class:`Values`."""
        return np.concatenate([p.points() for p in self.pieces])

    def lost(self) -> npt.NDArray[np.bool_]:
        """See :class:`Values`."""
        return np.concatenate([p.lost() for p in self.pieces])

    def each(self, f: Each) -> Values:
        """See :class:`Values`."""
        mids, rads = map(object_array, self.exact())
        return Objects(f(mids), f(rads))


class Patched(Values):
    """Values of which some elements are others.

    Parameters
    ----------
    base
        The values of the tensor.
    patch
        Flat values.
    source
        Integers of the tensor's shape: where in the patch an element is found, -1 where it is that of the base.

    >>> from symattn.truth.values import Floats
    >>> ones = Floats(np.ones(3), np.zeros(3))
    >>> Patched(ones, Floats(np.array([2.0]), np.zeros(1)), np.array([-1, 0, -1])).exact()[0]
    [Fraction(1, 1), Fraction(2, 1), Fraction(1, 1)]
    """

    def __init__(self, base: Values, patch: Values, source: Array) -> None:
        self.base, self.patch, self.source, self.shape = base, patch, source, base.shape

    def _over(self, below: Array, over: Array) -> Array:
        return np.where(self.source >= 0, over[np.maximum(self.source, 0)], below) if over.size else below

    def approx(self) -> tuple[Doubles, Doubles]:
        """See :class:`Values`."""
        (m, r), (over_m, over_r) = self.base.approx(), self.patch.approx()
        return self._over(m, over_m), self._over(r, over_r)

    def magnitudes(self) -> tuple[Doubles, Doubles]:
        """See :class:`Values`."""
        (m, r), (over_m, over_r) = self.base.magnitudes(), self.patch.magnitudes()
        return self._over(m, over_m), self._over(r, over_r)

    def exact(self, at: npt.NDArray[np.intp] | None = None) -> tuple[list[Exact], list[Exact]]:
        """See :class:`Values`."""
        at = np.arange(self.size) if at is None else at
        source = self.source.ravel()[at]
        mids, rads = np.empty(len(at), dtype=object), np.empty(len(at), dtype=object)
        for values, here, of in (
            (self.base, np.flatnonzero(source < 0), at),
            (self.patch, np.flatnonzero(source >= 0), source),
        ):
            mids[here], rads[here] = map(object_array, values.exact(of[here]))
        return mids.tolist(), rads.tolist()

    def points(self) -> npt.NDArray[np.bool_]:
        """See :class:`Values`."""
        return self._over(self.base.points(), self.patch.points())

    def lost(self) -> npt.NDArray[np.bool_]:
        """See :class:`Values`."""
        return self._over(self.base.lost(), self.patch.lost())

    def each(self, f: Each) -> Values:
        """See :class:`Values`."""
        return Patched(self.base.each(f), self.patch, f(self.source))
