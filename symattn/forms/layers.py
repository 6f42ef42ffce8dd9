"""Encoder and decoder layers: attention blocks and a feed-forward block, each with its residual and its layer norm.

Post-norm (as published first): every block is ``norm(x + block(x))``; pre-norm: ``x + block(norm(x))``. The attention inside is
that of the other fields, from the same stages; the tensors of the decoder's cross attention are called as those of its
self-attention with an ``x`` behind them.
"""

from __future__ import annotations

from collections.abc import Callable

import sympy as sp

from symattn.building import Builder, Parameters
from symattn.forms.form import Form
from symattn.forms.renaming import called
from symattn.indexed import Tensor, name_of, size, tensor
from symattn.letters import Letters
from symattn.stages.normalizers import weights
from symattn.stages.scores import scores
from symattn.stages.sources import embedded, projections
from symattn.stages.values import dropped, projected, weighted_sum
from symattn.stages.vocabulary import next_word

CROSS = "x"
"""What stands behind the names of the cross attention's tensors."""
SHARED = frozenset({"C", "scale"})
"""What both attentions of a decoder layer read under one name."""


def encoder(b: Builder) -> tuple[str, ...]:
    """Self-attention and feed-forward."""
    return _layer(b, attention)


def decoder(b: Builder) -> tuple[str, ...]:
    """Self-attention, cross attention on the memory, and feed-forward."""
    return _layer(b, attention, cross_attention)


def _layer(b: Builder, *attentions: Callable[[Builder, str], Tensor]) -> tuple[str, ...]:
    """The blocks one after another; the last tensor is the output ``Y``."""
    b.at.sized("f", size("dmodel"))
    x = rows(b, embedded(b), b.at["a"])
    blocks = (*attentions, feed_forward)
    for k, block in enumerate(blocks, 1):
        last = k == len(blocks)
        if b.d.layer_norm == "pre":
            normed = layer_norm(b, x, k, f"N{k}")
            x = residual(b, x, block(b, name_of(normed)), "Y" if last else f"T{k}")
        else:
            x = layer_norm(b, residual(b, x, block(b, name_of(x)), f"T{k}"), k, "Y" if last else f"N{k}")
    return ("Y", *next_word(b, x))


def rows(b: Builder, name: str, *last: sp.Symbol) -> Tensor:
    """A tensor over batch, positions and ``last``."""
    return tensor(name, *b.at.batch_axes, b.at["i"], *last)


def residual(b: Builder, x: Tensor, block: Tensor, name: str) -> Tensor:
    """What goes into a block, added to what comes out of it."""
    return b.add(rows(b, name, b.at["a"]), x + rows(b, name_of(block), b.at["a"]))


def layer_norm(b: Builder, x: Tensor, k: int, name: str) -> Tensor:
    """The ``k``-th norm: every row of ``x`` with mean 0 and variance 1, times a learned gain, plus a learned shift."""
    a = b.at["a"]
    mean = b.add(rows(b, f"mu{k}"), x / size("dmodel"), a, aux=True)
    deviation = b.add(rows(b, f"Dev{k}", a), x - mean)
    variance = b.add(rows(b, f"var{k}"), deviation**2 / size("dmodel"), a, aux=True)
    spread = b.add(rows(b, f"sd{k}"), sp.sqrt(variance + b.parameters.number(b.d.layer_norm_eps)), aux=True)
    unit = b.add(rows(b, f"Unit{k}", a), deviation / spread)
    return b.add(rows(b, name, a), unit * tensor(f"gain{k}", a) + tensor(f"shift{k}", a))


def attention(b: Builder, source: str) -> Tensor:
    """``Attn``: the self-attention of the definition, its heads combined."""
    projections(b, source)
    return projected(b, weighted_sum(b, dropped(b, weights(b, scores(b)))), "Attn")


def cross_attention(b: Builder, source: str) -> Tensor:
    """``Attnx``: queries from the layer, keys and values from the memory, every position of which is visible."""
    inner = _cross_builder(b)
    out = attention(inner, source)
    own = {s.name for s in inner.statements} | {n for s in inner.statements for n in s.needs}
    names = {n: n + CROSS for n in own - SHARED - {source} - set(b.d.parameters)}
    memory = b.at.sized("t", size("m"))
    for letter in inner.at.indices:
        if letter != "j":
            b.at.sized(letter, inner.at.size_of(letter))
    known = {s.name for s in b.statements}
    b.statements += [
        called(s, names, {inner.at["j"]: memory}) for s in inner.statements if not (s.name in SHARED and s.name in known)
    ]
    return out.xreplace({out: tensor(names[name_of(out)], *out.indices)})


def _cross_builder(b: Builder) -> Builder:
    from symattn.definition import Definition

    kept = ("heads", "kv_heads", "grouping", "scale", "params", "output_projection", "projection_bias")
    d = Definition.of(start="x", cross=True, **{name: getattr(b.d, name) for name in kept})
    at = Letters(*d.head_counts, b.at.batch, False, b.at.tiled, b.at.taken)
    at.sized("f", size("dmodel"))
    return Builder(d, at, Parameters(d, at), sp.true)


def feed_forward(b: Builder, source: str) -> Tensor:
    """``FF``: two linear maps with biases, a function of every element between them."""
    a, f, z = b.at["a"], b.at["f"], b.at.sized("z", size("dff"))
    wide = b.add(rows(b, "H1lin", z), rows(b, source, a) * tensor("Wff1", a, z), a, aux=True)
    wide = b.add(rows(b, "H1", z), wide + tensor("bff1", z))
    if b.d.activation == "relu":
        bent = b.add(rows(b, "H2", z), wide, where=sp.Gt(wide, 0))
    else:
        bent = b.add(rows(b, "H2", z), wide * (1 + sp.erf(wide / sp.sqrt(2))) / 2)
    narrow = b.add(rows(b, "FFlin", f), bent * tensor("Wff2", z, f), z, aux=True)
    return b.add(rows(b, "FF", f), narrow + tensor("bff2", f))


IMPLIED = {"start": "x", "output_projection": True, "lse": False}
OWN = frozenset({"start", "output_projection", "projection_bias", "positions", "next_word", "layer_norm", "layer_norm_eps"})
OWN |= {"activation"}
WHICH_KEYS = frozenset(
    {"causal", "window", "window_counts", "window_alignment", "prefix", "document", "key_lengths", "attn_mask", "mask_axes"}
    | {"mask_polarity", "mask", "empty_row", "grouping", "scale"}
)
HOW_MUCH = frozenset(
    {"bias", "bias_axes", "softcap", "alibi", "alibi_slopes", "alibi_distance", "sink", "dropout", "dropout_p", "score"}
)

ROWS = (
    Form("encoder-layer", encoder, uses=OWN | WHICH_KEYS | HOW_MUCH, implies=IMPLIED),
    Form("decoder-layer", decoder, uses=OWN | WHICH_KEYS, implies=IMPLIED, memory=True),
)
"""The rows of this family; in a decoder layer the fields about keys speak of its self-attention."""
