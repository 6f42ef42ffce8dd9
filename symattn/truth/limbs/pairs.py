"""Which indices of a program are those of pairs: found where a product of two matrices is first reduced, by no name."""

from __future__ import annotations

import sympy as sp

from symattn.errors import UnfitError
from symattn.program import Program, Statement, name_of, reads, subscripts_of
from symattn.truth.limbs.forms import Axes


def axes_of(program: Program) -> Axes:
    """The indices of a pair, found where a sum of products of two inputs is first reduced over one of its indices.

    Raises
    ------
    UnfitError
        When no statement is such a sum, or nothing is reduced over one of its indices.
    """
    inputs = set(program.inputs)
    scores: dict[str, frozenset[sp.Symbol]] = {}
    for s in program:
        made = [frozenset(s.indices)] if _is_product(s, inputs) else []
        from_ = [scores[n] for n in (name_of(x) for x in s.reads) if n in scores]
        for pair in from_:
            over = set(s.over)
            if over and over <= pair:
                if len(over) > 1:
                    raise UnfitError(f"`{s}` is a sum over more than one index of a score")
                return _split(program, pair, s.over[0])
        if made or from_:
            scores[s.name] = frozenset(s.indices)
    raise UnfitError("no statement is reduced over the keys of a dot product of inputs")


def _is_product(s: Statement, inputs: set[str]) -> bool:
    if not s.over or s.reduce != "sum" or s.scan is not None:
        return False
    names = [{name_of(x) for x in reads(t)} for t in sp.Add.make_args(s.expr)]
    return all(len(reads(t)) >= 2 and n <= inputs for t, n in zip(sp.Add.make_args(s.expr), names, strict=True))


def _split(program: Program, pair: frozenset[sp.Symbol], key: sp.Symbol) -> Axes:
    """The indices that a given matrix on keys has beside them are those of a batch, the others those of rows."""
    shared: set[sp.Symbol] = set()
    for s in program:
        for x in s.reads:
            sub = set(subscripts_of(x))
            if name_of(x) not in program and key in sub and not sub <= pair:
                shared |= sub & pair
    order = [a for s in program if pair <= set(s.indices) for a in s.indices if a in pair]
    order = list(dict.fromkeys(order))
    rows = tuple(a for a in order if a not in shared and a != key)
    if not rows:
        raise UnfitError("a score has no index of its own beside that of the keys")
    return Axes(tuple(a for a in order if a in shared and a != key), rows, key)
