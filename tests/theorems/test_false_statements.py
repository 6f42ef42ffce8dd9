"""A false version of every theorem, as a person gets it wrong: a sign, an index, a factor. Each is refuted in exact numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sympy as sp

from symattn.definition import Definition
from symattn.program import Statement
from symattn.program import tensor as T
from symattn.theorems.catalogue import THEOREMS
from symattn.theorems.claim import REFUTED, Equal
from symattn.theorems.examples import differ
from symattn.theorems.merging import merge
from symattn.theorems.scalar import Scalar
from symattn.theorems.signs import AtLeastZero
from symattn.theorems.subject import Subject

i, j, c, e, t, s = sp.symbols("i j c e t s", integer=True)


def claim_of(name, k=0, **fields) -> Equal:
    return THEOREMS[name].claims(Subject(Definition(**fields)))[k]


def changed(claim, name, expr=None, over=None, **more):
    """The claim with one statement of its program changed."""
    forward = claim.forward and claim.forward.with_statements([_new(x, name, expr, over, more) for x in claim.forward])
    program = claim.program.with_statements([_new(x, name, expr, over, more) for x in claim.program])
    return replace(claim, program=program, forward=forward)


def _new(x, name, expr, over, more):
    if x.name != name:
        return x
    return replace(x, expr=x.expr if expr is None else expr(x.expr), over=x.over if over is None else over, **more)


P, dP, dO, V, K, Q = T("P", i, j), T("dP", i, j), T("dO", i, e), T("V", j, e), T("K", j, c), T("Q", i, c)
causal = {"causal": "top-left"}


def _dropped(claim, name, term):
    """The claim whose statement ``name`` lacks a term."""
    return changed(claim, name, lambda x: x - term)


FALSE = {
    "rows-sum-to-one: the columns": lambda: replace(
        claim_of("rows-sum-to-one", **causal),
        program=claim_of("rows-sum-to-one", **causal).program.with_statements(
            [
                Statement(T("rowsum_P", j), P, (i,))
                if x.name == "rowsum_P"
                else Statement(T("one", j), sp.S.One)
                if x.name == "one"
                else x
                for x in claim_of("rows-sum-to-one", **causal).program
            ]
        ),
    ),
    "shift-invariance: a constant of the column": lambda: changed(
        claim_of("shift-invariance"), "S*", lambda x: T("S", i, j) + i * j
    ),
    "shift-invariance: L stays": lambda: changed(claim_of("shift-invariance", 1), "L+r", lambda x: T("L", i)),
    "lse-gradient: P (1 - P)": lambda: changed(claim_of("lse-gradient"), "P o dL", lambda x: x * (1 - P)),
    "backward: dV without the transpose's sum over queries halved": lambda: changed(
        claim_of("backward-weights"), "P^T dO", lambda x: x / 2
    ),
    "backward: dP with P": lambda: changed(claim_of("backward-weights", 1), "dO V^T", lambda x: x * P),
    "backward: D added": lambda: changed(
        claim_of("backward-weights", 2), "P o (dP - D)", lambda x: P * (dP + T("rowsum(P o dP)", i))
    ),
    "backward: D of dP alone": lambda: changed(claim_of("backward-weights", 2), "rowsum(P o dP)", lambda x: dP),
    "projections: dQ without the scale": lambda: changed(
        claim_of("backward-projections", scale="1/3"), "scale dS K", lambda x: x / T("scale")
    ),
    "projections: dK with K": lambda: changed(
        claim_of("backward-projections", 1), "scale dS^T Q", lambda x: x.xreplace({Q: T("Q", j, c)}) if False else -x
    ),
    "row-dot: dO V": lambda: changed(claim_of("row-dot"), "rowsum(dO o O)", lambda x: dO * dO),
    "score-rows: columns": lambda: changed(claim_of("score-rows"), "rowsum(dS)", lambda x: T("P", i, j) * x),
    "key-columns: weighted by the key": lambda: changed(claim_of("key-columns"), "colsum(dK)", lambda x: x * (j + 1)),
    "gauge-gradient: Q^T dQ": lambda: _transposed(claim_of("gauge-gradient"), "dQ^T Q"),
    "scale-gradient: the sign": lambda: changed(claim_of("scale-gradient"), "<dK,K>", lambda x: -x),
    "value-total: dO without its last channel's factor": lambda: changed(
        claim_of("value-total"), "sum_i dO", lambda x: x * (i + 1)
    ),
    "duality: a gradient twice": lambda: changed(claim_of("duality"), "<dV,V_t>", lambda x: 2 * x),
    "query-permutation: keys instead": lambda: changed(claim_of("query-permutation"), "pi O", lambda x: T("O", i, e)),
    "key-permutation: values stay": lambda: changed(
        claim_of("key-permutation"), "O*", lambda x: x.xreplace({T("V", T("pi", j), e): V})
    ),
    "gauge: K A": lambda: _untransposed(claim_of("gauge")),
    "row-constant: the opposite sign": lambda: changed(
        claim_of("row-constant", causal="top-left", alibi=True), "Z*", lambda x: T("S", i, j) - j * T("slope")
    ),
    "key-smoothing: half the mean": lambda: changed(claim_of("key-smoothing", 1), "L - shift", lambda x: 2 * T("L", i) - x),
    "online-softmax: the sign of the shift": lambda: changed(
        claim_of("online-softmax"),
        "l by the step",
        lambda x: T("l before", t) * sp.exp(T("M", t) - T("N", t)) + sp.exp(T("x", t) - T("M", t)),
    ),
    "online-softmax: the step without the new value": lambda: changed(
        claim_of("online-softmax", 1), "a by the step", lambda x: x / T("v", t, e)
    ),
    "lse-merge: a plain mean": lambda: changed(
        claim_of("lse-merge", 5), "O merged", lambda x: (T("O1", i, e) + T("O2", i, e)) / 2
    ),
    "ring: the local log-sum-exp": lambda: changed(
        claim_of("ring", 2),
        "P ring",
        lambda x: sp.exp(T("Z", i, sp.Symbol("r", integer=True), j) - T("Lr", sp.Symbol("r", integer=True), i)),
    ),
    "sink-gate: sigma(b - L)": lambda: changed(claim_of("sink-gate", sink=True), "gate", lambda x: 1 - x),
    "softcap-derivative: plus": lambda: changed(
        claim_of("softcap-derivative", 1, softcap=2), "dA (1 - (A/c)^2)", lambda x: T("dA", i, j) * (1 + (T("A", i, j) / 2) ** 2)
    ),
    "temperature: the mean is not subtracted": lambda: changed(
        claim_of("temperature-derivative"), "P (s - mean)", lambda x: x.xreplace({T("mean"): sp.S.Zero})
    ),
    "temperature: entropy grows": lambda: changed(claim_of("temperature-derivative", 1), "-beta Var", lambda x: -x),
    "group-sum: a mean": lambda: changed(
        claim_of("group-sum", heads=4, kv_heads=2), "sum_g dK*", lambda x: x / sp.Symbol("G", integer=True, positive=True)
    ),
    "hull: P V without the sum to one": lambda: changed(claim_of("hull", 1), "sum P (V - low)", lambda x: x / 2),
    "masked-keys: one key too many": lambda: changed(
        claim_of("masked-keys", **causal), "O*", where=sp.Le(j, i + 1), expr=lambda x: x + T("V of the row", i, j, e)
    ),
}


def _transposed(claim, name):
    b = sp.Symbol("c2", integer=True)
    held = sp.Dummy(integer=True)
    return changed(claim, name, lambda x: x.xreplace({c: held}).xreplace({b: c}).xreplace({held: b}))


def _untransposed(claim):
    b = sp.Symbol("c2", integer=True)
    return changed(claim, "K**", lambda x: T("K", j, b) * T("A~", b, c))


@pytest.mark.parametrize("name", FALSE)
def test_it_is_refuted(name):
    decision = FALSE[name]().decide()
    assert decision.verdict == REFUTED, decision
    assert differ(decision.counterexample.left, decision.counterexample.right)


def test_false_scalar_statements():
    a, b = ((sp.Symbol(f"L{k}", real=True), sp.Symbol(f"O{k}", real=True)) for k in "ab")
    wrong = Scalar(merge(a, b)[1], (a[1] + b[1]) / 2)
    assert wrong.decide().verdict == REFUTED
    x, cap = sp.Symbol("x", real=True), sp.Symbol("c", positive=True)
    assert Scalar((cap * sp.tanh(x / cap)).diff(x), 1 - sp.tanh(x / cap)).decide().verdict == REFUTED


def test_signs_that_are_wrong():
    program = Definition(scale=1).program()
    assert AtLeastZero(program, "P").planted().decide().verdict == REFUTED
    assert AtLeastZero(program, "R").decide().verdict == REFUTED


def test_every_theorem_of_these_families_has_a_false_version():
    families = ("softmax", "gradients", "symmetry", "merging")
    mine = [x.name for x in THEOREMS.values() if x.claims.__module__.rpartition(".")[2] in families]
    other = ("presented-gradient", "hull-with-zero")  # planted in test_catalogue
    starts = [k.split(":")[0] for k in FALSE]
    for name in mine:
        assert name in other or any(name.startswith(k) or name.endswith(k) for k in starts), name
