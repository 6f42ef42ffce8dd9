"""Tangents in the form that people know: what is shown, that it is proved, and that a wrong rewriting is not made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import sympy as sp

from symattn.adjoint import tangent
from symattn.presentation import present, present_tangent
from symattn.presentation.listing import Listing
from symattn.presentation.rules import Rule
from symattn.presentation.softmax import sign_of
from symattn.presentation.tangents import TANGENT_RULES
from symattn.program import Program, Scan, Statement, indices, size
from symattn.program import tensor as T
from symattn.theorems.duality import prove_equal_gradients
from tests.presentation.cases import DEFINITIONS

SHOWN = {
    "plain": {
        "L_t": "L_t[i] = sum over j of P[i, j]*S_t[i, j]",
        "P_t": "P_t[i, j] = (-L_t[i] + S_t[i, j])*P[i, j]",
        "O_t": "O_t[i, e] = sum over j of P[i, j]*V_t[j, e] + P_t[i, j]*V[j, e]",
    },
    "lse base 2": {
        "L_t": "L_t[i] = sum over j of P[i, j]*S_t[i, j]/log(2)",
        "P_t": "P_t[i, j] = (-log(2)*L_t[i] + S_t[i, j])*P[i, j]",
    },
    "sink": {
        "Lk_t": "Lk_t[i] = sum over j of P[i, j]*S_t[i, j]",
        "L_t": "L_t[i] = sink_t*P0[i] + Lk_t[i]",
        "P_t": "P_t[i, j] = (-L_t[i] + S_t[i, j])*P[i, j]",
    },
    "softcap": {"P_t": "P_t[i, j] = (A_t[i, j] - L_t[i])*P[i, j]"},
}


@pytest.mark.parametrize("name", SHOWN)
def test_the_form_that_people_know(name: str) -> None:
    program = DEFINITIONS[name].program()
    raw = tangent(program)
    shown = present_tangent(program, raw)
    assert shown.proved and shown.program.outputs == raw.outputs
    assert {n: str(shown.program[n]) for n in SHOWN[name]} == SHOWN[name]
    assert not {"E_t", "l_t"} & {s.name for s in shown.derived}
    assert prove_equal_gradients(raw, shown.program)


def test_a_form_with_a_term_less_or_a_wrong_sign_is_not_proved_equal() -> None:
    program = DEFINITIONS["plain"].program()
    raw = tangent(program)
    good = present_tangent(program, raw).program
    for name, change in {"P_t": lambda e: -e, "L_t": lambda e: 2 * e, "O_t": lambda e: e.args[0]}.items():
        bad = good.with_statements(replace(s, expr=change(s.expr)) if s.name == name else s for s in good)
        assert not prove_equal_gradients(raw, bad), name


def test_a_rule_that_errs_is_caught_and_changes_nothing() -> None:
    def without_average(listing: Listing) -> Iterator[Listing]:
        for b in listing.derived:
            if b.name == "P_t" and b.expr.has(T("L_t", *indices("i"))):
                yield listing.replaced({"P_t": (replace(b, expr=b.expr.xreplace({T("L_t", *indices("i")): sp.Integer(0)})),)})

    program = DEFINITIONS["plain"].program()
    shown = present(program, tangent(program), (*TANGENT_RULES, Rule("wrong", "the average is forgotten", without_average)))
    assert [s.status for s in shown.steps if s.rule == "wrong"] == ["dropped"]
    assert str(shown.program["P_t"]) == SHOWN["plain"]["P_t"]


def test_two_softmaxes_have_a_log_sum_exp_each_and_letters_do_not_matter() -> None:
    i, j = indices("i j")
    lists = []
    for k in ("a", "b"):
        e, total, w = T("e" + k, i, j), T("z" + k, i), T("w" + k, i, j)
        lists += [Statement(e, sp.exp(T("x" + k, i, j)), aux=True), Statement(total, e, (j,), aux=True), Statement(w, e / total)]
    out = Statement(T("y", i), (T("wa", i, j) - T("wb", i, j)) * T("v", j), (j,))
    program = Program((*lists, out), {i: size("n"), j: size("m")}, ("y",))
    shown = present_tangent(program, tangent(program))
    assert shown.proved
    assert [str(s) for s in shown.derived][:4] == [
        "L_t[i] = sum over j of wa[i, j]*xa_t[i, j]",
        "wa_t[i, j] = (-L_t[i] + xa_t[i, j])*wa[i, j]",
        "L2_t[i] = sum over j of wb[i, j]*xb_t[i, j]",
        "wb_t[i, j] = (-L2_t[i] + xb_t[i, j])*wb[i, j]",
    ]


@pytest.mark.parametrize(
    "step, sign",
    [
        (lambda before, x: before * sp.exp(x) + sp.exp(-x), "nonnegative"),
        (lambda before, x: before - sp.exp(x), "unknown"),
        (lambda before, x: before + x, "unknown"),
    ],
)
def test_the_sign_of_a_recurrence_is_known_by_induction(step, sign: str) -> None:
    (t,) = indices("t")
    run = Statement(T("l", t), step(T("l", t - 1), T("x", t)), scan=Scan(t, 1))
    program = Program((run,), {t: size("n")}, ("l",))
    assert sign_of(T("l", t), program) == sign
