"""Multi-head latent attention: one small vector is kept of a token for all heads."""

from __future__ import annotations

from symattn.variants.variant import Reduction, Variant

_SOURCE = "arXiv 2405.04434, section 2.1.2 and 2.1.3"

ROWS = (
    Variant(
        "latent",
        "keys and values of every head are made of one latent per token; a part with positions is shared by all heads",
        {"form": "mla", "heads": 4, "causal": True, "rope": "half"},
        _SOURCE,
        (Reduction("latent-absorbed", "the up-projections are taken to queries and outputs", {"form": "mla-absorbed"}),),
    ),
    Variant(
        "latent-absorbed",
        "the same with the up-projections absorbed: every head reads the latent itself, which is all that is cached",
        {"form": "mla-absorbed", "heads": 4, "causal": True, "rope": "half"},
        _SOURCE,
        (Reduction("latent", "keys and values are made first", {"form": "mla"}),),
    ),
    Variant(
        "latent-projections",
        "the whole block: latents of keys and of queries from X, heads, and W_O",
        {"form": "mla", "heads": 2, "start": "x", "causal": True, "rope": "half", "output_projection": True},
        _SOURCE,
    ),
)
