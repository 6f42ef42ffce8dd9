"""The prover of rewritings: it proves what is right and refuses what is wrong, statement by statement."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sympy as sp

from symattn.presentation import recompute
from symattn.presentation.proof import changed_names, proved
from symattn.program import Program, Statement, indices, size
from symattn.program import tensor as T
from tests.presentation.cases import listed

MOST = ["causal", "empty rows", "additive mask", "softcap", "alibi", "sink", "lse base 2", "grouped", "projections", "dropout"]


@pytest.mark.parametrize("name", MOST)
def test_raw_and_presented_are_proved_equal_and_every_flipped_sign_is_refused(name: str) -> None:
    _, gradient, presented = listed(name)
    new = presented.program.statements
    assert proved(gradient.statements, new, gradient)
    refused = 0
    for s in presented.derived:
        flipped = [replace(t, expr=-t.expr) if t is s else t for t in new]
        assert not proved(gradient.statements, flipped, gradient), s
        refused += 1
    assert refused == len(presented.derived) >= 6


@pytest.mark.parametrize("name", ["empty rows", "sink base 2", "dropout", "grouped"])
def test_every_flipped_sign_in_the_list_of_kernels_is_refused(name: str) -> None:
    program, _, presented = listed(name)
    whole = recompute(program, presented)
    old = presented.program
    names = {s.name for s in presented.derived}
    plain = [replace(s, where=sp.true) if s.name in ("O",) else s for s in whole]  # l != 0 is a side condition of the proof
    plain = [s for s in plain if not s.name.startswith(("R_b", "S_b"))]
    back = {T(n + "_b", *old[n].indices): old[n].target for n in ("R", "S") if n in old}
    plain = [s.xreplace(back) for s in plain]
    assert proved(old.statements, plain, old)
    for s in plain:
        if s.name in names | {"O", "N", "P_b", "P0_b"}:
            flipped = [replace(t, expr=-t.expr) if t is s else t for t in plain]
            assert not proved(old.statements, flipped, old), s


@pytest.mark.parametrize("name", ["causal", "lse"])
def test_other_faults_are_refused(name: str) -> None:
    _, gradient, presented = listed(name)
    new = presented.program.statements
    i, j, c, e = indices("i j c e")
    faults = {
        "dS": T("P", i, j) * T("dP", i, j),
        "D": 2 * T("P", i, j) * T("dP", i, j),
        "dQ": T("dS", i, j) * T("K", j, c),
        "dV": T("P", i, j) * T("dO", i, e) + T("P", i, j) * T("D", i),
    }
    for n, expr in faults.items():
        assert not proved(gradient.statements, [replace(t, expr=expr) if t.name == n else t for t in new], gradient), n
    if name == "causal":
        loose = [replace(t, where=sp.true) if t.name == "dV" else t for t in new]
        assert proved(gradient.statements, loose, gradient)  # P is 0 outside its domain
        shifted = [replace(t, where=sp.Lt(j, i)) if t.name == "P" else t for t in new]
        assert not proved(gradient.statements, shifted, gradient)


def test_changed_names() -> None:
    i = indices("i")[0]
    a, b = Statement(T("a", i), T("x", i)), Statement(T("b", i), T("a", i))
    assert changed_names([a, b], [a, replace(b, expr=T("a", i) * 2)]) == ("b",)
    assert changed_names([a, b], [a]) == ("b",) and changed_names([a], [a, b]) == ("b",) and changed_names([a], [a]) == ()


def test_a_changed_maximum_is_not_proved() -> None:
    i, j = indices("i j")
    m = Statement(T("m", i), T("x", i, j), (j,), "max", range_only=True)
    program = Program((m,), {i: size("n"), j: size("m")}, ("m",))
    assert not proved([m], [replace(m, expr=2 * m.expr)], program)
    assert not proved([m], [replace(m, reduce="sum", range_only=False)], program)


def test_the_target_must_keep_its_indices() -> None:
    i, j = indices("i j")
    a = Statement(T("a", i, j), T("x", i, j))
    program = Program((a,), {i: size("n"), j: size("n")}, ("a",))
    assert not proved([a], [replace(a, target=T("a", j, i))], program)
