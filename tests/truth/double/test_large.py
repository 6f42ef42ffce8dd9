"""What is done to large arrays only, with every array counted as large: rows have one coefficient, arrays are used again."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from symattn.definition import Definition
from symattn.program import Program, Statement, indices, size, tensor
from symattn.truth import double
from symattn.truth.double import arithmetic, functions, norms
from symattn.truth.double.approx import Approx, U
from symattn.truth.double.blocks import planned
from symattn.truth.double.shared import lighter
from symattn.truth.double.statements import Statements
from symattn.truth.double.sums import largest
from tests.support import rows
from tests.truth.double.enclosing import violations
from tests.truth.double.test_adversarial import attention, inputs
from tests.truth.double.test_catalogue import with_gradient
from tests.variants.entries import numbers_for, sizes_for

MODULES = ("approx", "arithmetic", "functions", "gathered", "norms", "statements", "sums", "terms")


@pytest.fixture(autouse=True)
def every_array_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in MODULES:
        monkeypatch.setattr(importlib.import_module(f"symattn.truth.double.{name}"), "FULL", 3)
    planned.cache_clear()


def test_what_is_kept_of_rows_is_of_these_rows_only() -> None:
    whole, cache = np.arange(24.0).reshape(1, 6, 4), dict[Any, Any]()
    norms.keep(cache, "sum", whole[:, :3], whole[:, :3].sum(axis=2))
    assert np.array_equal(norms.kept(cache, "sum", whole[0, :3]), [[6], [22], [38]])
    assert np.array_equal(norms.Matrix(whole[:, :3], True, cache=cache).sum()[0], [[6], [22], [38]])
    assert norms.Matrix(whole[:, 3:], True, cache=cache).sum()[0, 0, 0] >= 54
    other = (
        norms.kept(cache, "sum", whole[:, 3:]),
        norms.kept(cache, "most", whole[:, :3]),
        norms.kept(cache, "sum", whole[0, :3].T),
    )
    assert other == (None, None, None)


def test_an_exponential_is_bounded_by_that_of_the_largest_argument() -> None:
    scores = Approx(np.random.default_rng(0).standard_normal((5, 8)) * 30, U, norms={})
    top = largest(scores, None, (5, 8), (1,))
    for shift in (1.0, 0.0, -1.0):
        rows_of = top.changed(value=top.value[:, None] + shift)
        less, plus = arithmetic.add(scores, rows_of, minus=True), arithmetic.add(rows_of.changed(value=-rows_of.value), scores)
        for a in (less, plus):
            assert a.most is not None
            assert np.array_equal(a.most, a.value.max(axis=1, keepdims=True))
            e = functions.exp(a.changed(temporary=False), functions.NUMPY)
            assert (np.asarray(e.bound) >= e.value.max(axis=1, keepdims=True)).all()
            assert a.changed(value=2 * a.value).most is None
    assert arithmetic.add(rows_of, scores, minus=True).most is None


@pytest.mark.slow
@pytest.mark.parametrize("points", [1 << 20, 16])
@pytest.mark.parametrize("name", rows())
def test_radii_hold_the_exact_values(name: str, points: int) -> None:
    program = with_gradient(name)
    sizes = sizes_for(name, program)
    wrong, _ = violations(program, numbers_for(program, sizes, 3), sizes=sizes, points=points)
    assert not wrong


FIELDS: list[dict[str, Any]] = [{}, {"causal": "top-left"}, {"causal": "bottom-right"}, {"causal": "top-left", "window": (2, 0)}]


@pytest.mark.parametrize("points", [1 << 20, 40, 8])
@pytest.mark.parametrize("fields", FIELDS, ids=str)
def test_attention_and_its_gradient(fields: dict[str, Any], points: int) -> None:
    for n, m in ((7, 5), (4, 9)):
        wrong, known = violations(attention(**fields), inputs(n, m, 3, seed=n), points=points)
        assert not wrong
        assert known > 0.9  # beside an empty row, the log-sum-exp of others is not known: one coefficient stands for all


def test_results_stay_when_arrays_are_used_again() -> None:
    program = attention()
    first = double.evaluate(program, inputs(6, 5, 3, seed=1))
    kept = {n: (x.mid.copy(), x.rad.copy()) for n, x in first.items()}
    double.evaluate(program, inputs(6, 5, 3, seed=2))
    for n, (mid, _) in kept.items():
        assert np.array_equal(first[n].mid, mid)
    again = double.evaluate(program, inputs(6, 5, 3, seed=1))
    for n, (mid, rad) in kept.items():
        assert np.array_equal(again[n].mid, mid)
        assert np.array_equal(again[n].rad, rad)


def test_results_in_arrays_that_are_used_again_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Statements, "release", lambda self, keep=(), release=Statements.release: release(self))
    with pytest.raises(AssertionError):
        test_results_stay_when_arrays_are_used_again()


def test_a_mask_that_is_cut_short_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = arithmetic.masked
    monkeypatch.setattr(arithmetic, "masked", lambda keep: slice(right(keep).start + 1, right(keep).stop))
    assert violations(attention(causal="top-left"), inputs(6, 6, 3, seed=4))[0]


def test_a_row_without_points_is_zero_whatever_is_in_front_of_the_sum() -> None:
    i, j = indices("i j")
    below = j < i
    weights = Statement(tensor("P", i, j), tensor("E", i, j) / tensor("l", i), where=below)
    out = Statement(tensor("O", i), tensor("P", i, j) * tensor("v", j), (j,), where=below)
    program = Program((weights, out), {i: size("n"), j: size("m")}, ("O",))
    assert len(tuple(lighter(program))) == 1
    given = {"E": np.ones((6, 5)), "l": np.arange(6.0), "v": np.arange(1.0, 6.0)}
    found = double.evaluate(program, given)["O"]
    assert found.mid[0] == found.rad[0] == 0
    assert np.allclose(found.mid, [0, 1, 3 / 2, 6 / 3, 10 / 4, 15 / 5], rtol=1e-15, atol=0)
    assert violations(program, given) == ([], 1)


def test_a_factor_goes_to_the_smaller_operand_or_out_of_the_sum() -> None:
    program = lighter(Definition().program())
    assert "P" not in [s.name for s in program]
    (out,) = [s for s in program if s.name == "O"]
    assert {str(f.base) for f in out.expr.atoms(type(tensor("x", *indices("i"))))} == {"E", "V", "l"}
