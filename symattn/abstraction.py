"""Conditions of many parts held as one: proofs take a long mask for what it is to them, some set of pairs (i, j).

A normal form takes conditions apart, and of thirty alternatives that is far too many pieces. What holds for any set of index
tuples holds for the one that the mask describes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import sympy as sp

from symattn.indexed import integer_symbols, tensor
from symattn.program import Statement

__all__ = ["abstracted"]

MANY = 8
"""Conditions up to so many comparisons stay as they are."""


def abstracted(statements: Iterable[Statement], dims: Mapping[sp.Symbol, sp.Expr]) -> tuple[Statement, ...]:
    """The statements with long conditions replaced by comparisons with a tensor, the same for the same condition.

    What is replaced as one are the parts of a conjunction that have the same indices and occur in the same statements, so that
    a statement with one condition more still has the others.

    Parameters
    ----------
    statements
        What a proof is about; lists that are compared come one behind the other.
    dims
        Index -> size.

    >>> from symattn.indexed import indices, size
    >>> i, j = indices("i j")
    >>> long = sp.Or(*[sp.Eq(i - j, k) for k in range(20)])
    >>> s = Statement(tensor("P", i, j), tensor("Z", i, j), where=long)
    >>> print(abstracted([s], {i: size("n"), j: size("m")})[0])
    P[i, j] = Z[i, j] where keep~0[i, j] != 0
    """
    listed = tuple(statements)
    if all(_count(s.where) <= MANY for s in listed):
        return listed
    places: dict[sp.Basic, list[int]] = {}
    for k, s in enumerate(listed):
        for c in s.conditions:
            places.setdefault(c, []).append(k)
    groups: dict[object, list[sp.Basic]] = {}
    for c, at in places.items():
        groups.setdefault((tuple(at), frozenset(integer_symbols(c) & dims.keys())), []).append(c)
    short: dict[sp.Basic, sp.Basic] = {}
    for k, group in enumerate(groups.values()):
        indices = sorted(integer_symbols(group[0]) & dims.keys(), key=str)
        if indices and sum(map(_count, group)) > MANY:
            short |= dict.fromkeys(group, sp.Ne(tensor(f"keep~{k}", *indices), 0))
    return tuple(replace(s, where=sp.And(*[short.get(c, c) for c in s.conditions])) for s in listed)


def _count(where: sp.Basic) -> int:
    """How many comparisons there are; those of alternatives count twice, because a normal form multiplies them out."""
    parts = where.args if isinstance(where, sp.And) else (where,)
    return sum(len(c.atoms(sp.core.relational.Relational)) * (2 if isinstance(c, sp.Or) else 1) for c in parts)
