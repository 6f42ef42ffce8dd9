"""What is asked of every element - so many digits, one number of a format - as rules that say which elements are still open.

A question knows enclosures and nothing of how they are found; escalation asks it after each tier.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from symattn.formats import Exact, Format
from symattn.readings.specials import Special
from symattn.truth.neighbours import rounded
from symattn.truth.values import Balls, Values

__all__ = ["All", "Asked", "Digits", "Nothing", "Question", "Rounding", "floor_of", "guaranteed", "tiny"]

Bools: TypeAlias = npt.NDArray[np.bool_]
Positions: TypeAlias = "npt.NDArray[np.intp] | None"
MARGIN = 2.0**-24
"""How far from its threshold a radius in float64 decides; nearer, fractions do."""


class Question(Protocol):
    """What is asked of each element."""

    @property
    def bits(self) -> int:
        """The relative precision below which no element is expected to be decided."""

    def open(self, name: str, values: Values, at: Positions = None) -> Bools:
        """Where it is not decided yet; ``at`` says which elements of the tensor the values are, where they are not all."""


@dataclass(frozen=True)
class Nothing:
    """No question: an enclosure of finite radius is all that is wanted."""

    bits: int = 0

    def open(self, name: str, values: Values, at: Positions = None) -> Bools:
        """Where nothing is known."""
        return values.unknown()


@dataclass(frozen=True)
class Digits:
    """So many significant digits: the radius is at most half a unit of the last of them.

    >>> import numpy as np
    >>> from symattn.truth.values import Floats
    >>> Digits(9).open("x", Floats(np.array([1.0, 1.0, 0.0]), np.array([1e-10, 1e-9, 0.0]))).tolist()
    [False, True, False]
    """

    count: int

    @property
    def bits(self) -> int:
        """The bits that hold so many digits."""
        return math.ceil(self.count * math.log2(10))

    def open(self, name: str, values: Values, at: Positions = None) -> Bools:
        """Where the radius is larger, or nothing is known."""
        if isinstance(values, Balls):
            return self._open_balls(values)
        mid, rad = (a.ravel() for a in values.magnitudes())
        with np.errstate(divide="ignore", invalid="ignore"):
            spare = np.log2(mid) - np.log2(rad) - 1 - self.count * math.log2(10)
        points = values.points().ravel()
        normal = (mid > 1e-290) & (mid < 1e290) & (rad > 1e-290) & (rad < 1e290)
        found = ~points & ~(normal & (spare > MARGIN))
        self._exactly(values, found, found & ~(normal & (spare < -MARGIN)) & ~np.isinf(rad))
        return found.reshape(values.shape)

    def _open_balls(self, values: Balls) -> Bools:
        """Told without a fraction but for balls that are just good enough."""
        few, enough = self.bits - 3, self.bits + 3  # rad <= |mid| 2^-enough, hence 2 rad 10^digits <= |mid| / 4
        balls = values.balls.ravel().tolist()
        accuracy = [enough if isinstance(x, Special) or x.is_exact() else x.rel_accuracy_bits() for x in balls]
        found = np.array([a < enough for a in accuracy], dtype=bool)
        self._exactly(values, found, np.array([few <= a < enough for a in accuracy], dtype=bool))
        return found.reshape(values.shape)

    def _exactly(self, values: Values, found: Bools, doubtful: Bools) -> None:
        at = np.flatnonzero(doubtful)
        if at.size:
            found[at] = [not guaranteed(m, r, self.count) for m, r in zip(*values.exact(at), strict=True)]


def guaranteed(mid: Exact, rad: Exact, digits: int) -> bool:
    """Whether a radius guarantees so many significant digits: ``2 rad 10^digits <= |mid| - rad``.

    >>> guaranteed(Fraction(1, 3), Fraction(1, 10**6), 5), guaranteed(Fraction(1, 3), Fraction(1, 10**6), 8)
    (True, False)
    """
    if rad == 0:
        return True
    if isinstance(rad, float) or isinstance(mid, float):
        return False
    return rad.numerator * (2 * 10**digits + 1) * mid.denominator <= abs(mid.numerator) * rad.denominator


@dataclass(frozen=True)
class Rounding:
    """The correctly rounded value in a format: both ends of an enclosure round to one number."""

    format: Format

    @property
    def bits(self) -> int:
        """One more than the format has."""
        return self.format.precision + 1

    def open(self, name: str, values: Values, at: Positions = None) -> Bools:
        """Where they round to two."""
        return rounded(values, self.format).open


@dataclass(frozen=True)
class All:
    """Several questions at once: an element is decided when each of them is."""

    questions: tuple[Question, ...]

    @property
    def bits(self) -> int:
        """The most that one of them needs."""
        return max(q.bits for q in self.questions)

    def open(self, name: str, values: Values, at: Positions = None) -> Bools:
        """Where one of them is open."""
        found = np.zeros(values.shape, dtype=bool)
        for q in self.questions:
            found |= q.open(name, values, at)
        return found


@dataclass(frozen=True)
class Asked:
    """A question of the user: ``rule(name, values, at)`` gives where the elements at some flat positions are open.

    The values are flat; ``at`` holds their positions in the flat tensor.
    """

    rule: Callable[[str, Values, npt.NDArray[np.intp]], npt.ArrayLike]
    bits: int = 24

    def open(self, name: str, values: Values, at: Positions = None) -> Bools:
        """Where the rule says so."""
        flat = values.each(lambda a: a.reshape(-1))
        found = self.rule(name, flat, np.arange(values.size) if at is None else at)
        return np.asarray(found, dtype=bool).reshape(values.shape)


def floor_of(found: Mapping[str, Values], digits: int) -> Fraction:
    """``10^(-2 digits)`` of the size of the largest values: below it an element is tiny."""
    best = Fraction(0)
    for values in found.values():
        if not values.size:
            continue
        mid = values.magnitudes()[0].ravel()
        special = np.isnan(mid) | (values.points().ravel() & ~np.isfinite(mid))  # an infinity that is a value counts for nothing
        finite = np.where(special, -1.0, mid)
        (m,), (r,) = values.exact(np.array([np.argmax(finite)]))
        if isinstance(m, Fraction) and isinstance(r, Fraction):
            best = max(best, abs(m) - r)
    return best / 10 ** (2 * digits)


def tiny(values: Values, at: npt.NDArray[np.intp], floor: Fraction, *, around_zero: bool = False) -> list[bool]:
    """Whether elements at some flat positions are certainly at most ``floor``, and, where asked, hold 0.

    >>> import numpy as np
    >>> from symattn.truth.values import Floats
    >>> x = Floats(np.array([0.0, 1e-30, 1e-9]), np.array([1e-31, 1e-31, 0.0]))
    >>> tiny(x, np.arange(3), Fraction(1, 10**20)), tiny(x, np.arange(3), Fraction(1, 10**20), around_zero=True)
    ([True, True, False], [True, False, False])
    """
    return [
        isinstance(m, Fraction) and isinstance(r, Fraction) and abs(m) + r <= floor and (not around_zero or abs(m) <= r)
        for m, r in zip(*values.exact(at), strict=True)
    ]
