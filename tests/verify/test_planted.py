"""Every planted fault is caught in every dtype, and the correct kernel passes on every input that a fault was caught on."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from symattn.definition import Definition
from symattn.verify import judge
from symattn.verify.inputs import KINDS, fields_for
from symattn.verify.judge import run_case, verify
from symattn.verify.kernels.registry import resolve
from symattn.verify.reference import Reference
from tests.verify.planted import BACKWARD, FORWARD, kernel

DTYPES = ("float64", "float32", "float16", "bfloat16")
BY_NAME = {k.name: k for k in KINDS}
BLIND = {
    "accumulator of 16 bits": ("bfloat16",),  # float16 holds more than the output does; on a long row it shows: below
    "maximum with 0": ("float64",),  # exp(-200) is a number there
    "no maximum": ("float64",),
    "sink not in the maximum": ("float64",),
}
"""Faults of arithmetic, and the dtypes in which they cannot show on these inputs."""
LSE_ONLY = ("lse base 2", "lse without maximum", "sink not in the maximum")


@functools.cache
def reference(fields, kind, dtype):
    d = Definition.of(**dict(fields))
    shape = BY_NAME[kind].shape
    return Reference(d, fields_for(d, shape, dtype, 0, BY_NAME[kind]))


def run(fault, fields, kind, dtype, *, backward):
    ref = reference(tuple(sorted(fields.items())), kind, dtype)
    return run_case(resolve(kernel(fault)), ref, kind, backward=backward)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fault", FORWARD)
def test_forward_faults_fail(fault, dtype):
    case = run(fault, *FORWARD[fault], dtype, backward=False)
    shown = {t.name for t in case.tensors if t.verdict == "fail"}
    assert case.verdict == ("pass" if dtype in BLIND.get(fault, ()) else "fail")
    if fault in LSE_ONLY:
        assert shown <= {"lse"}
    elif shown:
        assert "out" in shown


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fault", BACKWARD)
def test_backward_faults_fail_in_the_gradients_alone(fault, dtype):
    case = run(fault, *BACKWARD[fault], dtype, backward=True)
    shown = {t.name for t in case.tensors if t.verdict == "fail"}
    assert case.verdict == "fail"
    assert not shown & {"out", "lse"}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fields, kind", {str(v): v for v in (*FORWARD.values(), *BACKWARD.values())}.values())
def test_the_correct_kernel_passes(fields, kind, dtype):
    case = run(None, fields, kind, dtype, backward=True)
    assert case.verdict == "pass", [(t.name, t.comparison.worst) for t in case.tensors if t.verdict != "pass"]
    assert not any(t.comparison.unbounded for t in case.tensors)


def test_a_16_bit_accumulator_shows_on_a_long_row():
    from symattn.verify.inputs import Shape

    d = Definition()
    fields = fields_for(d, Shape.parse("1,1,1,2,700,4"), "float16", 0)
    fields["query"][...] = 0
    fields["value"][...] = 1
    for fault, verdict in (("accumulator of 16 bits", "fail"), (None, "pass")):
        assert run_case(resolve(kernel(fault)), Reference(d, fields), "long", backward=False).verdict == verdict


def leaking(query, key, value, **options):
    out, lse = kernel()(query, key, value, **options)
    return out + (value * 0).sum((2, 3), keepdims=True).repeat(query.shape[1] // value.shape[1], axis=1), lse


def test_a_kernel_that_is_wrong_on_poisoned_keys_in_numbers_fails(monkeypatch):
    """With and without a leak beside it: a NaN excuses itself and nothing else."""
    monkeypatch.setattr(judge, "diagnose", lambda *args, **options: ())
    monkeypatch.setattr(judge, "with_preset", lambda seen, found: found)

    def wrong(base):
        def run(query, key, value, **options):
            out, lse = base(query, key, value, **options)
            if np.isnan(key).any():
                out[0, 0, 0, 0] = 1e3
            return out, lse

        return run

    for base in (kernel(), leaking):
        report = verify(wrong(base), Definition(causal="top-left"), guard=False)
        assert [c.case for c in report.cases if c.verdict == "fail"] == ["poison"] and report.exit_code() == 1


def test_a_leak_of_masked_nan_is_suspect_and_fails_when_strict():
    leaks, clean = (verify(f, Definition(causal="top-left")) for f in (leaking, kernel()))
    assert (leaks.verdict, leaks.exit_code(), leaks.exit_code(strict=True)) == ("suspect", 0, 1)
    assert "O       suspect" in leaks.to_text() and "O suspect: NaN in masked" in leaks.to_text()
    assert leaks.to_dict()["cases"][-1]["tensors"]["out"]["suspect"] and leaks.max_share_of_bound == clean.max_share_of_bound
    assert any("NaN in masked keys" in w for w in leaks.warnings)
    assert (clean.verdict, clean.exit_code(strict=True), clean.warnings) == ("pass", 0, ())
    assert [c.case for c in clean.cases][-1] == "poison"
