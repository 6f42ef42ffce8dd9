"""Tiles hit every value of an index once, and sums over tiles are sums over the index, in exact numbers."""

import numpy as np
import pytest
import sympy as sp

from symattn.definition import Definition
from symattn.errors import ProgramError
from symattn.forms.algorithms import tiles_for
from symattn.indexed import indices, size, tensor
from symattn.program import Program, Statement
from symattn.readings import exact
from symattn.tiling import Tiles, one_to_one, tiled

i, j, k, t, r = indices("i j k t r")
n, m = size("n"), size("m")


@pytest.mark.parametrize("block", range(1, 9))
def test_every_value_is_hit_once(block):
    """Division with remainder, for all lengths up to 12: the fact that proofs about tiles rest on."""
    for length in range(1, 13):
        count = int(Tiles.count(sp.Integer(length), block))
        tiles = Tiles.of(j, t, r, block, m)
        assert one_to_one(tiles, length, {m: length}, count)
        assert count == 1 or not one_to_one(tiles, length, {m: length}, count - 1)
        for value in range(length):
            place = tuple(int(a.xreplace({j: sp.Integer(value)})) for a in tiles.tile_of(j))
            assert place == divmod(value, block)


@pytest.mark.parametrize("own", range(5))
def test_tiles_in_another_order_are_hit_once_too(own):
    for length in (5, 8, 9):
        count = int(Tiles.count(sp.Integer(length), 2))
        turned = Tiles.of(j, t, r, 2, m, sp.Mod(own - t, count))
        assert one_to_one(turned, length, {m: length}, count)
        assert not one_to_one(Tiles.of(j, t, r, 2, m, 0 * t), length, {m: length}, count)


def test_a_sum_over_tiles_is_the_sum():
    rows = Statement(tensor("E", i, j), tensor("x", i, j) ** 2, where=sp.Le(j, i + 1))
    total = Statement(tensor("l", i), tensor("E", i, j) * tensor("v", j), (j,), where=sp.Le(j, i + 1))
    back = Statement(tensor("g", j), tensor("E", i, j), (i,), where=sp.Le(j, i + 1))
    whole = Program((rows, total, back), {i: n, j: m}, ("l", "g"))
    tiles = Tiles.of(j, t, r, 3, m)
    cut = [tiled(s, tiles, {"E": 1}) for s in whole]
    own = Program(cut, {i: n, t: Tiles.count(m, 3), r: 3}, ("l", "g"), {"x": (n, m), "v": (m,)})
    x = {"x": np.arange(10).reshape(2, 5), "v": [1, -2, 3, -4, 5]}
    a, b = exact.evaluate(whole, x), exact.evaluate(own, x)
    assert a["l"].tolist() == b["l"].tolist()
    assert a["g"].tolist() == b["g"].ravel().tolist()[:5] and b["g"][1, 2] == 0


def test_another_bound_index_may_be_the_one_that_is_cut():
    s = Statement(tensor("g", j), tensor("E", i, k), (i, k), where=sp.Lt(k, j))
    assert str(tiled(s, Tiles.of(j, t, r, 2, m), {"E": 1})) == (
        "g[j] = sum over i, t, r of E[i, t, r]   where r + 2*t < j and r + 2*t < m"
    )


def test_a_neighbour_has_no_tile():
    s = Statement(tensor("Y", i, j), tensor("E", i, j - 1), where=sp.Ge(j, 1))
    with pytest.raises(ProgramError, match="another position"):
        tiled(s, Tiles.of(j, t, r, 2, m), {"E": 1})


def test_tiles_of_definitions():
    assert tiles_for(Definition(algorithm="online")).places == ()
    assert tiles_for(Definition(algorithm="online", block=3)).position == 3 * t + r
    assert "shard" in str(tiles_for(Definition(algorithm="ring")).position)
