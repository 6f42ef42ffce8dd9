"""The evaluator of programs over number tables: one for exact numbers, mpmath numbers and balls.

Only points inside ``where`` are evaluated. A read is gathered for all points at once and one compiled function is mapped over
them; a sum of products goes to the table's matrix product (``contraction.py``), also when masked: an operand is 0 outside its
mask, and elements that a NaN or an infinity touches are summed point by point, so that nothing leaks out of a masked place.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sp

from symattn.errors import InputValueError, UndecidedError
from symattn.numbers import exact_array
from symattn.program import Program, Statement, name_of, reads, subscripts_of
from symattn.readings.code import compiled, constant
from symattn.readings.contraction import Contraction, contraction, place, touched, volumes
from symattn.readings.decisions import NO, OPEN, OUTSIDE, YES
from symattn.readings.domain import Mask, Points, grid, masks_of, solvable, solved
from symattn.readings.sizes import check_names, find_sizes
from symattn.readings.steps import Stepwise
from symattn.readings.subscripts import Grid, loose_symbols
from symattn.readings.tables import NumberTable, Objects

Bools = npt.NDArray[np.bool_]


def evaluate_over(
    program: Program,
    inputs: Mapping[str, object],
    table: NumberTable,
    sizes: Mapping[sp.Symbol | str, int] | None = None,
    known: Mapping[str, Objects] | None = None,
) -> dict[str, Objects]:
    """Every tensor of a program, inputs included, as object arrays of one number type.

    Parameters
    ----------
    program
        Any program.
    inputs
        An array of exact numbers, or anything that ``exact_array`` takes, for every input.
    table
        The number type.
    sizes
        Sizes that no input shows.
    known
        Further inputs as arrays of the number type, which another program gave.

    Raises
    ------
    ShapeError, UnknownNameError, InputValueError
        When the inputs do not fit the program, or a look-up inside ``where`` is out of range.
    UndecidedError
        When a condition depends on numbers that do not decide it.
    """
    known = known or {}
    check_names(program, {**inputs, **known})
    exact = {n: exact_array(v) for n, v in inputs.items()}
    found = find_sizes(program, {n: v.shape for n, v in (exact | dict(known)).items()}, sizes)
    return _Run(program, table, exact, found, known).run()


class _Run(Stepwise):
    """One evaluation of a program: what is known so far, and how the next statement follows from it."""

    def __init__(
        self,
        program: Program,
        table: NumberTable,
        exact: Mapping[str, Objects],
        sizes: Mapping[sp.Symbol, int],
        known: Mapping[str, Objects],
    ) -> None:
        super().__init__(program, sizes, exact)
        self.table = table
        self.zero, self.one = table.number(0), table.number(1)
        self.known: dict[str, Objects] = {
            n: self._array([table.number(x) for x in v.ravel().tolist()], v.shape) for n, v in exact.items()
        } | dict(known)
        self.whole, self.settled = dict(self.known), dict(self.known)

    def run(self) -> dict[str, Objects]:
        """Every tensor. What is ``range_only`` is settled for the statements that are not, and given back as it is."""
        for group in self.program.groups():
            if group[0].scan is not None:
                self.scanned(group)
                continue
            (s,) = group
            self.known = self.whole if s.range_only else self.settled
            self.whole[s.name] = value = self.statement(s)
            self.settled[s.name] = self.settle(s, value)
        return self.whole

    def settle(self, s: Statement, value: Objects) -> Objects:
        """What other statements read of a statement."""
        return self._array([self.table.settle(x) for x in value.ravel().tolist()], value.shape) if s.range_only else value

    def begin(self, s: Statement) -> None:
        """Zeros for what a statement of a scan defines."""
        self.whole[s.name] = self._filled(self.shape(s.indices), self.zero)
        self.settled[s.name] = self.whole[s.name].copy() if s.range_only else self.whole[s.name]

    def advance(self, s: Statement, part: Statement, place: tuple[Any, ...]) -> Objects:
        """One statement at one step."""
        self.known = self.whole if s.range_only else self.settled
        value = self.statement(part)
        self.whole[s.name][place] = value
        self.settled[s.name][place] = value = self.settle(s, value)
        return value

    # sizes, integers, arrays

    def value_of(self, name: str) -> Objects:
        """A tensor as it is known to the statement that is evaluated."""
        return self.known[name]

    def whole_numbers(self, array: Objects) -> npt.NDArray[np.int64] | None:
        """An array of numbers as int64 where all are integers, else None."""
        found: list[int] = []
        for x in array.ravel().tolist():
            v = self.table.integer(x)
            if v is None or not -(2**62) < v < 2**62:
                return None
            found.append(v)
        return np.array(found, dtype=np.int64).reshape(array.shape)

    def _array(self, values: Sequence[Any], shape: Sequence[int]) -> Objects:
        out = np.empty(len(values), dtype=object)
        out[:] = values
        return out.reshape(shape)

    def _filled(self, shape: Sequence[int], value: Any) -> Objects:
        return self._array([value] * int(np.prod(shape, dtype=np.int64)), shape)

    # one statement

    def statement(self, s: Statement) -> Objects:
        scatter = solvable(s, self.subscripts)
        if scatter is not None:
            return self.scattered(s, *scatter)
        doubtful: list[Mask] | None = [] if self.table.or_nothing is not None and s.over and s.reduce == "sum" else None
        masks = masks_of(s, s.conditions, self.size, self.subscripts, self.judge, doubtful)
        if doubtful:
            return self.direct(s, s.expr, masks, doubtful)
        if not s.over or s.reduce != "sum":
            return self.direct(s, s.expr, masks)
        parts = [(t, contraction(s, t, self.size)) for t in sp.Add.make_args(s.expr)]
        if not any(c for _, c in parts):
            return self.direct(s, s.expr, masks)
        try:
            values = [self.direct(s, t, masks) if c is None else self.contracted(s, t, c, masks) for t, c in parts]
        except UndecidedError:  # a factor that is evaluated alone may be so where the whole statement is not
            return self.direct(s, s.expr, masks)
        out = values[0]
        for v in values[1:]:
            out = self._array(list(map(operator.add, out.ravel().tolist(), v.ravel().tolist())), out.shape)
        return out

    def scattered(self, s: Statement, a: sp.Symbol, value: sp.Expr, condition: sp.Basic) -> Objects:
        """``where a = I``: the other indices are looped over and a is computed."""
        masks = masks_of(s, [c for c in s.conditions if c is not condition], self.size, self.subscripts, self.judge)
        axes = [b for b in s.domain if b != a]
        points = grid(axes, self.shape(axes), [m for m in masks if a not in m.axes])
        at, bad = self.subscripts.value(value, points.at)
        if bad is not None and np.any(bad):
            raise InputValueError(f"{s.name}: a look-up in `{value}` is out of range, in `{s}`")
        points = solved(points, a, self.size(a), at)
        for m in (m for m in masks if a in m.axes):
            keep = m.keep[tuple(points.at[b] for b in m.axes)]
            points = Points({k: v[keep] for k, v in points.at.items()}, int(keep.sum()))
        return self.reduced(s, points, self.values(s.expr, points, s))

    def direct(self, s: Statement, expr: sp.Expr, masks: Sequence[Mask], doubtful: Sequence[Mask] = ()) -> Objects:
        """Point by point; a term of a sum that may be there or not, by ``doubtful``, is taken as both."""
        points = grid(s.domain, self.shape(s.domain), masks)
        values = self.values(expr, points, s)
        if doubtful and self.table.or_nothing is not None:
            open_ = np.any([m.keep[tuple(points.at[a] for a in m.axes)] for m in doubtful], axis=0)
            values = [self.table.or_nothing(v) if o else v for v, o in zip(values, open_.tolist(), strict=True)]
        return self.reduced(s, points, values)

    def reduced(self, s: Statement, points: Points, values: Sequence[Any]) -> Objects:
        """The values at the points gathered into the target."""
        shape = self.shape(s.indices)
        t = self.table
        empty = self.zero
        if s.over:
            empty = {"sum": self.zero, "prod": self.one, "max": t.negative_infinity}[s.reduce]
        out = self._filled(shape, empty).ravel()
        if points.count:
            flat = (
                np.ravel_multi_index([points.at[a] for a in s.indices], shape)
                if shape
                else np.zeros(points.count, dtype=np.int64)
            )
            if not s.over:
                for k, v in zip(flat.tolist(), values, strict=True):
                    out[k] = v
            else:
                reduce = {"sum": t.add, "prod": t.multiply, "max": t.largest}[s.reduce]
                if np.any(flat[1:] < flat[:-1]):
                    order = np.argsort(flat, kind="stable")
                    flat, values = flat[order], [values[k] for k in order.tolist()]
                starts = [0, *(np.flatnonzero(flat[1:] != flat[:-1]) + 1).tolist(), points.count]
                for b, e in itertools.pairwise(starts):
                    out[flat[b]] = reduce(values[b:e])
        return out.reshape(shape)

    # values at points

    def values(self, expr: sp.Expr, points: Points, s: Statement | None) -> list[Any]:
        """An expression at every point; a look-up out of range is NaN where no statement is given, else an error."""
        if not points.count:
            return []
        t = self.table
        rd = reads(expr)
        symbols = tuple(sorted(loose_symbols(expr), key=str))
        columns = [self.column(x, points, s) for x in rd] + [self.numbers(a, points) for a in symbols]
        f, constants = compiled(expr, (*rd, *symbols), t.namespace)
        fixed = [constant(c, t.namespace) for c in constants]
        if not columns:
            return [f(*fixed)] * points.count
        if fixed:
            return list(map(lambda *x: f(*fixed, *x), *columns))
        return list(map(f, *columns))

    def column(self, x: sp.Basic, points: Points, s: Statement | None) -> list[Any]:
        """A tensor at every point."""
        array = self.known[name_of(x)]
        if not subscripts_of(x):
            return [array[()]] * points.count
        found, bad = self.subscripts.look_up(x, array, points.at, self._filled((), self.zero))
        got = np.broadcast_to(found, (points.count,))
        if bad is not None and np.any(bad):
            out = np.broadcast_to(bad, (points.count,))
            if s is not None:
                k = int(np.flatnonzero(out)[0])
                steps = [f"{a}={v}" for a, v in self.subscripts.steps.items()]
                place = ", ".join([*steps, *(f"{a}={int(v[k])}" for a, v in points.at.items())])
                raise InputValueError(f"{s.name}: `{x}` looks outside {name_of(x)} of shape {array.shape} at {place}, in `{s}`")
            got = np.where(out, self._filled((), self.table.nan), got)
        return got.tolist()

    def numbers(self, a: sp.Symbol, points: Points) -> list[Any]:
        """An index or a size as numbers of the type."""
        v = self.subscripts.symbol(a, points.at)
        if np.ndim(v) == 0:
            return [self.table.number(int(v))] * points.count
        ladder = [self.table.number(k) for k in range(int(v.max()) + 1)]
        return [ladder[k] for k in v.tolist()]

    def judge(self, condition: sp.Basic, at: Grid, count: int) -> list[int]:
        """The state of a condition that reads numbers, at every point."""
        states: npt.NDArray[np.int8] = np.full(count, YES, dtype=np.int8)
        for x in reads(condition):
            if subscripts_of(x):
                _, bad = self.subscripts.locate(x, self.known[name_of(x)].shape, at)
                if bad is not None:
                    states[np.broadcast_to(bad, (count,))] = OUTSIDE
        good = np.flatnonzero(states == YES)
        points = Points({a: v[good] for a, v in at.items()}, len(good))
        answers = self.values(condition, points, None)
        states[good] = [OPEN if v is None else YES if v else NO for v in answers]
        return states.tolist()

    # contractions

    def contracted(self, s: Statement, term: sp.Expr, c: Contraction, masks: Sequence[Mask]) -> Objects:
        """A sum of products by the table's matrix product."""
        placed = place(c, masks)
        if placed is None:
            return self.direct(s, term, masks)
        left, lbad = self.operand(c.left, c.left_axes, placed.left, (*placed.right, *placed.result))
        right, rbad = self.operand(c.right, c.right_axes, placed.right, (*placed.left, *placed.result))
        z, r, x, q = volumes(c, self.size)
        a, b = left.reshape(z, r, x), right.reshape(z, x, q)
        out = np.empty((z, r, q), dtype=object)
        for k in range(z):
            out[k] = self.table.matmul(a[k], b[k])
        some, hit = touched(c, placed, self.size, lbad, rbad)
        order = sorted(range(len(c.axes)), key=lambda k: s.indices.index(c.axes[k]))
        full = self.shape(s.indices)

        def spread(v: npt.NDArray[Any]) -> npt.NDArray[Any]:
            v = v.reshape(self.shape(c.axes)).transpose(order)
            return np.broadcast_to(v.reshape([self.size(i) if i in c.axes else 1 for i in s.indices]), full)

        again = np.array(spread(hit))
        result = self._filled(full, self.zero)
        inside = grid(s.indices, full, [Mask(s.indices, spread(some)), *placed.result])
        index = tuple(inside.at[i] for i in s.indices)
        values = spread(out)[index].tolist()
        if c.outer is not sp.S.One:
            factor = self.values(c.outer, inside, s)
            again[index] |= np.array([not self.table.finite(v) for v in factor], dtype=bool)
            values = list(map(operator.mul, values, factor))
        if values:
            result[index] = values
        if again.any():
            repeat = self.direct(s, term, [*masks, Mask(s.indices, again)])
            result[again] = repeat[again]
        return result

    def operand(
        self, e: sp.Expr, axes: tuple[sp.Symbol, ...], own: Sequence[Mask], other: Sequence[Mask]
    ) -> tuple[Objects, Bools]:
        """One factor on the grid of its axes, 0 where masked, and where it is not finite (0 is put there too)."""
        shape = self.shape(axes)
        points = grid(axes, shape, [*own, *(m.onto(axes) for m in other)])
        values = self.values(e, points, None)
        bad: Bools = np.zeros(shape, dtype=bool)
        index = tuple(points.at[a] for a in axes)
        finite = self.table.finite
        wrong = [not finite(v) for v in values]
        if any(wrong):
            bad[index] = wrong
            values = [self.zero if w else v for v, w in zip(values, wrong, strict=True)]
        if points.count == bad.size:
            return self._array(values, shape), bad
        out = self._filled(shape, self.zero)
        if values:
            out[index] = values
        return out, bad
