"""Which keys a query may see."""

from __future__ import annotations

from symattn.variants.variant import Reduction, Variant

ROWS = (
    Variant("causal", "no key after the query: j <= i", {"causal": True}, "arXiv 1706.03762, section 3.2.3"),
    Variant(
        "causal-bottom-right",
        "the last query sees the last key: j <= i + m - n",
        {"causal": "bottom-right"},
        "flash-attention change log, 2.1; mlx pull request 2967",
        reduces=(Reduction("causal", "as many keys as queries, m = n", sizes={"m": "n"}),),
    ),
    Variant(
        "sliding-window",
        "causal, and no key further back than the window: i - j < 4",
        {"causal": True, "window": (4, None), "window_counts": "keys"},
        "arXiv 2310.06825, section 2",
        reduces=(Reduction("causal", "a window that is longer than the sequence", fields={"window": (1000, None)}),),
    ),
    Variant(
        "local-window",
        "a window to both sides: |i - j| <= 2",
        {"window": (2, 2), "window_counts": "distance"},
        "arXiv 2004.05150, section 3.1",
        reduces=(Reduction("self-attention", "a window that is longer than the sequence", fields={"window": (1000, 1000)}),),
    ),
    Variant(
        "prefix",
        "the first keys are visible to every query: j <= i or j < prefix",
        {"causal": True, "prefix": "prefix"},
        "arXiv 1910.10683, section 3.2.1",
        reduces=(
            Reduction("causal", "prefix = 0", inputs={"prefix": "0"}),
            Reduction("self-attention", "prefix = m", inputs={"prefix": "m"}),
        ),
    ),
    Variant(
        "document",
        "several documents packed into one sequence do not see each other",
        {"causal": True, "document": True},
        "arXiv 2107.02027, section 3.2",
        reduces=(Reduction("causal", "one document", inputs={"doc_q": "0", "doc_k": "0"}),),
    ),
    Variant(
        "padding",
        "keys from a given length on are padding",
        {"key_lengths": True},
        "ONNX operator Attention, opset 24",
        reduces=(Reduction("self-attention", "no padding, len = m", inputs={"len": "m"}),),
    ),
    Variant(
        "boolean-mask",
        "a given mask, True attends",
        {"attn_mask": "boolean"},
        "torch scaled_dot_product_attention",
        reduces=(Reduction("self-attention", "True everywhere", inputs={"M": "1"}),),
    ),
    Variant(
        "additive-mask",
        "a given mask added to the score",
        {"attn_mask": "additive"},
        "torch scaled_dot_product_attention",
        reduces=(Reduction("self-attention", "0 everywhere", inputs={"B": "0"}),),
    ),
)
