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


IMPORT_FREE = """
import sys

def test_that_uses_nothing():
    loaded = {m.partition(".")[0] for m in sys.modules}
    assert "_symattn_pytestplugin" in sys.modules and not loaded & {"symattn", "sympy", "numpy", "mpmath", "flint", "torch"}
"""


def test_a_run_that_uses_nothing_of_it_imports_nothing(pytester):
    pytester.makepyfile(IMPORT_FREE)
    result = pytester.runpytest_subprocess(
        "-W", "error", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:jaxtyping"
    )
    result.assert_outcomes(passed=1)
    assert "symattn ====" not in result.stdout.str()


MARKED = """
import numpy as np
import pytest

def top_left(query, key, value, is_causal=False, enable_gqa=False, causal_alignment=None):
    key, value = (x.repeat(query.shape[1] // x.shape[1], 1) for x in (key, value))
    s = query @ key.swapaxes(-1, -2) / np.float32(np.sqrt(query.shape[3]))
    if is_causal:
        s = np.where(np.tri(*s.shape[2:], dtype=bool), s, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True) @ value

SMALL = {"shape": "1,2,1,3,5,2", "only": "shape,decode"}

@pytest.mark.attention(kernel=top_left, causal="bottom-right", shape="1,2,1,3,5,2", only="shape")
def test_wrong(attention_kernel):
    attention_kernel.verify()

@pytest.mark.attention(causal="bottom-right", dtypes=["float32", "bfloat16"], **SMALL)
class TestNamed:
    def test_right(self, attention_kernel):
        report = attention_kernel.verify()
        assert [c.case for c in report.cases] == [attention_kernel.case]
        assert report.cases[0].dtype == attention_kernel.dtype

    @pytest.mark.attention(dtypes=["float64"])
    def test_nearest_marker_wins(self, attention_kernel):
        assert attention_kernel.definition == {"causal": "bottom-right"} and attention_kernel.kernel == "numpy:flash"
"""


@pytest.mark.parametrize("workers", [(), pytest.param(("-n", "2"), marks=pytest.mark.slow)], ids=["one process", "xdist"])
def test_a_test_per_input_of_the_pack(pytester, workers):
    pytester.makepyfile(test_marked=MARKED)
    result = pytester.runpytest_subprocess(
        "-W", "error", "-p", "no:cacheprovider", "--attention-kernel", "numpy:flash", "-v", *workers
    )
    result.assert_outcomes(passed=6, failed=1)
    result.stdout.fnmatch_lines_random(
        [
            "FAILED test_marked.py::test_wrong[[]float32-shape[]] - Failed: fail: F13 causal *",
            "test_marked.py::TestNamed::test_right[[]bfloat16-decode[]]: pass, at most * of the bound",
            "diagnosis: F13 causal mask aligned top-left*",
        ]
    )


def test_kernels_of_the_configuration(pytester):
    pytester.makepyfile(test_marked=MARKED)
    pytester.makeini("[pytest]\nattention_kernel =\n    numpy:flash\n    numpy:naive\n")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--collect-only", "-q", "-k", "test_right")
    assert "TestNamed::test_right[numpy:naive-bfloat16-shape]" in result.stdout.str()
    result.stdout.fnmatch_lines(["8/13 tests collected*"])


@pytest.mark.parametrize(
    "mark, said",
    [
        ("", "attention_kernel needs @pytest.mark.attention"),
        ("@pytest.mark.attention(causal='top-left')", "no kernel: name one in the marker, by --attention-kernel"),
        ("@pytest.mark.attention('numpy:flash')", "takes keywords only"),
        ("@pytest.mark.attention(kernel='numpy:flash', cusal='top-left')", "Did you mean 'causal'"),
        ("@pytest.mark.attention(kernel='numpy:flash', backwrd=True)", "no keyword 'backwrd'. Did you mean 'backward'"),
        ("@pytest.mark.attention(kernel='numpy:flash', only='nrmal')", "Did you mean 'normal'"),
        ("@pytest.mark.attention(kernel='numpy:flash', dtypes=['bf61'])", "bf16"),
    ],
)
def test_what_a_marker_cannot_say(pytester, mark, said):
    pytester.makepyfile(f"import pytest\n\n{mark}\ndef test_it(attention_kernel):\n    attention_kernel.verify()\n")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--strict-markers")
    assert said in " ".join(result.stdout.str().split()) and result.ret != 0
    assert result.parseoutcomes().get("errors") == 1 and "passed" not in result.parseoutcomes()
    assert "Traceback" not in result.stdout.str() and "_symattn_pytestplugin.py" not in result.stdout.str()
    lines = result.stdout.str().partition("short test summary")[0].splitlines()  # CI shows whole messages again below
    named = [line for line in lines if "test_it: " in line or "::test_it:" in line]
    assert len(named) == 1 and "Error" not in named[0]


def test_a_failing_assertion_shows_the_test_and_says_what_in_the_summary(pytester):
    pytester.makepyfile(
        test_it=TESTS.partition("def leaking")[0]
        + """
from symattn import assert_attention

def test_arrays():
    x = np.ones((2, 1))
    assert_attention(x + 1, x, x, x)
"""
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    text = result.stdout.str()
    assert "symattn/testing.py" not in text and "assert_attention(x + 1, x, x, x)" in text
    summary = next(line for line in text.splitlines() if line.startswith("FAILED"))
    assert "AssertionError: Not the" in summary
