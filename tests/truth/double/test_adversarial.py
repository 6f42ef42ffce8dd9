"""Inputs made to break a bound: scores far out, subnormals, one-hot rows, cancellation, single elements, empty rows, scales."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from symattn import variants
from symattn.definition import Definition
from symattn.truth import double
from symattn.verify.programs import presented
from tests.truth.double.enclosing import violations

Fields = dict[str, np.ndarray]


def attention(**fields: Any) -> Any:
    return with_gradient(Definition(**fields).program())


def with_gradient(program: Any) -> Any:
    found = presented(program).program
    return found.with_statements(found.statements, dict.fromkeys((*program.outputs, *found.outputs)))


PLAIN, CAUSAL = attention(), attention(causal="bottom-right")


def inputs(n: int, m: int, d: int, seed: int, scale: float = 1.0) -> Fields:
    r = np.random.default_rng(seed)
    shapes = {"Q": (n, d), "K": (m, d), "V": (m, d), "dO": (n, d), "dL": (n,)}
    return {k: (scale * r.standard_normal(s)).astype(np.float32) for k, s in shapes.items()}


def far(x: Fields, score: float) -> Fields:
    """Scores near a number far out, close to each other."""
    d = x["Q"].shape[1]
    x["Q"][:] = np.float32(math.sqrt(abs(score)))
    x["K"][:] = np.float32(math.copysign(math.sqrt(abs(score)) / math.sqrt(d), score))
    x["K"][:, 0] += np.float32(2.0**-6) * np.arange(len(x["K"]), dtype=np.float32)
    return x


def one_hot(x: Fields) -> Fields:
    x["Q"][:] = 0
    x["K"][:] = 0
    x["Q"][:, 0], x["K"][1, 0] = 30, 100
    return x


def cancelling(x: Fields) -> Fields:
    x["K"][:] = x["K"][:1]
    x["V"][:] = np.float32(2.0**20)
    x["V"][::2] *= -1
    x["V"][0] += np.float32(0.125)
    return x


def scaled(x: Fields, power: int) -> Fields:
    for k, sign in (("Q", 1), ("K", -1), ("V", 1), ("dO", -1)):
        x[k] = np.ldexp(x[k], sign * power).astype(np.float32)
    return x


def equal(x: Fields) -> Fields:
    for k in x:
        x[k][:] = np.float32(0.3)
    return x


HARD: dict[str, Callable[[Fields], Fields]] = {
    "scores near 60000": lambda x: far(x, 6e4),
    "scores near -60000": lambda x: far(x, -6e4),
    "scores near -490": lambda x: far(x, -490.0),
    "one-hot rows": one_hot,
    "cancellation in V": cancelling,
    "equal numbers": equal,
    "scales 2^60": lambda x: scaled(x, 60),
    "scales 2^-60": lambda x: scaled(x, -60),
    "subnormal values": lambda x: {**x, "V": (x["V"] * np.float32(2.0**-140)), "dO": x["dO"] * np.float32(2.0**-140)},
    "zeros": lambda x: {k: np.zeros_like(v) for k, v in x.items()},
    "large scores": lambda x: {**x, "Q": x["Q"] * np.float32(300)},
}


@pytest.mark.parametrize("owned", [False, True])
@pytest.mark.parametrize("kind", HARD)
def test_hard_inputs(kind: str, owned: bool) -> None:
    for program in (PLAIN, CAUSAL):
        wrong, known = violations(program, HARD[kind](inputs(5, 4, 3, 1)), owned_exp=owned, points=7)
        assert not wrong
        assert known == 1


@pytest.mark.parametrize("power", [-1074, -1050, -700, -530, 300, 500, 1000])
def test_float64_of_any_size(power: int) -> None:
    """Far beyond what kernels get: nothing may be known, but what is said is right."""
    for which in ("Q", "V", "dO", "QK", "VO"):
        x: dict[str, Any] = {k: v.astype(np.float64) for k, v in inputs(3, 4, 2, 2).items()}
        for k in {"QK": ("Q", "K"), "VO": ("V", "dO")}.get(which, (which,)):
            x[k] = np.ldexp(x[k], power)
        wrong, _ = violations(PLAIN, x)
        assert not wrong


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 5, 1), (4, 1, 3), (3, 2, 1), (6, 3, 2), (2, 7, 4)])
def test_single_elements_and_empty_rows(shape: tuple[int, int, int]) -> None:
    for program in (PLAIN, CAUSAL):  # bottom-right: with more queries than keys the first rows are empty
        wrong, known = violations(program, inputs(*shape, seed=3), points=1)
        assert not wrong
        assert known == 1


@pytest.mark.parametrize("seed", range(3))
def test_many_elements(seed: int) -> None:
    """Large enough that coefficients are kept for rows, in one block and in several."""
    n, m, d = ((97, 101, 4), (40, 300, 3), (210, 45, 2))[seed]
    x = inputs(n, m, d, seed, 1.5)
    wrong, known = violations((PLAIN, CAUSAL)[seed % 2], x, points=(1 << 20, 3000, 9000)[seed])
    assert not wrong
    assert known == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", HARD)
def test_hard_inputs_of_many_elements(kind: str) -> None:
    for program in (PLAIN, CAUSAL):
        for points in (1 << 20, 2500):
            wrong, _ = violations(program, HARD[kind](inputs(96, 100, 3, 4)), points=points)
            assert not wrong


def test_what_is_masked_does_not_leak() -> None:
    program = with_gradient(variants.get("boolean-mask").definition.program())
    x: dict[str, Any] = dict(inputs(4, 5, 2, 5))
    x["M"] = np.ones((4, 5), dtype=np.int64)
    x["M"][:, 2] = 0
    clean = double.evaluate(program, x)
    for poison in (np.nan, np.inf, 1e300):
        for k in ("K", "V"):
            x[k] = x[k].astype(np.float64)
            x[k][2] = poison
        found = double.evaluate(program, x)
        for name in ("O", "L", "dQ", "dV"):
            assert np.isfinite(found[name].rad).all()
            keep = np.arange(5) != 2 if name == "dV" else slice(None)
            overlap = np.abs(found[name].mid - clean[name].mid) <= found[name].rad + clean[name].rad
            assert overlap[keep].all()


def test_a_nan_that_is_read_is_not_known() -> None:
    x = inputs(3, 4, 2, 6)
    x["V"][1, 0] = np.nan
    found = double.evaluate(PLAIN, x)
    assert np.isinf(found["O"].rad[:, 0]).all() and np.isfinite(found["O"].rad[:, 1]).all()


def test_numbers_that_float64_has_not() -> None:
    x: dict[str, Any] = {k: v.astype(object) for k, v in inputs(2, 3, 2, 7).items()}
    x["Q"][0, 0], x["V"][1, 1], x["K"][2, 0] = Fraction(1, 3), "0.1", 2**70 + 1
    x["K"][2, 0] = Fraction(2**60 + 1, 2**60)
    wrong, known = violations(PLAIN, x)
    assert not wrong and known == 1


def test_undecided_conditions_leave_nothing_known() -> None:
    """Two equal scores whose order decides: which of them is larger is not for float64 to say."""
    program = variants.get("sparsemax").definition.program()
    x = {k: np.full((2, 2) if k == "Q" else (3, 2), 0.3, dtype=np.float32) for k in ("Q", "K", "V")}
    x["K"][0] = np.float32(0.7)
    wrong, _ = violations(program, x)
    assert not wrong
