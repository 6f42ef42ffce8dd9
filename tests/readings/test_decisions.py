"""Conditions that need more than integers, against Python and against values known by algebra; alike in every reading."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symattn.errors import InputValueError, UndecidedError
from symattn.indexed import indices, size, tensor
from symattn.program import Program, Statement
from symattn.readings import balls, exact, numpy
from symattn.readings import mpmath as by_mpmath
from symattn.readings.decisions import NO, OPEN, UNDEFINED, YES, columns_of, decide, total
from symattn.readings.subscripts import INTEGERS, Subscripts

i, j = indices("i j")
READINGS = {"numpy": numpy.evaluate, "mpmath": by_mpmath.evaluate, "balls": balls.evaluate, "exact": exact.evaluate}


def kept(reading: str, condition: sp.Basic, n: int = 5, m: int = 6, **inputs: Any) -> list[list[int]]:
    program = Program((Statement(tensor("x", i, j), sp.S.One, where=condition),), {i: size("n"), j: size("m")}, ("x",))
    found = READINGS[reading](program, inputs, sizes={"n": n, "m": m})["x"]
    return [[int(float(x)) for x in row] for row in found]


FUNCTIONS = {
    "exp": (sp.exp(i) < j, lambda x, y: math.exp(x) < y),
    "log": (sp.log(i) < j, lambda x, y: x == 0 or math.log(x) < y),
    "sqrt": (sp.sqrt(i) <= j, lambda x, y: x <= y * y),
    "tanh": (sp.tanh(i - j) > sp.Rational(1, 2), lambda x, y: math.tanh(x - y) > 0.5),
    "sin": (sp.sin(i * j) >= 0, lambda x, y: math.sin(x * y) >= 0),
    "cos": (sp.cos(i - j) > 0, lambda x, y: math.cos(x - y) > 0),
    "erf": (sp.erf(i) >= j, lambda x, y: math.erf(x) >= y),
    "sigmoid": (1 / (1 + sp.exp(-i)) < j, lambda x, y: 1 / (1 + math.exp(-x)) < y),
    "abs": (sp.Abs(i - j) < 2, lambda x, y: abs(x - y) < 2),
    "min": (sp.Min(sp.exp(i), j) < 3, lambda x, y: min(math.exp(x), y) < 3),
    "max": (sp.Max(sp.sqrt(i), j) < 3, lambda x, y: max(x, y * y) < 9),
    "floor": (sp.floor(sp.exp(i) / 2) > j, lambda x, y: math.floor(math.exp(x) / 2) > y),
}


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_of_the_grammar_is_decided(name: str, reading: str) -> None:
    condition, python = FUNCTIONS[name]
    assert kept(reading, condition) == [[int(python(x, y)) for y in range(6)] for x in range(5)]


@pytest.mark.parametrize("reading", READINGS)
def test_given_numbers_are_compared_exactly(reading: str) -> None:
    """a*10 is 1 for the fraction 1/10, and above 1 for the float nearest to it."""
    a = tensor("a")
    assert kept(reading, a * i <= 1, 11, 1, a=Fraction(1, 10))[10] == [1]
    assert kept(reading, a * i <= 1, 11, 1, a=0.1)[10] == [0]
    assert kept(reading, sp.exp(a) < j, 1, 4, a=Fraction(1))[0] == [0, 0, 0, 1]


@pytest.mark.parametrize("reading", READINGS)
def test_a_condition_without_a_value_names_itself_and_the_point(reading: str) -> None:
    with pytest.raises(InputValueError, match=r"x: the condition `i/\(j - 2\) < 1` has no value at i=0, j=2"):
        kept(reading, i / (j - 2) < 1)
    with pytest.raises(InputValueError, match=r"`log\(i - 1\) < j` has no value at i=0, j=0"):
        kept(reading, sp.log(i - 1) < j)
    right = [[int(y != 2 and Fraction(x, y - 2) < 1) for y in range(6)] for x in range(5)]
    assert kept(reading, sp.And(sp.Ne(j, 2), i / (j - 2) < 1)) == right
    either = [[int(y == 2 or Fraction(x, y - 2) < 1) for y in range(6)] for x in range(5)]
    assert kept(reading, sp.Or(sp.Eq(j, 2), i / (j - 2) < 1)) == either


def states(condition: sp.Basic, **values: list[Any]) -> list[int]:
    columns = {
        x: np.array([*values[str(x)], None], dtype=object)[:-1] for x in (y for part in columns_of(condition) for y in part)
    }
    return decide(condition, columns, len(next(iter(values.values()))), INTEGERS).tolist()


def test_equal_irrational_numbers_are_decided_by_algebra() -> None:
    assert states(sp.Eq(sp.sqrt(i) * sp.sqrt(j), 6), i=[2, 2], j=[18, 17]) == [YES, NO]
    assert states(sp.sqrt(i) + sp.sqrt(j) <= sp.sqrt(5 + 2 * sp.sqrt(6)), i=[2], j=[3]) == [YES]


def test_what_nothing_decides_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    near = 985 * sp.sqrt(i) < 1386 + j  # 1393.0004 < 1393
    assert states(near, i=[2], j=[7]) == [NO]
    monkeypatch.setattr("symattn.readings.decisions.BITS", (2,))
    monkeypatch.setattr(exact, "BITS", (2, 2))
    assert states(near, i=[2], j=[7]) == [OPEN]
    with pytest.raises(UndecidedError, match="not decided at this precision at i=2"):
        kept("balls", sp.Or(near, i < 2), 3, 8)


def test_undefined_is_kept_apart_from_false() -> None:
    a = tensor("a")
    assert states(sp.Ne(1 / a, 3), a=[0, 1]) == [UNDEFINED, YES]
    assert states(sp.Not(sp.Lt(1 / a, 3), evaluate=False), a=[0, 1]) == [UNDEFINED, NO]
    assert states(sp.Lt(a * 2, 3), a=[math.nan, 1, -math.inf]) == [UNDEFINED, YES, YES]


def test_large_powers_do_not_wrap_around() -> None:
    right = [[int(x**40 < 3**y * 10**19) for y in range(4)] for x in range(5)]
    assert kept("numpy", i**40 < 3**j * sp.Integer(10) ** 19, 5, 4) == right
    assert kept("numpy", i**1000 < 2**j, 3, 4) == [[int(x**1000 < 2**y) for y in range(4)] for x in range(3)]
    assert kept("numpy", i**1000 < 2, 3, 1) == [[1], [1], [0]]
    assert kept("numpy", sp.floor(i**300 / 7) > 10**30, 3, 1) == [[0], [0], [1]]
    assert kept("numpy", i**21 * 10**30 >= 10**30, 9, 1) == [[int(x > 0)] for x in range(9)]


def test_what_always_has_a_value() -> None:
    assert total(sp.Mod(i, 3) < j) and total(sp.Ne(tensor("B", i), -sp.oo))
    assert not total(sp.Mod(i, j) < 1) and not total(2**i < j) and not total(sp.sqrt(i) < j)


def test_a_decision_is_made_once() -> None:
    asked = []

    def given(name: str) -> Any:
        asked.append(name)
        return np.array([0.5, 2.5])

    subscripts = Subscripts(lambda name: None, {}, given)
    condition = sp.Lt(sp.exp(tensor("a", i)), j)
    assert subscripts.decidable(condition)
    first = subscripts.states(condition, (i, j), (2, 14))
    before = len(asked)
    assert subscripts.states(condition, (i, j), (2, 14)) is first and len(asked) == before
    assert first.tolist() == [[int(math.exp(x) < y) for y in range(14)] for x in (0.5, 2.5)]


def test_subscripts_hold_no_functions_and_no_division_by_zero() -> None:
    program = Program((Statement(tensor("x", i), tensor("u", 1 / i)),), {i: size("n")}, ("x",), {"u": (size("m"),)})
    with pytest.raises(InputValueError, match="divides by 0"):
        numpy.evaluate(program, {"u": [1.0, 2.0]}, sizes={"n": 2})


def test_a_fraction_that_is_whole_is_an_integer_without_axes_too() -> None:
    middle = Statement(tensor("x"), tensor("u", size("n") / 2) * tensor("v", i), (i,))
    program = Program((middle,), {i: size("n")}, ("x",), {"u": (size("m"),)})
    assert numpy.evaluate(program, {"u": [1.0, 2.0, 3.0], "v": [0.0, 0, 0, 5]})["x"] == 15
    with pytest.raises(InputValueError, match="looks outside"):
        numpy.evaluate(program, {"u": [1.0, 2.0, 3.0], "v": [0.0, 0, 5]}, sizes={"n": 3})
