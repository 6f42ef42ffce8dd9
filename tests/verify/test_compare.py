"""Elements judged exactly: at the bound, just beyond it, between, and with infinities and NaN."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symattn.formats import exact, get
from symattn.verify.compare import OUT, UNBOUNDED, UNDECIDED, WITHIN, as_known, compare, judge_element, significant
from symattn.verify.screening import to_judge

HALF = Fraction(1, 2)
TINY = Fraction(1, 10**60)
F32 = get("float32")


def state(k, t, r, b, format=F32):
    return judge_element((0,), k, t, r, b, format).state


@pytest.mark.parametrize(
    "k, t, r, b, want",
    [
        (Fraction(1), HALF, Fraction(0), 0.5, WITHIN),  # at the bound
        (Fraction(1) + TINY, HALF, Fraction(0), 0.5, OUT),  # beyond it by far less than a float shows
        (Fraction(1), HALF, TINY, 0.5, UNDECIDED),
        (Fraction(1) - TINY, HALF, TINY, 0.5, WITHIN),
        (Fraction(1) + TINY, HALF, TINY, 0.5, UNDECIDED),
        (Fraction(1) + 2 * TINY, HALF, TINY, 0.5, OUT),
        (HALF, HALF, Fraction(0), 0.0, WITHIN),
        (HALF + TINY, HALF, Fraction(0), 0.0, OUT),
        (math.nan, HALF, Fraction(0), 1e9, OUT),
        (math.nan, HALF, math.inf, 1e9, UNDECIDED),
        (math.nan, math.nan, Fraction(0), 0.0, WITHIN),
        (HALF, math.nan, Fraction(0), 1e9, OUT),
        (-math.inf, -math.inf, Fraction(0), 0.0, WITHIN),
        (math.inf, -math.inf, Fraction(0), 0.0, OUT),
        (Fraction(-10000), -math.inf, Fraction(0), 1e9, OUT),
        (-math.inf, HALF, Fraction(0), 1e9, OUT),
        (HALF, HALF, math.inf, 1e9, UNDECIDED),
        (Fraction(10**9), HALF, Fraction(0), math.inf, UNBOUNDED),
        (Fraction(10**9), HALF, Fraction(0), math.nan, UNBOUNDED),
        (math.nan, HALF, Fraction(0), math.inf, UNBOUNDED),
        (math.nan, HALF, Fraction(0), math.nan, UNBOUNDED),
        (-math.inf, -math.inf, Fraction(0), math.inf, WITHIN),
    ],
)
def test_states(k, t, r, b, want):
    assert state(k, t, r, b) == want


def test_an_infinity_stands_for_what_rounds_to_it():
    f16 = get("float16")
    assert state(math.inf, Fraction(70000), Fraction(0), 1.0, f16) == WITHIN
    assert state(math.inf, Fraction(65519), Fraction(0), 1.0, f16) == WITHIN
    assert state(math.inf, Fraction(65518), Fraction(0), 1.0, f16) == OUT
    assert state(-math.inf, Fraction(70000), Fraction(0), 1.0, f16) == OUT
    assert state(-math.inf, Fraction(-70000), Fraction(0), 1.0, f16) == WITHIN
    assert state(math.inf, Fraction(470), Fraction(0), 100.0, get("float8_e4m3fn")) == OUT


def test_summary_of_a_tensor():
    kernel = np.array([[1.0, 2.0], [3.0, np.nan]], dtype=np.float32)
    mid = np.array(
        [[Fraction(1), Fraction(2) + Fraction(1, 2**23)], [Fraction(3) - Fraction(1, 2**20), Fraction(4)]], dtype=object
    )
    c = compare(kernel, mid, mid * 0, np.array([[0.0, 2.0**-22], [2.0**-22, 1.0]]), F32)
    assert (c.verdict, c.failing, c.undecided, c.total, c.unbounded) == ("fail", 2, 0, 4, 0)
    assert c.max_error == c.max_ulp == c.max_share == math.inf
    assert c.worst is not None and c.worst.index == (1, 1)
    c = compare(kernel[0], mid[0], mid[0] * 0, np.array([0.0, 2.0**-22]), F32)
    assert (c.verdict, c.max_error, c.max_ulp, c.max_share) == ("pass", Fraction(1, 2**23), HALF, HALF)
    assert c.worst is not None and c.worst.index == (1,)


def test_an_infinite_bound_shows_nothing():
    t = np.array([HALF, HALF], dtype=object)
    c = compare(np.array([0.5, 7.0]), t, t * 0, np.array([0.1, np.inf]), F32)
    assert (c.verdict, c.failing, c.undecided, c.unbounded) == ("inconclusive", 0, 0, 1)
    c = compare(np.array([0.7, 7.0]), t, t * 0, np.array([0.1, np.inf]), F32)
    assert (c.verdict, c.failing, c.nan, c.unbounded) == ("fail", 1, 0, 1)
    c = compare(np.array([0.7, np.nan]), t, t * 0, np.array([0.1, np.inf]), F32)
    assert (c.failing, c.nan, c.unbounded, c.verdict) == (1, 0, 1, "fail")
    c = compare(np.array([0.5, np.nan]), t, t * 0, np.array([0.1, np.inf]), F32)
    assert (c.verdict, c.failing, c.undecided, c.unbounded) == ("inconclusive", 0, 0, 1)


def test_undecided_is_inconclusive_and_shapes_must_agree():
    a, t = np.array([1.0]), np.array([HALF], dtype=object)
    assert compare(a, t, np.array([TINY], dtype=object), np.array([0.5]), F32).verdict == "inconclusive"
    with pytest.raises(ValueError, match="shapes"):
        compare(a, t, t, np.zeros(2), F32)


@given(st.floats(-1e6, 1e6), st.fractions(-(10**6), 10**6), st.floats(0, 1e6), st.fractions(0, 10))
def test_a_state_is_right_for_every_value_in_the_enclosure(k, t, b, r):
    """What is called within (out) is so for both ends of the enclosure."""
    errors = [abs(Fraction(k) - (t + s * r)) for s in (-1, 1)]
    s = state(Fraction(k), t, r, b)
    if s == WITHIN:
        assert max(errors) <= Fraction(b)
    elif s == OUT:
        assert min(errors) > Fraction(b)
    else:
        assert max(errors) > Fraction(b) or min(errors) <= Fraction(b)


def test_decimals():
    assert significant(Fraction(2, 3), 5) == "0.66667"
    assert significant(Fraction(1, 7) * Fraction(10) ** -400, 3) == "1.43E-401"
    assert significant(math.nan, 3) == "nan"


@pytest.mark.parametrize("k", [math.inf, -math.inf])
@pytest.mark.parametrize("bound, share", [(1.0, math.inf), (math.inf, 0)])
def test_an_infinity_in_the_place_of_a_number_is_infinitely_wrong(k, bound, share):
    e = judge_element((), k, Fraction(1), Fraction(0), bound, get("float32"))
    assert (e.error, e.ulps, e.share) == (math.inf, math.inf, share) and e.state in ("out", "unbounded")


def test_an_overflow_that_the_bound_allows_is_measured_from_where_overflow_starts():
    top = get("float16").max
    e = judge_element((), math.inf, top, Fraction(0), 32.0, get("float16"))
    assert (e.state, e.error, e.share) == ("within", 16, Fraction(1, 2))


@pytest.mark.parametrize("off, error", [(Fraction(0), 0), (Fraction(1, 2**60), 0), (Fraction(1, 2**50), Fraction(1, 2**50))])
def test_the_width_of_the_enclosure_is_no_error(off, error):
    e = judge_element((), Fraction(1) + off, Fraction(1), Fraction(1, 2**60), 0.5, get("float64"))
    assert (e.state, e.error, e.ulps, e.share) == ("within", error, error * 2**52, error * 2)


def test_what_is_undecided_keeps_its_error():
    e = judge_element((), Fraction(1, 8), Fraction(0), Fraction(1, 4), 0.25, get("float64"))
    assert (e.state, e.error) == ("undecided", Fraction(1, 8))


def one_by_one(kernel, mid, rad, bound, format):
    """The summary from every element."""
    at = list(np.ndindex(kernel.shape))
    found = [judge_element(a, exact(float(kernel[a])), mid[a], rad[a], float(bound[a]), format) for a in at]
    counts = [sum(e.state == s for e in found) for s in (OUT, UNDECIDED, UNBOUNDED)]
    worst = max(found, key=lambda e: (e.share, e.error))  # the first of the greatest
    worst = replace(worst, exact=as_known(worst.exact, exact(rad[worst.index])))
    return (*counts, max(e.error for e in found), max(e.ulps for e in found), max(e.share for e in found), worst)


@given(st.integers(0, 2**32), st.sampled_from(["float64", "float32", "float16", "bfloat16", "float8_e4m3fn"]))
def test_the_summary_is_that_of_every_element(seed, name):
    format, rng = get(name), np.random.default_rng(seed)
    scale = 2.0 ** rng.integers(-40, 8, (5, 7))
    numbers = (rng.standard_normal((5, 7)) * scale).ravel().tolist()
    truth = [Fraction(x) + Fraction(int(rng.integers(-9, 9)), 3**60) for x in numbers]
    mid = np.array([*truth], dtype=object).reshape(5, 7)
    rad = np.array([Fraction(int(x), 2 ** int(rng.integers(20, 90))) for x in rng.integers(0, 3, 35)], dtype=object).reshape(5, 7)
    error = rng.standard_normal((5, 7)) * scale * 2.0 ** -rng.integers(3, 60, (5, 7))
    kernel = (np.vectorize(float)(mid) + error * rng.integers(0, 2, (5, 7))).astype(np.float64)
    kernel = np.where(rng.random((5, 7)) < 0.5, kernel.astype(format.dtype).astype(np.float64), kernel)
    bound = np.abs(error) * rng.choice([0.0, 0.999, 1.0, 1.5, np.inf], (5, 7))
    for odd in (np.nan, np.inf):
        kernel[tuple(rng.integers(0, [5, 7]))] = odd if rng.random() < 0.2 else kernel[0, 0]
    c = compare(kernel, mid, rad, bound, format)
    found = (c.failing, c.undecided, c.unbounded, c.max_error, c.max_ulp, c.max_share, c.worst)
    assert repr(found) == repr(one_by_one(kernel, mid, rad, bound, format))  # NaN is not equal to itself


def test_few_elements_are_judged_exactly():
    rng = np.random.default_rng(0)
    truth = rng.standard_normal(20000)
    kernel = truth.astype(np.float32).astype(np.float64)
    found = to_judge(kernel, truth, np.zeros(20000), np.full(20000, 1e-6), F32)
    assert 1 <= len(found) < 2000
    kernel[77] += 1
    assert 77 in to_judge(kernel, truth, np.zeros(20000), np.full(20000, 1e-6), F32)


def test_what_has_more_digits_than_python_writes_is_shown():
    exact = np.array([Fraction(1, 3**10000)], dtype=object)
    found = repr(compare(np.array([0.5]), exact, exact * 0, np.array([0.1]), F32))
    assert found.startswith("Comparison(failing=1, ") and "exact=6.1299E-4772" in found, found
