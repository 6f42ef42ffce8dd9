"""The evaluations of the linear family are equal: parallel = recurrent and chunked = parallel, for all sizes and chunk lengths.

A recurrence has one solution, so it is enough that a closed form satisfies its step (that is induction along the scan):

* the state is the decayed sum of what the steps up to now have written; shown by the step of the scan, in normal form
* what the delta rule writes satisfies, with the closed state put in, the recurrence of the other evaluation: both are the same
* outputs are then equal, with these in place; and so are the sums that normalise

Everything is read from the statements of the two programs: a wrong sign, index, factor or border in one of them is not proved, and
:func:`prove_same` looks for exact numbers in which the outputs differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import sympy as sp

from symattn.errors import LimitError, ProgramError
from symattn.indexed import Tensor, name_of, reads, subscripts_of, tensor
from symattn.normalform import NormalForm, SumOver
from symattn.program import Program, Statement
from symattn.theorems.claim import ALL, OPEN, PROVED, REFUTED, Decision
from symattn.theorems.duality import called
from symattn.theorems.potentials import World
from symattn.theorems.trials import first_difference

__all__ = ["Same", "prove_same"]

LIMIT = 20_000


def prove_same(program: Program, other: Program) -> Decision:
    """Prove that two evaluations of the linear family give the same outputs.

    Parameters
    ----------
    program
        The parallel evaluation.
    other
        The recurrent or the chunked one, of the same definition; with a chunk length that is a size or a number.

    Returns
    -------
    Decision
        Proved for all sizes (and all chunk lengths, if that is a size), wherever no divisor is 0; refuted, with exact numbers; or
        open.

    Raises
    ------
    ProgramError
        When the two have not the same inputs.

    >>> from symattn.definition import Definition
    >>> pair = [Definition(form="linear", causal=True, decay="step", evaluation=e).program() for e in ("parallel", "recurrent")]
    >>> prove_same(*pair).verdict
    'proved'
    """
    if set(program.inputs) != set(other.inputs):
        raise ProgramError(f"the inputs differ: {', '.join(program.inputs)} and {', '.join(other.inputs)}")
    try:
        steps = Same(program, other)
        if all(steps.claims().values()):
            return Decision(PROVED, steps.method, ALL)
    except (ProgramError, LimitError, KeyError, ValueError):
        pass
    found = first_difference(program, other)
    if found is not None:
        return Decision(REFUTED, "exact values", counterexample=found)
    return Decision(OPEN, "neither the normal form nor small sizes settle it")


@dataclass
class Same:
    """The claims that together say that two evaluations are equal, and their proofs.

    Parameters
    ----------
    program, other
        As for :func:`prove_same`.
    """

    program: Program
    other: Program

    def __post_init__(self) -> None:
        self.world = World((self.program, self.other))
        self.mine = self.world.statements(self.program)
        self.its = self.world.statements(self.other)
        self.chunked = self.world.length is not None
        self.common = {"Vn", "l"} & self.mine.keys() & self.its.keys()
        alike = {n for n, s in self.mine.items() if n in self.its and s.scan is None and self.its[n] == s}
        while odd := {n for n in alike if self.mine[n].needs & (self.mine.keys() - alike)}:
            alike -= odd
        self.names = {n: n + "*" for n in self.its if n not in alike | self.common and n in self.mine}

    @property
    def method(self) -> str:
        """How it is proved, in words."""
        return f"induction along the {'chunks' if self.chunked else 'steps'}: the closed form of the state satisfies its step"

    # ---------------------------------------------------------------- closed forms
    def _letter(self, name: str) -> str:
        """The name of the keys after the feature map, if there is one."""
        return name + "f" if name + "f" in self.program or name + "f" in self.program.inputs else name

    def _decayed(self, upper: sp.Expr, lower: sp.Expr) -> sp.Expr:
        return sp.exp(upper - lower) if self.world.gate is not None else sp.S.One

    def closed(self) -> dict[str, Statement]:
        """What a state is after each step (or chunk), as a sum over the steps that have written to it."""
        world, out = self.world, {}
        for name in ("St", "z"):
            if name not in self.its or self.its[name].scan is None:
                continue
            s = self.its[name]
            behind = 2 if name == "St" else 1
            lead, x, last = s.indices[: -1 - behind], s.indices[-1 - behind], s.indices[-behind:]
            j = next(a for a in self.program.dims if a.name == "j")
            end = world.edge(x + 1) if self.chunked else world.after(x)
            where = sp.Le(world.chunk(j), x) if self.chunked else sp.Le(j, x)
            over, ranges = world.over(j)
            written: sp.Expr = tensor(self._letter("K"), *lead, *over, last[0])
            if name == "St":
                written *= tensor("Vn" if "Vn" in self.its else "V", *lead, *over, last[1])
            sum_ = Statement(s.target, self._decayed(end, world.after(j)) * written, over, where=sp.And(where, ranges))
            out[name] = sum_
            if name == "St" and "St0" in self.other.inputs:
                part = replace(sum_, target=tensor("St.", *s.indices))
                first = self._decayed(end, world.start) * tensor("St0", *lead, *last)
                out |= {"St.": part, "St": Statement(s.target, part.target + first)}
        if "Sb" in self.its:
            s = self.its["Sb"]
            state = out["St"]
            x = s.scan.index if s.scan is not None else None
            if x is None:
                raise ProgramError("the state that enters a step belongs to the scan")
            out["Sb"] = Statement(s.target, tensor("St", *[a - 1 if a == x else a for a in state.indices]))
        return out

    # ---------------------------------------------------------------- proofs
    def _form(self, opaque: Iterable[str] = (), instead: Mapping[str, Statement] | None = None) -> NormalForm:
        """A normal form of both lists; statements of scans stay names unless something stands ``instead`` of them."""
        held = set(opaque) | self.common
        own = [s for s in self.mine.values() if s.scan is None and s.name not in held]
        for n, s in self.its.items():
            if n in held or (instead is None or n not in instead) and s.scan is not None:
                continue
            own.append(called((instead or {}).get(n, s), self.names))
        own += [called(s, self.names) for n, s in (instead or {}).items() if n not in self.its]
        unique = {s.name: s for s in reversed(own)}
        return NormalForm(tuple(unique.values()), self.world.dims, limit=LIMIT)

    def _its(self, e: sp.Expr) -> sp.Expr:
        """An expression in tensors of the other list, under the names that they have beside those of the first."""
        return called(Statement(tensor("claim"), e), self.names).expr

    def _sum(self, s: Statement) -> sp.Expr:
        """The right side of a statement as an expression."""
        if s.reduce != "sum" and s.over:
            raise ProgramError(f"{s.name} is no sum")
        return SumOver(s.expr, *s.over, where=s.where) if s.over or s.where != sp.true else s.expr

    def claims(self) -> dict[str, bool]:
        """Each claim in words, and whether it is proved; all of them together say that the outputs are equal."""
        found = self._states()
        if "Vn" in self.its:
            found |= self._written()
        if "l" in self.common:
            form = self._form(instead=self.closed())
            left, right = self._sum(self.mine["l"]), self._its(self._sum(self.its["l"]))
            found["the sums that normalise are equal"] = form.is_zero(left - right)
        form = self._form(instead=self.closed())
        for n in self.program.outputs:
            left = self.mine[n].target
            found[f"{n} is equal"] = n in self.other.outputs and form.is_zero(left - self._its(left))
        return found

    def _states(self) -> dict[str, bool]:
        """The closed form of each state satisfies the step of its scan, and is 0 before the first."""
        closed, found = self.closed(), {}
        for name in ("St", "z"):
            if name not in closed:
                continue
            s = self.its[name]
            assert s.scan is not None
            x = s.scan.index
            form = self._state_form(closed)
            target = s.target
            before = sp.And(*[sp.true])
            assert before == sp.true
            found[f"{name}: the step holds"] = form.is_zero(self._its(target - self._stepped(s)))
            if "Sb" not in self.its:
                zero = target.xreplace({x: sp.Integer(-1)})
                found[f"{name}: zero before the first step"] = form.is_zero(self._its(zero))
                continue
            entering = self.its["Sb"]
            enter = closed["Sb"].target
            later = self._its(enter) - self._its(self._with(self._sum(entering), {"Si": sp.S.Zero}))
            found["the state that enters a later step"] = self._state_form(closed).is_zero(later)
            first = {x: sp.S.Zero}
            given = self._sum(self.its["Si"]).xreplace(first)
            left = self._with(entering.expr, {"St": sp.S.Zero, "Si": given}).xreplace(first)
            form = self._state_form(closed)
            found["the state that enters the first step"] = form.is_zero(self._its(enter.xreplace(first) - left))
        return found

    def _state_form(self, closed: Mapping[str, Statement]) -> NormalForm:
        """States in closed form; in chunks what a chunk writes is open, and what it is told by the state stays a name."""
        form = self._form(instead=closed) if not ("Vn" in self.its and self.chunked) else self._opened(closed)
        return form

    def _opened(self, closed: Mapping[str, Statement] | None) -> NormalForm:
        """With ``Vn`` open; entering states are names ``Sin`` there and in the helpers of the scan, closed elsewhere."""
        held = self.common
        self.common = held - {"Vn"}
        try:
            instead = dict(closed or {})
            for n in ("Vp", "Sp"):
                if n in self.its:
                    instead[n] = replace(self._renamed(self.its[n]), scan=None)
            form = self._form(instead=instead)
            form.open.pop("Vn*", None)
        finally:
            self.common = held
        return form

    def _renamed(self, s: Statement) -> Statement:
        return called(s, {"St": "Sin", "Sb": "Sin"})

    def _stepped(self, s: Statement) -> sp.Expr:
        return self._sum(s)

    def _with(self, e: sp.Expr, values: Mapping[str, sp.Expr]) -> sp.Expr:
        return e.xreplace({x: values[name_of(x)] for x in reads(e) if name_of(x) in values})
