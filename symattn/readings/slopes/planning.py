"""The symbolic half of a sweep: how the slopes of one output are built, statement by statement, before any number is seen.

A slope of an output in a tensor is a sum of *monomials* of named factors that carry indices; the output's own indices stay free.
Where a statement sums, the product of factors that carry the summed index is contracted at once. A plan depends on the program,
the sizes and the names of what is inexact only, and is made once for them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

import sympy as sp

from symattn.program import Program, Statement, Table, Tensor, integer_symbols, name_of, subscripts_of
from symattn.readings.products import largest_space
from symattn.readings.slopes.rules import WHOLE, slopes_of

__all__ = ["Contraction", "Leaf", "Mask", "Monomial", "Plan", "Situation", "Term", "plan_for"]

Axes: TypeAlias = tuple[sp.Symbol, ...]
Named: TypeAlias = tuple[int, Axes]
"""A factor by its number in the plan, and its indices."""

MANY = 6
"""An operand whose slope in some elements would have more monomials than so many is cut."""
DEAR = 4
"""A contraction over more points than so many times the largest statement is not made: its operand is cut."""


@dataclass(frozen=True)
class Leaf:
    """A factor that is an expression in true and computed values, on the grid of ``axes``; 0 outside the given conditions."""

    expr: sp.Expr
    axes: Axes
    conditions: tuple[sp.Basic, ...] = ()


@dataclass(frozen=True)
class Mask:
    """A factor that is 1 where a condition holds and 0 elsewhere."""

    condition: sp.Basic
    axes: Axes


@dataclass(frozen=True)
class Contraction:
    """A factor that is a sum of products of others, with axes ``axes``."""

    items: tuple[Monomial, ...]
    axes: Axes


@dataclass(frozen=True)
class Monomial:
    """``coefficient * product of factors``."""

    coefficient: float
    factors: tuple[Named, ...]

    def renamed(self, names: Mapping[sp.Symbol, sp.Symbol]) -> Monomial:
        """The same with other indices."""
        return Monomial(self.coefficient, tuple((f, tuple(names.get(a, a) for a in ix)) for f, ix in self.factors))


@dataclass(frozen=True)
class Term:
    """The slope of the output in the elements ``at`` of a tensor."""

    name: str
    at: Axes
    monomials: tuple[Monomial, ...]


@dataclass(frozen=True)
class Situation:
    """What a plan depends on besides the output.

    Parameters
    ----------
    program
        The list.
    sizes
        Of every index and size symbol.
    moving
        Names of the tensors whose computed values may differ from the true ones.
    opaque
        Names of the statements that no slope passes: what they may be off by as a whole counts as their local error.
    unfolded
        Names of tensors whose errors are not handed on to their reader.
    fold
        Whether errors of tensors that are read once, element by element, are handed on to their reader.
    """

    program: Program
    sizes: Table
    moving: frozenset[str]
    opaque: frozenset[str]
    unfolded: frozenset[str]
    fold: bool = True

    def readers(self, name: str) -> list[tuple[Statement, Tensor]]:
        """The statements whose value moves with a tensor, each with its read."""
        return [(s, x) for s in self.program if not s.range_only for x in s.reads if name_of(x) == name]


@dataclass
class Plan:
    """How to compute the bound of one output."""

    out: str
    free: Axes
    factors: list[Leaf | Mask | Contraction] = field(default_factory=list)
    terms: list[Term] = field(default_factory=list)
    sizes: dict[sp.Symbol, int] = field(default_factory=dict)
    folded: frozenset[str] = frozenset()
    cut: frozenset[tuple[str, str]] = frozenset()

    def space(self, axes: Iterable[sp.Symbol]) -> int:
        """The number of points of a grid."""
        return math.prod(self.sizes[a] for a in set(axes))


@lru_cache(maxsize=512)
def plan_for(situation: Situation, out: str) -> Plan:
    """The plan of an output; what is too dear is cut, and the plan made again without it."""
    cut: set[tuple[str, str]] = set()
    while True:
        planner = _Planner(situation, out, cut)
        planner.run()
        if planner.cut == planner.plan.cut:
            return planner.plan
        cut = planner.cut


class _Planner:
    """One sweep from an output back to the inputs."""

    def __init__(self, situation: Situation, out: str, cut: set[tuple[str, str]]) -> None:
        self.at, self.program, self.cut = situation, situation.program, set(cut)
        self.slopes = {s.name: slopes_of(s, self._movable(s)) for s in self.program if s.name not in situation.opaque}
        self.cut |= {(n, name) for name, found in self.slopes.items() for n in found.cut}
        free = self.program[out].indices
        self.plan = Plan(out, free, sizes=dict(situation.sizes), folded=self._folded(out), cut=frozenset(self.cut))
        self.cap = DEAR * max(self.plan.space(s.domain) for s in self.program)
        self.numbers: dict[Leaf | Mask, int] = {}
        self.fresh = 0
        self.found: dict[str, dict[Axes, list[Monomial]]] = {out: {free: [Monomial(1.0, ())]}}

    def _movable(self, s: Statement) -> frozenset[str]:
        return self.at.moving & {name_of(x) for x in s.reads}

    def _folded(self, out: str) -> frozenset[str]:
        if not self.at.fold:
            return frozenset()
        folded = set()
        for s in self.program:
            readers = self.at.readers(s.name)
            if s.name == out or len(readers) != 1 or s.name in self.at.unfolded or s.name not in self.at.moving:
                continue
            reader, x = readers[0]
            if not reader.over and reader.name not in self.at.opaque and set(subscripts_of(x)) == set(reader.indices):
                folded.add(s.name)
        return frozenset(folded)

    def run(self) -> None:
        """Fill the plan."""
        for s in reversed(self.program.statements):
            if s.name not in self.found:
                continue
            if s.name not in self.plan.folded:
                self._terms(s.name)
            if s.name in self.at.opaque:
                continue
            for x, d in self.slopes[s.name].by:
                n = name_of(x)
                if (n, s.name) in self.cut or (n in self.plan.folded and not self._leads_on(n)):
                    continue
                pushed = [self._push(s, x, d, at, monomials) for at, monomials in self.found[s.name].items()]
                after = self._added(n, [p for p in pushed if p is not None])
                if None in pushed or any(len(m) > MANY for m in after.values()):
                    self.cut.add((n, s.name))
                else:
                    self.found[n] = after
        for n in self.program.inputs:
            self._terms(n)

    def _terms(self, name: str) -> None:
        self.plan.terms += [Term(name, at, tuple(m)) for at, m in self.found.get(name, {}).items()]

    def _leads_on(self, name: str) -> bool:
        """Whether something behind a folded tensor needs a slope of its own."""
        if name not in self.program or name in self.at.opaque:
            return False
        behind = {name_of(x) for x, _ in self.slopes[name].by if (name_of(x), name) not in self.cut}
        return any(n not in self.plan.folded or self._leads_on(n) for n in behind)

    def _push(
        self, s: Statement, x: Tensor, d: sp.Expr, at: Axes, monomials: list[Monomial]
    ) -> tuple[Axes, list[Monomial]] | None:
        """The slope in ``x`` that the slope in the elements ``at`` of what ``s`` defines gives; None if it is too dear."""
        names = dict(zip(s.indices, at, strict=True)) | {a: self._new(a) for a in s.over}
        coefficient, factors = self._factors(s, x, d, names)
        to = tuple(names[a] for a in subscripts_of(x))
        kept = {*to, *self.plan.free}
        groups: dict[tuple[tuple[Named, ...], int], list[Monomial]] = {}
        for k, m in enumerate(monomials):
            every = [*m.factors, *factors]
            summed = {a for _, axes in every for a in axes} - kept
            inner = tuple(f for f in every if set(f[1]) & summed)
            outer = tuple(sorted((f for f in every if not set(f[1]) & summed), key=str))
            c = m.coefficient * coefficient
            lost = math.prod(self.plan.sizes[a] for a in names.values() if a not in kept and not any(a in ax for _, ax in every))
            groups.setdefault((outer, 0 if inner else k + 1), []).append(Monomial(c * lost, inner))
        out = []
        for (outer, _), items in groups.items():
            if not items[0].factors:
                out.append(Monomial(items[0].coefficient, outer))
                continue
            axes = tuple(sorted({a for m in items for _, ix in m.factors for a in ix if a in kept}, key=str))
            if any(largest_space([ix for _, ix in m.factors], axes, self.plan.sizes) > self.cap for m in items):
                return None
            self.plan.factors.append(Contraction(tuple(items), axes))
            out.append(Monomial(1.0, (*outer, (len(self.plan.factors) - 1, axes))))
        return to, out

    def _factors(self, s: Statement, x: Tensor, d: sp.Expr, names: Mapping[sp.Symbol, sp.Symbol]) -> tuple[float, list[Named]]:
        """The number and the factors of a divided difference, those of the statement's conditions among them."""
        number, coefficient = sp.S.One, 1.0
        leaves: list[Leaf] = []
        masks: list[Mask] = []
        for f in sp.Mul.make_args(d):
            if f.is_Rational and sp.Rational(float(f)) == f:
                coefficient *= float(f)
            elif f.is_number:
                number *= f
            else:
                leaves.append(Leaf(f, tuple(a for a in s.domain if a in integer_symbols(f))))
        if number != 1:
            leaves.append(Leaf(number, ()))
        whole = {s.name, s.name + WHOLE}
        implied = any(isinstance(f.expr, sp.Indexed) and name_of(f.expr) in whole for f in leaves)
        for c in () if implied else s.conditions:
            if c in self._conditions(x):
                continue
            axes = tuple(a for a in s.domain if a in integer_symbols(c))
            k = next((k for k, f in enumerate(leaves) if set(axes) <= set(f.axes)), None)
            if k is None:
                masks.append(Mask(c, axes))
            else:
                leaves[k] = Leaf(leaves[k].expr, leaves[k].axes, (*leaves[k].conditions, c))
        every: list[Leaf | Mask] = [*leaves, *masks]
        return coefficient, [(self._number(f), tuple(names[a] for a in f.axes)) for f in every]

    def _conditions(self, x: Tensor) -> tuple[sp.Basic, ...]:
        """Where a tensor that is read is not 0 by its own definition: no error comes from elsewhere."""
        if name_of(x) not in self.program or self.program[name_of(x)].over:
            return ()
        t = self.program[name_of(x)]
        return t.renamed(dict(zip(t.indices, subscripts_of(x), strict=True))).conditions

    def _number(self, f: Leaf | Mask) -> int:
        if f not in self.numbers:
            self.numbers[f] = len(self.plan.factors)
            self.plan.factors.append(f)
        return self.numbers[f]

    def _new(self, a: sp.Symbol) -> sp.Symbol:
        self.fresh += 1
        b = sp.Symbol(f"{a}_{self.fresh}", integer=True)
        self.plan.sizes[b] = self.plan.sizes[a]
        return b

    def _added(self, name: str, pushed: list[tuple[Axes, list[Monomial]]]) -> dict[Axes, list[Monomial]]:
        """The slope in a tensor with more added: equal elements, up to the names of summed indices, together."""
        there, free = dict(self.found.get(name, {})), self.plan.free
        for at, monomials in pushed:
            for known in there:
                if all(a == b or (a not in free and b not in free) for a, b in zip(known, at, strict=True)):
                    names = dict(zip(at, known, strict=True))
                    there[known] = _collected([*there[known], *(m.renamed(names) for m in monomials)])
                    break
            else:
                there[at] = _collected(monomials)
        return there


def _collected(monomials: Sequence[Monomial]) -> list[Monomial]:
    """Equal products together, what cancels left out."""
    sums: dict[tuple[Named, ...], float] = {}
    for m in monomials:
        key = tuple(sorted(m.factors, key=str))
        sums[key] = sums.get(key, 0.0) + m.coefficient
    kept = [Monomial(c, f) for f, c in sums.items() if c != 0]
    return kept or [Monomial(0.0, ())]
