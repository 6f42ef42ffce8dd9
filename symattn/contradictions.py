"""Which fields of a definition cannot hold together, and which names and values its parameters may have."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING

import sympy as sp

from symattn.blocks import refuse_blocks
from symattn.combinations import refuse_combinations
from symattn.errors import DefinitionError, nearest
from symattn.evaluation import NAMES, refuse_algorithms
from symattn.fields import RESERVED
from symattn.grammar import arrays_of, parameters_of
from symattn.linear import refuse_linear
from symattn.positions import refuse_positions

if TYPE_CHECKING:
    from symattn.definition import Definition


def refuse_contradictions(d: Definition) -> None:
    """Fields that cannot hold together."""

    def refuse(when: object, why: str) -> None:
        if when:
            raise DefinitionError(why)

    if d.heads is not None and d.kv_heads is not None:
        refuse(d.heads % d.kv_heads, f"kv_heads must divide heads, got heads={d.heads}, kv_heads={d.kv_heads}")
    refuse(
        d.cross and d.start == "qkv", "cross=True says which source K and V are projected from; with start='qkv' they are given"
    )
    refuse(d.mask_axes and not d.attn_mask, "mask_axes describes a given mask: set attn_mask to 'boolean' or 'additive'")
    refuse(
        d.attn_mask == "additive" and d.mask_polarity == "drop",
        "mask_polarity is about boolean masks; in an additive mask -inf drops the key",
    )
    refuse(d.bias_axes and not d.bias, "bias_axes describes a given bias: set bias=True")
    refuse(d.alibi_slopes != "given" and not d.alibi, f"alibi_slopes={d.alibi_slopes!r} needs alibi=True")
    refuse(d.alibi_distance != "signed" and not d.alibi, f"alibi_distance={d.alibi_distance!r} needs alibi=True")
    refuse(d.dropout_p is not None and not d.dropout, "dropout_p needs dropout=True (and a given keep-mask)")
    if isinstance(d.dropout_p, Fraction):
        refuse(not 0 <= d.dropout_p < 1, f"dropout_p is at least 0 and below 1, got {d.dropout_p}")
    refuse(
        d.sink and d.empty_row in ("nan", "uniform"),
        f"empty_row={d.empty_row!r} contradicts sink=True: with a sink the denominator of an empty row is not 0, its output is 0",
    )
    if d.window is not None and d.window_counts == "keys":
        refuse(d.window[0] == 0, "a window of 0 keys on the left is empty: window_counts='keys' counts the query's own position")
    refuse_combinations(d, refuse)
    refuse_blocks(d, refuse)
    refuse_algorithms(d, refuse)
    refuse_unread(d)
    refuse_linear(d, refuse)
    refuse_positions(d, refuse)
    refuse(d.key_lengths and isinstance(d.causal, int), "with key_lengths causal is top-left or bottom-right, not a fixed offset")


def refuse_unread(d: Definition) -> None:
    """Fields that the form of a definition does not read: they would be ignored in silence."""
    from symattn import forms

    uses = forms.get(d.form).uses
    if uses is None:
        return
    for name, value in d.changed.items():
        if name not in uses and name not in ("heads", "kv_heads", "form", "params", "lse"):
            raise DefinitionError(f"the form {d.form!r} does not read {name}={value}; it reads {', '.join(sorted(uses))}")


def check_parameters(d: Definition) -> None:
    """Names of parameters: none that a tensor has, none bound without being read, lists of the right length."""
    used = {
        "slope": d.alibi, "bias": d.bias, "sink": d.sink, "len": d.key_lengths, "drop": d.dropout, "p": d.dropout,
        "doc": d.document, "tok": d.start == "tokens", "Emb": d.start == "tokens", "X": d.start != "qkv", "C": d.cross,
        "WQ": d.start != "qkv", "WK": d.start != "qkv", "WV": d.start != "qkv", "WO": d.output_projection,
        **dict.fromkeys(NAMES, d.algorithm is not None),
    }  # fmt: skip
    derived = {"d" + name for name in d.parameters} | {name + "_t" for name in (*d.parameters, *RESERVED)}
    for name in d.parameters:
        if name in derived:
            raise DefinitionError(
                f"{name!r} is the name of a gradient or a tangent and cannot be a parameter; choose another name"
            )
        if (name in RESERVED and used.get(name, True)) or re.fullmatch(r"d?[FW]\d+", name):
            raise DefinitionError(
                f"{name!r} is the name of a tensor of the program and cannot be a parameter; choose another name"
            )
    plain: set[object] = {d.softcap, d.prefix, d.dropout_p, d.qk_norm_eps, d.head_norm_eps, d.layer_norm_eps}
    texts = (d.score, d.mask, d.scale, d.rope_frequencies, d.rope_amplitude, d.feature)
    for e in (e for e in texts if isinstance(e, sp.Basic)):
        plain |= {a.name for a in e.xreplace(dict.fromkeys(e.atoms(sp.Indexed), sp.S.Zero)).free_symbols}
    for name in sorted(d.arrays.keys() & plain):
        raise DefinitionError(f"{name} is read as {name}[{', '.join(d.arrays[name])}] and without subscripts too; use two names")
    for name in d.arrays.keys() & d.params.keys():
        raise DefinitionError(
            f"{name} is read by subscript, {name}[{', '.join(d.arrays[name])}]: give it as an array, not in params"
        )
    masked = arrays_of(d.mask) if d.mask is not None else {}
    for name, axes in (arrays_of(d.score) if d.score is not None else {}).items():
        if masked.get(name, axes) != axes:
            raise DefinitionError(f"{name} has other subscripts in the score than in the mask")
    for name, value in d.params.items():
        if name not in d.parameters:
            raise DefinitionError(f"params binds {name!r}, which nothing reads. {nearest(name, d.parameters)}")
        if isinstance(value, tuple) and len(value) != d.head_counts[0]:
            raise DefinitionError(
                f"parameter {name} has {len(value)} values, one per head, and there are {d.head_counts[0]} heads"
            )
        numbers = (d.softcap, d.prefix, d.dropout_p, d.qk_norm_eps, d.head_norm_eps, d.layer_norm_eps)
        formulas = [e for e in (d.scale, d.feature) if isinstance(e, sp.Basic)]
        if not isinstance(value, Fraction) and (name in numbers or any(name in parameters_of(e) for e in formulas)):
            raise DefinitionError(f"parameter {name} is one number, not one per head")
        if name in numbers[3:] and isinstance(value, Fraction) and value < 0:
            raise DefinitionError(f"what is added under a root is at least 0, got {name} = {value}")
    if isinstance(d.softcap, str) and isinstance(d.params.get(d.softcap), Fraction) and d.params[d.softcap] <= 0:
        raise DefinitionError(f"softcap is positive, got {d.softcap} = {d.params[d.softcap]}")
    if isinstance(d.dropout_p, str) and isinstance(d.params.get(d.dropout_p), Fraction) and not 0 <= d.params[d.dropout_p] < 1:
        raise DefinitionError(f"dropout_p is at least 0 and below 1, got {d.dropout_p} = {d.params[d.dropout_p]}")
