from __future__ import annotations

import sympy as sp

from symattn.matching import match, match_all
from symattn.program import indices
from symattn.program import tensor as T

i, j, a, b = indices("i j a b")


def fits(x, e):
    return x in (i, j)


def all_of(pattern, e):
    return list(match(pattern, e, {}, fits))


def test_indices_of_the_pattern_are_wildcards_and_stay_consistent():
    assert all_of(T("x", i, j), T("x", a, b + 1)) == [{i: a, j: b + 1}]
    assert all_of(T("x", i, i), T("x", a, b)) == []
    assert all_of(T("x", i, i), T("x", a, a)) == [{i: a}]
    assert all_of(T("x", i), T("y", a)) == []
    assert all_of(T("x", i - 1), T("x", a - 1)) == [{i: a}]
    assert all_of(T("x", i, 0), T("x", a, 1)) == []


def test_sums_match_in_any_order_and_what_is_no_wildcard_must_be_there():
    s = T("s")
    assert {i: a} in all_of(sp.exp(T("x", i) * s + T("y", i)), sp.exp(T("y", a) + T("x", a) * s))
    assert all_of(sp.exp(T("x", i) * s), sp.exp(T("x", a) * T("t"))) == []
    n, m = sp.symbols("n m", integer=True, positive=True)
    assert {i: a, j: b} in all_of(sp.Ge(1 - i - m + n + j, 0), sp.Ge(1 - a - m + n + b, 0))
    assert all_of(sp.Ge(i - j, 0), sp.Gt(a - b, 0)) == []


def test_every_pattern_gets_a_partner_of_its_own():
    found = list(match_all([T("x", i), T("x", j)], [T("x", a), T("x", b), T("y", a)], {}, fits))
    assert [m for m, _ in found] == [{i: a, j: b}, {i: b, j: a}]
    assert list(match_all([T("x", i), T("x", i)], [T("x", a), T("x", b)], {}, fits)) == []
    assert list(match_all([], [T("x", a)], {}, fits)) == [({}, ())]


def test_signs_that_hang_on_names_do_not_hide_a_match():
    u, v, x, y = sp.symbols("u v x y", integer=True)
    fits = lambda a, z: a in (u, v) and (z is a or z in (x, y))
    for one, other in (
        (sp.Abs(u - v), sp.Abs(y - x)),
        (sp.Eq(sp.Mod(sp.Abs(v - u), 2), 0), sp.Eq(sp.Mod(sp.Abs(x - y), 2), 0)),
        (sp.Eq(u - v, 0), sp.Eq(y - x, 0)),
        (sp.Max(u - v, v - u), sp.Max(y - x, x - y)),
    ):
        assert any(m[u] == x and m[v] == y for m in match(one, other, {}, fits)), one
    assert not list(match(sp.Abs(u - v), sp.Abs(x + y), {}, fits))
    assert not list(match(sp.Eq(u - v, 0), sp.Eq(x - y, 1), {}, fits))
