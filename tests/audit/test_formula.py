"""Values of formulas against NumPy, mpmath and fractions: nothing is shared with the evaluator."""

from __future__ import annotations

import random
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from symattn.audit.formula import formula_value, look_up, name_key
from symattn.audit.reals import softmax
from symattn.audit.trees import bounds, interval
from symattn.errors import GrammarError, InputValueError, LimitError, ShapeError, SymattnError, UnknownNameError


def _close(found: object, expected: object) -> None:
    flat = np.array(sp.Matrix(np.atleast_2d(np.array(found, dtype=object))).evalf(30).tolist(), dtype=np.float64)
    np.testing.assert_allclose(flat, np.atleast_2d(np.array(expected, dtype=np.float64)), rtol=1e-12, atol=1e-14)


def _soft(x: np.ndarray, axis: int = -1) -> np.ndarray:
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


_RANDOM = random.Random(5)
Q, K, V = ([[_RANDOM.randint(-3, 3) for _ in range(3)] for _ in range(n)] for n in (2, 4, 4))
NAMES = {"Q": Q, "K": K, "V": V, "d": 3, "x": [1, -2, 3], "y": [0, 5, 2]}
q, k, v, x, y = (np.array(NAMES[n], dtype=np.float64) for n in "QKVxy")

ROWS = (
    ("Q K^T", q @ k.T),
    (r"\frac{QK^\top}{\sqrt{d}}", q @ k.T / np.sqrt(3)),
    ("softmax(Q K^T / √d) V", _soft(q @ k.T / np.sqrt(3)) @ v),
    ("softmax(Q K^T, axis=0)", _soft(q @ k.T, 0)),
    ("x · y", x @ y),
    ("x ⊙ y", x * y),
    ("V x", v @ x),
    ("‖x‖", np.linalg.norm(x)),
    (r"\|x\|_1", np.abs(x).sum()),
    ("sum(exp(x))", np.exp(x).sum()),
    ("logsumexp(x)", np.log(np.exp(x).sum())),
    ("log_softmax(x)", np.log(_soft(x))),
    ("max(x) - min(x) + mean(x)", 3 + 2 + 2 / 3),
    ("tanh(x) + sigmoid(y)", np.tanh(x) + 1 / (1 + np.exp(-y))),
    ("sin(1) + cos(2)", np.sin(1) + np.cos(2)),
    ("relu(x)", np.maximum(x, 0)),
    ("e^{x_1} / (e^{x_1} + e^{x_3})", np.exp(1) / (np.exp(1) + np.exp(3))),
    (r"\sum_{i=1}^{3} x_i y_i", x @ y),
    ("log_2(8) + log10(1000)", 6.0),
    (r"\sqrt[3]{27} + 2^{-1} + 4^{1/2}", 5.5),
    ("diag(x) y", np.diag(x) @ y),
    ("concat(x, y)", np.concatenate([x, y])),
    ("outer(x, y)", np.outer(x, y)),
    ("Q + x", q + x),
    ("60% + 0.25", 0.85),
    ("|-3| × 2", 6.0),
    ("π", np.pi),
)


@pytest.mark.parametrize(("text", "expected"), ROWS, ids=[r[0] for r in ROWS])
def test_values(text: str, expected: object) -> None:
    _close(formula_value(text, NAMES), expected)


def test_products_of_vectors_as_asked() -> None:
    assert formula_value("x * y", NAMES) == Fraction(-4)
    assert formula_value("x * y", NAMES, mode="elementwise") == (Fraction(0), Fraction(-10), Fraction(6))
    assert formula_value("x * y", NAMES, mode="outer")[2] == (Fraction(0), Fraction(15), Fraction(6))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.fractions(-20, 20, max_denominator=50), min_size=1, max_size=6))
