"""Queries and keys divided by their norms, and keys without their mean."""

from __future__ import annotations

from collections.abc import Callable

import sympy as sp

from symattn.building import Builder
from symattn.indexed import Tensor, size, tensor
from symattn.keep import exists


def normed(b: Builder, base: tuple[str, str]) -> None:
    """Divide what stands for the queries (named after ``base[0]``) and the keys (``base[1]``) by their rms or length."""
    d, at = b.d, b.at
    if d.qk_norm is None:
        return
    b.query = _divided(b, base[0], "gQ", at.query, b.query, sp.true)
    b.key = _divided(b, base[1], "gK", at.key, b.key, exists(d, at))


def _divided(b: Builder, base: str, weight: str, read: Callable[..., Tensor], name: str, where: sp.Basic) -> str:
    """Add the norm of the rows of the tensor ``name``; the name of the rows divided by it."""
    d, c = b.d, b.at["c"]
    x = read(name, c)
    square = b.add(read(base + "sq"), x**2, c, where=where)
    under = square / size("d") if d.qk_norm == "rms" else square
    if d.qk_norm_eps is not None:
        under += b.parameters.number(d.qk_norm_eps)
    norm = b.add(read(base + "norm"), sp.sqrt(under), where=where)
    b.add(read(base + "n", c), x / norm * (tensor(weight, c) if d.qk_norm_weight else 1), where=where)
    return base + "n"


def smoothed(b: Builder, base: str) -> None:
    """Take the mean over all keys that exist (not over those that a query sees) off what stands for the keys."""
    d, at = b.d, b.at
    if not d.key_smoothing:
        return
    j, c = at["j"], at["c"]
    where = exists(d, at)
    x = at.key(b.key, c)
    column = tuple(a for a in x.indices if a != j)
    total = b.add(tensor(base + "sum" + at.suffix, *column), x, j, where=where)
    mean = b.add(tensor(base + "mean" + at.suffix, *column), total / key_count(b))
    b.key = base + "s"
    b.add(at.key(b.key, c), x - mean, where=where)


def key_count(b: Builder) -> sp.Expr:
    """How many keys there are without padding: a size, or counted, so that the gradient does not take it for a variable."""
    d, at = b.d, b.at
    if not d.key_lengths:
        return at.size_of("j")
    found = at.per_batch("Kcount")
    if "Kcount" not in {s.name for s in b.statements}:
        b.add(found, sp.S.One, at["j"], where=exists(d, at))
    return found
