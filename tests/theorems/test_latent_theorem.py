"""The row of latent attention: proved with its gradients; a wrong absorption is refuted in exact numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from symattn.definition import Definition
from symattn.readings import exact
from symattn.theorems.catalogue import THEOREMS
from symattn.theorems.claim import PROVED, REFUTED
from symattn.theorems.proving import prove_theorem
from symattn.theorems.subject import Subject
from symattn.theorems.theorem import NOT_APPLICABLE

ROW = THEOREMS["latent-absorption"]


def test_it_is_proved_and_says_nothing_of_other_forms():
    found = prove_theorem(ROW)
    assert (found.verdict, found.scope) == (PROVED, "all sizes")
    assert prove_theorem(ROW, Definition(form="mla-absorbed", heads=2)).verdict == PROVED
    assert prove_theorem(ROW, Definition()).verdict == NOT_APPLICABLE


def changed(claim, name, change):
    statements = [replace(s, expr=change(s.expr)) if s.name == name else s for s in claim.other]
    assert statements != list(claim.other)
    return replace(claim, other=claim.other.with_statements(statements))


@pytest.mark.parametrize("k", [0, 1], ids=("outputs", "gradients"))
@pytest.mark.parametrize("wrong", ["half", "the sign of the queries", "the scale"])
def test_a_wrong_absorption_is_refuted(k, wrong):
    claim = ROW.claims(Subject(Definition(form="mla", heads=2)))[k]
    if wrong == "half":
        false = claim.planted()
    elif wrong == "the scale":
        false = changed(claim, "scale", lambda e: 2 * e)
    else:
        false = changed(claim, "Qa", lambda e: -e)
    found = false.decide()
    assert found.verdict == REFUTED, found
    assert exact.compare(found.counterexample.left, found.counterexample.right) in (-1, 1)
