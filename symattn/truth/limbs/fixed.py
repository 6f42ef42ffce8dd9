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
CHUNK = 1 << 12
"""Numbers that are made float64 at a time: what is in between stays in the cache."""


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
        return self.laid(out)

    def laid(self, flat: Array) -> Array:
        """Something for every number in the order of the engine, in the shape of the tensor."""
        return flat.reshape(self.sizes).transpose(self.order)

    @cached_property
    def _starts(self) -> Array:
        return np.array([p.start for p in self.pieces], dtype=np.int64)

    def some(self, places: npt.NDArray[np.int64]) -> list[int]:
        """The integers at some places in the order of the engine, without those of the others."""
        out = np.zeros(len(places), dtype=object)
        order = np.argsort(self._starts, kind="stable")
        which = order[np.maximum(np.searchsorted(self._starts[order], places, side="right") - 1, 0)] if len(order) else order
        for k in np.unique(which).tolist():
            p, mine = self.pieces[k], np.flatnonzero(which == k)
            at = places[mine] - p.start
            mine, at = mine[(at >= 0) & (at < p.digits.shape[1])], at[(at >= 0) & (at < p.digits.shape[1])]
            values = joined(p.digits[:, at].astype(np.int64))
            out[mine] = [v << (p.unit - self.exponent) for v in values]
        return out.tolist()

    def floats(self) -> npt.NDArray[np.float64]:
        """The values as float64, off by a few units in the last place: for a first look at millions of them."""
        out = np.zeros(math.prod(self.sizes))
        for p in self.pieces:
            units = [p.unit + 24 * (len(p.digits) - 1 - k) for k in range(len(p.digits))]
            plain = all(-900 < u < 900 for u in units)  # a product with the power of two is exact then, and faster
            for b in range(0, p.digits.shape[1], CHUNK):
                digits = p.digits[:, b : b + CHUNK].astype(np.float64)
                total = out[p.start + b : p.start + b + digits.shape[1]]
                for k in range(len(units) - 1, -1, -1):
                    total += digits[k] * 2.0 ** units[k] if plain else np.ldexp(digits[k], units[k])
        for at, value in self.special.items():
            out[at] = value
        return np.asarray(self.laid(out))

    def midpoints(self) -> Array:
        """The values as fractions, or NaN and infinities where they are that."""
        unit = Fraction(2) ** self.exponent
        flat = self.integers.transpose(np.argsort(self.order)).ravel()
        out = np.empty(len(flat), dtype=object)
        out[:] = [unit * v for v in flat.tolist()]
        for at, value in self.special.items():
            out[at] = value
        return self.laid(out)

    def enclosure(self, digits: int | None = None) -> Enclosure:
        """The values with their radius, as every tier gives them; with ``digits``, which elements guarantee so many."""
        from symattn.truth.enclosure import classified
        from symattn.truth.limbs.values import Limbs
        from symattn.truth.questions import Digits, Nothing

        return classified("", Limbs(self), Digits(digits) if digits else Nothing(), "limbs")
