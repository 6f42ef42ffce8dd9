"""Where a query and a key stand: rotations, distances and biases that depend on their positions."""

from __future__ import annotations

from symattn.variants.variant import Reduction, Variant

_PLAIN = (Reduction("self-attention", "all frequencies 0", {"rope_frequencies": 0}),)
_ROTATIONS = "10000**(-2*p/r)*2048/(2*pi)"
"""How often a pair turns within the length of 2048 that a model was trained on."""

ROWS = (
    Variant(
        "rope",
        "channels c and c + d/2 of queries and keys are turned by position times 10000^(-2c/d)",
        {"rope": "half"},
        "arXiv 2104.09864, section 3.2.2; halves as pairs: arXiv 2302.13971, the published code",
        _PLAIN,
    ),
    Variant(
        "rope-interleaved",
        "neighbouring channels 2p and 2p + 1 are turned by position times 10000^(-2p/d)",
        {"rope": "interleaved"},
        "arXiv 2104.09864, equation 34",
        _PLAIN,
    ),
    Variant(
        "rope-partial",
        "only the first channels are turned, the others know no position",
        {"rope": "half", "rope_dim": 2},
        "arXiv 2204.06745, section 2.1.1",
        (Reduction("rope", "all channels are turned: r = d", {"rope_dim": None}), *_PLAIN),
    ),
    Variant(
        "rope-decode",
        "the queries are the last positions of the keys: query i stands at i + m - n",
        {"rope": "half", "rope_offset": "bottom-right", "causal": "bottom-right"},
        "mlx-vlm issue 1983",
        (Reduction("causal-bottom-right", "all frequencies 0", {"rope_frequencies": 0}),),
    ),
    Variant(
        "rope-linear",
        "longer contexts by slower turning: every frequency is divided by a factor",
        {"rope": "half", "rope_frequencies": "10000**(-2*p/r)/factor"},
        "arXiv 2306.15595, equation 4",
        (Reduction("rope", "factor = 1", inputs={"factor": "1"}),),
    ),
    Variant(
        "rope-ntk",
        "longer contexts by a larger base: 10000 factor^(r/(r - 2))",
        {"rope": "half", "rope_dim": 4, "rope_frequencies": "(10000*factor**(r/(r - 2)))**(-2*p/r)"},
        "arXiv 2309.00071, section 3.1",
        (Reduction("rope", "factor = 1, r = d", {"rope_dim": None}, {"factor": "1"}),),
    ),
    Variant(
        "yarn",
        "slow pairs are slowed by the factor 4, fast ones left, a ramp between; all scores times (0.1 ln 4 + 1)^2",
        {
            "rope": "half",
            "rope_frequencies": f"10000**(-2*p/r)*(1/4 + 3/4*min(max(({_ROTATIONS} - 1)/31, 0), 1))",
            "rope_amplitude": "log(4)/10 + 1",
        },
        "arXiv 2309.00071, sections 3.2 and 3.4",
        (Reduction("rope", "factor 1, amplitude 1", {"rope_frequencies": None, "rope_amplitude": 1}),),
    ),
    Variant(
        "rope-after-norm",
        "queries and keys are divided by their rms and weighted, then turned",
        {"qk_norm": "rms", "qk_norm_weight": True, "qk_norm_eps": "1e-6", "rope": "half"},
        "arXiv 2505.09388, section 2; vllm-metal issue 659",
        (Reduction("qk-norm", "all frequencies 0", {"rope_frequencies": 0}),),
    ),
    Variant(
        "norm-after-rope",
        "queries and keys are turned, then divided by their rms and weighted: another thing where weights of a pair differ",
        {"qk_norm": "rms", "qk_norm_weight": True, "qk_norm_eps": "1e-6", "qk_norm_order": "after-rope", "rope": "half"},
        "nanochat pull request 743",
        (
            Reduction("rope-after-norm", "all weights 1", inputs={"gQ": "1", "gK": "1"}),
            Reduction("qk-norm", "all frequencies 0", {"rope_frequencies": 0}),
        ),
    ),
    Variant(
        "alibi-power",
        "ALiBi with the published slopes 2^(-8(h + 1)/H)",
        {"causal": True, "alibi": True, "alibi_slopes": "power", "heads": 4},
        "arXiv 2108.12409, section 3",
    ),
    Variant(
        "alibi-interleaved",
        "ALiBi for head counts that are no power of two: every other slope of the next power for the rest",
        {"causal": True, "alibi": True, "alibi_slopes": "interleaved", "heads": 3},
        "arXiv 2108.12409, the published code, get_slopes",
    ),
    Variant(
        "relative-keys",
        "a learned vector of the clipped distance is added to the key: q.(k + a)",
        {"relative": "keys", "relative_clip": 2},
        "arXiv 1803.02155, section 3.2",
        (Reduction("self-attention", "all vectors 0", inputs={"aK": "0"}),),
    ),
    Variant(
        "relative-recurrent",
        "content and distance have scores of their own, each with a learned bias: (q + u).k + (q + v).r",
        {"relative": "recurrent", "causal": "bottom-right"},
        "arXiv 1901.02860, section 3.3",
        (Reduction("causal-bottom-right", "u = 0, all r = 0", inputs={"uR": "0", "rK": "0"}),),
    ),
    Variant(
        "bucket-bias",
        "a learned bias per head and bucket of distances, and no factor 1/sqrt(d)",
        {"buckets": True, "scale": 1},
        "arXiv 1910.10683, section 2.1",
        (Reduction("unscaled", "all biases 0", inputs={"Bkt": "0"}),),
    ),
)
