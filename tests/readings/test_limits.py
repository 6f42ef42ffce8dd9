"""Digits and bits out of range or of no integer type are refused before anything is computed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from symattn.errors import DefinitionError, LimitError
from symattn.program import Program, Statement, tensor
from symattn.readings import balls
from symattn.readings import mpmath as by_mpmath
from symattn.readings.limits import checked_bits, checked_digits

PROGRAM = Program((Statement(tensor("y"), tensor("x") / 3),), {}, ("y",))


@pytest.mark.parametrize("value", ["50", math.nan, 2.5, 50.0, True, None, [3]])
def test_what_is_no_integer_is_refused_by_name(value: Any) -> None:
    with pytest.raises(DefinitionError, match="digits is an integer from 1 to 100000"):
        by_mpmath.evaluate(PROGRAM, {"x": 1}, digits=value)
    with pytest.raises(DefinitionError, match="bits is an integer from 2 to 3200000"):
        balls.evaluate(PROGRAM, {"x": 1}, bits=value)


@pytest.mark.parametrize("value", [0, -1, 10**9, 10**30])
def test_what_is_out_of_range_is_refused_at_once(value: int) -> None:
    with pytest.raises(LimitError, match="digits"):
        by_mpmath.evaluate(PROGRAM, {"x": 1}, digits=value)
    with pytest.raises(LimitError, match="bits"):
        balls.evaluate(PROGRAM, {"x": 1}, bits=value)


def test_the_ends_are_in_range() -> None:
    assert (checked_digits(1), checked_digits(100_000), checked_bits(2), checked_bits(np.int64(3_200_000))) == (
        1,
        10**5,
        2,
        3_200_000,
    )
    with pytest.raises(LimitError):
        checked_bits(1)
    assert float(by_mpmath.evaluate(PROGRAM, {"x": 3}, digits=1)["y"][()]) == 1
    assert balls.evaluate(PROGRAM, {"x": 3}, bits=2)["y"][()].contains(1)
