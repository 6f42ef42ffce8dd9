"""What the engine gives: fixed-point numbers in pieces, as integers, fractions or enclosures when they are asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from symattn.truth.limbs.products import joined

if TYPE_CHECKING:
    from symattn.truth.enclosure import Enclosure

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Piece:
    """Some numbers in a row of the tensor made flat: ``integer 2^unit``.

    Parameters
    ----------
    start
        Place of the first.
    digits
        Integers (limbs, numbers) of 24 bits, balanced; the number is ``sum over k of digits[k] 2^(24 (L-1-k))``.
    unit
        Exponent.
    """

    start: int
    digits: npt.NDArray[np.int32] | npt.NDArray[np.int64]
    unit: int


@dataclass(frozen=True, eq=False)
class Fixed:
    """A tensor of fixed-point numbers, every one within ``radius`` of the exact value.

    Parameters
    ----------
    pieces
        The numbers in the order of the engine: batches, rows or keys, channels.
    sizes, order
        The shape in that order, and which of its axes each axis of the tensor is.
    radius
        A bound on the distance of every number from the exact value, proved beforehand.
    scale
        What the radius is small against: the largest value that a single term of the sums can have, such as max |V| for the
        output. ``radius <= scale 2^-bits`` for the bits that were asked for.
    special
        Place in the flat order of the engine -> NaN or an infinity that is the value there.

    >>> third = Fixed((Piece(0, np.array([[5]], dtype=np.int64), -4),), (1,), (0,), Fraction(1, 32), Fraction(1))
    >>> third.integers.tolist(), third.exponent, third.midpoints().tolist()
    ([5], -4, [Fraction(5, 16)])
    """

    pieces: tuple[Piece, ...]
    sizes: tuple[int, ...]
    order: tuple[int, ...]
    radius: Fraction
    scale: Fraction
    special: Mapping[int, float] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tensor."""
        return tuple(self.sizes[k] for k in self.order)

    @cached_property
    def exponent(self) -> int:
        """The values are ``integers 2^exponent``."""
        return min((p.unit for p in self.pieces), default=0)

    @cached_property
    def integers(self) -> Array:
        """The values as integers (an object array), 0 where they are special."""
        out = np.zeros(math.prod(self.sizes), dtype=object)
        for p in self.pieces:
            values = joined(p.digits.astype(np.int64))
            shift = p.unit - self.exponent
            out[p.start : p.start + len(values)] = [v << shift for v in values] if shift else values
        return self._laid(out)

    def _laid(self, flat: Array) -> Array:
        return flat.reshape(self.sizes).transpose(self.order)

    def floats(self) -> npt.NDArray[np.float64]:
        """The values as float64, off by a few units in the last place: for a first look at millions of them."""
        out = np.zeros(math.prod(self.sizes))
        for p in self.pieces:
            total = np.zeros(p.digits.shape[1])
            for k in range(p.digits.shape[0] - 1, -1, -1):
                total += np.ldexp(p.digits[k].astype(np.float64), p.unit + 24 * (p.digits.shape[0] - 1 - k))
            out[p.start : p.start + len(total)] = total
        for at, value in self.special.items():
            out[at] = value
        return np.asarray(self._laid(out))

    def midpoints(self) -> Array:
        """The values as fractions, or NaN and infinities where they are that."""
        unit = Fraction(2) ** self.exponent
        out = np.empty(math.prod(self.sizes), dtype=object)
        out[:] = [unit * v for v in self.integers.ravel().tolist()]
        out = out.reshape(self.shape)
        for index, value in self._special_places():
            out[index] = value
        return out

    def _special_places(self) -> list[tuple[tuple[int, ...], float]]:
        if not self.special:
            return []
        places = self._laid(np.arange(math.prod(self.sizes)))
        return [(tuple(int(k[0]) for k in np.nonzero(places == at)), value) for at, value in self.special.items()]

    def enclosure(self, digits: int | None = None) -> Enclosure:
        """The values with their radius, as every tier gives them; with ``digits``, which elements guarantee so many."""
        from symattn.truth.enclosure import Enclosure, status

        mid = self.midpoints()
        rad = np.full(mid.shape, self.radius, dtype=object)
        for index, _ in self._special_places():
            rad[index] = Fraction(0)
        states = [
            status(m, r, digits) if not isinstance(m, float) else "exact"
            for m, r in zip(mid.ravel().tolist(), rad.ravel().tolist(), strict=True)
        ]
        return Enclosure(mid, rad, np.array(states, dtype="<U9").reshape(mid.shape))
