"""The Jacobian of the softmax: its theorems, false versions of them refuted, and the same facts in fractions and floats."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

from symattn.definition import Definition
from symattn.program import tensor as T
from symattn.readings import exact
from symattn.theorems.catalogue import THEOREMS
from symattn.theorems.claim import PROVED, REFUTED
from symattn.theorems.proving import prove_theorem
from symattn.theorems.subject import Subject
from symattn.theorems.theorem import NOT_APPLICABLE
from symattn.variants import CATALOGUE
from tests.theorems.byhand import value

ROWS = ("softmax-jacobian", "jacobian-null", "jacobian-psd", "jacobian-norm")
FORMS = ({}, {"causal": "top-left", "softcap": 20}, {"sink": True, "heads": 2}, {"lse_base": 2})


def claims(name, **fields):
    return THEOREMS[name].claims(Subject(Definition(**fields)))


def changed(claim, name, expr):
    """The claim with the right side of one statement changed."""
    new = [replace(s, expr=expr(s.expr)) if s.name == name else s for s in claim.program]
    assert new != list(claim.program)
    return replace(claim, program=claim.program.with_statements(new))


def refuted(claim):
    decision = claim.decide()
    assert decision.verdict == REFUTED, decision
    return decision.counterexample


@pytest.mark.parametrize("name", ROWS)
def test_at_home_it_is_proved_for_all_sizes_and_outside_numbers_speak_against_it(name):
    theorem = THEOREMS[name]
    found = prove_theorem(theorem)
    assert (found.verdict, found.scope, found.side) == (PROVED, "all sizes", "")
    beyond = prove_theorem(theorem, Definition.of(**theorem.outside))
    assert beyond.verdict == NOT_APPLICABLE and beyond.counterexample is not None


@pytest.mark.parametrize("fields", FORMS, ids=str)
@pytest.mark.parametrize("name", ROWS)
def test_it_is_told_from_the_program_for_which_definitions_it_holds(name, fields):
    found = prove_theorem(THEOREMS[name], Definition(**fields))
    assert found.verdict == (NOT_APPLICABLE if name == "jacobian-null" and "sink" in fields else PROVED)


def test_weights_of_another_normalizer_do_not_move_with_the_row_either():
    assert prove_theorem(THEOREMS["jacobian-null"], Definition(normalizer="sparsemax")).verdict == PROVED


def test_it_is_asked_of_linear_attention_too():
    d = Definition.of(**CATALOGUE["linear-attention"].fields)
    assert prove_theorem(THEOREMS["jacobian-null"], d).verdict == NOT_APPLICABLE


P, there = T("P", *sp.symbols("i j", integer=True)), {sp.Symbol("j", integer=True): sp.Symbol("j2", integer=True)}
FALSE = {
    "plus p p^T": lambda: changed(claims("softmax-jacobian")[0], "J", lambda e: e + 2 * P * P.xreplace(there)),
    "the diagonal alone": lambda: changed(claims("softmax-jacobian")[0], "J", lambda e: e + P * P.xreplace(there)),
    "p squared": lambda: changed(claims("softmax-jacobian")[0], "J", lambda e: e + P * P.xreplace(there) - P**2),
    "not symmetric": lambda: changed(claims("softmax-jacobian")[1], "J", lambda e: e + P),
    "pairs counted twice": lambda: changed(claims("jacobian-psd")[1], "pairs", lambda e: 2 * e),
    "the sink left out": lambda: changed(claims("jacobian-psd", sink=True)[1], "with sink", lambda e: 0 * e),
    "differences for sums": lambda: changed(
        claims("jacobian-norm")[-2], "sums", lambda e: e.xreplace({e.args[-1]: sp.S.Zero}) + _differences()
    ),
    "a norm of 1/4": lambda: changed(claims("jacobian-norm")[-2], "|x|^2/2 - x^T J x", lambda e: e - T("|x|^2") / 4),
}


def _differences():
    j, k = sp.symbols("j j2", integer=True)
    return T("p", j) * T("p", k) * (T("x", j) - T("x", k)) ** 2 / 2


@pytest.mark.parametrize("name", FALSE)
def test_a_false_version_is_refuted_in_exact_numbers(name):
    claim = FALSE[name]()
    found = refuted(claim)
    at = tuple(map(int, found.what[found.what.index("[") + 1 : -1].split(", "))) if "[" in found.what else ()
    left, right = (value(claim.program, n, at, found.inputs, found.sizes) for n in (claim.left, claim.right))
    assert abs(left - float(found.left)) < 1e-9 and abs(right - float(found.right)) < 1e-9 and abs(left - right) > 1e-9


def test_a_smaller_bound_of_the_norm_fails_in_exact_numbers():
    """Two keys of weight 1/2 reach 1/2, so 4/10 of |x|^2 is exceeded; the exact reading of the same program says so."""
    claim = claims("jacobian-norm")[-2]
    inputs = {"u": [1, 1], "u0": 0, "x": [1, -1]}
    found = exact.evaluate(claim.program, inputs, sizes={"m": 2})
    assert found[claim.left] == found[claim.right] == 0
    assert found["x^T J x"] - sp.Rational(4, 10) * found["|x|^2"] > 0


def softmax_like(weights):
    total = sum(weights)
    return [Fraction(w, total) for w in weights]


@pytest.mark.parametrize("weights, x", [((1, 2, 3), (1, -2, 5)), ((4, 4), (1, -1)), ((1, 7, 2, 2), (0, 3, -1, 2)), ((5,), (2,))])
def test_both_quadratic_forms_in_fractions(weights, x):
    """The last weight is that of the sink; by plain loops."""
    *p, rest = softmax_like((*weights, 3))
    n = len(p)
    jac = [[(p[a] if a == b else 0) - p[a] * p[b] for b in range(n)] for a in range(n)]
    quad = sum(x[a] * jac[a][b] * x[b] for a in range(n) for b in range(n))
    pairs = [(a, b) for a in range(n) for b in range(a)]
    sink = rest * sum(p[a] * x[a] ** 2 for a in range(n))
    assert quad == sum(p[a] * p[b] * (x[a] - x[b]) ** 2 for a, b in pairs) + sink
    left = Fraction(sum(v * v for v in x), 2) - quad
    halves = sum((1 - 2 * p[a]) ** 2 * x[a] ** 2 for a in range(n)) / 2
    assert left == sum(p[a] * p[b] * (x[a] + x[b]) ** 2 for a, b in pairs) + halves + sink


def test_eigenvalues_and_differences_in_floats():
    draw = np.random.default_rng(0)
    for n in (1, 2, 5, 40):
        z = draw.normal(size=n) * 3
        p = np.exp(z - z.max()) / np.exp(z - z.max()).sum()
        jac = np.diag(p) - np.outer(p, p)
        eigen = np.linalg.eigvalsh(jac)
        assert eigen.min() > -1e-15 and eigen.max() <= 0.5 + 1e-15 and np.allclose(jac @ np.ones(n), 0)
        for k in range(n):
            h = 1e-6 * (np.arange(n) == k)
            up, down = (np.exp(z + s * h) / np.exp(z + s * h).sum() for s in (1, -1))
            assert np.allclose((up - down) / 2e-6, jac[:, k], atol=1e-9)
    half = np.diag([0.5, 0.5]) - 0.25
    assert np.linalg.eigvalsh(half).max() == pytest.approx(0.5)  # the bound is reached
