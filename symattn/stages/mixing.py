"""Scores and weights mixed across heads, and scores convolved over neighbouring queries and keys."""

from __future__ import annotations

import sympy as sp

from symattn.building import Builder
from symattn.indexed import Tensor, tensor


def convolved(b: Builder, s: Tensor) -> Tensor:
    """``Zc``: every score is a sum over the ``(cq, ck)`` scores around it, each times an entry of its head's kernel.

    Entry (r, v) belongs to the query r before, and to the key v - ck//2 before: queries reach back only, keys to both sides.
    A score that a query has not, because the key is masked out, counts 0.
    """
    if b.d.multi_token is None:
        return s
    at, (queries, keys) = b.at, b.d.multi_token
    i, j, r, v = at["i"], at["j"], at.sized("r", queries), at.sized("v", keys)
    key = j + keys // 2 - v
    inside = sp.And(b.where, sp.Ge(i, r), sp.Ge(key, 0), sp.Lt(key, at.size_of("j")))
    kernel = tensor("kern", *at.query_heads, r, v)
    return b.add(at.score("Zc"), kernel * s.xreplace({i: i - r, j: key}), r, v, where=inside)


def mixed(b: Builder, x: Tensor, name: str, matrix: str, when: str) -> Tensor:
    """A tensor over (i, j) in which each head is a sum over all heads, by a matrix from head to head; ``x`` where unasked."""
    if b.d.head_mixing not in (when, "both"):
        return x
    own = b.at.query_heads
    from_ = b.at.twins(own)
    weight = tensor(matrix, *from_.values(), *own)
    return b.masked(b.at.score(name), weight * x.xreplace(from_), *from_.values())
