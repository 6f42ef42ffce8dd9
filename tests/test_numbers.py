"""Exact intake of numbers."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import flint
import ml_dtypes
import mpmath
import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from symattn.errors import InputValueError
from symattn.numbers import exact_array, exact_number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.1", Fraction(1, 10)),
        (" -12 ", Fraction(-12)),
        ("+.5", Fraction(1, 2)),
        ("3.", Fraction(3)),
        ("1e-3", Fraction(1, 1000)),
        ("1.5E2", Fraction(150)),
        ("1/3", Fraction(1, 3)),
        ("-1.5/0.5", Fraction(-3)),
        ("2^-3", Fraction(1, 8)),
        ("2**10", Fraction(1024)),
        ("-2^2", Fraction(-4)),
        ("1_000", Fraction(1000)),
        ("0x1.8p-1", Fraction(3, 4)),
    ],
)
def test_text_is_read_exactly(text: str, value: Fraction) -> None:
    assert exact_number(text) == value
    assert type(exact_number(text)) is Fraction


@pytest.mark.parametrize(
    "text",
    [
        "",
        "abc",
        "__import__('os').system('true')",
        "1/0",
        "0^-1",
        "1/2/3",
        "2^3^4",
        "2^0.5",
        "1e999999999",
        "2^999999999",
        "9" * 5000,
        "1e20001",
        "123456789^20000",
        "1 2",
        "--1",
        "1e",
        "0x1.8",
        "0x1p99999",
        "1+1",
        "١٢",
    ],
)
def test_hostile_text_is_refused(text: str) -> None:
    with pytest.raises(InputValueError):
        exact_number(text)


@given(st.floats())
def test_floats_are_the_dyadics_that_they_are(x: float) -> None:
    y = exact_number(x)
    assert math.isnan(y) if math.isnan(x) else y == x
    assert exact_array(np.array([x]))[0] == y or math.isnan(x)


@given(st.fractions())
def test_fractions_and_their_text_are_the_same(q: Fraction) -> None:
    assert exact_number(q) == exact_number(str(q)) == exact_number(sp.Rational(q.numerator, q.denominator)) == q


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble", "bfloat16", "float8_e4m3fn"])
def test_every_float_dtype_is_taken_exactly(dtype: str) -> None:
    kind = getattr(ml_dtypes, dtype, None) or getattr(np, dtype)
    with np.errstate(all="ignore"):
        a = np.array([[0.1, -2.5], [1e-2, 3.0]]).astype(kind)
    got = exact_array(a)
    assert got.shape == (2, 2)
    assert all(type(x) is Fraction for x in got.ravel())
    back = np.array([x.numerator / np.longdouble(x.denominator) for x in got.ravel()]).reshape(2, 2)
    assert (back.astype(kind) == a).all()
    assert got[0, 0] != Fraction(1, 10)  # no float is a tenth


def test_a_longdouble_keeps_what_float64_cannot_hold() -> None:
    x = np.longdouble(1) + np.longdouble(2) ** -60
    if x == 1:
        pytest.skip("longdouble is float64 on this machine")
    assert exact_array(np.array([x]))[0] == 1 + Fraction(1, 2**60)


def test_special_values_are_python_floats() -> None:
    got = exact_array(["nan", "inf", "-oo", float("-inf"), np.float32("nan"), sp.oo, sp.nan])
    assert [type(x) for x in got] == [float] * 7
    assert [str(x) for x in got] == ["nan", "inf", "-inf", "-inf", "nan", "inf", "nan"]
    assert math.isnan(exact_array(np.array([np.nan], dtype=ml_dtypes.bfloat16))[0])


def test_arrays_of_every_kind() -> None:
    assert exact_array([True, 2]).tolist() == [1, 2]
    assert exact_array(np.array([[1, 2]], dtype=np.uint8)).tolist() == [[1, 2]]
    assert exact_array([[1, "1/2"], (Fraction(1, 3), Decimal("0.1"))]).tolist() == [
        [1, Fraction(1, 2)],
        [Fraction(1, 3), Fraction(1, 10)],
    ]
    assert exact_array("0.5").shape == ()
    assert exact_array([np.array([1.0, 2.0]), ["0.1", 3]]).tolist() == [[1, 2], [Fraction(1, 10), 3]]
    assert exact_array(sp.sqrt(2))[()] == sp.sqrt(2)
    assert exact_array(np.array(["0.1", "2"])).tolist() == [Fraction(1, 10), 2]
    assert exact_array([]).shape == (0,)


@pytest.mark.parametrize("bad", [[1, [2]], [[1, 2], [3]], [None], 1j, np.array([1j]), [object()], sp.Symbol("x"), sp.I, {"a": 1}])
def test_what_is_no_number_is_refused(bad: Any) -> None:
    with pytest.raises(InputValueError):
        exact_array(bad)


def _private(text: str, digits: int) -> Any:
    context = mpmath.MPContext()
    context.dps = digits
    return context.mpf(text)


def test_mpmath_numbers_of_every_context_are_the_dyadics_that_they_are() -> None:
    for x in (_private("0.1", 80), _private("-1e-30", 20), mpmath.mpf("2.5"), _private("3e50", 30), _private("0", 15)):
        sign, mantissa, exponent, _ = x._mpf_
        assert exact_number(x) == (-1) ** sign * mantissa * Fraction(2) ** exponent
        assert type(exact_number(x)) is Fraction
    assert abs(exact_number(_private("0.1", 80)) - Fraction(1, 10)) < Fraction(1, 10**80)  # and not through a float
    assert exact_array([[_private("0.5", 50), 1]]).tolist() == [[Fraction(1, 2), 1]]
    assert [str(exact_number(mpmath.mpf(x))) for x in ("nan", "inf", "-inf")] == ["nan", "inf", "-inf"]


def test_numbers_of_flint_are_taken_where_they_are_one_number() -> None:
    assert exact_number(flint.fmpq(1, 3)) == Fraction(1, 3) and exact_number(flint.fmpz(-7)) == -7
    assert exact_number(flint.arb(3) / 4) == Fraction(3, 4) and exact_number(flint.arb(0)) == 0
    assert exact_number((flint.arb(1) / 3).mid()) != Fraction(1, 3)
    assert exact_number(flint.arb.neg_inf()) == -math.inf
    for ball in (flint.arb(1) / 3, flint.arb(1, 1), flint.arb.nan()):  # each offers a midpoint as `_mpf_`
        with pytest.raises(InputValueError, match="ball with a radius"):
            exact_number(ball)


class _Ratio:
    """What gmpy2's mpz and mpq offer."""

    numerator, denominator = 1, 3


def test_numbers_of_gmpy2() -> None:
    assert exact_number(_Ratio()) == Fraction(1, 3)
    gmpy2 = pytest.importorskip("gmpy2")
    assert exact_number(gmpy2.mpz(7)) == 7 and exact_number(gmpy2.mpq(1, 3)) == Fraction(1, 3)
    assert exact_number(gmpy2.mpfr("0.1")) == Fraction(0.1) and exact_number(gmpy2.mpfr("-inf")) == -math.inf


@pytest.mark.parametrize("bad", [mpmath.mpc(1, 2), mpmath.pi, mpmath.ldexp(1, 10**9), mpmath.ldexp(1, -(10**9)), flint.acb(1, 1)])
def test_what_no_fraction_can_hold_is_refused(bad: Any) -> None:
    with pytest.raises(InputValueError):
        exact_number(bad)


@pytest.mark.parametrize("bad", [flint.arb(2) ** (10**9), flint.arb(-(10**9)).exp().mid()])
def test_balls_beyond_every_exponent_are_refused(bad: Any) -> None:
    with pytest.raises(InputValueError, match="too large or too small"):
        exact_number(bad)
