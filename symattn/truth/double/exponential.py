r"""An exponential of float64 numbers with a proven error: exact reduction, a table, a cubic.

Let ``h = 2^-12``. Every x between :data:`LOWEST` and :data:`HIGHEST` is split into ``x = a + b``, where a is the multiple of
``2h = 2^-11`` that ``(x + M) - M`` gives with ``M = 1.5 * 2^41``, and

    e^x = e^a e^b ~ E + E p,    E = table(e^a),    p = b (1 + b (c2 + b c3)),    c2 ~ 1/2 + h^2/24,  c3 ~ 1/6.

**The reduction is exact.** The numbers of ``[2^41, 2^42)``, where ``x + M`` lies, are the multiples of ``2^-11``, so rounding
``x + M`` rounds x to one of these, ``|x - a| <= h``, and ``(x + M) - M`` is exact by Sterbenz. ``b = x - a`` is a multiple of
the last place of x, or of ``2^-11`` where that is finer; where ``|x| >= h`` it is at most ``|x|``, so it has no more bits than x;
where ``|x| < h``, ``a = 0`` and ``b = x``. Hence there is no constant ln 2 to split, and the table is indexed by the last bits of
``x + M``.

**Remainder.** ``e^b - (1 + b + b^2 (1/2 + h^2/24) + b^3/6) = (b^4 - h^2 b^2)/24 + r`` with ``|r| <= |b|^5/120 e^h``. On
``[-h, h]`` the first term is at most ``h^4/96 < 2^-54.58`` in absolute value, r below 2^-66; relative to ``e^b >= 1 - h``: less
than ``0.34 U`` (``U = 2^-53``).

**Rounding**, each in units of U and relative to ``e^x``; ``|p| <= h (1 + h)``. The table is rounded to nearest: 1.0. Constants
and operations of p err by U relative: the last product and the last sum in it by 1 in p, what is before them by less than
``2h``, so p errs by at most ``2.01 h (1 + h) < 0.001``. The product ``E p``: ``h``, below 0.001. The last sum: 1.0 of
``E + E p``. Together with products of errors ``1.0 + 0.34 + 0.002 + 1.0 < 2.4``, which :data:`RELATIVE` covers.

**Range.** Below ``2^-1022`` table, product and sum are rounded to multiples of 2^-1074: at most ``3/2`` of one, covered by
:data:`ABSOLUTE`. Numbers below LOWEST get 0 (``e^-746 < 2^-1076``). Numbers above HIGHEST get infinity, which a caller takes for
"not known"; NaN stays NaN.

The table has an entry for each multiple of 2^-11 that is met, filled by the unit of x from balls of 100 bits.
"""

from __future__ import annotations

from typing import Any

import flint
import numpy as np

from symattn.readings.balls import precision
from symattn.truth.double.approx import Array, U

__all__ = ["ABSOLUTE", "HIGHEST", "LOWEST", "RELATIVE", "Table", "exp"]

RELATIVE = 2.5 * U
"""How far a value may be from the exact one, relative to it."""
ABSOLUTE = 2.0**-1072
"""What is added to that where the value is subnormal."""
LOWEST, HIGHEST = -746, 709.75
"""Where the table is: below, the value is less than half of the smallest subnormal number."""
STEPS = 2048
"""Entries of the table for a unit of the argument."""
SHIFT = 1.5 * 2.0**41
C2, C3 = 0.5 + 2.0**-24 / 24, 1 / 6
CHUNK = 1 << 14
"""Numbers that are worked on at a time: a few arrays of so many stay in the cache, and a call costs little beside them."""
BITS = 100


class Table:
    """Rounded values of ``e^(k / 2048)``, made when they are first asked for.

    >>> table = Table()
    >>> table.upto(0.0, 1.5)
    >>> float(table.values[table.index(0.5)]), float(table.values[table.index(-3.0)])
    (1.6487212707001282, 0.0)
    """

    def __init__(self) -> None:
        units = int(HIGHEST) + 2 - LOWEST
        self.values = np.zeros(units * STEPS)
        self._filled = np.zeros(units, dtype=bool)
        self._fractions: list[Any] = []

    @staticmethod
    def index(x: float) -> int:
        """The place of ``e^x`` for a multiple x of 1/2048."""
        return round((x - LOWEST) * STEPS)

    def upto(self, low: float, high: float) -> None:
        """Fill the table for arguments from ``low`` to ``high``."""
        first, last = int(np.floor(low - 1 / STEPS)) - LOWEST, int(np.floor(high + 1 / STEPS)) - LOWEST
        for unit in range(max(first, 0), min(last, len(self._filled) - 1) + 1):
            if not self._filled[unit]:
                self._fill(unit)

    def _fill(self, unit: int) -> None:
        with precision(BITS):
            if not self._fractions:
                self._fractions = [(flint.arb(k) / STEPS).exp() for k in range(STEPS)]
            whole = flint.arb(unit + LOWEST).exp()
            self.values[unit * STEPS : (unit + 1) * STEPS] = [float((whole * f).mid()) for f in self._fractions]
        self._filled[unit] = True


TABLE = Table()


def exp(x: Array, out: Array | None = None, table: Table = TABLE) -> Array:
    """``e^x`` of float64 numbers, within :data:`RELATIVE` of the exact value and :data:`ABSOLUTE`; ``out`` may be x.

    >>> exp(np.array([0.0, 1.0, -800.0, 710.0, np.nan]))
    array([1.        , 2.71828183, 0.        ,        inf,        nan])
    """
    if out is None or not out.flags.c_contiguous:
        out = np.empty(x.shape)
    x = np.ascontiguousarray(x, dtype=np.float64)
    if not x.size:
        return out
    low, high = float(x.min()), float(x.max())
    if not (low >= LOWEST and high <= HIGHEST):  # a NaN is neither
        _outside(x, out, table)
        return out
    table.upto(low, high)
    _inside(x.reshape(-1), out.reshape(-1), table.values)
    return out


def _outside(x: Array, out: Array, table: Table) -> None:
    """Some numbers are out of range or NaN: the others are taken alone."""
    fine = (x >= LOWEST) & (x <= HIGHEST)
    inside = exp(x[fine], None, table)
    out[...] = np.where(x > HIGHEST, np.inf, np.where(x < LOWEST, 0.0, np.nan))
    out[fine] = inside


def _inside(x: Array, out: Array, values: Array) -> None:
    """All numbers are in range."""
    size = min(CHUNK, len(x))
    scratch = [np.empty(size) for _ in range(3)]
    origin = np.float64(SHIFT).view(np.int64) + LOWEST * STEPS
    for start in range(0, len(x), size):
        v, e = x[start : start + size], out[start : start + size]
        t, b, p = (s[: len(v)] for s in scratch)
        np.add(v, SHIFT, out=t)
        np.subtract(t, SHIFT, out=b)
        np.subtract(v, b, out=b)
        k = t.view(np.int64)
        np.subtract(k, origin, out=k)
        np.take(values, k, out=e, mode="clip")
        np.multiply(b, C3, out=p)
        np.add(p, C2, out=p)
        np.multiply(p, b, out=p)
        np.add(p, 1.0, out=p)
        np.multiply(p, b, out=p)
        np.multiply(p, e, out=p)
        np.add(e, p, out=e)
