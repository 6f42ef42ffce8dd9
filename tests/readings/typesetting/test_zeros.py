"""Where a sum may leave its condition out, and where it may not."""

import pytest
import sympy as sp

from symattn.program import Program, Statement, indices, size, tensor
from symattn.readings.typesetting.zeros import vanishes_outside

i, j, k, e = indices("i j k e")
DIMS = {i: size("n"), j: size("n"), k: size("n"), e: size("dv")}
T = tensor
KEEP = sp.Le(j, i)
PROGRAM = Program(
    (
        Statement(T("P", i, j), sp.exp(T("S", i, j)), where=KEEP),
        Statement(T("A", i, j), T("P", i, j) * T("V", j)),
        Statement(T("F", i, j), T("P", i, j) + T("V", j)),
        Statement(T("G", i, j), T("P", i, j) + T("A", i, j)),
        Statement(T("N", i, j), sp.exp(T("P", i, j))),
        Statement(T("I", i, j), 1 / T("P", i, j)),
        Statement(T("M", i, j), T("X", i, j, e), (e,), "max", KEEP),
        Statement(T("H", i, j), T("X", i, j, e), (e,), "prod", KEEP),
        Statement(T("W", i, j), T("X", i, j, e), (e,), where=KEEP),
        Statement(T("O", i), T("P", i, j), (j,), where=KEEP),
    ),
    DIMS,
    ("O",),
)


@pytest.mark.parametrize(
    ("expr", "condition", "zero"),
    [
        (T("P", i, j), KEEP, True),
        (T("P", i, j) * T("V", j) ** 2, KEEP, True),
        (T("P", i, j) ** 2 - T("A", i, j), KEEP, True),
        (T("A", i, j), KEEP, True),
        (T("G", i, j), KEEP, True),
        (T("W", i, j), KEEP, True),
        (T("P", k, j), sp.Le(j, k), True),
        (T("P", j, i), sp.Le(i, j), True),
        (T("P", j, i), KEEP, False),  # transposed: 0 elsewhere
        (T("P", i, j), sp.Lt(j, i), False),
        (T("F", i, j), KEEP, False),
        (T("N", i, j), KEEP, False),  # exp(0) is 1
        (T("I", i, j), KEEP, False),
        (1 / T("P", i, j), KEEP, False),
        (sp.exp(T("P", i, j)), KEEP, False),
        (T("M", i, j), KEEP, False),  # a maximum over nothing is -oo
        (T("H", i, j), KEEP, False),  # a product over nothing is 1
        (T("S", i, j), KEEP, False),
        (T("O", i), KEEP, False),
        (T("P", i, i), sp.Le(i, i, evaluate=False), False),
        (sp.Integer(1), KEEP, False),
    ],
    ids=str,
)
def test_zero_outside(expr, condition, zero):
    assert vanishes_outside(PROGRAM, expr, condition) is zero
