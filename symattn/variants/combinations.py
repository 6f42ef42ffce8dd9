"""Several maps, heads or tokens combined into one weight, and gates on keys and outputs."""

from __future__ import annotations

from symattn.variants.variant import Reduction, Variant

ROWS = (
    Variant(
        "differential",
        "the difference of two attention maps: what both attend to is noise and cancels",
        {"differential": True},
        "arXiv 2410.05258, section 2.1, equations 1 and 2",
        (Reduction("self-attention", "lambda = 0", inputs={"lq1": "0", "lq2": "0", "lam0": "0"}),),
    ),
    Variant(
        "differential-heads",
        "the layer of the paper: causal, each head's output over its root mean square and times 1 - lambda_init",
        {"causal": True, "heads": 2, "differential": True, "head_norm": True},
        "arXiv 2410.05258, section 2.1, equation 3; github.com/microsoft/unilm, Diff-Transformer",
    ),
    Variant(
        "talking-heads",
        "scores and weights are mixed across the heads, before and after the softmax",
        {"heads": 2, "head_mixing": "both"},
        "arXiv 2003.02436, section 4",
        (
            Reduction(
                "self-attention",
                "one head, both matrices 1",
                fields={"heads": 1, "kv_heads": 1},
                inputs={"mixS": "1", "mixP": "1"},
            ),
        ),
    ),
    Variant(
        "multi-token",
        "scores are convolved over neighbouring queries and keys before the softmax",
        {"causal": True, "multi_token": (2, 3)},
        "arXiv 2504.00927, section 3.1, equations 3 and 4",
        (Reduction("causal", "a kernel of the one entry 1", fields={"multi_token": (1, 1)}, inputs={"kern": "1"}),),
    ),
    Variant(
        "forgetting",
        "a key counts less with every forget gate between it and the query",
        {"causal": True, "forgetting": True},
        "arXiv 2503.02130, section 3.1",
        (Reduction("causal", "all gates open: their logits grow", inputs={"fg": "1"}, limit=True),),
    ),
    Variant(
        "output-gate",
        "the output passes a gate of its own before it leaves the head",
        {"output_gate": True},
        "arXiv 2505.06708, section 3.1",
        (Reduction("self-attention", "the gate open: its logits grow", inputs={"og": "1"}, limit=True),),
    ),
)
"""The rows of this family."""
