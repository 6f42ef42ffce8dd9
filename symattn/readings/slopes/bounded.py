"""The door: bounds of the outputs of a program, plain propagation and slopes together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp

from symattn.arithmetic import Arithmetic
from symattn.errors import UnknownNameError, nearest
from symattn.program import Program, needed
from symattn.readings.boxes import Array
from symattn.readings.rounding import Evaluation
from symattn.readings.slopes.enclosures import EACH
from symattn.readings.slopes.sweep import Sweeps

__all__ = ["Bounded", "bounds"]


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
    return within(program, inputs, arithmetic, outputs, sizes=sizes, input_errors=input_errors, parts=parts, own=own)


def within(
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
    """:func:`bounds` where slopes on up to ``each`` points are evaluated element by element."""
    asked = tuple(program.outputs if outputs is None else outputs)
    for n in asked:
        if n not in program:
            raise UnknownNameError(f"the program defines no tensor {n!r}. {nearest(n, [s.name for s in program])}")
    sharper: dict[str, Array] = {}
    made: list[Sweeps] = []

    def refine(evaluation: Evaluation, name: str) -> Array:
        if not made:
            made.append(Sweeps(evaluation, each))
        sharper[name] = made[0].bound(name) if made[0].worthwhile(name) else evaluation.boxes[name].bound
        return sharper[name]

    read = {n for s in needed(program.groups(), asked) for n in s.needs}
    to_refine = {n: refine for n in program.outputs if n in read}
    evaluation = Evaluation(
        program,
        inputs,
        arithmetic,
        sizes=sizes,
        input_errors=input_errors,
        refine=to_refine,
    )
    sweeps = made[0] if made else Sweeps(evaluation, each)
    found = {}
    for n in asked:
        b = evaluation.boxes[n]
        bound = b.bound
        if n not in sharper and sweeps.worthwhile(n):
            bound = np.fmin(bound, sweeps.bound(n))
        sources = sweeps.parts(n) if parts else None
        if sources:
            bound = np.fmin(bound, sum(sources.values()))
        found[n] = Bounded(b.value, sweeps.own(n, 0.0) if own else b.own, bound, sources)
    return found
