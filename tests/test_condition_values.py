"""Conditions on arrays against the same conditions in plain Python."""

from __future__ import annotations

from fractions import Fraction
from math import floor, sin, sqrt

import ml_dtypes
import numpy as np
import pytest
import sympy as sp

from symattn import condition_values
from symattn.errors import InputValueError, ProgramError
from symattn.grammar import MASK_NAMES, parse_mask
from symattn.indexed import indices, tensor
from symattn.program import Statement

i, j, h = indices("i j h")
SIZES = {i: 5, j: 6, h: 3, MASK_NAMES["n"]: 5, MASK_NAMES["m"]: 6, MASK_NAMES["d"]: 7}


def holds(condition, axes, sizes, tensors):
    return condition_values.holds(Statement(tensor("x", *axes), sp.S.One, where=condition), axes, sizes, tensors)


@pytest.mark.parametrize(
    "text",
    [
        "j <= i",
        "0 <= i - j < 3 or h == 1",
        "not (i == j) and (i + j) % 3 != h",
        "i // 2 == j // 2",
        "i/3 + j/3 < 1",
        "i**2 > j*h",
        "abs(i - j) <= max(h, 1)",
        "min(i, j, 2) != 2",
        "sqrt(i) < j/2",
        "sin(i*j) > h/3",
        "1/(j + 1) < 1/3",
        "i - 0.1*j <= 0.3",
        "j < m - n + i",
        "True",
    ],
)
def test_a_condition_holds_where_python_says_so(text):
    found = np.broadcast_to(holds(parse_mask(text), (h, i, j), SIZES, {}), (3, 5, 6))
    names = {"floor": floor, "sqrt": sqrt, "sin": sin, "n": 5, "m": 6}
    code = (
        text.replace("0.1", "Fraction(1, 10)").replace("0.3", "Fraction(3, 10)").replace("/3", "/Fraction(3)")
        if "1/(j" not in text
        else text
    )
    for x in np.ndindex(3, 5, 6):
        env = {**names, "Fraction": Fraction, **dict(zip("hij", x, strict=True))}
        assert found[x] == bool(eval(code, env)), (text, x)


def test_fractions_are_exact():
    """0.1 + 0.2 <= 0.3 fails in floats."""
    x = holds(parse_mask("i*0.1 + j*0.1 <= 0.3"), (i, j), SIZES, {})
    assert x[1, 2]
    assert not x[2, 2]


def test_tensors_are_read_at_their_subscripts():
    mask = np.array([[1, 0], [0, 1]], dtype=np.uint8)
    lengths = np.array([1, 2])
    condition = sp.And(sp.Ne(tensor("M", i, j), 0), sp.Lt(j, tensor("len", i)))
    assert holds(condition, (i, j), {i: 2, j: 2}, {"M": mask, "len": lengths}).tolist() == [[True, False], [False, True]]


@pytest.mark.parametrize("dtype", [np.float64, np.float16, ml_dtypes.bfloat16])
def test_minus_infinity_drops(dtype):
    b = np.array([0, -np.inf, 1]).astype(dtype)
    assert holds(sp.Ne(tensor("B", j), -sp.oo), (j,), {j: 3}, {"B": b}).tolist() == [True, False, True]


def test_only_the_axes_that_matter_have_length():
    assert holds(parse_mask("i < 3"), (h, i, j), SIZES, {}).shape == (1, 5, 1)


def test_what_no_condition_can_hold():
    with pytest.raises(ProgramError):
        holds(sp.gamma(i) > 1, (i,), {i: 2}, {})


def test_a_condition_without_a_value_is_refused_where_the_others_hold():
    with pytest.raises(InputValueError, match=r"x: the condition `i/\(j - 2\) < 1` has no value at i=0, j=2"):
        holds(parse_mask("i/(j - 2) < 1"), (i, j), SIZES, {})
    found = np.broadcast_to(holds(parse_mask("j != 2 and i/(j - 2) < 1"), (i, j), SIZES, {}), (5, 6))
    assert found.tolist() == [[y != 2 and Fraction(x, y - 2) < 1 for y in range(6)] for x in range(5)]
