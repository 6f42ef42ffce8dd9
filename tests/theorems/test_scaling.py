"""The size of the scores: moments against every outcome of small distributions, bounds and limits against plain numbers."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import mpmath
import pytest
import sympy as sp

from symattn.program import size
from symattn.program import tensor as T
from symattn.readings import exact
from symattn.theorems.catalogue import THEOREMS
from symattn.theorems.claim import PROVED, REFUTED
from symattn.theorems.limits import Limit
from symattn.theorems.proving import prove_theorem
from symattn.theorems.subject import Subject

ROWS = ("score-variance", "saturation", "temperature-limits")
j = sp.Symbol("j", integer=True)


def claim(name, text):
    (found,) = [c for c in THEOREMS[name].claims(Subject(THEOREMS[name].definition())) if c.text == text]
    return found


@pytest.mark.parametrize("name", ROWS)
def test_it_is_proved_for_all_sizes(name):
    found = prove_theorem(THEOREMS[name])
    assert (found.verdict, found.scope, found.side) == (PROVED, "all sizes", "")


@pytest.mark.parametrize("name", ROWS)
def test_every_claim_has_a_false_version_that_is_refuted(name):
    for c in THEOREMS[name].claims(Subject(THEOREMS[name].definition())):
        wrong = c.planted() if hasattr(c, "planted") else replace(c, right=2 * c.right)
        decision = wrong.decide()
        assert decision.verdict == REFUTED, (c, decision)
        assert decision.counterexample.left != decision.counterexample.right


# ---------------------------------------------------------------- the variance
GENERAL = "Var(q.k) = d (sigma^4 + 2 sigma^2 mu^2)"


def variance_by_outcomes(d, mu, sigma):
    """Each entry is mu + sigma or mu - sigma with probability 1/2: every outcome of q and k counts the same."""
    values = [mu + sigma, mu - sigma]
    dots = [sum(a * b for a, b in zip(o[:d], o[d:], strict=True)) for o in itertools.product(values, repeat=2 * d)]
    mean = Fraction(sum(dots), len(dots))
    return Fraction(sum(x * x for x in dots), len(dots)) - mean**2


@pytest.mark.parametrize("d, mu, sigma", [(1, 0, 1), (3, 0, 1), (2, 2, 1), (3, -1, 2), (1, Fraction(1, 3), Fraction(1, 2))])
def test_the_formula_is_that_of_all_outcomes(d, mu, sigma):
    expr = claim("score-variance", GENERAL).program["formula"].expr
    found = expr.xreplace({size("d"): sp.Integer(d), T("mu"): sp.Rational(mu), T("sigma"): sp.Rational(sigma)})
    assert Fraction(int(found.p), int(found.q)) == variance_by_outcomes(d, Fraction(mu), Fraction(sigma))


@pytest.mark.parametrize(
    "wrong",
    [
        size("d") * (T("sigma") ** 4 + T("sigma") ** 2 * T("mu") ** 2),
        size("d") ** 2 * T("sigma") ** 4,
        size("d") * (T("sigma") ** 2 + T("mu") ** 2) ** 2,
        size("d") * (T("sigma") ** 4 + 2 * T("sigma") ** 2 * T("mu") ** 2) - T("mu") ** 4,
    ],
    ids=str,
)
def test_other_formulas_are_refuted(wrong):
    assert claim("score-variance", GENERAL).with_right(wrong).decide().verdict == REFUTED


# ---------------------------------------------------------------- saturation
@pytest.mark.parametrize("gap", [0, Fraction(1, 2), 2, 6])
@pytest.mark.parametrize("n", [1, 2, 3, 9])
def test_the_bound_in_numbers(n, gap):
    with mpmath.workdps(30):
        s = [mpmath.mpf(0)] + [-mpmath.mpf(gap.numerator) / gap.denominator - mpmath.mpf(k) / 3 for k in range(n - 1)]
        p = [mpmath.exp(x) / sum(mpmath.exp(y) for y in s) for x in s]
        bound = (n - 1) * mpmath.exp(-mpmath.mpf(gap.numerator) / gap.denominator)
        assert 1 - p[0] <= bound
        for a in range(n):
            row = sum(abs((p[a] if a == b else 0) - p[a] * p[b]) for b in range(n))
            assert row <= 2 * (1 - p[0]) + mpmath.mpf(10) ** -28


@pytest.mark.parametrize(
    "bound",
    [size("m") * sp.exp(-2 * T("gap")), (size("m") - 1) * sp.exp(-T("gap")), sp.exp(-T("gap"))],
    ids=("twice the gap", "one key less", "one key"),
)
def test_smaller_bounds_are_refuted(bound):
    c = claim("saturation", "1 - p_max <= (n-1) exp(-gap)")
    inputs, sizes = {"gap": 2, "u": [0, 0]}, {"m": 2}
    top = exact.evaluate(c.program, inputs, sizes=sizes)["p top"]
    at = {size("m"): sp.Integer(2), T("gap"): sp.Integer(2)}
    assert exact.compare(bound.xreplace(at) - (1 - top), sp.S.Zero) == -1
    assert exact.compare((size("m") * sp.exp(-T("gap"))).xreplace(at) - (1 - top), sp.S.Zero) == 1


# ---------------------------------------------------------------- limits
def test_the_greatest_scores_share_the_weight_and_the_others_lose_theirs():
    with mpmath.workdps(30):
        s = [2, 2, 1, -3, 2]
        for beta in (10, 40):
            w = [mpmath.exp(beta * x) for x in s]
            p = [x / sum(w) for x in w]
            r = 2 * mpmath.exp(-beta)
            for x, y in zip(s, p, strict=True):
                assert mpmath.mpf(1) / 3 - r / 9 <= y <= mpmath.mpf(1) / 3 if x == 2 else y <= mpmath.exp(beta * (x - 2)) / 3


def test_limits_that_are_wrong():
    beta, gap = sp.symbols("beta gap", positive=True)
    assert Limit(sp.exp(-beta * gap), beta, sp.oo, sp.S.Zero).decide().verdict == PROVED
    assert Limit(sp.exp(beta * gap), beta, sp.oo, sp.S.Zero).decide().verdict == REFUTED
    assert Limit(sp.exp(-beta * gap), beta, sp.S.Zero, sp.S.Zero).decide().verdict == REFUTED
    other = sp.Symbol("x", real=True)
    assert Limit(sp.exp(-gap * beta), gap, sp.S.Zero, other).decide().verdict not in (PROVED, REFUTED)


def test_uniform_over_all_keys_is_no_bound_of_a_shared_weight():
    c = claim("temperature-limits", "1/k less that weight is at most r/k^2")
    slack = next(s for s in c.program if s.name.startswith("slack"))
    wrong = T("r") / size("ties") ** 2 - (1 / size("m") - T("p top"))
    program = c.program.with_statements(replace(s, expr=wrong) if s.name == slack.name else s for s in c.program)
    both = replace(claim("temperature-limits", f"the slack of {c.text} is a sum of such terms"), program=program)
    assert both.decide().verdict == REFUTED
