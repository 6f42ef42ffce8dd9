"""Attention blocks and layers against PyTorch's modules in float64: outputs, and the gradient of every input and parameter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from symattn import Attention
from tests.support import require

WIDTH, HEADS, HIDDEN, BATCH, N, M = 6, 2, 5, 2, 3, 4


@pytest.fixture
def torch():
    return require("torch")


def ours(x: Any) -> np.ndarray:
    return x.detach().numpy()


def block(torch: Any, m: Any, prefix: str = "", read: Any = lambda p: p) -> dict[str, np.ndarray]:
    """The parameters of a MultiheadAttention (or their gradients, by ``read``) under our names."""
    found = {}
    for k, name in enumerate("qkv"):
        rows = slice(k * m.embed_dim, (k + 1) * m.embed_dim)
        found[f"{prefix}w_{name}"] = ours(read(m.in_proj_weight))[rows].T
        if m.in_proj_bias is not None:
            found[f"{prefix}b_{name}"] = ours(read(m.in_proj_bias))[rows]
    found[f"{prefix}w_o"] = ours(read(m.out_proj.weight)).T
    if m.in_proj_bias is not None:
        found[f"{prefix}b_o"] = ours(read(m.out_proj.bias))
    return found


def layer(torch: Any, m: Any, decoder: bool, read: Any = lambda p: p) -> dict[str, np.ndarray]:
    found = block(torch, m.self_attn, read=read)
    if decoder:
        found |= block(torch, m.multihead_attn, "cross_", read)
    for k in (1, 2):
        linear = getattr(m, f"linear{k}")
        found |= {f"w_ff{k}": ours(read(linear.weight)).T, f"b_ff{k}": ours(read(linear.bias))}
    for k in (1, 2, 3) if decoder else (1, 2):
        norm = getattr(m, f"norm{k}")
        found |= {f"norm{k}_weight": ours(read(norm.weight)), f"norm{k}_bias": ours(read(norm.bias))}
    return found


def random(torch: Any, module: Any, seed: int) -> Any:
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(torch.randn(p.shape, generator=g, dtype=torch.float64) * 0.7)
    return module


def inputs(torch: Any, seed: int, *shapes: tuple[int, ...]) -> list[Any]:
    g = torch.Generator().manual_seed(seed)
    return [torch.randn(s, generator=g, dtype=torch.float64, requires_grad=True) for s in shapes]


def agree(att: Attention, fields: dict[str, Any], theirs: dict[str, Any]) -> None:
    names = tuple(theirs)
    found = att.lambdify("numpy", names)(**fields)
    for name, x in zip(names, found, strict=True):
        assert x.shape == theirs[name].shape, name
        np.testing.assert_allclose(x, theirs[name], rtol=1e-9, atol=1e-10, err_msg=name)


def gradients(parameters: dict[str, Any]) -> dict[str, Any]:
    return {"grad_" + name: x for name, x in parameters.items()}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("causal", [True, False])
def test_multihead_attention(torch, bias, causal):
    m = random(torch, torch.nn.MultiheadAttention(WIDTH, HEADS, bias=bias, batch_first=True, dtype=torch.float64), 0)
    x, g = inputs(torch, 1, (BATCH, N, WIDTH), (BATCH, N, WIDTH))
    mask = torch.ones(N, N, dtype=torch.bool).triu(1) if causal else None
    y, _ = m(x, x, x, attn_mask=mask, need_weights=False)
    y.backward(g)
    att = Attention(start="x", heads=HEADS, output_projection=True, projection_bias=bias, causal=causal)
    theirs = {"out": ours(y), "grad_x": ours(x.grad)} | gradients(block(torch, m, read=lambda p: p.grad))
    agree(att, {"x": ours(x), "grad_out": ours(g), **block(torch, m)}, theirs)


def test_multihead_cross_attention_without_batch(torch):
    m = random(torch, torch.nn.MultiheadAttention(WIDTH, HEADS, dtype=torch.float64), 0)
    x, c, g = inputs(torch, 1, (N, WIDTH), (M, WIDTH), (N, WIDTH))
    y, _ = m(x, c, c, need_weights=False)
    y.backward(g)
    att = Attention(start="x", cross=True, heads=HEADS, output_projection=True, projection_bias=True)
    theirs = {"out": ours(y), "grad_x": ours(x.grad), "grad_memory": ours(c.grad)}
    theirs |= gradients(block(torch, m, read=lambda p: p.grad))
    agree(att, {"x": ours(x), "memory": ours(c), "grad_out": ours(g), **block(torch, m)}, theirs)


CASES = [(norm, act) for norm in ("post", "pre") for act in ("relu", "gelu")]


def encoder(torch: Any, norm: str, act: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Our fields, and what PyTorch gives for them."""
    options = {"dropout": 0.0, "activation": act, "batch_first": True, "norm_first": norm == "pre", "dtype": torch.float64}
    m = random(torch, torch.nn.TransformerEncoderLayer(WIDTH, HEADS, HIDDEN, **options), 0)
    x, g = inputs(torch, 1, (BATCH, N, WIDTH), (BATCH, N, WIDTH))
    y = m(x)
    y.backward(g)
    theirs = {"out": ours(y), "grad_x": ours(x.grad)} | gradients(layer(torch, m, False, lambda p: p.grad))
    return {"x": ours(x), "grad_out": ours(g), **layer(torch, m, False)}, theirs


