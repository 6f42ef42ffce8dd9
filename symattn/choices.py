"""The words that fields of a definition allow, and which fields may be absent."""

from __future__ import annotations

from collections.abc import Mapping

CHOICES: Mapping[str, tuple[str, ...]] = {
    "start": ("qkv", "x", "tokens"),
    "causal": ("top-left", "bottom-right"),
    "window_alignment": ("top-left", "bottom-right"),
    "window_counts": ("keys", "distance"),
    "attn_mask": ("boolean", "additive"),
    "mask_polarity": ("attend", "drop"),
    "alibi_slopes": ("given", "power", "interleaved"),
    "alibi_distance": ("signed", "absolute"),
    "empty_row": ("zero", "nan", "uniform", "error"),
    "grouping": ("interleaved", "tiled"),
    "lse_base": ("e", "2"),
    "algorithm": ("online", "flash", "split", "ring", "paged"),
    "positions": ("sinusoidal", "learned"),
    "similarity": ("dot", "general", "additive", "concat"),
    "rope": ("half", "interleaved"),
    "rope_offset": ("top-left", "bottom-right"),
    "qk_norm": ("rms", "l2"),
    "qk_norm_order": ("before-rope", "after-rope"),
    "relative": ("keys", "recurrent"),
    "normalizer": ("softmax", "off-by-one", "sigmoid", "sparsemax", "entmax15", "stick-breaking", "none"),
    "head_mixing": ("scores", "weights", "both"),
    "layer_norm": ("post", "pre"),
    "activation": ("relu", "gelu"),
    "decay": ("head", "retention", "step", "channel"),
    "decay_space": ("linear", "log"),
    "evaluation": ("parallel", "recurrent", "chunked"),
}
"""The values of the fields that are one of a few words, the default first."""

OPTIONAL = frozenset(
    {"heads", "kv_heads", "causal", "window", "window_alignment", "prefix", "attn_mask", "mask_axes", "bias_axes"}
    | {
        "softcap",
        "scale",
        "dropout_p",
        "score",
        "mask",
        "algorithm",
        "block",
        "positions",
        "rope",
        "rope_dim",
        "rope_frequencies",
    }
    | {
        "rope_amplitude",
        "rope_offset",
        "qk_norm",
        "qk_norm_eps",
        "relative",
        "relative_clip",
        "head_mixing",
        "multi_token",
        "decay",
    }
)
"""The fields that may be absent (None)."""
