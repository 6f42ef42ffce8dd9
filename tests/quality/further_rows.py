"""Faults that no list of known ones has: each has to be caught, though nothing names it. X: forward, Y: backward."""

from __future__ import annotations

import numpy as np

from tests.quality.backward_rows import SAVED
from tests.quality.casts import FORMATS, low, to
from tests.quality.row import TILED, UP_TO_32, Row

BOTTOM, TOP = {"causal": "bottom-right"}, {"causal": "top-left"}
DROPOUT = {"dropout": True, "dropout_p": "1/4"}
ANY = ("normal", "tall", "large", "integers", "one-hot", "paired", "deep", "long", "square")


STORED_IN_8_BITS = (("eager", "bfloat16"),)
STORED = (("eager", "float16"), *STORED_IN_8_BITS)
"""Where every step is stored in 16 bits, what is as small as a few such roundings cannot show."""


def coarse(x):
    """exp with a relative error of 1e-3."""
    return x * x.dtype.type(1.001)


def copied(x):
    """One row is the copy of the last."""
    x = x.copy()
    x[0, 0, 0] = x[0, 0, -1]
    return x


def zeroed_channel(x):
    """The last channel is never written."""
    x = x.copy()
    x[..., -1] = 0
    return x


def first_batch(q, k, v):
    """Every batch reads the keys of the first."""
    return q, np.broadcast_to(k[:1], k.shape), v


def without_last_channel(do, o):
    """D without its last channel."""
    return (do * o)[..., :-1].sum(-1)


def exchanged(g):
    """dK and dV in each other's place."""
    return g | {"dk": g["dv"], "dv": g["dk"]}


def louder(g):
    """dV one in a hundred too large."""
    return g | {"dv": (g["dv"].astype(np.float64) * 1.02).astype(g["dv"].dtype)}


