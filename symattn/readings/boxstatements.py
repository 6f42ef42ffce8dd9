"""The box of a statement: which of the declared roundings apply follows from its structure (:mod:`symattn.readings.rounding`)."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np
import sympy as sp

from symattn.program import Program, Statement, integer_symbols, name_of, reads
from symattn.readings import boxes as bx
from symattn.readings import merging
from symattn.readings.boxarithmetic import multiply, power_of_two
from symattn.readings.boxes import Box
from symattn.readings.boxsums import Extra, Factor, cast_operands, factor_axes, gamma, sum_of_products, weights
from symattn.readings.boxterms import Axes, Known, Terms, combined, doubtful, masks_of, there_or_zero, unknown
from symattn.readings.steps import at_step, place_of, walk
from symattn.readings.units import Unit, fits

__all__ = ["Statements", "summed_as_read"]


class Statements:
    """What a program and a declaration say about its statements, found once."""

    def __init__(self, program: Program, known: Known, fixed: bool = False) -> None:
        self.program, self.known, self.fixed = program, known, fixed
        self.tiled = {program.dims[a] for s in program for a in _tiled(s)}
        self.rows = {program.dims[a] for s in program if _tiled(s) for a in set(s.domain) - _tiled(s)}
        self.rounded = summed_as_read(program) if known.arithmetic.sum_from_cast else frozenset()
        self.grown = _grown_as(program)
        self.prescaled: dict[str, str] = {}
        for s in program:
            scalars = [name_of(f) for f in sp.Mul.make_args(s.expr) if f.is_Symbol and not f.is_integer]
            for f in sp.Mul.make_args(s.expr):
                if scalars and not s.over and isinstance(f, sp.Indexed) and name_of(f) in program:
                    self.prescaled[name_of(f)] = scalars[0]
            if scalars and s.over:
                self.prescaled[s.name] = scalars[0]

    def over(self, known: Known) -> Statements:
        """The same program and declaration over other boxes."""
        other = copy(self)
        other.known = known
        return other

    def statement(self, s: Statement) -> Box:
        """The box of what a statement defines."""
        domain = s.domain
        free = [c for c in s.conditions if not set(factor_axes(c, domain)) & set(s.over)]
        bound = [c for c in s.conditions if c not in free]
        if s.over and s.reduce == "sum":
            b = self._sum(s, bound)
        elif s.over:
            b = self._reduction(s, bound)
        else:
            b = self._unreduced(s)
        b = self._spread(b, s.indices)
        masks = masks_of(self.known, free, domain)
        keep = combined(masks, s.indices, self.known)
        doubt, inside = doubtful(masks, s.indices, (), self.known), b
        if keep is not None:
            b = bx.select(keep, b, -np.inf if s.over and s.reduce == "max" else 1.0 if s.over and s.reduce == "prod" else 0.0)
        b = unknown(b, doubt) if s.over and s.reduce != "sum" else there_or_zero(b, inside, doubt)
        if s.range_only:
            return self._gauge(s, b)
        return self._store(s, self._put_together(s, b) if self.known.arithmetic.merged and self._is_average(s) else b)

    def scanned(self, group: tuple[Statement, ...]) -> None:
        """A scan group, step by step; what the boxes of a step say in one word holds for all steps so far."""
        scan = group[0].scan
        assert scan is not None
        known = self.known
        parts = [at_step(s) for s in group]
        known.boxes.update({s.name: bx.zeros([known.sizes[a] for a in s.indices]) for s in group})
        for turn, k in enumerate(walk(group, known.sizes[scan.index])):
            known.subscripts.steps[scan.index] = k
            for s, part in zip(group, parts, strict=True):
                known.boxes[s.name] = bx.placed(known.boxes[s.name], self.statement(part), place_of(s, k), turn == 0)
        del known.subscripts.steps[scan.index]

    def _spread(self, b: Box, axes: Axes) -> Box:
        shape = [self.known.sizes[x] for x in axes]
        return b.map(lambda x: np.broadcast_to(x, shape))

    def _unreduced(self, s: Statement) -> Box:
        terms = Terms(self.known, s.indices)
        b = bx.settled(terms.box(s.expr), terms.unit)
        return self._held(s.expr, b)

    def _held(self, e: sp.Expr, b: Box) -> Box:
        """What an operation gave is in the compute format; a copy stays what it is."""
        copy = e in reads(e)
        return b if copy else b.marked(held=self.known.arithmetic.compute, gauge=False)

    def _sum(self, s: Statement, conditions: list[sp.Basic]) -> Box:
        a, free = self.known.arithmetic, s.indices
        factors = []
        for e in _factors(s.expr):
            axes = factor_axes(e, s.domain)
            terms = Terms(self.known, axes)
            box = self._held(e, bx.settled(terms.box(e), terms.unit))
            copy = e in reads(e)
            given, rounded = copy and name_of(e) in self.program.inputs, copy and name_of(e) in self.rounded
            factors.append(Factor(self._spread(box, axes), axes, given, rounded))
        factors = cast_operands(factors, s.over, self.known)
        masks = masks_of(self.known, conditions, s.domain)
        b = sum_of_products(factors, free, s.over, masks, self._extra(s, factors), self.known)
        narrow = Unit.of(a.compute, a.flush_to_zero)
        if not fits(a.accumulate, narrow.name):  # the scale is applied to the rounded sum
            for f in factors:
                if not f.axes and not power_of_two(f.box):
                    b = bx.finish(
                        b.value, b.own, b.bound, b.low, narrow.u, narrow.tiny, b.nonneg, held=b.held, rescalings=b.rescalings
                    )
        return b

    def _extra(self, s: Statement, factors: list[Factor]) -> Extra:
        """Declared roundings of a sum: pre-scaled operands, buffers that grow tile by tile, partial results of expanded heads."""
        a, extra = self.known.arithmetic, Extra()
        matrices = [f for f in factors if f.axes]
        if a.scale_before and s.name in self.prescaled and len(matrices) > 1:
            scale = self.known.boxes.get(self.prescaled[s.name])
            if scale is not None:
                inside, twice = Unit.of(a.scale_format or a.input), Unit.of(a.compute)
                relative = (1 + inside.u) ** a.scale_before * (1 + twice.u) ** (2 * a.scale_before) - 1
                extra = replace(extra, relative=relative * bx.UP, scaled=float(np.min(np.abs(scale.value))))
        if s.name not in self.grown:
            return extra
        keys = [x for x in s.over if not self.tiled or self.program.dims[x] in self.tiled]
        rows = [x for x in s.over if not self.tiled or self.program.dims[x] in self.rows]
        if a.dq_accumulate is not None and keys:
            extra = _grown(extra, Unit.of(a.dq_accumulate), a.tiles(max(self.known.sizes[x] for x in keys)))
        if a.dkv_accumulate is not None and rows:
            longest = max(self.known.sizes[x] for x in rows)
            extra = _grown(extra, Unit.of(a.dkv_accumulate), a.query_tiles(longest) * (_volume(self.known, rows) // longest))
        if a.expand_heads and len(s.over) > 1:
            unit = Unit.of(a.output)
            extra = replace(extra, relative=(1 + extra.relative) * (1 + unit.u) - 1 + bx.U, each=extra.each + unit.tiny)
        return extra

    def _reduction(self, s: Statement, conditions: list[sp.Basic]) -> Box:
        """A maximum or a product, a term at a time."""
        domain: Axes = s.domain
        terms = Terms(self.known, domain)
        b = self._held(s.expr, bx.settled(terms.box(s.expr), terms.unit))
        b = self._spread(b, domain)
        masks = masks_of(self.known, conditions, domain)
        keep = combined(masks, domain, self.known)
        if keep is not None:
            b = unknown(bx.select(keep, b, -np.inf if s.reduce == "max" else 1.0), doubtful(masks, domain, (), self.known))
        lead = len(s.indices)
        if s.reduce == "max":
            axes = tuple(range(lead, len(domain)))
            value, own, bound = b.value.max(axis=axes), b.own.max(axis=axes), b.bound.max(axis=axes)
            out = bx.finish(value, own, bound, None, 0.0, 0.0, b.nonneg, held=b.held)
            keys = int(np.prod([self.known.sizes[x] for x in s.over]))
            return replace(out, rescalings=self.known.arithmetic.tiles(keys) - 1)
        unit = Unit.of(self.known.arithmetic.accumulate, self.known.arithmetic.flush_to_zero)
        b = b.map(lambda x: x.reshape([*x.shape[:lead], -1]))
        parts = [_slice(b, k) for k in range(b.value.shape[-1])]
        out = parts[0]
        for p in parts[1:]:
            out = multiply(out, p, unit)
        return replace(out, held=unit.name)

    def _gauge(self, s: Statement, b: Box) -> Box:
        """A row maximum is what the kernel used: what it may be off by enters sizes only."""
        a = self.known.arithmetic
        finite = np.isfinite(b.value)
        stale = a.stale if self.known.lagging is None else 0.0
        own = b.own if self.fixed else (b.own + np.where(finite, b.bound + stale, 0.0)) * bx.UP
        running = self.program[s.name].scan is not None  # its rescalings are in the list
        again = b.rescalings + (0 if s.over or a.tile is None or running else 1) + (merging.AGAIN if a.merged else 0)
        low = np.maximum(np.abs(b.value) - own, 0.0)
        return Box(b.value, np.zeros_like(own), low, own, held=b.held, gauge=True, rescalings=again)

    def _put_together(self, s: Statement, b: Box) -> Box:
        """An average of a row whose parts are put together."""
        a, terms, relative = self.known.arithmetic, Terms(self.known, s.indices), np.zeros(())
        sums = [self.program[name_of(f.base)] for f in sp.Mul.make_args(s.expr) if f.is_Pow and isinstance(f.base, sp.Indexed)]
        weights = [self.program[name_of(x)] for t in sums for x in reads(t.expr) if name_of(x) in self.program]
        shifts = [(x, w) for w in weights for x in reads(w.expr) if self.known.boxes[name_of(x)].gauge]
        for x, w in shifts:
            keys = int(np.prod([self.known.sizes[i] for i in w.indices if i not in x.free_symbols]))
            size = np.where(np.isfinite(b.value), terms.box(x).size, 0.0)
            relative = np.maximum(relative, merging.of_average(a, size, keys))
        return bx.finish(b.value, b.own, b.bound, b.low, relative, 0.0, b.nonneg, held=b.held, rescalings=b.rescalings)

    def _store(self, s: Statement, b: Box) -> Box:
        """The result rounded to the format that holds it."""
        a = self.known.arithmetic
        if not s.indices and not s.over and a.scalar_roundings:
            u = a.scalar_roundings * Unit.of(a.scalar_format or a.compute).u
            b = bx.finish(b.value, b.own, b.bound, b.low, u, 0.0, b.nonneg, held=b.held)
        if s.name in self.program.outputs:
            return bx.stored(b, Unit.of(a.lse if s.expr.has(sp.log) else a.output)).marked(rescalings=0)
        if self._is_average(s):
            return bx.stored(b, Unit.of(a.output))
        b = bx.stored(b, Unit.of(a.aux if s.aux else a.store))
        return weights(b, a) if s.name in self.rounded and b.nonneg else b

    def _is_average(self, s: Statement) -> bool:
        """``N/l`` of a sum of products N: the output of an attention that is not the output of the program."""
        parts = sp.Mul.make_args(s.expr)
        sums = [self.program[name_of(f)] for f in parts if isinstance(f, sp.Indexed) and name_of(f) in self.program]
        products = [
            t for t in sums if t.over and t.reduce == "sum" and sum(isinstance(f, sp.Indexed) for f in _factors(t.expr)) > 1
        ]
        return not s.over and bool(products) and any(f.is_Pow and f.exp == -1 for f in parts)


def _grown_as(program: Program) -> frozenset[str]:
    """Tensors that grow in the buffer of an output: the outputs, and sums that an output is the sum of."""
    parts = [x for n in program.outputs for x in sp.Add.make_args(program[n].expr) if not program[n].over]
    names = {name_of(x) for x in parts if isinstance(x, sp.Indexed)}
    return frozenset(program.outputs) | {n for n in names if n in program and program[n].over}


def summed_as_read(program: Program) -> frozenset[str]:
    """Tensors that a matrix product and a plain sum read, and nothing else does: both may read the rounded one."""
    found = set()
    for s in program:
        users = program.users(s.name)
        if s.over or s.range_only or s.name in program.outputs or any(not t.over or t.reduce != "sum" for t in users):
            continue
        products = [t for t in users if sum(isinstance(f, sp.Indexed) for f in _factors(t.expr)) > 1]
        if products and len(products) < len(users):
            found.add(s.name)
    return frozenset(found)


def _volume(known: Known, axes: list[sp.Symbol]) -> int:
    return int(np.prod([known.sizes[x] for x in axes]))


def _grown(extra: Extra, unit: Unit, blocks: int) -> Extra:
    """A buffer that is rounded after each of so many blocks, and once more at the end."""
    share = float(gamma(np.asarray(blocks + 1.0), unit.u))
    return replace(extra, relative=(1 + extra.relative) * (1 + share) - 1 + bx.U, block=extra.block + (blocks + 1) * unit.tiny)


def _tiled(s: Statement) -> set[sp.Symbol]:
    """The indices of a softmax's terms: those that a row maximum runs over, and those that ``-L`` in ``exp(Z - L)`` lacks."""
    found = set(s.over) if s.range_only else set()
    for e in s.expr.atoms(sp.exp):
        for term in sp.Add.make_args(e.args[0]):
            if term.could_extract_minus_sign() and reads(term):
                found |= set(s.domain) - integer_symbols(term)
    return found


def _slice(b: Box, k: int) -> Box:
    return b.map(lambda x: x[..., k])


def _factors(e: sp.Expr) -> list[sp.Expr]:
    """The factors of a term, its number (if it is not 1) as one of them."""
    number, rest = e.as_coeff_Mul()
    parts = list(sp.Mul.make_args(rest)) if rest != 1 else []
    return ([number] if number != 1 or not parts else []) + parts
