"""The presented lists themselves, statement by statement, and the promises of the driver."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sympy as sp

from symattn.adjoint import adjoint
from symattn.definition import Definition
from symattn.errors import ProgramError
from symattn.indexed import name_of, reads
from symattn.presentation import present, refold
from symattn.presentation.presented import CHECKED, DROPPED, PROVED
from symattn.presentation.rules import RULES, Rule
from symattn.program import Program, Statement, indices, size
from symattn.program import tensor as T
from symattn.theorems.duality import prove_duality, prove_equal_gradients
from symattn.variants import get
from tests.presentation.cases import DEFINITIONS, listed
from tests.support import rows

WANTED = {
    "plain": """
        dP[i, j] = sum over e of V[j, e]*dO[i, e]
        D[i] = sum over j of P[i, j]*dP[i, j]
        dS[i, j] = (-D[i] + dP[i, j])*P[i, j]
        dV[j, e] = sum over i of P[i, j]*dO[i, e]
        dQ[i, c] = sum over j of scale*K[j, c]*dS[i, j]
        dK[j, c] = sum over i of scale*Q[i, c]*dS[i, j]""",
    "causal": """
        dP[i, j] = sum over e of V[j, e]*dO[i, e]   where j <= i
        D[i] = sum over j of P[i, j]*dP[i, j]   where j <= i
        dS[i, j] = (-D[i] + dP[i, j])*P[i, j]   where j <= i
        dV[j, e] = sum over i of P[i, j]*dO[i, e]   where j <= i
        dQ[i, c] = sum over j of scale*K[j, c]*dS[i, j]   where j <= i
        dK[j, c] = sum over i of scale*Q[i, c]*dS[i, j]   where j <= i""",
    "softcap": """
        dP[i, j] = sum over e of V[j, e]*dO[i, e]
        D[i] = sum over j of P[i, j]*dP[i, j]
        dA[i, j] = (-D[i] + dP[i, j])*P[i, j]
        dS[i, j] = (1 - A[i, j]**2/cap**2)*dA[i, j]
        dV[j, e] = sum over i of P[i, j]*dO[i, e]
        dQ[i, c] = sum over j of scale*K[j, c]*dS[i, j]
        dK[j, c] = sum over i of scale*Q[i, c]*dS[i, j]
        dcap = sum over i, j of (A[i, j]*dA[i, j] - S[i, j]*dS[i, j])/cap""",
    "alibi": """
        dP[i, j] = sum over e of V[j, e]*dO[i, e]   where j <= i
        D[i] = sum over j of P[i, j]*dP[i, j]   where j <= i
        dZ[i, j] = (-D[i] + dP[i, j])*P[i, j]   where j <= i
        dV[j, e] = sum over i of P[i, j]*dO[i, e]   where j <= i
        dQ[i, c] = sum over j of scale*K[j, c]*dZ[i, j]   where j <= i
        dK[j, c] = sum over i of scale*Q[i, c]*dZ[i, j]   where j <= i
        dslope = sum over i, j of (-i + j)*dZ[i, j]   where j <= i""",
    "bias": """
        dP[i, j] = sum over e of V[j, e]*dO[i, e]
        D[i] = sum over j of P[i, j]*dP[i, j]
        dZ[i, j] = (-D[i] + dP[i, j])*P[i, j]
        dbias[i, j] = dZ[i, j]
        dV[j, e] = sum over i of P[i, j]*dO[i, e]
        dQ[i, c] = sum over j of scale*K[j, c]*dZ[i, j]
        dK[j, c] = sum over i of scale*Q[i, c]*dZ[i, j]""",
    "sink": """
        dP[i, j] = sum over e of V[j, e]*dO[i, e]
        D[i] = sum over j of P[i, j]*dP[i, j]
        dS[i, j] = (-D[i] + dP[i, j])*P[i, j]
        dV[j, e] = sum over i of P[i, j]*dO[i, e]
        dQ[i, c] = sum over j of scale*K[j, c]*dS[i, j]
        dK[j, c] = sum over i of scale*Q[i, c]*dS[i, j]
        dsink = sum over i of -D[i]*P0[i]""",
    "lse": """
        dP[i, j] = sum over e of V[j, e]*dO[i, e]
        D[i] = sum over j of P[i, j]*dP[i, j]
        dS[i, j] = (-D[i] + dL[i] + dP[i, j])*P[i, j]
        dV[j, e] = sum over i of P[i, j]*dO[i, e]
        dQ[i, c] = sum over j of scale*K[j, c]*dS[i, j]
        dK[j, c] = sum over i of scale*Q[i, c]*dS[i, j]""",
    "grouped": """
        dP[k, g, i, j] = sum over e of V[k, j, e]*dO[k, g, i, e]
        D[k, g, i] = sum over j of P[k, g, i, j]*dP[k, g, i, j]
        dS[k, g, i, j] = (-D[k, g, i] + dP[k, g, i, j])*P[k, g, i, j]
        dV[k, j, e] = sum over g, i of P[k, g, i, j]*dO[k, g, i, e]
        dQ[k, g, i, c] = sum over j of scale*K[k, j, c]*dS[k, g, i, j]
        dK[k, j, c] = sum over g, i of scale*Q[k, g, i, c]*dS[k, g, i, j]""",
    "projections": """
        dO[i, e] = sum over f of WO[e, f]*dY[i, f]
        dP[i, j] = sum over e of V[j, e]*dO[i, e]   where j <= i
        D[i] = sum over j of P[i, j]*dP[i, j]   where j <= i
        dS[i, j] = (-D[i] + dP[i, j])*P[i, j]   where j <= i
        dV[j, e] = sum over i of P[i, j]*dO[i, e]   where j <= i
        dK[j, c] = sum over i of scale*Q[i, c]*dS[i, j]   where j <= i
        dQ[i, c] = sum over j of scale*K[j, c]*dS[i, j]   where j <= i
        dWQ[a, c] = sum over i of X[i, a]*dQ[i, c]
        dWK[a, c] = sum over j of X[j, a]*dK[j, c]
        dWV[a, e] = sum over j of X[j, a]*dV[j, e]
        dWO[e, f] = sum over i of O[i, e]*dY[i, f]
        dX_Q[i, a] = sum over c of WQ[a, c]*dQ[i, c]
        dX_K[i, a] = sum over c of WK[a, c]*dK[i, c]
        dX_V[i, a] = sum over e of WV[a, e]*dV[i, e]
        dX[i, a] = dX_K[i, a] + dX_Q[i, a] + dX_V[i, a]""",
}


@pytest.mark.parametrize("name", WANTED)
def test_the_list_is_the_one_that_people_know(name: str) -> None:
    _, gradient, presented = listed(name)
    assert sorted(map(str, presented.derived)) == sorted(x.strip() for x in WANTED[name].strip().splitlines())
    assert presented.program.outputs == gradient.outputs


def test_the_embedding_gradient_is_a_scatter() -> None:
    _, _, presented = listed("tokens")
    s = presented.program["dEmb"]
    assert s.where.has(sp.Eq) and str(s.expr).startswith("dX[")


@pytest.mark.parametrize("name", DEFINITIONS)
def test_every_rewriting_is_proved_and_no_helper_is_left(name: str) -> None:
    program, _, presented = listed(name)
    assert presented.proved and {s.status for s in presented.steps} == {PROVED}
    helpers = {s.name for s in program if s.aux or s.range_only}
    assert not [s.name for s in presented.derived if s.needs & helpers]
    assert not [s.name for s in presented.derived if s.name[1:] in helpers]
    assert presented.program.statements[: len(program)] == program.statements


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n == "everything" else n for n in DEFINITIONS])
def test_the_list_is_proved_as_a_whole_by_another_prover(name: str) -> None:
    program, gradient, presented = listed(name)
    assert prove_equal_gradients(gradient, presented.program)
    assert prove_duality(program, gradient=presented.program)


@pytest.mark.parametrize("name", rows())
@pytest.mark.parametrize("batch", [False, True])
def test_every_variant_of_the_catalogue(name: str, batch: bool) -> None:
    definition = get(name).definition
    program = definition.program(batch=batch)
    presented = present(program, adjoint(program))
    assert presented.proved
    if definition.without_tiles != definition:
        return  # tiles rescale by the maxima that they have seen
    tops = {s.name for s in program if s.range_only}  # a softmax has a row maximum, and its exponentials read it
    assert "D" in presented.program or not tops
    assert not any(tops & {name_of(x) for x in reads(e)} for s in presented.derived for e in s.expr.atoms(sp.exp))


@pytest.mark.parametrize("name", DEFINITIONS)
def test_refold_reads_the_output(name: str) -> None:
    _, gradient, presented = listed(name)
    folded = refold(presented)
    s = folded.program["D"]
    assert s.over == (sp.Symbol("e", integer=True),) and s.where == sp.true
    assert [x.status for x in folded.steps[len(presented.steps) :]] == [PROVED]
    assert prove_equal_gradients(gradient, folded.program)
    assert refold(folded) == folded


def test_presenting_twice_changes_nothing() -> None:
    program, _, presented = listed("everything")
    again = present(program, presented.program)
    assert again.derived == presented.derived and not again.steps


def test_without_its_name_the_sink_weight_is_named() -> None:
    """A definition that has no statement for the weight of the sink gets one."""
    program = DEFINITIONS["sink"].program()
    program = program.with_statements([s for s in program if s.name != "P0"])
    presented = present(program, adjoint(program))
    assert str(presented.program["P0"]) == "P0[i] = E0[i]/l[i]"
    assert str(presented.program["dsink"]) == "dsink = sum over i of -D[i]*P0[i]"


def test_two_softmaxes_have_two_numbered_sums() -> None:
    i, j, e = indices("i j e")
    out = []
    for tag in "ab":
        s, E, total, P = T("S" + tag, i, j), T("E" + tag, i, j), T("l" + tag, i), T("P" + tag, i, j)
        out += [Statement(E, sp.exp(s), aux=True), Statement(total, E, (j,), aux=True), Statement(P, E / total)]
    both = T("Pa", i, j) - T("lam") * T("Pb", i, j)
    out += [Statement(T("W", i, j), both), Statement(T("O", i, e), T("W", i, j) * T("V", j, e), (j,))]
    program = Program(tuple(out), {i: size("n"), j: size("m"), e: size("dv")}, ("O",))
    presented = present(program, adjoint(program))
    assert {"D", "D2"} <= {s.name for s in presented.derived} and presented.proved
    assert prove_duality(program, gradient=presented.program)


def test_a_wrong_rule_is_dropped_and_said_so() -> None:
    def forget_the_sum(listing):  # dS = P∘dP: what a kernel without D computes
        s = listing.by_name["dS"]
        yield listing.replaced({"dS": (replace(s, expr=T("P", *s.indices) * T("dP", *s.indices)),)})

    program, gradient, presented = listed("causal")
    wrong = present(program, gradient, (*RULES, Rule("forget", "a planted fault", forget_the_sum)))
    dropped = [s for s in wrong.steps if s.status == DROPPED]
    assert [s.rule for s in dropped] == ["forget"] and dropped[0].names == ("dS",)
    assert wrong.derived == presented.derived and wrong.proved


def test_a_true_rewriting_beyond_the_normal_form_is_checked_and_labelled() -> None:
    i = indices("i")[0]
    x = T("x", i)
    program = Program((Statement(T("y", i), sp.sin(x) ** 2),), {i: size("n")}, ("y",))
    gradient = adjoint(program)

    def double_angle(factor):
        def propose(listing):
            s = listing.by_name["dx"]
            if s.expr.has(sp.cos):
                yield listing.replaced({"dx": (replace(s, expr=factor * sp.sin(2 * x) * T("dy", i)),)})

        return Rule("double angle", "", propose)

    good = present(program, gradient, (double_angle(1),))
    assert [s.status for s in good.steps] == [CHECKED] and not good.proved
    assert str(good.program["dx"]) == "dx[i] = sin(2*x[i])*dy[i]"
    bad = present(program, gradient, (double_angle(1 + sp.Rational(1, 10**60)),))
    assert [s.status for s in bad.steps] == [DROPPED] and bad.program == gradient


def test_rules_that_undo_each_other_come_to_an_end() -> None:
    def turn(listing):
        s = listing.by_name["dV"]
        over = s.expr.args
        yield listing.replaced({"dV": (replace(s, expr=sp.Mul(*over, 2) if 2 not in over else s.expr / 2),)})

    def there_and_back(listing):
        s = listing.by_name["dS"]
        yield listing.replaced({"dS": (replace(s, expr=sp.factor(s.expr) if s.expr.is_Add else sp.expand(s.expr)),)})

    program, gradient, _ = listed("plain")
    ended = present(program, gradient, (*RULES, Rule("turn", "", turn), Rule("back", "", there_and_back)))
    assert DROPPED in {s.status for s in ended.steps}


def test_the_gradient_must_be_of_the_program() -> None:
    program, _, _ = listed("plain")
    _, other, _ = listed("causal")
    with pytest.raises(ProgramError, match="must start with"):
        present(program, other)


def test_steps_print() -> None:
    _, _, presented = listed("plain")
    assert any(str(s).startswith("name: ") and "proved for all sizes" in str(s) for s in presented.steps)
    assert Definition() == DEFINITIONS["lse"]
