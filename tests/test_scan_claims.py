"""Values that cancel in a scan: proved for the running maximum of an online softmax, refused where something does not cancel."""

from dataclasses import replace

import pytest
import sympy as sp

from symattn.adjoint import adjoint
from symattn.cancelling import shifts_cancel
from symattn.claims import prove_range_only
from symattn.errors import ProofError
from symattn.program import Program, Scan, Statement, indices, size, tensor
from tests.scans import EXAMPLES

t, i, j, b = indices("t i j b")
n, k, w, d = size("n"), size("k"), size("w"), size("d")
DIMS = {t: k, i: n, j: w, b: d}
T, UP = tensor, Scan(t)
ONLINE = EXAMPLES["online softmax"].program


def cancels(program):
    claimed = {s.name for s in program if s.range_only}
    cut = program.with_statements([s for s in program if not s.range_only], set(program.outputs) - claimed)
    return shifts_cancel(cut, claimed & set(cut.inputs))


def changed(name, expr, program=ONLINE, **more):
    return program.with_statements([replace(s, expr=expr(s.expr), **more) if s.name == name else s for s in program])


def tiles(rescale=sp.exp, lse=lambda m, z: m + sp.log(z), weight=1):
    """Flash attention: tiles of w keys, queries i, the log-sum-exp as second output."""
    m, before = T("m", t, i), T("m", t - 1, i)
    p = T("P", t, i, j)
    statements = (
        Statement(T("top", t, i), T("S", t, i, j), (j,), "max", range_only=True, scan=UP),
        Statement(m, sp.Max(before, T("top", t, i)), range_only=True, scan=UP),
        Statement(p, sp.exp(T("S", t, i, j) - m), scan=UP),
        Statement(T("r", t, i), rescale(before - m), scan=UP),
        Statement(T("rows", t, i), p, (j,), scan=UP),
        Statement(T("l", t, i), T("r", t, i) * T("l", t - 1, i) + T("rows", t, i), scan=UP),
        Statement(T("pv", t, i, b), weight * p * T("V", t, j, b), (j,), scan=UP),
        Statement(T("acc", t, i, b), T("r", t, i) * T("acc", t - 1, i, b) + T("pv", t, i, b), scan=UP),
        Statement(T("o", i, b), T("acc", k - 1, i, b) / T("l", k - 1, i)),
        Statement(T("L", i), lse(T("m", k - 1, i), T("l", k - 1, i))),
    )
    return Program(statements, DIMS, ("o", "L"))


def test_the_running_maximum_of_an_online_softmax_cancels():
    assert cancels(ONLINE)
    assert cancels(tiles())
    prove_range_only(tiles())
    assert adjoint(tiles()).outputs == ("dS", "dV")


def test_a_maximum_that_does_not_depend_on_the_step_cancels_too():
    m, s = T("m", i), T("S", t, i)
    total = Statement(T("l", t, i), T("l", t - 1, i) + sp.exp(s - m), scan=UP)
    program = Program(
        (Statement(m, s, (t,), "max", range_only=True), total, Statement(T("L", i), m + sp.log(T("l", k - 1, i)))), DIMS, ("L",)
    )
    assert cancels(program)
    assert not cancels(changed("L", lambda e: e - m, program))


@pytest.mark.parametrize(
    "program",
    [
        tiles(rescale=lambda x: sp.exp(-x)),
        tiles(rescale=lambda x: sp.S.One),
        tiles(rescale=lambda x: 1 + x),
        tiles(lse=lambda m, z: sp.log(z)),
        tiles(lse=lambda m, z: 2 * m + sp.log(z)),
        tiles(weight=T("m", t, i)),
        tiles(weight=1 + T("P", t, i, j)),
        changed("acc", lambda e: e + 1),
        changed("l", lambda e: e.subs(T("s", t), T("s", t) - T("m", t))),
        changed("o", lambda e: e + sp.sign(T("m", n - 1))),
        changed("o", lambda e: sp.Max(e, T("l", n - 1))),
    ],
)
def test_what_does_not_cancel_is_refused(program):
    assert not cancels(program)
    with pytest.raises(ProofError):
        prove_range_only(program)


def test_a_condition_or_a_subscript_that_depends_on_the_claim_is_refused():
    hidden = [replace(s, where=sp.Gt(T("m", t), 0)) if s.name == "acc" else s for s in ONLINE]
    assert not cancels(ONLINE.with_statements(hidden))
    through = [replace(s, where=sp.Gt(T("l", t), 0)) if s.name == "acc" else s for s in ONLINE]
    assert not cancels(ONLINE.with_statements(through))
    looked = [replace(s, expr=s.expr * T("x", sp.floor(T("m", n - 1)))) if s.name == "o" else s for s in ONLINE]
    assert not cancels(ONLINE.with_statements(looked, shapes={"x": (n,)}))


def test_a_product_of_rescaled_numbers_is_refused():
    row = Statement(T("z", t), T("l", t) * T("v", t, b), (b,), "prod", scan=UP)
    first, total, acc, out = EXAMPLES["online softmax"].program.statements
    assert not cancels(Program((first, total, row, acc, out), ONLINE.dims, ("o", "z")))


def test_a_claim_that_is_an_output_is_refused():
    with pytest.raises(ProofError, match="it is an output"):
        prove_range_only(ONLINE.with_statements(ONLINE.statements, ["o", "m"]))
