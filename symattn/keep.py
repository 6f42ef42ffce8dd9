"""Which keys a query may see: the condition that stands on every statement of an attention program over (i, j)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sympy as sp

from symattn.indexed import tensor
from symattn.letters import Letters

if TYPE_CHECKING:
    from symattn.building import Parameters
    from symattn.definition import Definition


def keep(d: Definition, at: Letters, parameters: Parameters) -> sp.Basic:
    """The condition under which query ``i`` attends to key ``j``: the conjunction of all masks of the definition."""
    i, j = at["i"], at["j"]
    parts: list[sp.Basic] = []
    if d.causal is not None:
        causal = sp.Le(j, i + offset(d, at, d.causal))
        if d.prefix is not None:
            length = sp.Integer(d.prefix) if isinstance(d.prefix, int) else parameters.scalar(d.prefix, per_batch=True)
            causal = sp.Or(causal, sp.Lt(j, length))
        parts.append(causal)
    if d.window is not None:
        left, right = d.window
        position = i + measured_from(d, at)
        if left is not None:
            parts.append(sp.Lt(position - j, left) if d.window_counts == "keys" else sp.Le(position - j, left))
        if right is not None:
            parts.append(sp.Le(j, position + right))
    if d.key_lengths:
        parts.append(sp.Lt(j, at.per_batch("len")))
    if d.document:
        q, k = ("doc", "doc") if at.one_source else ("doc_q", "doc_k")
        parts.append(sp.Eq(tensor(q, *at.batch_axes, i), tensor(k, *at.batch_axes, j)))
    if d.attn_mask == "boolean":
        given = at.given("M", d.mask_axes or "bhij")
        parts.append(sp.Ne(given, 0) if d.mask_polarity == "attend" else sp.Eq(given, 0))
    if d.attn_mask == "additive":
        parts.append(sp.Ne(at.given("B", d.mask_axes or "bhij"), -sp.oo))
    if d.mask is not None:
        parts.append(parameters.bind(at.read(d.mask)))
    return sp.And(*parts)


def exists(d: Definition, at: Letters) -> sp.Basic:
    """The condition that key j is no padding: what is computed of a key alone is computed where it exists."""
    return sp.Lt(at["j"], at.per_batch("len")) if d.key_lengths else sp.true


def offset(d: Definition, at: Letters, alignment: str | int | None) -> sp.Expr:
    """By how much the diagonal of an alignment is shifted: the key that stands under query 0."""
    if isinstance(alignment, int):
        return sp.Integer(alignment)
    if alignment == "top-left":
        return sp.Integer(0)
    return (at.per_batch("len") if d.key_lengths else at.size_of("j")) - at.size_of("i")


def measured_from(d: Definition, at: Letters) -> sp.Expr:
    """The offset of the position that windows and ALiBi are measured from."""
    alignment = d.window_alignment if d.window_alignment is not None else d.causal
    return offset(d, at, "bottom-right" if alignment is None else alignment)
