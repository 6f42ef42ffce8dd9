"""Programs with scans: what is accepted, what is refused and why, groups, and what keeps them apart."""

import re
from dataclasses import replace

import pytest
import sympy as sp

from symattn.adjoint import adjoint
from symattn.errors import ProgramError
from symattn.facts import knowing
from symattn.normalform import NormalForm, SumOver
from symattn.presentation import present
from symattn.presentation.listing import in_order
from symattn.program import Program, Scan, Statement, indices, size, tensor
from symattn.readings import exact
from symattn.theorems.duality import prove_duality

t, u, a, s = indices("t u a s")
n, d = size("n"), size("d")
DIMS = {t: n, u: n, s: n, a: d}
UP, DOWN = Scan(t), Scan(t, -1)


def h(at):
    return tensor("h", at, a)


def program(*statements, outputs=("h",)):
    return Program(statements, DIMS, outputs)


def state(expr, scan=UP, **more):
    return Statement(h(t), expr, scan=scan, **more)


def test_a_recurrence_is_a_program_and_its_own_tensor_no_input():
    p = program(state(h(t - 1) + tensor("x", t, a)))
    assert p.inputs == ("x",)
    assert p.shapes["h"] == (n, d)
    assert p.scan_axes == {"h": 0}
    assert "scan t" in str(p)


@pytest.mark.parametrize(
    ("statements", "says"),
    [
        ([state(h(t) + 1)], "before it is defined in the step"),
        ([state(h(t + 1) + tensor("x", t, a))], "later step"),
        ([state(h(t - 1) + tensor("x", t, a), DOWN)], "later step"),
        ([state(h(0) + tensor("x", t, a))], "not seen to be an earlier step"),
        ([state(h(u) * tensor("x", t, a), over=(u,))], "ranges over the scan's axis"),
        ([state(tensor("g", t, a) + 1), Statement(tensor("g", t, a), h(t - 1), scan=UP)], "before it is defined in the step"),
        ([state(tensor("g", t - 1, a) + 1), Statement(tensor("g", t, a), h(t + 1), scan=UP)], "later step"),
        ([state(h(t - 1) + 1, where=sp.Gt(h(t + 1), 0))], "later step"),
    ],
)
def test_what_is_not_an_earlier_step_is_refused(statements, says):
    with pytest.raises(ProgramError, match=re.escape(says)):
        program(*statements)


def test_the_index_of_a_scan_is_free():
    with pytest.raises(ProgramError, match="must be among the free indices"):
        Statement(tensor("h", a), tensor("x", t, a), (t,), scan=UP)
    with pytest.raises(ProgramError, match=r"is \+1 or -1"):
        Scan(t, 2)
    with pytest.raises(ProgramError, match="index symbol"):
        Scan(sp.Symbol("r", real=True))
    with pytest.raises(ProgramError, match="unless in a scan"):
        Statement(h(t), h(t - 1))
    with pytest.raises(ProgramError, match="scan is a Scan"):
        Statement(h(t), h(t - 1), scan=t)  # type: ignore[arg-type]


def test_groups_are_maximal_runs_and_a_number_keeps_them_apart():
    first = state(h(t - 1) + tensor("x", t, a))
    ahead = Statement(tensor("y", t, a), h(t + 1) + tensor("y", t - 1, a), scan=UP)
    with pytest.raises(ProgramError, match="later step"):
        program(first, ahead)
    apart = Statement(tensor("y", t, a), ahead.expr, scan=Scan(t, number=1))
    p = program(first, apart, outputs=("y",))
    assert [[x.name for x in g] for g in p.groups()] == [["h"], ["y"]]


def test_live_keeps_groups_whole_and_apart():
    first = state(h(t - 1) + tensor("z", t - 1, a))
    second = Statement(tensor("z", t, a), h(t) * tensor("x", t, a), scan=UP)
    unread = Statement(tensor("w", t, a), tensor("w", t - 1, a) + h(t), scan=UP)
    between = Statement(tensor("y", t, a), h(t))
    last = Statement(tensor("o", t, a), tensor("o", t - 1, a) + h(t + 1), scan=UP)
    p = program(first, second, unread, between, last, outputs=("o",)).live()
    assert [[x.name for x in g] for g in p.groups()] == [["h", "z"], ["o"]]
    assert [x.name for x in program(first, second, unread, between, last, outputs=("h",)).live()] == ["h", "z"]


