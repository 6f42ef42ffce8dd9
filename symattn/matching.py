"""Matching of patterns against atoms and conditions, the pattern's indices being wildcards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations

import sympy as sp

from symattn.conditions import serial
from symattn.indexed import name_of

__all__ = ["match", "match_all"]

_WIDEST = 5
Fits = Callable[[sp.Symbol, sp.Expr], bool]


def match(pattern: sp.Basic, e: sp.Basic, found: Mapping[sp.Symbol, sp.Expr], fits: Fits) -> Iterator[dict[sp.Symbol, sp.Expr]]:
    """All ways to read ``e`` as ``pattern``: index of the pattern -> subscript; ``fits`` says which subscript an index may be.

    >>> i, j, a = sp.symbols("i j a", integer=True)
    >>> x = sp.IndexedBase("x")
    >>> next(match(sp.exp(x[i, j] - x[i, i]), sp.exp(x[a, 0] - x[a, a]), {}, lambda i, e: i.is_positive is None))
    {i: a, j: 0}
    >>> next(match(sp.Abs(i - j), sp.Abs(a - i), {i: i}, lambda x, e: x == j))
    {i: i, j: a}
    """
    if isinstance(pattern, sp.Symbol) and fits(pattern, pattern):
        if pattern in found:
            if serial(found[pattern]) == serial(e):
                yield dict(found)
        elif fits(pattern, e):
            yield {**found, pattern: e}
        return
    if isinstance(pattern, sp.Indexed):
        if isinstance(e, sp.Indexed) and name_of(e) == name_of(pattern) and len(e.indices) == len(pattern.indices):
            yield from _each(list(zip(pattern.indices, e.indices, strict=True)), found, fits)
        return
    if not pattern.args or isinstance(pattern, sp.Symbol):
        if serial(pattern) == serial(e):
            yield dict(found)
        return
    if type(pattern) is not type(e) or len(pattern.args) != len(e.args):
        return
    if isinstance(pattern, sp.Abs) or (isinstance(pattern, (sp.Eq, sp.Ne)) and pattern.rhs == e.args[-1] == 0):
        for x in (e.args[0], sp.expand(-e.args[0])):  # their sign is arbitrary
            yield from match(pattern.args[0], x, found, fits)
        return
    if isinstance(pattern, (sp.Add, sp.Mul, sp.And, sp.Or, sp.Eq, sp.Ne, sp.Max, sp.Min)):
        yield from _unordered(pattern, e, found, fits)
        return
    yield from _each(list(zip(pattern.args, e.args, strict=True)), found, fits)


def _unordered(
    pattern: sp.Basic, e: sp.Basic, found: Mapping[sp.Symbol, sp.Expr], fits: Fits
) -> Iterator[dict[sp.Symbol, sp.Expr]]:
    """Arguments without wildcards must be there as they are; the others in any order."""
    pool = list(e.args)
    open_ = []
    for a in pattern.args:
        if any(fits(x, x) for x in a.atoms(sp.Symbol)):
            open_.append(a)
            continue
        same = [k for k, x in enumerate(pool) if serial(x) == serial(a)]
        if not same:
            return
        del pool[same[0]]
    orders = permutations(pool) if len(pool) <= _WIDEST else iter([tuple(pool)])
    for order in orders:
        yield from _each(list(zip(open_, order, strict=True)), found, fits)


def _each(
    pairs: list[tuple[sp.Basic, sp.Basic]], found: Mapping[sp.Symbol, sp.Expr], fits: Fits
) -> Iterator[dict[sp.Symbol, sp.Expr]]:
    if not pairs:
        yield dict(found)
        return
    for m in match(*pairs[0], found, fits):
        yield from _each(pairs[1:], m, fits)


def match_all(
    patterns: Sequence[sp.Basic], pool: Sequence[sp.Basic], found: Mapping[sp.Symbol, sp.Expr], fits: Fits
) -> Iterator[tuple[dict[sp.Symbol, sp.Expr], tuple[sp.Basic, ...]]]:
    """All ways to match every pattern with a member of ``pool`` of its own; gives the matching and the members used."""
    if not patterns:
        yield dict(found), ()
        return
    for k, x in enumerate(pool):
        for m in match(patterns[0], x, found, fits):
            for rest, used in match_all(patterns[1:], [*pool[:k], *pool[k + 1 :]], m, fits):
                yield rest, (x, *used)
