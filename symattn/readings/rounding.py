r"""The rounding reading: how far a conforming kernel may be from the true value, for every element of every tensor of a program.

The kernel is taken to compute each statement from its own computed operands under a declared
:class:`~symattn.arithmetic.Arithmetic`. Which of the declared constants applies follows from the structure of a statement:

============================================  ======================================================================
a sum of products                             products and sums in the accumulate format, in any order (or declared depth)
an unreduced expression                       each operation rounded to the compute format, functions with their error
an output                                     rounded to the output format; with a logarithm in it, to the LSE format
a sum of products, divided (an average)       rounded to the output format, as what a kernel saves for its backward
a helper (``aux``), any other tensor          rounded to the ``aux``, the ``store`` format
an intermediate operand of a matrix product   rounded when read: ``probability`` if not negative, else ``gradient``
an exponential that reads a row maximum       its error once more for each rescaling; sums over it get a rounding for each
a ``range_only`` tensor                       no error; how far it may be off only enters sizes
============================================  ======================================================================

**Theorem.** Let t be the true values of the program at the row maxima that the kernel used, and k what a kernel that conforms to
the declaration computes, without overflow. Then every box holds ``|k - t| <= bound`` and ``|k| >= low``, and ``|v - t| <= own``
for the float64 value v. Outputs do not depend on the row maxima (the claim ``range_only``, proved elsewhere), so for them t is
the exact value, and ``bound`` is the largest error that a correct kernel may show.

*Proof*, by induction over the list. Inputs are exact, or within the given error. For an operation f with rounding (u, eta),

    |k_y - t_y| <= |f(k_x) - f(t_x)| + u |f(k_x)| + eta,

and the first term is bounded from the radii of the operands: it telescopes for sums and products
(``k_a k_b - t_a t_b = (k_a - t_a) k_b + t_a (k_b - t_b)``), is ``|k - t| / (|k| |t|)`` for 1/x, ``t (e^r - 1)`` for exp, and at
most the greatest slope times the radius elsewhere. ``low`` keeps 1/x and log finite where errors are relative: exp, sums and
products of numbers of certain sign have lower bounds better than ``|v| - r``.
In a sum, each term passes through at most as many
roundings as there are additions with two operands that are not 0, plus its products and rescalings, in whatever order the sum
is taken; hence ``gamma_r sum |terms|``. Points outside ``where`` contribute exact zeros. The rescalings of an online softmax
multiply a weight by further exponentials of differences of running maxima; these are monotone, so the differences telescope to
that of the list and only the error of exp is repeated. A row maximum that the kernel used is ``t = k`` by definition, within the
radius of what it is a maximum of; that distance is part of ``own``, so all sizes below contain it. A maximum that is late by s
multiplies what has a degree in it (:mod:`.degrees`) by ``e^s``, errors included: where every tensor has a degree, boxes are those
divided by it, and what rounds relative to the exponents themselves errs by a few ``u s`` more. A term of a sum whose
condition rounding errors could turn may be in one of the two sums and not in the other: its size is added. Nothing is
linearised. The
steps of a scan are statements one after the other, and a tensor of a scan is exactly 0 beyond its ends.

The evaluation itself is float64: ``own`` follows the same rules with u = 2^-53 for v, every size contains it, and
radii are rounded outward after every operation, so the bounds hold for float64 kernels too.

This is plain propagation: errors that several paths share are not cancelled against each other, so for float32 kernels with large
scores the bound is several times the least one. It belongs to the list as written: a kernel that computes D from its rounded
O has another list than one that sums ``P dP``. Sources: N. J. Higham, *Accuracy and Stability of Numerical Algorithms*,
2nd ed., sections 3.1 and 4.2; for the softmax, P. Blanchard, D. J. Higham and N. J. Higham, IMA J. Numer. Anal. 41 (2021).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import sympy as sp

from symattn import formats
from symattn.arithmetic import Arithmetic
from symattn.program import Program, Statement, integer_symbols, name_of, reads
from symattn.readings import boxes as bx
from symattn.readings import merging
from symattn.readings.blocks import Block
from symattn.readings.boxes import Array, Box, Unit
from symattn.readings.boxsums import Extra, Factor, cast_operands, factor_axes, gamma, sum_of_products, weights
from symattn.readings.boxterms import Axes, Known, Terms, combined, doubtful, masks_of, there_or_zero, unknown
from symattn.readings.degrees import lagging
from symattn.readings.sizes import check_names, find_sizes, size_value
from symattn.readings.steps import at_step, place_of, walk
from symattn.readings.subscripts import Subscripts, is_position

__all__ = ["Box", "Evaluation", "evaluate"]

WIDE = 127
"""Greatest exponent of formats in which what a row maximum is late by overflows nothing."""


def evaluate(
    program: Program,
    inputs: Mapping[str, Any],
    arithmetic: Arithmetic,
    *,
    sizes: Mapping[sp.Symbol | str, int] | None = None,
    input_errors: Mapping[str, Any] | None = None,
) -> dict[str, Box]:
    """The box of every tensor of a program, inputs included.

    Parameters
    ----------
    program
        The list that the kernel follows.
    inputs
        Arrays of any dtype, of the shapes in ``program.shapes``; exact as they are. A number that the compute format
        cannot hold (a float64 parameter of a float32 kernel) is rounded when it is read.
    arithmetic
        How the kernel computes.
    sizes
        Sizes that no input shows.
    input_errors
        How far the kernel's own copy of an input may be from the given one, by name.

    Returns
    -------
    dict
        Name -> :class:`Box` with float64 arrays ``value``, ``bound``, ``low`` and ``own``. The bound is rigorous, rounded
        outward, and infinite where the declaration promises nothing (overflow, a divisor that may be 0, a ``where`` of an
        unreduced statement that rounding errors could turn).

    Raises
    ------
    ShapeError
        For shapes that do not fit.
    UnknownNameError, InputValueError
        For inputs that are not read or missing.
    ProgramError
        For a function without a rounding rule.

    >>> from symattn.program import index, size, tensor
    >>> j = index("j")
    >>> p = Program((Statement(tensor("l"), tensor("x", j), (j,)),), {j: size("m")}, ("l",))
    >>> from symattn import arithmetic
    >>> box = evaluate(p, {"x": np.ones(4)}, arithmetic.get("eager-fp32"))["l"]
    >>> float(box.value), bool(3 * 2**-24 * 4 <= box.bound < 1.001 * 3 * 2**-24 * 4)  # three additions, a sum of sizes of 4
    (4.0, True)
    """
    found = Evaluation(program, inputs, arithmetic, sizes=sizes, input_errors=input_errors).boxes
    return {n: found[n] for n in (*inputs, *(s.name for s in program))}


class Evaluation:
    """The boxes of a program, kept with what was found on the way: the door to the local errors of its statements.

    Parameters
    ----------
    program, inputs, arithmetic, sizes, input_errors
        As for :func:`evaluate`.
    refine
        By name of a tensor: finds a smaller bound of it, given the evaluation so far; what reads it profits.
    boxes
        Boxes of some inputs, in place of those of their arrays: what is known of an intermediate tensor, or all numbers in a
        range.
    fixed
        Whether the kernel uses the float64 values of the row maxima: ``own`` is then the error of the float64 evaluation alone.
    block
        Evaluates only some values of one index; see :class:`symattn.readings.blocks.Block`.
    """

    def __init__(
        self,
        program: Program,
        inputs: Mapping[str, Any],
        arithmetic: Arithmetic,
        *,
        sizes: Mapping[sp.Symbol | str, int] | None = None,
        input_errors: Mapping[str, Any] | None = None,
        refine: Mapping[str, Callable[[Evaluation, str], Array]] | None = None,
        boxes: Mapping[str, Box] | None = None,
        fixed: bool = False,
        block: Block | None = None,
    ) -> None:
        check_names(program, inputs)
        given = {name: _as_array(x) for name, x in inputs.items()}
        numbers = find_sizes(program, {n: a.shape for n, a in given.items()}, sizes)
        every: dict[sp.Symbol, int] = {
            **numbers,
            **{a: size_value(s, numbers) for a, s in program.dims.items() if s.free_symbols <= numbers.keys()},
        }
        self.program, self.inputs, self.sizes, self._refine = program, inputs, sizes, dict(refine or {})
        self.block, self._whole = block, dict(every)
        self.refined: dict[str, Box] = {}
        self._integers = {n: a.astype(np.int64) for n, a in given.items() if a.dtype.kind in "iub"}
        self.known = Known({}, every, arithmetic, Subscripts(self._integers.get, numbers, scans=program.scan_axes))
        wide = (formats.get(f).emax >= WIDE for f in (arithmetic.compute, arithmetic.accumulate, arithmetic.aux))
        if arithmetic.stale and all(wide):
            self.known = replace(self.known, lagging=lagging(program))
        for name, a in given.items():
            if name in (boxes or {}) or (block and name in block.shared):
                continue
            error = (input_errors or {}).get(name)
            if block is not None and name in block.rows.axes:
                error = None if error is None else block.rows_of(np.broadcast_to(error, a.shape), name)
                a = block.rows_of(a, name)
            self.known.boxes[name] = _input(a, error)
        self.known.boxes.update(boxes or {})
        if block is not None:
            every[block.rows.index] = block.stop - block.start
            self.known.subscripts.origin[block.rows.index] = block.start
            self.known.boxes.update(block.shared)
        self._given = frozenset(boxes or ()) | (block.shared.keys() if block else frozenset())
        self._reading = _Reading(program, self.known, fixed)
        self._run()

    @property
    def boxes(self) -> dict[str, Box]:
        """The box of every tensor found so far, by name."""
        return self.known.boxes

    def _run(self) -> None:
        known, program = self.known, self.program
        with np.errstate(all="ignore"):
            for group in sorted(program.groups(), key=lambda group: not _early(program, group[0])):
                if group[0].scan is not None:
                    self._reading.scanned(group)
                    continue
                s = group[0]
                if is_position(s):
                    self._integers[s.name] = known.subscripts.positions(s, tuple(self._whole[a] for a in s.indices))
                if s.name in self._given or (self.block is not None and s.name not in self.block.rows.live):
                    continue
                known.boxes[s.name] = self._reading.statement(s)
                if s.name in self._refine:
                    smaller = self._refine[s.name](self, s.name)
                    self.refined[s.name] = known.boxes[s.name]
                    known.boxes[s.name] = bx.refined(known.boxes[s.name], smaller)

    def local(self, s: Statement, operands: Mapping[str, Box], arithmetic: Arithmetic | None = None) -> Box:
        """The box of a statement of no scan from other boxes of what it reads, in another arithmetic where one is given.

        With :func:`~symattn.readings.boxes.as_given` boxes, ``bound`` is what the statement itself adds, at the worst of all
        values that a kernel may have computed from.
        """
        boxes = {**self.known.boxes, **operands}
        known = replace(self.known, boxes=boxes, arithmetic=arithmetic or self.known.arithmetic)
        with np.errstate(all="ignore"):
            return self._reading.over(known).statement(s)

    def doubtful(self, s: Statement) -> bool:
        """Whether rounding errors could turn a condition of the statement somewhere."""
        with np.errstate(all="ignore"):
            return any(bool(np.any(m.doubt)) for m in masks_of(self.known, s.conditions, s.domain))


def _as_array(x: Any) -> Array:
    """Float and integer dtypes as they are; exact numbers as objects."""
    return np.asarray(x)


def _input(a: Array, error: Any) -> Box:
    if a.dtype.kind in "iub":
        box = bx.exactly(a.astype(np.float64), index=True)
    else:
        v = a.astype(np.float64)
        own = np.zeros_like(v)
        if a.dtype == object:
            own = np.where(np.isfinite(v), bx.U * np.abs(v), 0.0)
        box = replace(bx.exactly(v), own=own)
    if error is not None:
        box = replace(box, bound=box.bound + np.asarray(error, dtype=np.float64), index=False)
    low = np.maximum(np.abs(box.value) - (box.own + box.bound), 0.0)
    return replace(box, low=np.where(np.isnan(low), np.abs(box.value), low), nonneg=bool(np.all(box.value - box.bound >= 0)))


def _early(program: Program, s: Statement) -> bool:
    """Whether a statement is a scalar of inputs: those come first, since sums ask for the scale that they are multiplied by."""
    return not s.indices and not s.over and all(n not in program for n in s.needs)


class _Reading:
    """What a program and a declaration say about its statements, found once."""

    def __init__(self, program: Program, known: Known, fixed: bool = False) -> None:
        self.program, self.known, self.fixed = program, known, fixed
        self.tiled = {program.dims[a] for s in program for a in _tiled(s)}
        self.rows = {program.dims[a] for s in program if _tiled(s) for a in set(s.domain) - _tiled(s)}
        self.rounded = summed_as_read(program) if known.arithmetic.sum_from_cast else frozenset()
        self.prescaled: dict[str, str] = {}
        for s in program:
            scalars = [name_of(f) for f in sp.Mul.make_args(s.expr) if f.is_Symbol and not f.is_integer]
            for f in sp.Mul.make_args(s.expr):
                if scalars and not s.over and isinstance(f, sp.Indexed) and name_of(f) in program:
                    self.prescaled[name_of(f)] = scalars[0]
            if scalars and s.over:
                self.prescaled[s.name] = scalars[0]

    def over(self, known: Known) -> _Reading:
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
        if not bx.fits(a.accumulate, narrow.name):  # the scale is applied to the rounded sum
            for f in factors:
                if not f.axes and not bx.power_of_two(f.box):
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
        if s.name not in self.program.outputs:
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
            out = bx.multiply(out, p, unit)
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
