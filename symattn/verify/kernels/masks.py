"""What framework kernels have in common: the mask that a definition's visible pairs make, and what they cannot compute."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import numpy as np

from symattn.intake import Array
from symattn.verify.kernels.call import Call


def beyond(call: Call, *, empty_row: str, knows: Collection[str] = ()) -> str | None:
    """Why a kernel that knows scale, masks and grouped heads cannot compute this call, or None.

    Parameters
    ----------
    empty_row
        What the kernel gives for a query without keys; another convention is refused only where such a row exists.
    knows
        What else it knows, by names of :data:`FURTHER`, or names of other fields of the definition.
    """
    d = call.definition
    if unknown := beyond_names(call, knows):
        return f"it has no {unknown}"
    for name, (said, asked) in FURTHER.items():
        if name not in knows and asked(call):
            return said
    if call.has_empty_row and d.empty_row != empty_row:
        return f"a row without keys gives {empty_row!r} there, and empty_row={d.empty_row!r} is asked"
    return None


FURTHER: Mapping[str, tuple[str, Callable[[Call], bool]]] = {
    "score": ("it has no score text", lambda call: call.definition.score is not None),
    "mask": ("it has no mask text", lambda call: call.definition.mask is not None),
    "softcap": ("it has no softcap", lambda call: call.definition.softcap is not None),
    "alibi": ("it has no ALiBi", lambda call: call.definition.alibi),
    "sink": ("it has no sink", lambda call: call.definition.sink),
    "dropout": ("it has no given dropout mask", lambda call: call.definition.dropout),
    "base": ("it has no LSE in base 2", lambda call: call.definition.lse and call.definition.lse_base == "2"),
    "tiled": ("it has no tiled head grouping", lambda call: not np.array_equal(call.kv_head, call.kv_head_interleaved)),
    "both": (
        "it has no bias beside an additive mask",
        lambda call: call.definition.bias and call.definition.attn_mask == "additive",
    ),
    "groups": ("it has no grouped heads", lambda call: call.query.shape[1] != call.key.shape[1]),
    "narrow": ("it needs values as wide as keys", lambda call: call.query.shape[3] != call.value.shape[3]),
}
"""What not every kernel knows: a name, what a refusal says, and whether a call asks for it. ``base``: no LSE, or any base."""

PLAIN = ("groups", "narrow")
"""What most kernels know."""


NAMED = frozenset(
    {"heads", "kv_heads", "causal", "window", "window_counts", "window_alignment", "prefix", "document", "key_lengths"}
    | {"attn_mask", "mask_axes", "mask_polarity", "bias", "bias_axes", "softcap", "alibi", "alibi_slopes", "alibi_distance"}
    | {"sink", "empty_row", "grouping", "scale", "lse", "lse_base", "dropout", "dropout_p", "score", "mask", "params"}
    | {"algorithm", "block"}
)
"""The fields that kernels of softmax attention may know; an algorithm changes nothing in what is computed."""


def beyond_names(call: Call, knows: Collection[str] = ()) -> str | None:
    """A field of the definition that no kernel of plain softmax attention computes, and this one does not know, or None."""
    names = NAMED | set(knows)
    return next((f"{name}={value}" for name, value in call.definition.changed.items() if name not in names), None)


def is_plain_causal(call: Call) -> bool:
    """Whether the visible pairs are those of ``j <= i`` and nothing is added."""
    n, m = call.score_shape[2:]
    return call.additive is None and bool((call.keep == np.tri(n, m, dtype=bool)).all())


def boolean_mask(call: Call) -> Array | None:
    """The visible pairs (B, H, n, m), True attends; None where all are."""
    return None if call.keep.all() else call.keep


def combined(call: Call) -> Array | None:
    """What a kernel with one mask argument takes: the Boolean mask, or the additive one where something is added."""
    return boolean_mask(call) if call.additive is None else additive_mask(call)


def additive_mask(call: Call) -> Array | None:
    """What is added to the scores (B, H, n, m) in the dtype of the query, -inf where a pair may not attend; None for nothing."""
    if call.additive is None and call.keep.all():
        return None
    add = np.zeros((1, 1, 1, 1), call.dtype) if call.additive is None else call.additive.astype(call.dtype)
    return np.where(call.keep, add, np.array(-np.inf, call.dtype)).astype(call.dtype)


def finite(add: Array) -> Array:
    """What is added, with 0 in place of -inf: for kernels that take the dropped pairs as a Boolean mask beside it."""
    return np.where(np.isneginf(add.astype(np.float64)), np.zeros((), add.dtype), add)
