"""The inputs of a program as exact arrays, seen from one batch: matrices on rows and keys, masks and numbers of pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sp

from symattn.errors import UnfitError
from symattn.numbers import exact_array
from symattn.program import Program, Tensor, name_of, reads, subscripts_of
from symattn.readings.code import compiled, constant
from symattn.readings.decisions import OUTSIDE, YES, columns_of, decide
from symattn.readings.sizes import Extents, check_names, find_sizes
from symattn.readings.subscripts import INTEGERS, Subscripts, either, loose_symbols
from symattn.truth.limbs.forms import Axes, Conditions, Plain
from symattn.truth.limbs.slices import Floats, doubles, extent

Bools = npt.NDArray[np.bool_]
Batch = tuple[int, ...]
LARGEST, SMALLEST = 200, -220
"""Binary exponents of inputs, float32 with room: products of three of them, and their errors, are ordinary float64 numbers."""


class Data:
    """Inputs and sizes of one evaluation.

    Parameters
    ----------
    program, inputs, sizes
        As every reading takes them.
    axes
        The indices of a pair.

    Raises
    ------
    UnfitError
        When a number that is not only compared is no float64, or not finite (outside of what masks drop).
    """

    def __init__(
        self, program: Program, inputs: Mapping[str, object], sizes: Mapping[sp.Symbol | str, int] | None, axes: Axes
    ) -> None:
        check_names(program, inputs)
        self.program, self.axes = program, axes
        self.arrays: dict[str, npt.NDArray[Any]] = {n: _array(v) for n, v in inputs.items()}
        self.sizes = find_sizes(program, {n: a.shape for n, a in self.arrays.items()}, sizes)
        self.extents = Extents(program, self.sizes)
        self.row_sizes = self.extents.shape(axes.rows)
        self.rows, self.keys = math.prod(self.row_sizes), self.extents.size(axes.key)
        self.batches: list[Batch] = list(np.ndindex(*self.extents.shape(axes.batch)))
        self.subscripts = Subscripts(self._integers, self.sizes, lambda name: self.arrays.get(name))
        self._floats: dict[tuple[str, bool], Floats] = {}
        self._extents: dict[str, tuple[int, int]] = {}

    def check(self) -> None:
        """Refuse numbers that are not dyadic, or not finite, where more is done with them than comparing and adding.

        Raises
        ------
        UnfitError
            Naming the input.
        """
        several = [n for n in self.program.inputs if n not in self.program.discrete]
        masked = {name_of(x) for s in self.program for c in s.conditions for x in reads(c)}
        for name in several:
            if self.arrays[name].ndim >= 2:
                self.floats(name, finite=name not in masked)

    def _integers(self, name: str) -> npt.NDArray[np.int64] | None:
        a = self.arrays.get(name)
        return a.astype(np.int64) if a is not None and a.dtype.kind in "biu" else None

    def floats(self, name: str, finite: bool = True) -> Floats:
        """An input as float64, exactly; infinities and NaN only where ``finite`` says that they may be there."""
        if (name, finite) not in self._floats:
            a = self.arrays[name]
            found = doubles(a) if finite or a.dtype.kind in "OUS" else a.astype(np.float64)
            if found is None:
                raise UnfitError(f"{name} holds numbers that are not finite or that float64 does not hold exactly")
            top, bottom = extent(found[np.isfinite(found)])
            if top > LARGEST or bottom < SMALLEST:
                raise UnfitError(f"{name} holds numbers beyond 2^{LARGEST} or finer than 2^{SMALLEST}")
            self._floats[name, finite] = found
        return self._floats[name, finite]

    def extent_of(self, x: Tensor) -> tuple[int, int]:
        """The extent of an input over all batches: slices and tables are then the same in all of them."""
        name = name_of(x)
        if name not in self._extents:
            self._extents[name] = extent(self.floats(name))
        return self._extents[name]

    def at_batch(self, x: Tensor, batch: Batch, finite: bool = True) -> tuple[Floats, tuple[sp.Symbol, ...]]:
        """A read at one batch, and the indices that are left."""
        place = dict(zip(self.axes.batch, batch, strict=True))
        sub = subscripts_of(x)
        array = self.floats(name_of(x), finite)
        cut = array[tuple(place.get(a, slice(None)) for a in sub)]
        return np.asarray(cut), tuple(a for a in sub if a not in place)

    def row_matrix(self, x: Tensor, batch: Batch, channels: Sequence[sp.Symbol]) -> Floats:
        """A given matrix on rows and channels, the rows of all indices in one axis."""
        array, left = self.at_batch(x, batch)
        order = [*(a for a in self.axes.rows if a in left), *channels]
        array = array.transpose([left.index(a) for a in order])
        shape = [self.extents.size(a) if a in left else 1 for a in self.axes.rows]
        width = [self.extents.size(a) for a in channels]
        full = np.broadcast_to(array.reshape(*shape, *width), (*self.row_sizes, *width))
        return full.reshape(self.rows, math.prod(width))

    def key_matrix(self, x: Tensor, batch: Batch, channels: Sequence[sp.Symbol]) -> Floats:
        """A given matrix on keys and channels."""
        array, left = self.at_batch(x, batch)
        array = array.transpose([left.index(a) for a in (self.axes.key, *channels)])
        return array.reshape(self.keys, -1)

    def grid(self, batch: Batch, rows: slice, keys: slice) -> dict[sp.Symbol, npt.NDArray[np.int64]]:
        """The indices of the pairs of a block, so that they broadcast to (rows, keys)."""
        at = {a: np.full((1, 1), v, dtype=np.int64) for a, v in zip(self.axes.batch, batch, strict=True)}
        ids = np.unravel_index(np.arange(rows.start, rows.stop), self.row_sizes)
        at |= {a: v.astype(np.int64).reshape(-1, 1) for a, v in zip(self.axes.rows, ids, strict=True)}
        at[self.axes.key] = np.arange(keys.start, keys.stop, dtype=np.int64).reshape(1, -1)
        return at

    def keep(self, where: Conditions, batch: Batch, rows: slice, keys: slice) -> Bools | None:
        """Where conditions hold in a block; None where they do everywhere."""
        shape = (rows.stop - rows.start, keys.stop - keys.start)
        out: Bools | None = None
        for c in sorted(where, key=str):
            found = self._states(c, self.grid(batch, rows, keys), shape)
            if (found > YES).any():
                raise UnfitError(f"the condition `{c}` has no value somewhere")
            out = (found == YES) if out is None else out & (found == YES)
        return None if out is None or out.all() else out

    def _states(self, c: sp.Basic, at: Mapping[sp.Symbol, Any], shape: tuple[int, int]) -> npt.NDArray[np.int8]:
        rd, symbols = columns_of(c)
        columns: dict[sp.Basic, Any] = {}
        bad: Bools | None = None
        for x in rd:
            columns[x], out = self.subscripts.look_up(x, self.arrays[name_of(x)], at, 0)
            bad = either(bad, out)
        columns |= {a: self.subscripts.symbol(a, at) for a in symbols}
        wide = {x: np.broadcast_to(v, shape) if np.ndim(v) else np.asarray(v) for x, v in columns.items()}
        found = decide(c, wide, math.prod(shape), INTEGERS).reshape(shape).copy()
        if bad is not None:
            found[np.broadcast_to(bad, shape)] = OUTSIDE
        return found

    def plain(self, atom: Plain, batch: Batch, rows: slice, keys: slice, keep: Bools | None) -> Floats:
        """The numbers of a given tensor or of a position at the pairs of a block, 0 where they are not kept."""
        e = atom.expr
        if isinstance(e, sp.Indexed):
            array, left = self.at_batch(e, batch, finite=False)
            shape = [self.extents.size(a) if a in left else 1 for a in (*self.axes.rows, self.axes.key)]
            order = [left.index(a) for a in (*self.axes.rows, self.axes.key) if a in left]
            full = np.broadcast_to(array.transpose(order).reshape(shape), (*self.row_sizes, shape[-1]))
            values = full.reshape(self.rows, shape[-1])[rows]
            values = values[:, keys] if shape[-1] > 1 or self.keys == 1 else values
        else:
            names = tuple(sorted(loose_symbols(e), key=str))
            f, constants = compiled(e, names, INTEGERS)
            at = self.grid(batch, rows, keys)
            got = f(*(constant(c, INTEGERS) for c in constants), *(self.subscripts.symbol(a, at) for a in names))
            found = doubles(np.asarray(got))
            if found is None:
                raise UnfitError(f"`{e}` is no number that float64 holds")
            values = found
        values = np.broadcast_to(values, (rows.stop - rows.start, keys.stop - keys.start))
        out = values if keep is None else np.where(keep, values, 0.0)
        if not np.isfinite(out).all():
            raise UnfitError(f"`{e}` is not finite where it is kept")
        return out


def _array(x: object) -> npt.NDArray[Any]:
    a = np.asarray(x)
    if a.dtype.kind in "biuf" or (a.dtype.kind == "V" and a.dtype.names is None):
        return a
    return exact_array(x)
