"""What happens to the score before the softmax, and what else stands in its denominator."""

from __future__ import annotations

from symattn.variants.variant import Reduction, Variant

ROWS = (
    Variant(
        "softcap",
        "scores are bounded: 20 tanh(s/20), before the mask",
        {"softcap": 20},
        "arXiv 2408.00118, section 2",
        reduces=(Reduction("self-attention", "a cap without bound", fields={"softcap": "cap"}, inputs={"cap": "1"}, limit=True),),
    ),
    Variant(
        "alibi",
        "scores fall with the distance: s - slope_h (i - j)",
        {"causal": True, "alibi": True},
        "arXiv 2108.12409, section 3",
        (Reduction("causal", "all slopes 0", inputs={"slope": "0"}),),
    ),
    Variant(
        "bias",
        "a given bias added to the score",
        {"bias": True},
        "arXiv 1910.10683, section 2.1",
        reduces=(Reduction("self-attention", "bias = 0", inputs={"bias": "0"}),),
    ),
    Variant(
        "sink",
        "a learned logit per head in the denominator",
        {"causal": True, "sink": True},
        "arXiv 2508.10925, section 2.3",
        reduces=(
            Reduction("off-by-one", "sink = 0", inputs={"sink": "0"}),
            Reduction("causal", "sink to -oo", inputs={"sink": "-1"}, limit=True),
        ),
    ),
    Variant(
        "unscaled",
        "dot-product attention without the factor 1/sqrt(d)",
        {"scale": 1},
        "arXiv 1508.04025, section 3.1",
        reduces=(Reduction("self-attention", "d = 1", sizes={"d": "1"}),),
    ),
    Variant(
        "scalable-softmax",
        "the score grows with the logarithm of the number of keys: t s ln m",
        {"score": "t*log(m)*s"},
        "arXiv 2501.19399, section 2",
        reduces=(Reduction("self-attention", "t = 1/log(m)", inputs={"t": "1/log(m)"}),),
    ),
    Variant(
        "dropout",
        "weights dropped by a given keep-mask, the kept ones scaled by 1/(1 - p)",
        {"dropout": True},
        "arXiv 1706.03762, section 5.4",
        reduces=(Reduction("self-attention", "p = 0 and every weight kept", inputs={"p": "0", "drop": "1"}),),
    ),
)
