from __future__ import annotations

import sympy as sp

from symattn.conditions import serial
from symattn.normalform import Contraction, SumOver
from symattn.program import indices, size
from symattn.program import tensor as T

i, j, k = indices("i j k")
n = size("n")


def test_a_sum_rebuilds_itself_and_hides_its_indices():
    s = SumOver(T("x", i) * T("y", j), i, where=sp.Le(i, j))
    assert s.func(*s.args) == s and (s.over, s.where) == ((i,), sp.Le(i, j))
    assert j in s.free_symbols and i not in s.free_symbols
    moved = s.xreplace({j: k})
    assert isinstance(moved, SumOver) and moved.where == sp.Le(i, k) and moved.over == (i,)


def test_sums_that_differ_in_the_name_of_the_index_only_have_one_serial():
    a, b = SumOver(T("x", i), i), SumOver(T("x", k), k)
    assert a != b and serial(a) == serial(b) != serial(SumOver(T("x", i), i, where=sp.Le(i, 2)))
    assert serial(a.over_new({i: j}, [n])) != serial(a.over_new({i: j}, [n + 1]))


def test_a_contraction_takes_one_index_or_several():
    assert Contraction(T("x", i), i, sp.true, T("s")).over == (i,)
    assert Contraction(T("x", i, j), (i, j), sp.true, T("s")).over == (i, j)
