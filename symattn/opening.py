"""Terms with shifted subscripts in one shape: ``sum_t x[t] y[t - 1]`` and ``sum_t x[t + 1] y[t]`` are the same sum.

A subscript that is a bound index up to a shift becomes an index of its own, with an equality that says which one; so no term
prefers one of the two. Conditions are written in all indices that the equalities connect, and go away where one of these forms
always holds. An index that no factor has any more goes away. What comes out serves to compare terms: no rule is applied to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import sympy as sp

from symattn.conditions import normal_condition, serial, strongest
from symattn.indexed import index, name_of, reads, subscripts_of
from symattn.program import Statement
from symattn.terms import Term

__all__ = ["axes_of", "opened"]

_MOST = 64
"""Forms of one condition, and equalities, that are looked at."""

Dims = Mapping[sp.Symbol, sp.Expr]
Axes = Mapping[tuple[str, int], sp.Expr]


def axes_of(statements: Iterable[Statement], dims: Dims) -> dict[tuple[str, int], sp.Expr]:
    """The size of every axis of a tensor that some statement defines or reads with a plain index, by name and number."""
    found: dict[tuple[str, int], sp.Expr] = {}
    for s in statements:
        for x in (s.target, *s.expr.atoms(sp.Indexed)):
            for k, a in enumerate(subscripts_of(x)):
                if a in dims:
                    found.setdefault((name_of(x), k), dims[a])
    return found


def opened(t: Term, dims: Dims, axes: Axes) -> tuple[Term, Dims] | None:
    """The term without shifted subscripts, and the sizes of its indices; None where it is 0.

    It is equal to the term wherever the subscripts of that are in range, or their tensors 0 beyond it.

    >>> from symattn.indexed import indices, size, tensor
    >>> (t,), n = indices("t"), size("n")
    >>> term = Term(sp.S.One, {tensor("x", t): sp.S.One, tensor("y", t - 1): sp.S.One}, frozenset({t}), frozenset({t - 1 >= 0}))
    >>> found, _ = opened(term, {t: n}, {("y", 0): n})
    >>> sorted(map(str, found.atoms)), found.conditions
    (['x[t]', 'y[~0]'], frozenset({Eq(-t + ~0 + 1, 0)}))
    """
    names: dict[tuple[sp.Expr, sp.Expr], sp.Symbol] = {}
    table: dict[sp.Basic, sp.Basic] = {}
    for x in sorted({y for a in t.atoms for y in a.atoms(sp.Indexed)}, key=str):
        new = [_index(a, axes.get((name_of(x), k)), t, names) for k, a in enumerate(subscripts_of(x))]
        if new != list(subscripts_of(x)):
            table[x] = x.base[tuple(new)]
    if not table:
        return t, dims
    atoms: dict[sp.Expr, sp.Rational] = {}
    for x, p in t.atoms.items():
        y = x.xreplace(table)
        atoms[y] = atoms.get(y, sp.S.Zero) + p
    dims = {**dims, **{b: n for (_, n), b in names.items()}}
    equal = [sp.expand(b - a) for (a, _), b in names.items()]
    bound = t.bound | set(names.values())
    conditions, equal, bound = _without_idle(set(t.conditions), equal, bound, atoms, dims)
    equal = _saturated(equal, bound)
    kept = _in_all_forms(conditions, equal, bound, dims)
    return None if kept is None else (replace(t, atoms=atoms, bound=bound, conditions=kept | {sp.Eq(e, 0) for e in equal}), dims)


def _index(a: sp.Expr, length: sp.Expr | None, t: Term, names: dict[tuple[sp.Expr, sp.Expr], sp.Symbol]) -> sp.Expr:
    """The index that stands for a subscript: itself, or one of its own for a bound index and a shift, or the number of a part."""
    inside = [b for b in t.bound if a.has(b)]
    if length is None or reads(a) or not inside:
        return a
    shifted = a.is_Add and len(inside) == 1 and _slope(a, inside[0]) is not None
    if not shifted and not a.atoms(sp.floor):
        return a
    return names.setdefault((a, length), index(f"~{len(names)}"))


def _slope(e: sp.Expr, a: sp.Symbol) -> sp.Expr | None:
    """1 or -1 where an expression is the index, or minus it, and something without it."""
    slope = e.coeff(a, 1)
    return slope if slope in (1, -1) and not (e - slope * a).has(a) else None


def _value(e: sp.Expr, a: sp.Symbol) -> sp.Expr | None:
    """The index in the others, where ``e = 0``."""
    slope = _slope(e, a)
    return None if slope is None else sp.expand(-(e - slope * a) / slope)


def _without_idle(
    conditions: set[sp.Basic],
    equal: list[sp.Expr],
    bound: frozenset[sp.Symbol],
    atoms: Mapping[sp.Expr, sp.Rational],
    dims: Dims,
) -> tuple[set[sp.Basic], list[sp.Expr], frozenset[sp.Symbol]]:
    """Put the value of a bound index that no factor has, and its range, in its place."""
    for c in sorted((c for c in bound if not any(x.has(c) for x in atoms)), key=str):
        users = [e for e in equal if e.has(c)]
        value = _value(users[0], c) if users else None
        if value is None:
            continue
        equal = [sp.expand(e.xreplace({c: value})) for e in equal if e is not users[0]]
        limits = {sp.Ge(value, 0), sp.Le(value, dims[c] - 1)}
        conditions = {normal_condition(q.xreplace({c: value}), dims) for q in conditions | limits} - {sp.true}
        bound -= {c}
    return conditions, equal, bound


def _saturated(equal: list[sp.Expr], bound: frozenset[sp.Symbol]) -> list[sp.Expr]:
    """The equalities (``e = 0``) with those that follow by putting one into another."""
    found = {_unsigned(e): e for e in equal}
    todo = list(found.values())
    while todo and len(found) < _MOST:
        e = todo.pop()
        for a in sorted((a for a in bound if e.has(a)), key=str):
            value = _value(e, a)
            for other in list(found.values()) if value is not None else ():
                new = sp.expand(other.xreplace({a: value})) if other is not e and other.has(a) else sp.S.Zero
                if new != 0 and _unsigned(new) not in found:
                    found[_unsigned(new)] = new
                    todo.append(new)
    return list(found.values())


def _unsigned(e: sp.Expr) -> str:
    return min(serial(e), serial(sp.expand(-e)))


def _in_all_forms(
    conditions: Iterable[sp.Basic], equal: Iterable[sp.Expr], bound: frozenset[sp.Symbol], dims: Dims
) -> frozenset[sp.Basic] | None:
    """Conditions in all indices that equalities connect, without those that a form of them decides; None if one cannot hold."""
    steps = [(a, v) for e in equal for a in sorted(bound, key=str) if e.has(a) and (v := _value(e, a)) is not None]
    out: set[sp.Basic] = set()
    for c in conditions:
        found = {serial(c): c}
        todo = [c]
        while todo and len(found) < _MOST:
            here = todo.pop()
            for a, value in steps:
                q = normal_condition(here.xreplace({a: value}), dims) if here.has(a) else here
                if serial(q) not in found:
                    found[serial(q)] = q
                    todo.append(q)
        if sp.false in found.values():
            return None
        if sp.true not in found.values():
            out |= set(found.values())
    return strongest(frozenset(out))
