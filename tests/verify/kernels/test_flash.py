"""The tiled kernel equals a dense attention in float64, forward and backward, for every option that it has."""

from __future__ import annotations

import numpy as np
import pytest

from symattn.definition import Definition
from symattn.verify.kernels.call import Call
from symattn.verify.kernels.ours import Flash
from tests.verify.dense import dense

B, H, HKV, N, M, D, DV = 2, 6, 3, 5, 7, 6, 4


def arrays(seed=0, n=N, m=M):
    r = np.random.default_rng(seed)
    return {
        "query": r.normal(size=(B, H, n, D)),
        "key": r.normal(size=(B, HKV, m, D)),
        "value": r.normal(size=(B, HKV, m, DV)),
        "grad_out": r.normal(size=(B, H, n, DV)),
        "grad_lse": r.normal(size=(B, H, n)),
    }


def extra(name, n=N, m=M):
    r = np.random.default_rng(7)
    add = r.normal(size=(B, 1, n, m))
    add[:, :, :, 2] = -np.inf
    return {
        "sinks": r.normal(size=H),
        "alibi_slopes": r.uniform(0.1, 1, size=H),
        "boolean": r.random((H, n, m)) < 0.6,
        "additive": add,
        "bias": r.normal(size=(n, m)),
        "dropout_mask": r.random((B, H, n, m)) < 0.7,
        "doc_q": np.array([[0, 0, 1, 1, 2]] * B),
        "doc_k": np.array([[0, 0, 0, 1, 1, 2, 2]] * B),
        "key_lengths": np.array([m - 2, m]),
    }[name]


CASES = {
    "plain": ({}, {}, {}),
    "top-left": ({"causal": "top-left"}, {}, {}),
    "bottom-right": ({"causal": "bottom-right"}, {}, {}),
    "softcap": ({"softcap": 2, "causal": "top-left"}, {}, {"softcap": 2.0}),
    "window keys": ({"window": (3, 1)}, {}, {}),
    "window distance": ({"window": (2, 0), "window_counts": "distance", "causal": "top-left"}, {}, {}),
    "prefix": ({"causal": "top-left", "prefix": 3}, {}, {}),
    "documents": ({"document": True}, ("doc_q", "doc_k"), {}),
    "key lengths": ({"key_lengths": True, "causal": "bottom-right"}, ("key_lengths",), {}),
    "boolean": ({"attn_mask": "boolean", "mask_axes": "hij"}, {"attn_mask": "boolean"}, {}),
    "boolean drop": ({"attn_mask": "boolean", "mask_axes": "hij", "mask_polarity": "drop"}, {"attn_mask": "boolean"}, {}),
    "additive": ({"attn_mask": "additive"}, {"attn_mask": "additive"}, {"add": "attn_mask"}),
    "bias": ({"bias": True, "bias_axes": "ij"}, ("bias",), {"add": "bias"}),
    "alibi": ({"alibi": True, "causal": "bottom-right"}, ("alibi_slopes",), {"slopes": True}),
    "alibi absolute": ({"alibi": True, "alibi_distance": "absolute"}, ("alibi_slopes",), {"slopes": True}),
    "sink": ({"sink": True, "causal": "bottom-right"}, ("sinks",), {"sinks": True}),
    "tiled heads": ({"grouping": "tiled"}, {}, {}),
    "scale": ({"scale": "2/d"}, {}, {}),
    "base 2": ({"lse_base": 2}, {}, {"base2": True}),
    "dropout": ({"dropout": True, "dropout_p": "0.25"}, ("dropout_mask",), {"p": 0.25}),
    "uniform": (
        {"empty_row": "uniform", "attn_mask": "boolean", "mask_axes": "hij"}, {"attn_mask": "boolean"}, {"empty_row": "uniform"},
    ),
}  # fmt: skip


def visible(name):
    """The pairs that may attend, by loops over the words of each convention."""
    keep = np.ones((B, H, N, M), bool)
    for b in range(B):
        for h in range(H):
            for i in range(N):
                for j in range(M):
                    keep[b, h, i, j] = {
                        "top-left": j <= i, "softcap": j <= i,
                        "bottom-right": j <= i + M - N, "alibi": j <= i + M - N, "sink": j <= i + M - N,
                        "window keys": i + M - N - j < 3 and j - (i + M - N) <= 1, "window distance": 0 <= i - j <= 2,
                        "prefix": j <= i or j < 3, "documents": extra("doc_q")[b, i] == extra("doc_k")[b, j],
                        "key lengths": j < extra("key_lengths")[b] and j <= i + extra("key_lengths")[b] - N,
                        "boolean": extra("boolean")[h, i, j], "uniform": extra("boolean")[h, i, j],
                        "boolean drop": not extra("boolean")[h, i, j], "additive": j != 2,
                    }.get(name, True)  # fmt: skip
    return keep


