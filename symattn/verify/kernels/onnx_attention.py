"""The ONNX operator Attention: as ONNX's own reference evaluates it, and as ONNX Runtime runs it. Forward only, no LSE."""

from __future__ import annotations

from typing import Any

import numpy as np

from symattn import measured
from symattn.arithmetic import Arithmetic
from symattn.intake import Array, to_numpy
from symattn.verify.kernels import masks
from symattn.verify.kernels.bands import Band, band
from symattn.verify.kernels.base import Deviation, Kernel, Tensors, leaks
from symattn.verify.kernels.call import Call
from symattn.verify.kernels.onnx_node import Node, by_onnxruntime, by_reference

INPUTS = ("Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen")
LENGTHS, WINDOWS = 24, 25
"""The first opsets whose Attention has lengths of keys, and windows."""


def node(call: Call, opset: int) -> Node:
    """The Attention node for the call: a causal flag, lengths or a window of its own where these say it all, else a mask."""
    feed: dict[str, Array] = {"Q": call.query, "K": call.key, "V": call.value}
    attributes: dict[str, Any] = {}
    given = _lengths(call) if opset >= LENGTHS else None
    seen = band(call) if call.additive is None else None
    if given is not None:
        lengths, causal = given
        feed["nonpad_kv_seqlen"] = lengths
        attributes |= {"is_causal": 1} if causal else {}
    elif seen is not None and _has(opset, seen):
        sides = {"left_window_size": seen.left, "right_window_size": None if seen.causal else seen.right}
        attributes |= {"is_causal": 1} if seen.causal else {}
        attributes |= {name: size for name, size in sides.items() if size is not None}
    elif (mask := masks.combined(call)) is not None:
        feed["attn_mask"] = mask
    if call.definition.scale is not None:
        attributes["scale"] = call.scale
    if call.definition.softcap is not None:
        attributes["softcap"] = call.number(call.definition.softcap)
    return Node("Attention", INPUTS, feed, ("Y",), opset, attributes=attributes)


def _has(opset: int, seen: Band) -> bool:
    """Whether an opset's attributes can say the band."""
    return seen.holds_diagonal if opset >= WINDOWS else seen.left is None and seen.right in (0, None)


def _lengths(call: Call) -> tuple[Array, bool] | None:
    """The lengths of the keys where these, with or without a causal mask that ends there, are all that the definition masks."""
    if not call.definition.key_lengths or call.additive is not None:
        return None
    lengths = call.fields["key_lengths"].astype(np.int64)
    n, m = call.score_shape[2:]
    i, j, stop = np.arange(n)[:, None], np.arange(m), lengths.reshape(-1, 1, 1, 1)
    there = j < stop
    for causal, pairs in ((False, there), (True, there & (j <= i + stop - n))):
        if (call.keep == pairs).all():
            return lengths, causal
    return None


class OnnxReference(Kernel):
    """``onnx:reference``: ONNX's reference evaluator."""

    name = "onnx:reference"
    about = "the reference evaluator of ONNX's Attention operator, forward only, no LSE"
    packages: tuple[str, ...] = ("onnx",)
    known: tuple[Deviation, ...] = (leaks("onnx 1.23"),)
    dtypes: tuple[str, ...] = ("float64", "float32", "float16")
    opset = 24

    def takes_dtype(self, dtype: str) -> bool:
        """Not bfloat16 nor 8 bits."""
        return dtype in self.dtypes

    def unsupported(self, call: Call) -> str | None:
        """It knows scale, softcap before the mask, masks and grouped heads, and gives 0 for a row without keys."""
        if not self.takes_dtype(str(call.dtype)):
            return f"it does not compute in {call.dtype}"
        return masks.beyond(call, empty_row="zero", knows=(*masks.PLAIN, "softcap", "base"))

    def arithmetic(self, call: Call) -> Arithmetic:
        """One NumPy operation after the other, each result in the inputs' dtype; Q and K both scaled by the root of the scale."""
        return measured.onnx_reference(str(call.dtype))

    def forward(self, call: Call) -> Tensors:
        """Output only."""
        return {"out": to_numpy(by_reference(node(call, self.opset))[0], "out")}


class OnnxRuntime(OnnxReference):
    """``onnxruntime:attention`` of opset 24 (lengths of keys) and others: ONNX Runtime's CPU provider."""

    packages = ("onnx", "onnxruntime")
    known = (leaks("ONNX Runtime 1.32"),)

    def __init__(self, name: str, opset: int) -> None:
        self.name, self.opset = name, opset
        self.about = f"the Attention operator of opset {opset} in ONNX Runtime's CPU provider, forward only, no LSE"

    def arithmetic(self, call: Call) -> Arithmetic:
        """One operation after the other, each result stored in the inputs' dtype; the scale in float32."""
        return measured.onnxruntime(str(call.dtype))

    def forward(self, call: Call) -> Tensors:
        """Output only."""
        return {"out": to_numpy(by_onnxruntime(node(call, self.opset))[0], "out")}


KERNELS: tuple[Kernel, ...] = (
    OnnxRuntime("onnxruntime:attention", 24),
    OnnxRuntime("onnxruntime:attention-23", 23),
    OnnxRuntime("onnxruntime:attention-25", 25),
    OnnxReference(),
)
