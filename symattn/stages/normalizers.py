"""How scores become weights P: softmax with or without a sink, and the normalizers used in its place."""

from __future__ import annotations

import sympy as sp

from symattn.building import Builder
from symattn.indexed import Tensor


def weights(b: Builder, z: Tensor) -> Tensor:
    """``P[i, j]``, the weight of key j for query i."""
    d, at = b.d, b.at
    j = at["j"]
    maximum, total = at.query("m"), at.query("l")
    if d.sink:
        sink = at.per_head("sink")
        m0 = b.masked(at.query("m0"), z, j, reduce="max", range_only=True, aux=True)
        b.add(maximum, sp.Max(m0, sink, evaluate=False), range_only=True, aux=True)
        weight = b.masked(at.score("E"), sp.exp(z - maximum), aux=True)
        of_sink = b.add(at.query("E0"), sp.exp(sink - maximum), aux=True)
        keys = b.masked(at.query("lk"), weight, j, aux=True)
        b.add(total, keys + of_sink, aux=True)
    else:
        b.masked(maximum, z, j, reduce="max", range_only=True, aux=True)
        weight = b.masked(at.score("E"), sp.exp(z - maximum), aux=True)
        b.masked(total, weight, j, aux=True)
    p = b.masked(at.score("P"), weight / total)
    if d.sink:
        b.add(at.query("P0"), at.query("E0") / total)
    return p


def log_sum_exp(b: Builder) -> None:
    """``L[i]``, the logarithm of the normalizer's denominator, where the definition asks for it."""
    d, at = b.d, b.at
    if d.lse:
        lse = at.query("m") + sp.log(at.query("l"))
        b.add(at.query("L"), lse if d.lse_base == "e" else lse / sp.log(2))
