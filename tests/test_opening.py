"""Sums whose subscripts are shifted against each other are the same sum, and others are not."""

from __future__ import annotations

import pytest
import sympy as sp

from symattn.indexed import indices, size
from symattn.indexed import tensor as T
from symattn.normalform import NormalForm, SumOver
from symattn.program import Statement

t, s, u, i = indices("t s u i")
n, d = size("n"), size("d")
# plain reads, which say how long each axis is
KNOWN = [Statement(T("one", t), T("x", t) * T("y", t) * T("z", t)), Statement(T("two", s), T("v", s) * T("w", s))]


def equal(left: sp.Expr, right: sp.Expr) -> bool:
    return NormalForm(KNOWN, {t: n, u: n, i: n, s: d}, opaque=("one", "two")).equal(left, right)


def total(body: sp.Expr, *where: sp.Basic, over: sp.Symbol = t) -> sp.Expr:
    return SumOver(body, over, where=sp.And(*where))


x, y, z = (lambda a, name=name: T(name, a) for name in "xyz")
v, w = (lambda a, name=name: T(name, a) for name in "vw")
EQUAL = {
    "by one": (total(x(t) * y(t - 1), t >= 1), total(x(t + 1) * y(t), t <= n - 2)),
    "by half of the size": (total(v(s) * w(s + d / 2), s < d / 2, over=s), total(v(s - d / 2) * w(s), s >= d / 2, over=s)),
    "even and odd": (
        total(v(s) * w(s + 1), sp.Eq(sp.Mod(s, 2), 0), s <= d - 2, over=s),
        total(v(s - 1) * w(s), sp.Eq(sp.Mod(s, 2), 1), s >= 1, over=s),
    ),
    "three of them": (
        total(x(t - 1) * y(t + 1) * z(t), t >= 1, t <= n - 2),
        total(x(t) * y(t + 2) * z(t + 1), t <= n - 3),
    ),
    "none at its place": (total(x(t + 1) * y(t + 2), t <= n - 3), total(x(t) * y(t + 1), t >= 1, t <= n - 2)),
    "backwards": (total(x(t) * y(n - 1 - t)), total(x(n - 1 - t) * y(t))),
    "under a power": (total(x(t) / y(t - 1), t >= 1), total(x(t + 1) / y(t), t <= n - 2)),
    "under a function": (total(sp.exp(x(t - 1)) * y(t), t >= 1), total(sp.exp(x(t)) * y(t + 1), t <= n - 2)),
    "under a condition of its own": (
        total(x(t) * y(t - 1), t >= 1, t <= i),
        total(x(t + 1) * y(t), t <= n - 2, t <= i - 1),
    ),
}
UNEQUAL = {
    "by one the other way": (total(x(t) * y(t - 1), t >= 1), total(x(t) * y(t + 1), t <= n - 2)),
    "one term more": (total(x(t) * y(t - 1), t >= 1), total(x(t + 1) * y(t), t <= n - 3)),
    "one term less": (total(x(t) * y(t - 1), t >= 2), total(x(t + 1) * y(t), t <= n - 2)),
    "by two": (total(x(t) * y(t - 2), t >= 2), total(x(t + 1) * y(t), t <= n - 2)),
    "the other half": (total(v(s) * w(s + d / 2), s < d / 2, over=s), total(w(s - d / 2) * v(s), s >= d / 2, over=s)),
    "odd and even": (
        total(v(s) * w(s + 1), sp.Eq(sp.Mod(s, 2), 0), s <= d - 2, over=s),
        total(v(s - 1) * w(s), sp.Eq(sp.Mod(s, 2), 0), s >= 1, over=s),
    ),
    "an end of the range": (total(x(t + 1) * y(t + 2), t <= n - 3), total(x(t) * y(t + 1), t <= n - 2)),
    "another function": (total(sp.exp(x(t - 1)) * y(t), t >= 1), total(sp.exp(x(t)) * y(t), t <= n - 2)),
    "another condition": (
        total(x(t) * y(t - 1), t >= 1, t <= i),
        total(x(t + 1) * y(t), t <= n - 2, t <= i),
    ),
}


@pytest.mark.parametrize("name", EQUAL)
def test_shifted_sums_are_proved_equal(name):
    assert equal(*EQUAL[name])


@pytest.mark.parametrize("name", UNEQUAL)
def test_other_sums_are_not(name):
    assert not equal(*UNEQUAL[name])


@pytest.mark.parametrize("name", [*EQUAL, *UNEQUAL])
def test_small_sizes_agree_with_what_is_proved(name):
    """The statements of this file hold, and do not, with a number for every entry."""
    left, right = (EQUAL | UNEQUAL)[name]

    def value(e: SumOver) -> sp.Expr:
        out = sp.S.Zero
        (a,) = e.over
        for k in range(6):
            at = {a: sp.Integer(k), n: sp.Integer(6), d: sp.Integer(6), i: sp.Integer(4)}
            if e.where.xreplace(at) == sp.true:
                out += e.body.xreplace(at)
        return out

    assert (sp.expand(value(left) - value(right)) == 0) == (name in EQUAL)
