"""From weights to outputs: dropout, the weighted sum of the values, what stands there for an empty row, and W_O."""

from __future__ import annotations

from collections.abc import Callable

import sympy as sp

from symattn.building import Builder
from symattn.indexed import Tensor, tensor
from symattn.keep import keep
from symattn.stages.gates import afterwards
from symattn.stages.sources import biased


def kept_by_dropout(b: Builder) -> tuple[sp.Expr, sp.Basic]:
    """The factor of the weights that a given keep-mask leaves, ``1/(1 - rate)``, and where it leaves them."""
    if not b.d.dropout:
        return sp.S.One, sp.true
    rate = tensor("p") if b.d.dropout_p is None else b.parameters.number(b.d.dropout_p)
    return 1 / (1 - rate), sp.Ne(b.at.score("drop"), 0)


def dropped(b: Builder, p: Tensor) -> Tensor:
    """``Pd``, the weights that a given keep-mask leaves, scaled by 1/(1 - rate)."""
    if not b.d.dropout:
        return p
    factor, kept = kept_by_dropout(b)
    b.where = sp.And(b.where, kept)
    return b.masked(b.at.score("Pd"), p * factor)


def weighted_sum(b: Builder, p: Tensor) -> Tensor:
    """``O = P V``, and what stands there for a query without keys."""
    j, e = b.at["j"], b.at["e"]
    return or_for_empty_rows(b, lambda name: b.masked(b.at.query(name, e), p * b.at.key("V", e), j))


def or_for_empty_rows(b: Builder, write: Callable[[str], Tensor]) -> Tensor:
    """The output that ``write`` adds under a name, and what stands there for a query without keys."""
    d, at = b.d, b.at
    j, e = at["j"], at["e"]
    empty = d.empty_row in ("nan", "uniform") and b.where != sp.true
    whole = afterwards(d)[0]
    out = write("O0" if empty else whole)
    if not empty:
        return out
    count = b.add(at.query("cnt"), sp.Integer(1), j, where=keep(d, at, b.parameters))
    if d.empty_row == "nan":
        other = b.add(at.query("N"), sp.nan, where=sp.Eq(count, 0))
    else:
        other = b.add(at.query("U", e), at.key("V", e) / at.size_of("j"), j, where=sp.Eq(count, 0))
    return b.add(at.query(whole, e), out + other)


def projected(b: Builder, out: Tensor, name: str = "Y") -> Tensor:
    """``Y``, the heads' outputs combined by W_O, where the definition has it."""
    if not b.d.output_projection:
        return out
    at, e, f = b.at, b.at["e"], b.at["f"]
    target, expr = tensor(name, *at.batch_axes, at["i"], f), out * tensor("WO", *at.query_heads, e, f)
    return biased(b, target, expr, *at.query_heads, e, shift=tensor("bO", f))
