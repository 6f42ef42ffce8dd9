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
from dataclasses import replace
from typing import Any

import numpy as np
import sympy as sp

from symattn import formats
from symattn.arithmetic import Arithmetic
from symattn.program import Program, Statement
from symattn.readings import boxes as bx
from symattn.readings.blocks import Block
from symattn.readings.boxes import Array, Box
from symattn.readings.boxstatements import Statements
from symattn.readings.boxterms import Known, masks_of
from symattn.readings.degrees import lagging
from symattn.readings.sizes import check_names, find_sizes, size_value
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
        self._reading = Statements(program, self.known, fixed)
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
