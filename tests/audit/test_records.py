"""Published worked examples as claims files: every number gets the status, the digits and the chain that were found by hand."""

import json
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest

from symattn.audit.claimsfile import load
from symattn.audit.page import audit

DATA = Path(__file__).parent / "data"
EXPECTED = json.loads((DATA / "expected.json").read_text(encoding="utf-8"))
"""Example -> name of a number -> status, 40 digits, and where the page has intermediates what follows from them and whether
the page prints that."""
SHARED = Path(__file__).parents[3] / "shared" / "cases" / "worked_examples.json"


@cache
def audited(name):
    return audit(load(DATA / f"{name}.toml"))


def found(name):
    """The findings of an example by the names of the expected file, in which the name of a part may be left out."""
    want = EXPECTED[name]
    return {f.name if f.name in want else f.name.partition(".")[2]: f for f in audited(name).findings}


@pytest.mark.parametrize("name", EXPECTED)
def test_every_number_is_read(name):
    assert audited(name).unread == ()
    assert found(name).keys() == EXPECTED[name].keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_statuses(name):
    assert {n: f.verdict.status for n, f in found(name).items()} == {n: row[0] for n, row in EXPECTED[name].items()}


@pytest.mark.parametrize("name", EXPECTED)
def test_forty_digits(name):
    for n, f in found(name).items():
        want = Fraction(EXPECTED[name][n][1])
        assert abs(Fraction(f.verdict.exact) - want) <= abs(want) / 10**39, n


@pytest.mark.parametrize("name", [n for n, rows in EXPECTED.items() if any(len(row) > 2 for row in rows.values())])
def test_what_follows_from_printed_numbers(name):
    for n, (_, _, *chain) in EXPECTED[name].items():
        if chain:
            chained = found(name)[n].chained
            assert abs(Fraction(chained.exact) - Fraction(chain[0])) <= abs(Fraction(chain[0])) / 10**39, n
            assert chained.correct is chain[1], n


def test_the_expected_numbers_are_those_of_the_shared_file():
    if not SHARED.exists():
        pytest.skip("the shared cases are not there")
    for record in json.loads(SHARED.read_text(encoding="utf-8"))["records"]:
        rows = EXPECTED[record["id"]]
        assert {c["name"]: [c["status"], c["exact_40_digits"]] for c in record["claims"]} == {
            n: row[:2] for n, row in rows.items()
        }


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("example-01", ""),
        ("example-02", "softmax_1dp[0,0]"),
        ("example-06", "Q[0,0]"),
        ("example-07", "softmax"),
        ("example-09", "V[0,2]"),
        ("example-18", "ex2.output[1,0]"),
        ("example-20", "XXt[0,1]"),
    ],
)
def test_first_failing_step(name, first):
    assert audited(name).first == first


def test_outputs_from_weights_with_one_decimal_are_carried_from_the_weight_that_was_cut():
    outputs = [f for f in audited("example-02").findings if f.claim == "output" and f.verdict.wrong]
    assert outputs
    assert {f.carried for f in outputs} == {"softmax_1dp[0,0]"}
    assert {f.label for f in outputs} == {"follows from printed inputs only"}


def test_the_first_article_as_a_claims_file():
    """Dot products and scaling are right; weights are not, though the printed scaled scores allow them; the context follows."""
    found = {f.name: f for f in audited("the-cat-sat").findings}
    right = [n for n in found if n.startswith(("scores", "scaled"))]
    assert all(found[n].verdict.correct for n in right)
    wrong = [n for n, f in found.items() if f.verdict.wrong]
    assert wrong == ["weights[4,0]", "weights[4,3]", "weights[4,4]", "output[4,0]", "output[4,1]", "output[4,2]"]
    assert {found[n].follows for n in wrong[:3]} == {"rounding"}
    assert {found[n].origin for n in wrong[:3]} == {("scaled[4]",)}
    assert {found[n].follows for n in wrong[3:]} == {"digits"}
    assert {found[n].carried for n in wrong[3:]} == {"weights[4,0]"}
    assert audited("the-cat-sat").first == "weights[4,0]"
    assert found["weights[4,0]"].verdict.exact.startswith("0.1906068176058221537")
    assert found["weights[4,3]"].verdict.exact.startswith("0.60480935830")
