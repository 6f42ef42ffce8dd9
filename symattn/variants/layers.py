"""What stands around the attention: positions, the next word, and whole layers."""

from __future__ import annotations

from symattn.variants.variant import Reduction, Variant

ROWS = (
    Variant(
        "sinusoidal-positions",
        "sines and cosines of the position, slower from pair to pair, added to the embedded words",
        {"start": "tokens", "positions": "sinusoidal"},
        "arXiv 1706.03762, section 3.5",
    ),
    Variant(
        "learned-positions",
        "a learned vector for each position added to the embedded words",
        {"start": "tokens", "positions": "learned"},
        "arXiv 1705.03122, section 3.1",
        (Reduction("self-attention-tokens", "all vectors of positions 0", inputs={"PE": "0"}),),
    ),
    Variant(
        "next-word",
        "probabilities of the next word: the output compared with the embedding table, and a softmax",
        {"start": "tokens", "causal": True, "output_projection": True, "next_word": True},
        "arXiv 1608.05859, section 2; arXiv 1706.03762, section 3.4",
    ),
    Variant(
        "multi-head-attention",
        "a layer's attention block: projections of X with biases, heads, and W_O",
        {"start": "x", "heads": 2, "output_projection": True, "projection_bias": True},
        "torch.nn.MultiheadAttention",
        (Reduction("multi-head-projections", "biases 0", inputs={"bQ": "0", "bK": "0", "bV": "0", "bO": "0"}),),
    ),
    Variant(
        "encoder-layer",
        "self-attention and feed-forward, each with a residual and a layer norm after it",
        {"form": "encoder-layer", "heads": 2, "projection_bias": True},
        "arXiv 1706.03762, section 3.1; torch.nn.TransformerEncoderLayer",
    ),
    Variant(
        "encoder-layer-pre-norm",
        "the layer norm before each block, and the residual around both",
        {"form": "encoder-layer", "heads": 2, "projection_bias": True, "layer_norm": "pre", "activation": "gelu"},
        "arXiv 2002.04745, section 3; arXiv 1606.08415 (gelu)",
    ),
    Variant(
        "decoder-layer",
        "causal self-attention, cross attention on the memory, and feed-forward, each with a residual and a layer norm after it",
        {"form": "decoder-layer", "heads": 2, "projection_bias": True, "causal": True},
        "arXiv 1706.03762, section 3.1; torch.nn.TransformerDecoderLayer",
    ),
    Variant(
        "decoder-layer-pre-norm",
        "the layer norm before each block of the decoder layer",
        {"form": "decoder-layer", "heads": 2, "projection_bias": True, "causal": True, "layer_norm": "pre"},
        "arXiv 2002.04745, section 3",
    ),
)