@pytest.mark.parametrize(("norm", "act"), CASES)
def test_encoder_layer(torch, norm, act):
    fields, theirs = encoder(torch, norm, act)
    agree(Attention(form="encoder-layer", heads=HEADS, projection_bias=True, layer_norm=norm, activation=act), fields, theirs)


@pytest.mark.parametrize(("norm", "act"), [CASES[0], CASES[3]])
def test_decoder_layer(torch, norm, act):
    options = {"dropout": 0.0, "activation": act, "batch_first": True, "norm_first": norm == "pre", "dtype": torch.float64}
    m = random(torch, torch.nn.TransformerDecoderLayer(WIDTH, HEADS, HIDDEN, **options), 0)
    x, c, g = inputs(torch, 1, (BATCH, N, WIDTH), (BATCH, M, WIDTH), (BATCH, N, WIDTH))
    y = m(x, c, tgt_mask=torch.ones(N, N, dtype=torch.bool).triu(1))
    y.backward(g)
    att = Attention(form="decoder-layer", heads=HEADS, projection_bias=True, causal=True, layer_norm=norm, activation=act)
    theirs = {"out": ours(y), "grad_x": ours(x.grad), "grad_memory": ours(c.grad)}
    theirs |= gradients(layer(torch, m, True, lambda p: p.grad))
    agree(att, {"x": ours(x), "memory": ours(c), "grad_out": ours(g), **layer(torch, m, True)}, theirs)


def test_next_word_with_the_tied_table(torch):
    table, wq, wk, wv, wo, g = inputs(torch, 2, (7, WIDTH), *[(WIDTH, WIDTH)] * 4, (BATCH, N, 7))
    tokens = torch.tensor([[1, 0, 3], [6, 6, 2]])
    x = table[tokens]
    q, k, v = ((x @ w).unflatten(-1, (HEADS, -1)).transpose(1, 2) for w in (wq, wk, wv))
    o = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(-2)
    y = torch.softmax(o @ wo @ table.T, -1)
    y.backward(g)
    weights = {"w_q": wq, "w_k": wk, "w_v": wv, "w_o": wo, "embedding": table}
    fields = {name: ours(w) for name, w in weights.items()} | {"tokens": tokens.numpy(), "grad_next_word": ours(g)}
    theirs = {"next_word": ours(y)} | {"grad_" + name: ours(w.grad) for name, w in weights.items()}
    att = Attention(start="tokens", heads=HEADS, causal=True, output_projection=True, next_word=True)
    agree(att, fields, theirs)


@pytest.mark.parametrize(
    "wrong",
    [{"layer_norm": "pre"}, {"activation": "gelu"}, {"layer_norm_eps": "1/10"}, {"scale": "1/sqrt(2*d)"}, {"causal": True}],
    ids=str,
)
def test_another_layer_is_caught(torch, wrong):
    fields, theirs = encoder(torch, "post", "relu")
    del fields["grad_out"]
    f = Attention(form="encoder-layer", heads=HEADS, projection_bias=True, **wrong).lambdify("numpy")
    assert np.abs(f(**fields) - theirs["out"]).max() > 1e-3
