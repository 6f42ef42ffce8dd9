"""The pytest plugin in a test run of its own: warnings as errors, the JUnit report, what fails and what does not."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

pytest_plugins = ["pytester"]

TESTS = """
import numpy as np

def leaking(query, key, value, is_causal=False, enable_gqa=False):
    key, value = (x.repeat(query.shape[1] // x.shape[1], 1) for x in (key, value))
    s = query @ key.swapaxes(-1, -2) / np.float32(np.sqrt(query.shape[3]))
    if is_causal:
        s = np.where(np.tri(*s.shape[2:], dtype=bool), s, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True) @ value

def test_right(verify_attention):
    verify_attention("numpy:flash", causal="top-left", shape="1,1,1,2,3,2", only="shape")

def test_suspect(verify_attention):
    verify_attention(leaking, causal="top-left")

def test_suspect_strict(verify_attention):
    verify_attention(leaking, causal="top-left", strict=True)

def test_wrong(verify_attention):
    verify_attention(lambda query, key, value: value, shape="1,1,1,2,2,2", only="shape")

def test_arrays(assert_attention):
    assert_attention(np.ones((1, 1)), np.ones((1, 1)), np.zeros((2, 1)), np.ones((2, 1)))
"""


@pytest.mark.parametrize("family", ["xunit1", "xunit2"])
def test_a_run_of_its_own(pytester, family):
    pytester.makepyfile(TESTS)
    result = pytester.runpytest_subprocess(
        "-W", "error", "--junitxml=report.xml", "-o", f"junit_family={family}", "-p", "no:cacheprovider"
    )
    result.assert_outcomes(passed=3, failed=2)
    result.stdout.fnmatch_lines(["*test_right: pass, at most * of the bound*", "*test_suspect: suspect, at most*"])
    cases = {c.get("name"): c for c in ET.parse(pytester.path / "report.xml").iter("testcase")}
    found = {name: {p.get("name"): p.get("value") for p in c.iter("property")} for name, c in cases.items()}
    assert found["test_right"]["symattn_verdict"] == "pass" and 0 <= float(found["test_right"]["symattn_max_share_of_bound"]) <= 1
    assert found["test_wrong"]["symattn_verdict"] == "fail" and found["test_suspect"]["symattn_verdict"] == "suspect"
    assert {name for name, c in cases.items() if c.find("failure") is not None} == {"test_suspect_strict", "test_wrong"}
