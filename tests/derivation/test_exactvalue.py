from __future__ import annotations

from fractions import Fraction

import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from symattn.derivation import exactvalue as ev
from symattn.derivation.exactvalue import Exact

SMALL = st.fractions(min_value=-20, max_value=20, max_denominator=9)


def as_sympy(x: Exact) -> sp.Expr:
    """The value rebuilt in SymPy: the witness."""
    total = sp.Integer(0)
    for c, m in x.terms:
        term = sp.Rational(c.numerator, c.denominator)
        for g, p in m:
            if isinstance(g, ev.Root):
                base = sp.sqrt(g.radicand)
            elif isinstance(g, ev.Group):
                base = as_sympy(g.body)
            elif isinstance(g, ev.Call):
                base = getattr(sp, g.name)(*map(as_sympy, g.args))
            else:
                raise AssertionError(g)
            term *= base**p
        total += term
    return total


def values() -> st.SearchStrategy[Exact]:
    numbers = SMALL.map(ev.rational)
    roots = st.integers(2, 12).map(lambda n: ev.sqrt(ev.rational(n)))
    return st.recursive(
        numbers | roots,
        lambda inner: st.tuples(inner, inner, st.sampled_from([ev.add, ev.multiply])).map(lambda t: t[2](t[0], t[1])),
        max_leaves=5,
    )


@given(values(), values())
def test_arithmetic_is_that_of_sympy(a: Exact, b: Exact) -> None:
    assert sp.expand(as_sympy(ev.add(a, b)) - as_sympy(a) - as_sympy(b)) == 0
    assert sp.expand(as_sympy(ev.multiply(a, b)) - as_sympy(a) * as_sympy(b)) == 0
    if b.terms:
        assert sp.radsimp(sp.expand(as_sympy(ev.divide(a, b)) * as_sympy(b) - as_sympy(a))).equals(0)


@given(values())
def test_a_value_minus_itself_is_zero(a: Exact) -> None:
    assert ev.add(a, ev.negate(a)) == ev.ZERO


def test_a_root_stays_in_the_denominator() -> None:
    ten = ev.divide(ev.rational(10), ev.sqrt(ev.rational(3)))
    assert str(ten) == "10*sqrt(3)^-1"
    assert str(ev.add(ten, ev.divide(ev.rational(2), ev.sqrt(ev.rational(3))))) == "12*sqrt(3)^-1"


def test_equal_numbers_with_roots_above_and_below_cancel() -> None:
    below, above = ev.divide(ev.ONE, ev.sqrt(ev.rational(3))), ev.divide(ev.sqrt(ev.rational(3)), ev.rational(3))
    assert ev.add(below, ev.negate(above)) == ev.ZERO
    assert ev.add(above, ev.negate(below)) == ev.ZERO
    assert ev.add(below, above) != ev.ZERO


def test_products_of_sums_are_not_expanded() -> None:
    e = ev.call("exp", ev.ONE)
    assert str(ev.multiply(e, ev.add(e, ev.ONE))) == "1*exp(1)*(1*exp(1) + 1)"


@pytest.mark.parametrize("n", [1, 4, 12, 50, 2 * 997**2, 10007**2])
def test_square_roots(n: int) -> None:
    assert as_sympy(ev.sqrt(ev.rational(n))) == sp.sqrt(n)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (ev.call("log", ev.ZERO), ev.MINUS_INFINITY),
        (ev.call("exp", ev.MINUS_INFINITY), ev.ZERO),
        (ev.divide(ev.ZERO, ev.ZERO), ev.NAN),
        (ev.add(ev.INFINITY, ev.MINUS_INFINITY), ev.NAN),
        (ev.multiply(ev.INFINITY, ev.ZERO), ev.NAN),
        (ev.multiply(ev.INFINITY, ev.rational(-2)), ev.MINUS_INFINITY),
        (ev.divide(ev.ONE, ev.INFINITY), ev.ZERO),
        (ev.power(ev.rational(4), ev.rational(Fraction(-1, 2))), ev.rational(Fraction(1, 2))),
        (ev.call("floor", ev.rational(Fraction(-1, 2))), ev.rational(-1)),
    ],
)
def test_special_values(made: Exact, expected: Exact) -> None:
    assert made == expected
