"""A state in place of weights: linear attention, retention, gates and the delta rule."""

from __future__ import annotations

from symattn.variants.variant import Reduction, Variant

_CAUSAL = {"form": "linear", "causal": True, "scale": "1"}

ROWS = (
    Variant(
        "linear-attention",
        "products of features take the place of exponentials, so that all keys fit into one state",
        {"form": "linear", "feature": "elu", "normalized": True},
        "arXiv 2006.16236, section 3.2",
        (Reduction("linear-attention", "the keys are summed first", fields={"evaluation": "recurrent"}),),
    ),
    Variant(
        "causal-linear-attention",
        "linear attention in which a query reads the state as it is after its own key",
        {"form": "linear", "causal": True, "feature": "elu", "normalized": True},
        "arXiv 2006.16236, section 3.3",
        (
            Reduction("causal-linear-attention", "evaluated step by step", fields={"evaluation": "recurrent"}),
            Reduction("causal-linear-attention", "evaluated in chunks of 2", fields={"evaluation": "chunked", "block": 2}),
        ),
    ),
    Variant(
        "unnormalised-linear-attention",
        "the causal sum of k v^T, read by the queries as it is",
        _CAUSAL,
        "arXiv 2102.11174, section 3",
    ),
    Variant(
        "retention",
        "the state of head h fades by the factor 1 - 2^(-5-h) at every step",
        {"form": "linear", "causal": True, "decay": "retention", "heads": 2},
        "arXiv 2307.08621, section 2",
        (
            Reduction("retention", "evaluated step by step", fields={"evaluation": "recurrent"}),
            Reduction("retention", "evaluated in chunks of 2", fields={"evaluation": "chunked", "block": 2}),
        ),
    ),
    Variant(
        "decayed-linear-attention",
        "the state of each head fades by a given factor at every step",
        {**_CAUSAL, "decay": "head"},
        "arXiv 2307.08621, section 2.1",
        (Reduction("unnormalised-linear-attention", "decay = 1", inputs={"gam": "1"}),),
    ),
    Variant(
        "scalar-gated-linear-attention",
        "the state of each head fades by a factor of its own at each step: a state space model with a scalar decay",
        {**_CAUSAL, "decay": "step"},
        "arXiv 2405.21060 (Mamba-2)",
        (
            Reduction("unnormalised-linear-attention", "decay = 1", inputs={"Al": "1"}),
            Reduction("scalar-gated-linear-attention", "evaluated in chunks of 2", fields={"evaluation": "chunked", "block": 2}),
        ),
    ),
    Variant(
        "gated-linear-attention",
        "every key channel of the state fades by a factor of its own at each step",
        {**_CAUSAL, "decay": "channel"},
        "arXiv 2312.06635, section 4",
        (
            Reduction("unnormalised-linear-attention", "decay = 1", inputs={"Ac": "1"}),
            Reduction("gated-linear-attention", "evaluated step by step", fields={"evaluation": "recurrent"}),
        ),
    ),
    Variant(
        "delta-rule",
        "a step writes only what the state does not yet say of its key, beta times",
        {**_CAUSAL, "delta": True},
        "arXiv 2102.11174, section 4.2; arXiv 2406.06484, section 2.2",
        (
            Reduction("delta-rule", "evaluated step by step", fields={"evaluation": "recurrent"}),
            Reduction("delta-rule", "evaluated in chunks of 2, by the WY form", fields={"evaluation": "chunked", "block": 2}),
        ),
    ),
    Variant(
        "gated-delta-rule",
        "the state fades by a factor at each step, then the delta rule writes",
        {**_CAUSAL, "decay": "step", "delta": True},
        "arXiv 2412.06464, section 3.1",
        (
            Reduction("delta-rule", "decay = 1", inputs={"Al": "1"}),
            Reduction("gated-delta-rule", "evaluated in chunks of 2", fields={"evaluation": "chunked", "block": 2}),
        ),
    ),
    Variant(
        "channel-gated-delta-rule",
        "the delta rule on a state every key channel of which fades by a factor of its own",
        {**_CAUSAL, "decay": "channel", "delta": True},
        "arXiv 2510.26692 (Kimi Delta Attention)",
        (Reduction("delta-rule", "decay = 1", inputs={"Ac": "1"}),),
    ),
)
"""The rows of this family."""
