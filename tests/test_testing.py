"""The assertion for tests of others: passes what is right, and names element, value, bound when it does not."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

from symattn import Attention, assert_attention
from symattn.definition import Definition
from symattn.errors import DefinitionError, InputValueError, ShapeError, UnknownNameError
from symattn.verify.inputs import Shape, fields_for
from symattn.verify.kernels.call import Call
from symattn.verify.kernels.ours import Flash

SHAPE = Shape.parse("2,4,2,3,5,6")


def case(dtype="float32", **fields):
    d = Definition(**fields)
    f = fields_for(d, SHAPE, dtype, 0)
    call = Call(d, f)
    out = Flash().forward(call)
    grads = Flash().backward(call, {"grad_out": f["grad_out"], "grad_lse": f["grad_lse"], **out})
    tensors = {k: f.pop(k) for k in ("query", "key", "value")}
    return {**out, **grads}, tuple(tensors.values()), f


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_right_results_pass(dtype):
    actual, qkv, f = case(dtype, causal="top-left")
    assert_attention(actual["out"], *qkv, causal="top-left")
    assert_attention((actual["out"], actual["lse"]), *qkv, causal="top-left")
    assert_attention(actual, *qkv, causal="top-left", grad_out=f["grad_out"], grad_lse=f["grad_lse"])
    assert_attention(actual, *qkv, attention=Attention(causal="top-left"), grad_out=f["grad_out"], grad_lse=f["grad_lse"])


@pytest.mark.parametrize(
    "fields",
    [{"sink": True}, {"attn_mask": "boolean"}, {"attn_mask": "additive"}, {"alibi": True}, {"bias": True}, {"document": True}],
    ids=lambda f: next(iter(f)) + str(next(iter(f.values()))),
)
def test_tensors_say_which_fields_the_definition_has(fields):
    actual, qkv, f = case(**fields)
    grads = {k: f.pop(k) for k in ("grad_out", "grad_lse")}
    assert_attention(actual, *qkv, **grads, **f)
    with pytest.raises(AssertionError):
        assert_attention(actual["out"], *qkv)


def test_the_message():
    actual, qkv, _ = case("bfloat16")
    wrong = actual["out"].copy()
    wrong[1, 2, 0, 3] += ml_dtypes.bfloat16(0.25)
    with pytest.raises(AssertionError) as caught:
        assert_attention(wrong, *qkv, err_msg="my kernel")
    text = str(caught.value)
    assert text.startswith("my kernel\nNot the attention") and "flash-bf16" in text
    assert "out: mismatched elements: 1 / 144 (0.694%)" in text
    assert "Worst at index (1, 2, 0, 3)" in text
    kernel, exact = (re.search(rf"{w}:\s+(\S+)", text)[1] for w in ("ACTUAL", "EXACT"))
    assert abs(float(kernel) - float(exact) - 0.25) < 0.01
    assert len(exact.lstrip("-0.").replace(".", "")) == 20
    assert re.search(r"= \S+ ulp, \S+ times the allowed \S+", text)


def test_every_wrong_tensor_is_named():
    actual, qkv, f = case()
    actual["lse"] = actual["lse"] + 1
    actual["grad_key"] = actual["grad_key"] * 2
    with pytest.raises(AssertionError) as caught:
        assert_attention(actual, *qkv, grad_out=f["grad_out"], grad_lse=f["grad_lse"])
    assert re.findall(r"^(\w+): mismatched", str(caught.value), re.M)[0] == "lse"
    assert "grad_key: mismatched" in str(caught.value) and "out:" not in str(caught.value)


def test_a_tolerance_in_place_of_the_bound():
    actual, qkv, _ = case()
    near = actual["out"] + np.float32(1e-3)
    assert_attention(near, *qkv, atol=1.1e-3)
    for tolerance in ({"atol": 0.9e-3}, {"rtol": 1e-6}, {}):
        with pytest.raises(AssertionError):
            assert_attention(near, *qkv, **tolerance)
    with pytest.raises(AssertionError, match=r"rtol=1e-06, atol=0\.0009"):
        assert_attention(near, *qkv, atol=0.9e-3, rtol=1e-6)


def test_nan_infinity_and_a_leak():
    actual, (q, k, v), _ = case()
    bad = actual["out"].copy()
    bad[0, 0, 0, 0] = np.nan
    with pytest.raises(AssertionError, match="ACTUAL: nan"):
        assert_attention(bad, q, k, v, atol=1e9)
    mask = np.array([True, True, True, True, False])
    k, v = k.copy(), v.copy()
    k[:, :, 4], v[:, :, 4] = np.nan, np.inf
    clean = Flash().forward(
        Call(Definition(attn_mask="boolean", mask_axes="j"), {"query": q, "key": k, "value": v, "attn_mask": mask})
    )
    assert_attention((clean["out"], clean["lse"]), q, k, v, attn_mask=mask)
    with pytest.raises(AssertionError):
        assert_attention(clean["out"] * np.nan, q, k, v, attn_mask=mask)
    with pytest.raises(InputValueError, match="masked out"):
        assert_attention(clean["out"], q, k, v)


def test_layouts_and_frameworks(require):
    torch = require("torch")
    actual, qkv, _ = case("bfloat16")
    tensors = [torch.from_numpy(x.view(np.int16)).view(torch.bfloat16) for x in (actual["out"], *qkv)]
    assert_attention(tensors[0], *(t.requires_grad_(True) for t in tensors[1:]))
    assert_attention(tensors[0].transpose(1, 2), *(t.transpose(1, 2) for t in tensors[1:]), layout="bshd")
    with pytest.raises(AssertionError):
        assert_attention(
            torch.nn.functional.scaled_dot_product_attention(*tensors[1:], enable_gqa=True, is_causal=True), *tensors[1:]
        )


@pytest.mark.parametrize(
    "fields", [{"attn_mask": "boolean", "mask_axes": "bhij"}, {"bias": True}, {"dropout": True}, {"sink": True}]
)
def test_only_tensors_with_a_channel_axis_are_turned(fields):
    actual, qkv, f = case(**fields)

    def turned(name, a):
        return a.swapaxes(1, 2) if name in ("out", "grad_out", "grad_query", "grad_key", "grad_value") else a

    actual, f = ({k: turned(k, a) for k, a in x.items()} for x in (actual, f))
    assert_attention(actual, *(a.swapaxes(1, 2) for a in qkv), **f, layout="bshd")


def test_a_single_head_without_batch():
    r = np.random.default_rng(0)
    q, k, v = r.normal(size=(3, 4)), r.normal(size=(5, 4)), r.normal(size=(5, 2))
    s = q @ k.T / 2
    p = np.exp(s) / np.exp(s).sum(-1, keepdims=True)
    assert_attention((p @ v, np.log(np.exp(s).sum(-1))), q, k, v)
    wrong = p @ v
    wrong[2, 1] += 1e-12
    with pytest.raises(AssertionError, match=r"index \(2, 1\)"):
        assert_attention(wrong, q, k, v)


@pytest.mark.parametrize(
    "change, error, text",
    [
        (lambda a, f: {"actual": a["out"][:, :, :2]}, AssertionError, "shapes differ"),
        (lambda a, f: {"actual": {"outt": a["out"]}}, UnknownNameError, "outt"),
        (lambda a, f: {"actual": a}, DefinitionError, "grad_out"),
        (lambda a, f: {"softcpa": 2}, UnknownNameError, "'softcpa' is neither .* Did you mean 'softcap'"),
        (lambda a, f: {"casual": True}, UnknownNameError, "Did you mean 'causal'"),
        (lambda a, f: {"casual": "top-left"}, UnknownNameError, "Did you mean 'causal'"),
        (lambda a, f: {"sniks": np.zeros(4)}, UnknownNameError, "Did you mean 'sinks'"),
        (lambda a, f: {"arithmetic": "flash-bf16"}, DefinitionError, "bfloat16 inputs, and the inputs here are float32"),
        (lambda a, f: {"key": np.zeros((2, 3, 5, 6), np.float32)}, ShapeError, "heads"),
        (lambda a, f: {"layout": "hbsd"}, UnknownNameError, "layout"),
        (lambda a, f: {"arithmetic": "flsh"}, UnknownNameError, "flsh"),
        (lambda a, f: {"query": np.zeros((2, 4, 0, 6), np.float32), "actual": np.zeros((2, 4, 0, 6))}, ShapeError, "empty"),
    ],
)
def test_bad_calls(change, error, text):
    actual, (q, k, v), f = case()
    call = {"actual": actual["out"], "query": q, "key": k, "value": v, **change(actual, f)}
    with pytest.raises(error, match=text):
        assert_attention(call.pop("actual"), call.pop("query"), call.pop("key"), call.pop("value"), **call)


def test_an_infinity_in_the_place_of_a_number_is_said_to_be_infinitely_wrong():
    actual, qkv, _ = case()
    actual["out"][0, 0, 0, 0] = -np.inf
    with pytest.raises(AssertionError, match=r"^Not the attention") as caught:
        assert_attention(actual["out"], *qkv)
    assert "ACTUAL: -inf" in str(caught.value) and "Error inf = inf ulp, inf times the allowed" in str(caught.value)
