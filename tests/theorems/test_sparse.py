"""Sparsemax and entmax: their weights sum to one; wrong thresholds are refuted; the same in plain numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

from symattn import Attention
from symattn.definition import Definition
from symattn.program import tensor as T
from symattn.theorems.catalogue import THEOREMS
from symattn.theorems.claim import PROVED, REFUTED
from symattn.theorems.proving import prove_theorem
from symattn.theorems.subject import Subject
from symattn.theorems.theorem import NOT_APPLICABLE

ROW = THEOREMS["sparse-sum"]
i = sp.Symbol("i", integer=True)


def test_at_home_and_for_both_normalizers():
    assert (prove_theorem(ROW).verdict, prove_theorem(ROW).scope) == (PROVED, "all sizes")
    for normalizer in ("sparsemax", "entmax15"):
        found = prove_theorem(ROW, Definition(normalizer=normalizer, causal="top-left"))
        assert (found.verdict, found.scope) == (PROVED, "all sizes")
    assert prove_theorem(ROW, Definition()).verdict == NOT_APPLICABLE


def changed(s, name, change):
    """The subject with one statement of its program changed."""
    assert change(s.plain[name].expr) != s.plain[name].expr
    s.__dict__["plain"] = s.plain.with_statements([replace(t, expr=change(t.expr)) if t.name == name else t for t in s.plain])
    return s


FALSE = {
    "sparsemax: tau of the whole total": ("sparsemax", "P", lambda e: e - 1),
    "entmax: half the rest": ("entmax15", "rest", lambda e: e / 2),
    "entmax: deviations from half the mean": ("entmax15", "dev", lambda e: e + T("tot", i) / T("kappa", i) / 2),
    "entmax: twice the weights": ("entmax15", "P", lambda e: 2 * e),
}


@pytest.mark.parametrize("name", FALSE)
def test_a_false_version_is_refuted(name):
    normalizer, tensor, change = FALSE[name]
    claims = ROW.claims(changed(Subject(Definition(normalizer=normalizer)), tensor, change))
    verdicts = [c.decide().verdict for c in claims]
    assert REFUTED in verdicts


def test_a_sum_that_leaves_out_a_term_is_refuted():
    total, deviations, *_ = ROW.claims(Subject(Definition(normalizer="entmax15")))
    assert total.planted().decide().verdict == REFUTED
    assert deviations.with_right(sp.S.One).decide().verdict == REFUTED


@pytest.mark.parametrize("normalizer, power", [("sparsemax", 1), ("entmax15", 2)])
def test_by_bisection(normalizer, power):
    """The threshold is found by bisection from its own equation: the weights sum to one."""
    draw = np.random.default_rng(3)
    q, k, v = draw.normal(size=(2, 3)), draw.normal(size=(6, 3)), np.eye(6)
    z = q @ k.T / np.sqrt(3) / power
    out = []
    for row in z:
        low, high = row.max() - 1, row.max()
        for _ in range(200):
            mid = (low + high) / 2
            low, high = (mid, high) if (np.maximum(row - mid, 0) ** power).sum() > 1 else (low, mid)
        out.append(np.maximum(row - low, 0) ** power)
    assert np.allclose(np.sum(out, 1), 1)
    truth = Attention(normalizer=normalizer).truth(q, k, v)["out"]
    assert np.allclose(out, np.asarray(truth.mid, dtype=float))
