"""A kernel that is right by a list that nobody declared is suspect at most; a wrong one fails, declared or not."""

from __future__ import annotations

import numpy as np
import pytest

from symattn import assert_attention
from symattn.arithmetic import get
from symattn.definition import Definition
from symattn.verify.assumed import STAGED, THROUGH
from symattn.verify.inputs import KINDS, Shape, fields_for, fitted
from symattn.verify.judge import run_case
from symattn.verify.kernels.registry import resolve
from symattn.verify.reference import Reference
from tests.quality.kernels.correct import CORRECT, DEFINITIONS
from tests.quality.running import reference as packed
from tests.verify.margins.kernels import log_probabilities


def weights(query, key):
    s = query.astype(np.float64) @ key.astype(np.float64).swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    top = s.max(-1, keepdims=True)
    e = np.exp(s - top)
    return e / e.sum(-1, keepdims=True), (top + np.log(e.sum(-1, keepdims=True)))[..., 0]


def forward(query, key, value):
    p, lse = weights(query, key)
    return (p @ value.astype(np.float64)).astype(query.dtype), lse.astype(np.float32)


def backward(query, key, value, grad_out, out, lse, grad_lse, *, fault=False):
    """By float64 from the start: ``out`` and ``lse`` are taken and not used."""
    p, _ = weights(query, key)
    q, k, v, g = (x.astype(np.float64) for x in (query, key, value, grad_out))
    dp = g @ v.swapaxes(-1, -2) + grad_lse.astype(np.float64)[..., None]
    ds = p * (dp - (0.0 if fault else (p * (dp - grad_lse.astype(np.float64)[..., None])).sum(-1, keepdims=True)))
    ds = ds / np.sqrt(query.shape[-1])
    return tuple(x.astype(query.dtype) for x in (ds @ k, ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ g))


def kernel(fault=False, **attributes):
    def run(query, key, value):
        return forward(query, key, value)

    run.backward = lambda query, key, value, grad_out, out, lse, grad_lse: backward(
        query, key, value, grad_out, out, lse, grad_lse, fault=fault
    )
    run.arrays = "numpy"
    for name, value in attributes.items():
        setattr(run, name, value)
    return run


@pytest.fixture(scope="module")
def reference():
    d = Definition()
    fields = fields_for(d, Shape.parse("2,2,2,16,24,16"), "bfloat16", 0)
    fields["query"] *= fields["query"].dtype.type(0.015625)  # nearly equal weights: dP - D cancels
    fields["value"] += fields["value"].dtype.type(4)
    return Reference(d, fields)


def verdicts(case):
    return {t.name: t.verdict for t in case.tensors}


def test_an_eager_backward_is_suspect_and_a_wrong_one_fails(reference):
    right, wrong = (run_case(resolve(kernel(f)), reference, "normal", backward=True) for f in (False, True))
    assert verdicts(right)["grad_query"] == "suspect" and right.verdict == "suspect"
    assert [t.suspect for t in right.tensors if t.name == "grad_query"] == [STAGED]
    assert verdicts(wrong)["grad_query"] == "fail"


def test_a_declaration_is_taken_at_its_word(reference):
    declared = run_case(resolve(kernel(arithmetic=get("flash-bf16"))), reference, "normal", backward=True)
    assert verdicts(declared)["grad_query"] == "fail"
    eager = run_case(resolve(kernel(arithmetic=get("eager-bf16"))), reference, "normal", backward=True)
    assert eager.verdict == "pass"


def test_arrays_of_which_nothing_is_declared(reference):
    c = reference.call
    out, lse = forward(c.query, c.key, c.value)
    given = {"grad_out": c.fields["grad_out"], "grad_lse": c.fields["grad_lse"]}
    for fault in (False, True):
        grads = backward(c.query, c.key, c.value, given["grad_out"], out, lse, given["grad_lse"], fault=fault)
        actual = {"out": out, "lse": lse} | dict(zip(("grad_query", "grad_key", "grad_value"), grads, strict=True))
        if fault:
            with pytest.raises(AssertionError, match="grad_query"):
                assert_attention(actual, c.query, c.key, c.value, **given)
        else:
            assert_attention(actual, c.query, c.key, c.value, **given)


@pytest.fixture(scope="module")
def far():
    """Scores whose log-sum-exps are far from 0, where the rounding of one of them weighs."""
    kind = next(k for k in KINDS if k.name == "large")
    d = Definition()
    return Reference(d, fields_for(d, fitted(d, kind.shape), "float32", 0, kind))


def test_an_output_by_another_list_is_suspect_and_a_wrong_one_fails(far):
    judged = lambda *a, **k: run_case(resolve(log_probabilities(*a, **k)), far, "large", backward=False)
    right = judged()
    assert [t.suspect for t in right.tensors] == [THROUGH, None] and right.verdict == "suspect"
    assert verdicts(judged(1.001))["out"] == "fail"
    assert judged(arithmetic="log-fp32").verdict == "pass"
    assert judged(arithmetic="flash-fp32").verdict == "fail"


def test_parts_of_the_keys_that_are_merged():
    definition, plan = DEFINITIONS["window"], CORRECT["split"]
    ref = packed(definition, "deep", "float32")
    verdict = {}
    for name, wrong, declared in (
        ("declared", {}, plan.declares("float32")),
        ("assumed", {}, None),
        ("wrong", {"scale": lambda c, d, heads: 1.001 * c}, None),
    ):
        kernel = plan.kernel("float32", wrong)
        kernel.arithmetic = declared
        verdict[name] = run_case(resolve(kernel), ref, "deep", backward=False).verdict
    assert verdict == {"declared": "pass", "assumed": "suspect", "wrong": "fail"}


def test_arrays_by_another_list(far):
    c = far.call
    for gain in (1.0, 1.001):
        actual = log_probabilities(gain)(c.query, c.key, c.value)
        if gain > 1:
            with pytest.raises(AssertionError, match="out"):
                assert_attention(actual, c.query, c.key, c.value)
        else:
            assert_attention(actual, c.query, c.key, c.value)
            with pytest.raises(AssertionError, match="out"):
                assert_attention(actual, c.query, c.key, c.value, arithmetic="flash-fp32")
