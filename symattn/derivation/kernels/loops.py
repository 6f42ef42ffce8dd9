"""A program as a kernel runs it: assignments in loops, with variables that are overwritten. Plain data.

:mod:`.lowering` makes it of a list of statements, :mod:`.pseudocode` prints it. An assignment means what a statement means: it is
made at all values of the indices of its target and of its bound indices at which the condition holds; an unreduced one gives 0
elsewhere. What is on the left stands for the value before where it is read on the right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import sympy as sp

from symattn.indexed import Table, Tensor, name_of

__all__ = ["Assign", "For", "Kernel", "Load", "Node", "Start", "walked"]


@dataclass(frozen=True)
class Start:
    """A variable and the number that it has before a loop: 0, or -oo for a maximum."""

    target: Tensor
    value: sp.Expr


@dataclass(frozen=True)
class Load:
    """Rows of tensors in memory that are read from here on, as they are read."""

    reads: tuple[Tensor, ...]


@dataclass(frozen=True)
class Assign:
    """``target <- reduce over .. of expr where ..``.

    Parameters
    ----------
    target
        A variable, or a place in memory: its subscripts may be expressions in loop indices and in ``free``.
    free
        The indices for whose values the assignment is made.
    expr, over, reduce, where
        As in a statement.
    onto
        Whether the value is added to what is there (or the maximum with it is taken), and not put in its place.
    name
        The statement of the program that it is made of.
    """

    target: Tensor
    free: tuple[sp.Symbol, ...]
    expr: sp.Expr
    over: tuple[sp.Symbol, ...] = ()
    reduce: str = "sum"
    where: sp.Basic = sp.true
    onto: bool = False
    name: str = ""


@dataclass(frozen=True)
class For:
    """A loop over the values of an index; ``carried`` where one turn reads or adds to what another has left."""

    index: sp.Symbol
    count: sp.Expr
    body: tuple[Node, ...]
    carried: bool


Node: TypeAlias = Start | Load | Assign | For


@dataclass(frozen=True)
class Kernel:
    """A kernel: what it reads, what it gives, the sizes of indices, and its body.

    Parameters
    ----------
    reads, gives
        Names of tensors in memory.
    dims
        Index -> size.
    body
        The nodes, in order.
    """

    reads: tuple[str, ...]
    gives: tuple[str, ...]
    body: tuple[Node, ...]
    dims: Mapping[sp.Symbol, sp.Expr] = field(default_factory=Table)

    def assigned(self) -> tuple[Assign, ...]:
        """All assignments, in order."""
        return tuple(n for n, _ in walked(self.body) if isinstance(n, Assign))


def walked(body: tuple[Node, ...], inside: tuple[sp.Symbol, ...] = ()) -> Iterator[tuple[Node, tuple[sp.Symbol, ...]]]:
    """Every node with the indices of the loops around it, in order."""
    for n in body:
        yield n, inside
        if isinstance(n, For):
            yield from walked(n.body, (*inside, n.index))


def written(body: tuple[Node, ...]) -> frozenset[str]:
    """The names that a body assigns."""
    return frozenset(name_of(n.target) for n, _ in walked(body) if isinstance(n, (Assign, Start)))
