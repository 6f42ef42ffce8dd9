"""ONNX Runtime's own MultiHeadAttention and GroupQueryAttention (domain com.microsoft) on the CPU; forward only, no LSE."""

from __future__ import annotations

from typing import Any

import numpy as np

from symattn import measured
from symattn.arithmetic import Arithmetic
from symattn.intake import Array
from symattn.verify.kernels import masks
from symattn.verify.kernels.bands import Band, band
from symattn.verify.kernels.base import Deviation, Kernel, Tensors, leaks
from symattn.verify.kernels.call import Call
from symattn.verify.kernels.onnx_node import Node, by_onnxruntime

DOMAIN, OPSET = "com.microsoft", 21
MHA = ("query", "key", "value", "bias", "key_padding_mask", "attention_bias")
GQA = (
    *("query", "key", "value", "past_key", "past_value", "seqlens_k", "total_sequence_length"),
    *("cos_cache", "sin_cache", "position_ids", "attention_bias", "head_sink"),
)
PADDED = -10_000.0
"""What MultiHeadAttention adds to the scores of padded keys."""


class Contributed(Kernel):
    """What the two operators share: formats, packages, tensors with the heads side by side."""

    packages = ("onnx", "onnxruntime")
    dtypes = ("float32", "float16")

    def takes_dtype(self, dtype: str) -> bool:
        """float32 and float16."""
        return dtype in self.dtypes


class MultiHead(Contributed):
    """``onnxruntime:mha``: com.microsoft.MultiHeadAttention; a causal flag, padded keys, a bias."""

    name = "onnxruntime:mha"
    grouped = False
    about = "com.microsoft.MultiHeadAttention in ONNX Runtime's CPU provider, forward only, no LSE"
    known = (
        Deviation(
            ("out",),
            lambda call: _flagged(call) and call.score_shape[2] < call.score_shape[3],
            "with unidirectional=1 and fewer queries than keys the last query sees all keys, the others j <= i (seen on ONNX "
            "Runtime 1.32)",
        ),
        Deviation(
            ("out",),
            lambda call: call.definition.key_lengths and _padding_shows(call),
            "padded keys get -10000 added and are not left out: rows whose other scores are lower by more see them (seen on ONNX "
            "Runtime 1.32)",
        ),
        leaks("ONNX Runtime 1.32"),
    )

    def unsupported(self, call: Call) -> str | None:
        """It knows scale, masks and bias; no grouped heads; NaN for a row without keys."""
        if not self.takes_dtype(str(call.dtype)):
            return f"it does not compute in {call.dtype}"
        return masks.beyond(call, empty_row="nan", knows=("narrow", "base"))

    def arithmetic(self, call: Call) -> Arithmetic:
        """float32: one operation after the other; float16: computed in float32 and rounded at the end."""
        return measured.onnxruntime_mha(str(call.dtype))

    def forward(self, call: Call) -> Tensors:
        """Output only."""
        feed = {x: _beside(call.fields[x]) for x in ("query", "key", "value")}
        attributes: dict[str, Any] = {"num_heads": call.query.shape[1]}
        if call.definition.scale is not None:
            attributes["scale"] = call.scale
        if _flagged(call):
            attributes["unidirectional"] = 1
        elif _only_padded(call):
            feed["key_padding_mask"] = np.ascontiguousarray(call.keep[:, 0, 0]).astype(np.int32)
        elif (add := masks.additive_mask(call)) is not None:
            feed["attention_bias"] = np.broadcast_to(add, (*add.shape[:2], *call.score_shape[2:]))
        (out,) = by_onnxruntime(Node("MultiHeadAttention", MHA, feed, ("output",), OPSET, DOMAIN, attributes))
        return {"out": _apart(out, call.query.shape[1])}


