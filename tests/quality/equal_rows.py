"""What looks like a fault and is none, as exact algebra settles; beside each the condition under which it would be one."""

from __future__ import annotations

import numpy as np

from tests.quality.kernels.correct import CORRECT
from tests.quality.row import Row

ALIBI = {"causal": "bottom-right", "alibi": True}
TURNED = {"rope": "half", "qk_norm": "rms"}
BY_KEY = {"distance": lambda i, j, o: -j + 0 * i}
LATE = {"norm_after_rope": True}


def scaled(q, k, v):
    """The scale folded into the queries."""
    return q * q.dtype.type(q.shape[-1] ** -0.5), k, v


ROWS = (
    Row("C1", "ALiBi by the key's position alone", {**ALIBI, "lse": False}, BY_KEY, expected="pass"),
    Row("C2", "norm without weights after the rotation", TURNED, LATE, extra={"rope": "half", "norm": True}, expected="pass"),
    Row(
        "C3",
        "sink as a gate of the output",
        {"sink": True, "causal": "top-left"},
        {"sink": lambda b: None, "sink_gate": True},
        ("normal", "sinks"),
        ("three-pass", "online-16", "exp2"),
        expected="pass",
    ),
    Row(
        "C4",
        "rowsum(P o dP) for rowsum(dO o O)",
        {"dropout": True, "dropout_p": "1/4"},
        {},
        plans=("eager", "three-pass"),
        expected="pass",
    ),
    Row("C7", "sink without a row of values", {"sink": True}, {}, ("normal", "sinks"), expected="pass"),
    Row(
        "C9",
        "scale folded into the queries",
        {},
        {"tensors": scaled, "scale": lambda c, d, h: 1.0},
        plans=("three-pass", "online-16"),
        expected="pass",
    ),
    Row(
        "C10",
        "a window of all keys is the causal mask",
        {"causal": "bottom-right", "window": (40, 0)},
        {"left": lambda x, w: x == x},
        expected="pass",
    ),
    Row(
        "C11", "causal mask", {"causal": "bottom-right"}, {}, ("normal", "tall", "square"), plans=tuple(CORRECT), expected="pass"
    ),
)
"""Every kind that a row names has to pass, gradients included where nothing but the forward is changed."""

NEAR = (
    Row("C1", "ALiBi by the key's position beside a sink", {**ALIBI, "sink": True, "lse": False}, BY_KEY),
    Row(
        "C2",
        "norm with weights after the rotation",
        {**TURNED, "qk_norm_weight": True},
        LATE,
        extra={"rope": "half", "norm": True},
    ),
    Row(
        "C3",
        "sink as a gate without its LSE",
        {"sink": True},
        {"sink": lambda b: None, "sink_gate": True, "lse_out": np.zeros_like},
    ),
    Row("C10", "a window shorter than the keys", {"causal": "bottom-right", "window": (3, 0)}, {"left": lambda x, w: x == x}),
)
"""The same where it is a fault."""