def test_softmax_to_fifty_digits(scores: list[Fraction]) -> None:
    with mpmath.workdps(60):
        terms = [mpmath.exp(mpmath.mpf(s.numerator) / s.denominator) for s in scores]
        for weight, term in zip(softmax(list(scores)), terms, strict=True):
            ends = bounds(weight, 256)
            assert ends is not None
            expected = term / mpmath.fsum(terms)
            low, high = (mpmath.mpf(e.numerator) / e.denominator for e in ends)
            assert abs(low - expected) < mpmath.mpf(10) ** -50 and abs(high - expected) < mpmath.mpf(10) ** -50


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-300, 300), min_size=2, max_size=4), st.integers(0, 3))
def test_weights_of_intervals_are_those_of_their_corners(scores: list[int], at: int) -> None:
    """Each weight rises with its own score and falls with the others: its range is between two corners, and no wider."""
    at %= len(scores)
    wide = [interval(Fraction(s, 100) - Fraction(1, 200), Fraction(s, 100) + Fraction(1, 200)) for s in scores]
    ends = bounds(softmax(list(wide))[at], 200)
    assert ends is not None
    with mpmath.workdps(50):
        for end, side in zip(ends, (-1, 1), strict=True):
            step = mpmath.mpf(side) / 200
            corner = [mpmath.mpf(s) / 100 + (step if k == at else -step) for k, s in enumerate(scores)]
            expected = mpmath.exp(corner[at]) / mpmath.fsum(map(mpmath.exp, corner))
            beyond = (mpmath.mpf(end.numerator) / end.denominator - expected) * side
            assert -(mpmath.mpf(10) ** -40) <= beyond < mpmath.mpf(10) ** -8  # a radius has 30 bits


EXACT = (
    ("√16", 4), ("√2 × √2", 2), ("(√5)^2", 5), ("exp(0)", 1), ("log(1)", 0), ("exp(log(7))", 7),
    ("softmax([3, 3, 3, 3])", (Fraction(1, 4),) * 4),
    ("(0.1 + 0.2) × 10", 3), ("1/3 + 1/6", Fraction(1, 2)), ("e^0", 1), ("√(9/4)", Fraction(3, 2)), ("2^10", 1024),
)  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), EXACT)
def test_what_is_rational_stays_exact(text: str, expected: object) -> None:
    found = formula_value(text, {})
    assert found == expected
    assert isinstance(found, (Fraction, tuple))


REFUSED = (
    ("1 / 0", InputValueError), ("√(0 - 2)", InputValueError), ("log(0)", InputValueError), ("z + 1", UnknownNameError),
    ("attention(1, 2)", UnknownNameError), ("[1, 2] + [1, 2, 3]", ShapeError), ("[[1, 2], [3]]", ShapeError),
    ("10^5000", LimitError),
    ("9^(9^9)", LimitError), ("exp(10^9)", LimitError), ("exp(exp(20))", LimitError), ("[1, ..., 3] × 2", GrammarError),
    ("softmax(3)", ShapeError), ("x_9", ShapeError), ("Q Q", ShapeError),
    ("0^(0 - 1)", InputValueError), ("2^{[1, 2]}", ShapeError),
    (r"\sum_{i=1}^{9999} i", LimitError),
)  # fmt: skip


@pytest.mark.parametrize(("text", "kind"), REFUSED)
def test_what_has_no_value_is_refused(text: str, kind: type[SymattnError]) -> None:
    with pytest.raises(kind):
        formula_value(text, NAMES)


def test_steps_are_limited() -> None:
    big = [[1] * 60 for _ in range(60)]
    with pytest.raises(LimitError, match="operations"):
        formula_value("A A A", {"A": big})


def test_names() -> None:
    assert name_key("W_Q") == name_key("W^Q") == name_key("W_{Q}") == name_key("Wq") != name_key("W_K")
    assert name_key("Raw  Scores") == name_key("raw scores")
    assert look_up({name_key("q_1"): 5, "q": (1, 2)}, "q", (1,)) == 5
    assert look_up({"q": (1, 2)}, "q", (2,)) == 2
    assert look_up({"q": (1, 2)}, "p", ()) is None
