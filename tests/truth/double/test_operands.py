"""A number in front of a sum of products: in the smaller operand where that is safe, and never lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sp

from symattn.program import Program, Statement, indices, size
from symattn.program import tensor as T
from symattn.truth import double
from symattn.truth.double import operands
from symattn.truth.double.arithmetic import multiply
from symattn.truth.double.shared import scaled
from tests.truth.double.enclosing import violations

AXIS, J, C = indices("i j c")
DIMS = {AXIS: size("n"), J: size("m"), C: size("d")}
R = Statement(T("R", AXIS, J), T("Q", AXIS, C) * T("K", J, C), (C,))
S = Statement(T("S", AXIS, J), T("f") * T("R", AXIS, J))
PROGRAM = Program((R, S), DIMS, ("S",))


def numbers(n: int, m: int, d: int, seed: int = 0) -> dict[str, Any]:
    r = np.random.default_rng(seed)
    return {"Q": r.standard_normal((n, d)), "K": r.standard_normal((m, d))}


@pytest.mark.parametrize(("n", "m"), [(97, 90), (30, 300), (300, 30), (9, 8)])
@pytest.mark.parametrize("f", ["1/3", 0.125, 0, -3, "1e-318", "1e-200"])
def test_the_exact_value_is_within_the_radius(n: int, m: int, f: Any) -> None:
    wrong, known = violations(PROGRAM, {**numbers(n, m, 2), "f": f})
    assert wrong == [] and known == 1


def test_what_is_lost_below_the_least_float64_is_counted() -> None:
    fields = numbers(97, 90, 2)
    wrong, known = violations(PROGRAM, {"Q": fields["Q"] * 2.0**-1000, "K": fields["K"] * 2.0**1000, "f": 2.0**-60})
    assert wrong == [] and known == 1


@pytest.mark.parametrize("f", [2.0**1000, 2.0**700, float("inf")])
def test_a_product_that_overflows_is_not_known_to_be_anything_else(f: float) -> None:
    fields = numbers(97, 90, 2)
    for power in (300, 0):
        wrong, _ = violations(PROGRAM, {"Q": fields["Q"] * 2.0**power, "K": fields["K"] * 2.0**-power, "f": f})
        assert wrong == []
    moderate = {"Q": fields["Q"] * 2.0**300, "K": fields["K"] * 2.0**-900, "f": 2.0**700}
    assert violations(PROGRAM, moderate) == ([], 1.0)  # the product with Q would overflow, that with the sum does not


def test_a_rounding_of_the_operand_that_is_not_counted_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {**numbers(97, 90, 1), "f": "1/3"}
    assert violations(PROGRAM, given)[0] == []
    monkeypatch.setattr(operands, "multiply", lambda a, b: multiply(a, b).changed(rel=0.0, abs=0.0))
    assert len(violations(PROGRAM, given)[0]) > 10


def test_multiples_of_sums_of_integers_stay_exact() -> None:
    r = np.random.default_rng(1)
    given: dict[str, Any] = {"Q": r.integers(-9, 9, (97, 3)), "K": r.integers(-9, 9, (90, 3)), "f": 0.5}
    found = double.evaluate(PROGRAM, given)["S"]
    assert found.rad.max() < 2.0**-1000 and np.array_equal(found.mid, 0.5 * (given["Q"] @ given["K"].T))


def test_only_the_sum_that_nothing_else_reads_takes_the_number() -> None:
    assert [s.name for s in scaled(PROGRAM)] == ["S"] and scaled(PROGRAM)["S"].over == (C,)
    other = Statement(T("y", AXIS), T("R", AXIS, J) ** 2, (J,))
    masked = Statement(T("S", AXIS, J), T("f") * T("R", AXIS, J), where=sp.Le(J, AXIS))
    row = Statement(T("S", AXIS, J), T("g", AXIS) * T("R", AXIS, J))
    turned = Statement(T("S", J, AXIS), T("f") * T("R", AXIS, J))
    for kept in (
        Program((R, S), DIMS, ("S", "R")),
        Program((R, S, other), DIMS, ("S", "y")),
        Program((R, masked), DIMS, ("S",)),
        Program((R, row), DIMS, ("S",)),
    ):
        assert scaled(kept) == kept
    assert scaled(Program((R, turned), DIMS, ("S",)))["S"].indices == (J, AXIS)
    assert violations(Program((R, turned), DIMS, ("S",)), {**numbers(97, 90, 2), "f": "1/3"})[0] == []
