from __future__ import annotations

import itertools

import pytest
import sympy as sp

from symattn.errors import LimitError
from symattn.program import indices, size
from symattn.program import tensor as T
from symattn.terms import Term, canonical, over_one_denominator, vanishes

i, j, k, a, b, c, d, e = indices("i j k a b c d e")
n, m = size("n"), size("m")
DIMS = {i: n, j: m, k: n, a: n, b: n, c: n, d: n, e: n}


def term(*atoms, bound=(), conditions=()):
    count: dict = {}
    for x in atoms:
        count[x] = count.get(x, 0) + 1
    return Term(sp.S.One, count, frozenset(bound), frozenset(conditions))


def renamed(t, table):
    return Term(
        t.coefficient,
        {x.xreplace(table): p for x, p in t.atoms.items()},
        frozenset(table.get(x, x) for x in t.bound),
        frozenset(q.xreplace(table) for q in t.conditions),
    )


CHAIN = term(T("A", a, b), T("A", b, c), T("A", c, d), bound=(a, b, c, d))
CYCLE = term(T("A", a, b), T("A", b, c), T("A", c, a), bound=(a, b, c))
TWO = term(T("A", a, b), T("A", b, a), T("x", c), bound=(a, b, c))
SQUARE = term(T("x", a), T("x", b), T("x", c), T("x", d), bound=(a, b, c, d))
MASKED = term(T("x", a), T("x", b), T("y", i), bound=(a, b), conditions=(sp.Ge(a - b, 0), sp.Ge(i - a, 0)))
BARE = term(a, b, sp.exp(T("x", a) * T("x", b)), bound=(a, b))


@pytest.mark.parametrize("t", [CHAIN, CYCLE, TWO, SQUARE, MASKED, BARE])
def test_the_name_does_not_depend_on_the_names_of_bound_indices(t):
    xs = sorted(t.bound, key=str)
    want = canonical(t, DIMS)
    for perm in itertools.permutations([a, b, c, d, e, k], len(xs)):
        assert canonical(renamed(t, dict(zip(xs, perm, strict=True))), DIMS) == want


def test_different_terms_have_different_names():
    reverse = term(T("A", b, a), T("A", b, c), T("A", c, d), bound=(a, b, c, d))
    free = term(T("A", a, b), T("A", b, c), T("A", c, d), bound=(a, b, c))
    other = term(T("x", a), T("x", b), T("y", i), bound=(a, b), conditions=(sp.Ge(a - b, 0), sp.Ge(i - b, 0)))
    longer = term(*SQUARE.atoms, T("x", e), bound=(a, b, c, d, e))
    six = term(*[T("A", *p) for p in ((a, b), (b, c), (c, a), (d, e), (e, k), (k, d))], bound=(a, b, c, d, e, k))
    hexagon = term(*[T("A", *p) for p in ((a, b), (b, c), (c, d), (d, e), (e, k), (k, a))], bound=(a, b, c, d, e, k))
    every = [CHAIN, CYCLE, TWO, SQUARE, MASKED, BARE, reverse, free, other, longer, six, hexagon]
    assert len({canonical(t, DIMS) for t in every}) == len(every)


def test_only_indices_of_one_dimension_are_exchanged():
    assert canonical(term(T("x", a), bound=(a,)), DIMS) == canonical(term(T("x", k), bound=(k,)), DIMS)
    assert canonical(term(T("x", a), bound=(a,)), DIMS) != canonical(term(T("x", j), bound=(j,)), DIMS)


def test_equal_factors_cost_nothing_and_hopeless_symmetry_is_refused():
    many = indices(" ".join(f"z{q}" for q in range(12)))
    dims = dict.fromkeys(many, n)
    assert canonical(term(*[T("x", z) for z in many], bound=many), dims).count("x[") == 12
    with pytest.raises(LimitError, match="too symmetric"):
        canonical(term(*[T("A", y, z) for y in many[:6] for z in many[6:]], bound=many), dims)


def test_a_sum_over_one_denominator():
    x, y = T("x", i), T("y")
    assert over_one_denominator(1 + x / y) == (1, x + y, y)
    assert over_one_denominator(-2 * x - 4 * y) == (-2, x + 2 * y, 1)
    assert over_one_denominator(1 + sp.exp(-x)) == (1, 1 + sp.exp(-x), 1)
    for e in (x / 3 + y / 2 - 1 / (x * y), -x + sp.tanh(x) / y**2):
        number, above, below = over_one_denominator(e)
        assert sp.cancel(number * above / below - e) == 0


def test_coefficients_that_are_zero():
    root = sp.sqrt(n)
    assert vanishes(root * root - n) and vanishes(1 / (n + 1) + n / (n + 1) - 1)
    assert not vanishes(n - m) and not vanishes(sp.log(2) - 1) and not vanishes(root - 1)
