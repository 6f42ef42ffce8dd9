"""Gates: what is forgotten of a key on the way to a query, and the gate that the output passes."""

from __future__ import annotations

import sympy as sp

from symattn.building import Builder
from symattn.functions import sigmoid
from symattn.indexed import Tensor, tensor
from symattn.keep import offset


def forgotten(b: Builder) -> sp.Expr:
    """The sum of the logarithms of the forget gates after key j, up to the position of query i; 0 where nothing is forgotten.

    The gates stand at the positions of the keys, one for each query head; the position of query i is i plus the causal offset.
    """
    d, at = b.d, b.at
    if not d.forgetting:
        return sp.S.Zero
    i, j, between = at["i"], at["j"], at.twin("j")
    log = b.add(at.given("logf", "bhj"), sp.log(sigmoid(at.given("fg", "bhj"))))
    passed = sp.And(b.where, sp.Lt(j, between), sp.Le(between, i + offset(d, at, d.causal)))
    return b.add(at.given("decay", "bhij"), log.xreplace({j: between}), between, where=passed)


def gated(b: Builder, out: Tensor) -> Tensor:
    """``O``, the output times the sigmoid of a gate: given, or a projection of the queries' source."""
    if not b.d.output_gate:
        return out
    at, e = b.at, b.at["e"]
    gate = at.query("og", e)
    if b.d.start != "qkv":
        a, source = at["a"], "X" if b.d.positions is None else "Xp"
        b.add(gate, tensor(source, *at.batch_axes, at["i"], a) * tensor("WG", *at.query_heads, a, e), a)
    return b.add(at.query("O", e), out * sigmoid(gate))
