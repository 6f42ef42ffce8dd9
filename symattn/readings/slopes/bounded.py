"""The door: bounds of the outputs of a program, plain propagation and slopes together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import sympy as sp

from symattn.arithmetic import Arithmetic
from symattn.errors import UnknownNameError, nearest
from symattn.program import Program, needed
from symattn.readings.blocks import Block, Rows, pieces, rows_of
from symattn.readings.boxes import Array, Box
from symattn.readings.rounding import Evaluation
from symattn.readings.sizes import check_names, find_sizes, size_value
from symattn.readings.slopes.enclosures import EACH
from symattn.readings.slopes.sweep import Sweeps

__all__ = ["Bounded", "bounds"]

BLOCK = 2**18
"""About so many points of its largest tensor are evaluated at once, where rows can be taken in pieces."""


@dataclass(frozen=True)
class Bounded:
    """What is known of an output of a conforming kernel.

    Parameters
    ----------
    value
        The float64 value v.
    own
        At most how far v is from the true value.
    bound
        At most how far the output of a conforming kernel is from the true value; infinite where nothing is promised.
    parts
        Where asked for: what each source of errors contributes, by statement and kind of rounding (``"E: exp"``). Kinds are
        sum, operation, exp, log, tanh, function, cast (of an operand), storage, buffer, scale, underflow (what flushing costs),
        given (errors of inputs), and cut: operands that are not followed. They add up to the bound from slopes.
    """

    value: Array
    own: Array
    bound: Array
    parts: Mapping[str, Array] | None = None


def bounds(
    program: Program,
    inputs: Mapping[str, Any],
    arithmetic: Arithmetic,
    outputs: Iterable[str] | None = None,
    *,
    sizes: Mapping[sp.Symbol | str, int] | None = None,
    input_errors: Mapping[str, Any] | None = None,
    parts: bool = False,
    own: bool = True,
    each: int = EACH,
) -> dict[str, Bounded]:
    """Rigorous bounds of the rounding errors of outputs: the smaller of plain propagation and the sum over slopes.

    Parameters
    ----------
    program, inputs, arithmetic, sizes, input_errors
        As for :func:`symattn.readings.rounding.evaluate`.
    outputs
        Names of defined tensors; the outputs of the program by default.
    parts
        Whether to split the bound by its sources.
    own
        Whether ``own`` is to be the error of the float64 evaluation alone, for which the list is evaluated once more; without, it
        contains what a kernel's row maxima may be off by.
    each
        Slopes on up to so many points are evaluated element by element, those on more by the inequality of Cauchy and Schwarz.

    Returns
    -------
    dict
        Name -> :class:`Bounded` with float64 arrays of the shape of the tensor, bounds rounded outward.

    Raises
    ------
    UnknownNameError
        For an output that the program does not define.
    ShapeError, InputValueError, ProgramError
        As the rounding reading does.

    >>> from symattn import arithmetic
    >>> from symattn.definition import Definition
    >>> q, k, v = (np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4) * s for s in (8, 8, 1))
    >>> found = bounds(Definition(lse=False).program(), {"Q": q, "K": k, "V": v}, arithmetic.get("eager-fp32"))
    >>> bool((found["O"].bound > 0).all()), found["O"].bound.dtype
    (True, dtype('float64'))
    """
    asked = tuple(program.outputs if outputs is None else outputs)
    for n in asked:
        if n not in program:
            raise UnknownNameError(f"the program defines no tensor {n!r}. {nearest(n, [s.name for s in program])}")
    ask = _Question(program, inputs, arithmetic, asked, sizes, input_errors, parts, own, each)
    found: dict[str, Bounded] = {}
    for part in _together(ask):
        found |= _in_pieces(replace(part, found=dict(found)))
    return {n: found[n] for n in asked}


def _together(ask: _Question) -> list[_Question]:
    """The outputs of a large job that are taken in pieces along one index, such as gradients of queries, and those of keys."""
    if not ask.outputs or _points(ask, ask.outputs)[1] <= BLOCK:
        return [ask]
    groups: dict[sp.Symbol | None, list[str]] = {}
    for n in ask.outputs:
        rows = _rows(replace(ask, outputs=(n,)))[0]
        groups.setdefault(None if rows is None else rows.index, []).append(n)
    return [replace(ask, outputs=tuple(names)) for names in groups.values()]


def _in_pieces(ask: _Question) -> dict[str, Bounded]:
    """The bounds of some outputs, in pieces along one index where they are large."""
    rows, length, most = _rows(ask)
    if rows is None or length <= most:
        return ask.answer()[0]
    found: list[dict[str, Bounded]] = []
    shared: dict[str, Box] = {}
    sweeps = None
    for start, stop in pieces(length, most):
        bounded, sweeps = ask.answer(Block(rows, start, stop, shared), sweeps, -(-length // (stop - start)))
        shared = {n: b for n, b in sweeps.evaluation.boxes.items() if n not in rows.axes}
        found.append(bounded)
    return {n: _joined([b[n] for b in found], rows.axes[n]) for n in ask.outputs}


@dataclass(frozen=True)
class _Question:
    """What is asked of a program."""

    program: Program
    inputs: Mapping[str, Any]
    arithmetic: Arithmetic
    outputs: tuple[str, ...]
    sizes: Mapping[sp.Symbol | str, int] | None
    input_errors: Mapping[str, Any] | None
    parts: bool
    own: bool
    each: int
    found: Mapping[str, Bounded] = field(default_factory=dict)
    """What other questions have found of the same program."""

    def answer(
        self, block: Block | None = None, before: Sweeps | None = None, blocks: int = 1
    ) -> tuple[dict[str, Bounded], Sweeps]:
        """The bounds of a block, with what an earlier one found that does not depend on rows."""
        sharper: dict[str, Array] = {}
        made: list[Sweeps] = []

        def sweep(evaluation: Evaluation) -> Sweeps:
            if not made:
                made.append(Sweeps(evaluation, self.each // blocks, before))
            return made[0]

        def refine(evaluation: Evaluation, name: str) -> Array:
            sweeps = sweep(evaluation)
            if name in self.found:
                whole = self.found[name].bound
                sharper[name] = block.rows_of(whole, name) if block is not None and name in block.rows.axes else whole
            else:
                sharper[name] = sweeps.bound(name) if sweeps.worthwhile(name) else evaluation.boxes[name].bound
            return sharper[name]

        read = {n for s in needed(self.program.groups(), self.outputs) for n in s.needs}
        evaluation = Evaluation(
            self.program,
            self.inputs,
            self.arithmetic,
            sizes=self.sizes,
            input_errors=self.input_errors,
            refine={n: refine for n in self.program.outputs if n in read},
            block=block,
        )
        sweeps, found = sweep(evaluation), {}
        for n in self.outputs:
            b = evaluation.boxes[n]
            bound = b.bound
            if n not in sharper and sweeps.worthwhile(n):
                bound = np.fmin(bound, sweeps.bound(n))
            sources = sweeps.parts(n) if self.parts else None
            if sources:
                bound = np.fmin(bound, sum(sources.values()))
            found[n] = Bounded(b.value, sweeps.own(n, 0.0) if self.own else b.own, bound, sources)
        made.clear()  # what the evaluation calls would keep it alive
        return found, sweeps


def _points(ask: _Question, outputs: tuple[str, ...]) -> tuple[tuple[sp.Symbol, ...], int, dict[sp.Symbol, int]]:
    """The indices of the largest statement behind some outputs, its points, and how many values each index takes."""
    program, shapes = ask.program, {n: np.shape(x) for n, x in ask.inputs.items()}
    check_names(program, ask.inputs)
    numbers = find_sizes(program, shapes, ask.sizes)
    points = {a: size_value(s, numbers) for a, s in program.dims.items() if s.free_symbols <= numbers.keys()}
    space = {s.indices: math.prod(points.get(a, 1) for a in s.indices) for s in needed(program.groups(), outputs)}
    largest = max(space, key=lambda axes: space[axes], default=())
    return largest, space.get(largest, 0), points


def _rows(ask: _Question) -> tuple[Rows | None, int, int]:
    """The index of the largest statement that can be taken in pieces, how many values it takes, and how many at once."""
    largest, space, points = _points(ask, ask.outputs)
    if space <= BLOCK:
        return None, 0, 0
    found = (r for r in rows_of(ask.program, ask.outputs) if r.index in largest)
    rows = max(found, key=lambda r: points[r.index], default=None)
    if rows is None:
        return None, 0, 0
    return rows, points[rows.index], max(1, round(BLOCK * points[rows.index] / space))


def _joined(found: Sequence[Bounded], axis: int) -> Bounded:
    """The rows of all blocks, one after the other."""
    sources = None
    if found[0].parts is not None:
        names = dict.fromkeys(n for b in found for n in b.parts or ())
        sources = {n: np.concatenate([(b.parts or {}).get(n, np.zeros_like(b.bound)) for b in found], axis) for n in names}
    value, own, bound = (np.concatenate([getattr(b, x) for b in found], axis) for x in ("value", "own", "bound"))
    return Bounded(value, own, bound, sources)
