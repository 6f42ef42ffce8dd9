from __future__ import annotations

import itertools

import pytest
import sympy as sp

from symattn.conditions import Exists, normal_condition, normal_conditions, serial, strongest
from symattn.program import indices, size
from symattn.program import tensor as T
from tests.tiny import holds

i, j, k = indices("i j k")
n, m = size("n"), size("m")
DIMS = {i: n, j: m, k: n}

CONDITIONS = [
    sp.Le(j, i),
    sp.Lt(j, i),
    sp.Ge(j, i),
    sp.Gt(j, i),
    sp.Eq(i, j),
    sp.Ne(i, j - 1),
    sp.Le(j, i + m - n),
    sp.Lt(i - j, 2),
    sp.Ge(i, 0),
    sp.Lt(i, n),
    sp.Lt(i, n - 1),
    sp.Ge(i + j, n + m - 1),
    sp.Le(j, m - 1),
    sp.Eq(sp.floor(j / 2), i),
    sp.Gt(2 * i - j, -m),
    sp.Le(k - i, n - 1),
]


@pytest.mark.parametrize("c", CONDITIONS, ids=str)
def test_the_normal_shape_holds_at_the_same_points_for_all_small_sizes(c):
    q = normal_condition(c, DIMS)
    for a, b in itertools.product(range(1, 5), repeat=2):
        for x, y, z in itertools.product(range(a), range(b), range(a)):
            point = {i: x, j: y, k: z, n: a, m: b}
            assert holds(q, point, {}) == holds(c, point, {}), (q, point)


def test_what_the_ranges_decide():
    assert normal_condition(sp.Ge(i, 0), DIMS) == sp.true
    assert normal_condition(sp.Lt(j, m), DIMS) == sp.true
    assert normal_condition(sp.Ge(i + j, n + m - 1), DIMS) == sp.false
    assert normal_condition(sp.Lt(i, m), DIMS) == sp.Ge(m - i - 1, 0)  # sizes differ: not decided
    assert normal_conditions(sp.And(sp.Le(j, i), sp.Gt(0, i)), DIMS) is None
    assert normal_conditions(sp.true, DIMS) == frozenset()


def test_comparisons_of_tensors_are_real_and_masks_stay():
    z = T("z", i), T("z", j)
    assert normal_condition(sp.Gt(*z), DIMS) == sp.Gt(z[0] - z[1], 0)
    assert normal_condition(sp.Lt(*z), DIMS) == sp.Gt(z[1] - z[0], 0)
    for c in (sp.Ne(T("B", i, j), -sp.oo), sp.Gt(T("B", i, j), -sp.oo), sp.Eq(T("doc", i), T("doc", j))):
        assert normal_condition(c, DIMS) == c


def test_existence_is_decided_where_the_first_index_will_do_and_has_no_bound_names():
    causal = Exists.over([sp.Ge(i - j, 0)], {j: m})
    assert normal_condition(causal, DIMS | dict.fromkeys(causal.indices, m)) == sp.true
    shifted = Exists.over([sp.Ge(i - j - 1, 0)], {j: m})
    assert isinstance(normal_condition(shifted, DIMS | dict.fromkeys(shifted.indices, m)), Exists)
    assert causal.free_symbols == {i}
    a, b = (Exists.over([sp.Ne(T("M", i, x), 0)], {x: m}) for x in (j, k))
    assert serial(a) == serial(b)
    assert serial(shifted) != serial(Exists.over([sp.Ge(i - j - 1, 0)], {j: n}))  # among fewer or more values
    assert serial(a) != serial(Exists.over([sp.Ne(T("M", j, i), 0)], {j: m}))


def test_serial_is_blind_to_order_and_nothing_else():
    x = T("x", i)
    assert serial(x + T("y", i)) == serial(T("y", i) + x)
    assert serial(sp.Eq(i - j, 0)) == serial(sp.Eq(j - i, 0)) != serial(sp.Eq(i + j, 0))
    distinct = [x, T("x", j), T("x"), sp.tanh(x), 2 * x, x**2, i, n, size("i"), sp.Ge(i - j, 0), sp.Ge(j - i, 0), T("x", i, j)]
    assert len({serial(e) for e in distinct}) == len(distinct)


def test_the_strongest_of_conditions_that_differ_by_a_number():
    found = strongest(frozenset({sp.Ge(i - j, 0), sp.Ge(i - j + 3, 0), sp.Ge(j - i + 1, 0), sp.Gt(i - j, 0)}))
    assert found == {sp.Ge(i - j, 0), sp.Ge(j - i + 1, 0), sp.Gt(i - j, 0)}


def test_absolute_values_of_opposite_differences_are_one():
    u, v = sp.symbols("u v", integer=True)
    for names in ({u: "1", v: "2"}, {u: "2", v: "1"}, {}):
        assert serial(sp.Abs(u - v, evaluate=False), names) == serial(sp.Abs(v - u, evaluate=False), names)
    assert serial(sp.Abs(u - v), {u: "1", v: "2"}) != serial(sp.Abs(u + v), {u: "1", v: "2"})
    assert serial(sp.Abs(u - 2 * v), {u: "1", v: "2"}) != serial(sp.Abs(v - 2 * u), {u: "1", v: "2"})
