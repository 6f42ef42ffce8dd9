"""Which elements of a tensor are judged in exact arithmetic: all that float64 intervals do not show to be within and small.

For a finite kernel element k and a truth within r of the float64 number m, the error ``|k - truth|`` lies within
``r + |k - m| 2^-52`` of the float64 number ``|k - m|``; so do its share of the bound and its ulps, relative to these. An element
is left out where its error is certainly within the bound and certainly below the greatest error, share and ulps of others.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from symattn.formats import Format
from symattn.intake import Array

__all__ = ["surely_told", "to_judge"]

OUTWARD = 2.0**-50
"""Relative; covers the few float64 roundings of each quantity."""
SMALLEST = 2.0**-1060
"""Absolute; covers what underflows."""

CONTENDERS = 64
"""Of elements that float64 cannot tell apart so many are taken; the others exceed the greatest of them by 2^-48 of it at most."""


def to_judge(kernel: Array, mid: Array, rad: Array, bound: Array, format: Format) -> npt.NDArray[np.intp]:
    """The flat indices of the elements that may be out, undecided or without a bound, or the greatest in some measure.

    Parameters
    ----------
    kernel
        The tensor, float64.
    mid, rad
        Float64 arrays of the same shape that enclose the truth; an infinite radius where it is special or unknown.
    bound
        Float64; the greatest error that is allowed.
    format
        In whose ulps errors are counted.

    >>> from symattn.formats import get
    >>> k = np.array([1.0, 1.0, 1.0, 1.0])
    >>> t = np.array([1.0, 1.001, 1.0001, 1.05])
    >>> to_judge(k, t, 0 * t, np.array([0.1, 0.1, 0.1, 0.1]), get("float32")).tolist()
    [0, 3]
    """
    k, m, r, b = (np.asarray(x, dtype=np.float64).ravel() for x in (kernel, mid, rad, bound))
    if not k.size:
        return np.zeros(0, dtype=np.intp)
    with np.errstate(all="ignore"):
        error = np.abs(k - m)
        slack = (error * OUTWARD + r) * (1 + OUTWARD) + SMALLEST
        high = (error + slack) * (1 + OUTWARD)
        low = np.where(error > 2 * slack + 2 * r, (error - slack) * (1 - OUTWARD), 0.0)  # an error below the radius counts as 0
        known = np.isfinite(k) & np.isfinite(m) & np.isfinite(slack) & np.isfinite(b)
        within = known & (high + r <= b * (1 - OUTWARD))
        nothing = within & (error == 0) & (r == 0)  # not off at all: no measure of it counts
        wanted = ~within
        size, one = np.abs(m), np.ones_like(k)
        for most, unit in ((one, one), (b, b), (_ulps(size + r, format), _ulps(np.maximum(size - r, 0.0), format))):
            least = np.max(np.where(within & (most > 0), low / most, 0.0)) * (1 - OUTWARD)
            reach = high / unit * (1 + OUTWARD)
            contend = np.flatnonzero(within & ~nothing & (reach >= least))
            wanted[contend[np.argsort(-reach[contend], kind="stable")[:CONTENDERS]]] = True
    wanted[0] = True  # where nothing is off the first element is the worst
    return np.flatnonzero(wanted)


def surely_told(kernel: Array, mid: Array, rad: Array, bound: Array) -> npt.NDArray[np.bool_]:
    """Where float64 shows that an element is within its bound, or out of it; the arguments as for :func:`to_judge`.

    >>> surely_told(np.ones(3), np.array([1.0, 1.5, 1.25]), np.full(3, 1e-9), np.full(3, 0.25)).tolist()
    [True, True, False]
    """
    with np.errstate(all="ignore"):
        error = np.abs(kernel - mid)
        reach = (error * OUTWARD + rad) * (1 + OUTWARD) + SMALLEST
        within = error + reach + rad <= bound * (1 - 2 * OUTWARD)
        out = error - reach - rad > bound * (1 + 2 * OUTWARD)
        return np.asarray(np.isfinite(error) & np.isfinite(reach) & np.isfinite(bound) & (within | out))


def _ulps(x: Array, f: Format) -> Array:
    """The spacing of a format at some numbers."""
    _, e = np.frexp(x)
    return np.ldexp(1.0, np.where(x == 0, f.emin, np.clip(e - 1, f.emin, f.emax)) - f.precision + 1)
