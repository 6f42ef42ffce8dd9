"""Each rule by itself: what it does to one term, and where it keeps its hands off."""

from __future__ import annotations

import sympy as sp

from symattn.conditions import Exists
from symattn.normalform import Contraction, NormalForm, Support
from symattn.program import indices, size
from symattn.program import tensor as T
from symattn.reduction import Reduction
from symattn.terms import Term

i, j, k, a, b = indices("i j k a b")
n, m = size("n"), size("m")
DIMS = {i: n, k: n, j: m, a: n, b: m}
X, W = T("x", b), sp.Ne(T("M", i, b), 0)


def step(t, split=False, **options):
    return Reduction(NormalForm((), DIMS, **options)).step(t, split)


def term(atoms, bound=(), conditions=(), coefficient=1):
    return Term(sp.sympify(coefficient), dict(atoms), frozenset(bound), frozenset(conditions))


def test_a_term_that_no_rule_fits_is_left_alone():
    assert step(term({X: 1}, [b], [W])) is None


def test_conditions():
    assert step(term({X: 1}, [b], [sp.false])) == []
    (t,) = step(term({X: 1}, [b], [sp.Ge(i - b, 0), sp.Ge(i - b + 1, 0)]))
    assert t.conditions == {sp.Ge(i - b, 0)}
    some = Exists.over([sp.Ne(T("M", i, j), 0)], {j: m})
    (t,) = step(term({X: 1}, [b], [W, some]))
    assert t.conditions == {W}
    assert step(term({X: 1}, [b], [sp.Ne(T("M", k, b), 0), some])) is None  # another row
    assert step(term({T("x", a): 1}, [a], [sp.Ne(T("M", i, a), 0), some])) is None  # an index of another size


def test_an_equality_removes_a_bound_index_of_the_same_size_only():
    (t,) = step(term({T("x", a): 1}, [a], [sp.Eq(a - i, 0)]))
    assert (t.atoms, t.bound, t.conditions) == ({T("x", i): 1}, frozenset(), frozenset())
    assert step(term({X: 1}, [b], [sp.Eq(b - i, 0)])) is None
    assert step(term({T("x", a): 1}, [a], [sp.Eq(a - i - 1, 0)])) is None
    (t,) = step(term({T("x", a): 1}, [a], [sp.Eq(a, 0)]))
    assert t.atoms == {T("x", 0): 1}


def test_an_index_that_occurs_nowhere_is_its_size():
    (t,) = step(term({T("x", i): 1}, [b]))
    assert (t.coefficient, t.bound) == (m, frozenset())


def test_a_known_sum_needs_its_factors_its_condition_and_an_index_that_is_free_of_others():
    fact = Contraction(T("P", k, j), j, sp.Ne(T("M", k, j), 0), T("r", k))
    P = T("P", i, b)
    (t,) = step(term({P: 1}, [b], [W]), contract=[fact])
    assert (t.atoms, t.bound, t.conditions) == ({T("r", i): 1}, frozenset(), frozenset())
    assert step(term({P: 1, X: 1}, [b], [W]), contract=[fact]) is None
    assert step(term({P: 2}, [b], [W]), contract=[fact]) is None
    assert step(term({P: 1}, [b]), contract=[fact]) is None
    assert step(term({P: 1}, [b], [W, sp.Ge(i - b, 0)]), contract=[fact]) is None
    assert step(term({P: 1}, [], [W]), contract=[fact]) is None


def test_a_known_sum_over_nothing_is_said_where_a_divisor_would_be_zero():
    fact = Contraction(T("P", k, j), j, sp.Ne(T("M", k, j), 0), T("r", k))
    some = Exists.over([sp.Ne(T("M", k, j), 0)], {j: m})
    t = term({T("P", i, b): 1, T("l", i): -1}, [b], [W])
    (plain,) = step(t, contract=[fact])
    assert plain.conditions == frozenset()
    (guarded,) = step(t, contract=[fact], support={"l": Support((k,), (some,))})
    assert [type(q) for q in guarded.conditions] == [Exists]


def test_the_first_summand_of_a_divisor():
    u = T("p") + T("q")
    found = step(term({T("q"): 1, u: -1}))
    assert [(t.coefficient, t.atoms) for t in found] == [(1, {}), (-1, {T("p"): 1, u: -1})]
    assert step(term({T("p"): 1, u: -1})) is None  # one summand of the two is rewritten, always the same
    assert step(term({T("r"): 1, u: -1})) is None


def test_conditions_are_taken_apart_only_when_asked():
    t = term({X: 1}, [b], [W])
    assert step(t) is None
    one, other = step(t, split=True)
    assert (one.coefficient, one.conditions) == (1, frozenset())
    assert (other.coefficient, other.conditions) == (-1, {sp.Eq(T("M", i, b), 0)})
    strict = step(term({X: 1}, [b], [sp.Ge(i - b - 1, 0)]), split=True)
    assert [(t.coefficient, t.conditions) for t in strict] == [(1, frozenset()), (-1, {sp.Ge(b - i, 0)})]
