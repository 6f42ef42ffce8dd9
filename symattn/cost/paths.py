"""How far two positions are from each other: the largest number of steps that a signal takes from one to another that it reaches.

Where queries look at keys, a step goes from any key to any query that sees it, layer after layer; in a recurrence from one
position to the next. What a mask of positions gives is counted on the graph of positions, and a closed form is one that
agrees with it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import sympy as sp

from symattn.indexed import all_reads, conjuncts
from symattn.program import Program

__all__ = ["Path", "longest_path"]

SIZES = tuple(range(6, 19))
"""The numbers of positions at which a closed form must agree with the graph."""


@dataclass(frozen=True)
class Path:
    """The longest of the shortest paths, and under what: at one size where there is no formula, or for a given mask."""

    length: sp.Expr
    says: str = ""


def longest_path(program: Program, row: sp.Symbol, key: sp.Symbol, n: sp.Symbol) -> Path:
    """The longest path between two positions.

    Parameters
    ----------
    program
        A layer over n positions.
    row, key
        The indices of queries and keys.
    n
        The number of positions; keys and queries are the same ones.

    >>> from symattn.definition import Definition
    >>> i, j = sp.symbols("i j", integer=True)
    >>> n = sp.Symbol("n", integer=True, positive=True)
    >>> window = Definition(causal="top-left", window=(4, 0))
    >>> [longest_path(d.program(), i, j, n).length for d in (Definition(), window)]
    [1, ceiling(n/3 - 1/3)]
    """
    seen = [s for s in program if {row, key} <= set(s.domain)]
    if not seen:
        walks = any(s.scan is not None and program.dims[s.scan.index] == n for s in program)
        return Path(n if walks else sp.S.Zero)
    s = next((x for x in seen if x.over and key in x.over and row in x.indices), seen[0])
    where = s.where.xreplace({program.dims[key]: n, program.dims[row]: n})
    if any(all_reads(c) for c in conjuncts(where)):
        return Path(sp.S.One, "for pairs that the mask keeps")
    found = {k: _diameter(where, row, key, n, k) for k in SIZES}
    for formula in _candidates(where, row, key, n):
        if all(formula.subs(n, k) == v for k, v in found.items()):
            return Path(formula)
    return Path(sp.Integer(found[SIZES[-1]]), f"at n = {SIZES[-1]}")


def _candidates(where: sp.Basic, row: sp.Symbol, key: sp.Symbol, n: sp.Symbol) -> list[sp.Expr]:
    """1, and the number of windows between the first and the last position."""
    edges = _edges(where, row, key, n, SIZES[-1])
    reach = max((abs(a - b) for a, b in edges), default=0)
    return [sp.S.One, *([sp.ceiling((n - 1) / sp.Integer(reach))] if 0 < reach < SIZES[-1] - 1 else [])]


def _edges(where: sp.Basic, row: sp.Symbol, key: sp.Symbol, n: sp.Symbol, k: int) -> list[tuple[int, int]]:
    holds = sp.lambdify([row, key], where.xreplace({n: sp.Integer(k)}), modules="math")
    return [(j, i) for i in range(k) for j in range(k) if holds(i, j)]


def _diameter(where: sp.Basic, row: sp.Symbol, key: sp.Symbol, n: sp.Symbol, k: int) -> int:
    """The longest of the shortest paths between positions that are connected, by breadth-first search."""
    follow: dict[int, list[int]] = {a: [] for a in range(k)}
    for a, b in _edges(where, row, key, n, k):
        follow[a].append(b)
    longest = 0
    for start in range(k):
        steps, todo = {start: 0}, deque([start])
        while todo:
            a = todo.popleft()
            for b in follow[a]:
                if b not in steps:
                    steps[b] = steps[a] + 1
                    todo.append(b)
        longest = max(longest, *steps.values())
    return longest
