"""What the fields of a definition take, for type checkers and editors; what they keep is declared in the definition itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias, TypedDict

import sympy as sp

Number: TypeAlias = int | float | str | Fraction | sp.Expr
"""A number as a user gives it: text and fractions are exact, a float is the dyadic that it is."""
Flag: TypeAlias = bool | str
Words: TypeAlias = str | None


class FieldValues(TypedDict, total=False):
    """The keyword arguments of a definition."""

    heads: int | str | None
    kv_heads: int | str | None
    start: str
    cross: Flag
    output_projection: Flag
    projection_bias: Flag
    causal: str | int | None
    window: str | int | Sequence[int | None] | None
    window_counts: str
    window_alignment: str | int | None
    prefix: int | str | None
    document: Flag
    key_lengths: Flag
    attn_mask: Words
    mask_axes: Words
    mask_polarity: str
    bias: Flag
    bias_axes: Words
    softcap: Number | None
    alibi: Flag
    alibi_slopes: str
    alibi_distance: str
    sink: Flag
    empty_row: str
    grouping: str
    scale: Number | None
    lse: Flag
    lse_base: str | int
    dropout: Flag
    dropout_p: Number | None
    score: sp.Expr | str | None
    mask: sp.Basic | str | bool | None
    params: Mapping[str, Any] | str
    form: str
    algorithm: Words
    block: int | str | None
    positions: Words
    next_word: Flag
    similarity: str
    rope: Words
    rope_dim: int | str | None
    rope_frequencies: Number | None
    rope_amplitude: Number | None
    rope_offset: str | int | None
    qk_norm: Words
    qk_norm_weight: Flag
    qk_norm_eps: Number | None
    qk_norm_order: str
    key_smoothing: Flag
    relative: Words
    relative_clip: int | str | None
    buckets: Flag
    normalizer: str
    forgetting: Flag
    differential: Flag
    head_mixing: Words
    multi_token: str | Sequence[int] | None
    output_gate: Flag
    head_norm: Flag
    head_norm_eps: Number
    layer_norm: str
    layer_norm_eps: Number
    activation: str
    feature: sp.Expr | str
    normalized: Flag
    decay: Words
    decay_space: str
    delta: Flag
    evaluation: str
    initial_state: Flag
