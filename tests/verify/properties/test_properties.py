"""Properties without exact values: each fault planted in a kernel that is right otherwise, and the right one, which passes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from symattn.definition import Definition
from symattn.verify.inputs import Choice, cases_for
from symattn.verify.judge import run_case, verify
from symattn.verify.kernels.ours import Naive
from symattn.verify.kernels.registry import resolve
from symattn.verify.properties.check import properties_of
from symattn.verify.reference import Reference
from tests.verify.planted import kernel

TOP = Definition(causal="top-left")


def found(function, definition=TOP, *, backward=False, dtype="float32", kind="normal"):
    """The properties of a kernel on one input, by name; without the diagnosis of a whole run."""
    subject, seen = resolve(function), []
    fields = cases_for(definition, dtype, 0, Choice.of(only=kind))[kind]
    run_case(subject, Reference(definition, fields), kind, backward=backward, seen=seen)
    return {p.name: p for p in properties_of(subject, seen)}


def fails(function, name, definition=TOP, verdict="fail", **options):
    properties = found(function, definition, **options)
    assert properties[name].verdict == properties[name].counted == verdict, properties
    return properties[name]


def with_backward(forward, change=None):
    """The planted kernel's forward and backward, one of them changed."""
    right = kernel()

    def run(query, key, value, **options):
        return forward(right, query, key, value, options)

    def backward(query, key, value, grad_out, out, lse, grad_lse, **options):
        found = right.backward(query, key, value, grad_out, out, lse, grad_lse, **options)
        return found if change is None else change(found)

    run.backward, run.arrays = backward, "numpy"
    return run


def same(right, query, key, value, options):
    return right(query, key, value, **options)


def test_a_right_kernel_has_them_all():
    properties = found(with_backward(same), backward=True)
    assert {n for n, p in properties.items() if p.verdict == "pass"} == {
        "hull", "key-columns", "gauge", "scale", "value-total", "twice", "alone", "future", "poison",
    } | ({"poison-rows"} & {n for n, p in properties.items() if p.verdict == "pass"})  # fmt: skip
    assert properties["buffer"].reason == "the kernel takes no buffer out="
    assert properties["hull-with-zero"].reason == "it does not hold of this definition: not 'there is a sink'"


def test_the_future_leaks():
    """By less than shows in any one number of the usual inputs: a thousandth of the mean of all values."""

    def leaks(right, query, key, value, options):
        out, lse = right(query, key, value, **options)
        group = query.shape[1] // value.shape[1]
        return (out + 1e-3 * np.repeat(value, group, 1).mean(2, keepdims=True)).astype(query.dtype), lse

    report = fails(with_backward(leaks), "future")
    assert "may not see" in report.reason and report.share > 1


def test_not_the_same_twice():
    r = np.random.default_rng(0)

    def unsteady(right, query, key, value, options):
        out, lse = right(query, key, value, **options)
        return (out * (1 + 1e-7 * r.integers(-1, 2, size=out.shape))).astype(query.dtype), lse

    assert "differ on a second run" in fails(with_backward(unsteady), "twice").reason


def test_gradients_that_are_not_the_same_twice():
    calls = []

    def change(grads):
        calls.append(0)
        return {**grads, "dq": np.nextafter(grads["dq"], np.float32(9 * (-1) ** len(calls)))}

    assert "grad_query" in fails(with_backward(same, change), "twice", backward=True).reason


def test_a_row_depends_on_its_batch():
    """As with one scale for the whole batch: a 16-bit factor that only all of them together give."""

    def mixed(right, query, key, value, options):
        out, lse = right(query, key, value, **options)
        return (out * np.float32(1 + 1e-4 * np.abs(query).max())).astype(query.dtype), lse

    assert "batch entry" in fails(with_backward(mixed), "alone").reason


@pytest.mark.parametrize("poison", [np.nan, np.inf])
def test_a_masked_special_value_is_read(poison):
    def reads(right, query, key, value, options):
        out, lse = right(query, key, value, **options)
        group = query.shape[1] // value.shape[1]
        special = np.isnan(value) if np.isnan(poison) else np.isinf(value)
        spread = np.repeat(np.where(special, np.nan, 0), group, 1).sum(2, keepdims=True)
        return (out + spread).astype(query.dtype), lse

    reason = fails(with_backward(reads), "poison", verdict="suspect").reason
    assert ("NaN" if np.isnan(poison) else "infinity") in reason


