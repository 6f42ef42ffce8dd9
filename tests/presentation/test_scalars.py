"""Scalar algebra: the shortest shape is an equal one, and is the one a reader expects."""

from __future__ import annotations

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from symattn.presentation.scalars import coefficient, factors, matches, renaming, replace_reads, tidy
from symattn.program import Statement, indices
from symattn.program import tensor as T

i, j, k = indices("i j k")
P, a, D, cap = T("P", i, j), T("a", i, j), T("D", i), T("cap")
total = T("l", i)


@pytest.mark.parametrize(
    ("long", "short"),
    [
        (P * total * (a / total - D / total), "(-D[i] + a[i, j])*P[i, j]"),
        (-(i - j) * a, "(-i + j)*a[i, j]"),
        (a * (1 - P**2 / cap**2), "(1 - P[i, j]**2/cap**2)*a[i, j]"),
        (cap * (a / cap - D / cap), "-D[i] + a[i, j]"),
        (sp.exp(a) * 2 / 2, "exp(a[i, j])"),
        (-D, "-D[i]"),
        (P, "P[i, j]"),
        (1 / (1 + sp.exp(-D)) + D * sp.exp(-D) / (1 + sp.exp(-D)) ** 2, "(1 + exp(-D[i])*D[i] + exp(-D[i]))/(1 + exp(-D[i]))**2"),
        (D * sp.exp(a) - D, "(exp(a[i, j]) - 1)*D[i]"),
    ],
)
def test_tidy(long: sp.Expr, short: str) -> None:
    assert str(tidy(long)) == short


_leaf = st.sampled_from([P, a, D, cap, total, i, sp.Integer(2), sp.Rational(-1, 3), sp.tanh(a)])
_tree = st.recursive(
    _leaf,
    lambda x: (
        st.builds(lambda u, v: u + v, x, x) | st.builds(lambda u, v: u * v, x, x) | st.builds(lambda u: u / (1 + cap**2), x)
    ),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(_tree)
def test_tidy_gives_an_equal_expression_that_is_no_longer(e: sp.Expr) -> None:
    t = tidy(e)
    assert sp.cancel(sp.expand(t - e)) == 0
    assert t.count_ops() <= e.count_ops()


def test_replace_reads_renames_each_read_by_itself() -> None:
    e = T("x", i) * T("x", j) + T("y", i)
    assert replace_reads(e, T("x", k), T("z", k) + k) == (T("z", i) + i) * (T("z", j) + j) + T("y", i)
    assert replace_reads(e, T("w", k), P) == e
    assert replace_reads(cap * 2, cap, a) == 2 * a


def test_renaming() -> None:
    assert renaming(T("x", i, j), T("x", j, k)) == {i: j, j: k}
    assert renaming(T("x", i), T("y", i)) is None and renaming(T("x", i), T("x", i, j)) is None


def test_matches_up_to_renaming_only() -> None:
    s = Statement(P, cap * sp.tanh(T("S", i, j) / cap))
    head = sp.tanh(T("S", i, j) / cap)
    found = list(matches(head, s, sp.tanh(T("S", j, k) / cap) + sp.tanh(T("S", i, k)) + sp.tanh(a)))
    assert [(g, t[i], t[j]) for g, t in found] == [(sp.tanh(T("S", j, k) / cap), j, k)]


def test_parts_of_a_product() -> None:
    assert factors(-2 * P * D) in ((P, D), (D, P)) and coefficient(-2 * P * D) == -2
    assert factors(sp.Integer(3)) == () and coefficient(P) == 1
