"""Faults of the forward pass that public threads describe."""

from __future__ import annotations

import numpy as np

from tests.quality.casts import FORMATS, low, to
from tests.quality.row import EVERY, NARROW, UP_TO_32, WIDE, Row

BOTTOM = {"causal": "bottom-right"}
TOP = {"causal": "top-left"}
LN2 = 0.6931471805599453


def unsplit(x):
    """(B, H, S, d) of memory that is laid out (B, S, H, d)."""
    return np.ascontiguousarray(x.swapaxes(1, 2)).reshape(x.shape)


def crossed(q, k, v):
    """Heads and positions swapped."""
    return tuple(x.swapaxes(1, 2) for x in (q, k, v))


def clipped(p):
    """Weights times 2^8 cannot exceed the largest 8-bit number."""
    return np.minimum(p, 448 / 256)


HEADS = (
    Row("F01", "heads tiled", {}, {"kv_head": lambda h, heads, kv: h % kv}),
    Row("F02", "split without transpose", {}, {"tensors": lambda *t: tuple(map(unsplit, t))}),
    Row(
        "F03",
        "attends over heads",
        {},
        {"tensors": crossed, "out": lambda o: o.swapaxes(1, 2), "lse_out": lambda x: x.swapaxes(1, 2)},
        kinds=("square",),
    ),
)
SCALE = (
    Row("F05", "no scale", {}, {"scale": lambda c, d, h: 1.0}),
    Row("F06", "scale 1/d", {}, {"scale": lambda c, d, h: 1 / d}),
    Row("F07", "model width", {}, {"scale": lambda c, d, h: (d * h) ** -0.5}),
    Row("F09", "inverse scale", {}, {"scale": lambda c, d, h: d**0.5}),
    Row("F11", "scale of the latent width", {"scale": "1/16"}, {"scale": lambda c, d, h: 1 / 24}, kinds=("large",)),
    Row("F12", "factor of the extended context missing", {"scale": "1.5896/sqrt(d)"}, {"scale": lambda c, d, h: d**-0.5}),
)
MASKS = (
    Row("F13", "top-left", BOTTOM, {"offset": lambda o: 0}),
    Row("F14", "strict causal", BOTTOM, {"causal": lambda i, j, o: j < i + o}),
    Row("F15", "one future key", TOP, {"causal": lambda i, j, o: j <= i + o + 1}),
    Row("F16", "causal by groups of four rows", TOP, {"causal": lambda i, j, o: j <= 4 * (i // 4) + 3}, kinds=("tall", "normal")),
    Row("F18", "window one too wide", {**BOTTOM, "window": (3, 0)}, {"left": lambda x, w: x <= w}),
    Row("F19", "window one too narrow", {**BOTTOM, "window": (3, 0)}, {"left": lambda x, w: x < w - 1}),
    Row("F26", "mask after softmax", TOP, {"drop": lambda s, k: s, "weights_after": np.multiply}, plans=("eager",)),
    Row("F27", "finite mask", BOTTOM, {"drop": lambda s, k: np.where(k, s, -1e4)}, kinds=("tall",)),
    Row("F28", "mask of -1e-9", TOP, {"drop": lambda s, k: s - np.where(k, 0, 1e-9)}),
    Row("F30", "polarity", {"attn_mask": "boolean"}, {"mask": np.logical_not}),
    Row(
        "F31",
        "masked values times 0",
        {"attn_mask": "boolean"},
        {"poisoned": True},
        kinds=("poison",),
        expected="suspect",
    ),
    Row("F32", "empty row is NaN", BOTTOM, {"empty": lambda o, v: o * np.nan}, kinds=("tall",)),
    Row("F32b", "empty row is the mean", BOTTOM, {"empty": lambda o, v: v.mean(2, keepdims=True) + 0 * o}, kinds=("tall",)),
    Row("F35", "documents leak", {"document": True}, {"document": lambda q, k: q == q}),
    Row("F54", "prefix is causal", {**TOP, "prefix": 3}, {"prefix": lambda j, p: j < 0 * p}),
)
SCORES = (
    Row("F20", "softcap dropped", {"softcap": 2}, {"cap": lambda s, c: s}, kinds=("capped", "large")),
    Row("F21", "softcap after the mask", {**TOP, "softcap": 2}, {"cap_after_mask": True}, kinds=("capped", "large")),
    Row(
        "F22a",
        "ALiBi exponent",
        {**BOTTOM, "alibi": True, "alibi_slopes": "power"},
        {"slopes": lambda s: 2.0 ** (-8 * np.arange(len(s)) / len(s))},
    ),
    Row(
        "F22b",
        "ALiBi geometric for every number of heads",
        {**BOTTOM, "alibi": True, "alibi_slopes": "interleaved"},
        {"slopes": lambda s: 2.0 ** (-8 * (np.arange(len(s)) + 1) / len(s))},
        kinds=("large",),
    ),
    Row("F22c", "ALiBi sign", {**BOTTOM, "alibi": True}, {"slopes": lambda s: -s}),
    Row("F50", "pairs of the rotation", {"rope": "half"}, {"rope_pairs": lambda style: "interleaved"}, extra={"rope": "half"}),
    Row(
        "F52",
        "weighted norm after the rotation",
        {"rope": "half", "qk_norm": "rms", "qk_norm_weight": True},
        {"norm_after_rope": True},
        extra={"rope": "half", "norm": True},
    ),
)
SINKS = (
    Row("F23", "sink dropped", {"sink": True}, {"sink": lambda b: None}),
    # in float64 e^220 is a number
    Row(
        "F25",
        "sink outside the maximum",
        {"sink": True},
        {"sink_in_maximum": False},
        kinds=("sinks", "deep"),
        plans=("three-pass", "online-16", "exp2"),
        dtypes=UP_TO_32,
    ),
)
SOFTMAX = (
    Row("F33", "zero keys behind the end", {}, {"pad": 3}, kinds=("deep", "normal")),
    # in float64 e^-200 is a number
    Row("F34", "zero keys enter the maximum", {}, {"maximum": lambda m: np.maximum(m, 0)}, ("deep",), WIDE, UP_TO_32),
    Row("F38", "softmax over queries", {}, {"axis": -2}, plans=("eager",)),
    Row("F40", "LSE of base 2", {}, {"lse_out": lambda x: x / LN2}),
    Row("F41", "LSE without the maximum", {}, {"lse": lambda top, total: np.log(total)}),
    Row("F42", "inverse rescale", {}, {"rescale": lambda old, new: np.exp(new - old)}, ("long", "square"), ("online-16", "exp2")),
    # in float64 e^-120 is a number
    Row(
        "F43",
        "maximum 0 after a masked tile",
        {"attn_mask": "boolean"},
        {"zeroed_maximum": True},
        ("under", "over"),
        ("online-16", "exp2"),
        UP_TO_32,
    ),
    Row(
        "F45",
        "finite sentinel",
        {},
        {"drop": lambda s, k: np.where(k, s, -5e4), "start": -5e4},
        ("abyss",),
        ("three-pass", "online-16", "exp2"),
    ),
    Row("F46", "no maximum", {}, {"maximum": np.zeros_like, "start": 0.0}, ("peak", "deep"), ("three-pass", "online-16", "exp2")),
    Row("F47", "products of 16 bits before the scale", {}, {"raw": to("float16")}, ("peak",), WIDE, ("float16",)),
    Row(
        "F49",
        "accumulator of 16 bits",
        {},
        lambda dtype: {"accumulator": FORMATS[low(dtype)]},
        ("flat-512", "flat-4096"),
        EVERY,
        NARROW,
        blind=(("split", "float16"),),  # a quarter of 4096 terms of 1 is exact in float16
    ),
    # sums of 16 or more ones a tile are exact in 16 bits up to 4096: tiles of 4 show it
    Row(
        "F49b",
        "output kept in 16 bits from tile to tile",
        {},
        lambda dtype: {"partial": FORMATS[dtype]},
        ("flat-4096",),
        ("online-4",),
        ("bfloat16",),
    ),
    Row(
        "F55",
        "weights in the frame of a maximum that was given up",
        {},
        {"frame": lambda used, new: new},
        ("long",),
        ("lagging-maximum",),
    ),
    Row("F56", "weights saturate, their sum does not", {}, {"probability": clipped}, ("long",), ("lagging-maximum",)),
)

ROWS = (*HEADS, *SCALE, *MASKS, *SCORES, *SINKS, *SOFTMAX)
