"""Gradient = transpose of the tangent, proved for all sizes, raw and presented; a statement with its sign flipped is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sympy as sp

from symattn.adjoint import adjoint
from symattn.definition import Definition
from symattn.derivative import real_inputs
from symattn.errors import NotDifferentiableError, ProgramError, ProofError
from symattn.presentation import present
from symattn.program import Program, Statement
from symattn.program import tensor as T
from symattn.theorems.duality import prove_duality, prove_equal_gradients
from symattn.variants import CATALOGUE
from tests.programs import ATTENTION, CASES, DIMS, attention, c, e, i, j
from tests.support import rows


def flipped(program: Program, name: str) -> Program:
    """The program with the sign of one statement turned."""
    return program.with_statements([replace(s, expr=-s.expr) if s.name == name else s for s in program])


def derived(program: Program, gradient: Program) -> list[Statement]:
    return [s for s in gradient if s.name not in program]


LONG = ("grouped causal softcap alibi sink lse", "self from X")


def slowly(names):
    """Parameters, the long ones marked."""
    return [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in names]


@pytest.mark.parametrize("name", slowly(CASES))
def test_the_raw_gradient_is_proved_and_each_flipped_sign_refused(name):
    program = CASES[name].program
    gradient = adjoint(program)
    assert prove_duality(program)
    assert prove_duality(program, gradient=gradient)
    for s in derived(program, gradient):
        wrong = flipped(gradient, s.name)
        assert wrong != gradient or s.expr == 0
        assert not prove_duality(program, gradient=wrong), s


@pytest.mark.parametrize("name", slowly(ATTENTION))
def test_the_presented_gradient_is_proved_and_each_flipped_sign_refused(name):
    program = ATTENTION[name].program
    gradient = adjoint(program)
    shown = present(program, gradient).program
    assert prove_duality(program, gradient=shown)
    assert prove_equal_gradients(gradient, shown)
    for s in derived(program, shown):
        wrong = flipped(shown, s.name)
        assert not prove_duality(program, gradient=wrong), s
        assert name not in ("causal", "sink") or not prove_equal_gradients(gradient, wrong), s


FIELDS: dict[str, dict] = {
    "plain": {},
    "heads": {"heads": 4},
    "grouped": {"heads": 4, "kv_heads": 2},
    "tiled": {"heads": 4, "kv_heads": 2, "grouping": "tiled"},
    "one key head": {"heads": 4, "kv_heads": 1},
    "top-left": {"causal": "top-left"},
    "bottom-right": {"causal": "bottom-right"},
    "window of keys": {"causal": "top-left", "window": (4, None), "window_counts": "keys"},
    "window both ways": {"window": (2, 3), "window_counts": "distance"},
    "prefix": {"causal": "top-left", "prefix": 2},
    "prefix by name": {"causal": "top-left", "prefix": "start"},
    "document": {"causal": "top-left", "document": True},
    "boolean mask": {"attn_mask": "boolean"},
    "boolean mask, drop": {"attn_mask": "boolean", "mask_polarity": "drop"},
    "additive mask": {"attn_mask": "additive"},
    "bias": {"bias": True},
    "softcap": {"softcap": 20},
    "softcap by name": {"softcap": "cap", "causal": "top-left"},
    "alibi": {"heads": 4, "alibi": True, "causal": "top-left"},
    "alibi power": {"heads": 6, "alibi": True, "alibi_slopes": "power"},
    "sink": {"sink": True, "heads": 2},
    "uniform": {"attn_mask": "boolean", "empty_row": "uniform"},
    "uniform, X": {"attn_mask": "boolean", "empty_row": "uniform", "start": "x"},
    "scale": {"scale": "1/8"},
    "scale by name": {"scale": "1/temperature"},
    "no scale": {"scale": 1},
    "base 2": {"lse_base": 2, "causal": "bottom-right"},
    "no lse": {"lse": False},
    "dropout": {"dropout": True},
    "from X": {"start": "x", "heads": 2, "causal": "top-left"},
    "from X, projected": {"start": "x", "heads": 4, "kv_heads": 2, "output_projection": True},
    "from tokens": {"start": "tokens", "output_projection": True},
    "cross": {"start": "x", "cross": True, "output_projection": True},
    "score": {"score": "20*tanh(s/20) - slope*(i - j)", "mask": "j <= i and i - j < 128"},
    "score with a logarithm": {"score": "s + log(1 + exp(s/beta))"},
    "score with a quotient": {"score": "s/(1 + abs(s)/cap)"},
    "not a number": {"attn_mask": "boolean", "empty_row": "nan"},
    "alternatives": {"mask": "not (j > i and i < 5) or (i - j) % 4 == 0"},
    "score with a root": {"score": "s/sqrt(1 + s**2/cap**2)"},
    "everything": {
        "heads": 4,
        "kv_heads": 2,
        "causal": "bottom-right",
        "window": (5, 0),
        "softcap": "cap",
        "alibi": True,
        "bias": True,
        "sink": True,
        "attn_mask": "boolean",
        "lse_base": 2,
        "start": "x",
        "output_projection": True,
    },
}


def of(fields: dict) -> Program:
    return Definition(**fields).program()


@pytest.mark.parametrize("batch", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["one", "batch"])
@pytest.mark.parametrize("name", FIELDS)
def test_every_field_of_the_definition(name, batch):
    program = Definition(**FIELDS[name]).program(batch=batch)
    assert prove_duality(program)


def check_presented(program: Program, only: int | None = None) -> None:
    """Proved, and flipped signs refused - all, or that of one statement - with as many terms as the proof was given."""
    gradient = adjoint(program)
    shown = present(program, gradient).program
    limit = next((k for k in (300, 1000, 3000) if prove_duality(program, gradient=shown, limit=k)), 20_000)
    assert limit < 20_000 or prove_duality(program, gradient=shown)
    assert prove_equal_gradients(gradient, shown)
    statements = derived(program, shown)
    for s in statements if only is None else [statements[only % len(statements)]]:
        assert not prove_duality(program, gradient=flipped(shown, s.name), limit=limit), s


@pytest.mark.slow
@pytest.mark.parametrize("name", FIELDS)
def test_the_presented_gradient_of_every_field_and_its_flipped_signs(name):
    check_presented(of(FIELDS[name]))


@pytest.mark.slow
@pytest.mark.parametrize("name", rows())
def test_the_presented_gradient_of_every_variant_and_one_flipped_sign(name):
    """Another statement in every row: a refusal takes as long as a proof, and the fields above have all of them."""
    check_presented(CATALOGUE[name].definition.program(), only=list(CATALOGUE).index(name))


@pytest.mark.parametrize("name", ["plain", "sink"])
def test_the_gradient_of_the_gradient(name):
    first = adjoint(ATTENTION[name].program, ["Q", "K", "V"])
    assert adjoint(first).outputs[:2] == ("dK'", "dQ'")
    assert prove_duality(first)


def softmax_backward(form) -> Program:
    """A gradient of causal attention written by hand, by Q, K, V."""
    forward = ATTENTION["causal"].program
    w = sp.Le(j, i)
    dP, dS = T("dP", i, j), T("dS", i, j)
    return Program(
        [
            *forward,
            Statement(dP, T("dO", i, e) * T("V", j, e), (e,), where=w),
            *form(w),
            Statement(T("dQ", i, c), dS * T("K", j, c) * T("scale"), (j,), where=w),
            Statement(T("dK", j, c), dS * T("Q", i, c) * T("scale"), (i,), where=w),
            Statement(T("dV", j, e), T("P", i, j) * T("dO", i, e), (i,), where=w),
        ],
        DIMS,
        ("dQ", "dK", "dV"),
    )


P, DP, D, DS = T("P", i, j), T("dP", i, j), T("D", i), T("dS", i, j)


def with_d(d_expr, d_over, ds_expr):
    return lambda w: [Statement(D, d_expr, d_over, where=w if j in d_over else sp.true), Statement(DS, ds_expr, where=w)]


RIGHT = {
    "row sums of P dP": with_d(P * DP, (j,), P * (DP - D)),
    "row sums of dO O": with_d(T("dO", i, e) * T("O", i, e), (e,), P * (DP - D)),
    "by E and l": with_d(T("E", i, j) * DP, (j,), T("E", i, j) * (DP / T("l", i) - D / T("l", i) ** 2)),
    "recomputed from Z and L": lambda w: [
        Statement(T("lse", i), T("m", i) + sp.log(T("l", i))),
        Statement(T("P2", i, j), sp.exp(T("S", i, j) - T("lse", i)), where=w),
        Statement(D, T("P2", i, j) * DP, (j,), where=w),
        Statement(DS, T("P2", i, j) * (DP - D), where=w),
    ],
}
WRONG = {
    "D left out": with_d(P * DP, (j,), P * DP),
    "D not subtracted but added": with_d(P * DP, (j,), P * (DP + D)),
    "D of dP alone": with_d(DP, (j,), P * (DP - D)),
    "D once more over P": with_d(P * DP, (j,), P * (DP - P * D)),
    "P left out": with_d(P * DP, (j,), DP - D),
    "a column for a row": lambda w: [
        Statement(T("D", j), P * DP, (i,), where=w),
        Statement(DS, P * (DP - T("D", j)), where=w),
    ],
    "recomputed without the maximum": lambda w: [
        Statement(T("lse", i), sp.log(T("l", i))),
        Statement(T("P2", i, j), sp.exp(T("S", i, j) - T("lse", i)), where=w),
        Statement(D, T("P2", i, j) * DP, (j,), where=w),
        Statement(DS, T("P2", i, j) * (DP - D), where=w),
    ],
}


@pytest.mark.parametrize("name", RIGHT)
def test_gradients_written_in_other_ways_are_proved(name):
    assert prove_duality(ATTENTION["causal"].program, ["Q", "K", "V"], softmax_backward(RIGHT[name]))


@pytest.mark.parametrize("name", WRONG)
def test_wrong_gradients_are_refused(name):
    assert not prove_duality(ATTENTION["causal"].program, ["Q", "K", "V"], softmax_backward(WRONG[name]))


def test_a_list_with_a_forward_part_of_its_own_is_judged_by_that_part():
    program = attention()
    right = adjoint(program)
    scaled = right.with_statements([replace(s, expr=2 * s.expr) if s.name == "P" else s for s in right])
    assert not prove_duality(program, gradient=scaled)
    named = Statement(T("S2", i, j), T("Q", i, c) * T("K", j, c) * T("scale"), (c,))
    own = [replace(s, expr=s.expr.xreplace({T("S", i, j): T("S2", i, j)})) if s.name == "dscale" else s for s in right]
    assert prove_duality(program, gradient=right.with_statements([named, *own]))
    # statements that read a tensor that the two lists define differently are not the same, alike as they look
    other = [replace(s, expr=-s.expr) if s.name == "dP" else s for s in right]
    assert not prove_equal_gradients(right, right.with_statements(other))


def test_a_transposed_scatter_and_a_lost_mask_are_refused():
    program = CASES["embedding look-up"].program
    good = adjoint(program)
    (s,) = derived(program, good)
    assert not prove_duality(program, gradient=good.with_statements([*program, replace(s, where=sp.true)]))
    masked = ATTENTION["boolean mask"].program
    good = adjoint(masked)
    for s in derived(masked, good):
        if s.name in ("dQ", "dK", "dP", "dV"):
            lost = good.with_statements([replace(q, where=sp.true) if q is s else q for q in good])
            # what is multiplied by P or dS, 0 outside the mask, is right without it too
            assert prove_duality(masked, gradient=lost) == (s.name in ("dQ", "dK", "dP", "dV"))
    causal = ATTENTION["causal"].program
    good = adjoint(causal)
    for name, where in (("dV", sp.Lt(j, i)), ("dP", sp.Lt(j, i)), ("dQ", sp.Ge(j, i))):
        wrong = good.with_statements([replace(q, where=where) if q.name == name else q for q in good])
        assert not prove_duality(causal, gradient=wrong)


def test_what_it_does_not_take():
    program = attention()
    with pytest.raises(ProgramError, match=r"4 gradients are asked for .* the list has 1"):
        prove_duality(program, gradient=adjoint(program, ["Q"]))
    with pytest.raises(ProgramError, match="2 outputs cannot equal 1"):
        prove_equal_gradients(adjoint(program, ["Q", "K"]), adjoint(program, ["Q"]))
    top = Program((Statement(T("y", i), T("x", i, j), (j,), "max"),), DIMS, ("y",))
    with pytest.raises(NotDifferentiableError, match="y: a maximum"):
        prove_duality(top)
    with pytest.raises(ProofError, match="y is range_only, but it is an output"):
        prove_duality(Program((replace(top["y"], range_only=True),), DIMS, ("y",)))


def test_a_limit_makes_it_say_no():
    program = ATTENTION["grouped causal softcap alibi sink lse"].program
    assert real_inputs(program) and not prove_duality(program, limit=3)
