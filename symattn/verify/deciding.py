"""The question that a judge asks of the truth of a large job: which elements does its enclosure not decide against their bounds.

Float64 with its bound decides nearly every element of a kernel of 32 or fewer bits; only the others go on to more bits
(:mod:`symattn.truth.escalation`). A small job is enclosed at a precision that shows twenty digits of every element instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from symattn import formats
from symattn.binding import Bound, unbind
from symattn.formats import exact
from symattn.intake import Array
from symattn.program import Program
from symattn.readings.sizes import Extents
from symattn.truth.questions import Asked
from symattn.truth.settled import points_of
from symattn.truth.values import Values
from symattn.verify.compare import UNDECIDED, judge_element
from symattn.verify.screening import surely_told

__all__ = ["Judged", "question_of"]

LARGE = 1 << 25
"""Points of all domains from which on a job is asked only what decides."""


@dataclass(frozen=True)
class Judged:
    """One tensor of a kernel and its bounds, flat, in the order of the program's axes."""

    kernel: Array
    bound: Array
    format: formats.Format

    def open(self, values: Values, at: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
        """Which of the elements at some flat positions, whose values these are, are undecided."""
        k, b = self.kernel[at].astype(np.float64), self.bound[at]
        found = ~surely_told(k, *values.approx(), b)
        doubtful = np.flatnonzero(found)
        rows = zip(doubtful.tolist(), k[doubtful].tolist(), *values.exact(doubtful), b[doubtful].tolist(), strict=True)
        for n, x, t, r, most in rows:
            found[n] = judge_element((), exact(x), t, r, most, self.format).state == UNDECIDED
        return found


def question_of(
    bound: Bound, program: Program, names: Mapping[str, str], tensors: Mapping[str, Array], bounds: Mapping[str, Array]
) -> Asked | None:
    """The question of a judge of a large job; None where the job is small, or a tensor is no rearrangement of the program's.

    Parameters
    ----------
    bound
        The definition bound to its inputs.
    program
        What is evaluated.
    names
        Names of the program by field name.
    tensors, bounds
        What the kernel gave and what it may be off by, by field name.
    """
    sizes = dict(bound.sizes)
    if points_of(program, sizes) < LARGE:
        return None
    extents = Extents(program, {s: sizes[str(s)] for s in program.sizes if str(s) in sizes})
    judged: dict[str, Judged] = {}
    for field, name in names.items():
        shape = tuple(extents.size(a) for a in program[name].indices)
        count = int(np.prod(shape))
        where = unbind(bound, name, np.arange(count).reshape(shape))[1].ravel()
        if where.size != count:
            return None
        x, b = np.empty(count, dtype=tensors[field].dtype), np.empty(count)
        x[where], b[where] = tensors[field].ravel(), bounds[field].ravel()
        judged[name] = Judged(x, b, formats.get(tensors[field].dtype))
    bits = max(j.format.precision for j in judged.values())
    return Asked(lambda name, values, at: judged[name].open(values, at), bits)
