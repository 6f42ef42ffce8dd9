"""What float64 gives of a tensor: midpoints, radii that are found when they are asked for, and what they rest on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from symattn.truth.double.approx import Approx, Array
from symattn.truth.double.gathered import Gathered

__all__ = ["Bounded"]


@dataclass(frozen=True, eq=False)
class Bounded:
    """Float64 values of a tensor, each within a radius of the exact one.

    Parameters
    ----------
    approx
        The values with their coefficients.
    assumption
        What the radii rest on besides IEEE arithmetic: a sentence about the functions of a library; ``None`` where they are
        proven.

    >>> import numpy as np
    >>> third = Bounded(Approx(np.array([1 / 3]), 2.0**-53), None)
    >>> third.mid, bool(third.rad[0] < 2.0**-54), third.status
    (array([0.33333333]), True, 'enclosed')
    """

    approx: Approx | Gathered
    assumption: str | None

    @property
    def mid(self) -> Array:
        """The values; infinite where that is the value, NaN where nothing is known."""
        return self.approx.value

    @cached_property
    def rad(self) -> Array:
        """At least the distance of each value from the exact one: 0 at an infinity, infinite where nothing is known."""
        return self.approx.full()

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tensor."""
        return self.mid.shape

    @property
    def status(self) -> str:
        """``enclosed``, or ``bounded`` where there is an assumption."""
        return "enclosed" if self.assumption is None else "bounded"
