"""The evaluations of the linear family are equal: parallel = recurrent and parallel = chunked, for all sizes and chunk lengths.

A recurrence has one solution, so it is enough that a closed form satisfies its step (that is induction along the scan):

* the state is the decayed sum of what the steps up to now have written; shown by the step of the scan, in normal form
* what the delta rule writes satisfies, with the closed state put in, the recurrence of the other evaluation: both are the same
* outputs are then equal, with these in place; and so are the sums that normalise

Everything is read from the statements of the two programs, whose tensors have the names of :mod:`symattn.forms.linear`: a
wrong sign, index, factor or border in one of them is not proved, and :func:`prove_same` looks for exact numbers that show it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import sympy as sp

from symattn.errors import LimitError, ProgramError
from symattn.indexed import Tensor, name_of, reads, tensor
from symattn.normalform import NormalForm, SumOver
from symattn.program import Program, Statement
from symattn.theorems.claim import ALL, OPEN, PROVED, REFUTED, Counterexample, Decision
from symattn.theorems.duality import called
from symattn.theorems.potentials import World
from symattn.theorems.trials import first_difference

__all__ = ["Same", "SameOutputs", "prove_same"]

LIMIT = 20_000
ROOTS = frozenset({"St", "Sb", "z", "Vn", "Vw", "Kw"})
"""What recurrences define; their helpers are sums that read them."""


def prove_same(program: Program, other: Program) -> Decision:
    """Prove that two evaluations of the linear family give the same outputs.

    Parameters
    ----------
    program
        The parallel evaluation.
    other
        The recurrent or the chunked one, of the same definition; its chunk length is a size or a number.

    Returns
    -------
    Decision
        Proved for all sizes (and all chunk lengths, where that is a size), wherever no divisor is 0; refuted, with exact numbers;
        or open.

    Raises
    ------
    ProgramError
        When the two have not the same inputs or outputs.

    >>> from symattn.definition import Definition
    >>> pair = [Definition(form="linear", causal=True, decay="step", evaluation=e).program() for e in ("parallel", "recurrent")]
    >>> prove_same(*pair).verdict
    'proved'
    """
    if set(program.inputs) != set(other.inputs) or program.outputs != other.outputs:
        raise ProgramError(
            f"inputs and outputs differ: {', '.join(program.inputs)} -> {', '.join(program.outputs)} and "
            f"{', '.join(other.inputs)} -> {', '.join(other.outputs)}"
        )
    try:
        same = Same(program, other)
        if all(proved for _, proved in same.claims()):
            return Decision(PROVED, same.method, ALL)
    except (ProgramError, LimitError, KeyError):
        pass  # not of the shape of the family: nothing is said of it
    found = first_difference(program, other)
    if found is not None:
        return Decision(REFUTED, "exact values", counterexample=found)
    return Decision(OPEN, "neither the normal form nor small sizes settle it")


@dataclass(frozen=True)
class SameOutputs:
    """The claim that two evaluations of the linear family give the same outputs; parameters as for :func:`prove_same`."""

    program: Program
    other: Program
    text: str = ""

    def decide(self) -> Decision:
        """Prove it, or find exact numbers for which it fails."""
        return prove_same(self.program, self.other)

    def counterexample(self) -> Counterexample | None:
        """Exact numbers for which the outputs differ."""
        return first_difference(self.program, self.other)


@dataclass
class Same:
    """The claims that together say that two evaluations are equal; parameters as for :func:`prove_same`."""

    program: Program
    other: Program

    def __post_init__(self) -> None:
        self.world = World((self.program, self.other))
        self.mine = self.world.statements(self.program)
        self.its = self.world.statements(self.other)
        self.chunked = self.world.length is not None
        self.roots = {"Vn"} | {n for n in ROOTS for s in (self.mine, self.its) if n in s and s[n].scan is not None}
        self.common = {"Vn", "lr"} & self.mine.keys() & self.its.keys()
        alike = {n for n, s in self.mine.items() if s.scan is None and self.its.get(n) == s}
        while odd := {n for n in alike if self.mine[n].needs & (self.mine.keys() - alike)}:
            alike -= odd
        self.names = {n: n + "*" for n in self.its if n in self.mine and n not in alike | self.common}

    @property
    def method(self) -> str:
        """How it is proved, in words."""
        if not any(s.scan is not None for s in self.its.values()):
            return "normal form"
        along = "chunks" if self.chunked else "steps"
        return f"induction along the {along}: the closed form of the state satisfies its step; normal form"

    def claims(self) -> Iterator[tuple[str, bool]]:
        """Each claim in words, and whether it is proved; all of them together say that the outputs are equal."""
        closed = self.closed()
        for name in ("St", "z"):
            if name in closed:
                yield from self._state(name, closed)
        if "Vn" in self.its:
            yield from self._written(closed)
        form = self._form(closed)
        if "lr" in self.common:
            claim = _sum(self.mine["lr"]) - self._its(_sum(self.its["lr"]))
            yield "the sums that normalise are equal", form.is_zero(claim)
        for n in self.program.outputs:
            yield f"{n} is equal", form.is_zero(self.mine[n].target - self._its(self.mine[n].target))

    # ---------------------------------------------------------------- closed forms
    def closed(self) -> dict[str, Statement]:
        """What the states are after each step (or chunk): sums over the steps that have written to them."""
        out = {}
        for name, behind in (("St", 2), ("z", 1)):
            s = self.its.get(name)
            if s is None or s.scan is None:
                continue
            lead, last = s.indices[: -1 - behind], s.indices[-behind:]
            out[name] = self._sum_of_steps(s, lead, last)
            if name == "St" and "St0" in self.other.inputs:
                x = s.indices[-1 - behind]
                part = tensor("St.", *s.indices)
                first = self._decayed(self._end(x), self.world.start) * tensor("St0", *lead, *last)
                out |= {"St.": replace(out["St"], target=part), "St": Statement(s.target, part + first)}
                before = [a - 1 if a == x else a for a in s.indices]
                out["Sb"] = Statement(tensor("Sb", *s.indices), tensor("St", *before))
        return out

    def _sum_of_steps(self, s: Statement, lead: tuple[sp.Symbol, ...], last: tuple[sp.Symbol, ...]) -> Statement:
        world = self.world
        x = s.indices[len(lead)]
        j = next(a for a in self.program.dims if a.name == "j")
        over, inside = world.over(j)
        key = "Kf" if any("Kf" in p or "Kf" in p.inputs for p in (self.program, self.other)) else "K"
        written: sp.Expr = tensor(key, *lead, *over, last[0])
        if len(last) == 2:
            written *= tensor("Vn" if "Vn" in self.its else "V", *lead, *over, last[1])
        until = sp.Le(world.chunk(j), x) if self.chunked else sp.Le(j, x)
        decayed = self._decayed(self._end(x), world.after(j))
        return Statement(tensor(s.name, *s.indices), decayed * written, over, where=sp.And(until, inside))

    def _end(self, x: sp.Symbol) -> sp.Expr:
        return self.world.edge(x + 1) if self.chunked else self.world.after(x)

    def _decayed(self, upper: sp.Expr, lower: sp.Expr) -> sp.Expr:
        return sp.exp(upper - lower) if self.world.gate is not None else sp.S.One

    # ---------------------------------------------------------------- proofs
    def _form(self, instead: Mapping[str, Statement], open_: frozenset[str] = frozenset()) -> NormalForm:
        """A normal form of both lists: what recurrences define are names, unless there is something ``instead``."""
        mine = [s for n, s in self.mine.items() if n not in self.common | self.roots]
        its = {**{n: s for n, s in self.its.items() if n not in (self.common | self.roots) - open_}, **instead}
        listed = {s.name: replace(s, scan=None) for s in (*mine, *(called(s, self.names) for s in its.values()))}
        return NormalForm(tuple(listed.values()), self.world.dims, subst=self.world.known, limit=LIMIT)

    def _its(self, e: sp.Expr) -> sp.Expr:
        """An expression in tensors of the second list, under the names that they have beside those of the first."""
        return called(Statement(tensor("claim"), e), self.names).expr

    def _state(self, name: str, closed: Mapping[str, Statement]) -> Iterator[tuple[str, bool]]:
        """The closed form satisfies the step of the scan, and is what it has to be before the first."""
        s, form = self.its[name], self._form(closed)
        if self.chunked and "Vn" in self.its and name == "St":
            form = self._form({**closed, **self._entering("Vp", "Sp")}, frozenset({"Vn"}))
        yield f"the closed form of {name} satisfies its step", form.is_zero(self._its(s.target - _sum(s)))
        assert s.scan is not None
        x = s.scan.index
        if name == "z" or "Sb" not in closed:
            before = s.target.xreplace({x: sp.S.NegativeOne})
            yield f"{name} is 0 before the first step", form.is_zero(self._its(before))
            return
        entering, form = self.its["Sb"], self._form(closed)
        later = closed["Sb"].target - _with(_sum(entering), {"Si": sp.S.Zero})
        never = self.its["Si"].where.xreplace({x: x + 1}) == sp.Eq(x + 1, 0)
        yield "the state that enters a later step is that of the step before", never and form.is_zero(self._its(later))
        given = _sum(self.its["Si"]).xreplace({x: sp.S.Zero})
        first = closed["Sb"].target.xreplace({x: sp.S.Zero}) - _with(entering.expr, {"St": sp.S.Zero, "Si": given})
        yield "the state that enters the first step is the given one", form.is_zero(self._its(first))

    def _entering(self, *names: str) -> dict[str, Statement]:
        """Statements in which the state that enters a chunk is a name, ``Sin``."""
        return {n: self._named(self.its[n]) for n in names if n in self.its}

    def _named(self, s: Statement) -> Statement:
        return called(s, {"St": "Sin", "Sb": "Sin"})

    def _written(self, closed: Mapping[str, Statement]) -> Iterator[tuple[str, bool]]:
        """What the delta rule writes satisfies the recurrence of the first list."""
        mine, its = self.mine["Vn"], self.its["Vn"]
        if not self.chunked:
            claim = mine.expr - self._its(its.expr)
            yield "what is written satisfies the recurrence", self._form(closed).is_zero(claim)
            return
        middle = self._middle()
        yield "earlier chunks enter by the state alone", self._form(closed).is_zero(mine.expr - self._its(middle))
        solved = _with(its.expr, {"Vw": self.its["Vw"].expr, "Vp": self._said()})
        claim = self._named(Statement(tensor("claim"), middle - solved)).expr
        form = self._form(self._entering("Vp"), frozenset({"Vn"}))
        yield "the WY form solves the recurrence of a chunk", form.is_zero(self._its(claim))

    def _said(self) -> sp.Expr:
        """What the entering state says of a step, with the step of ``Kw`` written out."""
        return SumOver(_with(self.its["Vp"].expr, {"Kw": self.its["Kw"].expr}), *self.its["Vp"].over)

    def _middle(self) -> sp.Expr:
        """What a step of a chunk writes, from what earlier steps of the chunk wrote and from the state that enters the chunk."""
        value, key, said = self.its["Vw"], self.its["Kw"], self.its["Vp"]
        inside = _sum(called(self.its["Vwp"], {"Vw": "Vn"}))
        own = next(x for x in reads(key.expr) if name_of(x) == "Kwp")
        beta = -sp.expand(key.expr).coeff(own, 1)
        target = sp.cancel(key.expr.xreplace({own: sp.S.Zero}) / beta)
        return _with(value.expr, {"Vwp": inside + SumOver(_with(said.expr, {"Kw": target}), *said.over)})


def _sum(s: Statement) -> sp.Expr:
    """The right side of a statement as an expression."""
    if s.over and s.reduce != "sum":
        raise ProgramError(f"{s.name} is no sum")
    return SumOver(s.expr, *s.over, where=s.where) if s.over or s.where != sp.true else s.expr


def _with(e: sp.Expr, values: Mapping[str, sp.Expr]) -> sp.Expr:
    """An expression with values for the tensors of some names; a value is written in the indices in which the tensor is read."""
    return e.xreplace({x: values[name_of(x)] for x in _all(e) if name_of(x) in values})


def _all(e: sp.Expr) -> set[Tensor]:
    return {x for x in (*e.atoms(sp.Indexed), *e.atoms(sp.Symbol)) if isinstance(x, sp.Indexed) or not x.is_integer}
