"""Where Q, K and V come from: given, projected from X or a memory, or looked up in an embedding table, with positions added."""

from __future__ import annotations

import sympy as sp

from symattn.building import Builder
from symattn.indexed import Tensor, name_of, size, tensor


def sources(b: Builder) -> None:
    """Q, K and V from the tokens or from X, where they are not given."""
    if b.d.start != "qkv":
        projections(b, embedded(b))


def embedded(b: Builder) -> str:
    """The name of the tensor that the projections read: X, looked up where it starts from tokens, with its positions added."""
    d, at = b.d, b.at
    p, a = at["p"], at["a"]
    if d.start == "tokens":
        b.shapes["Emb"] = (size("vocab"), size("dmodel"))
        b.add(tensor("X", *at.batch_axes, p, a), tensor("Emb", tensor("tok", *at.batch_axes, p), a))
    if d.positions is None:
        return "X"
    if d.positions == "sinusoidal":
        # channels 2k and 2k + 1 share an angle
        angle, next_angle = (p * 10000 ** (-first / size("dmodel")) for first in (a, a - 1))
        sine = b.add(tensor("PEsin", p, a), sp.sin(angle), where=sp.Eq(sp.Mod(a, 2), 0), aux=True)
        cosine = b.add(tensor("PEcos", p, a), sp.cos(next_angle), where=sp.Eq(sp.Mod(a, 2), 1), aux=True)
        b.add(tensor("PE", p, a), sine + cosine)
    b.add(tensor("Xp", *at.batch_axes, p, a), tensor("X", *at.batch_axes, p, a) + tensor("PE", p, a))
    return "Xp"


def projections(b: Builder, source: str) -> None:
    """Q of ``source`` and, of the same or of the memory C in cross attention, K and V."""
    d, at = b.d, b.at
    i, j, c, e = at["i"], at["j"], at["c"], at["e"]
    other, width = ("C", at["u"]) if d.cross else (source, at["a"])
    x, y = tensor(source, *at.batch_axes, i, at["a"]), tensor(other, *at.batch_axes, j, width)
    biased(b, at.query("Q", c), x * tensor("WQ", *at.query_heads, at["a"], c), at["a"], shift=tensor("bQ", *at.query_heads, c))
    biased(b, at.key("K", c), y * tensor("WK", *at.key_heads, width, c), width, shift=tensor("bK", *at.key_heads, c))
    if d.differential:
        b.add(at.query("Q2", c), x * tensor("WQ2", *at.query_heads, at["a"], c), at["a"])
        b.add(at.key("K2", c), y * tensor("WK2", *at.key_heads, width, c), width)
    if d.differential:
        b.add(at.query("Q2", c), x * tensor("WQ2", *at.query_heads, at["a"], c), at["a"])
        b.add(at.key("K2", c), y * tensor("WK2", *at.key_heads, width, c), width)
    biased(b, at.key("V", e), y * tensor("WV", *at.key_heads, width, e), width, shift=tensor("bV", *at.key_heads, e))


def biased(b: Builder, target: Tensor, expr: sp.Expr, *over: sp.Symbol, shift: Tensor) -> Tensor:
    """A projection, with a vector added to every row where the definition has ``projection_bias``."""
    if not b.d.projection_bias:
        return b.add(target, expr, *over)
    name = name_of(target) + "lin"
    return b.add(target, b.add(tensor(name, *target.indices), expr, *over, aux=True) + shift)
