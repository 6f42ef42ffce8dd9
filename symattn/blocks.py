"""Positions added to X, biases of projections, the next word, and layers: which fields go together, and the same in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from symattn.definition import Definition

LAYERS = ("encoder-layer", "decoder-layer")
"""The forms that have layer norms and a feed-forward block."""


def refuse_blocks(d: Definition, refuse: Callable[[object, str], None]) -> None:
    """Fields about what stands before and after the attention that cannot hold together."""
    given = d.start == "qkv"
    refuse(d.positions is not None and given, f"positions={d.positions!r} are added to X: set start='x' or 'tokens'")
    refuse(
        d.projection_bias and given and not d.output_projection,
        "projection_bias=True needs a projection: set start='x' or 'tokens', or output_projection=True",
    )
    refuse(d.next_word and d.start != "tokens", "next_word=True reads the embedding table: set start='tokens'")
    refuse(
        d.next_word and not d.output_projection and (d.heads or 1) > 1,
        f"next_word=True compares one context vector per position with the embedding, and {d.heads} heads make {d.heads}: "
        "set output_projection=True",
    )
    layer = d.form in LAYERS
    for field, default in (("layer_norm", "post"), ("activation", "relu"), ("layer_norm_eps", None)):
        changed = field in d.changed if default is None else getattr(d, field) != default
        refuse(changed and not layer, f"{field} is about a layer: set form='encoder-layer' or 'decoder-layer'")
    refuse(layer and given, f"form={d.form!r} starts from X: set start='x' or 'tokens'")
    refuse(layer and not d.output_projection, f"form={d.form!r} has an output projection: leave output_projection out")


def words(d: Definition) -> dict[str, str]:
    """The conventions of these fields, where they are not at their default."""
    found: dict[str, str] = {}
    if d.positions is not None:
        found["positions"] = {
            "sinusoidal": "sin and cos of p 10000^(-2k/dmodel) in channels 2k and 2k + 1, p from 0, added to X",
            "learned": "a given vector for each position, added to X",
        }[d.positions]
    if d.projection_bias:
        found["projection_bias"] = "every projection adds a vector"
    if d.next_word:
        found["next_word"] = "softmax of the output times the embedding table, the same one that the words are looked up in"
    if d.form in LAYERS:
        blocks = "self-attention, " + ("cross attention on the memory, " if d.form == "decoder-layer" else "") + "feed-forward"
        found["layer"] = blocks + ", each with a residual"
        found["layer_norm"] = (
            "after each residual" if d.layer_norm == "post" else "before each block, none at the end"
        ) + f"; variance over dmodel (not dmodel - 1), {d.layer_norm_eps} added under the root"
        found["activation"] = {"relu": "relu, its derivative 0 at 0", "gelu": "gelu with the error function"}[d.activation]
    return found
