"""The one routine that rounds an exact rational: against MPFR by gmpy2, and around every value of 8- and 16-bit formats."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import pairwise

import gmpy2
import numpy as np
import pytest

from symattn import formats
from symattn.formats import above, get, round_array, round_exact

SHORT = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
LONG = ("float64", "float32", "tf32")
MODES = {0: gmpy2.RoundToNearest, 1: gmpy2.RoundUp, -1: gmpy2.RoundDown}


def finite_values(name: str) -> list[tuple[Fraction, bool]]:
    """The finite numbers of a format that are not negative, rising, and whether the bit pattern of each is even."""
    dtype = get(name).dtype
    patterns = np.arange(1 << (8 * dtype.itemsize - 1), dtype=f"uint{8 * dtype.itemsize}")
    with np.errstate(invalid="ignore"):
        values = patterns.view(dtype).astype(np.float64).tolist()
    return [(Fraction(v), k % 2 == 0) for k, v in enumerate(values) if math.isfinite(v)]


def slips(name: str, round_: object) -> list[Fraction]:
    """Points around the values and the midpoints of a format at which a routine differs from what the bit patterns say."""
    found = []
    values = finite_values(name)
    for (a, even), (b, _) in pairwise(values):
        gap = b - a
        little = gap / 2**70
        middle = a + gap / 2
        wanted = [
            (a, a, a, a),
            (a + little, a, a, b),
            (middle - little, a, a, b),
            (middle, a if even else b, a, b),
            (middle + little, b, a, b),
            (b - little, b, a, b),
        ]
        for x, nearest, down, up in wanted:
            right = round_(x, name) == nearest and round_(-x, name) == -nearest  # type: ignore[operator]
            right &= round_(x, name, towards=-1) == down and round_(-x, name, towards=-1) == -up  # type: ignore[operator]
            if not right or round_(x, name, towards=1) != up:  # type: ignore[operator]
                found.append(x)
    return found


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", pytest.param("float16", marks=pytest.mark.slow)])
def test_around_every_value_and_every_midpoint(name):
    assert not slips(name, round_exact)


@pytest.mark.slow
def test_around_every_value_and_every_midpoint_of_bfloat16():
    assert not slips("bfloat16", round_exact)


def _twice(x, name, towards=0):
    """A planted slip: by way of a longer format."""
    return round_exact(round_exact(x, "float64"), name, towards=towards)


def _ties_away(x, name, towards=0):
    """A planted slip: ties go up."""
    near = round_exact(x, name, towards=towards)
    up = round_exact(x, name, towards=1)
    return up if not towards and abs(up - x) == abs(near - x) else near


def _flushed(x, name, towards=0):
    """A planted slip: subnormal results are 0."""
    near = round_exact(x, name, towards=towards)
    return Fraction(0) if abs(near) < get(name).smallest_normal else near


@pytest.mark.parametrize("slip", [_twice, _ties_away, _flushed])
def test_planted_slips_show(slip):
    assert slips("float8_e5m2", slip)


@pytest.mark.parametrize("name", SHORT)
def test_where_overflow_begins(name):
    f = get(name)
    edge = f.max + formats.ulp(f.max, f) / 2
    even = round(f.max / formats.ulp(f.max, f)) % 2 == 0
    beyond = math.inf if f.infinities else math.nan
    little = Fraction(1, 2**70)
    for x, inside in ((edge - little, True), (edge, even), (edge + little, False), (f.max * 2**200, False)):
        for sign in (1, -1):
            got = round_exact(sign * x, f)
            assert got == sign * f.max if inside else (got == sign * beyond or (math.isnan(beyond) and math.isnan(got)))
            assert round_exact(sign * x, f, saturate=True) == sign * f.max
            assert round_exact(sign * x, f, towards=-sign) == sign * f.max


def mpfr(x: Fraction, f: formats.Format, towards: int) -> Fraction | float:
    """The rounding that MPFR does, with its exponents of a mantissa in [1/2, 1)."""
    low = f.emin - f.precision + 2
    made = gmpy2.context(precision=f.precision, emin=low, emax=f.emax + 1, subnormalize=True, round=MODES[towards])
    with made:
        got = gmpy2.mpfr(gmpy2.mpq(x.numerator, x.denominator))
    return Fraction(*map(int, got.as_integer_ratio())) if gmpy2.is_finite(got) else float(got)


def points(f: formats.Format, count: int, seed: int) -> list[Fraction]:
    """Rationals all over the range of a format and beyond both ends: near values, near midpoints, and anywhere."""
    r = random.Random(seed)
    found = []
    for _ in range(count):
        e = r.randint(f.emin - f.precision - 3, f.emax + 1)
        k = r.getrandbits(f.precision) | 1 << (f.precision - 1)
        x = (k + Fraction(r.choice((0, 1, 1, 2)), 2)) * Fraction(2) ** (e - f.precision + 1)
        x += r.choice((-1, 0, 1)) * x / 2 ** r.randint(f.precision + 2, 200)
        found += [x, -x, x * Fraction(r.randint(1, 10**9), r.randint(1, 10**9))]
    return found


@pytest.mark.parametrize("name", [*LONG, "float16", "bfloat16", "float8_e5m2"])
@pytest.mark.parametrize("towards", MODES)
def test_as_mpfr_rounds(name, towards):
    f = get(name)
    wrong = [x for x in points(f, 400, 1 + towards) if round_exact(x, f, towards=towards) != mpfr(x, f, towards)]
    assert not wrong


def test_as_mpfr_rounds_where_there_is_no_infinity():
    """MPFR knows no format without infinities: in range the numbers are the same, beyond the last one there is NaN."""
    f = get("float8_e4m3fn")
    for x in points(f, 400, 7):
        if abs(x) <= 464:
            assert round_exact(x, f) == mpfr(x, f, 0)
        else:
            assert math.isnan(round_exact(x, f))


@pytest.mark.parametrize("name", ["tf32", "float32", *SHORT])
def test_whole_arrays_are_rounded_as_single_numbers(name):
    f = get(name)
    doubles = np.array([float(x) for x in points(f, 300, 3)])
    wanted = np.array([float(round_exact(Fraction(x), f)) for x in doubles.tolist()])
    np.testing.assert_array_equal(round_array(doubles, f), wanted)


def test_above_is_the_next_float64():
    for x in points(get("float64"), 300, 5):
        up = above(x)
        assert up >= x and (math.isinf(up) or math.nextafter(up, -math.inf) < x)
    assert above(math.inf) == math.inf and above(Fraction(1, 2**2000)) == 2.0**-1074 and above(-(Fraction(10) ** 400)) < -1e308
