"""What a run could not have shown: against kernels with the fault planted, on inputs that show it and inputs that do not."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from symattn.definition import Definition
from symattn.verify import judge
from symattn.verify.faults.catalogue import CATALOGUE
from symattn.verify.guard import guard
from symattn.verify.judge import run_case, verify
from symattn.verify.kernels.registry import resolve
from symattn.verify.reference import Reference
from tests.verify.planted import kernel

BOTTOM = Definition(causal="bottom-right")


@pytest.fixture
def undiagnosed(monkeypatch):
    """Runs that fail are not diagnosed: what is asked of them here is what they could have shown."""
    monkeypatch.setattr(judge, "diagnose", lambda *args, **options: ())
    monkeypatch.setattr(judge, "with_preset", lambda seen, found: found)


def hidden(report):
    return {h.fault for h in report.guard.hidden}


@pytest.mark.parametrize(
    "fields, fault, planted, shape",
    [
        ({"causal": "bottom-right"}, "F13", "top-left", "2,4,2,6,6,6"),
        ({}, "F01", "heads tiled", "2,4,4,5,7,6"),
        ({"causal": "bottom-right", "window": (40, 0)}, "F18", "window + 1", "2,4,2,5,7,6"),
        ({"sink": True}, "F23", "sink dropped", None),
    ],
)
def test_what_is_hidden_is_what_a_planted_fault_passes_on(undiagnosed, fields, fault, planted, shape):
    d = Definition(**fields)
    some = {"only": "shape", "shape": shape} if shape else {"only": "peak"}
    blind = verify(kernel(planted), d, **some)
    assert blind.verdict == "pass", blind
    assert fault in hidden(blind) or fault not in blind.guard.known
    whole = verify(kernel(planted), d, only="normal,tall,long")
    assert (whole.verdict == "fail") and fault not in hidden(whole)


def test_a_hidden_fault_is_listed_and_fails_when_strict():
    square = verify(kernel(), BOTTOM, only="shape", shape="2,4,2,6,6,6")
    assert square.exit_code() == 0 and square.exit_code(strict=True) == 1
    assert "F13" in hidden(square) and "not: " in square.guard.line and "--strict lists" in square.to_text()
    assert "could not show F13 causal mask aligned top-left" in " ".join(square.to_text(strict=True).split())
    entry = next(h for h in square.to_dict()["guard"]["hidden"] if h["fault"] == "F13")
    assert entry["ratio"] == "0" and "F13" in square.to_dict()["guard"]["known"]


@pytest.mark.parametrize(
    "fields",
    [
        {"causal": "bottom-right"},
        *(pytest.param(f, marks=pytest.mark.slow) for f in ({}, {"attn_mask": "boolean"}, {"softcap": 50, "sink": True})),
    ],
)
def test_the_default_pack_hides_nothing(fields):
    report = verify("numpy:flash", Definition(**fields), dtype="bfloat16")
    assert report.guard.hidden == () and len(report.guard.known) > 40 and report.guard.holds
    assert f"tells apart {len(report.guard.known)} of {len(report.guard.known)} known faults" in report.to_text()


def test_a_bound_that_allows_anything_is_told():
    declared = {"preset": "flash-fp32", "name": "hopeless", "exp_error": 3.0}
    report = verify("numpy:flash", Definition(), arithmetic=declared, only="normal")
    assert report.guard.vacuous == ("normal",) and "vacuous on normal" in " ".join(report.to_text().split())
    assert report.exit_code(strict=True) == 1
    assert verify("numpy:flash", Definition(), only="normal").guard.vacuous == ()


def test_gradients_are_compared_where_they_are_judged_and_not_otherwise():
    forward = verify("numpy:flash", Definition(), only="normal")
    both = verify("numpy:flash", Definition(), only="normal", backward=True)
    assert not any(f.startswith("B") for f in forward.guard.known)
    assert {"B01", "B04", "B07"} <= set(both.guard.known) - hidden(both)


def test_faults_of_an_lse_that_is_not_given_are_none_of_the_kernels():
    def silent(query, key, value, **options):
        return kernel()(query, key, value, **options)[0]

    report, full = (verify(f, Definition(), only="normal") for f in (silent, kernel()))
    assert "F40" not in report.guard.known and "F40" in full.guard.known and "F40" not in hidden(full)
    assert any("no log-sum-exp" in w for w in report.warnings)


def test_own_inputs_have_the_same_guard():
    r = np.random.default_rng(0)
    q, k, v = (r.normal(size=(1, 2, 4, 6)).astype(np.float32) for _ in range(3))
    report = verify(kernel("top-left"), BOTTOM, inputs={"query": q, "key": k, "value": v})
    assert report.verdict == "pass" and "F13" in hidden(report)


def test_it_is_announced_when_it_is_worked_out_and_may_be_left_out():
    said = []
    report = verify("numpy:flash", Definition(), only="shape", shape="1,1,1,2,2,2", progress=said.append)
    assert not any("guard" in line for line in said)
    assert report.guard is not None and said[-1].startswith("guard")
    assert verify("numpy:flash", Definition(), only="shape", shape="1,1,1,2,2,2", guard=False).guard is None


def test_a_fault_that_shows_in_one_form_is_hidden_in_another():
    r = np.random.default_rng(0)
    fields = {n: r.normal(size=(1, 1, m, 4)) / 8 + (n == "value") for n, m in (("query", 2), ("key", 1024), ("value", 1024))}
    found = []
    ref = Reference(Definition(), {n: x.astype(ml_dtypes.bfloat16) for n, x in fields.items()})
    run_case(resolve("numpy:flash"), ref, "own", backward=False, seen=found)
    one = guard(found, [CATALOGUE["F49"]])
    assert one.known == ("F49",) and one.hidden == ()
    forms = {h.variant for h in one.partly}
    assert "float16, tile 512, once a tile" in forms and "bfloat16 after every key" not in forms
    assert "F49 (" in one.partial[0] and one.to_dict()["partly_hidden"][0]["variant"] in forms
    assert one.holds and guard(found, [CATALOGUE["F05"]]).partly == ()
