"""Raw similarities R of queries and keys: the dot product and what is used in its place, after norms and rotations."""

from __future__ import annotations

import sympy as sp

from symattn.building import Builder
from symattn.indexed import Tensor, size, tensor
from symattn.stages.norms import normed, smoothed
from symattn.stages.relative import relative_similarity
from symattn.stages.rotation import rotated


def similarity(b: Builder) -> Tensor:
    """``R[i, j]``, the similarity of query i and key j."""
    prepared(b)
    if b.d.relative is not None:
        return relative_similarity(b)
    return {"dot": _dot, "general": _general, "additive": _additive, "concat": _concat}[b.d.similarity](b)


def prepared(b: Builder) -> None:
    """What is done to queries and keys by themselves: the mean taken off the keys, norms, rotations, in this order or as said."""
    base = (b.query, b.key)
    smoothed(b, base[1])
    for stage in (normed, rotated) if b.d.qk_norm_order == "before-rope" else (rotated, normed):
        stage(b, base)


def _dot(b: Builder) -> Tensor:
    c = b.at["c"]
    return b.masked(b.at.score("R"), b.at.query(b.query, c) * b.at.key(b.key, c), c)


def _general(b: Builder) -> Tensor:
    """``q W k``: the query is taken through W first."""
    at, c = b.at, b.at["c"]
    y = at.sized("y", size("d"))
    through = b.add(at.query("Qw", y), at.query(b.query, c) * tensor("Wgen", *at.query_heads, c, y), c)
    return b.masked(at.score("R"), through * at.key(b.key, y), y)


def _additive(b: Builder) -> Tensor:
    """``w . tanh(W q + U k)``."""
    at, c = b.at, b.at["c"]
    x = at.sized("x", size("hidden"))
    return _perceptron(b, tensor("Wadd", *at.query_heads, x, c), tensor("Uadd", *at.query_heads, x, c))


def _concat(b: Builder) -> Tensor:
    """``w . tanh(W [q; k])``: W has an axis of two, its halves for the query and for the key."""
    at, c = b.at, b.at["c"]
    x = at.sized("x", size("hidden"))
    heads = tuple(at.dims[a] for a in at.query_heads)
    b.shapes["Wcat"] = (*heads, size("hidden"), sp.Integer(2), size("d"))
    return _perceptron(b, *(tensor("Wcat", *at.query_heads, x, half, c) for half in (0, 1)))


def _perceptron(b: Builder, of_query: Tensor, of_key: Tensor) -> Tensor:
    """A hidden layer that reads a query and a key, and a weight for each of its units."""
    at, c, x = b.at, b.at["c"], of_query.indices[len(b.at.query_heads)]
    left = b.add(at.query("Hq", x), of_query * at.query(b.query, c), c)
    per_head = tensor("Hk" + at.suffix, *at.batch_axes, *at.query_heads, at["j"], x)
    right = b.add(per_head, of_key * at.key(b.key, c), c)
    hidden = sp.tanh(left + right)
    return b.masked(at.score("R"), tensor("wadd", *at.query_heads, x) * hidden, x)
