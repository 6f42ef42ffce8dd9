"""Correct kernels that differ in arithmetic alone (tiles, exp2, log-probabilities, formats of P), and what each declares."""

from __future__ import annotations

from typing import Any

from symattn.arithmetic import Arithmetic, eager, flash, inside_float32, log_probabilities, uniform
from tests.quality.kernels.plan import NARROW, Plan

LAG = 5.545177444479562  # 8 in base 2, as shipped kernels have it


def stored(dtype: str) -> Arithmetic:
    """Every step stored in the input's dtype."""
    return eager(dtype)


def wide(dtype: str) -> Arithmetic:
    """Nothing stored but the results."""
    return inside_float32(dtype) if dtype in NARROW else uniform(f"wide-{dtype}", dtype)


def tiled(tile: int, **changes: Any) -> Any:
    """An online softmax with so many keys a tile."""
    return lambda dtype: flash(dtype, tile=tile, **changes)


def grows(tile: int, **fields: Any) -> Any:
    """A tiled kernel whose gradients grow in the input's dtype."""
    return lambda dtype: flash(dtype, tile=tile, **{k: dtype if v == "input" else v for k, v in fields.items()})


_ONLINE = [
    Plan(f"online-{tile}{'-backwards' * back}", "online", tiled(tile), tile=tile, backwards=back)
    for tile, back in ((4, False), (16, False), (16, True), (32, False), (64, True), (128, False), (256, False), (512, False))
]
CORRECT: dict[str, Plan] = {
    plan.name: plan
    for plan in (
        Plan("eager", "eager", stored),
        Plan("three-pass", "three-pass", wide, tile=16),
        *_ONLINE,
        Plan("exp2", "online", tiled(32), base2=True),
        Plan("lagging-maximum", "online", tiled(16, stale=LAG), tile=16, stale=LAG),
        Plan("split", "split", tiled(1, merged=True), splits=4),
        Plan("split-tiles", "split", tiled(16, merged=True), splits=2, tile=16),
        Plan(
            "p-bfloat16",
            "online",
            tiled(32, probability="bfloat16", gradient="bfloat16"),
            probability="bfloat16",
            dtypes=("float32", "float16", "bfloat16"),
        ),
        Plan("queries-first", "online", tiled(16, query_tile=4), tile=16, query_tile=4),
        Plan("dq-grows", "online", grows(16, dq_accumulate="input"), tile=16, dq_format="input", dtypes=NARROW),
        Plan(
            "dkv-grows",
            "online",
            grows(16, dkv_accumulate="input", query_tile=4),
            tile=16,
            query_tile=4,
            dkv_format="input",
            dtypes=NARROW,
        ),
        Plan("log-probabilities", "log", log_probabilities),
    )
}
"""By name."""

DEFINITIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"causal": "bottom-right"},
    "causal top-left": {"causal": "top-left"},
    "window": {"causal": "bottom-right", "window": (3, 0)},
    "two-sided window": {"window": (2, 1)},
    "scale": {"scale": "1/8"},
    "softcap": {"softcap": 2, "causal": "top-left"},
    "alibi": {"alibi": True, "causal": "bottom-right"},
    "sink": {"sink": True, "causal": "bottom-right"},
    "boolean": {"attn_mask": "boolean"},
    "additive": {"attn_mask": "additive"},
    "bias": {"bias": True},
    "dropout": {"dropout": True, "dropout_p": "1/4"},
    "documents": {"document": True},
    "lengths": {"key_lengths": True, "causal": "bottom-right"},
    "prefix": {"causal": "top-left", "prefix": 2},
    "lse base 2": {"lse_base": "2"},
    "uniform empty row": {"causal": "bottom-right", "empty_row": "uniform"},
    "nan empty row": {"causal": "bottom-right", "empty_row": "nan"},
    "all": {"softcap": 2, "alibi": True, "sink": True, "causal": "bottom-right", "window": (3, 1), "attn_mask": "additive"},
}
"""Definitions that each ask for a part of the calling convention."""
