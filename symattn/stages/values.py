"""From weights to outputs: dropout, the weighted sum of the values, what stands there for an empty row, and W_O."""

from __future__ import annotations

import sympy as sp

from symattn.building import Builder
from symattn.indexed import Tensor, tensor
from symattn.keep import keep


def dropped(b: Builder, p: Tensor) -> Tensor:
    """``Pd``, the weights that a given keep-mask leaves, scaled by 1/(1 - rate)."""
    d, at = b.d, b.at
    if not d.dropout:
        return p
    rate = tensor("p") if d.dropout_p is None else b.parameters.number(d.dropout_p)
    kept = sp.And(b.where, sp.Ne(at.score("drop"), 0))
    p = b.add(at.score("Pd"), p / (1 - rate), where=kept)
    b.where = kept
    return p


def weighted_sum(b: Builder, p: Tensor) -> Tensor:
    """``O = P V``, and what stands there for a query without keys."""
    d, at = b.d, b.at
    j, e = at["j"], at["e"]
    empty = d.empty_row in ("nan", "uniform") and b.where != sp.true
    out = b.masked(at.query("O0" if empty else "O", e), p * at.key("V", e), j)
    if not empty:
        return out
    count = b.add(at.query("cnt"), sp.Integer(1), j, where=keep(d, at, b.parameters))
    if d.empty_row == "nan":
        other = b.add(at.query("N"), sp.nan, where=sp.Eq(count, 0))
    else:
        other = b.add(at.query("U", e), at.key("V", e) / at.size_of("j"), j, where=sp.Eq(count, 0))
    return b.add(at.query("O", e), out + other)


def projected(b: Builder, out: Tensor) -> Tensor:
    """``Y``, the heads' outputs combined by W_O, where the definition has it."""
    if not b.d.output_projection:
        return out
    at, e, f = b.at, b.at["e"], b.at["f"]
    return b.add(tensor("Y", *at.batch_axes, at["i"], f), out * tensor("WO", *at.query_heads, e, f), *at.query_heads, e)
