"""Conditions on programs, each found out from the statements: never a list of variants."""

from __future__ import annotations

import sympy as sp

from symattn.indexed import name_of, tensor
from symattn.program import Statement
from symattn.theorems.claim import Equal
from symattn.theorems.copies import Beside, beside
from symattn.theorems.deciding import proved_for_all_sizes
from symattn.theorems.subject import Subject
from symattn.theorems.theorem import Condition

__all__ = ["SHIFT_INVARIANT", "WEIGHTS_SUM_TO_ONE", "shifted"]


def shifted(subject: Subject) -> tuple[Beside, tuple[Statement, ...], sp.Expr]:
    """The program beside the copy whose scores have a constant of the row added; the steps of a proof; and the constant."""
    score, program = subject.score, subject.program
    r = subject.tensor("r", *subject.row)
    old = program[name_of(score)]
    both = beside(
        program,
        [Statement(tensor(old.name + "*", *old.indices), score + r, where=old.where)],
        shapes={name_of(r): tuple(program.dims[a] for a in subject.row)},
    )
    return both, range_steps(both, r), r


def range_steps(both: Beside, r: sp.Expr) -> tuple[Statement, ...]:
    """Row maxima of the copy given the value of the first one plus ``r``: nothing depends on their value."""
    steps = []
    for star, name in both.pairs:
        s = both.program[star]
        if s.range_only:
            steps.append(Statement(s.target, both.program[name].target + r))
    return tuple(steps)


def _shift_invariant(subject: Subject) -> bool:
    both, steps, _ = shifted(subject)
    return proved_for_all_sizes(Equal(both.program, "P*", "P", steps=steps, pairs=both.pairs[:-1])) is not None


def _sum_to_one(subject: Subject) -> bool:
    p = subject.multiplying
    program = subject.program.with_statements(
        (
            *subject.program,
            Statement(tensor("?", *subject.row), p, (subject.key_index,)),
            Statement(tensor("!", *subject.row), sp.S.One),
        )
    )
    return proved_for_all_sizes(Equal(program, "?", "!", forward=subject.program)) is not None


SHIFT_INVARIANT = Condition("the normaliser does not change under a shift of the row", _shift_invariant)
WEIGHTS_SUM_TO_ONE = Condition("the weights of a row sum to one", _sum_to_one)
