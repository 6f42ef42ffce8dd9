"""Each rule alone: the error of a result never exceeds its radius, and comes near it, so that half of it would be wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest

from symattn.readings.balls import parts, precision
from symattn.truth.double import approx, arithmetic, functions, sums
from symattn.truth.double.approx import Approx, U, exactly
from symattn.truth.double.arithmetic import add, multiply
from symattn.truth.double.functions import NUMPY, OWNED

R = np.random.default_rng


def exact(x: Any) -> Fraction:
    return Fraction(float(x))


def numbers(seed: int, count: int, low: float = 1.0, high: float = 2.0) -> np.ndarray:
    return R(seed).uniform(low, high, count)


def ratio(found: Approx, right: list[Fraction]) -> float:
    """The largest error in units of the radius."""
    rad = np.broadcast_to(found.full(), found.value.shape).ravel().tolist()
    errors = [abs(exact(v) - t) for v, t in zip(found.value.ravel().tolist(), right, strict=True)]
    return max(float(e / Fraction(r)) if r else (math.inf if e else 0.0) for e, r in zip(errors, rad, strict=True))


def moved(v: np.ndarray, by: float) -> Approx:
    """Numbers that stand for others which lie farther off by ``by``."""
    return Approx(v, 0.0, np.full(v.shape, by), (), bool((v > by).all()))


def binary(rule: Callable[..., Approx], exactly_: Callable[..., Fraction]) -> float:
    a, b = numbers(1, 4000), numbers(2, 4000, -2.0)
    return ratio(rule(exactly(a), exactly(b)), [exactly_(exact(x), exact(y)) for x, y in zip(a, b, strict=True)])


RULES: dict[str, Callable[[], float]] = {}


def rule(f: Callable[[], float]) -> Callable[[], float]:
    RULES[f.__name__] = f
    return f


@rule
def a_sum() -> float:
    return binary(add, lambda x, y: x + y)


@rule
def a_difference() -> float:
    return binary(lambda a, b: add(a, b, minus=True), lambda x, y: x - y)


@rule
def a_product() -> float:
    return binary(multiply, lambda x, y: x * y)


@rule
def errors_of_a_sum() -> float:
    a, b = numbers(3, 500), numbers(4, 500)
    return ratio(add(moved(a, 1e-6), moved(b, 1e-6)), [exact(x) + exact(y) + 2 * exact(1e-6) for x, y in zip(a, b, strict=True)])


@rule
def errors_of_a_product() -> float:
    a, b, e = numbers(5, 500), numbers(6, 500), exact(1e-3)
    return ratio(multiply(moved(a, 1e-3), moved(b, 1e-3)), [(exact(x) + e) * (exact(y) + e) for x, y in zip(a, b, strict=True)])


@rule
def relative_errors_of_a_product() -> float:
    a, b, r = numbers(5, 500), numbers(6, 500), exact(1e-3)
    found = multiply(Approx(a, 1e-3), Approx(b, 1e-3))
    return ratio(found, [exact(x) * exact(y) * (1 + r) ** 2 for x, y in zip(a, b, strict=True)])


@rule
def a_reciprocal() -> float:
    a = numbers(7, 4000)
    return ratio(functions.reciprocal(exactly(a)), [1 / exact(x) for x in a])


@rule
def errors_of_a_reciprocal() -> float:
    a = numbers(7, 500)
    return ratio(functions.reciprocal(moved(a, 0.25)), [1 / (exact(x) - Fraction(1, 4)) for x in a])


@rule
def a_pair_of_products() -> float:
    a, b = numbers(8, 6000, 1.0, 1.01).reshape(3000, 1, 2), numbers(9, 6000, 1.0, 1.01).reshape(3000, 1, 2)
    found = sums.contracted(exactly(a), exactly(b))
    right = [
        sum((exact(x) * exact(y) for x, y in zip(p, q, strict=True)), Fraction(0)) for p, q in zip(a[:, 0], b[:, 0], strict=True)
    ]
    return ratio(found, right)


@rule
def errors_of_products() -> float:
    a, b, e = np.ones((50, 3, 8)), np.full((50, 2, 8), 2.0), Fraction(1, 1024)
    found = sums.contracted(moved(a, float(e)), moved(b, float(e)))
    return ratio(found, [8 * (1 + e) * (2 + e)] * 300)


@rule
def errors_by_columns() -> float:
    """The error of a weight depends on the index that is summed over."""
    weights, e = np.full((1, 40, 300), 0.5), np.zeros((1, 1, 300))
    e[0, 0, 0] = 0.25
    found = sums.contracted(Approx(weights, e, 0.0, (), True), exactly(np.ones((1, 2, 300))))
    return ratio(found, [Fraction(300, 2) + Fraction(1, 8)] * 80)


@rule
def errors_with_a_weight() -> float:
    """The weight is the same along the index that is summed over, and counts once for each of its values."""
    value, c = np.ones((1, 100, 100)), np.full((1, 100, 1), 0.25)
    weighted = Approx(value, 0.0, 0.0, ((c, exactly(np.ones((1, 100, 1)))),), True)
    found = [sums.contracted(weighted, exactly(np.ones((1, 2, 100)))), sums.contracted(exactly(np.ones((1, 2, 100))), weighted)]
    return max(ratio(f, [Fraction(125)] * 200) for f in found)


@rule
def errors_with_a_weight_in_a_sum() -> float:
    value, c = np.ones((100, 100)), np.full((100, 1), 0.25)
    weighted = Approx(value, 0.0, 0.0, ((c, exactly(np.ones((100, 1)))),), True)
    return ratio(sums.summed(weighted, value.shape, (1,)), [Fraction(125)] * 100)


@rule
def errors_of_a_row_sum() -> float:
    a = np.ones((40, 8))
    found = sums.summed(moved(a, 1e-3), a.shape, (1,))
    return ratio(found, [8 * (1 + exact(1e-3))] * 40)


def _function(name: str, by: float, low: float, high: float, library: Any) -> float:
    a = numbers(11, 300, low, high)
    x = moved(a, by)
    found = {"exp": lambda: functions.exp(x, library), "log": lambda: functions.logarithm(x, library)}.get(
        name, lambda: functions.smooth(name, x, library)
    )()
    towards = {"exp": by, "log": -by}.get(name, -by)
    with precision(200):
        right = [parts(getattr(flint.arb(v) + flint.arb(towards), name)())[0] for v in a.tolist()]
    return ratio(found, right)


@rule
def errors_of_exp() -> float:
    return max(_function("exp", by, -3.0, 3.0, lib) for by in (1e-8, 0.5) for lib in (NUMPY, OWNED))


@rule
def errors_of_log() -> float:
    return _function("log", 0.5, 1.0, 2.0, NUMPY)


@rule
def errors_of_tanh() -> float:
    return _function("tanh", 1e-3, -0.1, 0.1, NUMPY)


@rule
def errors_of_roots() -> float:
    a = np.full(4, 1.0)
    found = functions.square_root(moved(a, 0.75))
    return ratio(found, [Fraction(1, 2)] * 4)


@pytest.mark.parametrize("name", RULES)
def test_a_radius_holds_and_half_of_it_does_not(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = RULES[name]()
    assert 0.5 < found <= 1
    half = Approx.full
    monkeypatch.setattr(Approx, "full", lambda self: half(self) / 2)
    assert RULES[name]() > 1


def test_a_rounding_counted_half_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arithmetic, "U", U / 2)
    assert a_sum() > 1 and a_product() > 1


def test_a_bound_that_is_rounded_down_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approx, "UP", 1 - 2.0**-12)
    assert errors_of_a_sum() > 1


@np.errstate(all="ignore")
@pytest.mark.parametrize("power", [-1074, -1060, -540, -500])
def test_underflow(power: int) -> None:
    """Products that become subnormal or 0, and norms whose squares do."""
    tiny = np.ldexp(R(12).integers(-9, 10, (2, 3, 5)).astype(float), power)
    other = R(13).uniform(-1, 1, (2, 4, 5)) * 2.0**-300
    found = sums.contracted(exactly(tiny), exactly(other))
    right = [
        sum((exact(x) * exact(y) for x, y in zip(tiny[z, r], other[z, q], strict=True)), Fraction(0))
        for z in range(2)
        for r in range(3)
        for q in range(4)
    ]
    assert ratio(found, right) <= 1
    flat = tiny.ravel()
    small = multiply(exactly(flat), exactly(np.full(flat.shape, 0.3)))
    assert ratio(small, [exact(x) * exact(0.3) for x in flat]) <= 1


@np.errstate(all="ignore")
def test_overflow_is_not_known() -> None:
    big = exactly([1e308, -1e300, 1e-300])
    for found in (multiply(big, big), add(big, big), functions.exp(big, NUMPY), functions.exp(big, OWNED)):
        bad = ~np.isfinite(found.value)
        assert bad.any() and np.isinf(found.full()[bad]).all()
        assert not (np.isposinf(found.value) | np.isneginf(found.value)).any()


@np.errstate(all="ignore")
def test_infinite_numbers() -> None:
    a = exactly([-math.inf, 0.0, math.inf])
    e = functions.exp(a, NUMPY)
    assert e.value.tolist() == [0.0, 1.0, math.inf]
    found = functions.logarithm(exactly([0.0, 1.0, -1.0]), NUMPY)
    assert found.value[0] == -math.inf and found.full()[0] == 0
    assert math.isnan(found.value[2]) and found.full()[2] == math.inf
    unsure = multiply(Approx(np.array([0.1]), 0.0, np.array([0.2])), exactly([math.inf]))
    assert math.isnan(unsure.value[0])


def test_integers_stay_exact() -> None:
    a = exactly(np.arange(6.0))
    assert add(a, a).exact and multiply(a, a).exact and sums.summed(a, (6,), (0,)).exact
    assert sums.contracted(exactly(np.ones((1, 2, 3))), exactly(np.ones((1, 2, 3)))).exact
    assert not add(exactly([2.0**53]), exactly([1.0])).exact
