"""Kernels that declare nothing: one that is right in another arithmetic is no failure, one that computes something else is."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from symattn.definition import Definition
from symattn.verify.diagnosis.finding import Finding
from symattn.verify.diagnosis.undeclared import _vacuous, excused
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


def verdicts(run, kinds=("normal", "large", "capped"), findings=()):
    """What counts of the tensors of each case, and the findings."""
    cases, found = [], []
    d = Definition()
    for kind in kinds:
        ref = Reference(d, fields_for(d, fitted(d, BY_NAME[kind].shape), "bfloat16", 0, BY_NAME[kind]))
        cases.append(run_case(resolve(run), ref, kind, backward=False, seen=found))
    cases, found, findings = excused(cases, found, findings)
    return [c.verdict for c in cases], [f for o in found for f in o.failing], findings


def test_a_correct_eager_kernel_is_suspect_and_told_what_to_declare():
    counted, failing, findings = verdicts(eager())
    assert set(counted) <= {"suspect", "pass"} and "suspect" in counted and not failing
    assert [f.title for f in findings] == ["within every bound of eager-bf16: declare it (--arithmetic eager-bf16)"]
    assert "judged as flash-bf16" in str(findings[0])


def test_a_fault_that_explains_it_stays_a_failure_and_all_that_is_said():
    fault = Finding(("F05",), "scores are not scaled", "convention", "", "", ())
    counted, failing, findings = verdicts(eager(), ("capped",), (fault,))
    assert counted == ["fail"] and failing and findings == (fault,)


@pytest.mark.slow
def test_in_a_run_the_report_is_suspect_and_fails_when_strict():
    report = verify(eager(), Definition(), dtype="bfloat16", only="capped")
    assert report.verdict == "suspect" and report.exit_code() == 0 and report.exit_code(strict=True) == 1
    assert report.diagnosis[0].title.startswith("within every bound of eager-bf16")
    declared = verify(eager(), Definition(), dtype="bfloat16", only="capped", arithmetic="flash-bf16")
    assert declared.verdict == "fail"


@pytest.mark.parametrize("wrong", [{"factor": 1.01}, {"factor": 0.99}, {"dropped": 1}])
def test_an_eager_kernel_that_computes_something_else_fails(wrong):
    counted, failing, _ = verdicts(eager(**wrong))
    assert "fail" in counted and failing


@pytest.mark.parametrize("fault", ["no scale", "padded key"])
def test_a_tiled_kernel_that_computes_something_else_fails(fault):
    counted, failing, findings = verdicts(kernel(fault), ("normal",))
    assert counted == ["fail"] and failing and not findings


def test_a_bound_of_the_size_of_the_values_excuses_nothing():
    (o,) = seen(kernel("no scale"), {}, ("normal",), "bfloat16")
    assert "out" in o.failing
    for share, vacuous in ((1e-3, False), (4.0, True)):
        size = np.abs(o.situation.fields["value"].astype(np.float64)).max()
        b = {"out": Prediction(o.base["out"].value, np.full_like(o.base["out"].value, share * size))}
        assert _vacuous(o, "out", b) is vacuous
