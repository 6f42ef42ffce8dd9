"""What the evaluations of the linear family share: weights of pairs, what the delta rule writes, and reading a state."""

from __future__ import annotations

import sympy as sp

from symattn.building import Builder
from symattn.indexed import Tensor, size, tensor
from symattn.program import Scan
from symattn.stages.decays import Decays, of_keys


def scaled(b: Builder) -> bool:
    """Whether outputs are multiplied by the scale; it cancels in normalised ones."""
    return not b.d.normalized and b.d.scale != 1


def scale(b: Builder) -> Tensor:
    """The scale, as a statement of its own that is made once."""
    value = 1 / sp.sqrt(size("d")) if b.d.scale is None else b.parameters.bind(b.at.read(b.d.scale))
    return tensor("scale") if any(s.name == "scale" for s in b.statements) else b.add(tensor("scale"), value)


def weights(b: Builder, gamma: sp.Expr, decays: Decays, total: sp.Expr | None = None) -> Tensor:
    """``P[i, j]``: the product of query and key, scaled and decayed; divided by its row sum where ``normalized``.

    ``total`` is the row sum, where it is more than that of the pairs that ``b.where`` keeps.
    """
    at = b.at
    j, c = at["j"], at["c"]
    product = at.query(b.query, c) * of_keys(b, b.key, j, c)
    p = b.masked(at.score("R"), product * gamma if decays.channels else product, c)
    if scaled(b):
        p = b.masked(at.score("S"), scale(b) * p)
    if not decays.channels and gamma != 1:
        p = b.masked(at.score("Rg"), p * gamma)
    if not b.d.normalized:
        return p
    row = b.masked(at.query("lr" if total is None else "lrk"), p, j)
    if total is not None:
        row = b.add(at.query("lr"), row + total)
    return b.masked(at.score("P"), p / row)


def solved(
    b: Builder, gamma: sp.Expr, decays: Decays, chunk: sp.Basic, name: str, target: sp.Expr, before: sp.Expr | None = None
) -> Tensor:
    """The solution of ``x[i] = beta[i] * (target[i] - sum over j < i of (k[i] . k[j]) Gamma[i, j] x[j])``, by substitution.

    ``chunk`` restricts the pairs, ``before`` is taken off the target.
    """
    at = b.at
    i, j, c = at["i"], at["j"], at["c"]
    last = target.indices[-1]
    strict = sp.And(sp.Le(j, i - 1), chunk)
    pairs = of_keys(b, "Rk", i, j)
    if not any(s.name == "Rk" for s in b.statements):
        product = of_keys(b, b.key, i, c) * of_keys(b, b.key, j, c)
        b.add(pairs, product * gamma if decays.channels else product, c, where=strict)
        if not decays.channels and gamma != 1:
            b.add(of_keys(b, "Tk", i, j), pairs * gamma, where=strict)
    if not decays.channels and gamma != 1:
        pairs = of_keys(b, "Tk", i, j)
    scan = Scan(i, number=sum(s.scan is not None and s.name in ("Vw", "Kw", "Vn") for s in b.statements))
    said = b.add(of_keys(b, name + "p", i, last), pairs * of_keys(b, name, j, last), j, where=strict, scan=scan)
    wanted = target - said if before is None else target - before - said
    return b.add(of_keys(b, name, i, last), of_keys(b, "Bt", i) * wanted, scan=scan)


def initial(b: Builder, x: sp.Symbol) -> Tensor:
    """The given state, at the first value of the index x only."""
    c, e = b.at["c"], b.at["e"]
    return b.add(of_keys(b, "Si", x, c, e), of_keys(b, "St0", c, e), where=sp.Eq(x, 0), aux=True)


def read_out(b: Builder, name: str, read: sp.Expr, c: sp.Symbol, normaliser: Tensor | None = None) -> Tensor:
    """``name[i, e]``, the sum of ``read`` over the key channels, scaled; divided by query times ``normaliser`` where asked."""
    at, e = b.at, b.at["e"]
    if b.d.normalized and normaliser is not None:
        above = b.add(at.query(name + "r", e), read, c)
        row = b.add(at.query("lr"), at.query(b.query, c) * normaliser, c)
        return b.add(at.query(name, e), above / row)
    if not scaled(b):
        return b.add(at.query(name, e), read, c)
    return b.add(at.query(name, e), scale(b) * b.add(at.query(name + "r", e), read, c))
