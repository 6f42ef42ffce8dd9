"""Where a condition of a program holds, on given arrays, as a boolean array over its indices.

The decision is that of every reading (:mod:`symattn.readings.decisions`): integers and fractions exactly, functions by balls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sp

from symattn.errors import ProgramError
from symattn.program import Statement
from symattn.readings.domain import masks_of
from symattn.readings.subscripts import Grid, Subscripts

Array = npt.NDArray[Any]


def holds(
    statement: Statement, axes: tuple[sp.Symbol, ...], sizes: Mapping[sp.Symbol, int], tensors: Mapping[str, Array]
) -> npt.NDArray[np.bool_]:
    """Where a statement is evaluated: a boolean array over ``axes`` (size 1 where no condition depends on an axis).

    Parameters
    ----------
    statement
        Its conditions read given tensors only.
    axes
        Indices of its domain, all that its conditions depend on among them; the axes of the result.
    sizes
        The number of values of every index, and the number that every size symbol is.
    tensors
        By name.

    Raises
    ------
    InputValueError
        When a condition has no value at a point that the other conditions keep.
    UndecidedError
        When it compares two irrational numbers that cannot be told apart.

    >>> from symattn.indexed import indices, tensor
    >>> i, j = indices("i j")
    >>> triangle = Statement(tensor("x", i, j), sp.Integer(1), where=sp.Le(j, i))
    >>> holds(triangle, (i, j), {i: 2, j: 2}, {}).tolist()
    [[True, False], [True, True]]
    """

    def integers(name: str) -> Array | None:
        array = np.asarray(tensors[name])
        return array.astype(np.int64) if array.dtype.kind in "biu" else None

    def judge(condition: sp.Basic, at: Grid, count: int) -> Sequence[int]:
        raise ProgramError(f"the condition {condition} reads no given numbers only")

    subscripts = Subscripts(integers, sizes, tensors.get)
    found: npt.NDArray[np.bool_] = np.ones((1,) * len(axes), dtype=bool)
    for m in masks_of(statement, statement.conditions, sizes.__getitem__, subscripts, judge):
        found = found & m.over(axes)
    return found
