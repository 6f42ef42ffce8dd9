"""The list that flash kernels run: what is saved, what is recomputed, and when it does not apply."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
import sympy as sp

from symattn.adjoint import adjoint
from symattn.definition import Definition
from symattn.presentation import Step, present, recompute
from symattn.presentation.presented import DROPPED, NOT_APPLICABLE, PROVED
from symattn.program import Program, Statement, indices
from symattn.program import tensor as T
from tests.presentation.cases import DEFINITIONS, listed
from tests.programs import ATTENTION, OTHER


def kernel(name: str) -> tuple[Program, Program, list[Step]]:
    program, gradient, presented = listed(name)
    steps: list[Step] = []
    return gradient, recompute(program, presented, steps=steps), steps


def test_the_whole_list() -> None:
    _, whole, _ = kernel("causal")
    assert [str(s) for s in whole] == [
        "R[i, j] = sum over c of K[j, c]*Q[i, c]   where j <= i",
        "scale = 1/sqrt(d)",
        "S[i, j] = scale*R[i, j]   where j <= i",
        "m[i] = max over j of S[i, j]   where j <= i",
        "E[i, j] = exp(S[i, j] - m[i])   where j <= i",
        "l[i] = sum over j of E[i, j]   where j <= i",
        "N[i, e] = sum over j of E[i, j]*V[j, e]   where j <= i",
        "O[i, e] = N[i, e]/l[i]   where l[i] != 0",
        "L[i] = log(l[i]) + m[i]",
        "R_b[i, j] = sum over c of K[j, c]*Q[i, c]   where j <= i",
        "S_b[i, j] = scale*R_b[i, j]   where j <= i",
        "P_b[i, j] = exp(-L[i] + S_b[i, j])   where j <= i",
        "dP[i, j] = sum over e of V[j, e]*dO[i, e]   where j <= i",
        "D[i] = sum over e of O[i, e]*dO[i, e]",
        "dS[i, j] = (-D[i] + dP[i, j])*P_b[i, j]   where j <= i",
        "dK[j, c] = sum over i of scale*Q[i, c]*dS[i, j]   where j <= i",
        "dQ[i, c] = sum over j of scale*K[j, c]*dS[i, j]   where j <= i",
        "dV[j, e] = sum over i of P_b[i, j]*dO[i, e]   where j <= i",
    ]
    assert whole.outputs == ("O", "dK", "dQ", "dV")


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("lse base 2", {"P_b": "exp(-log(2)*L[i] + S_b[i, j])"}),
        ("sink base 2", {"P_b": "exp(-log(2)*L[i] + S_b[i, j])", "P0_b": "exp(sink - log(2)*L[i])", "D": "O[i, e]*dO[i, e]"}),
        ("sink", {"P0_b": "exp(sink - L[i])", "L": "log(l[i]) + m[i]", "dsink": "-D[i]*P0_b[i]"}),
        ("dropout", {"Pd_b": "P_b[i, j]/(1 - p)", "N": "Ed[i, j]*V[j, e]", "D": "O[i, e]*dO[i, e]"}),
        ("softcap", {"A_b": "cap*tanh(S_b[i, j]/cap)", "dS": "(1 - A_b[i, j]**2/cap**2)*dA[i, j]"}),
        ("projections", {"P_b": "exp(-L[i] + S_b[i, j])", "R_b": "K[j, c]*Q[i, c]", "dWO": "O[i, e]*dY[i, f]"}),
        ("additive mask", {"Z_b": "B[i, j] + S_b[i, j]"}),
    ],
)
def test_what_is_recomputed_and_from_what(name: str, wanted: dict[str, str]) -> None:
    _, whole, _ = kernel(name)
    assert {n: str(whole[n].expr) for n in wanted} == wanted


@pytest.mark.parametrize("name", DEFINITIONS)
def test_proved_and_nothing_large_or_internal_is_carried_over(name: str) -> None:
    program, gradient, presented = listed(name)
    steps: list[Step] = []
    whole = recompute(program, presented, steps=steps)
    assert {s.status for s in steps} == {PROVED}
    assert whole.outputs == (*program.outputs, *gradient.outputs)
    first = next(k for k, s in enumerate(whole) if s.name.endswith("_b"))
    forward = {s.name: s for s in whole.statements[:first]}
    read = {n for s in whole.statements[first:] for n in s.needs} & set(forward)
    i, j = sp.Symbol("i", integer=True), sp.Symbol("j", integer=True)
    assert not [n for n in read if {i, j} <= set(forward[n].indices)]
    assert not [n for n in read if forward[n].aux or forward[n].range_only]


@pytest.mark.parametrize("name", ["sink", "grouped causal softcap alibi sink lse", "output read downstream"])
def test_programs_written_by_hand(name: str) -> None:
    program = ATTENTION[name].program
    steps: list[Step] = []
    whole = recompute(program, present(program, adjoint(program)), steps=steps)
    assert {s.status for s in steps} == {PROVED} and {"P_b", "D"} <= {s.name for s in whole}
    if "sink" in name:
        assert str(whole["P0"].expr).replace("[k, g, i]", "[i]") in ("exp(sink - L[i])", "exp(-L[i] + sink[k, g])")


def test_taken_names() -> None:
    program = Definition(lse=False).program()
    i, j = indices("i j")
    taken = program.with_statements(
        (*program, Statement(T("L", i), T("x", i)), Statement(T("P_b", i, j), T("y", i, j))), ("O", "L", "P_b")
    )
    whole = recompute(taken, present(taken, adjoint(taken)))
    assert str(whole["L2"].expr) == "log(l[i]) + m[i]" and str(whole["P_b'"].expr) == "exp(-L2[i] + S_b[i, j])"


@pytest.mark.parametrize("name", ["sigmoid weights", "RMS norm", "linear with normaliser"])
def test_not_applicable_without_a_softmax(name: str) -> None:
    program = OTHER[name].program
    presented = present(program, adjoint(program))
    steps: list[Step] = []
    whole = recompute(program, presented, steps=steps)
    assert [s.status for s in steps] == [NOT_APPLICABLE] and steps[0].reason
    assert whole.statements == presented.program.statements
    assert whole.outputs == (*program.outputs, *presented.program.outputs)


@pytest.mark.parametrize(
    "fault",
    [
        lambda e: 2 * e,
        lambda e: e.xreplace({T("L", indices("i")[0]): -T("L", indices("i")[0])}),
        lambda e: e ** sp.Rational(10**40 + 1, 10**40),
    ],
)
def test_a_rewriting_that_is_not_known_to_be_right_is_not_made(monkeypatch: pytest.MonkeyPatch, fault: Any) -> None:
    module = import_module("symattn.presentation.recompute")
    right = module.Saved.through

    def wrong(self: Any, expr: sp.Expr, program: Program) -> sp.Expr:
        found = right(self, expr, program)
        return found if found == expr else fault(found)

    monkeypatch.setattr(module.Saved, "through", wrong)
    program, _, presented = listed("causal")
    steps: list[Step] = []
    whole = recompute(program, presented, steps=steps)
    assert [s.status for s in steps if s.rule == "recompute"] == [DROPPED] and "P_b" not in whole
    assert whole.statements == presented.program.statements
