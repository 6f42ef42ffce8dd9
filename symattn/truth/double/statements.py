"""One statement at a time: the tensors of a program as numbers with an error."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sp

from symattn.program import Program, Statement, name_of
from symattn.readings.contraction import Contraction, contraction, place, touched
from symattn.readings.domain import Mask, solvable
from symattn.readings.steps import Stepwise
from symattn.truth.double.approx import FULL, Approx, Array
from symattn.truth.double.arithmetic import add, multiply, selected
from symattn.truth.double.arrays import Arrays, base_of
from symattn.truth.double.functions import Library
from symattn.truth.double.kinds import Axes
from symattn.truth.double.layouts import axes_of, by_small_factors, first, in_order, merged, pairing, split
from symattn.truth.double.masks import NO_MASKS, Masks, is_zero_outside, masks_of
from symattn.truth.double.operands import operand, with_number
from symattn.truth.double.scatter import scattered
from symattn.truth.double.sums import contracted, largest, product, summed
from symattn.truth.double.terms import Terms

__all__ = ["Statements"]


class Statements(Stepwise):
    """An evaluation of statements from what is known.

    Parameters
    ----------
    program
        A program: the whole one, or that of a block.
    sizes
        Its sizes.
    given
        Its inputs as exact arrays, as far as they are known so.
    known
        Its inputs by name; what is evaluated is put there.
    library
        Where functions come from.
    used
        Names of the functions that are used, which is added to.
    memo
        What has been found of the statements of the program, whatever is put in.
    scratch
        What has been found with these inputs, and arrays that may be used again.
    """

    def __init__(
        self,
        program: Program,
        sizes: Mapping[sp.Symbol, int],
        given: Mapping[str, Any],
        known: dict[str, Approx],
        library: Library,
        used: set[str],
        memo: dict[Any, Any],
        scratch: dict[Any, Any],
    ) -> None:
        super().__init__(program, sizes, given)
        self.given, self.known, self.library, self.used = given, known, library, used
        self.memo, self.scratch = memo, scratch
        self._sizes = tuple(sizes.values())
        self._extents = memo.setdefault(("extents", self._sizes), self._extents)
        self._shapes: dict[Axes, tuple[int, ...]] = memo.setdefault(("shapes", self._sizes), {})
        self.settled: dict[str, Approx] = {}
        self.settled_masks: dict[tuple[sp.Basic, Axes], tuple[Mask, Mask | None]] = {}
        self.owned: set[str] = set()
        self.done: list[Array] = []
        self.arrays = Arrays(scratch.setdefault("pool", {}))
        self.now: Statement | None = None
        self.leaving: tuple[str, ...] = ()

    # what Stepwise and Terms ask for

    def shape(self, axes: Any) -> tuple[int, ...]:
        """How many values each of some indices takes."""
        found = self._shapes.get(axes)
        if found is None:
            found = self._shapes[axes] = super().shape(axes)
        return found

    def tensor(self, name: str) -> Approx:
        """A tensor. What is ``range_only`` is exact for the statements that are not: outputs do not depend on its value."""
        a = self.known[name]
        if (
            (self.now is not None and self.now.range_only)
            or name not in self.program
            or not self.program[name].range_only
            or a.exact
        ):
            return a
        if name not in self.settled:
            self.settled[name] = Approx(a.value, special=a.special, nonneg=a.nonneg)
        return self.settled[name]

    def value_of(self, name: str) -> Any:
        """A tensor as the integers in it are looked for: an input as it was given."""
        return self.given[name] if name in self.given else self.known.get(name)

    def whole_numbers(self, array: Any) -> npt.NDArray[np.int64] | None:
        """The integers of a tensor where it holds nothing else."""
        if array is None:
            return None
        if isinstance(array, Approx):
            fine = array.exact and bool(np.isfinite(array.value).all() and (array.value == np.rint(array.value)).all())
            return array.value.astype(np.int64) if fine else None
        a = np.asarray(array)
        if a.dtype.kind in "biu":
            return a.astype(np.int64)
        if a.dtype == object or a.dtype.kind == "V":
            return None
        whole = bool(np.all(np.isfinite(a) & (np.abs(a) < 2.0**62))) and bool(np.all(a == np.floor(a)))
        return a.astype(np.int64) if whole else None

    def begin(self, s: Statement) -> None:
        """Zeros for what a statement of a scan defines."""
        shape = self.shape(s.indices)
        self.known[s.name] = Approx(np.zeros(shape), 0.0, np.zeros(shape), nonneg=True, whole=True)

    def advance(self, s: Statement, part: Statement, place: tuple[Any, ...]) -> Approx:
        """One statement at one step, kept with the error of every element."""
        self.now = s
        found, whole = self.evaluated(part), self.known[s.name]
        whole.value[place] = found.value
        error: Any = whole.abs
        error[place] = found.full() if not found.exact else 0.0
        self.known[s.name] = whole.changed(
            nonneg=whole.nonneg and found.nonneg,
            whole=whole.whole and found.whole,
            special=whole.special or found.special,
            abs=error,
        )
        self.settled.pop(s.name, None)
        return found

    # statements

    def run(self) -> dict[str, Approx]:
        """Every tensor."""
        last = self.last_reads
        for group in self.program.groups():
            if group[0].scan is not None:
                self.scanned(group)
                for s in group:
                    a = self.known[s.name]
                    self.known[s.name] = a.changed(abs=a.abs if np.any(a.abs) else 0.0)
            else:
                (s,) = group
                name = s.name
                self.now, self.leaving = s, last.get(name, ())
                made = self.evaluated(s) if s.needs or s.domain else self.of_sizes(s)
                if made.temporary:
                    self.owned.add(name)
                self.known[name] = self.filled(made, axes_of(s)[0])
                for n in self.leaving:
                    self.settled.pop(n, None)
                    self.left(n, self.known.pop(n).value)
        return self.known

    def of_sizes(self, s: Statement) -> Approx:
        """The value of a statement that reads no tensor: found once for these sizes, where it takes no function of a library."""
        key = ("of sizes", self._sizes, s.name)
        if key not in self.memo:
            before, self.used = self.used, set()
            made, found, self.used = self.evaluated(s), self.used, before
            if found:
                before |= found
                return made
            self.memo[key] = made.changed(temporary=False)
        known: Approx = self.memo[key]
        return known

    def dying(self, name: str) -> bool:
        """Whether the statement that is evaluated is the last to read a tensor that was made here, and reads it once."""
        s = self.now
        if s is None or name not in self.leaving or name not in self.owned or not self.known[name].large:
            return False
        if not self._found(
            f"once {name}", s, lambda: s.expr.count(lambda e: isinstance(e, sp.Indexed) and name_of(e) == name) == 1
        ):
            return False
        return not self.held(self.known[name].value, name)

    def held(self, value: Array, name: str) -> bool:
        """Whether a tensor other than one that is named needs the numbers in an array."""
        base = base_of(value)
        others = (a.value for n, a in self.known.items() if n != name)
        weights = (w.value for a in self.known.values() for _, w in a.weights)
        return any(base_of(v) is base for v in (*others, *weights))

    def left(self, name: str, value: Array) -> None:
        """Nobody reads a tensor any more: its array is for the next one, or for the next block where a weight is in it."""
        if value.size > FULL and name in self.owned and not self.held(value, name):
            self.arrays.give(value)
        else:
            self.done.append(value)

    @property
    def last_reads(self) -> dict[str, tuple[str, ...]]:
        """Which tensors are not needed any more after a statement, by its name; outputs, inputs and those of scans are kept."""
        key = "last reads"
        if key not in self.memo:
            last: dict[str, str] = {}
            for s in self.program:
                for n in s.needs:
                    last[n] = s.name
            found: dict[str, list[str]] = {}
            for n, reader in last.items():
                made = n in self.program and n not in self.program.outputs
                if made and self.program[n].scan is None and self.program[reader].scan is None:
                    found.setdefault(reader, []).append(n)
            self.memo[key] = {n: tuple(v) for n, v in found.items()}
        return self.memo[key]

    def filled(self, a: Approx, axes: Axes) -> Approx:
        """A tensor with an array of its whole shape, which nobody overwrites."""
        shape = self.shape(axes)
        if a.value.shape != shape:
            a = a.mapped(lambda v: v) if not a.large else a
            a = a.changed(value=np.ascontiguousarray(np.broadcast_to(a.value, shape)))
        if a.large:
            a.size()
            return a.changed(temporary=False, norms={})
        return a.changed(temporary=False)

    def evaluated(self, s: Statement) -> Approx:
        """The value of a statement."""
        if s.where == sp.true:
            masks = NO_MASKS
        else:
            scatter = self.scatter(s)
            if scatter is not None:
                return scattered(self, s, *scatter)
            masks = masks_of(self, s.conditions, s.domain)
        if not s.over or s.reduce != "sum" or masks.doubt is not None:
            return self.direct(s, s.expr, masks)
        terms = self._found("terms", s, lambda: [(t, self.contraction(s, t)) for t in sp.Add.make_args(s.expr)])
        if not any(c for _, c in terms):
            return self.direct(s, s.expr, masks)
        out: Approx | None = None
        for t, c in terms:
            v = self.contracted(s, c, masks) if c is not None else None
            v = self.direct(s, t, masks) if v is None else v
            out = v if out is None else add(out, v)
        assert out is not None
        return out

    def scatter(self, s: Statement) -> tuple[sp.Symbol, sp.Expr, sp.Basic] | None:
        """A condition ``a = I``, where the statement can be evaluated without a loop over a."""
        if s.over and s.reduce != "sum":
            return None
        key = ("scatter", s)
        if key not in self.scratch:
            self.scratch[key] = solvable(s, self.subscripts)
        found: tuple[sp.Symbol, sp.Expr, sp.Basic] | None = self.scratch[key]
        return found

    def contraction(self, s: Statement, term: sp.Expr) -> Contraction | None:
        """A term of a sum as a contraction whose rows come before its columns in the target."""
        c = by_small_factors(s, term, self.size)
        c = contraction(s, term, self.size) if c is None else c
        return pairing(s, term) if c is None else in_order(c, s.indices)

    def _found(self, what: Any, s: Statement, find: Any) -> Any:
        key = (what, s.name)
        if key not in self.memo:
            self.memo[key] = find()
        return self.memo[key]

    def direct(self, s: Statement, expr: sp.Expr, masks: Masks) -> Approx:
        """On the whole grid, masked points selected away."""
        free, domain = axes_of(s)
        shape = self.shape(domain)
        a = Terms(self, domain).value(expr)
        keep, doubt = masks.keep(domain), masks.doubt
        axes = tuple(range(len(free), len(domain)))
        if keep is not None and not a.special and self.vanishes(expr, s):
            keep = None if s.reduce == "sum" or not s.over else keep
        if not s.over:
            a = a if keep is None else selected(a, keep)
            if doubt is not None:
                a = a.changed(value=np.where(doubt, np.nan, a.value), special=True, whole=False, temporary=True)
            return a
        if s.reduce == "sum":
            extra = None
            if doubt is not None:
                with np.errstate(all="ignore"):
                    extra = np.where(doubt, a.full() + np.abs(a.value), 0.0)
                extra = np.where(np.isnan(extra), np.inf, extra)
                a = a.changed(nonneg=False)
            a = a if keep is None else selected(a, keep)
            return summed(a, shape, axes, extra)
        if s.reduce == "max":
            out = largest(a, None if keep is None else np.broadcast_to(keep, shape), shape, axes)
        else:
            if keep is not None:
                filled = selected(a, keep)
                a = filled.changed(value=np.where(keep, filled.value, 1.0), bound=None)
            out = product(a, shape, len(axes))
        if doubt is not None:
            out = out.changed(value=np.where(doubt.any(axis=axes), np.nan, out.value), special=True, whole=False)
        return out

    # contractions

    def contracted(self, s: Statement, c: Contraction, masks: Masks) -> Approx | None:
        """A sum of products by a matrix product; None: not by one."""
        placed = place(c, masks.masks)
        if placed is None:
            return None
        la, ra = (*c.batch, *c.row, *c.bound), (*c.batch, *c.column, *c.bound)
        left, right = (operand(self, s, e, axes, m) for e, axes, m in ((c.left, la, placed.left), (c.right, ra, placed.right)))
        hit: Array | None = None
        z, r, x, q = (math.prod(self.shape(axes)) for axes in (c.batch, c.row, c.bound, c.column))
        if left.special or right.special:
            bad = ~np.isfinite(left.value), ~np.isfinite(right.value)
            k = len(c.batch)
            order = (*range(k), *range(k + len(c.column), bad[1].ndim), *range(k, k + len(c.column)))
            hit = touched(c, placed, self.size, bad[0], bad[1].transpose(order))[1]
            left, right = (
                a.changed(value=np.where(b, 0.0, a.value), special=False) for a, b in zip((left, right), bad, strict=True)
            )
        outer = c.outer
        if not placed.result and z * r * q > max(FULL, left.value.size, right.value.size):
            left, right, outer = with_number(self, c, left, right)
        a = merged(left, self.shape(la), (len(c.batch), len(c.row)), (z, r, x))
        b = merged(right, self.shape(ra), (len(c.batch), len(c.column)), (z, q, x))
        out = contracted(a, b, self.arrays.take((z, r, q)))
        if hit is not None and hit.any():
            out = out.changed(value=np.where(hit, np.nan, out.value), special=True, whole=False)
        out = self.spread(out, c, s, (z, r, q))
        if outer is not sp.S.One:
            out = multiply(out, Terms(self, s.indices).value(outer))
            for m in (m.onto(s.indices) for m in masks.masks):
                if not m.keep.all():  # the sum over nothing is 0, whatever is in front of it
                    out = selected(out, m.over(s.indices))
        for m in placed.result:
            out = selected(out, m.over(s.indices))
        return out

    def spread(self, a: Approx, c: Contraction, s: Statement, whole: tuple[int, int, int]) -> Approx:
        """A product of shape (batch, row, column) on the grid of a statement's indices."""
        if c.axes == axes_of(s)[0] and len(c.row) == len(c.column) == 1 and len(c.batch) <= 1:
            return a if c.batch else a.mapped(first).changed(temporary=a.temporary)
        order = sorted(range(len(c.axes)), key=lambda k: s.indices.index(c.axes[k]))
        shape = self.shape(c.axes)

        def move(v: Array) -> Array:
            v = split(v, whole, shape, (len(c.batch), len(c.row))).transpose(order)
            left = iter(v.shape)
            return v.reshape([next(left) if i in c.axes else 1 for i in s.indices])

        return a.mapped(move).changed(temporary=a.temporary)

    def room(self, shape: tuple[int, ...]) -> Array | None:
        """An array for a large result."""
        return self.arrays.room(shape)

    def release(self, keep: Sequence[str] = ()) -> None:
        """Give the arrays of tensors that were made here to the next block; nobody may hold them any more, but some by name."""
        for n in keep:
            self.arrays.keep(self.known[n].value)
        for v in [*self.done, *(self.known[n].value for n in self.owned if n in self.known)]:
            self.arrays.give(v)

    def vanishes(self, e: sp.Expr, s: Statement) -> bool:
        """Whether an expression of finite numbers is 0 wherever the condition of a statement does not hold: a factor is."""
        return bool(
            self._found(("vanishes", e), s, lambda: any(is_zero_outside(self.program, f, s) for f in sp.Mul.make_args(e)))
        )
