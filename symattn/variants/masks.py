"""Which keys a query may see."""

from __future__ import annotations

from symattn.variants.variant import Variant

ROWS = (
    Variant("causal", "no key after the query: j <= i", {"causal": True}, "arXiv 1706.03762, section 3.2.3"),
    Variant(
        "causal-bottom-right",
        "the last query sees the last key: j <= i + m - n",
        {"causal": "bottom-right"},
        "flash-attention change log, 2.1; mlx pull request 2967",
    ),
    Variant(
        "sliding-window",
        "causal, and no key further back than the window: i - j < 4",
        {"causal": True, "window": (4, None), "window_counts": "keys"},
        "arXiv 2310.06825, section 2",
    ),
    Variant(
        "local-window",
        "a window to both sides: |i - j| <= 2",
        {"window": (2, 2), "window_counts": "distance"},
        "arXiv 2004.05150, section 3.1",
    ),
    Variant(
        "prefix",
        "the first keys are visible to every query: j <= i or j < prefix",
        {"causal": True, "prefix": "prefix"},
        "arXiv 1910.10683, section 3.2.1",
    ),
    Variant(
        "document",
        "several documents packed into one sequence do not see each other",
        {"causal": True, "document": True},
        "arXiv 2107.02027, section 3.2",
    ),
    Variant("padding", "keys from a given length on are padding", {"key_lengths": True}, "ONNX operator Attention, opset 24"),
    Variant("boolean-mask", "a given mask, True attends", {"attn_mask": "boolean"}, "torch scaled_dot_product_attention"),
    Variant("additive-mask", "a given mask added to the score", {"attn_mask": "additive"}, "torch scaled_dot_product_attention"),
)
