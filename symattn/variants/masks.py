"""Which keys a query may see."""

from __future__ import annotations

from symattn.variants.variant import Reduction, Variant


def near(i: str, j: str, length: str, width: int) -> str:
    """The condition that position ``j`` is in the window of ``width`` around ``i``, which is shifted inside at the borders."""
    start = f"min(max({i} - {width // 2}, 0), {length} - {width})"
    return f"{start} <= {j} and {j} < {start} + {width}"


_NATTEN = "arXiv 2204.07143, section 3.1"

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
    Variant(
        "dilated-window",
        "every second key of a causal window: i - j < 8 and even",
        {"mask": "j <= i and i - j < 8 and (i - j) % 2 == 0"},
        "arXiv 2004.05150, section 3.1",
    ),
    Variant(
        "global-tokens",
        "a local window, and two tokens that see all keys and that all queries see",
        {"mask": "abs(i - j) <= 2 or i < 2 or j < 2"},
        "arXiv 2004.05150, section 3.1",
    ),
    Variant(
        "sink-tokens",
        "a causal window, and the first keys, which every query goes on to see",
        {"mask": "j <= i and (i - j < 4 or j < 2)"},
        "arXiv 2309.17453, section 3.2",
    ),
    Variant(
        "document-window",
        "documents packed into one sequence, causal, within a window: three conditions joined by and",
        {"causal": True, "document": True, "window": (4, None)},
        "arXiv 2310.06825, section 2; arXiv 2107.02027, section 3.2",
        reduces=(Reduction("sliding-window", "one document", inputs={"doc_q": "0", "doc_k": "0"}),),
    ),
    Variant(
        "shared-prefix",
        "requests that share their first keys: the prefix, or a key of the query's own request that is not after it",
        {"mask": "j < m - n or (request[i] == owner[j] and j <= i + m - n)"},
        "arXiv 2402.05099, section 3.1",
        reduces=(Reduction("causal-bottom-right", "one request", inputs={"request": "0", "owner": "0"}),),
    ),
    Variant(
        "block-causal",
        "block diffusion when it samples: all of the query's own block and of the blocks before",
        {"mask": "j//2 <= i//2"},
        "arXiv 2503.09573, section 3.2",
    ),
    Variant(
        "block-diffusion",
        "block diffusion in training: noisy tokens see their block and the clean ones before it, clean ones clean blocks",
        {
            "mask": "(i < n//2 and j < n//2 and i//2 == j//2) or (i < n//2 and j >= n//2 and (j - n//2)//2 < i//2)"
            " or (i >= n//2 and j >= n//2 and (j - n//2)//2 <= (i - n//2)//2)"
        },
        "arXiv 2503.09573, section 3.2 and appendix B.6",
    ),
    Variant(
        "tree",
        "a tree of drafts after a cache: its keys, and the ancestors of the query, by numbers on entering and leaving a node",
        {"mask": "j < m - n or (enter[j] <= node[i] and node[i] < leave[j])"},
        "arXiv 2305.09781, section 4.2",
    ),
    Variant(
        "neighbourhood-1d",
        "the three nearest keys of a line; at its ends the window is shifted inside",
        {"mask": near("i", "j", "m", 3)},
        _NATTEN,
    ),
    Variant(
        "neighbourhood-2d",
        "the 3 x 3 nearest keys of a grid with rows of 4",
        {"mask": f"{near('i//4', 'j//4', 'm//4', 3)} and {near('i%4', 'j%4', '4', 3)}"},
        _NATTEN,
    ),
    Variant(
        "neighbourhood-3d",
        "the 3 x 1 x 1 nearest keys of a box with faces of 2 x 2",
        {"mask": f"{near('i//4', 'j//4', 'm//4', 3)} and i//2%2 == j//2%2 and i%2 == j%2"},
        _NATTEN,
    ),
)
