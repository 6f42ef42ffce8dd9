"""Statements on their way into loops: what is free, what is summed, and along which loop a value is carried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import sympy as sp

from symattn.indexed import Tensor, all_reads, name_of, reads, subscripts_of, tensor
from symattn.program import Statement

__all__ = ["Unit", "opened", "with_names"]


@dataclass(frozen=True)
class Unit:
    """A statement on its way: ``carry`` is the loop along which it has a value before, ``fused`` whether loops sum it up."""

    name: str
    target: Tensor
    free: tuple[sp.Symbol, ...]
    expr: sp.Expr
    over: tuple[sp.Symbol, ...]
    reduce: str
    where: sp.Basic
    carry: sp.Symbol | None = None
    onto: bool = False
    fused: bool = False

    @classmethod
    def of(cls, s: Statement) -> Unit:
        """The unit of a statement, which carries a value where that is a scan."""
        carry = s.scan.index if s.scan is not None else None
        return cls(s.name, s.target, s.indices, s.expr, s.over, s.reduce, s.where, carry)

    @property
    def needs(self) -> frozenset[str]:
        """The names that it reads, its own value before left out."""
        found = {name_of(x) for e in (self.expr, self.where, *subscripts_of(self.target)) for x in all_reads(e)}
        return frozenset(found - {self.name})


def opened(u: Unit, copies: Mapping[str, Unit]) -> Unit:
    """A unit that reads what some copies are copies of."""
    table: dict[sp.Basic, sp.Basic] = {}
    for x in {x for e in (u.expr, u.where) for x in reads(e) if name_of(x) in copies}:
        of = copies[name_of(x)]
        table[x] = of.expr.xreplace(dict(zip(of.free, subscripts_of(x), strict=True)))
    return replace(u, expr=u.expr.xreplace(table), where=u.where.xreplace(table)) if table else u


def with_names(e: sp.Basic, names: Mapping[str, str]) -> sp.Basic:
    """An expression with some of its tensors renamed, also in subscripts."""
    table: dict[sp.Basic, sp.Basic] = {}
    for x in reads(e):
        new = tensor(names.get(name_of(x), name_of(x)), *(with_names(a, names) for a in subscripts_of(x)))
        if new != x:
            table[x] = new
    return e.xreplace(table)
