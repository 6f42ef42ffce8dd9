"""Rounding into float formats, against NumPy and ml_dtypes: every value and every midpoint of the short formats."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symattn import formats
from symattn.errors import UnknownNameError
from symattn.formats import FORMATS, floor_log2, get, round_exact, to_array, ulp

SHORT = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")


def all_values(name: str) -> np.ndarray:
    dtype = get(name).dtype
    bits = np.arange(1 << (8 * dtype.itemsize), dtype=np.uint64).astype(f"uint{8 * dtype.itemsize}")
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return bits.view(dtype).astype(np.float64)


def same(a: object, b: float) -> bool:
    return (math.isnan(a) and math.isnan(b)) or float(a) == b  # type: ignore[arg-type]


@pytest.mark.parametrize("name", SHORT)
def test_the_constants_are_those_of_the_dtype(name):
    f, info = get(name), ml_dtypes.finfo(get(name).dtype)
    assert float(f.max) == float(info.max)
    assert float(f.smallest_normal) == float(info.tiny)
    assert float(f.smallest_subnormal) == float(info.smallest_subnormal)
    assert float(2 * f.unit_roundoff) == float(info.eps)
    assert f.eta * 2 == f.smallest_subnormal


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_the_constants_of_the_long_formats(name):
    f, info = get(name), np.finfo(name)
    assert (float(f.max), float(f.smallest_normal), float(2 * f.unit_roundoff)) == (
        float(info.max),
        float(info.tiny),
        float(info.eps),
    )
    assert float(f.smallest_subnormal) == float(info.smallest_subnormal)


@pytest.mark.parametrize("name", SHORT)
def test_every_value_rounds_to_itself(name):
    for v in all_values(name):
        assert same(round_exact(float(v), name), float(v))


@pytest.mark.parametrize("name", SHORT)
def test_every_midpoint_and_its_neighbours_round_as_the_cast_does(name):
    """Between every two adjacent values: the midpoint (a tie) and a point just to either side of it, exhaustively."""
    f = get(name)
    v = np.unique(all_values(name)[np.isfinite(all_values(name))])
    mid = (v[:-1] + v[1:]) / 2  # exact in float64
    points = np.concatenate([mid, np.nextafter(mid, -np.inf), np.nextafter(mid, np.inf)])
    edge = float(f.max + ulp(f.max, f) / 2)
    points = np.concatenate([points, [edge, np.nextafter(edge, 0), np.nextafter(edge, np.inf), -edge, 1e300]])
    with np.errstate(over="ignore", invalid="ignore"):
        want = points.astype(f.dtype).astype(np.float64)
    if name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):  # these casts go through float32 and may round twice
        with np.errstate(over="ignore"):
            ok = points.astype(np.float32).astype(np.float64) == points
        points, want = points[ok], want[ok]
    assert len(points) > len(v) - 2
    for x, w in zip(points.tolist(), want.tolist(), strict=True):
        assert same(round_exact(Fraction(x), f), w), (x, w)


@given(st.integers(-(10**40), 10**40), st.integers(1, 10**40), st.integers(-60, 60))
def test_float64_equals_the_division_of_integers(n, d, e):
    x = Fraction(n, d) * Fraction(2) ** e
    assert float(round_exact(x, "float64")) == x.numerator / x.denominator


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_float32_equals_the_cast_of_numpy(x):
    with np.errstate(over="ignore"):
        assert same(round_exact(Fraction(x), "float32"), float(np.float32(x)))


@given(
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.sampled_from(["bfloat16", "float16", "float8_e5m2", "float8_e4m3fn"]),
)
def test_short_formats_equal_their_cast_from_float32(x, name):
    with np.errstate(over="ignore", invalid="ignore"):
        assert same(round_exact(Fraction(x), name), float(np.float32(x).astype(get(name).dtype)))


def test_rounding_happens_once():
    """1 + 2^-8 + 2^-40 lies above the tie of bfloat16; by way of float32 it would become the tie, and round down."""
    x = 1 + Fraction(1, 2**8) + Fraction(1, 2**40)
    assert round_exact(x, "bfloat16") == 1 + Fraction(1, 2**7)
    assert round_exact(round_exact(x, "float32"), "bfloat16") == 1


def test_overflow():
    assert round_exact(Fraction(465), "float8_e4m3fn") != round_exact(Fraction(464), "float8_e4m3fn") == 448
    assert math.isnan(round_exact(Fraction(465), "float8_e4m3fn"))
    assert round_exact(Fraction(-465), "float8_e4m3fn", saturate=True) == -448
    assert round_exact(-math.inf, "float16") == -math.inf
    assert round_exact(-math.inf, "float16", saturate=True) == -65504
    assert math.isnan(round_exact(math.nan, "float16", saturate=True))


def test_tf32_is_float32_with_ten_bits():
    assert round_exact(1 + Fraction(1, 2**11), "tf32") == 1
    assert round_exact(1 + Fraction(3, 2**11), "tf32") == 1 + Fraction(1, 2**9)
    assert get("tf32").dtype == np.float32


@pytest.mark.parametrize("name", SHORT)
def test_ulp_is_the_distance_to_the_next_value(name):
    v = np.unique(all_values(name)[np.isfinite(all_values(name))])
    v = v[v >= 0]
    for a, b in zip(v[:-1].tolist(), v[1:].tolist(), strict=True):
        assert ulp(Fraction(a), name) == Fraction(b) - Fraction(a)
        assert ulp(-(Fraction(a) + Fraction(b)) / 2, name) == Fraction(b) - Fraction(a)


def test_ulp_at_the_ends():
    assert ulp(math.inf, "float8_e5m2") == ulp(Fraction(57344), "float8_e5m2") == ulp(Fraction(10**9), "float8_e5m2")
    with pytest.raises(ValueError, match="NaN"):
        ulp(math.nan, "float32")


@given(st.fractions().filter(bool))
def test_floor_log2(x):
    e = floor_log2(x)
    assert Fraction(2) ** e <= abs(x) < Fraction(2) ** (e + 1)


def test_names():
    assert all(get(alias).name == name for alias, name in formats.ALIASES.items())
    assert get(ml_dtypes.bfloat16) is get("torch.bfloat16") is get("bf16") is FORMATS["bfloat16"]
    with pytest.raises(UnknownNameError, match="bfloat16"):
        get("bfloat17")
    with pytest.raises(UnknownNameError):
        get(np.int32)


def test_arrays_keep_shape_and_dtype():
    a = to_array(np.array([[Fraction(1, 3), math.inf], [math.nan, -2]], dtype=object), "bf16")
    assert a.dtype == ml_dtypes.bfloat16
    assert a.shape == (2, 2)
    assert a.astype(float).tolist()[0] == [171 / 512, math.inf]
    assert to_array(Fraction(1, 2), "float32").shape == ()