FORWARD = (
    Row("X01", "splits averaged", {}, {"combine": lambda lse, total: 0.25 + 0 * lse}, ("normal",), ("split",)),
    Row("X02", "output is not rescaled", {}, {"rescale": lambda o, n: 1 + 0 * o}, ("long",), TILED),
    Row("X03", "sum is not rescaled", {}, {"rescale_sum": lambda o, n: 1 + 0 * o}, ("long",), TILED),
    Row("X04", "last tile skipped", {}, {"skip_tile": lambda t, n: n > 1 and t == n - 1}, ("long", "square"), TILED),
    Row("X05", "values of the row before", {}, {"values": lambda v, p: np.roll(v, 1, 2)}),
    Row("X06", "scale 1/sqrt(d + 1)", {}, {"scale": lambda c, d, h: (d + 1) ** -0.5}, ANY),
    Row(
        "X07",
        "scale off by one in a hundred",
        {},
        {"scale": lambda c, d, h: 1.01 * c},
        ("deep", "large", "normal"),
        blind=STORED_IN_8_BITS,
    ),
    Row(
        "X08",
        "softcap off by one in a hundred",
        {"softcap": 2},
        {"cap": lambda s, c: 1.01 * c * np.tanh(s / (1.01 * c))},
        ("capped", *ANY),
    ),
    Row("X09", "scores stored in bfloat16", {}, {"score": to("bfloat16")}, ANY, plans=("three-pass", "online-16", "split")),
    Row("X10", "sums in bfloat16", {}, {"total": to("bfloat16")}, ANY, plans=("three-pass", "online-16")),
    Row("X11", "exponentials in bfloat16", {}, {"exp": to("bfloat16")}, ANY, plans=("three-pass", "online-16")),
    Row("X12", "exponentials 1e-3 too large", {}, {"exp": coarse}, ANY, plans=("three-pass", "online-16", "exp2")),
    Row("X13", "a row copied", {}, {"out": copied}),
    Row("X14", "last channel 0", {}, {"out": zeroed_channel}),
    Row("X15", "keys of the first batch", {}, {"tensors": first_batch}),
    Row("X16", "queries backwards", {}, {"tensors": lambda q, k, v: (q[:, :, ::-1], k, v)}),
    Row("X17", "sink doubled", {"sink": True}, {"sink": lambda b: b + np.log(b.dtype.type(2))}),
    Row("X18", "ALiBi by absolute distance", {"alibi": True}, {"distance": lambda i, j, o: abs(i + o - j)}, ("tall", "large")),
    Row("X19", "dropout without its factor", DROPOUT, {"dropout": lambda p, kept, rate: np.where(kept, p, 0)}),
    Row("X20", "bias added before the scale", {"bias": True}, {"add": lambda x: x / np.sqrt(x.dtype.type(6))}),
    Row("X21", "a padding key is read", {"key_lengths": True}, {"length": lambda n: n + 1}),
    Row("X22", "key heads shifted", {}, {"kv_head": lambda h, heads, kv: (h // (heads // kv) + 1) % kv}),
    Row("X23", "one added to the sum", {}, {"total": lambda x: x + 1}, plans=("eager",)),
    Row("X24", "mask transposed", {"attn_mask": "boolean"}, {"mask": lambda k: k[..., ::-1]}),
    Row("X25", "LSE kept in 16 bits", {}, lambda dtype: {"lse_out": to(low(dtype))}, ANY, blind=STORED),
    Row(
        "X26", "output in bfloat16 and back", {}, {"out": to("bfloat16")}, dtypes=("float64", "float32", "float16"), blind=STORED
    ),
    Row("X27", "window to the right is open", {"window": (2, 1)}, {"right": lambda x, w: x == x}),
    Row("X28", "weights in 8 bits", {}, {"probability": to("float8_e4m3fn")}, ANY, plans=("three-pass", "online-16")),
    Row("X29", "one key counted twice", {}, {"tensors": lambda q, k, v: (q, np.concatenate([k[:, :, :1], k[:, :, :-1]], 2), v)}),
)
BACKWARD = (
    Row("Y01", "D without its last channel", {}, {"delta": without_last_channel}, plans=SAVED),
    Row("Y02", "dK and dV exchanged", {}, {"grads": exchanged}),
    Row("Y03", "dV two in a hundred too large", {}, {"grads": louder}, ANY, blind=STORED_IN_8_BITS),
    Row("Y04", "LSE read in 16 bits", {}, lambda dtype: {"saved_lse": to(low(dtype))}, ANY, SAVED),
    Row(
        "Y05",
        "a tile of the backward skipped",
        {},
        {"only_back": {"skip_tile": lambda t, n: n > 1 and t == n - 1}},
        ("long", "square"),
        ("online-16-backwards", "queries-first"),
    ),
    Row("Y06", "mask shifted", TOP, {"only_back": {"causal": lambda i, j, o: j <= i + o + 1}}, plans=SAVED),
    Row("Y07", "softcap's derivative 1 - t", {"softcap": 2}, {"cap_slope": lambda t: 1 - t}, ("capped", "large")),
    Row("Y08", "mean over the group", {}, {"grouped": lambda x: x.mean(1)}),
    Row("Y09", "dP in 16 bits", {}, lambda dtype: {"grad_weight": to(low(dtype))}, ANY, SAVED, UP_TO_32),
    Row(
        "Y10",
        "key tile shifted by one",
        {},
        {"key_of_tile": lambda t: slice(t.start - 1, t.stop - 1)},
        ("long", "square"),
        ("online-16",),
    ),
    Row("Y11", "weights rebuilt from scores of bfloat16", {}, {"recomputed": to("bfloat16")}, ANY, SAVED),
    Row(
        "Y12",
        "dropout's factor missing in dV",
        DROPOUT,
        {"only_back": {"dropout": lambda p, kept, rate: np.where(kept, p, 0)}},
        plans=SAVED,
    ),
    # in 16-bit kernels dS is rounded as much
    Row(
        "Y15",
        "dQ grows in bfloat16",
        {},
        {"query_buffer": FORMATS["bfloat16"]},
        ("long", "square"),
        ("online-16",),
        ("float64", "float32"),
    ),
    Row("Y13", "sign of dLSE", {}, {"grad_lse": np.negative}),
    Row(
        "Y14",
        "dBias of the first head everywhere",
        {"bias": True},
        {"reduced": lambda x, axes: (x[:, :1] + 0 * x).sum(axes, keepdims=True)},
    ),
)
ROWS = (*FORWARD, *BACKWARD)
