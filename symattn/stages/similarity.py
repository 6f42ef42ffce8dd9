"""Raw similarities R of queries and keys: the dot product and what is used in its place."""

from __future__ import annotations

from symattn.building import Builder
from symattn.indexed import Tensor


def similarity(b: Builder) -> Tensor:
    """``R[i, j]``, the similarity of query i and key j."""
    c = b.at["c"]
    return b.masked(b.at.score("R"), b.at.query(b.query, c) * b.at.key(b.key, c), c)
