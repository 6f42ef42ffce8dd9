"""The object that rules work on: a forward program and the list of statements derived from it.

A name in the derived list is *known* when people have a word for it: an output, or the gradient or tangent of a tensor that is no
helper (``aux``). All other names are helpers, which rules may eliminate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import sympy as sp

from symattn.errors import ProgramError
from symattn.presentation.scalars import renaming, replace_reads, tidy
from symattn.program import Program, Statement, conjuncts, name_of, reads
from symattn.scans import grouped, kept_apart

__all__ = ["Listing", "in_order", "names_read"]


def names_read(s: Statement) -> frozenset[str]:
    """The names of the tensors whose values a statement reads outside its condition."""
    return frozenset(name_of(x) for x in s.reads)


@dataclass(frozen=True)
class Listing:
    """A forward program, and statements derived from it that compute ``outputs``.

    Parameters
    ----------
    program
        Forward statements, sizes and shapes of everything.
    derived
        The statements that follow, in an order in which they can run.
    outputs
        Names that the derived statements must keep.
    given
        Names that a rule has given by role: people know these too.
    """

    program: Program
    derived: tuple[Statement, ...]
    outputs: tuple[str, ...]
    given: frozenset[str] = frozenset()

    @cached_property
    def forward(self) -> Mapping[str, Statement]:
        """The forward statements by name."""
        return {s.name: s for s in self.program}

    @cached_property
    def by_name(self) -> Mapping[str, Statement]:
        """The derived statements by name."""
        return {s.name: s for s in self.derived}

    @cached_property
    def gradient_of(self) -> Mapping[str, str]:
        """Gradient name -> tensor, forward or input (``dO'``, the whole gradient of an output read later, is one of ``O``)."""
        tensors = {*self.forward, *self.program.inputs}
        names = {x.name for x in self.derived} | {n for s in self.derived for n in s.needs}
        return {
            n: x for n in names if (x := n.rstrip("'").removeprefix("d")) in tensors and n.startswith("d") and n not in tensors
        }

    @cached_property
    def tangent_of(self) -> Mapping[str, str]:
        """Tangent name -> tensor, forward or input: ``P_t`` is the tangent of ``P``."""
        tensors = {*self.forward, *self.program.inputs}
        names = {x.name for x in self.derived} | {n for s in self.derived for n in s.needs}
        return {n: x for n in names if n.endswith("_t") and (x := n[:-2]) in tensors and n not in tensors}

    def known(self, name: str) -> bool:
        """Whether people have a word for the tensor: an output, the gradient or tangent of what is no helper, or a name given."""
        x = self.gradient_of.get(name) or self.tangent_of.get(name)
        return name in self.outputs or name in self.given or (x is not None and not (x in self.forward and self.forward[x].aux))

    @cached_property
    def taken(self) -> frozenset[str]:
        """All names in use."""
        return frozenset({n for s in (*self.program, *self.derived) for n in (s.name, *s.needs)})

    def fresh(self, wish: str) -> str:
        """``wish``, numbered from 2 where it is taken."""
        k, name = 2, wish
        while name in self.taken:
            name, k = f"{wish}{k}", k + 1
        return name

    def users(self, name: str) -> tuple[Statement, ...]:
        """The derived statements that read ``name``."""
        return tuple(s for s in self.derived if name in s.needs)

    def domain_allows(self, source: Statement, user: Statement) -> bool:
        """Whether every point at which ``user`` reads ``source`` is inside the domain of ``source``.

        True when each condition of ``source``, its indices renamed to those of the read, is a condition of ``user``.
        """
        if any(name_of(x) == source.name for x in reads(user.where)):
            return False
        have = set(user.conditions)
        for r in user.reads:
            table = renaming(source.target, r)
            if table is not None and not set(conjuncts(source.where.xreplace(table))) <= have:
                return False
        return source.name in names_read(user)

    def with_derived(self, derived: Iterable[Statement]) -> Listing:
        """The listing with other derived statements, brought into an order in which they can run."""
        return replace(self, derived=in_order(derived))

    def naming(self, name: str) -> Listing:
        """The listing with one more name that was given by role."""
        return replace(self, given=self.given | {name})

    def replaced(self, changed: Mapping[str, Iterable[Statement]]) -> Listing:
        """Put other statements in the place of those named."""
        return self.with_derived(t for s in self.derived for t in changed.get(s.name, (s,)))

    def inlined(self, s: Statement) -> Listing:
        """The listing in which every reader of the unreduced statement ``s`` reads its expression, and ``s`` is gone."""
        return self.replaced(
            {
                s.name: (),
                **{u.name: (replace(u, expr=tidy(replace_reads(u.expr, s.target, s.expr))),) for u in self.users(s.name)},
            }
        )

    @cached_property
    def scans(self) -> tuple[tuple[Statement, ...], ...]:
        """The scan groups of the derived list: rules leave them as they are."""
        return tuple(group for group in grouped(self.derived) if group[0].scan is not None)

    def full(self) -> Program:
        """Forward and derived statements as one program."""
        used = {n for s in (*self.program, *self.derived) for n in (s.name, *s.needs)}
        return Program(
            kept_apart((*self.program.groups(), *grouped(self.derived))),
            self.program.dims,
            self.outputs,
            {k: v for k, v in self.program.shapes.items() if k in used},
        )


def in_order(statements: Iterable[Statement]) -> tuple[Statement, ...]:
    """The statements in an order in which each is defined before it is read; the given order where that is free.

    A scan group stays whole and in its own order.

    Raises
    ------
    ProgramError
        When they read each other in a circle.
    """
    todo = list(grouped(statements))
    made = {s.name for group in todo for s in group}
    out: list[tuple[Statement, ...]] = []
    seen: set[str] = set()
    while todo:
        ready = next((g for g in todo if {n for s in g for n in s.needs} & made <= seen | {s.name for s in g}), None)
        if ready is None:
            circle = ", ".join(s.name for group in todo for s in group)
            raise ProgramError(f"these statements read each other in a circle: {circle}")
        todo.remove(ready)
        out.append(ready)
        seen |= {s.name for s in ready}
    return kept_apart(out)


def is_scalar_multiple(expr: sp.Expr) -> bool:
    """Whether an expression is a number times scalars times one indexed tensor."""
    indexed = [f for f in sp.Mul.make_args(expr) if isinstance(f, sp.Indexed)]
    rest = [f for f in sp.Mul.make_args(expr) if not isinstance(f, sp.Indexed)]
    return len(indexed) == 1 and not any(f.has(sp.Indexed) or f.is_Add or f.free_symbols & indexed[0].free_symbols for f in rest)


def free_name(wish: str, program: Program) -> str:
    """``wish``, numbered where an input or a statement of the program has that name.

    >>> from symattn.program import tensor
    >>> free_name("N", Program((Statement(tensor("N"), tensor("x")),), {}, ("N",)))
    'N2'
    """
    taken = {*program.inputs, *(s.name for s in program)}
    k, name = 2, wish
    while name in taken:
        name, k = f"{wish}{k}", k + 1
    return name
