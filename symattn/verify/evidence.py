"""What a verdict was made of, element by element: kept for pictures and files where a run is asked to, and not otherwise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from symattn import formats
from symattn.intake import Array
from symattn.verify.compare import Element, judge_element


@dataclass(frozen=True, eq=False, repr=False)
class Evidence:
    """One tensor of a kernel, its exact values and their bounds, all of the tensor's shape.

    Parameters
    ----------
    kernel
        What the kernel gave, in its own dtype.
    mid, rad
        Object arrays: midpoint and radius of the enclosure of the exact value, as ``Fraction`` or special floats.
    bound
        The greatest error allowed, float64.

    >>> half = np.array([Fraction(1, 2)], dtype=object)
    >>> e = Evidence(np.array([0.75]), half, half * 0, np.array([0.125]))
    >>> e.shares().tolist(), e.states().tolist(), [a.tolist() for a in e.rounded()]
    ([2.0], ['out'], [[0.5], [0.0]])
    """

    kernel: Array
    mid: Array
    rad: Array
    bound: Array

    def __repr__(self) -> str:
        return f"<Evidence of shape {self.kernel.shape}>"

    def shares(self) -> npt.NDArray[np.float64]:
        """The error of each element as a share of its bound: above 1 it is out; inf where it misses a special value."""
        return np.array([_float(x.share) for x in self._judged()], dtype=np.float64).reshape(self.kernel.shape)

    def states(self) -> Array:
        """The state of each element: ``within``, ``out``, ``undecided``, ``unbounded``."""
        return np.array([x.state for x in self._judged()], dtype="<U9").reshape(self.kernel.shape)

    def rounded(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """The midpoints rounded once to float64, and radii (rounded up) within which the exact values lie around them."""
        mids = formats.to_array(self.mid, "float64")
        rads = [_radius(float(v), m, r) for v, m, r in zip(mids.ravel(), self.mid.ravel(), self.rad.ravel(), strict=True)]
        return mids, np.array(rads, dtype=np.float64).reshape(mids.shape)

    def _judged(self) -> list[Element]:
        f = formats.get(self.kernel.dtype)
        rows = zip(
            np.ndindex(self.kernel.shape),
            self.kernel.astype(np.float64).ravel().tolist(),
            self.mid.ravel(),
            self.rad.ravel(),
            self.bound.ravel().tolist(),
            strict=True,
        )
        return [judge_element(at, formats.exact(k), t, r, b, f) for at, k, t, r, b in rows]


def _float(x: Any) -> float:
    try:
        return float(x)
    except OverflowError:
        return math.inf


def _radius(value: float, mid: Any, rad: Any) -> float:
    if isinstance(rad, float):
        return rad
    if not isinstance(mid, Fraction):
        return 0.0
    return math.inf if not math.isfinite(value) else formats.above(abs(Fraction(value) - mid) + rad)
