"""Float arrays of any dtype by NumPy: the same scalar code on whole arrays, matrix products for contractions.

The dtype of the inputs is kept: constants, positions and sizes are rounded once from their exact values, and integers in
conditions stay integers. Under a mask, a value is selected and never multiplied away, so NaN and infinities do not leak.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sp

from symattn.errors import InputValueError
from symattn.numbers import exact_array
from symattn.program import Program, Statement, name_of, reads, subscripts_of
from symattn.readings import floats
from symattn.readings.balls import TABLE as BALLS
from symattn.readings.balls import precision
from symattn.readings.code import compiled, constant
from symattn.readings.contraction import Contraction, contraction, place, touched, volumes
from symattn.readings.decisions import NO, OUTSIDE, YES
from symattn.readings.domain import Mask, grid, masks_of, open_grid, solvable, solved
from symattn.readings.floats import Array, accumulator, dtype_of, rounded
from symattn.readings.sizes import check_names, find_sizes
from symattn.readings.steps import Stepwise
from symattn.readings.subscripts import Bools, Grid, loose_symbols, positions

BLOCK = 1 << 23
"""Points of a domain that are evaluated at once."""


def evaluate(
    program: Program, inputs: Mapping[str, object], *, sizes: Mapping[sp.Symbol | str, int] | None = None, dtype: Any = None
) -> dict[str, Array]:
    """Every tensor of a program as float arrays of one dtype.

    Parameters
    ----------
    program
        Any program.
    inputs
        Arrays. Those that only conditions and subscripts read (masks, token numbers) keep their dtype.
    sizes
        Sizes that no input shows.
    dtype
        ``float16``, ``bfloat16``, ``float32``, ``float64`` or ``longdouble``; the inputs are rounded to it. By default that of
        the inputs that are float arrays, float64 where none is.

    Returns
    -------
    dict
        Inputs and all defined tensors. float16 and bfloat16: elementwise operations in the dtype, sums and contractions
        in float32 and rounded once. No error is claimed: that is what the rounding reading and the balls are for.

    Raises
    ------
    ShapeError, UnknownNameError, InputValueError
        When the inputs do not fit the program, or a look-up inside ``where`` is out of range.

    >>> from symattn.program import Statement, indices, size, tensor
    >>> i, j = indices("i j")
    >>> row = Statement(tensor("l", i), tensor("E", i, j), (j,), where=sp.Le(j, i))
    >>> p = Program((row,), {i: size("n"), j: size("m")}, ("l",))
    >>> evaluate(p, {"E": np.array([[1, np.nan], [2, 3]], dtype=np.float32)})["l"]
    array([1., 5.], dtype=float32)
    """
    check_names(program, inputs)
    arrays = {n: _array(v) for n, v in inputs.items()}
    found = find_sizes(program, {n: v.shape for n, v in arrays.items()}, sizes)
    kind = dtype_of(dtype) if dtype is not None else _common(program, arrays)
    with np.errstate(all="ignore"):
        known = {n: _discrete(n, v) if n in program.discrete else rounded(v, kind) for n, v in arrays.items()}
        exact = {n: arrays[n] if n in program.discrete else v for n, v in known.items()}
        return _Run(program, known, exact, found, kind).run()


def _array(x: object) -> Array:
    try:
        a = np.asarray(x)
    except ValueError as why:
        raise InputValueError(f"no array: {why}") from why
    return a if a.dtype.kind in "biuf" or (a.dtype.kind == "V" and a.dtype.names is None) else exact_array(x)


def _discrete(name: str, a: Array) -> Array:
    """An input of conditions and subscripts: integers stay integers, exact numbers become float64."""
    return rounded(a, np.dtype(np.float64)) if a.dtype == object else a


def _common(program: Program, arrays: Mapping[str, Array]) -> np.dtype[Any]:
    """The dtype of the float arrays; scalars count only where there is no array."""
    real = [a for n, a in arrays.items() if n not in program.discrete and a.dtype.kind not in "biuO"]
    arrays_only = [a.dtype for a in real if a.ndim] or [a.dtype for a in real]
    return dtype_of(np.result_type(*arrays_only)) if arrays_only else np.dtype(np.float64)


class _Run(Stepwise):
    """One evaluation of a program."""

    def __init__(
        self,
        program: Program,
        known: dict[str, Array],
        exact: Mapping[str, Array],
        sizes: Mapping[sp.Symbol, int],
        dtype: np.dtype[Any],
    ) -> None:
        super().__init__(program, sizes, exact)
        self.known = known
        self.dtype = dtype
        self.wide = accumulator(dtype)
        self.table = floats.table(dtype)
        self.zero_outside: dict[str, Statement] = {}
        self._masks: dict[tuple[sp.Basic, tuple[sp.Symbol, ...]], list[Mask]] = {}

    def run(self) -> dict[str, Array]:
        for group in self.program.groups():
            if group[0].scan is not None:
                self.scanned(group)
            else:
                (s,) = group
                self.known[s.name] = np.ascontiguousarray(self.statement(s)).reshape(self.shape(s.indices))
            self.zero_outside |= {s.name: s for s in group if not s.over}
        return self.known

    def begin(self, s: Statement) -> None:
        """Zeros for what a statement of a scan defines."""
        self.known[s.name] = np.zeros(self.shape(s.indices), dtype=self.dtype)

    def advance(self, s: Statement, part: Statement, place: tuple[Any, ...]) -> Array:
        """One statement at one step."""
        self.known[s.name][place] = value = np.asarray(self.statement(part))
        return value

    def value_of(self, name: str) -> Array:
        """A tensor as it is."""
        return self.known[name]

    def whole_numbers(self, array: Array) -> npt.NDArray[np.int64] | None:
        """An array as int64 where all its entries are integers, else None."""
        if array.dtype.kind in "biu":
            return array.astype(np.int64)
        whole = bool(np.all(np.isfinite(array) & (np.abs(array) < 2.0**62))) and bool(np.all(array == np.floor(array)))
        return array.astype(np.int64) if whole else None

    # statements

    def statement(self, s: Statement) -> Array:
        scatter = solvable(s, self.subscripts)
        if scatter is not None:
            return self.scattered(s, *scatter)
        masks = self.masks(s, s.conditions)
        if not s.over or s.reduce != "sum":
            return self.direct(s, s.expr, masks)
        parts = [(t, contraction(s, t, self.size)) for t in sp.Add.make_args(s.expr)]
        if not any(c for _, c in parts):
            return self.direct(s, s.expr, masks)
        out: Array | None = None
        for t, c in parts:
            v = self.contracted(s, t, c, masks) if c is not None else None
            v = self.direct(s, t, masks) if v is None else v
            out = v if out is None else out + v
        assert out is not None
        return out

    def masks(self, s: Statement, conditions: Sequence[sp.Basic]) -> list[Mask]:
        """The masks of a statement; those of decidable conditions are kept for the next statement with the same ones."""
        if any(map(self.subscripts.varies, conditions)):
            return masks_of(s, conditions, self.size, self.subscripts, self.judge)
        key = (sp.And(*conditions), s.domain)
        if key not in self._masks:
            found = masks_of(s, conditions, self.size, self.subscripts, self.judge)
            if not all(map(self.subscripts.decidable, conditions)):
                return found
            self._masks[key] = found
        return self._masks[key]

    def judge(self, condition: sp.Basic, at: Grid, count: int) -> list[int]:
        """The states of a condition that reads computed floats; indices in it stay integers."""
        bad: Bools = np.zeros(count, dtype=bool)
        columns = []
        rd = reads(condition)
        for x in rd:
            found, out = self.subscripts.look_up(x, self.known[name_of(x)], at, np.zeros((), dtype=self.dtype))
            columns.append(found)
            bad = bad if out is None else bad | out
        symbols = tuple(sorted(loose_symbols(condition), key=str))
        f, constants = compiled(condition, (*rd, *symbols), self.table)
        fixed = [floats.number(c, self.dtype) for c in constants]
        answers = f(*fixed, *columns, *(self.subscripts.symbol(a, at) for a in symbols))
        states = np.where(np.broadcast_to(np.asarray(answers, dtype=bool), (count,)), YES, NO)
        return np.where(bad, OUTSIDE, states).tolist()

    def scattered(self, s: Statement, a: sp.Symbol, value: sp.Expr, condition: sp.Basic) -> Array:
        """``where a = I``: the other indices are looped over, a is computed, and values are added where they belong."""
        masks = self.masks(s, [c for c in s.conditions if c is not condition])
        axes = [b for b in s.domain if b != a]
        points = grid(axes, self.shape(axes), [m for m in masks if a not in m.axes])
        at, bad = self.subscripts.value(value, points.at)
        if bad is not None and np.any(bad):
            raise InputValueError(f"{s.name}: a look-up in `{value}` is out of range, in `{s}`")
        points = solved(points, a, self.size(a), at)
        keep: Bools = np.ones(points.count, dtype=bool)
        for m in (m for m in masks if a in m.axes):
            keep = keep & m.keep[tuple(points.at[b] for b in m.axes)]
        where = {k: v[keep] for k, v in points.at.items()}
        values = np.broadcast_to(self.values(s.expr, where, s, None), (int(keep.sum()),))
        wide = self.dtype if s.reduce == "max" and self.dtype.kind == "f" else self.wide
        start = 0.0 if not s.over else {"sum": 0.0, "prod": 1.0, "max": -np.inf}[s.reduce]
        out = np.full(self.shape(s.indices), start, dtype=wide)
        index = tuple(where[i] for i in s.indices)
        ufunc: Any = {"sum": np.add, "prod": np.multiply, "max": np.maximum}[s.reduce]
        if index:
            ufunc.at(out, index, values.astype(wide))
        else:
            out[()] = ufunc.reduce(values.astype(wide), initial=start)
        return out.astype(self.dtype)

    def direct(self, s: Statement, expr: sp.Expr, masks: Sequence[Mask]) -> Array:
        """On the whole grid, masked points selected away; cut along the first free index where the grid is large."""
        shape = self.shape(s.domain)
        total = int(np.prod(shape, dtype=np.float64))
        if not s.indices or total <= BLOCK:
            return self.block(s, expr, masks, None)
        first = s.indices[0]
        step = max(1, self.size(first) * BLOCK // total)
        cuts = [slice(b, min(b + step, self.size(first))) for b in range(0, self.size(first), step)]
        return np.concatenate([self.block(s, expr, masks, cut) for cut in cuts])

    def block(self, s: Statement, expr: sp.Expr, masks: Sequence[Mask], cut: slice | None) -> Array:
        """A part of a statement, along the first free index."""
        at = open_grid(s.domain, self.shape(s.domain))
        shape = self.shape(s.domain)
        if cut is not None:
            at[s.domain[0]] = at[s.domain[0]][cut]
            shape = (cut.stop - cut.start, *shape[1:])
        keep: Bools | None = None
        for m in masks:
            v = m.over(s.domain)
            v = v[cut] if cut is not None and v.shape[0] > 1 else v
            keep = v if keep is None else keep & v
        v = np.broadcast_to(self.values(expr, at, s, keep), shape)
        if not s.over:
            return v if keep is None else np.where(keep, v, np.zeros((), dtype=self.dtype))
        axes = tuple(range(len(s.indices), len(s.domain)))
        start = {"sum": 0.0, "prod": 1.0, "max": -np.inf}[s.reduce]
        v = v.astype(self.wide, copy=False)
        if keep is not None:
            v = np.where(keep, v, np.array(start, dtype=self.wide))
        reduce: Any = {"sum": np.sum, "prod": np.prod, "max": np.max}[s.reduce]
        return np.asarray(reduce(v, axis=axes)).astype(self.dtype)

    # values

    def values(self, expr: sp.Expr, at: Grid, s: Statement, keep: Bools | None) -> Array:
        """An expression at the points ``at`` (a grid or a list); a look-up out of range is an error where ``keep`` holds."""
        rd = reads(expr)
        places = positions(expr)
        columns = [self.column(x, at, s, keep) for x in rd] + [self.position(e, at) for e in places]
        f, constants = compiled(expr, (*rd, *places), self.table)
        return np.asarray(f(*(floats.number(c, self.dtype) for c in constants), *columns)).astype(self.dtype, copy=False)

    def column(self, x: sp.Basic, at: Grid, s: Statement, keep: Bools | None) -> Array:
        """A tensor at the points."""
        array = self.known[name_of(x)].astype(self.dtype, copy=False)
        sub = subscripts_of(x)
        if not sub:
            return array
        some = next(iter(at.values()), np.zeros(0))
        if (
            some.ndim == len(at) > 1
            and len(set(sub)) == len(sub)
            and all(a in at and at[a].size == n for a, n in zip(sub, array.shape, strict=True))
        ):
            order = sorted(range(len(sub)), key=lambda k: list(at).index(sub[k]))
            return array.transpose(order).reshape([at[a].size if a in sub else 1 for a in at])
        found, bad = self.subscripts.look_up(x, array, at, np.zeros((), dtype=self.dtype))
        if bad is not None and np.any(bad if keep is None else bad & keep):
            raise InputValueError(f"{s.name}: `{x}` looks outside {name_of(x)} of shape {array.shape}, in `{s}`")
        return np.asarray(found)

    def position(self, e: sp.Expr, at: Grid) -> Array:
        """An expression in indices and sizes, computed exactly or in balls, then rounded once."""
        if not e.has(sp.Function, sp.Pow) and all(q.is_Integer for q in e.atoms(sp.Number)):
            v = np.asarray(self.subscripts.value(e, at)[0])
            return rounded(v, self.dtype)
        names = tuple(sorted(loose_symbols(e), key=str))
        points = np.broadcast_arrays(*(np.asarray(self.subscripts.symbol(a, at)) for a in names))
        f, constants = compiled(e, names, BALLS.namespace)
        with precision(floats.BITS):
            fixed = [constant(c, BALLS.namespace) for c in constants]
            got = [f(*fixed, *map(BALLS.number, p)) for p in zip(*(v.ravel().tolist() for v in points), strict=True)]
            out = np.empty(len(got), dtype=object)
            out[:] = [floats.midpoint(v) for v in got]
        return rounded(out, self.dtype).reshape(points[0].shape)

    # contractions

    def contracted(self, s: Statement, term: sp.Expr, c: Contraction, masks: Sequence[Mask]) -> Array | None:
        """A sum of products by matmul; what a kept NaN or infinity touches is formed on the grid. None: not by matmul."""
        placed = place(c, masks)
        if placed is None:
            return None
        try:
            left = self.operand(s, c.left, c.left_axes, placed.left)
            right = self.operand(s, c.right, c.right_axes, placed.right)
            outer = self.values(c.outer, open_grid(s.indices, self.shape(s.indices)), s, None)
        except InputValueError:  # an operand alone looks further than the masked sum does
            return None
        hit: Bools | None = None
        if (placed.left or placed.right) and not (np.isfinite(left).all() and np.isfinite(right).all()):
            hit = touched(c, placed, self.size, ~np.isfinite(left), ~np.isfinite(right))[1]
            left, right = (np.where(np.isfinite(v), v, np.zeros((), dtype=self.dtype)) for v in (left, right))
        z, r, x, q = volumes(c, self.size)
        product = np.matmul(
            left.astype(self.wide, copy=False).reshape(z, r, x), right.astype(self.wide, copy=False).reshape(z, x, q)
        )
        order = sorted(range(len(c.axes)), key=lambda k: s.indices.index(c.axes[k]))

        def spread(v: Array) -> Array:
            v = v.reshape(self.shape(c.axes)).transpose(order)
            return v.reshape([self.size(i) if i in c.axes else 1 for i in s.indices])

        full = self.shape(s.indices)
        product = spread(product.astype(self.dtype))
        out = np.broadcast_to(product if c.outer is sp.S.One else product * outer, full)
        if placed.left or placed.right:
            again = np.broadcast_to(~np.isfinite(outer), full)
            again = again if hit is None else again | spread(hit)
            if again.any():
                out = np.where(again, self.direct(s, term, masks), out)
        for m in placed.result:
            out = np.where(m.over(s.indices), out, np.zeros((), dtype=self.dtype))
        return out

    def operand(self, s: Statement, e: sp.Expr, axes: tuple[sp.Symbol, ...], masks: Sequence[Mask]) -> Array:
        """One factor on the grid of its axes, 0 where masked."""
        v = np.broadcast_to(self.values(e, open_grid(axes, self.shape(axes)), s, None), self.shape(axes))
        if masks and not self.is_zero_outside(e, s):
            for m in masks:
                v = np.where(m.over(axes), v, np.zeros((), dtype=self.dtype))
        return v

    def is_zero_outside(self, e: sp.Expr, s: Statement) -> bool:
        """Whether a factor is a tensor whose own ``where`` is that of the statement, its indices renamed."""
        made = self.zero_outside.get(name_of(e)) if isinstance(e, sp.Indexed) else None
        if made is None or not all(isinstance(a, sp.Symbol) for a in subscripts_of(e)):
            return False
        return made.where.xreplace(dict(zip(made.indices, subscripts_of(e), strict=True))) == s.where
