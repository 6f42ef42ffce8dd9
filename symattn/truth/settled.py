"""Ties and zeros that a program shows: elements that are rational for a reason that no number of digits tells.

A constant column of V, equal scores, dP constant along a row: evaluated in numbers that are known up to names
(:mod:`symattn.truth.names`), such elements come out rational. The rules are those of sums and products; what a program is about
they do not know.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from symattn.errors import UndecidedError
from symattn.program import Program
from symattn.readings.evaluate import evaluate_over
from symattn.readings.sizes import Extents
from symattn.truth.names import UNKNOWN
from symattn.truth.nametable import TABLE
from symattn.truth.values import Objects, Values, object_array

__all__ = ["POINTS", "check", "points_of", "settle", "values_of"]

POINTS = 4_000_000
"""Points of all domains of a program up to which it is evaluated; a point costs a few microseconds."""


def points_of(program: Program, sizes: Mapping[str, int]) -> int:
    """How many points the domains of all statements have."""
    extents = Extents(program, {s: sizes[str(s)] for s in program.sizes if str(s) in sizes})
    return sum(math.prod(extents.size(a) for a in s.domain) for s in program)


def settle(
    program: Program, inputs: Mapping[str, Any], sizes: Mapping[str, int], outputs: Sequence[str]
) -> dict[str, npt.NDArray[Any]]:
    """The exact values of the elements of some outputs that are rational for certain: ``Fraction``, None where it is not shown.

    Raises
    ------
    UndecidedError
        When the program is too large, or a condition in it depends on numbers that are not known.

    >>> from symattn.definition import Definition
    >>> program = Definition(lse=False).program()
    >>> given = {"Q": [[1, 2]], "K": [[0, 3], ["1/2", 1]], "V": [[5, 1], [5, 2]]}
    >>> settle(program, given, {}, ("O",))["O"].tolist()
    [[Fraction(5, 1), None]]
    """
    known = dict(sizes)
    if known:
        points = points_of(program, known)
        if points > POINTS:
            raise UndecidedError(f"{points} points are too many to be settled exactly; up to {POINTS} are")
    found = evaluate_over(program, inputs, TABLE, known)
    out = {}
    for n in outputs:
        flat = [None if x is UNKNOWN else x.rational for x in found[n].ravel().tolist()]
        out[n] = object_array(flat, found[n].shape)
    return out


def check(name: str, values: Values, exact: Sequence[tuple[int, Fraction]]) -> None:
    """Hold settled elements, by flat position, against their enclosures.

    Raises
    ------
    AssertionError
        When one is outside: then a tier or a rule is wrong.
    """
    mids, rads = values.exact(np.array([k for k, _ in exact], dtype=np.intp))
    for (k, x), m, r in zip(exact, mids, rads, strict=True):
        if not isinstance(r, float) and (isinstance(m, float) or abs(m - x) > r):
            raise AssertionError(f"{name}: element {k} is {x} exactly, outside of {m} within {r}")


def values_of(exact: Sequence[Fraction]) -> Values:
    """Settled values, flat."""
    return Objects(object_array(exact), object_array([Fraction(0)] * len(exact)))