@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_equals_dense_attention(require, name, empty):
    torch = require("torch")
    fields, given, how = CASES[name]
    f = arrays()
    for field in given:
        f[field] = extra(given[field] if isinstance(given, dict) else field)
    keep = visible(name)
    if empty and "boolean" in name + str(how) + "uniform":
        if "attn_mask" not in f or f["attn_mask"].dtype != bool:
            pytest.skip("no Boolean mask to empty a row with")
        f["attn_mask"] = f["attn_mask"].copy()
        f["attn_mask"][1, 2] = name == "boolean drop"
        keep = keep.copy()
        keep[:, 1, 2] = False
    kernel, call = Flash(), Call(Definition(heads=H, kv_heads=HKV, **fields), f)
    assert kernel.unsupported(call) is None
    assert np.array_equal(call.keep, keep)
    position = np.arange(N)[:, None] + M - N - np.arange(M)[None, :]
    inputs = {k: v for k, v in f.items() if not k.startswith("grad_") and v.dtype == np.float64}
    want = dense(
        torch, inputs, keep=keep, kv_head=np.arange(H) % HKV if "tiled" in name else np.arange(H) // 2,
        scale=2 / D if name == "scale" else D**-0.5, distance=abs(position) if "absolute" in name else position,
        drop=f.get("dropout_mask"), grad_out=f["grad_out"], grad_lse=f["grad_lse"], **how,
    )  # fmt: skip
    got = kernel.forward(call)
    got |= kernel.backward(call, {"grad_out": f["grad_out"], "grad_lse": f["grad_lse"], **got})
    assert set(got) == set(want)
    for k, v in want.items():
        assert np.allclose(got[k], v, rtol=1e-12, atol=1e-13), k


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_dtypes(dtype):
    from symattn.formats import get

    f = {k: v.astype(get(dtype).dtype) for k, v in arrays().items()}
    call = Call(Definition(heads=H, kv_heads=HKV), f)
    got = Flash().forward(call)
    assert (got["out"].dtype, got["lse"].dtype) == (get(dtype).dtype, np.float32)
    wide = Flash().forward(Call(call.definition, {k: v.astype(np.float64) for k, v in f.items()}))
    assert 0 < abs(got["out"].astype(float) - wide["out"]).max() < 6 * float(get(dtype).unit_roundoff)
    grads = Flash().backward(call, {"grad_out": f["grad_out"], **got})
    assert {g.dtype for g in grads.values()} == {get(dtype).dtype}


def test_a_masked_nan_never_leaks():
    f = arrays()
    f["key"][:, :, 5:], f["value"][:, :, 5:] = np.nan, np.inf
    f["attn_mask"] = np.arange(M) < 5
    call = Call(Definition(heads=H, kv_heads=HKV, attn_mask="boolean", mask_axes="j"), f)
    got = Flash().forward(call)
    got |= Flash().backward(call, {"grad_out": f["grad_out"], "grad_lse": f["grad_lse"], **got})
    short = {k: v[:, :, :5] if k in ("key", "value") else v for k, v in f.items() if k != "attn_mask"}
    want = Flash().forward(Call(Definition(heads=H, kv_heads=HKV), short))
    want |= Flash().backward(
        Call(Definition(heads=H, kv_heads=HKV), short), {"grad_out": f["grad_out"], "grad_lse": f["grad_lse"], **want}
    )
    for k in ("out", "lse", "grad_query"):
        assert np.allclose(got[k], want[k], rtol=1e-13, atol=1e-14)
    for k in ("grad_key", "grad_value"):
        assert np.allclose(got[k][:, :, :5], want[k], rtol=1e-13, atol=1e-14)
        assert not got[k][:, :, 5:].any()


def test_empty_row_nan_and_a_text_is_refused():
    f = arrays() | {"attn_mask": np.arange(M) < 0}
    got = Flash().forward(Call(Definition(heads=H, kv_heads=HKV, attn_mask="boolean", mask_axes="j", empty_row="nan"), f))
    assert np.isnan(got["out"]).all() and np.isneginf(got["lse"]).all()
    assert "score text" in (Flash().unsupported(Call(Definition(heads=H, kv_heads=HKV, score="s+1"), f)) or "")
