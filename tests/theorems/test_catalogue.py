"""Every row of the catalogue: proved at home, planted faults refuted, not applicable outside with numbers that differ."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

from symattn.definition import Definition
from symattn.readings import exact
from symattn.theorems.catalogue import FAMILIES, THEOREMS
from symattn.theorems.claim import PROVED, REFUTED, TESTED, Equal
from symattn.theorems.proving import prove_theorem
from symattn.theorems.scalar import Scalar
from symattn.theorems.subject import Subject
from symattn.theorems.theorem import NOT_APPLICABLE
from symattn.theorems.valued import Valued
from tests.theorems.byhand import value

LIGHT = {
    "group-sum": {"heads": 4, "kv_heads": 2},
    "masked-keys": {"causal": "top-left"},
    "row-constant": {"causal": "top-left", "alibi": True},
    "hull-with-zero": {"sink": True},
    "sink-gate": {"sink": True},
    "softcap-derivative": {"softcap": 2},
    "row-dot": {"dropout": True},
}
MINE = [
    t.name for t in THEOREMS.values() if t.claims.__module__.rpartition(".")[2] in ("softmax", "gradients", "symmetry", "merging")
]


def light(theorem):
    """A small definition to which a theorem applies; what it is proved of at length has heads and masks."""
    return Definition.of(**LIGHT.get(theorem.name, {}))


def planted(claim):
    """False versions of a claim: another sign, another factor; of a side that is 0, one."""
    if isinstance(claim, Equal):
        if claim.program[claim.right].expr == 0:
            return [claim.with_right(sp.S.One)]
        return [claim.planted(), claim.planted(sp.Rational(1, 2))]
    if isinstance(claim, Scalar):
        return [Scalar(claim.left, -claim.right if claim.right != 0 else sp.S.One), Scalar(claim.left, 2 * claim.right + 1)]
    if isinstance(claim, Valued):
        return [replace(claim, value=sp.S.Zero), replace(claim, value=sp.nan)]
    return [claim.planted()]


def check_proved(found):
    assert found.verdict in (PROVED, TESTED), found
    assert found.scope == found.theorem.scope
    assert found.method and found.seconds > 0


def check_refuted(wrong):
    decision = wrong.decide()
    assert decision.verdict == REFUTED, (wrong, decision)
    found = decision.counterexample
    assert exact.compare(found.left, found.right) in (-1, 1, None)
    if isinstance(wrong, Equal):
        check_by_hand(wrong, found)


@pytest.mark.parametrize("name", MINE)
def test_it_is_proved_and_planted_faults_are_refuted_in_exact_numbers(name):
    theorem = THEOREMS[name]
    check_proved(prove_theorem(theorem, light(theorem)))
    claims = theorem.claims(Subject(light(theorem)))
    assert claims
    for claim in claims:
        check_refuted(planted(claim)[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", MINE)
def test_it_is_proved_for_every_mask_and_number_of_heads_and_more_faults_are_refuted(name):
    theorem = THEOREMS[name]
    check_proved(prove_theorem(theorem))
    for claim in theorem.claims(Subject(theorem.definition())):
        for wrong in planted(claim):
            check_refuted(wrong)


def check_by_hand(claim, found):
    """Both sides again, by an evaluator that shares no code with the exact reading."""
    at = tuple(map(int, found.what[found.what.index("[") + 1 : -1].split(", "))) if "[" in found.what else ()
    left, right = (value(claim.program, name, at, found.inputs, found.sizes) for name in (claim.left, claim.right))
    assert abs(left - complex(found.left)) < 1e-9 and abs(right - complex(found.right)) < 1e-9
    assert abs(left - right) > 1e-9


@pytest.mark.parametrize("name", [n for n in MINE if THEOREMS[n].outside is not None])
def test_outside_its_condition_it_is_not_applicable_and_numbers_show_it(name):
    theorem = THEOREMS[name]
    found = prove_theorem(theorem, Definition.of(**theorem.outside))
    assert found.verdict == NOT_APPLICABLE, found
    assert found.reason and found.counterexample is not None
    assert exact.compare(found.counterexample.left, found.counterexample.right) in (-1, 1, None)
    claims = {c.text: c for c in theorem.claims(Subject(found.definition))}
    check_by_hand(claims[found.counterexample.claim], found.counterexample)


def test_the_check_by_hand_can_fail():
    theorem = THEOREMS["rows-sum-to-one"]
    (claim,) = theorem.claims(Subject(Definition()))
    found = claim.planted().decide().counterexample
    with pytest.raises(AssertionError):
        check_by_hand(claim, found)


def test_names_titles_and_sources():
    for family, members in FAMILIES.items():
        assert family and members
        for row in members:
            assert len(row.name) <= 23 and len(row.title) <= 54 and row.source and row.text and row.latex
            assert np.all([ord(c) < 128 for c in row.text + row.title])
            assert row.general or row.needs or row.outside is None
