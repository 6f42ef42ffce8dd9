"""The exponential with a proof: against balls at many points, at the edges of the table, over the whole range."""

from __future__ import annotations

import math
from fractions import Fraction

import flint
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symattn.readings.balls import parts, precision
from symattn.truth.double import exponential
from symattn.truth.double.exponential import ABSOLUTE, HIGHEST, LOWEST, RELATIVE, STEPS, Table
from symattn.truth.double.functions import NUMPY, ULPS


def worst(x: np.ndarray, values: np.ndarray) -> float:
    """The largest error, in units of what is claimed of the owned exponential."""
    found = 0.0
    with precision(160):
        for a, v in zip(x.tolist(), values.tolist(), strict=True):
            right = flint.arb(a).exp()
            found = max(found, float((abs(right - flint.arb(v)) / (right * RELATIVE + ABSOLUTE)).upper()))
    return found


def points(kind: str, r: np.random.Generator, count: int) -> np.ndarray:
    k = r.integers(-740 * STEPS, 709 * STEPS, count)
    if kind == "edges":  # between two entries of the table, where the cubic is farthest from its centre
        x = (k + 0.5) / STEPS
        return np.concatenate([x, np.nextafter(x, -np.inf), np.nextafter(x, np.inf)])
    if kind == "entries":
        x = k / STEPS
        return np.concatenate([x, np.nextafter(x, -np.inf), np.nextafter(x, np.inf)])
    low, high = {"softmax": (-40, 0), "all": (LOWEST, HIGHEST), "small": (-(2.0**-11), 2.0**-11), "subnormal": (-746, -707)}[kind]
    return r.uniform(low, high, count)


@pytest.mark.parametrize("kind", ["softmax", "all", "small", "subnormal", "edges", "entries"])
def test_the_error_is_as_claimed(kind: str) -> None:
    x = points(kind, np.random.default_rng(1), 2000)
    ratio = worst(x, exponential.exp(x))
    assert ratio <= 1
    if kind not in ("small", "subnormal"):
        assert ratio > 0.55  # the claim is not idle: half of it would be wrong


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["softmax", "all", "edges", "entries"])
def test_the_error_is_as_claimed_at_many_points(kind: str) -> None:
    x = points(kind, np.random.default_rng(2), 200_000)
    assert worst(x, exponential.exp(x)) <= 1


@given(st.floats(min_value=-760, max_value=720))
def test_any_number(x: float) -> None:
    (value,) = exponential.exp(np.array([x])).tolist()
    if math.isinf(value):
        assert x > HIGHEST
    else:
        assert worst(np.array([x]), np.array([value])) <= 1


def misplaced(table: Table, low: int, high: int) -> list[int]:
    """Entries between two arguments that are not the nearest float64 numbers."""
    table.upto(low, high - 1 / STEPS)
    first, wrong = table.index(low), []
    with precision(160):
        for k in range(table.index(high) - first):
            value = float(table.values[first + k])
            mid, rad = parts((flint.arb(low) + flint.arb(k) / STEPS).exp())
            if abs(Fraction(value) - mid) + rad > Fraction(math.ulp(value)) / 2 * (1 + Fraction(1, 2**20)):
                wrong.append(k)
    return wrong


def test_the_table_is_rounded_to_nearest() -> None:
    assert not misplaced(Table(), -2, 1)


def test_an_entry_off_by_one_unit_is_found() -> None:
    table = Table()
    table.upto(-1, 0)
    a = -1419 / STEPS  # e^a is a little above 1/2, where a unit of the last place weighs most
    k = table.index(a)
    table.values[k] = np.nextafter(table.values[k], 2.0)
    assert misplaced(table, -1, 0) == [k - table.index(-1)]
    near = np.linspace(a - 0.4 / STEPS, a + 0.4 / STEPS, 500)
    assert worst(near, exponential.exp(near, None, table)) > 1


@pytest.mark.slow
def test_the_whole_table_is_rounded_to_nearest() -> None:
    assert not misplaced(Table(), -700, 709)


def test_out_of_range_and_in_place() -> None:
    x = np.array([-np.inf, -746.5, LOWEST, HIGHEST, 709.78, np.inf, np.nan, 0.0])
    right = [0.0, 0.0, 0.0, math.exp(HIGHEST), math.inf, math.inf, math.nan, 1.0]
    np.testing.assert_allclose(exponential.exp(x), right, rtol=1e-15)
    np.testing.assert_allclose(exponential.exp(x, x), right, rtol=1e-15)
    assert exponential.exp(np.zeros((0, 3))).shape == (0, 3)


def test_blocks_and_layout_do_not_matter() -> None:
    x = np.random.default_rng(3).uniform(-30, 2, (70, 300)).astype(np.float64)
    assert np.array_equal(exponential.exp(x.T), exponential.exp(x).T)
    assert exponential.exp(x)[7, 11] == exponential.exp(x[7:8, 11:12])[0, 0]


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "sinh", "cosh", "erf", "atan"])
def test_what_is_assumed_of_numpy(name: str) -> None:
    """The assumption that a result states, over the range in use; of sin and cos only ulps of 1 are assumed."""
    r = np.random.default_rng(4)
    x = {"log": np.exp2(r.uniform(-1000, 1000, 2000)), "exp": r.uniform(-700, 700, 2000)}.get(name, r.uniform(-20, 20, 2000))
    x = np.concatenate([x, 1 + r.uniform(-1e-3, 1e-3, 1000)])
    values = NUMPY.functions[name](x)
    with precision(160):
        for a, v in zip(x.tolist(), values.tolist(), strict=True):
            right = getattr(flint.arb(a), name)()
            assert float((abs(right - flint.arb(v)) / abs(right)).upper()) <= 2 * ULPS * 2.0**-53


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_what_is_assumed_of_sines(name: str) -> None:
    x = np.concatenate([np.random.default_rng(5).uniform(-1e5, 1e5, 2000), np.arange(1, 500) * np.pi / 2])
    with precision(160):
        for a, v in zip(x.tolist(), NUMPY.functions[name](x).tolist(), strict=True):
            assert float(abs(getattr(flint.arb(a), name)() - flint.arb(v)).upper()) <= 2 * ULPS * 2.0**-53
