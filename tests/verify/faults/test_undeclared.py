"""Kernels that declare nothing: one that is right in another arithmetic is told what to declare, a wrong one is not."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from symattn.definition import Definition
from symattn.verify.diagnosis.finding import Finding
from symattn.verify.diagnosis.undeclared import _vacuous, with_preset
from symattn.verify.faults.fault import Prediction
from symattn.verify.inputs import fields_for, fitted
from symattn.verify.judge import run_case, verify
from symattn.verify.kernels.registry import resolve
from symattn.verify.reference import Reference
from tests.verify.faults.running import BY_NAME, seen
from tests.verify.planted import kernel

BF16 = ml_dtypes.bfloat16


def eager(*, factor=1.0, dropped=0):
    """Scores, weights and output stored in bfloat16 one after the other; nothing declared."""

    def stored(x):
        return x.astype(BF16).astype(np.float32)

    def run(query, key, value, enable_gqa=False):
        q, k, v = (x.astype(np.float32) for x in (query, key, value))
        k, v = (np.repeat(x, q.shape[1] // k.shape[1], axis=1) for x in (k, v))
        if dropped:
            k, v = k[:, :, :-dropped], v[:, :, :-dropped]
        s = stored(stored(q @ k.swapaxes(2, 3)) * np.float32(factor * q.shape[3] ** -0.5))
        e = np.exp(s - s.max(axis=3, keepdims=True))
        return stored(stored(e / e.sum(axis=3, keepdims=True)) @ v).astype(query.dtype)

    return run


def diagnosed(run, kinds=("normal", "large", "capped"), findings=()):
    """The verdicts of some cases, and the findings with a preset among them."""
    cases, found = [], []
    d = Definition()
    for kind in kinds:
        ref = Reference(d, fields_for(d, fitted(d, BY_NAME[kind].shape), "bfloat16", 0, BY_NAME[kind]))
        cases.append(run_case(resolve(run), ref, kind, backward=False, seen=found))
    return {c.verdict for c in cases}, with_preset(found, findings)


def test_a_correct_eager_kernel_is_told_what_to_declare():
    verdicts, findings = diagnosed(eager())
    assert "fail" in verdicts
    assert [f.title for f in findings] == ["within every bound of eager-bf16: declare it (--arithmetic eager-bf16)"]
    assert "judged as flash-bf16" in str(findings[0])


def test_beside_it_nothing_reads_as_if_it_were_no_answer():
    pattern = Finding((), "O is wrong", "pattern", "", "", ("no fault explains it", "  in case normal:"))
    _, findings = diagnosed(eager(), findings=(pattern,))
    assert [f.kind for f in findings] == ["arithmetic", "pattern"]
    assert findings[1].text == ("if it is flash-bf16 all the same: no fault explains it", "  in case normal:")


@pytest.mark.parametrize("kind, titles", [("convention", 1), ("mathematics", 1), ("arithmetic", 2)])
def test_a_fault_that_explains_it_comes_first(kind, titles):
    fault = Finding(("F05",), "scores are not scaled", kind, "", "", ())
    verdicts, findings = diagnosed(eager(), ("capped",), (fault,))
    assert verdicts == {"fail"} and findings[0] == fault and len(findings) == titles


@pytest.mark.slow
def test_in_a_run_it_fails_by_what_was_assumed_and_passes_by_what_it_is():
    report = verify(eager(), Definition(), dtype="bfloat16", only="large")
    assert report.verdict == "fail"
    assert any(f.title.startswith("within every bound of eager-bf16") for f in report.diagnosis)
    assert verify(eager(), Definition(), dtype="bfloat16", only="large", arithmetic="eager-bf16").verdict == "pass"


@pytest.mark.parametrize("fault", ["no scale", "padded key"])
def test_a_kernel_that_computes_something_else_is_in_no_preset(fault):
    verdicts, findings = diagnosed(kernel(fault), ("normal",))
    assert verdicts == {"fail"} and not findings


def test_a_dropped_key_is_in_no_preset():
    verdicts, findings = diagnosed(eager(dropped=1))
    assert "fail" in verdicts and not findings


def test_a_bound_of_the_size_of_the_values_excuses_nothing():
    (o,) = seen(kernel("no scale"), {}, ("normal",), "bfloat16")
    assert "out" in o.failing
    for share, vacuous in ((1e-3, False), (4.0, True)):
        size = np.abs(o.situation.fields["value"].astype(np.float64)).max()
        b = {"out": Prediction(o.base["out"].value, np.full_like(o.base["out"].value, share * size))}
        assert _vacuous(o, "out", b) is vacuous
