"""What a printed number claims, and the verdicts in their order, at the ends of every interval."""

from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from symattn.audit.exactness import approximate, decimal, order
from symattn.audit.printed import Printed, binary32_ulp, label, verdict
from symattn.errors import InputValueError, LimitError, SymattnError, UndecidedError

F = Fraction


@pytest.mark.parametrize(
    ("text", "value", "kind", "unit", "digits"),
    [
        ("10", F(10), "integer", F(1), 2),
        ("-3", F(-3), "integer", F(1), 1),
        ("−3", F(-3), "integer", F(1), 1),
        ("1,024", F(1024), "integer", F(1), 4),
        ("0.1908", F(477, 2500), "decimal", F(1, 10**4), 4),
        (".5", F(1, 2), "decimal", F(1, 10), 1),
        ("5.0", F(5), "decimal", F(1, 10), 2),
        ("0.050", F(1, 20), "decimal", F(1, 1000), 2),
        ("6.0337e-06", F(60337, 10**10), "decimal", F(1, 10**10), 5),
        ("1.2e3", F(1200), "decimal", F(100), 2),
        ("6.03 × 10⁻⁶", F(603, 10**8), "decimal", F(1, 10**8), 3),
        (r"6.03 \times 10^{-6}", F(603, 10**8), "decimal", F(1, 10**8), 3),
        ("2.", F(2), "array", F(1, 10**8), 1),
        ("≈ 27", F(27), "approximate", F(1), 2),
        (r"\approx 0.5", F(1, 2), "approximate", F(1, 10), 1),
        ("~0.19", F(19, 100), "approximate", F(1, 100), 2),
        ("1/3", F(1, 3), "fraction", F(1), 0),
        (r"\frac{1}{3}", F(1, 3), "fraction", F(1), 0),
        ("0.333…", F(333, 1000), "continued", F(1, 1000), 3),
        ("42%", F(42, 100), "decimal", F(1, 100), 2),
        ("-inf", F(-1), "infinity", F(1), 0),
        ("−∞", F(-1), "infinity", F(1), 0),
    ],
)
def test_what_a_number_says(text, value, kind, unit, digits):
    p = Printed(text)
    assert (p.value, p.kind, p.unit, p.digits) == (value, kind, unit, digits)


@pytest.mark.parametrize(
    "text", ["", "abc", "1.2.3", "--1", "1/0", "1e9999", "1,02", "__import__('os')", "nan", "1 2", "9" * 500]
)
def test_what_is_no_number(text):
    with pytest.raises(InputValueError):
        Printed(text)


CASES = [
    ("10", F(10), "exact"),
    ("10", F(10) + F(1, 10**30), "wrong"),
    ("≈ 10", F(101, 10), "rounded"),
    ("0.5", F(1, 2), "exact"),
    ("0.5", F(55, 100), "rounded"),  # half a unit, ends included
    ("0.5", F(45, 100), "rounded"),
    ("0.5", F(45, 100) - F(1, 10**20), "last_digit"),
    ("0.5", F(55, 100) + F(1, 10**20), "truncated"),
    ("0.5", F(6, 10), "last_digit"),  # one whole unit is no cut
    ("-0.5", -F(59, 100), "truncated"),
    ("-0.5", -F(41, 100), "last_digit"),
    ("0.0", F(6, 100), "truncated"),
    ("0.0", -F(6, 100), "truncated"),
    ("-0.1", F(1, 100), "last_digit"),
    ("0.5", F(65, 100), "last_digit"),
    ("0.5", F(35, 100), "last_digit"),
    ("0.5", F(65, 100) + F(1, 10**20), "wrong"),
    ("2.", F(2) + F(5, 10**9), "rounded"),
    ("2.", F(2) + F(5, 10**9) + F(1, 10**20), "truncated"),
    ("2.", F(2) - F(16, 10**9), "wrong"),
    ("0.333…", F(1, 3), "rounded"),
    ("0.333…", F(3339, 10000), "rounded"),
    ("0.333...", F(335, 1000), "wrong"),
    ("1/3", F(1, 3), "exact"),
    ("1/3", F(33, 100), "wrong"),
    ("0.46831051", F(4683105308334, 10**13), "float32_noise"),
    ("0.468310", F(4683125, 10**7), "wrong"),  # six digits carry no noise
    ("0.4683105108", F(4683105308334, 10**13), "wrong"),  # ten digits are more than binary32 has
    ("0.5", sp.exp(-sp.log(2)), "exact"),
    ("0.731", 1 / (1 + sp.exp(-1)), "rounded"),
    ("0.7071", sp.sqrt(2) / 2, "rounded"),
]


