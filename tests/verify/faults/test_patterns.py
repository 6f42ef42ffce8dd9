"""Deviations in words, and the smallest shape that fails."""

from __future__ import annotations

import numpy as np
import pytest

from symattn.verify.diagnosis.diagnose import diagnose
from symattn.verify.diagnosis.explaining import explained
from symattn.verify.diagnosis.patterns import constant_ratio, place, ranges, signature, tensor_pattern, where
from symattn.verify.diagnosis.shrink import smallest_failing
from symattn.verify.faults.fault import Prediction
from symattn.verify.inputs import Shape
from tests.verify.faults.running import seen
from tests.verify.planted import kernel


def bad(shape, at):
    a = np.zeros(shape, bool)
    a[at] = True
    return a


@pytest.mark.parametrize(
    ("name", "shape", "at", "text"),
    [
        ("out", (2, 4, 5, 3), np.s_[:, 1, :2], "head 1 of 4, rows 0-1 of 5"),
        ("grad_key", (2, 2, 7, 3), np.s_[..., 6:, :], "key 6 of 7"),
        ("lse", (1, 2, 5), np.s_[...], "everywhere"),
        ("grad_sinks", (4,), np.s_[1:3], "heads 1-2 of 4"),
    ],
)
def test_places(name, shape, at, text):
    assert place(name, bad(shape, at)) == text


def test_ranges():
    assert ranges([0, 1, 2, 5, 7, 8]) == "0-2, 5, 7-8" and ranges([3]) == "3"


def test_signatures():
    right = ["out", "lse", "grad_value"]
    assert "dV is right while dQ and dK are wrong" in signature(["grad_query", "grad_key"], right)
    assert "only the LSE" in signature(["lse"], ["out"])
    assert "only dK and dV" in signature(["grad_key", "grad_value"], ["out", "lse", "grad_query"])
    assert signature(["out", "lse"], []) is None


def test_a_constant_factor_is_found_and_noise_is_none():
    value = np.linspace(1, 2, 12).reshape(3, 4)
    base = Prediction(value, np.full((3, 4), 1e-6))
    everywhere = np.ones((3, 4), bool)
    assert constant_ratio(1.5 * value, base, everywhere) == pytest.approx(1.5)
    assert constant_ratio(value + np.arange(12).reshape(3, 4) / 10, base, everywhere) is None


def test_specials_are_explained_by_the_same_special_only():
    p = Prediction(np.array([np.nan, np.inf, 1.0, 1.0, 1.0]), np.array([0.0, 0.0, 0.5, 0.5, np.inf]))
    k = np.array([np.nan, -np.inf, 1.4, 1.6, np.nan], np.float32)
    assert explained(k, p).tolist() == [True, False, True, False, True]  # the last one: nothing is promised there


SQUARE, WHOLE = "1,4,2,33,33,6", "2,6,3,5,7,6"


@pytest.mark.parametrize(
    ("start", "fails", "smallest"),
    [
        (WHOLE, lambda s: s.n >= 2 and s.m >= 3 and s.h > s.hkv, "1,2,1,2,3,1"),
        (SQUARE, lambda s: s.n > s.m + 4, "1,1,1,6,1,1"),
        (SQUARE, lambda s: s.m % 8 == 1 and s.m > 1, "1,1,1,1,9,1"),  # only where a tile is not full
        (SQUARE, lambda s: s.m in (33, 5, 6), "1,1,1,1,5,1"),
        (SQUARE, lambda s: s.n == s.m and s.n > 3, "1,1,1,4,4,1"),  # neither can be lowered alone
        ("1,4,2,4,133,6", lambda s: s.m - s.n == 129, "1,1,1,1,130,1"),
        ("2,4,2,5,7,8,12", lambda s: s.d % 2 == 0 and s.dv > 2, "1,1,1,1,1,2,3"),
        ("1,6,1,5,7,6", lambda s: s.h == 6, "1,6,1,1,1,1"),
    ],
)
def test_the_smallest_shape(start, fails, smallest):
    runs = []
    found = smallest_failing(Shape.parse(start), lambda s: bool(runs.append(s)) or fails(s))
    assert str(found.shape) == smallest and found.tried == len(runs) == len(set(runs)) <= 40
    assert found.complete or len(runs) == 40


def test_a_search_for_a_smaller_shape_that_ran_out_says_so():
    start = Shape.parse("1,1,1,1,4096,1")
    found = smallest_failing(start, lambda s: s.m == 4096)
    assert found.shape == start and not found.complete and found.tried == 40
    assert smallest_failing(Shape.parse("1,1,1,1,9,1"), lambda s: s.m == 9).complete
    assert smallest_failing(start, lambda s: s.m >= 70, 3).tried == 3


