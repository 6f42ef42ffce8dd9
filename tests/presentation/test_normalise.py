"""Averages divided last: which, how, and when not."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sympy as sp

from symattn.definition import Definition
from symattn.presentation import Step, normalise_last
from symattn.presentation.presented import NOT_APPLICABLE, PROVED
from symattn.presentation.proof import proved
from symattn.program import Program, Statement, indices, size
from symattn.program import tensor as T
from tests.programs import OTHER

i, j, e = indices("i j e")
DIMS = {i: size("n"), j: size("m"), e: size("dv")}


def test_plain() -> None:
    steps: list[Step] = []
    program = normalise_last(Definition().program(), steps=steps)
    assert [str(s) for s in program][4:] == [
        "E[i, j] = exp(S[i, j] - m[i])",
        "l[i] = sum over j of E[i, j]",
        "N[i, e] = sum over j of E[i, j]*V[j, e]",
        "O[i, e] = N[i, e]/l[i]",
        "L[i] = log(l[i]) + m[i]",
    ]
    assert [(s.status, s.names) for s in steps] == [(PROVED, ("O", "N"))]


@pytest.mark.parametrize(
    ("definition", "last"),
    [
        (Definition(causal=True), "O[i, e] = N[i, e]/l[i]   where l[i] != 0"),
        (Definition(causal=True, sink=True), "O[i, e] = N[i, e]/l[i]"),
        (Definition(causal=True, heads=4, kv_heads=2), "O[k, g, i, e] = N[k, g, i, e]/l[k, g, i]   where l[k, g, i] != 0"),
    ],
)
def test_a_row_that_may_be_empty_is_not_divided(definition: Definition, last: str) -> None:
    assert str(normalise_last(definition.program())["O"]) == last


def test_dropout_works_on_the_unnormalised_weights() -> None:
    program = normalise_last(Definition(dropout=True).program())
    assert str(program["Ed"]) == "Ed[i, j] = E[i, j]/(1 - p)   where drop[i, j] != 0"
    assert str(program["N"]).startswith("N[i, e] = sum over j of Ed[i, j]*V[j, e]")
    assert "P" not in program and "Pd" not in program


def test_weights_that_something_else_reads_stay() -> None:
    program = Definition().program()
    both = program.with_statements(program, ("O", "P"))
    assert "P" in normalise_last(both) and "N" in normalise_last(both)


def test_a_taken_name_is_numbered() -> None:
    program = Definition(causal="bottom-right", empty_row="nan").program()
    assert "N" in program and str(normalise_last(program)["O0"].expr) == "N2[i, e]/l[i]"


def test_normalising_twice_changes_nothing() -> None:
    program = normalise_last(Definition(causal=True).program())
    assert normalise_last(program) == program


@pytest.mark.parametrize("name", ["sigmoid weights", "sparsemax"])
def test_not_applicable_with_a_reason(name: str) -> None:
    steps: list[Step] = []
    program = OTHER[name].program
    assert normalise_last(program, steps=steps) is program
    assert [s.status for s in steps] == [NOT_APPLICABLE] and steps[0].reason


def test_a_divisor_of_unknown_sign_under_a_mask_is_left_alone() -> None:
    """Linear attention: the sum of a masked row may be 0 although the row is not empty."""
    steps: list[Step] = []
    program = OTHER["linear with normaliser"].program
    assert normalise_last(program, steps=steps)["O"] == program["O"]
    assert steps[0].status == NOT_APPLICABLE and "l is not known" in steps[0].reason


def weighted(total: sp.Expr, out: sp.Expr, over: tuple = (j,), at: tuple = (i, e)) -> Program:
    E, s = T("E", i, j), T("S", i, j)
    rows = (
        Statement(E, sp.exp(s)),
        Statement(T("l", i), total, (j,)),
        Statement(T("P", i, j), E / T("l", i)),
        Statement(T("O", *at), out, over),
    )
    return Program(rows, DIMS, ("O",))


def test_a_sum_over_the_rows_keeps_its_division() -> None:
    """The sum over i of P V cannot be divided last: the normaliser depends on i."""
    program = weighted(T("E", i, j), T("P", i, j) * T("U", i, e), (i,), (j, e))
    assert normalise_last(program) == program


def test_two_weights_in_one_sum_are_left_alone() -> None:
    program = weighted(T("E", i, j), T("P", i, j) ** 2 * T("V", j, e))
    assert normalise_last(program) == program


def test_a_forgotten_factor_is_not_proved() -> None:
    program = Definition(causal=True).program()
    last = normalise_last(program)
    plain = [replace(s, where=sp.true) if s.name == "O" else s for s in last]
    assert proved(program.statements, plain, program)
    for wrong in (T("N", i, e), T("N", i, e) / T("l", i) ** 2, T("N", i, e) / T("m", i)):
        assert not proved(program.statements, [replace(s, expr=wrong) if s.name == "O" else s for s in plain], program)
