"""Long conditions held as one: the same for the same condition, different for different ones, and proofs stay right."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sympy as sp

from symattn.abstraction import abstracted
from symattn.adjoint import adjoint
from symattn.claims import prove_range_only
from symattn.definition import Definition
from symattn.errors import ProofError
from symattn.presentation import present
from symattn.presentation.proof import proved
from symattn.program import Statement, indices, size, tensor

i, j = indices("i j")
DIMS = {i: size("n"), j: size("m")}
LONG = [
    " or ".join(f"i-j=={k}" for k in range(30)),
    " and ".join(f"i-j!={k}" for k in range(30)),
    " and ".join(f"(i-j!={k} or j=={k + 1})" for k in range(20)),
    "j <= i and (" + " or ".join(f"(i-j!={k} and j=={k + 1})" for k in range(12)) + ")",
    "not (" + " or ".join(f"(i-j!={k} and j=={k + 1})" for k in range(12)) + ")",
]


def statement(where: sp.Basic) -> Statement:
    return Statement(tensor("P", i, j), tensor("Z", i, j), where=where)


def test_equal_conditions_have_one_name_and_different_ones_have_two() -> None:
    a, b = (sp.Or(*[sp.Eq(i - j, k) for k in range(n)]) for n in (20, 21))
    x, y, z = (t.where for t in abstracted([statement(w) for w in (a, b, a)], DIMS))
    assert x == z
    assert x != y


def test_one_condition_more_leaves_the_others_as_they_are() -> None:
    many = [sp.Ne(i - j, k) for k in range(20)]
    x, y = (set(t.conditions) for t in abstracted([statement(sp.And(*many)), statement(sp.And(*many, sp.Ne(i, 3)))], DIMS))
    assert len(x) == 1
    assert y == x | {sp.Ne(i, 3)}


def test_short_conditions_stay_and_parts_of_other_indices_are_apart() -> None:
    short = sp.And(j <= i, sp.Ne(i, 3))
    assert abstracted([statement(short)], DIMS)[0].where == short
    rows, pairs = sp.Or(*[sp.Eq(i, k) for k in range(12)]), sp.Or(*[sp.Eq(i - j, k) for k in range(12)])
    where = abstracted([statement(sp.And(rows, pairs))], DIMS)[0].where
    assert {c.lhs.indices for c in where.args} == {(i,), (i, j)}


@pytest.mark.parametrize("mask", LONG)
def test_long_masks_are_proved_and_wrong_gradients_refused(mask: str) -> None:
    program = Definition(mask=mask, lse=False).program()
    gradient = adjoint(program)
    presented = present(program, gradient)
    assert presented.proved
    new = presented.program.statements
    assert proved(gradient.statements, new, gradient)
    for name, expr in (("dS", tensor("P", i, j) * tensor("dP", i, j)), ("D", 2 * presented.program["D"].expr)):
        wrong = [replace(t, expr=expr) if t.name == name else t for t in new]
        assert not proved(gradient.statements, wrong, gradient)
    other = [replace(t, where=sp.And(t.where, sp.Ne(i, j + 99))) if t.name == "dS" else t for t in new]
    assert not proved(gradient.statements, other, gradient)


def test_a_false_claim_under_a_long_mask_is_refused() -> None:
    program = Definition(mask=LONG[0], lse=False).program()
    broken = program.with_statements(replace(x, expr=x.expr + tensor("m", i)) if x.name == "O" else x for x in program)
    with pytest.raises(ProofError, match="m is range_only"):
        prove_range_only(broken)
