"""Formats as roundings: how much one errs, which numbers a format has, and which format holds all numbers of another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from symattn import formats

__all__ = ["Unit", "fits", "representable"]

Array: TypeAlias = "np.ndarray[Any, Any]"


@dataclass(frozen=True)
class Unit:
    """The rounding of a format: ``fl(x) = x(1 + a) + b`` with ``|a| <= u``, ``|b| <= tiny``, up to ``top``."""

    name: str
    u: float
    tiny: float
    top: float

    @classmethod
    def of(cls, name: str, flush: bool = False, ulps: int = 1) -> Unit:
        """The rounding of a named format; with ``flush``, subnormal results may become 0; truncation errs by 2 ``ulps``."""
        f = formats.get(name)
        tiny = f.smallest_normal if flush else ulps * f.eta
        return cls(f.name, ulps * float(f.unit_roundoff), float(tiny), float(f.max))


def fits(narrow: str, wide: str) -> bool:
    """Whether every number of the format ``narrow`` is one of ``wide``.

    >>> fits("bfloat16", "float32"), fits("float16", "bfloat16")
    (True, False)
    """
    a, b = formats.get(narrow), formats.get(wide)
    return a.precision <= b.precision and a.emax <= b.emax and a.emin - a.precision >= b.emin - b.precision


def representable(v: Array, format: str) -> Array:
    """Where a float64 number is a number of the format.

    >>> representable(np.array([0.5, 257.0, 0.1, np.inf]), "bfloat16")
    array([ True, False, False,  True])
    """
    f = formats.get(format)
    m, e = np.frexp(v)
    lost = np.maximum(float(f.emin) + 1 - e, 0)  # a subnormal number has so many bits less
    scaled = np.ldexp(m, (f.precision - lost).astype(np.int64))
    return (v == 0) | ~np.isfinite(v) | ((scaled == np.rint(scaled)) & (np.abs(v) <= float(f.max)))
