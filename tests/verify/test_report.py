"""Verdicts of parts and of the whole, exit codes, and the text of them."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from symattn import arithmetic
from symattn.verify.compare import Comparison, Element
from symattn.verify.diagnosis.finding import Finding
from symattn.verify.report import CaseReport, Report, TensorReport, worst_of

ELEMENT = Element((0, 1), Fraction(1, 3), Fraction(1, 4), Fraction(1, 8), Fraction(1, 12), Fraction(2), Fraction(2, 3), "within")

FINDING = Finding(("F05",), "d", "convention", "all", "everywhere", ("d",))


def tensor(verdict, known=None, name="out"):
    suspect = "perhaps" if verdict == "suspect" else None
    failing, undecided = {"pass": (0, 0), "fail": (2, 0), "suspect": (2, 0), "inconclusive": (0, 1)}[verdict]
    share = Fraction(3) if failing else Fraction(1, 3)
    comparison = Comparison(failing, undecided, 0, 7, Fraction(1, 12), Fraction(2), share, ELEMENT)
    return TensorReport(name, comparison, known, suspect=suspect)


def report(*tensors, error=None, known=None, kernel="k"):
    a = arithmetic.get("flash-bf16").to_dict()
    case = CaseReport("normal", "k", "bfloat16", {"B": 1}, {"causal": "none", "scale": "1"}, a, tensors, error, known)
    return Report(
        kernel, case.definition, a, (case,), "symattn verify k", diagnosis=(FINDING,), warnings=("w " * 60,), skipped=("s",)
    )


@pytest.mark.parametrize(
    "parts, verdict, codes",
    [
        ((tensor("pass"),), "pass", (0, 0)),
        ((tensor("pass"), tensor("fail")), "fail", (1, 1)),
        ((tensor("inconclusive"), tensor("pass")), "inconclusive", (3, 3)),
        ((tensor("inconclusive"), tensor("fail")), "fail", (1, 1)),
        ((tensor("suspect"), tensor("pass")), "suspect", (0, 1)),
        ((tensor("suspect"), tensor("inconclusive")), "inconclusive", (3, 3)),
        ((tensor("suspect"), tensor("fail")), "fail", (1, 1)),
        ((tensor("fail", "because"),), "pass", (0, 1)),
        ((tensor("fail", "because"), tensor("fail")), "fail", (1, 1)),
        ((tensor("pass", "because"),), "pass", (0, 0)),
    ],
)
@pytest.mark.parametrize("kernel", ["k", None])
def test_verdicts_and_exit_codes(parts, verdict, codes, kernel):
    r = report(*parts, kernel=kernel)
    assert (r.verdict, r.exit_code(), r.exit_code(strict=True), bool(r)) == (verdict, *codes, codes[0] == 0)
    text = r.to_text()
    assert f"verdict: {verdict}" in text and "symattn verify k" in text and "diagnosis: d" in text and "not run: s" in text
    assert max(map(len, text.splitlines())) <= 80
    assert ("because" in text) == any(t.counted != t.verdict for t in parts)
    assert ("perhaps" in text) == any(t.verdict == "suspect" for t in parts)
    assert json.loads(r.to_json())["verdict"] == verdict


def test_the_table_of_many_kernels_groups_them_and_names_the_tensors():
    names = ["out", "lse", "grad_query", "grad_key", "grad_value", "grad_sinks"]
    one, two = (report(*(tensor("pass", name=n) for n in names), kernel=None).cases[0] for _ in range(2))
    many = (
        one,
        replace(two, kernel="other"),
        replace(one, case="second", tensors=(*one.tensors, tensor("pass", name="grad_bias"))),
    )
    text = Report(None, {}, {}, many, "symattn verify").to_text()
    lines = [line for line in text.splitlines() if line.startswith(("k ", "other", "  "))]
    assert [line.split()[0] for line in lines] == ["k", "normal", "second", "other", "normal"]
    assert lines[1].endswith("O LSE dQ dK dV dSink") and lines[2].endswith("O LSE dQ dK dV +2")
    assert max(map(len, text.splitlines())) <= 80


def test_an_input_that_passes_has_a_line_and_any_other_one_a_table():
    first = replace(report(tensor("pass"), tensor("pass", name="lse")).cases[0], shape={"B": 2, "N": 5})
    named = {
        "good": (),
        "bad": (tensor("fail"),),
        "open": (tensor("inconclusive"),),
        "odd": (tensor("suspect"),),
        "old": (tensor("fail", "because"),),
    }
    cases = tuple(replace(first, case=n, tensors=t or first.tensors) for n, t in named.items())
    lines = replace(report(tensor("pass")), cases=cases).to_text().splitlines()
    assert "judged      O LSE, bfloat16" in lines
    assert lines[lines.index("input  verdict  of bound  worst  sizes") + 1] == "good   pass        0.333  O      B=2 N=5"
    assert [x.split()[0] for x in lines if x.endswith("bfloat16  B=2 N=5")] == ["bad", "open", "odd", "old"]
    whole = replace(report(tensor("pass")), cases=cases).to_text(verbose=True).splitlines()
    assert "good  bfloat16  B=2 N=5" in whole and not [x for x in whole if x.startswith("judged")]
    assert "good  bfloat16  B=2 N=5" in replace(report(tensor("pass")), cases=cases[:1]).to_text()


def test_passing_inputs_of_several_dtypes_say_theirs():
    one = report(tensor("pass")).cases[0]
    two = replace(one, case="normal in 32 bits", dtype="float32")
    lines = replace(report(tensor("pass")), cases=(one, two)).to_text().splitlines()
    assert "normal             bfloat16  pass        0.333  O      B=1" in lines
    assert "normal in 32 bits  float32   pass        0.333  O      B=1" in lines


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
