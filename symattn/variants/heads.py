"""Where Q, K and V come from, and how the heads share them."""

from __future__ import annotations

from symattn.variants.variant import Reduction, Variant

ROWS = (
    Variant("self-attention", "softmax(Q K^T / sqrt(d)) V for given Q, K, V", {}, "arXiv 1706.03762, equation 1"),
    Variant(
        "multi-head",
        "several heads side by side, each with its own Q, K, V",
        {"heads": 4},
        "arXiv 1706.03762, section 3.2.2",
        reduces=(Reduction("self-attention", "one head", fields={"heads": 1, "kv_heads": 1}),),
    ),
    Variant(
        "grouped-query",
        "groups of query heads share one key/value head",
        {"heads": 4, "kv_heads": 2},
        "arXiv 2305.13245, section 2.2",
        reduces=(
            Reduction("multi-head", "as many key/value heads as query heads", fields={"kv_heads": 4}),
            Reduction("multi-query", "one key/value head", fields={"kv_heads": 1}),
        ),
    ),
    Variant(
        "multi-query",
        "all query heads share one key/value head",
        {"heads": 4, "kv_heads": 1},
        "arXiv 1911.02150, section 3",
        reduces=(Reduction("multi-head", "as many key/value heads as query heads", fields={"kv_heads": 4}),),
    ),
    Variant(
        "self-attention-projections",
        "Q, K and V are projections of one sequence X",
        {"start": "x"},
        "arXiv 1706.03762, section 3.2.2",
    ),
    Variant(
        "self-attention-tokens",
        "a sentence looked up in an embedding table, then projected",
        {"start": "tokens"},
        "arXiv 1706.03762, section 3.4",
    ),
    Variant(
        "cross-attention",
        "queries from one sequence, keys and values from a memory",
        {"start": "x", "cross": True},
        "arXiv 1706.03762, section 3.2.3",
    ),
    Variant(
        "multi-head-projections",
        "the whole layer: projections of X, heads, and W_O over all heads",
        {"start": "x", "heads": 2, "output_projection": True},
        "arXiv 1706.03762, section 3.2.2",
    ),
)
