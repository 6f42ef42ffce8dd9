"""From which number positions are counted on a page: from 1, unless a formula computes with a position itself.

A program counts every index from 0. A formula that only has differences and comparisons of indices (``i - j``, ``j <= i``) says
the same when all of them are counted from 1; one that has ``i + 1``, ``j < 2`` or ``2^(-8(h + 1)/H)`` does not.
"""

from __future__ import annotations

from collections.abc import Iterable

import sympy as sp

from symattn.indexed import all_reads, name_of, reads, subscripts_of
from symattn.program import Program


def origin(program: Program) -> int:
    """1 where every formula of a program holds with all indices counted from 1, and 0 otherwise.

    >>> from symattn.definition import Definition
    >>> [origin(Definition(score=t, causal="top-left").program()) for t in ("s - (i - j)", "s - abs(i - j)/2", "(i + 1)*s")]
    [1, 1, 0]
    >>> origin(Definition(prefix=2).program()), origin(Definition(window=(2, 0)).program())
    (0, 1)
    """
    shift = _Shift(program)
    return int(all(shift.harmless(e) for s in program for e in (s.expr, s.where)))


class _Shift:
    """Every index, and every tensor that holds positions (its elements are subscripts of others), becomes one more."""

    def __init__(self, program: Program) -> None:
        self.indices = set(program.dims)
        self.positions = {
            name_of(y) for s in program for e in (s.expr, s.where) for x in all_reads(e) for y in _inside(subscripts_of(x))
        }

    def harmless(self, e: sp.Basic) -> bool:
        """Whether nothing changes in an expression or a condition."""
        if isinstance(e, (sp.And, sp.Or, sp.Not)):
            return all(map(self.harmless, e.args))
        if any(sp.expand(self.of(a) - a) != 1 for x in all_reads(e) for a in subscripts_of(x)):
            return False
        if isinstance(e, sp.core.relational.Relational):
            difference = e.lhs - e.rhs if e.lhs.is_finite is not False and e.rhs.is_finite is not False else e.lhs
            return self.harmless(difference)
        return not self.touches(e) or sp.expand(self.of(e) - e) == 0

    def touches(self, e: sp.Basic) -> bool:
        """Whether something in an expression changes."""
        return self.of(e) != e

    def of(self, e: sp.Basic) -> sp.Expr:
        """An expression with everything one more."""
        if isinstance(e, sp.Indexed):
            return e + 1 if name_of(e) in self.positions else e
        if isinstance(e, sp.Symbol):
            return e + 1 if e in self.indices else e
        return e.func(*map(self.of, e.args)) if e.args else e


def _inside(subscripts: Iterable[sp.Expr]) -> list[sp.Expr]:
    return [y for a in subscripts for y in reads(a)]
