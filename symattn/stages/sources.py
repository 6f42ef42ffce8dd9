"""Where Q, K and V come from: given, projected from X or a memory, or looked up in an embedding table."""

from __future__ import annotations

from symattn.building import Builder
from symattn.indexed import size, tensor


def sources(b: Builder) -> None:
    """Q, K and V from the tokens or from X, where they are not given."""
    d, at = b.d, b.at
    if d.start == "tokens":
        p, a = at["p"], at["a"]
        b.shapes["Emb"] = (size("vocab"), size("dmodel"))
        b.add(tensor("X", *at.batch_axes, p, a), tensor("Emb", tensor("tok", *at.batch_axes, p), a))
    if d.start != "qkv":
        i, j, c, e = at["i"], at["j"], at["c"], at["e"]
        source, width = ("C", at["u"]) if d.cross else ("X", at["a"])
        x, y = tensor("X", *at.batch_axes, i, at["a"]), tensor(source, *at.batch_axes, j, width)
        b.add(at.query("Q", c), x * tensor("WQ", *at.query_heads, at["a"], c), at["a"])
        b.add(at.key("K", c), y * tensor("WK", *at.key_heads, width, c), width)
        b.add(at.key("V", e), y * tensor("WV", *at.key_heads, width, e), width)
