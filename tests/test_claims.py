from __future__ import annotations

from dataclasses import replace

import pytest
import sympy as sp

from symattn.claims import prove_range_only
from symattn.errors import ProofError
from symattn.program import Program, Statement
from symattn.program import tensor as T
from tests.programs import ATTENTION, DIMS, OTHER, attention, e, i, j, k, m, n

ROW = sp.Ne(T("M", i, j), 0)
QUERY = sp.Ne(T("M", i), 0)


def uniform() -> Program:
    """A row without keys attends to all of them equally."""
    base = list(attention(ROW))
    return Program(
        [
            *base[:-1],
            replace(base[-1], target=T("O0", i, e)),
            Statement(T("cnt", i), sp.S.One, (j,), where=ROW),
            Statement(T("U", i, e), T("V", j, e) / m, (j,), where=sp.Eq(T("cnt", i), 0)),
            Statement(T("O", i, e), T("O0", i, e) + T("U", i, e)),
        ],
        DIMS,
        ("O",),
    )


@pytest.mark.parametrize("name", ATTENTION)
def test_row_maxima_are_proved(name):
    prove_range_only(ATTENTION[name].program)


@pytest.mark.parametrize(
    "program",
    [
        uniform(),
        attention(ROW, lse="e"),
        attention(ROW, lse=2),
        attention(sink=True, lse="e"),
        attention(ROW, sink=True, grouped=True, lse=2),
        attention(sp.And(sp.Le(j, i + m - n), sp.Or(sp.Lt(i - j, 4), ROW)), lse="e"),
        attention(score=lambda s, q: s + T("bias", i, j), sink=True),
        attention(sp.And(sp.Le(i - j, 3), sp.Le(j, i + m - n), sp.Le(j, i + m - n + 1)), lse="e"),
        attention(QUERY, sink=True, lse="e"),
        attention(sp.Eq(T("M", i), 0), sink=True, lse=2),
        attention(sp.And(sp.Ge(i, 1), sp.Le(j, i)), sink=True, lse="e"),
        attention(sp.Or(sp.Eq(i, 0), sp.Eq(T("M", i), 0)), sink=True, lse="e"),
        # where the sum has no key the sink alone is divided by, and that is as homogeneous
        attention(sink=True).with_statements([replace(s, where=QUERY) if s.name == "r" else s for s in attention(sink=True)]),
        attention(sp.Lt(sp.Abs(i - j), 2), sink=True, lse="e"),
        attention(sp.Ge(sp.Max(i - j, j - i), 2), lse="e"),
    ],
)
def test_more_of_them(program):
    prove_range_only(program)


def with_lse(expr, **options):
    return attention(after=(Statement(T("L", i), expr),), outputs=("O", "L"), **options)


def damaged(program, name, change):
    """The program with the expression of one statement changed."""
    return program.with_statements([replace(s, expr=change(s.expr)) if s.name == name else s for s in program])


WRONG = {
    "log-sum-exp without the maximum": with_lse(sp.log(T("l", i))),
    "the maximum added twice": with_lse(2 * T("m", i) + sp.log(T("l", i))),
    "the maximum subtracted": with_lse(sp.log(T("l", i)) - T("m", i)),
    "the maximum without base 2": with_lse(T("m", i) + sp.log(T("l", i)) / sp.log(2)),
    "masked, without the maximum": with_lse(sp.log(T("l", i)), where=ROW),
    "a sink that does not see the maximum": damaged(attention(sink=True), "l", lambda x: T("r", i) + sp.exp(T("sink"))),
    "a query's mask, a sink that does not see the maximum": damaged(
        attention(QUERY, sink=True), "l", lambda x: T("r", i) + sp.exp(T("sink"))
    ),
    "a query's mask and a sink, log-sum-exp without the maximum": with_lse(sp.log(T("l", i)), where=QUERY, sink=True),
    "a query's mask and a sink, weights divided twice": damaged(
        attention(QUERY, sink=True), "P", lambda x: T("E", i, j) / T("l", i) ** 2
    ),
    "a query's mask that the sum alone has, weights without division": damaged(
        attention(sink=True).with_statements([replace(q, where=QUERY) if q.name == "r" else q for q in attention(sink=True)]),
        "P",
        lambda x: T("E", i, j),
    ),
    "a query's mask, and a sum that is 1 outside it": damaged(attention(QUERY, sink=True, lse="e"), "l", lambda x: T("r", i) + 1),
    "weights without division": damaged(attention(), "P", lambda x: T("E", i, j)),
    "weights divided twice": damaged(attention(), "P", lambda x: T("E", i, j) / T("l", i) ** 2),
    "an extra term in the divisor": damaged(attention(), "P", lambda x: T("E", i, j) / (T("l", i) + 1)),
    "another mask in the sum": attention(sp.Le(j, i)).with_statements(
        [replace(s, where=sp.Lt(j, i)) if s.name == "l" else s for s in attention(sp.Le(j, i))]
    ),
    "another row's maximum": Program(
        [replace(s, expr=sp.exp(T("S", i, j) - T("m", 0))) if s.name == "E" else s for s in attention(sp.Le(j, i))], DIMS, ("O",)
    ),
    "the maximum itself is an output": attention(outputs=("O", "m")),
    "linear attention": Program(
        [replace(s, range_only=True) if s.name == "l" else s for s in OTHER["linear with normaliser"].program], DIMS, ("O",)
    ),
    "a condition reads it": attention(
        after=(Statement(T("Y", i, j), T("S", i, j), where=sp.Gt(T("E", i, j), sp.Rational(1, 2))),), outputs=("O", "Y")
    ),
    "a step function of it": attention(after=(Statement(T("Y", i), sp.floor(T("m", i))),), outputs=("O", "Y")),
    "a maximum of it": attention(after=(Statement(T("Y", i), T("m", k), (k,), "max"),), outputs=("O", "Y"), dims={k: n}),
}


@pytest.mark.parametrize("name", sorted(set(WRONG) - {"another row's maximum"}))
def test_wrong_claims_are_refused(name):
    with pytest.raises(ProofError, match="range_only"):
        prove_range_only(WRONG[name])


def test_any_number_constant_along_the_row_will_do_for_a_maximum():
    prove_range_only(WRONG["another row's maximum"])


def test_the_message_names_the_tensor():
    with pytest.raises(ProofError, match=r"^m is range_only"):
        prove_range_only(WRONG["weights divided twice"])


def test_without_claims_there_is_nothing_to_prove():
    prove_range_only(OTHER["product"].program)


def test_the_message_says_what_to_do_about_conditions():
    where = sp.Or(sp.Lt(sp.Abs(i - j), 2), sp.Eq(j, 0))
    with pytest.raises(
        ProofError, match=r"^m is range_only.*the condition .*Abs\(i - j\) < 2.* give the mask as a boolean array"
    ):
        prove_range_only(with_lse(sp.log(T("l", i)), where=where))
