"""The attention map: from queries and keys to the weights of the values; one map, or the difference of two."""

from __future__ import annotations

import sympy as sp

from symattn.building import Builder
from symattn.indexed import Tensor, tensor
from symattn.stages.mixing import convolved, mixed
from symattn.stages.normalizers import weights
from symattn.stages.scores import scores


def attention_map(b: Builder) -> Tensor:
    """The weights by which the values are summed."""
    second = b.second()  # before the first map changes what stands for the queries and keys
    p = _single(b)
    if b.d.differential:
        p = b.masked(b.at.score("Pm"), p - _lambda(b) * _single(second))
    return mixed(b, p, "Ph", "mixP", "weights")


def _single(b: Builder) -> Tensor:
    """The weights of one map: scores, what mixes them, and the normalizer."""
    return weights(b, mixed(b, convolved(b, scores(b)), "Zh", "mixS", "scores"))


def _lambda(b: Builder) -> Tensor:
    """The weight of the second map, ``exp(lq1.lk1) - exp(lq2.lk2) + lambda_init`` of four learned vectors."""
    c = b.at["c"]
    first, second = (b.add(tensor(f"ll{k}"), tensor(f"lq{k}", c) * tensor(f"lk{k}", c), c) for k in (1, 2))
    return b.add(tensor("lam"), sp.exp(first) - sp.exp(second) + tensor("lam0"))
