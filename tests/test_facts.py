from __future__ import annotations

import sympy as sp

from symattn.conditions import Exists
from symattn.facts import knowing, opaque_names, sums, supports
from symattn.normalform import SumOver
from symattn.program import Program, Statement
from symattn.program import tensor as T
from tests.programs import ATTENTION, CASES, DIMS, attention, c, i, j, k, m, n, t

X, P = T("x", i), T("P", i, j)


def test_maxima_products_and_divisors_that_are_sums_stay_names():
    assert opaque_names(ATTENTION["plain"].program) == {"m", "l"}
    assert opaque_names(ATTENTION["sink"].program) == {"m0", "m", "l"}
    assert opaque_names(CASES["product"].program) == {"x"}
    assert opaque_names(CASES["RMS norm"].program) == {"nq"}
    assert opaque_names(CASES["sigmoid weights"].program) == set()


def test_a_divisor_that_is_a_product_is_written_out():
    p = Program(
        (
            Statement(T("l", i), T("E", i, j), (j,)),
            Statement(T("half", i), T("l", i) * 2),
            Statement(P, T("E", i, j) / T("half", i)),
        ),
        DIMS,
        ("P",),
    )
    assert opaque_names(p) == {"l"}
    assert knowing(p).equal(SumOver(P, j), sp.Rational(1, 2))


def test_sums_that_a_program_names():
    (plain,) = sums(ATTENTION["causal"].program, {"l"})
    assert (plain.pattern, plain.over, plain.where, plain.value) == (T("E", i, j), (j,), sp.Le(j, i), T("l", i))
    (sink,) = sums(ATTENTION["sink"].program, {"l", "m"})
    assert (sink.pattern, sink.value) == (T("E", i, j), T("l", i) - sp.exp(T("sink")) * sp.exp(-T("m", i)))


def test_the_facts_give_the_row_sums_of_the_weights():
    assert knowing(ATTENTION["causal"].program).equal(SumOver(P, j), sp.S.One)
    sink = knowing(ATTENTION["sink"].program)
    assert sink.equal(SumOver(P, j), 1 - sp.exp(T("sink") - T("m", i)) / T("l", i))
    assert not sink.equal(SumOver(P, j), sp.S.One)
    assert not knowing(ATTENTION["boolean mask"].program).equal(SumOver(P, j), sp.S.One)


def test_a_sum_with_a_coefficient_in_a_sum_with_a_coefficient():
    def weights(slope):
        return Program(
            (
                Statement(T("r", i), 3 * T("E", i, j), (j,)),
                Statement(T("l", i), slope * T("r", i) + T("eps")),
                Statement(P, T("E", i, j) / T("l", i)),
            ),
            DIMS,
            ("P",),
        )

    claim = (1 - T("eps") / T("l", i)) / 6
    assert knowing(weights(2)).equal(SumOver(P, j), claim)
    assert not knowing(weights(5)).equal(SumOver(P, j), claim)


def test_where_tensors_are_not_zero():
    found = supports(ATTENTION["boolean mask"].program)
    assert found["P"].conditions == (sp.Ne(T("M", i, j), 0),)
    assert [type(q) for q in found["l"].conditions] == [Exists]
    assert "O" in found and "S" in found
    causal = supports(ATTENTION["causal"].program)
    assert "l" not in causal and causal["E"].conditions == (sp.Ge(i - j, 0),)


def test_facts_know_no_names():
    p = ATTENTION["causal"].program
    table = {T("E", i, j): T("apple", i, j), T("l", i): T("pear", i), T("P", i, j): T("plum", i, j), T("m", i): T("fig", i)}
    q = p.with_statements(
        [Statement(s.target.xreplace(table), s.expr.xreplace(table), s.over, s.reduce, s.where, s.range_only) for s in p]
    )
    assert knowing(q).equal(SumOver(T("plum", i, j), j), sp.S.One)


def test_subscripts_that_the_program_reads_are_in_range():
    form = knowing(CASES["embedding look-up"].program)
    look = CASES["embedding look-up"].program["x"].expr
    assert any(a == T("tok", next(iter(CASES["embedding look-up"].program.dims))) for a, _, _ in form.ranges), look
    shift = knowing(CASES["token shift"].program)
    assert [(str(a), size, [str(q) for q in w]) for a, size, w in shift.ranges] == [("t - 1", n, ["t - 1 >= 0"])]


def test_dims_of_the_program_hold():
    form = knowing(attention())
    assert form.dims[i] == n and form.dims[j] == m and k in form.dims and c in form.dims and X not in form.dims


def test_what_a_total_is_outside_the_conditions_of_its_sum():
    one, total = sp.exp(T("sink") - T("m", i)), T("l", i)
    for inside, outside in ((sp.Ne(T("M", i), 0), sp.Eq(T("M", i), 0)), (sp.Ge(i, 1), sp.Eq(i, 0))):
        form = knowing(attention(inside, sink=True))
        assert form.equal(SumOver(one / total, i, where=outside), SumOver(sp.S.One, i, where=outside))
        assert form.equal(SumOver(total**2 / one, i, where=outside), SumOver(one, i, where=outside))
        assert not form.equal(SumOver(one / total, i, where=inside), SumOver(sp.S.One, i, where=inside))
        assert not form.equal(SumOver(one / total, i), SumOver(sp.S.One, i))
        assert not form.equal(SumOver(one / total, i, where=outside), sp.S.Zero)
        assert not form.equal(SumOver(1 / total, i, where=outside), SumOver(one, i, where=outside))
        assert not knowing(attention(sink=True)).equal(
            SumOver(one / total, i, where=outside), SumOver(sp.S.One, i, where=outside)
        )


def test_sums_over_a_distance():
    P = T("P", i, j)
    near = lambda k, x=i - j: sp.Lt(sp.Abs(x), k)
    dims = {k: n, t: m}
    form = knowing(attention(near(2), sink=True))
    total = SumOver(1 - sp.exp(T("sink") - T("m", i)) / T("l", i), i)
    assert form.equal(SumOver(P, i, j, where=near(2)), total)
    assert form.equal(SumOver(P, i, j, where=sp.Lt(sp.Max(j - i, i - j), 2)), total) is False  # true, and not seen
    assert form.equal(SumOver(P, i, j, where=near(3)), total)  # P is 0 there
    body, form = T("U", i, j), knowing(attention(dims=dims))
    right = SumOver(body, i, j, where=near(2))
    assert form.equal(SumOver(body.xreplace({i: k, j: t}), k, t, where=near(2, t - k)), right)
    for wrong in (near(3), near(1), near(2, i + j), near(2, i - 2 * j), near(2, i - j + 1), sp.Ge(sp.Abs(i - j), 2)):
        assert not form.equal(SumOver(body, i, j, where=wrong), right)
