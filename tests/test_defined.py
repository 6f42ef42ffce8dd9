"""Scores that have no value somewhere: refused with the point, unless the mask keeps it out; others cost nothing."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symattn import defined
from symattn.definition import Definition
from symattn.errors import InputValueError
from symattn.truth.fields import truth_of
from symattn.verify.reference import Reference

X = np.array([[1.0, 2.0], [0.5, -1.0], [1.0, 1.0]])
G = np.ones((3, 2))


def out(gradient: bool = False, **fields: Any) -> np.ndarray:
    given = {n: fields.pop(n) for n in ("sinks", "c") if n in fields}
    found = truth_of(
        Definition(lse=False, **fields),
        {"query": X, "key": X, "value": X, **given, **({"grad_out": G} if gradient else {})},
        digits=20,
    )
    assert not any(v != v for e in found.values() for v in e.float().ravel()), "NaN in a truth"
    return found["grad_query" if gradient else "out"].float()


UNDEFINED = [
    ({"score": "1/(i - j)"}, "Z: `1/(i - j)` has no value at i=0, j=0"),
    ({"score": "s + log(i - j)"}, "Z: `log(i - j)` has no value at i=0, j=1"),
    ({"score": "s**0.5"}, "Z: `sqrt(S[i, j])` has no value at i=0, j=1"),
    ({"score": "s/(j - 2)"}, "Z: `1/(j - 2)` has no value at i=0, j=2"),
    ({"score": "log(s - 5)"}, "Z: `log(S[i, j] - 5)` has no value at i=0, j=0"),
    ({"score": "tanh(s/(j - 2))"}, "Z: `1/(j - 2)` has no value at i=0, j=2"),
    ({"score": "max(s, 1/(i - 1))"}, "`1/(i - 1)` has no value at i=1, j=0"),
    ({"score": "s", "scale": "1/(n - m)"}, "scale: `1/(-m + n)` has no value"),
    ({"softcap": "c", "c": 0.0}, "c is positive"),
    ({"score": "s/c", "c": 0.0}, "Z: `1/c` has no value at i=0, j=0"),
    ({"score": "-log(j)"}, "Z: `-log(j)` is +oo at i=0, j=0"),
    ({"score": "s + log(j)", "mask": "j < 1"}, "all scores of a query are -oo"),
]


@pytest.mark.parametrize(("fields", "says"), UNDEFINED)
def test_a_score_without_a_value_is_refused_with_the_point(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(InputValueError, match=re.escape(says)):
        out(**fields)


DEFINED: list[dict[str, Any]] = [
    {"score": "1/(i - j)", "mask": "i != j"},
    {"score": "s + log(i - j + 1)", "mask": "j < i"},
    {"score": "sqrt(abs(s))"},
    {"score": "s/(j - 3)"},
    {"score": "max(s, 1/(i + 1))"},
    {"score": "s + log(j)"},
    {"score": "s + log(j)", "mask": "j < 1", "sink": True, "sinks": np.zeros(1)},
    {"score": "s/(j - 2)", "mask": "j < 2 and i > 0", "empty_row": "zero"},
]


@pytest.mark.parametrize("fields", DEFINED)
def test_a_score_that_has_a_value_at_every_kept_point_is_not(fields: dict[str, Any]) -> None:
    assert out(**fields).shape == (3, 2)


def test_a_score_of_minus_infinity_is_a_weight_of_zero() -> None:
    expected = out(score="s + log(j)", mask="j > 0")
    assert np.array_equal(out(score="s + log(j)"), expected)
    with_gradient = out(True, score="s + log(j)")
    assert np.array_equal(with_gradient, out(True, score="s + log(j)", mask="j > 0"))


def test_a_derivative_without_a_value_is_refused_where_a_gradient_is_asked_for() -> None:
    q = np.array([[1.0, 2.0], [2.0, -1.0]])
    given = {"query": q, "key": q, "value": q}
    for score in ("sqrt(abs(s))", "s + abs(s)**1.5"):
        assert truth_of(Definition(score=score), given)["out"].mid.shape == (2, 2)
    with pytest.raises(InputValueError, match=r"^dS: .* is part of the gradient and has no value at i=0, j=1"):
        truth_of(Definition(score="sqrt(abs(s))"), {**given, "grad_out": q})
    smooth = truth_of(Definition(score="s + abs(s)**1.5"), {**given, "grad_out": q})
    assert np.isfinite(smooth["grad_query"].float()).all()


def test_an_empty_row_that_is_nan_by_convention_is_no_error() -> None:
    found = truth_of(Definition(score="s/(j - 2)", mask="j < i", empty_row="nan"), {"query": X, "key": X, "value": X})["out"]
    assert [math.isnan(v) for v in found.float()[:, 0]] == [True, False, False]


def test_the_reference_of_a_kernel_is_refused_too() -> None:
    q = X.reshape(1, 1, 3, 2)
    with pytest.raises(InputValueError, match=r"`1/\(j - 2\)` has no value at b=0, i=0, j=2"):
        Reference(Definition(score="s/(j - 2)"), {"query": q, "key": q, "value": q})


def test_scores_that_always_have_a_value_are_not_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    def evaluate(*_: Any, **__: Any) -> None:
        raise AssertionError("nothing is to be evaluated")

    monkeypatch.setattr(defined.balls, "evaluate", evaluate)
    for fields in [
        {},
        {"softcap": 20},
        {"alibi": True, "alibi_slopes": "interleaved", "heads": 6},
        {"score": "sigmoid(s) + s**2/d"},
    ]:
        defined.refuse_undefined(Definition(**fields).program(), {}, {})
    with pytest.raises(AssertionError, match="nothing is to be"):
        defined.refuse_undefined(Definition(score="1/s").program(), dict.fromkeys("QKV"), {})


def test_a_divisor_that_few_bits_do_not_tell_from_zero_is_told_by_more() -> None:
    s = sp.Symbol("s", real=True)
    tiny = sp.exp(-sp.Integer(200))
    assert out(score=s / (sp.sqrt(2) * sp.sqrt(3 + tiny) - sp.sqrt(6))).shape == (3, 2)