@pytest.mark.parametrize(("text", "value", "status"), CASES)
def test_the_order_of_verdicts(text, value, status):
    assert verdict(text, value).status == status


@pytest.mark.parametrize(("units", "status"), [(8, "float32_noise"), (9, "wrong"), (-8, "float32_noise"), (-9, "wrong")])
def test_binary32_noise_ends_at_eight_units(units, status):
    p = Printed("0.468310500")
    ulp = F(float(np.spacing(np.float32(0.4683105))))
    assert binary32_ulp(p.value - units * ulp) == ulp
    assert verdict(p, p.value - units * ulp).status == status


@given(st.fractions(min_value=-1000, max_value=1000, max_denominator=10**6), st.integers(0, 6))
def test_a_rounded_number_is_rounded_and_a_cut_one_at_worst_truncated(x, places):
    unit = F(1, 10**places)
    rounded, cut = round(x / unit), int(x / unit)
    if places:
        assert verdict(written(rounded, places), x).correct
        assert verdict(written(cut, places), x).status in ("exact", "rounded", "truncated", "float32_noise")


def written(n, places):
    """An integer number of units as a decimal."""
    whole = f"{abs(n):0{places + 1}d}"
    return f"{'-' if n < 0 else ''}{whole[:-places]}.{whole[-places:]}"


def test_an_interval_of_inputs_decides_last():
    assert verdict("0.20", F(1, 10), spread=(F(0), F(1, 5))).status == "within_input_rounding"
    assert verdict("0.20", F(1, 10), spread=(F(0), F(19, 100))).status == "wrong"
    assert verdict("0.20", F(19, 100), spread=(F(0), F(1))).status == "last_digit"
    assert verdict("3", F(29, 10), spread=(F(28, 10), F(3))).status == "within_input_rounding"


def test_infinities():
    assert verdict("-inf", -sp.oo).status == "exact"
    assert verdict("-inf", 3).status == "wrong"
    assert verdict("-3", -sp.oo).status == "wrong"


def test_equality_that_no_digits_show():
    a, b = sp.exp(sp.sqrt(2)), sp.exp(sp.Rational(1, 3))
    total = a / (a + b) + b / (a + b)
    assert order(total, 1) == 0
    assert order(sp.sqrt(3 + 2 * sp.sqrt(2)) - sp.sqrt(2), 1) == 0
    assert verdict("1.0", total).status == "exact"
    assert verdict("1", total).status == "exact"


def test_rows_that_sum_to_one_under_many_denominators():
    """Multiplied out, twelve denominators of eight exponentials each would have 8^12 terms."""
    rows = [[sp.sqrt(3) * sp.Rational(i * j - 5, 7 + i) for j in range(8)] for i in range(12)]
    exponentials = [[sp.exp(x) for x in row] for row in rows]
    total = sp.Add(*[e / sp.Add(*row) for row in exponentials for e in row])
    assert order(total, 12) == 0
    assert order(total - exponentials[0][0] / sp.Add(*exponentials[0]), 12) == -1


def test_what_neither_digits_nor_algebra_settle():
    hyperbolic = sp.tanh(sp.Rational(1, 3)) * (1 + sp.exp(-sp.Rational(2, 3))) - (1 - sp.exp(-sp.Rational(2, 3)))
    assert order(hyperbolic, 0) == 0
    hidden = sp.log(sp.sqrt(2) + sp.sqrt(3)) * 2 - sp.log(5 + 2 * sp.sqrt(6))
    with pytest.raises(UndecidedError):
        order(hidden, 0)
    v = verdict("0", hidden)
    assert (v.status, v.exact) == ("undecided", "undecided")


@pytest.mark.parametrize("digits", [1, 5, 40, 200])
def test_digits_are_rounded_once(digits):
    import mpmath

    with mpmath.workdps(digits + 30):
        for e, x in ((sp.exp(-20), mpmath.exp(-20)), (sp.sqrt(2) * 10**6, mpmath.sqrt(2) * 10**6)):
            want = F(mpmath.nstr(x, digits, strip_zeros=False, min_fixed=-10000, max_fixed=10000))
            assert F(decimal(e, digits)) == want
    assert abs(approximate(sp.sqrt(2)) ** 2 - 2) < F(1, 2**200)


def test_limits_and_floats():
    with pytest.raises(LimitError):
        decimal(sp.pi, 10**6)
    with pytest.raises(SymattnError):
        verdict("0.5", 0.5)


def test_labels():
    assert label(verdict("7.0", F(66, 10))) == "wrong"
    assert label(verdict("7.0", F(66, 10)), verdict("7.0", F(7))) == "follows from printed inputs only"
    assert label(verdict("7.0", F(7)), verdict("7.0", F(9))) == "exact"
