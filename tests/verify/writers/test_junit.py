"""JUnit XML: what CI systems read of it, which outcome is which element, and hostile text."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from symattn.verify.properties.finding import PropertyReport
from symattn.verify.writers import document
from tests.verify.writers.reports import HOSTILE, case, each, hostile, report, tensor

ROWS = (("fail", True), ("suspect", True), ("not applicable", True), ("pass", True))
ATTRIBUTES = {
    "testsuites": {"name", "tests", "failures", "errors", "time"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped"},
    "testcase": {"classname", "name"},
    "failure": {"type", "message"},
    "error": {"type", "message"},
    "skipped": {"type", "message"},
    "property": {"name", "value"},
    "properties": set(),
    "system-out": set(),
}
CHILDREN = {
    "testsuites": {"testsuite"},
    "testsuite": {"properties", "testcase"},
    "testcase": {"failure", "error", "skipped", "system-out"},
    "properties": {"property"},
}
"""What the schemas of Jenkins, of pytest and of GitLab's documentation have in common."""


def parsed(r, **options):
    text = document(r, "junit", **options)
    assert text.startswith('<?xml version="1.0" encoding="utf-8"?>\n')
    return ET.fromstring(text.encode("utf-8"))


@pytest.mark.parametrize("r", [each(), hostile(), report(error="no"), report(case(tensor()), kernel=None)])
def test_only_what_all_readers_know(r):
    root = parsed(r)
    for element in root.iter():
        assert set(element.attrib) == ATTRIBUTES[element.tag], element.tag
        assert {c.tag for c in element} <= CHILDREN.get(element.tag, set())
        if element.tag == "testcase":
            assert len([c for c in element if c.tag != "system-out"]) <= 1
    for suite in root:
        cases = suite.findall("testcase")
        found = [sum(c.find(tag) is not None for c in cases) for tag in ("failure", "error", "skipped")]
        assert [int(suite.get(a)) for a in ("tests", "failures", "errors", "skipped")] == [len(cases), *found]
    assert int(root.get("tests")) == sum(int(s.get("tests")) for s in root)


def outcomes(root):
    return {c.get("name"): next((x.tag for x in c if x.tag != "system-out"), "passed") for c in root.iter("testcase")}


def test_outcomes():
    assert outcomes(parsed(each())) == {
        "one bfloat16 O": "passed",
        "one bfloat16 LSE": "failure",
        "two bfloat16 O": "skipped",
        "two bfloat16 LSE": "error",
        "three bfloat16 O": "passed",
        "four bfloat16": "error",
        "torch": "skipped",
    }
    strict = outcomes(parsed(each(), strict=True))
    assert (strict["two bfloat16 O"], strict["three bfloat16 O"]) == ("failure", "failure")


def test_the_worst_element_the_replay_line_and_the_diagnosis_are_there():
    root = parsed(each())
    failure = next(root.iter("failure"))
    assert failure.get("message").startswith("LSE[0,1,2,3]: kernel 0.33333333333333333333, exact 0.25, bound 0.125")
    assert "2 of 7 elements out of bounds" in failure.text and "B=1 N=3" in failure.text
    properties = {p.get("name"): p.get("value") for p in root[0].iter("property")}
    assert properties["replay"] == "symattn verify k" and properties["warning"] == "little power"
    assert properties["diagnosis"] == "F1 a fault\nwhere it shows" and "flash-bf16" in properties["arithmetic"]


def test_a_suite_per_kernel():
    root = parsed(report(case(tensor(), kernel="a"), case(tensor(), kernel="b"), case(tensor(), kernel="a"), kernel=None))
    assert [(s.get("name"), s.get("tests")) for s in root] == [("a", "2"), ("b", "1")]


def test_hostile_text_comes_back_as_it_was_but_for_what_xml_cannot_hold():
    root = parsed(hostile())
    shown = HOSTILE.replace("\x00", "\\x00").replace("\x1b", "\\x1b").replace("\ud800", "\\ud800")
    assert root[0].get("name") == shown
    assert any(e.get("message") == f"known: {shown}" for e in root.iter("skipped"))


def test_properties_are_tests():
    found = [PropertyReport(v.replace(" ", "-"), "t", v, "why", counts=c) for v, c in ROWS]
    r = report(case(tensor()), properties=tuple(found))
    rows = {k: v for k, v in outcomes(parsed(r)).items() if k.startswith("property")}
    assert list(rows.values()) == ["failure", "passed", "skipped", "passed"]
