"""The values of the engine behind an enclosure: limbs that become integers and fractions one by one, when they are asked for."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from symattn.formats import Exact, above
from symattn.truth.limbs.fixed import Fixed
from symattn.truth.values import SLACK, TINY, Doubles, Each, Values


class Limbs(Values):
    """Fixed-point numbers, all within one radius.

    >>> from symattn.truth.limbs.fixed import Piece
    >>> one = Fixed((Piece(0, np.array([[5, 6]]), -4),), (2,), (0,), Fraction(1, 32), Fraction(1), {1: -math.inf})
    >>> Limbs(one).exact()
    ([Fraction(5, 16), -inf], [Fraction(1, 32), Fraction(0, 1)])
    """

    def __init__(self, fixed: Fixed, places: npt.NDArray[np.int64] | None = None) -> None:
        self.fixed = fixed
        self.places = fixed.laid(np.arange(math.prod(fixed.sizes))) if places is None else places
        self.shape = self.places.shape

    def approx(self) -> tuple[Doubles, Doubles]:
        """See :class:`Values`."""
        mids, rads = self._mids(), self._rads()
        wide = np.where(self._special(), 0.0, (rads + np.abs(mids) * 2.0**-48 + 64 * TINY) * SLACK)
        return mids, wide

    def magnitudes(self) -> tuple[Doubles, Doubles]:
        """See :class:`Values`."""
        return np.abs(self._mids()), self._rads()

    def _mids(self) -> Doubles:
        flat = self.fixed.floats().transpose(np.argsort(self.fixed.order)).ravel()
        return np.asarray(flat[self.places], dtype=np.float64)

    def _rads(self) -> Doubles:
        return np.where(self._special(), 0.0, above(self.fixed.radius))

    def _special(self) -> npt.NDArray[np.bool_]:
        return np.isin(self.places, list(self.fixed.special))

    def exact(self, at: npt.NDArray[np.intp] | None = None) -> tuple[list[Exact], list[Exact]]:
        """See :class:`Values`."""
        places = self.places.ravel() if at is None else self.places.ravel()[at]
        unit = Fraction(2) ** self.fixed.exponent
        special = self.fixed.special
        whole = self.fixed.some(places)
        mids: list[Exact] = [special[p] if p in special else unit * v for p, v in zip(places.tolist(), whole, strict=True)]
        return mids, [Fraction(0) if p in special else self.fixed.radius for p in places.tolist()]

    def points(self) -> npt.NDArray[np.bool_]:
        """See :class:`Values`."""
        return np.asarray(self._special() | (self.fixed.radius == 0))

    def unknown(self) -> npt.NDArray[np.bool_]:
        """See :class:`Values`."""
        return np.isinf(self._rads())

    def each(self, f: Each) -> Values:
        """See :class:`Values`."""
        return Limbs(self.fixed, f(self.places))