def smallest_line(cases, again):
    (found,) = diagnose(cases, again, {})
    return next(line.strip() for line in found.text if "smallest" in line)


def test_a_smaller_shape_is_sought_from_the_smallest_case_with_inputs_that_the_option_draws():
    def lost(query, key, value, **options):
        m = key.shape[2]
        return KERNEL(query, key[:, :, : m - (m % 8 == 1)], value[:, :, : m - (m % 8 == 1)], **options)

    lost.arrays = "numpy"
    cases, kinds = seen(lost, {}, ("square", "decode")), set()

    def fails(kind, shape):
        kinds.add(kind)
        return shape.m % 8 == 1 and shape.m > 1

    line = smallest_line(cases, fails)
    assert line.endswith("that still fails: --shape 1,1,1,1,9,1; no size of it can be lowered alone") and kinds == {"shape"}


def test_where_ordinary_inputs_do_not_fail_the_kind_is_said():
    cases = seen(kernel("no maximum"), {}, ("deep",))
    line = smallest_line(cases, lambda kind, s: kind == "deep" and s.n > 2)
    assert line.endswith("--shape 1,1,1,3,1,1, with inputs as in deep; no size of it can be lowered alone")
    line = smallest_line(cases, lambda kind, s: kind == "deep" and str(s) == "2,4,2,5,9,6")
    assert line.startswith("the smallest of ") and "--shape 2,4,2,5,9,6, with" in line


def test_a_row_factor_shows():
    from symattn.verify.diagnosis.patterns import patterns

    (o,) = seen(kernel("mask after softmax"), {"causal": "bottom-right"}, ("normal",))
    assert any("one factor per row" in line for line in patterns(o))


def said(name, kernel, value, reach):
    (o,) = seen(KERNEL, {}, ("normal",))
    return " / ".join(tensor_pattern(name, kernel, Prediction(value, np.full(value.shape, reach)), o))


KERNEL = kernel()


@pytest.mark.parametrize("count", [1, 2])
def test_one_or_two_elements_have_no_pattern_but_their_place(count):
    value = np.random.default_rng(0).normal(size=(1, 2, 4, 5))
    wrong = value.copy()
    wrong[0, 0, 1, :count] += 0.5
    text = said("out", wrong, value, 0.1)
    assert "off by" not in text and "wrong head 0 of 2, row 1 of 4" in text
    assert "mean" not in said("lse", value[..., 0] + 0.5 * (value[..., 0] == value[0, 0, 0, 0]), value[..., 0], 0.1)


def test_deviations_of_the_size_of_the_bound_are_no_factor():
    r = np.random.default_rng(1)
    value = r.normal(size=(1, 2, 40, 8)) + 3
    noise = 0.102 * r.choice([-1, 1], size=value.shape)
    assert "off by" not in said("out", value + noise, value, 0.1)


def test_a_factor_a_shift_and_factors_of_rows_are_told():
    r = np.random.default_rng(2)
    value = r.normal(size=(1, 2, 6, 8))
    assert "off by the constant factor 1/2" in said("out", value / 2, value, 1e-6)
    assert "off by the constant 0.25" in said("out", value + 0.25, value, 1e-6)
    factors = r.uniform(1.1, 2, size=(1, 2, 6, 1))
    assert "one factor per row" in said("out", value * factors, value, 1e-6)


def test_rows_without_keys_leave_the_pattern_of_the_others():
    value = np.random.default_rng(0).normal(size=(1, 4, 5))
    value[:, :, 0] = -np.inf  # of both: nothing is wrong there, and nothing is computed with it
    assert "off by the constant 0.5" in said("lse", (value + 0.5).astype(np.float32), value, 1e-6)
    kernel = (value + 0.5).astype(np.float32)
    kernel[0, 0, 1], value[0, 1, 1] = np.inf, -np.inf
    assert "off by the constant 0.5" in said("lse", kernel, value, 1e-6) and "2 infinite" not in said("lse", kernel, value, 1e-6)


def test_a_place_is_never_empty():
    """Where the verdict's bound is a little narrower than the one of a diagnosis, the worst element of the verdict is said."""
    (o,) = seen(kernel("top-left"), {"causal": "bottom-right"}, ("tall",))
    assert o.failing and where(o).startswith("O rows")
    for name in o.failing:
        p = o.base[name]
        o.base[name] = Prediction(p.value, np.full(p.reach.shape, np.inf))
    worst = next(t.comparison.worst for t in o.reports if t.name == "out")
    assert where(o).startswith(f"O[{','.join(map(str, worst.index))}]")
