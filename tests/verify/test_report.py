"""Verdicts of parts and of the whole, exit codes, and the text of them."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from symattn import arithmetic
from symattn.verify.compare import Comparison, Element
from symattn.verify.report import CaseReport, Report, TensorReport, worst_of

ELEMENT = Element((0, 1), Fraction(1, 3), Fraction(1, 4), Fraction(1, 8), Fraction(1, 12), Fraction(2), Fraction(2, 3), "within")


def tensor(verdict, known=None):
    failing, undecided = {"pass": (0, 0), "fail": (2, 0), "inconclusive": (0, 1)}[verdict]
    share = Fraction(3) if failing else Fraction(1, 3)
    return TensorReport("out", Comparison(failing, undecided, 0, 7, Fraction(1, 12), Fraction(2), share, ELEMENT), known)


def report(*tensors, error=None, known=None, kernel="k"):
    a = arithmetic.get("flash-bf16").to_dict()
    case = CaseReport("normal", "k", "bfloat16", {"B": 1}, {"causal": "none", "scale": "1"}, a, tensors, error, known)
    return Report(
        kernel, case.definition, a, (case,), "symattn verify k", diagnosis=("d",), warnings=("w " * 60,), skipped=("s",)
    )


@pytest.mark.parametrize(
    "parts, verdict, codes",
    [
        ((tensor("pass"),), "pass", (0, 0)),
        ((tensor("pass"), tensor("fail")), "fail", (1, 1)),
        ((tensor("inconclusive"), tensor("pass")), "inconclusive", (3, 3)),
        ((tensor("inconclusive"), tensor("fail")), "fail", (1, 1)),
        ((tensor("fail", "because"),), "pass", (0, 1)),
        ((tensor("fail", "because"), tensor("fail")), "fail", (1, 1)),
        ((tensor("pass", "because"),), "pass", (0, 0)),
    ],
)
@pytest.mark.parametrize("kernel", ["k", None])
def test_verdicts_and_exit_codes(parts, verdict, codes, kernel):
    r = report(*parts, kernel=kernel)
    assert (r.verdict, r.exit_code(), r.exit_code(strict=True), bool(r)) == (verdict, *codes, verdict == "pass")
    text = r.to_text()
    assert f"verdict: {verdict}" in text and "symattn verify k" in text and "diagnosis: d" in text and "not run: s" in text
    assert max(map(len, text.splitlines())) <= 80
    assert ("because" in text) == any(t.counted != t.verdict for t in parts)
    assert json.loads(r.to_json())["verdict"] == verdict


def test_a_kernel_that_gave_nothing():
    assert report(error="it raised").verdict == "fail"
    known = report(error="it raised", known="as on every CPU")
    assert (known.verdict, known.exit_code(), known.exit_code(strict=True)) == ("pass", 0, 1)
    assert "it raised" in known.to_text()
    assert known.to_dict()["cases"][0]["error"] == "it raised"


def test_the_greatest_share_leaves_known_deviations_out():
    assert report(tensor("pass"), tensor("fail", "because")).max_share_of_bound == "0.33333"
    assert report(tensor("pass"), tensor("fail")).max_share_of_bound == "3"


def test_the_worst_verdict():
    assert (
        worst_of([]) == "pass"
        and worst_of(["pass", "suspect"]) == "suspect"
        and worst_of(["suspect", "inconclusive"]) == "inconclusive"
    )
