"""The places of an attention kernel where kernels go wrong, each with what is right there.

A fault is a mapping from such places to what a wrong kernel has in them; everything else of the kernel stays as it is. Shapes:
scores are (B, H, n, m), rows (B, H, n); ``i``, ``j`` are integer arrays (n, 1) and (1, m).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

LN2 = 0.6931471805599453

RIGHT: dict[str, Any] = {
    # which numbers go in
    "tensors": lambda q, k, v: (q, k, v),
    "kv_head": lambda h, heads, kv: h // (heads // kv),
    "rope": None,  # "half" or "interleaved"
    "rope_pairs": lambda style: style,
    "positions": lambda n: np.arange(n),
    "norm": False,  # divided by the root mean square, times q_norm_weight and k_norm_weight
    "norm_after_rope": False,
    "norm_weight": lambda w: w,
    # scores
    "scale": lambda c, d, heads: c,
    "scale_first": True,  # where results are stored: the root of the scale on both operands
    "raw": lambda r: r,
    "score": lambda s: s,
    "cap": lambda s, cap: cap * np.tanh(s / cap),
    "cap_after_mask": False,
    "slopes": lambda slopes: slopes,
    "distance": lambda i, j, offset: i + offset - j,
    "add": lambda x: x,
    # who sees whom
    "offset": lambda offset: offset,
    "causal": lambda i, j, offset: j <= i + offset,
    "prefix": lambda j, prefix: j < prefix,
    "left": lambda distance, left: distance < left,
    "right": lambda distance, right: -distance <= right,
    "mask": lambda keep: keep,
    "document": lambda q, k: q == k,
    "length": lambda length: length,
    "visible": lambda keep: keep,
    "drop": lambda s, keep: np.where(keep, s, s.dtype.type(-np.inf)),
    "only_back": None,  # places that are wrong in the backward alone
    "poisoned": False,  # masked values are multiplied by 0 instead of left out
    # softmax
    "axis": -1,
    "start": -np.inf,  # of the running maximum
    "maximum": lambda top: top,
    "sink": lambda b: b,
    "sink_in_maximum": True,
    "sink_gate": False,  # the sink joins at the end: the output times sigmoid(L - b)
    "pad": 0,  # zero keys behind the last tile that take part
    "zeroed_maximum": False,  # after a tile without keys the maximum is 0
    "rescale": lambda old, new: np.exp(old - new),
    "rescale_sum": lambda old, new: np.exp(old - new),
    "frame": lambda used, new: used,
    "exp": lambda x: x,
    "weights_after": lambda p, keep: p,
    "total": lambda x: x,
    "probability": lambda p: p,
    "values": lambda v, p: v,
    "accumulator": None,  # a dtype that the output is accumulated in, term by term
    "partial": None,  # a dtype that the output is kept in from tile to tile
    "skip_tile": lambda tile, tiles: False,
    "dropout": lambda p, kept, rate: np.where(kept, p / (1 - rate), 0),
    "combine": lambda lse, total: np.exp(lse - total),
    "lse": lambda top, total: top + np.log(total),
    "lse_out": lambda lse: lse,
    "empty": lambda out, v: np.zeros_like(out),
    "empty_lse": -np.inf,
    "out": lambda out: out,
    # backward
    "delta": lambda grad_out, out: (grad_out * out).sum(-1),
    "minus_delta": lambda d, rate: -d,
    "grad_lse": lambda g: g,
    "recomputed": lambda z: z,
    "saved_lse": lambda lse: lse,
    "grad_weight": lambda dp: dp,
    "dropped_gradient": lambda dp, kept, rate: np.where(kept, dp / (1 - rate), 0),
    "cap_slope": lambda t: 1 - t * t,
    "grad_score": lambda ds: ds,
    "scale_query": lambda c: c,
    "scale_key": lambda c: c,
    "probability_back": lambda p: p,
    "group": lambda h, heads, kv: h // (heads // kv),
    "grouped": lambda x: x.sum(1),
    "key_of_tile": lambda tile: tile,
    "grad_sink": lambda terms: terms.sum((0, 2)),
    "reduced": lambda x, axes: x.sum(axes, keepdims=True),
    "query_buffer": None,  # a dtype that dQ is kept in from tile to tile, and dK and dV
    "key_buffer": None,
    "empty_back": 0.0,
    "tail_back": 0,  # zero keys behind the last tile that take part in the backward
    "grads": lambda g: g,
}


def points(wrong: Mapping[str, Any]) -> SimpleNamespace:
    """All places, the wrong ones replaced. A name that is no place is a mistake of a test."""
    unknown = set(wrong) - set(RIGHT)
    if unknown:
        raise KeyError(f"no such place: {', '.join(sorted(unknown))}")
    return SimpleNamespace(**{**RIGHT, **wrong})
