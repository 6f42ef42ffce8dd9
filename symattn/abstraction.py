"""Conditions of many parts held as one: proofs take a long mask for what it is to them, some set of pairs (i, j).

A normal form takes conditions apart, and of thirty alternatives that is far too many pieces. What holds for any set of index
tuples holds for the one that the mask describes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import sympy as sp

from symattn.indexed import conjuncts, integer_symbols, tensor
from symattn.program import Statement

__all__ = ["abstracted"]

MANY = 8
"""Conditions up to so many comparisons stay as they are."""


def abstracted(
    statements: Iterable[Statement], dims: Mapping[sp.Symbol, sp.Expr], names: dict[sp.Basic, str]
) -> tuple[Statement, ...]:
    """The statements with each long condition replaced by one comparison, the same for the same condition.

    Parameters
    ----------
    statements
        What a proof is about.
    dims
        Index -> size.
    names
        Condition -> name of the tensor; filled here, and shared by lists that are compared.

    >>> from symattn.indexed import indices, size
    >>> i, j = indices("i j")
    >>> long = sp.Or(*[sp.Eq(i - j, k) for k in range(20)])
    >>> s = Statement(tensor("P", i, j), tensor("Z", i, j), where=long)
    >>> print(abstracted([s], {i: size("n"), j: size("m")}, {})[0])
    P[i, j] = Z[i, j] where keep~0[i, j] != 0
    """
    return tuple(replace(s, where=_short(s.where, dims, names)) for s in statements)


def _short(where: sp.Basic, dims: Mapping[sp.Symbol, sp.Expr], names: dict[sp.Basic, str]) -> sp.Basic:
    if len(where.atoms(sp.core.relational.Relational)) <= MANY:
        return where
    groups: dict[tuple[sp.Symbol, ...], list[sp.Basic]] = {}
    for c in conjuncts(where):
        groups.setdefault(tuple(sorted(integer_symbols(c) & dims.keys(), key=str)), []).append(c)
    out: list[sp.Basic] = []
    for at, group in groups.items():
        whole = sp.And(*group)
        if not at or len(whole.atoms(sp.core.relational.Relational)) <= MANY:
            out += group
        else:
            out.append(sp.Ne(tensor(names.setdefault(whole, f"keep~{len(names)}"), *at), 0))
    return sp.And(*out)
