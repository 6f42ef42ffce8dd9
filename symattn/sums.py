"""What claims and facts of the normal form are written in: sums inside expressions, known sums, and where tensors are 0."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import sympy as sp

__all__ = ["Contraction", "Outside", "SumOver", "Support"]


class SumOver(sp.Expr):
    """``SumOver(body, i, j, where=condition)``: the sum of ``body`` over the indices where the condition holds, inside a claim.

    >>> i = sp.Symbol("i", integer=True)
    >>> SumOver(sp.IndexedBase("x")[i], i).over
    (i,)
    """

    def __new__(cls, body: sp.Expr, *over: sp.Basic, where: sp.Basic = sp.true) -> SumOver:
        """Make the sum; also from ``args``, as SymPy rebuilds expressions."""
        if over and isinstance(over[0], sp.Tuple):
            return sp.Expr.__new__(cls, body, *over)
        return sp.Expr.__new__(cls, body, sp.Tuple(*over), where, sp.Tuple())

    @property
    def body(self) -> sp.Expr:
        """What is summed."""
        return self.args[0]

    @property
    def over(self) -> tuple[sp.Symbol, ...]:
        """The bound indices."""
        return tuple(self.args[1])

    @property
    def where(self) -> sp.Basic:
        """The condition."""
        return self.args[2]

    @property
    def binds(self) -> tuple[tuple[sp.Symbol, ...], tuple[sp.Expr, ...], tuple[sp.Basic, ...]]:
        """The bound indices, their sizes as far as they are known, and what they are bound in."""
        return self.over, tuple(self.args[3]), (self.body, self.where)

    def over_new(self, table: Mapping[sp.Symbol, sp.Symbol], sizes: Iterable[sp.Expr]) -> SumOver:
        """The same sum over other indices, that carry their sizes."""
        new = self.xreplace(table)
        return sp.Expr.__new__(SumOver, new.args[0], new.args[1], new.args[2], sp.Tuple(*sizes))

    @property
    def free_symbols(self) -> set[sp.Basic]:
        """All symbols but the bound indices."""
        return (self.body.free_symbols | self.where.free_symbols) - set(self.over)


@dataclass(frozen=True)
class Contraction:
    """A known sum: ``sum over bound of pattern where condition = value``, for all values of the other indices.

    Parameters
    ----------
    pattern
        A product of powers of tensors and functions of tensors. Its indices are wildcards.
    bound
        The index or indices that are summed. Every factor of the pattern has one of them.
    where
        The condition under which the sum is taken; each conjunct has a bound index.
    value
        An expression without the bound indices.
    given
        Conditions without bound indices under which the fact holds at all.
    """

    pattern: sp.Expr
    bound: sp.Symbol | tuple[sp.Symbol, ...]
    where: sp.Basic
    value: sp.Expr
    given: sp.Basic = sp.true

    @property
    def over(self) -> tuple[sp.Symbol, ...]:
        """The bound indices."""
        return self.bound if isinstance(self.bound, tuple) else (self.bound,)


@dataclass(frozen=True)
class Support:
    """A tensor is 0 (a maximum -oo, a gradient without effect) at the indices where the conditions do not hold."""

    at: tuple[sp.Symbol, ...]
    conditions: tuple[sp.Basic, ...]


@dataclass(frozen=True)
class Outside:
    """A tensor equals ``value`` at the indices where one of the conditions does not hold: a total without its only sum."""

    at: tuple[sp.Symbol, ...]
    conditions: tuple[sp.Basic, ...]
    value: sp.Expr
