"""From raw similarities to the score that the normalizer sees: scaled, capped, with biases and a definition's own terms."""

from __future__ import annotations

import sympy as sp

from symattn.building import Builder
from symattn.indexed import Tensor, tensor
from symattn.keep import measured_from
from symattn.nesting import split
from symattn.stages.choices import without_choices
from symattn.stages.gates import forgotten
from symattn.stages.norms import key_count
from symattn.stages.relative import bucket_bias
from symattn.stages.similarity import similarity
from symattn.symbols import s as score_symbol


def scores(b: Builder) -> Tensor:
    """From Q and K to the score that the softmax sees: raw, scaled, capped, with biases."""
    d, at = b.d, b.at
    s = similarity(b) if b.raw is None else b.raw
    scale = 1 / sp.sqrt(b.width) if d.scale is None else b.parameters.bind(at.read(d.scale))
    if scale != 1:
        s = b.masked(at.score("S"), s * b.add(tensor("scale"), scale))
    if d.softcap is not None:
        cap = b.parameters.number(d.softcap)
        s = b.masked(at.score("A"), cap * sp.tanh(s / cap))
    z: sp.Expr = s
    if d.score is not None:
        z = _own_score(b, b.parameters.bind(at.read(d.score)), s)
    if d.alibi:
        offset = measured_from(d, at)
        if d.key_lengths:  # a length in a value is a count: it has no gradient
            offset = offset.xreplace({at.per_batch("len"): key_count(b)}) if offset.has(at.per_batch("len")) else offset
        distance = at["i"] + offset - at["j"]
        z -= _slope(b) * (sp.Abs(distance) if d.alibi_distance == "absolute" else distance)
    if d.bias:
        z += at.given("bias", d.bias_axes or "bhij")
    if d.buckets:
        z += bucket_bias(b)
    z += forgotten(b)
    if d.attn_mask == "additive":
        z += at.given("B", d.mask_axes or "bhij")
    return s if z == s else b.masked(at.score("Z"), z)


def _own_score(b: Builder, score: sp.Expr, s: Tensor) -> sp.Expr:
    """A definition's own score of ``s``; functions that are nested deeply become statements, one inside the other."""
    read: dict[sp.Basic, sp.Basic] = {score_symbol: s}

    def name(piece: sp.Expr) -> sp.Expr:
        short = sp.Dummy(real=True)  # SymPy takes long to build functions of functions of what is not known to be real
        expr = without_choices(b, piece.xreplace(read), b.at.score, b.where)
        read[short] = b.masked(b.at.score(f"F{len(read) - 1}"), expr)
        return short

    rest = split(score, name)
    return without_choices(b, rest.xreplace(read), b.at.score, b.where)


def _slope(b: Builder) -> Tensor:
    """The ALiBi slope of each head: given, or one of the two published sets."""
    d, at = b.d, b.at
    slope = at.per_head("slope")
    if d.alibi_slopes == "given":
        return slope
    heads, _ = d.head_counts
    full = 2 ** (heads.bit_length() - 1)
    if d.alibi_slopes == "power" or full == heads:
        return b.add(slope, 2 ** (-8 * (at.head + 1) / at.head_count))
    # the slopes of the largest power of two below H, then every other one of the next power
    first = b.add(at.per_head("slope_a"), 2 ** (-8 * (at.head + 1) / sp.Integer(full)), where=sp.Lt(at.head, full))
    rest = b.add(at.per_head("slope_b"), 2 ** (-4 * (2 * (at.head - full) + 1) / sp.Integer(full)), where=sp.Ge(at.head, full))
    return b.add(slope, first + rest)