def test_renaming_takes_the_scan_along():
    r = state(h(t - 1) + tensor("x", t, a))
    assert r.renamed({t: s}).scan == Scan(s)
    assert program(r.renamed({t: s})).scan_axes == {"h": 0}
    assert r.xreplace({tensor("x", t, a): sp.Integer(1)}).scan == UP


# proofs and presentations leave scans as they are


def decay():
    g, x = tensor("g", t), tensor("x", t, a)
    return program(state(g * h(t - 1) + x), Statement(tensor("o", t, a), h(t) ** 2), outputs=("o",))


def test_duality_of_a_scan_is_proved_and_a_wrong_gradient_is_not():
    p = decay()
    assert prove_duality(p)
    good = adjoint(p)
    assert prove_duality(p, gradient=good)
    for name in ("dg", "dx", "dh"):
        assert not prove_duality(
            p, gradient=good.with_statements(replace(s, expr=2 * s.expr) if s.name == name else s for s in good)
        )


def test_duality_of_a_nonlinear_recurrence():
    (b,) = indices("b")
    g = Statement(tensor("g", t, a), tensor("w", a, b) * tensor("h", t - 1, b), (b,), scan=UP)
    new = Statement(h(t), sp.tanh(tensor("g", t, a) + tensor("x", t, a)), scan=UP)
    p = Program((g, new, Statement(tensor("o", t), h(t) ** 2, (a,))), {**DIMS, b: d}, ("o",))
    assert prove_duality(p)


def test_a_sum_over_earlier_steps_is_read_in_every_reading():
    """Forward substitution: x[t] = y[t] - sum over u < t of A[t, u] x[u]."""
    said = Statement(tensor("r", t), tensor("A", t, u) * tensor("x", u), (u,), where=sp.Lt(u, t), scan=UP)
    p = program(said, Statement(tensor("x", t), tensor("y", t) - tensor("r", t), scan=UP), outputs=("x",))
    found = exact.evaluate(p, {"A": [[7, 7, 7], [2, 7, 7], [3, 5, 7]], "y": [1, 1, 1]})["x"]
    assert found.tolist() == [1, 1 - 2, 1 - 3 + 5]
    assert prove_duality(p)
    with pytest.raises(ProgramError, match="sum over earlier steps only"):
        program(replace(said, where=sp.Le(u, t)), p["x"], outputs=("x",))


def test_the_equation_of_a_scan_is_no_fact_of_the_normal_form():
    p = decay()
    form = NormalForm(p)
    assert not form.equal(h(t), tensor("g", t) * h(t - 1) + tensor("x", t, a))
    assert form.equal(tensor("o", t, a), h(t) ** 2)
    assert form.equal(tensor("o", t - 1, a), h(t - 1) ** 2)


def test_a_sum_that_a_scan_defines_is_no_known_sum():
    """``r[t] = sum_a y[t-1, a]`` holds inside its range only: r is 0 beyond, the sum of the last step is not."""
    row = Statement(tensor("r", t), tensor("y", t - 1, a), (a,), scan=UP)
    fed = Statement(tensor("y", t, a), tensor("x", t, a) + tensor("r", t - 1), scan=UP)
    read = Statement(tensor("z", t), 1 / tensor("r", t + 1))
    p = program(fed, row, read, outputs=("z",))
    assert not knowing(p).equal(SumOver(tensor("y", t, a), a), tensor("r", t + 1))


def test_presentation_moves_no_scan():
    p = decay()
    gradient = adjoint(p)
    shown = present(p, gradient)
    walks = [s for s in gradient.statements[len(p) :] if s.scan is not None]
    assert walks
    assert [s for s in shown.derived if s.scan is not None] == walks
    assert shown.proved


def test_statements_are_put_in_order_around_a_scan():
    before = Statement(tensor("w", t, a), tensor("x", t, a) ** 2)
    walk = [state(h(t - 1) + tensor("k", t - 1, a)), Statement(tensor("k", t, a), h(t) * tensor("w", t, a), scan=UP)]
    after = Statement(tensor("o", t, a), tensor("k", t, a))
    assert in_order([after, *walk, before]) == (before, *walk, after)
    with pytest.raises(ProgramError, match="in a circle: w, h, k"):
        in_order([replace(before, expr=h(t)), *walk])
