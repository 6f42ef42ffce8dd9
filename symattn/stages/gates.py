"""Gates and norms: what is forgotten of a key on the way to a query, and what the output of a head passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sympy as sp

from symattn.building import Builder
from symattn.functions import sigmoid
from symattn.indexed import Tensor, tensor
from symattn.keep import offset

if TYPE_CHECKING:
    from symattn.definition import Definition


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


def afterwards(d: Definition) -> tuple[str, ...]:
    """The names of the output on its way from the weighted sum of the values to ``O``: one more for a norm and for a gate.

    >>> from symattn.definition import Definition
    >>> afterwards(Definition()), afterwards(Definition(head_norm=True, output_gate=True))
    (('O',), ('Oh', 'Og', 'O'))
    """
    return (*(("Oh",) if d.head_norm else ()), *(("Og",) if d.output_gate else ()), "O")


def normed(b: Builder, out: Tensor) -> Tensor:
    """The output of every head over its root mean square, times a weight per channel; ``out`` where it is not normed."""
    d, at = b.d, b.at
    if not d.head_norm:
        return out
    e = at["e"]
    squares = b.add(at.query("Osq"), out**2, e, aux=True)
    norm = b.add(at.query("rms"), sp.sqrt(squares / at.size_of("e") + b.parameters.number(d.head_norm_eps)))
    scale = 1 - tensor("lam0") if d.differential else sp.S.One
    return b.add(at.query(afterwards(d)[1], e), scale * tensor("gO", e) * out / norm)


def gated(b: Builder, out: Tensor) -> Tensor:
    """``O``, the output times the sigmoid of a gate, given or a projection of the queries' source; ``out`` without a gate."""
    if not b.d.output_gate:
        return out
    at, e = b.at, b.at["e"]
    gate = at.query("og", e)
    if b.d.start != "qkv":
        a, source = at["a"], "X" if b.d.positions is None else "Xp"
        b.add(gate, tensor(source, *at.batch_axes, at["i"], a) * tensor("WG", *at.query_heads, a, e), a)
    return b.add(at.query("O", e), out * sigmoid(gate))
