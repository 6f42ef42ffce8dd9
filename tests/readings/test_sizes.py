"""Sizes from shapes, and inputs that do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sp

from symattn.errors import InputValueError, ProgramError, ShapeError, UnknownNameError
from symattn.program import Program, Statement, indices, size
from symattn.program import tensor as T
from symattn.readings import balls, exact
from symattn.readings import mpmath as by_mpmath
from symattn.readings import numpy as by_numpy

i, j, c = indices("i j c")
n, m, d = size("n"), size("m"), size("d")
PROGRAM = Program((Statement(T("S", i, j), T("Q", i, c) * T("K", j, c) * T("scale"), (c,)),), {i: n, j: m, c: d}, ("S",))
GOOD: dict[str, Any] = {"Q": np.ones((2, 3)), "K": np.ones((4, 3)), "scale": 1}
EVALUATORS = [exact.evaluate, by_mpmath.evaluate, balls.evaluate, by_numpy.evaluate]


@pytest.mark.parametrize("evaluate", EVALUATORS)
@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"K": np.ones((4, 2))}, ShapeError, "axis 1 of K has length 2, but d is 3 by axis 1 of Q"),
        ({"K": np.ones(3)}, ShapeError, "2 axes are needed"),
        ({"K": np.ones((0, 3))}, ShapeError, "axis 0 of K is empty"),
        ({"scale": np.ones(1)}, ShapeError, "scale"),
        ({"Qq": 1}, UnknownNameError, "Did you mean 'Q'"),
        ({"K": [[1, 2], [3]]}, InputValueError, "unequal|inhomogeneous"),
        ({"K": [["a", 1, 1]]}, InputValueError, "no number"),
        ({"K": np.ones((4, 3), dtype=complex)}, InputValueError, "real"),
    ],
)
def test_inputs_that_do_not_fit(evaluate: Any, change: dict[str, Any], error: type[Exception], says: str) -> None:
    assert evaluate(PROGRAM, GOOD)["S"].shape == (2, 4)
    with pytest.raises(error, match=says):
        evaluate(PROGRAM, GOOD | change)


@pytest.mark.parametrize("evaluate", EVALUATORS)
def test_a_missing_input(evaluate: Any) -> None:
    with pytest.raises(InputValueError, match="missing: K"):
        evaluate(PROGRAM, {k: v for k, v in GOOD.items() if k != "K"})


@pytest.mark.parametrize("evaluate", EVALUATORS)
def test_sizes_that_no_input_shows(evaluate: Any) -> None:
    program = Program((Statement(T("x", i, j), T("u", i) + n - m),), {i: n, j: m}, ("x",))
    with pytest.raises(ShapeError, match="m; give it in `sizes`"):
        evaluate(program, {"u": [1, 2]})
    assert evaluate(program, {"u": [1, 2]}, sizes={"m": 3})["x"].shape == (2, 3)
    assert evaluate(program, {"u": [1, 2]}, sizes={m: 3, n: 2})["x"].shape == (2, 3)
    with pytest.raises(ShapeError, match="n is 5 by `sizes`"):
        evaluate(program, {"u": [1, 2]}, sizes={"m": 3, "n": 5})
    with pytest.raises(ShapeError, match="no size q"):
        evaluate(program, {"u": [1, 2]}, sizes={"m": 3, "q": 5})


@pytest.mark.parametrize("evaluate", EVALUATORS)
def test_sizes_that_are_expressions(evaluate: Any) -> None:
    program = Program((Statement(T("x", i, c), T("u", i * d + c)),), {i: n, c: d}, ("x",), {"u": (n * d,)})
    assert evaluate(program, {"u": [1, 2, 3, 4, 5, 6]}, sizes={"n": 2, "d": 3})["x"].shape == (2, 3)
    with pytest.raises(ShapeError, match="length 5"):
        evaluate(program, {"u": [1, 2, 3, 4, 5]}, sizes={"n": 2, "d": 3})


@pytest.mark.parametrize("evaluate", EVALUATORS)
def test_an_unknown_function_is_no_code(evaluate: Any) -> None:
    program = Program((Statement(T("x"), sp.Function("evil")(T("u"))),), {}, ("x",))
    with pytest.raises(ProgramError, match="evil"):
        evaluate(program, {"u": 1})


@pytest.mark.parametrize("evaluate", EVALUATORS)
def test_names_of_tensors_are_no_names_of_functions(evaluate: Any) -> None:
    """A tensor called exp, k0 or __import__ is a tensor."""
    names = ["exp", "x0", "k0", "div", "lambda", "__import__('os')"]
    for name in names:
        program = Program((Statement(T("y", i), sp.exp(T(name, i)) / 3 + T("scale") / T(name, i)),), {i: n}, ("y",))
        assert abs(float(evaluate(program, {name: [1], "scale": 2})["y"][0]) - 2.906093942819682) < 1e-14