def test_a_masked_special_value_changes_numbers():
    def wrong(right, query, key, value, options):
        out, lse = right(query, key, value, **options)
        return (out + np.float32(1 if np.isinf(value).any() else 0)).astype(query.dtype), lse

    assert "another number" in fails(with_backward(wrong), "poison").reason


def test_what_the_buffer_held_matters():
    def run(query, key, value, out=None, **options):
        found, lse = kernel()(query, key, value, **options)
        if out is None:
            return found, lse
        out[:, :, 1:] = found[:, :, 1:]  # the first row is not written
        return None

    def whole(query, key, value, out=None, **options):
        found, lse = kernel()(query, key, value, **options)
        if out is None:
            return found, lse
        out[...] = found
        return out

    assert "buffer holds NaN" in fails(run, "buffer").reason
    assert found(whole)["buffer"].verdict == "pass"


@pytest.mark.parametrize(
    "fields, name, change",
    [
        ({"causal": "top-left"}, "key-columns", lambda g: {**g, "dk": g["dk"] + np.float32(1e-3)}),
        ({"causal": "top-left", "sink": True, "softcap": 20}, "gauge", lambda g: {**g, "dq": g["dq"] * np.float32(1.001)}),
        ({"causal": "top-left"}, "scale", lambda g: {**g, "dq": g["dq"] * np.float32(1.01)}),
        ({"causal": "bottom-right"}, "value-total", lambda g: {**g, "dv": g["dv"] + np.float32(1e-3)}),
        (
            {"attn_mask": "additive", "mask_axes": "hij"},
            "score-rows",
            lambda g: {**g, "grad_attn_mask": g["grad_attn_mask"] + np.float32(1e-3)},
        ),
    ],
)
def test_equations_of_gradients(fields, name, change):
    d = Definition(**fields)
    report = fails(with_backward(same, change), name, d, backward=True)
    assert report.share > 1 and "is allowed" in report.reason
    assert found(with_backward(same), d, backward=True)[name].verdict == "pass"


@pytest.mark.parametrize("fields, name", [({}, "hull"), ({"sink": True}, "hull-with-zero")])
def test_an_output_beyond_the_values(fields, name):
    def beyond(right, query, key, value, options):
        out, lse = right(query, key, value, **options)
        return out * np.float32(3), lse

    fails(with_backward(beyond), name, Definition(**fields))
    assert found(with_backward(same), Definition(**fields))[name].verdict == "pass"


@pytest.mark.parametrize(
    "fields, none",
    [
        ({"sink": True}, {"hull", "key-columns", "value-total", "score-rows"}),
        ({"rope": "half"}, {"gauge", "key-columns", "hull-with-zero"}),
        ({"softcap": 20}, {"key-columns"}),
        ({"dropout": True, "dropout_p": "1/4"}, {"hull", "value-total"}),
    ],
)
def test_conditions_come_from_the_program(fields, none):
    properties = found("numpy:naive", Definition(**fields), backward=True)
    assert none <= {n for n, p in properties.items() if p.verdict == "not applicable"}
    assert all(p.reason for p in properties.values() if p.verdict == "not applicable")
    assert not any(p.verdict == "fail" for p in properties.values())


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
@pytest.mark.parametrize("fields", [{"causal": "bottom-right"}, {"attn_mask": "boolean"}, {"softcap": 2, "sink": True}])
def test_right_kernels_are_not_flagged(fields, dtype):
    for name in ("numpy:flash", "numpy:naive"):
        properties = found(name, Definition(**fields), backward=True, dtype=dtype, kind="tall")
        assert not [p for p in properties.values() if p.verdict == "fail"], name


class Leaks(Naive):
    """A built-in kernel that a masked NaN reaches."""

    def forward(self, call):
        found = super().forward(call)
        return {**found, "out": (found["out"] + 0 * call.value.sum()).astype(call.dtype)}


def leaks(query, key, value, **options):
    out, lse = kernel()(query, key, value, **options)
    return out + 0 * value.sum(), lse


@pytest.mark.parametrize("subject, verdict, said", [(Leaks(), "pass", "suspect, not counted"), (leaks, "suspect", "suspect")])
def test_of_a_built_in_kernel_they_are_reported_alone(subject, verdict, said):
    report = verify(subject, TOP, only="normal")
    report = replace(report, strength=None)  # what a run tells apart is another matter
    assert report.verdict == verdict and f"poison {said}:" in report.to_text() and report.exit_code() == 0
    entry = next(p for p in report.to_dict()["properties"] if p["property"] == "poison")
    assert entry["verdict"] == "suspect" and entry["counts"] is (subject is leaks) and entry["case"] == "normal"
