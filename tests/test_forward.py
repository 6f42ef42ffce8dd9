"""The forward program of many definitions against loops that share no code with it, and against PyTorch in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from symattn.binding import bind, unbind
from symattn.definition import Definition
from symattn.readings import numpy as reading
from tests.attention_oracle import attention, slopes

B, H, HKV, N, M, D, DV = 2, 6, 2, 4, 5, 3, 2
RNG = np.random.default_rng(7)


def arrays(heads: int = H, kv_heads: int = HKV, n: int = N, m: int = M) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    return {
        "query": rng.standard_normal((B, heads, n, D)),
        "key": rng.standard_normal((B, kv_heads, m, D)),
        "value": rng.standard_normal((B, kv_heads, m, DV)),
    }


def forward(definition: Definition, fields: dict[str, Any], layout: str = "bhsd") -> dict[str, np.ndarray]:
    bound = bind(definition, fields, layout=layout)
    values = reading.evaluate(bound.program, bound.inputs, sizes=bound.sizes)
    return dict(unbind(bound, name, values[name]) for name in bound.program.outputs)


MASK = RNG.random((B, H, N, M)) < 0.6
MASK[0, 0, 0] = False  # an empty row
ADDITIVE = np.where(MASK, RNG.standard_normal((B, H, N, M)), -np.inf)
BIAS = RNG.standard_normal((B, H, N, M))
SLOPES = np.array([0.5, 0.25, 0.125, 0.3, 0.7, 0.9])
SINKS = np.array([-5.0, 0.0, 1.0, 5.0, 0.5, 2.0])
DOC_Q, DOC_K = np.array([[0, 0, 1, 1], [2, 0, 0, 1]]), np.array([[0, 0, 1, 1, 2], [0, 0, 0, 1, 1]])
LENGTHS = np.array([3, 5])
KEPT = RNG.random((B, H, N, M)) < 0.7

CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    # name: fields of the definition, arrays given beside q, k, v, options of the oracle where they differ
    "plain": ({}, {}, {}),
    "tiled": ({"grouping": "tiled"}, {}, {}),
    "causal top-left": ({"causal": "top-left"}, {}, {}),
    "causal bottom-right": ({"causal": "bottom-right"}, {}, {}),
    "causal offset": ({"causal": -2}, {}, {}),
    "window of keys": ({"causal": "bottom-right", "window": (2, None)}, {}, {}),
    "window both sides": ({"window": (1, 1), "window_counts": "distance"}, {}, {}),
    "window one key": ({"window": (1, 0)}, {}, {}),
    "window measured from the top left": ({"window": (2, 1), "window_alignment": "top-left"}, {}, {}),
    "prefix": ({"causal": "top-left", "prefix": 3}, {}, {}),
    "prefix given": ({"prefix": "length"}, {"length": np.array(2)}, {"causal": "top-left", "prefix": 2}),
    "document": ({"document": True}, {"doc_q": DOC_Q, "doc_k": DOC_K}, {}),
    "key lengths": ({"key_lengths": True}, {"key_lengths": LENGTHS}, {}),
    "key lengths, causal": ({"key_lengths": True, "causal": "bottom-right"}, {"key_lengths": LENGTHS}, {}),
    "boolean mask": ({"attn_mask": "boolean"}, {"attn_mask": MASK}, {}),
    "boolean mask, drop": ({"attn_mask": "boolean", "mask_polarity": "drop"}, {"attn_mask": MASK}, {}),
    "boolean mask, drop, tiled": (
        {"attn_mask": "boolean", "mask_polarity": "drop", "grouping": "tiled"},
        {"attn_mask": MASK},
        {},
    ),
    "additive mask": ({"attn_mask": "additive"}, {"attn_mask": ADDITIVE}, {}),
    "bias": ({"bias": True}, {"bias": BIAS}, {}),
    "softcap": ({"softcap": "1/2", "causal": "top-left"}, {}, {"softcap": 0.5}),
    "softcap given": ({"softcap": "cap"}, {"cap": np.array(0.75)}, {"softcap": 0.75}),
    "alibi": ({"alibi": True, "causal": "bottom-right"}, {"alibi_slopes": SLOPES}, {}),
    "alibi, absolute": ({"alibi": True, "alibi_distance": "absolute"}, {"alibi_slopes": SLOPES}, {}),
    "alibi, power": ({"alibi": True, "alibi_slopes": "power"}, {}, {"alibi_slopes": slopes(H, "power")}),
    "alibi, interleaved": ({"alibi": True, "alibi_slopes": "interleaved"}, {}, {"alibi_slopes": slopes(H, "interleaved")}),
    "alibi, interleaved, tiled": (
        {"alibi": True, "alibi_slopes": "interleaved", "grouping": "tiled"},
        {},
        {"alibi_slopes": slopes(H, "interleaved")},
    ),
    "sink": ({"sink": True, "causal": -2}, {"sinks": SINKS}, {}),
    "empty row nan": ({"attn_mask": "boolean", "empty_row": "nan"}, {"attn_mask": MASK}, {}),
    "empty row uniform": ({"causal": -2, "empty_row": "uniform"}, {}, {}),
    "scale": ({"scale": "1/d"}, {}, {"scale": 1 / D}),
    "scale one": ({"scale": 1}, {}, {}),
    "lse base 2": ({"lse_base": 2}, {}, {}),
    "dropout": ({"dropout": True, "dropout_p": "1/4"}, {"dropout_mask": KEPT}, {"dropout_p": 0.25}),
    "dropout, rate given": ({"dropout": True, "causal": "top-left"}, {"dropout_mask": KEPT, "dropout_p": np.array(0.5)}, {}),
    "score text": (
        {"score": "3*tanh(s/3) - t*(i - j) + h/10 + b/7", "params": {"t": [0, "1/2", 1, 2, "0.1", "1/3"]}},
        {},
        {"score": lambda s, i, j, h, b, **_: 3 * math.tanh(s / 3) - [0, 0.5, 1, 2, 0.1, 1 / 3][h] * (i - j) + h / 10 + b / 7},
    ),
    "score text, choices": (
        {"score": "max(min(s, t), -1/2) + min(i - j, 0) + max(s, 0)*abs(s)", "causal": "bottom-right"},
        {"t": np.array(0.25)},
        {"score": lambda s, i, j, **_: max(min(s, 0.25), -0.5) + min(i - j, 0) + max(s, 0) * abs(s)},
    ),
    "score text, tiled": (
        {"score": "s*(h + 1)", "grouping": "tiled"},
        {},
        {"score": lambda s, h, **_: s * (h + 1)},
    ),
    "score text, parameter per head": (
        {"score": "s - u*abs(i - j)/m"},
        {"u": SLOPES},
        {"score": lambda s, i, j, h, m, **_: s - SLOPES[h] * abs(i - j) / m},
    ),
    "mask text": (
        {"mask": "j <= i or (i + j) % 3 == 0 and h != b"},
        {},
        {"mask": lambda i, j, h, b, **_: j <= i or ((i + j) % 3 == 0 and h != b)},
    ),
    "mask and score text with all else": (
        {"score": "sigmoid(s)*2", "mask": "i - j < w", "params": {"w": 2}, "softcap": 2, "causal": "bottom-right", "sink": True}
        | {"attn_mask": "additive", "alibi": True, "bias": True, "grouping": "tiled"},
        {"sinks": SINKS, "attn_mask": ADDITIVE, "alibi_slopes": SLOPES, "bias": BIAS},
        {"score": lambda s, **_: 2 / (1 + math.exp(-s)), "mask": lambda i, j, **_: i - j < 2},
    ),
}


def check(definition: Definition, fields: dict[str, Any], options: dict[str, Any]) -> None:
    got = forward(definition, fields)
    out, lse = attention(**options)
    np.testing.assert_allclose(got["out"], out, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(got["lse"], lse, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("n", "m"), [(N, M), (1, M)], ids=["n<m", "one query"])
def test_forward_is_what_loops_give(name, n, m):
    says, given, means = CASES[name]
    given = {k: _cut(x, n) for k, x in given.items()}
    fields = arrays(n=n, m=m)
    options = {
        **fields,
        **{k: v for k, v in says.items() if k not in ("params", "alibi", "sink", "document", "dropout")},
        **given,
        **means,
    }
    if "scale" in says and says["scale"] == 1:
        options["scale"] = 1.0
    check(Definition(**says), {**fields, **given}, {k: str(v) if k == "lse_base" else v for k, v in options.items()})


def _cut(x: np.ndarray, n: int) -> np.ndarray:
    return x[..., :n, :] if x.ndim == 4 else x[:, :n] if x.shape == (B, N) else x


@pytest.mark.parametrize(("heads", "kv_heads"), [(1, 1), (4, 4), (4, 1), (4, 2), (3, 3)])
@pytest.mark.parametrize(("n", "m"), [(5, 3), (3, 3)])
def test_every_grouping_of_heads(heads, kv_heads, n, m):
    fields = arrays(heads, kv_heads, n, m)
    check(Definition(causal="bottom-right", empty_row="zero"), fields, {**fields, "causal": "bottom-right"})


def test_the_other_layout_gives_the_same():
    fields = arrays()
    turned = {k: np.swapaxes(x, 1, 2) for k, x in fields.items()}
    a, b = forward(Definition(causal=1), fields), forward(Definition(causal=1), turned, "bshd")
    np.testing.assert_array_equal(np.swapaxes(a["out"], 1, 2), b["out"])
    np.testing.assert_array_equal(a["lse"], b["lse"])


def test_two_axes_are_one_head_without_batch():
    fields = arrays(1, 1)
    flat = {k: x[0, 0] for k, x in fields.items()}
    a, b = forward(Definition(softcap=1), fields), forward(Definition(softcap=1), flat)
    np.testing.assert_allclose(a["out"][0, 0], b["out"], rtol=1e-15)
    assert b["lse"].shape == (N,)


def test_projections_and_output_projection():
    rng = np.random.default_rng(5)
    x, wq, wk, wv = (rng.standard_normal(s) for s in ((2, 4, 5), (5, 6), (5, 2), (5, 4)))
    wo = rng.standard_normal((12, 7))
    d = Definition(start="x", heads=6, kv_heads=2, output_projection=True, causal="top-left")
    got = forward(d, {"x": x, "w_q": wq, "w_k": wk, "w_v": wv, "w_o": wo})
    split = lambda y, h: np.moveaxis(y.reshape(2, 4, h, -1), 2, 1)
    out, lse = attention(split(x @ wq, 6), split(x @ wk, 2), split(x @ wv, 2), causal="top-left")
    np.testing.assert_allclose(got["out"], np.moveaxis(out, 1, 2).reshape(2, 4, 12) @ wo, rtol=1e-13)
    np.testing.assert_allclose(got["lse"], lse, rtol=1e-13)


def test_tokens_and_memory():
    rng = np.random.default_rng(6)
    tokens, table, memory = np.array([[2, 0, 2]]), rng.standard_normal((4, 5)), rng.standard_normal((1, 6, 3))
    wq, wk, wv = rng.standard_normal((5, 2)), rng.standard_normal((3, 2)), rng.standard_normal((3, 4))
    d = Definition(start="tokens", cross=True)
    got = forward(d, {"tokens": tokens, "embedding": table, "memory": memory, "w_q": wq, "w_k": wk, "w_v": wv})
    out, _ = attention((table[tokens] @ wq)[:, None], (memory @ wk)[:, None], (memory @ wv)[:, None])
    np.testing.assert_allclose(got["out"], out, rtol=1e-13)


def test_a_wrong_convention_is_seen():
    """The comparison above is able to fail: each of these is one field away from the right definition."""
    fields = arrays()
    right = attention(**fields, causal="bottom-right")[0]
    for wrong in (
        {"causal": "top-left"},
        {"causal": "bottom-right", "grouping": "tiled"},
        {"causal": "bottom-right", "scale": "1/d"},
    ):
        assert np.abs(forward(Definition(**wrong), fields)["out"] - right).max() > 1e-2


@pytest.mark.parametrize(
    ("says", "torch_says"),
    [
        ({}, {}),
        ({"causal": "top-left"}, {"is_causal": True}),
        ({"scale": "1/3"}, {"scale": 1 / 3}),
        ({"attn_mask": "boolean"}, {}),
    ],
    ids=str,
)
def test_forward_is_what_torch_gives(require, says, torch_says):
    torch = require("torch")
    fields = arrays()
    if "attn_mask" in says:
        fields["attn_mask"] = MASK
    tensors = {k: torch.from_numpy(x) for k, x in fields.items()}
    expected = torch.nn.functional.scaled_dot_product_attention(**tensors, enable_gqa=True, **torch_says)
    np.testing.assert_allclose(forward(Definition(**says), fields)["out"], expected.numpy(), rtol=1e-12, atol=1e-13)
