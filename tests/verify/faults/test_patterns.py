"""Deviations in words, and the smallest shape that fails."""

from __future__ import annotations

import numpy as np
import pytest

from symattn.verify.diagnosis.explaining import explained
from symattn.verify.diagnosis.patterns import constant_ratio, place, ranges, signature
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
    assert explained(k, p).tolist() == [True, False, True, False, False]


def test_the_smallest_shape():
    shape = smallest_failing(Shape.parse("2,6,3,5,7,6"), lambda s: s.n >= 2 and s.m >= 3 and s.h > s.hkv)
    assert str(shape) == "1,2,1,2,3,1"


def test_a_row_factor_shows():
    from symattn.verify.diagnosis.patterns import patterns

    (o,) = seen(kernel("mask after softmax"), {"causal": "bottom-right"}, ("normal",))
    assert any("one factor per row" in line for line in patterns(o))