class GroupQuery(Contributed):
    """``onnxruntime:gqa``: com.microsoft.GroupQueryAttention; causal from the last key on, window, softcap, sinks, past keys.

    Heads are padded with zeros to a multiple of 8, and where there are more keys than queries, the first ones are the past.
    """

    name = "onnxruntime:gqa"
    about = "com.microsoft.GroupQueryAttention in ONNX Runtime's CPU provider, forward only, no LSE"
    known = (leaks("ONNX Runtime 1.32"),)

    def unsupported(self, call: Call) -> str | None:
        """It knows scale, softcap before the mask, masks and bias, sinks and grouped heads; no more queries than keys."""
        if not self.takes_dtype(str(call.dtype)):
            return f"it does not compute in {call.dtype}"
        knows = ("groups", "softcap", "sink", "base", "normalizer")
        if call.definition.normalizer not in ("softmax", "off-by-one"):
            return f"it has no normalizer={call.definition.normalizer}"
        if call.score_shape[2] > call.score_shape[3]:
            return "it needs at least as many keys as queries"
        return masks.beyond(call, empty_row="nan", knows=knows)

    def arithmetic(self, call: Call) -> Arithmetic:
        """Everything in float32; float16 rounded at the end."""
        return measured.onnxruntime_gqa(str(call.dtype))

    def forward(self, call: Call) -> Tensors:
        """Output only; one element of the batch after the other, which the operator asks for where there is a past."""
        rows = [self._row(call, b) for b in range(call.query.shape[0])]
        return {"out": np.concatenate(rows)}

    def _row(self, call: Call, b: int) -> Array:
        heads, n, m = call.score_shape[1:]
        width = call.value.shape[3]
        q, k, v = (_padded(call.fields[x][b : b + 1]) for x in ("query", "key", "value"))
        past = m - n
        feed: dict[str, Array] = {"query": _beside(q), "key": _beside(k[:, :, past:]), "value": _beside(v[:, :, past:])}
        if past:
            feed |= {"past_key": k[:, :, :past], "past_value": v[:, :, :past]}
        feed |= {"seqlens_k": np.full(1, m - 1, np.int32), "total_sequence_length": np.array(m, np.int32)}
        attributes: dict[str, Any] = {"num_heads": heads, "kv_num_heads": k.shape[1]}
        if call.definition.scale is not None or width != q.shape[3]:
            attributes["scale"] = call.scale
        if call.definition.softcap is not None:
            attributes["softcap"] = call.number(call.definition.softcap)
        if call.definition.sink:
            feed["head_sink"] = call.fields["sinks"]
        if call.definition.normalizer == "off-by-one":
            attributes["smooth_softmax"] = 1
        seen = band(call, past) if call.additive is None else None
        if seen is not None and seen.causal and seen.holds_diagonal:
            attributes |= {} if seen.left is None else {"local_window_size": seen.left + 1}
        else:
            attributes["causal"] = 0
            if (add := masks.additive_mask(call)) is not None:
                add = np.broadcast_to(add, (*add.shape[:2], n, m))
                feed["attention_bias"] = add[b : b + 1] if add.shape[0] > 1 else add
        outputs = ("output", "present_key", "present_value")
        out = by_onnxruntime(Node("GroupQueryAttention", GQA, feed, outputs, OPSET, DOMAIN, attributes))[0]
        return _apart(out, heads)[..., :width]


def _flagged(call: Call) -> bool:
    return call.additive is None and band(call) == Band(None, 0)


def _only_padded(call: Call) -> bool:
    return call.additive is None and call.definition.key_lengths and bool((call.keep == call.keep[:, :1, :1]).all())


def _padding_shows(call: Call) -> bool:
    """Whether a padded key with 10000 taken off could have a weight in some row."""
    q, k = (call.fields[x].astype(np.float64) for x in ("query", "key"))
    scores = q @ np.repeat(k, q.shape[1] // k.shape[1], axis=1).swapaxes(2, 3) * call.scale
    seen = np.where(call.keep, scores, -np.inf).max(-1)
    hidden = np.where(call.keep, -np.inf, scores).max(-1) + PADDED
    return bool((hidden > seen - 110).any())  # exp(-110) is below the smallest number of float32


def _beside(x: Array) -> Array:
    """(B, H, n, d) as (B, n, H d)."""
    b, heads, n, d = x.shape
    return np.ascontiguousarray(x.transpose(0, 2, 1, 3)).reshape(b, n, heads * d)


def _apart(x: Array, heads: int) -> Array:
    """(B, n, H d) as (B, H, n, d)."""
    b, n, width = x.shape
    return x.reshape(b, n, heads, width // heads).transpose(0, 2, 1, 3)


def _padded(x: Array) -> Array:
    """The last axis filled with zeros up to a multiple of 8."""
    return np.pad(x, [(0, 0)] * 3 + [(0, -x.shape[3] % 8)])


KERNELS: tuple[Kernel, ...] = (MultiHead(), GroupQuery())
