"""What a row computes, in balls: the scalar code of a program on the rows of a block, one ball a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sympy as sp

from symattn.errors import UnfitError
from symattn.numbers import exact_array
from symattn.program import Tensor, name_of, reads, subscripts_of
from symattn.readings.balls import NAMESPACE, ball
from symattn.readings.code import compiled, constant
from symattn.readings.specials import Ball
from symattn.readings.subscripts import loose_symbols
from symattn.truth.limbs.data import Batch, Data

Column = list[Any]
LOST = 2.0**-1000
"""A radius below this counts as this: float64 does not round smaller ones well."""
LEAST = 2.0**-300
"""What bounds of balls are raised by, so that no product of bounds is lost below the smallest float64 number."""


class Rows:
    """The tensors on rows of one block: name -> a ball (or a special value) for each row.

    Parameters
    ----------
    data, batch, rows
        The inputs, the batch, and which rows.
    make
        Makes a tensor on rows that is asked for the first time, by its name; it raises KeyError for one that there is not.
    """

    def __init__(self, data: Data, batch: Batch, rows: slice, make: Callable[[str], Column]) -> None:
        self.data, self.batch, self.rows, self.make = data, batch, rows, make
        self.count = rows.stop - rows.start
        self.known: dict[str, Column] = {}
        self._place = dict(zip(data.axes.batch, batch, strict=True))
        ids = np.unravel_index(np.arange(rows.start, rows.stop), data.row_sizes)
        self._ids = dict(zip(data.axes.rows, ids, strict=True))

    def evaluate(self, e: sp.Expr, where: sp.Basic = sp.true) -> Column:
        """An expression for every row, 0 where a condition does not hold."""
        values = self._values(e)
        if where == sp.true:
            return values
        kept = self._values(where)
        if any(k is None for k in kept):
            raise UnfitError(f"the condition `{where}` is not decided")
        return [v if k else Ball(0) for v, k in zip(values, kept, strict=True)]

    def _values(self, e: sp.Basic) -> Column:
        if e in (sp.true, sp.false):
            return [e == sp.true] * self.count
        rd = reads(e)
        scalars = tuple(sorted((a for a in e.free_symbols if isinstance(a, sp.Symbol) and self._is_scalar(a)), key=str))
        symbols = tuple(sorted(loose_symbols(e), key=str))
        names = tuple(dict.fromkeys((*rd, *scalars, *symbols)))
        f, constants = compiled(e, names, NAMESPACE)
        fixed = [constant(c, NAMESPACE) for c in constants]
        columns = [self.column(x) for x in names]
        if not columns:
            return [f(*fixed)] * self.count
        return [f(*fixed, *values) for values in zip(*columns, strict=True)]

    def _is_scalar(self, a: sp.Symbol) -> bool:
        return not a.is_integer

    def column(self, x: sp.Basic) -> Column:
        """A read, an index or a size for every row."""
        if isinstance(x, sp.Symbol) and x.is_integer:
            if x in self._ids:
                return [Ball(int(v)) for v in self._ids[x].tolist()]
            return [Ball(self._place[x] if x in self._place else self.data.sizes[x])] * self.count
        name = name_of(x)
        if name not in self.known:
            self.known[name] = self._given(x) if name in self.data.arrays else self.make(name)
        return self.known[name]

    def forget(self) -> None:
        """Let go of who makes tensors: nothing more is asked, and the two know each other."""
        self.make = _nothing

    def whole(self, a: sp.Symbol) -> np.ndarray[Any, Any]:
        """The value of an index for every row."""
        return np.asarray(self._ids[a] if a in self._ids else np.full(self.count, self._place[a]))

    def _given(self, x: Tensor) -> Column:
        array = self.data.arrays[name_of(x)]
        at = []
        for a in subscripts_of(x):
            if a not in self._place and a not in self._ids:
                raise UnfitError(f"`{x}` looks at another place than its own")
            at.append(self._place[a] if a in self._place else self._ids[a])
        found = exact_array(array[tuple(at)])
        if found.shape == ():
            return [ball(found[()])] * self.count
        return [ball(v) for v in np.broadcast_to(found, (self.count,)).tolist()]


def _nothing(name: str) -> Column:
    raise KeyError(name)


def upper(values: Sequence[Any]) -> np.ndarray[Any, Any]:
    """Bounds on the absolute values of balls, a little above, and above ``LEAST``."""
    return np.array([float(abs(v).upper()) for v in values]) * (1 + 2.0**-40) + LEAST


def radii(values: Sequence[Any], bits: int) -> np.ndarray[Any, Any]:
    """The radii of balls in units of ``2^-bits``, a little above; 0 where a ball is exact.

    >>> radii([Ball(1), Ball(0, 2.0**-70)], 70)
    array([0., 1.])
    """
    found = np.array([0.0 if v.is_exact() else max(float(v.rad()), LOST) for v in values])
    return np.where(found > 0, np.ldexp(found, bits) * (1 + 2.0**-40) + LEAST, 0.0)


def dyadic(exponent: int) -> Ball:
    """``2^exponent``."""
    return Ball(2) ** exponent if exponent >= 0 else 1 / Ball(2) ** -exponent
