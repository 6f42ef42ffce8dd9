"""The two functions that FlexAttention takes, of score and visible pairs, made from the fields of a definition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from symattn.verify.kernels.arrays import to_framework
from symattn.verify.kernels.call import Call

Mod = Callable[..., Any]
ADDED = ("attn_mask", "bias", "alibi_slopes")
"""What the score takes from given arrays, in the order in which :func:`score_mod` gets them: they have gradients."""


@dataclass(frozen=True)
class Score:
    """``function(score, b, h, i, j, *arrays)`` and its arrays by field name; ``arrays`` are tensors that may have gradients."""

    function: Mod
    arrays: dict[str, Any]


def score_mod(call: Call) -> Score:
    """Softcap, then ALiBi, bias and what an additive mask adds, in the order of the definition's program.

    -inf in an additive mask is left to :func:`mask_mod`.
    """
    import torch

    d = call.definition
    cap = None if d.softcap is None else call.number(d.softcap)
    arrays: dict[str, Any] = {}
    for name, axes, there in (("attn_mask", d.mask_axes, d.attn_mask == "additive"), ("bias", d.bias_axes, d.bias)):
        if there:
            spread = call.spread(name, axes)
            arrays[name] = to_framework(np.where(np.isneginf(spread), np.zeros((), spread.dtype), spread), "torch")
    if call.slopes is not None:
        arrays["alibi_slopes"] = to_framework(np.asarray(call.slopes), "torch")
    distance = _distance(call) if call.slopes is not None else None
    absolute = d.alibi_distance == "absolute"
    names = tuple(arrays)

    def function(score: Any, b: Any, h: Any, i: Any, j: Any, *given: Any) -> Any:
        found = dict(zip(names, given, strict=True))
        if cap is not None:
            score = cap * torch.tanh(score / cap)
        if distance is not None:
            away = distance(b, i, j)
            score = score - found["alibi_slopes"][h] * (away.abs() if absolute else away)
        for name in ("bias", "attn_mask"):
            if name in found:
                score = score + _read(found[name], b, h, i, j)
        return score

    return Score(function, arrays)


def mask_mod(call: Call) -> Mod:
    """Whether query i may attend to key j: each field of the definition that hides pairs, and all of them together."""
    import torch

    d, n = call.definition, call.score_shape[2]
    lengths = to_framework(call.fields["key_lengths"], "torch") if d.key_lengths else None
    end: Mod = (lambda b: lengths[b]) if lengths is not None else (lambda b: call.score_shape[3])
    parts: list[Mod] = []
    if lengths is not None:
        parts.append(lambda b, h, i, j: j < lengths[b])
    if d.causal is not None:
        parts.append(_causal(call, end))
    if d.window is not None:
        left, right = d.window
        away = _distance(call)
        if left is not None:
            widest = left - 1 if d.window_counts == "keys" else left
            parts.append(lambda b, h, i, j: away(b, i, j) <= widest)
        if right is not None:
            parts.append(lambda b, h, i, j: -away(b, i, j) <= right)
    if d.document:
        of_query, of_key = (to_framework(x.reshape(-1, x.shape[-1]), "torch") for x in call.documents)
        parts.append(lambda b, h, i, j: of_query[_element(of_query, b), i] == of_key[_element(of_key, b), j])
    if d.attn_mask is not None:
        given = call.spread("attn_mask", d.mask_axes)
        visible = to_framework(~np.isneginf(given) if d.attn_mask == "additive" else given.astype(bool), "torch")
        drops = d.attn_mask == "boolean" and d.mask_polarity == "drop"
        parts.append(lambda b, h, i, j: _read(visible, b, h, i, j) != drops)

    def function(b: Any, h: Any, i: Any, j: Any) -> Any:
        seen = (i >= 0) & (i < n) & (j >= 0)
        for part in parts:
            seen = torch.logical_and(seen, part(b, h, i, j))
        return seen

    return function


def _causal(call: Call, end: Mod) -> Mod:
    d, n = call.definition, call.score_shape[2]
    aligned, prefix = d.causal, call.prefix
    first = to_framework(prefix.reshape(-1), "torch") if isinstance(prefix, np.ndarray) else prefix

    def visible(b: Any, h: Any, i: Any, j: Any) -> Any:
        seen = j <= i + _offset(aligned, end(b), n)
        if first is not None:
            seen = seen | (j < (first if isinstance(first, (int, float)) else first[_element(first, b)]))
        return seen

    return visible


def _distance(call: Call) -> Mod:
    """How far key j lies before query i, as the definition measures it."""
    d, (_, _, n, m) = call.definition, call.score_shape
    start = d.window_alignment if d.window_alignment is not None else d.causal if d.causal is not None else "bottom-right"
    lengths = to_framework(call.fields["key_lengths"], "torch") if d.key_lengths else None

    def distance(b: Any, i: Any, j: Any) -> Any:
        return i + _offset(start, m if lengths is None else lengths[b], n) - j

    return distance


def _offset(alignment: Any, length: Any, n: int) -> Any:
    if alignment == "top-left":
        return 0
    return length - n if alignment == "bottom-right" else int(alignment)


def _element(x: Any, b: Any) -> Any:
    """The place of a batch element in an array that may be shared by all."""
    return b if x.shape[0] > 1 else b - b


def _read(x: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
    """The element of an array (B, H, n, m) some of whose axes may have size 1."""
    return x[tuple(at if size > 1 else at - at for at, size in zip((b, h, i, j), x.shape, strict=True))]
