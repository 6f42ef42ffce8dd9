"""A kernel that raises on some inputs: each of them fails by name, the others are judged, and sizes that explain it are said."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from symattn.definition import Definition
from symattn.errors import KernelError
from symattn.verify.judge import verify
from symattn.verify.kernels.ours import Flash
from symattn.verify.raising import requirement_of
from symattn.verify.suite import verify_all
from symattn.verify.writers import document
from tests.verify.planted import kernel

FEW = {"only": "normal,tall,integers,large", "guard": False}


def raising(when, error=ValueError, backward=None):
    """A correct kernel that raises where ``when`` says so of query and key; its backward where ``backward`` does."""

    def run(query, key, value, **options):
        if when(query, key):
            raise error("no such size\nhere")
        return kernel()(query, key, value, **options)

    def gradients(query, key, value, *args, out, lse, grad_lse, **options):
        if backward is not None and backward(query, key):
            raise error("no such gradient")
        return kernel().backward(query, key, value, *args, out=out, lse=lse, grad_lse=grad_lse, **options)

    run.backward = gradients
    return run


def tall(query, key):
    return query.shape[2] > key.shape[2]


def test_the_input_fails_by_name_and_the_others_are_judged():
    report = verify(raising(tall), Definition(), **FEW)
    by_name = {c.case: c for c in report.cases}
    assert {n: c.verdict for n, c in by_name.items()} == {
        "normal": "pass", "large": "pass", "tall": "fail", "integers": "fail"
    }  # fmt: skip
    bad = by_name["tall"]
    assert "raised ValueError: no such size" in bad.error and bad.tensors == () and bad.shape["N"] == 7 and bad.dtype == "float32"
    assert by_name["normal"].tensors and by_name["normal"].error is None
    assert report.verdict == "fail" and report.exit_code() == 1


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda out: out[:, :, :1], r"out with shape \(2, 6, 1, 10\); it should be"),
        (lambda out: out.astype(np.float64), "out with dtype float64; it should be float32"),
        (lambda out: None, "returned no output: got NoneType"),
    ],
)
def test_a_wrong_result_on_one_input_is_that_input_s(make, text):
    def run(query, key, value, enable_gqa=False):
        out, _ = kernel()(query, key, value, enable_gqa=enable_gqa)
        return make(out) if tall(query, key) and query.shape[3] == 10 else out

    report = verify(run, Definition(), only="normal,tall", guard=False)
    assert [(c.case, c.verdict) for c in report.cases] == [("normal", "pass"), ("tall", "fail")]
    assert report.cases[1].error and re.search(text, report.cases[1].error)


def test_every_form_names_the_input_its_sizes_its_dtype_and_what_was_raised():
    report = verify(raising(tall), Definition(), **FEW)
    sizes = "B=2 H=6 HKV=2 N=7 M=5 D=10 DV=10"
    text = " ".join(report.to_text().split())
    assert f"tall float32 {sizes}" in text and "raised ValueError: no such size here" in text
    doc = json.loads(report.to_json())
    (case,) = (c for c in doc["cases"] if c["case"] == "tall")
    assert (case["verdict"], case["dtype"], case["shape"]["N"]) == ("fail", "float32", 7) and "ValueError" in case["error"]
    junit = ET.fromstring(document(report, "junit"))
    (element,) = (t for t in junit.iter("testcase") if t.get("name") == "tall float32")
    outcome = element.find("error")
    assert "ValueError: no such size" in outcome.get("message") and sizes in outcome.text
    for form in ("github", "html"):
        page = " ".join(document(report, form).replace("%0A", " ").split())
        assert sizes in page and "raised ValueError: no such size here" in page, form


def test_the_sizes_that_explain_it_are_said_as_a_requirement():
    report = verify(raising(tall), Definition(), **FEW)
    (hint,) = (w for w in report.warnings if "--require" in w)
    assert "2 of 4 inputs" in hint and "--require 'n <= m'" in hint
    again = verify(raising(tall), Definition(), require="n <= m", **FEW)
    assert again.verdict == "pass" and not any("--require" in w for w in again.warnings)


def test_what_sizes_do_not_explain_has_no_such_hint():
    report = verify(raising(lambda q, k: np.abs(q).max() > 8), Definition(), only="normal,large", guard=False)
    assert {c.case: c.verdict for c in report.cases} == {"normal": "pass", "large": "fail"}
    assert not any("--require" in w for w in report.warnings)


SIZES = {"b": 2, "h": 4, "hkv": 2, "n": 5, "m": 7, "d": 6, "dv": 6}


@pytest.mark.parametrize(
    "raised, fine, given, said",
    [
        ([{"d": 6}, {"d": 10}], [{"d": 8}, {"d": 64}], None, "d % 8 == 0"),
        ([{"d": 6}, {"d": 8}], [{"d": 16}], None, "d % 16 == 0"),
        ([{"d": 6}, {"d": 10}], [], None, "d % 8 == 0"),
        ([{}], [{"hkv": 4}], None, "h == hkv"),
        ([{"n": 7, "m": 5}], [{}], None, "n <= m"),
        ([{}, {"n": 7, "m": 5}], [{"n": 7}], None, "n == m"),
        ([{"n": 7, "d": 6}, {"n": 5, "d": 8}], [{"n": 7, "d": 8}], None, "d % 8 == 0, n == m"),
        ([{"n": 600, "m": 600}], [{"n": 512, "m": 512}], None, "n <= 512"),
        ([{"n": 40, "m": 40}], [{"n": 64, "m": 64}], None, "m % 16 == 0"),
        ([{"d": 10, "dv": 10}], [{}], "n <= m", "n <= m, d <= 6"),
        ([{"n": 7, "m": 5, "d": 6}], [{"n": 7, "m": 5, "d": 8}], "n >= m", "n >= m, d % 8 == 0"),
        ([{}], [{}], None, None),
        ([{"h": 5, "hkv": 5}], [{"hkv": 4}], None, None),
    ],
)
def test_requirements(raised, fine, given, said):
    found = requirement_of([SIZES | r for r in raised], [SIZES | f for f in fine], given)
    assert found == said


def test_a_kernel_that_raises_everywhere_is_told_so_once():
    calls = []

    def run(query, key, value, enable_gqa=False):
        calls.append(query.shape)
        raise ZeroDivisionError("at the start")

    with pytest.raises(KernelError) as caught:
        verify(run, Definition(), **FEW)
    message = str(caught.value)
    assert len(calls) == 4 and message.count("ZeroDivisionError") == 1 and "at the start" in message
    assert "on each of 4 inputs, normal float32 B=2 H=4 HKV=2 N=5 M=7 D=6 DV=6 the first: " in message


def test_what_a_single_input_raises_names_it():
    with pytest.raises(KernelError, match=r"(?s)on normal float32 B=2 .*: \S+ raised ValueError: no such size"):
        verify(raising(lambda q, k: True), Definition(), only="normal", guard=False)


def test_different_errors_on_all_inputs_are_told_apart():
    def run(query, key, value, enable_gqa=False):
        if tall(query, key):
            raise ValueError("tall")
        raise IndexError("wide")

    with pytest.raises(KernelError) as caught:
        verify(run, Definition(), **FEW)
    message = str(caught.value)
    assert message.count("on each of 2 inputs") == 2 and message.count("normal") == message.count("tall float32") == 1
    assert "raised IndexError: wide; on each of 2 inputs, tall float32" in message and "raised ValueError: tall" in message


@pytest.mark.parametrize("error", [SystemExit, MemoryError, RecursionError, KernelError])
def test_whatever_is_raised_is_that_input_s(error):
    report = verify(raising(tall, error), Definition(), only="normal,tall", guard=False)
    assert [c.verdict for c in report.cases] == ["pass", "fail"]


def test_an_interrupt_ends_the_run():
    with pytest.raises(KeyboardInterrupt):
        verify(raising(tall, KeyboardInterrupt), Definition(), only="normal,tall", guard=False)


def test_a_backward_that_raises_leaves_the_outputs_judged():
    never = lambda q, k: False
    report = verify(raising(never, backward=tall), Definition(), backward=True, only="normal,tall", guard=False)
    normal, bad = report.cases
    assert normal.verdict == "pass" and [t.name for t in normal.tensors][2:] == ["grad_query", "grad_key", "grad_value"]
    assert bad.verdict == "fail" and "no such gradient" in bad.error
    assert [(t.name, t.verdict) for t in bad.tensors] == [("out", "pass"), ("lse", "pass")]
    table = report.to_text().partition("tall  float32")[2]
    assert "no such gradient" in table and "  LSE" in table


def test_a_property_that_makes_it_raise_is_the_property_s():
    report = verify(raising(lambda q, k: q.shape[0] == 1), Definition(causal="top-left"), only="normal,integers", guard=False)
    assert {c.verdict for c in report.cases} == {"pass"}
    assert any("raised ValueError" in p.reason for p in report.properties if p.verdict == "fail") and report.exit_code() == 1


def test_an_input_on_which_a_built_in_kernel_is_known_to_raise():
    class Picky(Flash):
        """Raises on tall inputs, as its ledger says."""

        def forward(self, call):
            if tall(call.query, call.key):
                raise ValueError("no")
            return super().forward(call)

    from symattn.verify.kernels.base import Deviation

    subject = Picky()
    subject.known = (Deviation((), lambda call: tall(call.query, call.key), "it takes none"),)
    report = verify(subject, Definition(), only="normal,tall", guard=False)
    assert report.verdict == "pass" and report.exit_code(strict=True) == 1 and report.cases[1].known == "it takes none"
    assert verify(subject, Definition(), only="tall", guard=False).verdict == "pass"
    assert "no" in verify_all(Definition(), only="normal,tall", kernels=[subject], backward=False).cases[1].error
