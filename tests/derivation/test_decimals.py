from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symattn.derivation.decimals import decimal, enclosed_decimal, exponent_of, fixed


@given(st.fractions(max_denominator=10**6), st.integers(1, 30))
def test_fixed_is_what_the_decimal_module_says(x: Fraction, places: int) -> None:
    with localcontext() as context:
        context.prec = 200
        exact = Decimal(x.numerator) / Decimal(x.denominator)
        assert Decimal(fixed(x, places)) == exact.quantize(Decimal(1).scaleb(-places), ROUND_HALF_EVEN)


@given(st.fractions(max_denominator=10**9).filter(bool))
def test_the_exponent_is_that_of_the_first_digit(x: Fraction) -> None:
    e = exponent_of(x)
    assert Fraction(10) ** e <= abs(x) < Fraction(10) ** (e + 1)


@pytest.mark.parametrize(
    ("x", "shown"),
    [
        (Fraction(0), "0"),
        (Fraction(12), "12"),
        (Fraction(-1, 2), "-0.5"),
        (Fraction(1, 3), "0.3333"),
        (Fraction(1, 300), "0.0033"),
        (Fraction(1, 3000), "3.333e-4"),
        (Fraction(99999, 10**5), "1.0000"),
        (Fraction(10**9, 3), "3.333e8"),
        (Fraction(99999, 10**9), "1.000e-4"),
    ],
)
def test_what_is_shown(x: Fraction, shown: str) -> None:
    assert decimal(x, 4) == shown


def test_an_enclosure_that_does_not_decide_gives_nothing() -> None:
    tie, tiny = Fraction(5, 10**5), Fraction(1, 10**40)
    assert enclosed_decimal(1 + tie, tiny, 4) is None
    assert enclosed_decimal(1 + tie + 2 * tiny, tiny, 4) == "1.0001"
    assert enclosed_decimal(Fraction(0), tiny, 4) is None


def test_an_enclosure_around_a_short_decimal_is_shown_with_all_places() -> None:
    assert enclosed_decimal(Fraction(1, 2), Fraction(1, 10**40), 4) == "0.5000"
