"""The two numbers of a format that an enclosure rounds to: equal, and then the correctly rounded value, or the neighbours."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from symattn import formats
from symattn.formats import Exact, Format, round_exact
from symattn.truth.values import Values

__all__ = ["Rounded", "rounded"]

Doubles: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rounded:
    """What the two ends of each enclosure round to, as float64 arrays of numbers of a format, and where they differ.

    Where they differ the exact value lies at or beside the midpoint of two numbers, or the enclosure is wide.
    """

    low: Doubles
    high: Doubles
    open: npt.NDArray[np.bool_]


def rounded(values: Values, format: str | Format) -> Rounded:
    """Both ends of every element rounded once, to nearest, ties to even.

    Float64 arrays that enclose the values tell for most elements of a format of up to 24 bits; the others become fractions,
    unless the values are no more than float64 arrays: then an end may be one float64 number further out than it is.

    >>> import numpy as np
    >>> from symattn.truth.values import Floats
    >>> found = rounded(Floats(np.array([0.1, 1.00390625]), np.array([1e-9, 1e-9])), "bfloat16")
    >>> found.low.tolist(), found.high.tolist(), found.open.tolist()
    ([0.10009765625, 1.0], [0.10009765625, 1.0078125], [False, True])
    """
    f = formats.get(format)
    low, high, rest = np.empty(values.size), np.empty(values.size), np.ones(values.size, dtype=bool)
    if f.precision <= 24 or values.sharp:
        mid, rad = (a.ravel() for a in values.approx())
        with np.errstate(invalid="ignore", over="ignore"):
            down, up = np.nextafter(mid - rad, -math.inf), np.nextafter(mid + rad, math.inf)
            down, up = (np.where(np.isfinite(mid), end, mid) for end in (down, up))
        low, high = (formats.round_array(end, f) if f.precision <= 24 else end for end in (down, up))
        rest = (rad == math.inf) | ~_same(low, high, down, up)
    at = np.flatnonzero(rest & values.points().ravel() if values.sharp else rest)
    if at.size:
        ends = [_ends(m, r, f) for m, r in zip(*values.exact(at), strict=True)]
        low[at], high[at], rest[at] = ([e[k] for e in ends] for k in range(3))
    shape = values.shape
    return Rounded(low.reshape(shape), high.reshape(shape), rest.reshape(shape))


def _ends(m: Any, r: Any, f: Format) -> tuple[float, float, bool]:
    """Both ends rounded, and whether they differ; nothing known is anything from one infinity to the other."""
    if isinstance(m, float):
        value = float(round_exact(m, f))
        return value, value, False
    if isinstance(r, float):
        return -math.inf, math.inf, True
    ends: tuple[Exact, Exact] = (m - r, m + r)
    low, high = (float(round_exact(x, f)) for x in ends)
    return low, high, not bool(_same(np.float64(low), np.float64(high), np.float64(ends[0] > 0), np.float64(ends[1] > 0)))


def _same(low: Any, high: Any, down: Any, up: Any) -> Any:
    """Whether two ends round to the same, beyond the same end of the range where that is NaN."""
    return (low == high) | (np.isnan(low) & np.isnan(high) & (np.isnan(down) | ((down > 0) == (up > 0))))
