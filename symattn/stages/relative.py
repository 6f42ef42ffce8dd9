"""Scores that depend on how far a key is from the query: learned vectors of the distance, and learned biases of buckets of it."""

from __future__ import annotations

import sympy as sp

from symattn.building import Builder
from symattn.indexed import Tensor, size, tensor
from symattn.keep import measured_from


def row_of_distance(b: Builder) -> tuple[sp.Expr, sp.Expr]:
    """The row of a table of distances that query i reads for key j, and how many rows there are.

    With ``relative_clip`` k row ``k + t`` belongs to the distance t = i - j (i measured as windows are), and everything further
    away reads the first or the last of the 2k + 1 rows. Without, every distance has a row: n + m - 1, from the last key back.
    """
    d, at = b.d, b.at
    clip = d.relative_clip
    if clip is None:
        return at["i"] - at["j"] + at.size_of("j") - 1, at.size_of("i") + at.size_of("j") - 1
    distance = at["i"] + measured_from(d, at) - at["j"]
    return sp.Max(-clip, sp.Min(clip, distance)) + clip, sp.Integer(2 * clip + 1)


def relative_similarity(b: Builder) -> Tensor:
    """``R[i, j]``: the content's share ``Rc`` and, looked up by the distance, the position's share ``Rp``."""
    d, at = b.d, b.at
    c = at["c"]
    row, rows = row_of_distance(b)
    t = at.sized("t", rows)
    query, key = at.query(b.query, c), at.key(b.key, c)
    content = position = query
    if d.relative == "keys":
        table = tensor("aK", t, c)
    else:
        content = b.add(at.query("Qu", c), query + tensor("uR", *at.query_heads, c))
        position = b.add(at.query("Qv", c), query + tensor("vR", *at.query_heads, c))
        table = tensor("rK", *at.query_heads, t, c)
    products = b.masked(at.score("Rc"), content * key, c)
    by_row = b.add(at.query("Rp", t), position * table, c)
    return b.masked(at.score("R"), products + by_row.xreplace({t: row}))


def bucket_bias(b: Builder) -> Tensor:
    """The learned bias of the bucket that (i, j) is in; the numbers of the buckets are given."""
    at = b.at
    heads = tuple(at.dims[a] for a in at.query_heads)
    b.shapes["Bkt"] = (*heads, size("buckets"))
    return tensor("Bkt", *at.query_heads, tensor("bkt", at["i"], at["j"]))
