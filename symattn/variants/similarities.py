"""How a query and a key are compared: norms before the product, and other things than the dot product."""

from __future__ import annotations

from symattn.variants.variant import Reduction, Variant

ROWS = (
    Variant(
        "general",
        "a learned matrix between query and key: q W k",
        {"similarity": "general", "scale": 1},
        "arXiv 1508.04025, section 3.1",
    ),
    Variant(
        "additive",
        "a small network compares query and key: w . tanh(W q + U k)",
        {"similarity": "additive", "scale": 1},
        "arXiv 1409.0473, appendix A.1.2",
    ),
    Variant(
        "concat",
        "the same with one matrix for query and key side by side: w . tanh(W [q; k])",
        {"similarity": "concat", "scale": 1},
        "arXiv 1508.04025, section 3.1",
    ),
    Variant(
        "cosine",
        "the cosine of the angle between query and key, times a learned factor",
        {"qk_norm": "l2", "scale": "g"},
        "arXiv 2010.04245, section 3",
    ),
    Variant(
        "qk-norm",
        "queries and keys are divided by their rms, and weighted per channel",
        {"qk_norm": "rms", "qk_norm_weight": True, "qk_norm_eps": "1e-6"},
        "arXiv 2501.00656, section 2.1; norms of queries and keys: arXiv 2302.05442, section 2",
        (
            Reduction(
                "cosine",
                "all weights 1, no epsilon, scale g/d",
                {"qk_norm_eps": None, "scale": "g/d"},
                {"gQ": "1", "gK": "1"},
            ),
        ),
    ),
    Variant(
        "key-smoothing",
        "the mean of all keys is taken off every key, which low-bit formats hold better",
        {"key_smoothing": True},
        "arXiv 2410.02367, section 4.2",
        reduces=(Reduction("self-attention", "always, but for the log-sum-exp", outputs=("O",)),),
    ),
)
