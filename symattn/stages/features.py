"""The feature map of linear attention: a function of each entry of queries and keys, so that their products are weights."""

from __future__ import annotations

import sympy as sp

from symattn.building import Builder
from symattn.indexed import Tensor, name_of, tensor
from symattn.stages.choices import without_choices
from symattn.symbols import s as entry


def featured(b: Builder) -> None:
    """``Qf`` and ``Kf`` take the place of Q and K, where the definition has a feature map."""
    if b.d.feature == "identity":
        return
    c = b.at["c"]
    b.query = name_of(_mapped(b, b.at.query("Qf", c), b.at.query(b.query, c)))
    b.key = name_of(_mapped(b, b.at.key("Kf", c), b.at.key(b.key, c)))


def _mapped(b: Builder, target: Tensor, x: Tensor) -> Tensor:
    """The map of every entry ``x``, named as ``target``."""
    feature = b.d.feature
    if feature == "relu":
        return b.add(target, x, where=sp.Gt(x, 0))
    if feature == "exp":
        return b.add(target, sp.exp(x))
    if feature == "elu":  # elu(x) + 1: x + 1 above 0, exp(x) below
        name, at = name_of(target), target.indices
        above = b.add(tensor(name + "p", *at), x + 1, where=sp.Gt(x, 0), aux=True)
        below = b.add(tensor(name + "n", *at), sp.exp(x), where=sp.Le(x, 0), aux=True)
        return b.add(target, above + below)
    assert isinstance(feature, sp.Expr)
    expr = b.parameters.bind(feature).xreplace({entry: x})
    return b.add(target, without_choices(b, expr, lambda name: tensor(name, *target.indices), sp.true))
