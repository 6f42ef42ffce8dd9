"""Faults of the backward pass that public threads describe."""

from __future__ import annotations

import numpy as np

from tests.quality.casts import low, summed, to
from tests.quality.row import UP_TO_32, Row

LN2 = 0.6931471805599453
BOTTOM, TOP = {"causal": "bottom-right"}, {"causal": "top-left"}
DROPOUT = {"dropout": True, "dropout_p": "1/4"}
SAVED = ("online-16", "online-16-backwards", "exp2", "split", "queries-first")
"""Kernels whose backward starts from the saved output and LSE."""
EVERY = ("eager", "three-pass", *SAVED)


def last_batch(x, axes):
    """The last of the batch where all of it is meant."""
    return (x[-1:] if 0 in axes else x).sum(tuple(a for a in axes if a), keepdims=True)


def before(tile):
    """The keys of the shard before."""
    return slice(tile.start - (tile.stop - tile.start), tile.start)


ROWS = (
    Row("B01", "dK without scale", {}, {"scale_key": lambda c: 1.0}, plans=EVERY),
    Row("B02", "dQ without scale", {}, {"scale_query": lambda c: 1.0}, plans=EVERY),
    Row("B03", "dQ times log2 e", {}, {"scale_query": lambda c: c / LN2}, plans=EVERY),
    Row("B04", "last head of the group alone", {}, {"grouped": lambda x: x[:, -1]}, plans=EVERY),
    Row("B06", "groups by remainder", {}, {"group": lambda h, heads, kv: h % kv}, plans=EVERY),
    Row("B07", "D omitted", {}, {"minus_delta": lambda d, rate: 0 * d}, plans=EVERY),
    Row("B09", "mask ignored", TOP, {"only_back": {"visible": np.ones_like}}, plans=SAVED),
    Row("B11", "window one too wide", {**BOTTOM, "window": (3, 0)}, {"only_back": {"left": lambda x, w: x <= w}}, plans=SAVED),
    Row("B12", "derivative of the softcap", {"softcap": 2}, {"cap_slope": np.ones_like}, ("capped", "large"), EVERY),
    Row("B13", "dSink is 0", {"sink": True}, {"grad_sink": lambda t: 0 * t.sum((0, 2))}, ("sinks", "normal"), EVERY),
    Row(
        "B15",
        "terms of dSink rounded to 16 bits",
        {"sink": True},
        lambda dtype: {"grad_sink": lambda t: summed(t, low(dtype))},
        ("square", "tall", "sinks", "normal", "large", "integers"),
        SAVED,
    ),
    Row("B16", "dLSE ignored", {}, {"grad_lse": lambda g: 0 * g}, plans=EVERY),
    Row("B17", "dMask of the last batch", {"attn_mask": "additive", "mask_axes": "ij"}, {"reduced": last_batch}, plans=EVERY),
    Row("B19", "D times 1 - p", DROPOUT, {"minus_delta": lambda d, rate: -(1 - rate) * d}, plans=EVERY),
    Row("B20", "dP is not dropped", DROPOUT, {"dropped_gradient": lambda dp, kept, rate: dp}, plans=EVERY),
    Row("B22", "keys of the shard before", {}, {"key_of_tile": before}, ("long", "square"), ("online-16", "online-16-backwards")),
    Row("B25", "empty row is NaN", BOTTOM, {"empty_back": np.nan}, ("tall",), SAVED),
    Row("B26", "scores recomputed in float16", {}, {"recomputed": to("float16")}, ("deep", "over"), SAVED),
    Row(
        "B28",
        "D in 16 bits",
        {},
        lambda dtype: {"minus_delta": lambda d, rate: -to(low(dtype))(d)},
        ("tall", "normal", "square", "integers", "large", "one-hot", "paired"),
        SAVED,
    ),
    # in float64 e^200 is a number
    Row("B29", "zero keys behind the end", {}, {"tail_back": 1}, ("over", "deep"), ("online-16", "exp2", "split"), UP_TO_32),
)
