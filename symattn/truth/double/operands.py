"""What goes into a matrix product: each factor on the grid of its axes, and a number that the sum is multiplied by."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np
import sympy as sp

from symattn.program import Program, Statement, integer_symbols
from symattn.readings.contraction import Contraction
from symattn.readings.domain import Mask
from symattn.truth.double.approx import Approx
from symattn.truth.double.arithmetic import multiply, selected
from symattn.truth.double.kinds import Axes
from symattn.truth.double.masks import is_zero_outside
from symattn.truth.double.terms import Known, Terms

__all__ = ["operand", "with_number"]


class Of(Known, Protocol):
    """An evaluation of a program."""

    program: Program


def operand(known: Of, s: Statement, e: sp.Expr, axes: Axes, masks: Sequence[Mask]) -> Approx:
    """One factor of a sum on the grid of its axes, 0 where masked."""
    a = Terms(known, axes).value(e)
    shape = known.shape(axes)
    if masks and not is_zero_outside(known.program, e, s):
        for m in masks:
            a = selected(a, m.over(axes))
    return a if a.value.shape == shape else a.changed(value=np.broadcast_to(a.value, shape), temporary=False)


@lru_cache(maxsize=1024)
def _is_number(e: sp.Expr) -> bool:
    """Whether something stands in front of a sum that has no index."""
    return e is not sp.S.One and not integer_symbols(e)


def with_number(known: Known, c: Contraction, left: Approx, right: Approx) -> tuple[Approx, Approx, sp.Expr]:
    """A number in front of a sum in the smaller operand instead, which saves a pass over the result; and what stays in front.

    The values are those of ``sum over x of (f A[r, x]) B[q, x]`` with the error of the products ``f A``, by the rules as always.
    The number stays in front where sums are of integers, which are exact while multiples of integers may not be, and where it,
    or a product with it, overflows.
    """
    if _is_number(c.outer) and not (left.whole and right.whole):
        first = left.value.size <= right.value.size
        f = Terms(known, (*c.batch, *(c.row if first else c.column), *c.bound)).value(c.outer)
        made = multiply(left if first else right, f)
        if not (f.special or made.special):
            return (made, right, sp.S.One) if first else (left, made, sp.S.One)
    return left, right, c.outer
