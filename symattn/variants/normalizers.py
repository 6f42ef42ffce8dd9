"""How scores become weights, in the place of the softmax."""

from __future__ import annotations

from symattn.variants.variant import Variant

ROWS = (
    Variant(
        "off-by-one",
        "a query may attend to nothing: one more in the denominator, exp(s) / (1 + sum of exp(s))",
        {"causal": True, "normalizer": "off-by-one"},
        "E. Miller, Attention Is Off By One, evanmiller.org, 2023",
    ),
    Variant(
        "sigmoid-attention",
        "each weight by itself: the sigmoid of the score minus the logarithm of the number of keys",
        {"normalizer": "sigmoid", "score": "s - log(m)"},
        "arXiv 2409.04431, section 2 and appendix E",
    ),
    Variant(
        "sparsemax",
        "the nearest point of the simplex: many weights are 0",
        {"normalizer": "sparsemax"},
        "arXiv 1602.02068, section 2",
    ),
    Variant(
        "entmax-1.5",
        "between softmax and sparsemax: squares of what stands above a threshold",
        {"normalizer": "entmax15"},
        "arXiv 1905.05702, section 3",
    ),
    Variant(
        "stick-breaking",
        "from the latest key to the first, each takes its part of what is left of the weight",
        {"causal": -1, "normalizer": "stick-breaking"},
        "arXiv 2410.17980, section 3",
    ),
    Variant(
        "unnormalized",
        "the scores are the weights: linear attention without a normalizer, in the order of a softmax attention",
        {"causal": True, "normalizer": "none", "scale": 1},
        "arXiv 2102.11174, section 4",
    ),
)
"""The rows of this family."""
