"""What framework kernels have in common: the mask that a definition's visible pairs make, and what they cannot compute."""

from __future__ import annotations

import numpy as np

from symattn.intake import Array
from symattn.verify.kernels.call import Call


def beyond(call: Call, *, empty_row: str, softcap: bool = False, dropout: bool = False, base: bool = False) -> str | None:
    """Why a kernel that knows scale, masks and grouped heads cannot compute this call, or None.

    Parameters
    ----------
    empty_row
        What the kernel gives for a query without keys; another convention is refused only where such a row exists.
    softcap, dropout, base
        Whether the kernel knows these too (base: it gives no LSE, or in any base).
    """
    d = call.definition
    if unknown := beyond_names(call):
        return f"it has no {unknown}"
    lacks = {
        "a score text": d.score is not None,
        "a mask text": d.mask is not None,
        "softcap": d.softcap is not None and not softcap,
        "ALiBi": d.alibi,
        "a sink": d.sink,
        "a given dropout mask": d.dropout and not dropout,
        "an LSE in base 2": d.lse and d.lse_base == "2" and not base,
        "tiled head grouping": not np.array_equal(call.kv_head, call.kv_head_interleaved),
        "a bias beside an additive mask": d.bias and d.attn_mask == "additive",
    }
    missing = [what for what, is_so in lacks.items() if is_so]
    if missing:
        return f"it has no {missing[0].removeprefix('a ')}" if missing[0].startswith("a ") else f"it has no {missing[0]}"
    if call.has_empty_row and d.empty_row != empty_row:
        return f"a row without keys gives {empty_row!r} there, and empty_row={d.empty_row!r} is asked"
    return None


NAMED = frozenset(
    {"heads", "kv_heads", "causal", "window", "window_counts", "window_alignment", "prefix", "document", "key_lengths"}
    | {"attn_mask", "mask_axes", "mask_polarity", "bias", "bias_axes", "softcap", "alibi", "alibi_slopes", "alibi_distance"}
    | {"sink", "empty_row", "grouping", "scale", "lse", "lse_base", "dropout", "dropout_p", "score", "mask", "params"}
    | {"algorithm", "block"}
)
"""The fields that kernels of softmax attention may know; an algorithm changes nothing in what is computed."""


def beyond_names(call: Call) -> str | None:
    """A field of the definition that no kernel of plain softmax attention computes, or None."""
    return next((f"{name}={value}" for name, value in call.definition.changed.items() if name not in NAMED), None)


def is_plain_causal(call: Call) -> bool:
    """Whether the visible pairs are those of ``j <= i`` and nothing is added."""
    n, m = call.score_shape[2:]
    return call.additive is None and bool((call.keep == np.tri(n, m, dtype=bool)).all())


def boolean_mask(call: Call) -> Array | None:
    """The visible pairs (B, H, n, m), True attends; None where all are."""
    return None if call.keep.all() else call.keep


def additive_mask(call: Call) -> Array | None:
    """What is added to the scores (B, H, n, m) in the dtype of the query, -inf where a pair may not attend; None for nothing."""
    if call.additive is None and call.keep.all():
        return None
    add = np.zeros((1, 1, 1, 1), call.dtype) if call.additive is None else call.additive.astype(call.dtype)
    return np.where(call.keep, add, np.array(-np.inf, call.dtype)).astype(call.dtype)


def finite(add: Array) -> Array:
    """What is added, with 0 in place of -inf: for kernels that take the dropped pairs as a Boolean mask beside it."""
    return np.where(np.isneginf(add.astype(np.float64)), np.zeros((), add.dtype), add)
