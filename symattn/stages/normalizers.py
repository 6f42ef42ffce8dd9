"""How scores become weights P: the softmax with or without a sink, and the normalizers used in its place.

Each is a few statements over the keys that a query sees. Sparsemax and its kin are ordinary statements too: which keys have a
weight at all is a condition on the scores, so it is never differentiated, and equal scores need no order among them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import sympy as sp

from symattn.building import Builder
from symattn.functions import sigmoid
from symattn.indexed import Tensor


def weights(b: Builder, z: Tensor) -> Tensor:
    """``P[i, j]``, the weight of key j for query i, from the final scores; the scores themselves without a normalizer."""
    return NORMALIZERS[b.d.normalizer](b, z)


def softmax(b: Builder, z: Tensor) -> Tensor:
    """``exp(z)`` over its sum, all scores measured from their maximum."""
    if b.d.sink:
        return _with_sink(b, z, b.at.per_head("sink"))
    j, maximum, total = b.at["j"], b.at.query("m"), b.at.query("l")
    b.masked(maximum, z, j, reduce="max", range_only=True, aux=True)
    weight = b.masked(b.at.score("E"), sp.exp(z - maximum), aux=True)
    b.masked(total, weight, j, aux=True)
    return b.masked(b.at.score("P"), weight / total)


def off_by_one(b: Builder, z: Tensor) -> Tensor:
    """``exp(z)`` over one plus its sum: a softmax with a sink whose logit is 0."""
    return _with_sink(b, z, sp.S.Zero)


def _with_sink(b: Builder, z: Tensor, sink: sp.Expr) -> Tensor:
    j, maximum, total = b.at["j"], b.at.query("m"), b.at.query("l")
    m0 = b.masked(b.at.query("m0"), z, j, reduce="max", range_only=True, aux=True)
    b.add(maximum, sp.Max(m0, sink, evaluate=False), range_only=True, aux=True)
    weight = b.masked(b.at.score("E"), sp.exp(z - maximum), aux=True)
    of_sink = b.add(b.at.query("E0"), sp.exp(sink - maximum), aux=True)
    keys = b.masked(b.at.query("lk"), weight, j, aux=True)
    b.add(total, keys + of_sink, aux=True)
    p = b.masked(b.at.score("P"), weight / total)
    b.add(b.at.query("P0"), of_sink / total)
    return p


def logistic(b: Builder, z: Tensor) -> Tensor:
    """The sigmoid of every score by itself; nothing makes the weights of a row sum to one."""
    return b.masked(b.at.score("P"), sigmoid(z))


def sparsemax(b: Builder, z: Tensor) -> Tensor:
    """The nearest point of the simplex: ``z - tau`` where that is positive, tau such that the weights sum to one.

    A key has a weight where the scores above its own exceed it by less than one in all. With kappa such keys, whose scores add
    up to tot, tau is ``(tot - 1)/kappa``.
    """
    j = b.at["j"]
    supported = _support(b, z, lambda above: above)
    count = b.add(b.at.query("kappa"), sp.Integer(1), j, where=supported, aux=True)
    total = b.add(b.at.query("tot"), z, j, where=supported, aux=True)
    return b.add(b.at.score("P"), z - (total - 1) / count, where=supported)


def entmax15(b: Builder, z: Tensor) -> Tensor:
    """``(z/2 - tau)^2`` where ``z/2`` is above tau, tau such that the weights sum to one.

    With ``dev``, what each halved score in the support is above their mean, the root of a weight is ``dev + rho``, where
    ``kappa rho^2 + sum dev^2 = 1`` for a support of kappa keys.
    """
    j = b.at["j"]
    supported = _support(b, z, lambda above: (above / 2) ** 2)
    count = b.add(b.at.query("kappa"), sp.Integer(1), j, where=supported, aux=True)
    total = b.add(b.at.query("tot"), z / 2, j, where=supported, aux=True)
    dev = b.add(b.at.score("dev"), z / 2 - total / count, where=supported, aux=True)
    spread = b.add(b.at.query("nu"), dev**2, j, where=supported, aux=True)
    some = sp.Gt(count, 0)
    rest = b.add(b.at.query("rest"), (1 - spread) / count, where=some, aux=True)
    rho = b.add(b.at.query("rho"), sp.sqrt(rest), where=some, aux=True)
    root = b.add(b.at.score("root"), dev + rho, where=supported, aux=True)
    return b.add(b.at.score("P"), root**2, where=supported)


def _support(b: Builder, z: Tensor, measure: Callable[[sp.Expr], sp.Expr]) -> sp.Basic:
    """The condition under which a key has a weight: the keys above it would take less than the whole of it."""
    j, other = b.at["j"], b.at.twin("j")
    above = z.xreplace({j: other})
    rivals = sp.And(b.where, b.where.xreplace({j: other}), sp.Gt(above, z), sp.Ne(other, j))
    excess = b.add(b.at.score("xi"), measure(above - z), other, where=rivals, aux=True)
    return sp.And(b.where, sp.Lt(excess, 1))


def stick_breaking(b: Builder, z: Tensor) -> Tensor:
    """``beta_ij * prod over k > j of (1 - beta_ik)``, beta the sigmoid of the score: a part of what the keys after j leave."""
    j, other = b.at["j"], b.at.twin("j")
    beta = b.masked(b.at.score("beta"), sigmoid(z), aux=True)
    later = sp.And(b.where, b.where.xreplace({j: other}), sp.Gt(other, j))
    left = b.add(b.at.score("left"), 1 - beta.xreplace({j: other}), other, reduce="prod", where=later, aux=True)
    return b.masked(b.at.score("P"), beta * left)


def none(b: Builder, z: Tensor) -> Tensor:
    """The scores are the weights: linear attention in the order of a softmax attention."""
    return z


NORMALIZERS: Mapping[str, Callable[[Builder, Tensor], Tensor]] = {
    "softmax": softmax,
    "off-by-one": off_by_one,
    "sigmoid": logistic,
    "sparsemax": sparsemax,
    "entmax15": entmax15,
    "stick-breaking": stick_breaking,
    "none": none,
}
"""The values of the field ``normalizer``."""


def log_sum_exp(b: Builder) -> None:
    """``L[i]``, the logarithm of the normalizer's denominator, where the definition asks for it."""
    d, at = b.d, b.at
    if d.lse:
        lse = at.query("m") + sp.log(at.query("l"))
        b.add(at.query("L"), lse if d.lse_base == "e" else lse / sp.log(2))
