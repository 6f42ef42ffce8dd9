"""Inequalities: a tensor that is nowhere negative, shown by signs alone; and bounds that are cited and only tested.

Signs go through a program statement by statement: an exponential is positive, a sum and a product of what is not negative is not
negative, and a divisor of that kind is positive wherever the quotient has a value.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import sympy as sp

from symattn.errors import SymattnError
from symattn.indexed import conjuncts, name_of, reads
from symattn.program import Program
from symattn.readings import exact
from symattn.theorems.claim import ALL, OPEN, PROVED, REFUTED, TESTED, Counterexample, Decision
from symattn.theorems.examples import examples

__all__ = ["AtLeastZero", "nonnegative"]


def nonnegative(program: Program) -> frozenset[str]:
    """The tensors of a program that signs show to be nowhere negative, wherever they have a value.

    >>> from symattn.definition import Definition
    >>> sorted(nonnegative(Definition(scale=1).program()))
    ['E', 'P', 'l']
    """
    known: set[str] = set()
    for s in program:
        under = {x for p in s.expr.atoms(sp.Pow) if p.exp.could_extract_minus_sign() for x in reads(p.base)}
        table = {
            x: sp.Dummy(real=True)
            if name_of(x) not in known
            else sp.Dummy(positive=True)
            if x in under
            else sp.Dummy(nonnegative=True)
            for x in reads(s.expr)
        }
        compared = [c for c in conjuncts(s.where) if isinstance(c, (sp.Gt, sp.Ge, sp.Lt, sp.Le))]
        kept = any(sp.expand(c.gts - c.lts - s.expr) == 0 for c in compared)  # the condition says it
        if (kept or s.expr.xreplace(table).is_nonnegative) and not s.range_only:
            known.add(s.name)
    return frozenset(known)


@dataclass(frozen=True)
class AtLeastZero:
    """A tensor of a program is nowhere negative.

    Parameters
    ----------
    program
        The statements.
    name
        The tensor; a bound ``a <= b`` is ``b - a`` in a statement of its own.
    text
        The inequality as people write it.
    cited
        A source that proves it: where signs alone do not, it is tested at small exact inputs and called so.

    >>> from symattn.definition import Definition
    >>> program = Definition(scale=1).program()
    >>> AtLeastZero(program, "P").decide().verdict, AtLeastZero(program, "O").decide().verdict
    ('proved', 'refuted')
    """

    program: Program
    name: str
    text: str = ""
    cited: str = ""

    def decide(self) -> Decision:
        """By signs for all sizes; else a counterexample; else tested, where a source is cited."""
        if self.name in nonnegative(self.program):
            return Decision(PROVED, "signs", ALL)
        found = self.counterexample()
        if found is not None:
            return Decision(REFUTED, "exact values", counterexample=found)
        if self.cited:
            return Decision(TESTED, f"cited ({self.cited}), tested", TESTED)
        return Decision(OPEN, "signs do not settle it")

    def counterexample(self) -> Counterexample | None:
        """Exact inputs at which an entry is negative."""
        whole = self.program.with_statements(self.program.statements, [self.name]).live()
        for inputs, sizes in examples(whole):
            try:
                found = exact.evaluate(whole, inputs, sizes={k: v for k, v in sizes.items() if k in map(str, whole.sizes)})
                values = np.asarray(found[self.name], dtype=object)
                for at in np.ndindex(*values.shape):
                    if exact.compare(values[at], sp.S.Zero) == -1:
                        what = self.name + (f"[{', '.join(map(str, at))}]" if at else "")
                        given = {n: np.asarray(v).tolist() for n, v in inputs.items()}
                        return Counterexample(given, sizes, what, values[at], sp.S.Zero, self.text)
            except SymattnError:
                continue
        return None

    def planted(self) -> AtLeastZero:
        """The opposite claim: minus the tensor is nowhere negative."""
        statements = [replace(s, expr=-s.expr) if s.name == self.name else s for s in self.program]
        return replace(self, program=self.program.with_statements(statements))
