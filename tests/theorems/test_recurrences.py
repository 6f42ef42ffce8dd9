"""Parallel = recurrent = chunked: proved for all sizes, and every planted fault is refused and refuted in exact numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import sympy as sp

from symattn.adjoint import adjoint
from symattn.definition import Definition
from symattn.errors import ProgramError
from symattn.indexed import index, tensor
from symattn.program import Program, Statement
from symattn.theorems.claim import PROVED, REFUTED
from symattn.theorems.duality import prove_duality
from symattn.theorems.recurrences import Same, prove_same
from symattn.theorems.trials import first_difference

I, J, T, X, E = (index(a) for a in "ijtxe")  # noqa: E741
PROVABLE: list[dict[str, Any]] = [
    {},
    {"feature": "relu", "normalized": True},
    {"decay": "head"},
    {"decay": "retention", "normalized": True, "feature": "exp"},
    {"decay": "head", "decay_space": "log", "initial_state": True},
    {"decay": "step"},
    {"decay": "channel", "decay_space": "log"},
    {"delta": True},
    {"delta": True, "decay": "head"},
    {"delta": True, "decay": "step", "initial_state": True},
    {"delta": True, "decay": "channel", "initial_state": True},
]


def program(evaluation: str, batch: bool = False, **fields: Any) -> Program:
    return Definition(form="linear", causal=True, evaluation=evaluation, **fields).program(batch=batch)


def planted(p: Program, name: str, change: Callable[[Statement], Statement]) -> Program:
    return p.with_statements([change(s) if s.name == name else s for s in p])


@pytest.mark.parametrize("evaluation", ["recurrent", "chunked"])
@pytest.mark.parametrize("fields", PROVABLE, ids=lambda f: "-".join(f"{k}={v}" for k, v in f.items()) or "linear")
def test_evaluations_are_proved_equal_for_all_sizes(fields, evaluation):
    claims = dict(Same(program("parallel", **fields), program(evaluation, **fields)).claims())
    assert len(claims) >= 3
    assert all(claims.values()), claims


@pytest.mark.parametrize("evaluation", ["recurrent", "chunked"])
def test_grouped_heads_and_a_batch(evaluation):
    fields = {"delta": True, "decay": "step", "heads": 4, "kv_heads": 2, "batch": True}
    found = prove_same(program("parallel", **fields), program(evaluation, **fields))
    assert (found.verdict, found.scope) == (PROVED, "all sizes")
    assert found.method.startswith("induction along the " + ("steps" if evaluation == "recurrent" else "chunks"))


def test_a_chunk_length_that_is_a_number():
    assert prove_same(program("parallel", decay="head"), program("chunked", decay="head", block=3)).verdict == PROVED


def _previous(s: Statement) -> Statement:
    """The query reads the state before the step has been written."""
    return replace(s, expr=s.expr.xreplace({tensor("St", I, *index_pair()): tensor("St", I - 1, *index_pair())}))


def index_pair() -> tuple[sp.Symbol, sp.Symbol]:
    return index("c"), E


FAULTS: dict[str, tuple[dict[str, Any], str, str, Callable[[Statement], Statement]]] = {
    "read before the step": ({}, "recurrent", "Or", _previous),
    "read after the chunk": (
        {},
        "chunked",
        "Ooutr",
        lambda s: replace(s, expr=s.expr.xreplace({sp.floor(I / tensor_size()) - 1: sp.floor(I / tensor_size())})),
    ),
    "one factor too many": (
        {"decay": "head"},
        "recurrent",
        "St",
        lambda s: replace(s, expr=s.expr.xreplace({tensor("gam"): tensor("gam") ** 2})),
    ),
    "no decay of the passed state": (
        {"decay": "step"},
        "chunked",
        "St",
        lambda s: replace(s, expr=s.expr.xreplace({tensor("Delta", X): sp.S.One})),
    ),
    "own decay when leaving": (
        {"decay": "step"},
        "chunked",
        "Omega",
        lambda s: replace(s, where=s.where.xreplace({sp.Lt(J, T): sp.Le(J, T)})),
    ),
    "start decay off by one": ({"decay": "head"}, "chunked", "Lambda", lambda s: replace(s, expr=s.expr / tensor("gam"))),
    "beta on one side": (
        {"delta": True},
        "recurrent",
        "Vn",
        lambda s: replace(s, expr=tensor("V", I, E) - tensor("Bt", I) * tensor("Vp", I, E)),
    ),
    "undecayed state in the delta": (
        {"delta": True, "decay": "step"},
        "recurrent",
        "Vp",
        lambda s: replace(s, expr=s.expr.xreplace({tensor("Al", I): sp.S.One})),
    ),
    "entering state not taken off": (
        {"delta": True},
        "chunked",
        "St",
        lambda s: replace(s, expr=s.expr.xreplace({tensor("Sp", X, *index_pair()): sp.S.Zero})),
    ),
    "plus in the delta": ({"delta": True}, "chunked", "Vn", lambda s: replace(s, expr=tensor("Vw", I, E) + tensor("Vp", I, E))),
    "initial state at every step": ({"initial_state": True}, "recurrent", "Si", lambda s: replace(s, where=sp.true)),
    "undecayed normaliser": (
        {"normalized": True, "decay": "head"},
        "recurrent",
        "z",
        lambda s: replace(s, expr=s.expr.xreplace({tensor("gam"): sp.S.One})),
    ),
}


def tensor_size() -> sp.Expr:
    return sp.Symbol("chunk", integer=True, positive=True)


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_refuted_in_exact_numbers(name):
    fields, evaluation, statement, change = FAULTS[name]
    right = program(evaluation, **fields)
    wrong = planted(right, statement, change)
    assert wrong != right
    found = prove_same(program("parallel", **fields), wrong)
    assert found.verdict == REFUTED
    assert abs(sp.N(found.counterexample.difference)) > 1e-6
    assert found.counterexample.what.startswith("O[")


@pytest.mark.slow
@pytest.mark.parametrize("fields", PROVABLE, ids=str)
@pytest.mark.parametrize("evaluation", ["recurrent", "chunked"])
def test_every_statement_matters(fields, evaluation):
    """Each statement that the output depends on, doubled, is refused: the proof reads all of them."""
    right = program(evaluation, **fields)
    for s in right.live():
        if s.name in ("gam", "Lsum", "Lall") or "f" in s.name[1:]:
            continue  # also in the parallel list, or only differences of it count
        wrong = planted(right, s.name, lambda x: replace(x, expr=2 * x.expr))
        assert prove_same(program("parallel", **fields), wrong).verdict == REFUTED, s.name


def test_a_fault_in_the_parallel_list_is_refuted_too():
    right = program("parallel", decay="step")
    wrong = planted(right, "Gamma", lambda s: replace(s, where=s.where.xreplace({sp.Le(T, I): sp.Lt(T, I)})))
    assert prove_same(wrong, program("recurrent", decay="step")).verdict == REFUTED
    assert first_difference(right, right) is None


@pytest.mark.parametrize(
    ("evaluation", "fields"),
    [
        ("parallel", {"delta": True, "decay": "step"}),
        ("recurrent", {"delta": True, "decay": "channel", "initial_state": True}),
        ("recurrent", {"normalized": True, "feature": "elu", "decay": "head"}),
        ("chunked", {}),
        pytest.param("chunked", {"decay": "step", "decay_space": "log"}, marks=pytest.mark.slow),
        pytest.param("chunked", {"delta": True, "decay": "step"}, marks=pytest.mark.slow),
    ],
)
def test_the_gradient_of_every_evaluation_is_proved_for_all_sizes(evaluation, fields):
    assert prove_duality(program(evaluation, **fields))


@pytest.mark.parametrize("name", ["dSt", "dK", "dBt"])
def test_a_wrong_gradient_of_a_recurrence_is_not_proved(name):
    p = program("recurrent", delta=True)
    good = adjoint(p)
    assert name in good
    wrong = good.with_statements(replace(s, expr=-s.expr) if s.name == name else s for s in good)
    assert prove_duality(p, gradient=good)
    assert not prove_duality(p, gradient=wrong)


def test_other_inputs_are_refused():
    with pytest.raises(ProgramError, match="inputs and outputs differ"):
        prove_same(program("parallel"), program("recurrent", delta=True))
