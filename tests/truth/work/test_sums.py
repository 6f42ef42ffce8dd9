"""Sums in a tree of fixed shape: the same bits in any order, nothing twice, nothing lost, and always enclosed."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from symattn.errors import ProgramError
from symattn.readings.balls import precision
from symattn.truth.values import Balls, Floats, Objects, Scaled, Values, object_array
from symattn.truth.work.sums import Part, Sum, Tree, combined, placed


def text(a: Any, b: Any) -> str:
    return f"({a} {b})"


def nodes_of_runs(cuts: list[int], leaves: int) -> list[tuple[Any, str]]:
    """The nodes that items make whose blocks are the runs between some cuts."""
    found = []
    for start, stop in itertools.pairwise([0, *cuts, leaves]):
        tree = Tree(leaves, text)
        for k in range(start, stop):
            tree.put((0, k), str(k))
        found += tree.nodes.items()
    return found


@given(st.integers(1, 40), st.data())
def test_any_runs_in_any_order_make_the_same_tree(leaves: int, data: st.DataObject) -> None:
    plain = Tree(leaves, text)
    for k in range(leaves):
        plain.put((0, k), str(k))
    cuts = sorted(data.draw(st.sets(st.integers(1, leaves - 1) if leaves > 1 else st.nothing())))
    tree = Tree(leaves, text)
    for node, value in data.draw(st.permutations(nodes_of_runs(cuts, leaves))):
        tree.put(node, value)
    assert tree.root() == plain.root()


def test_a_run_is_a_few_nodes() -> None:
    assert len(nodes_of_runs([], 1000)) == 1
    assert len(nodes_of_runs([3, 701], 1000)) < 30


@pytest.mark.parametrize("node", [(0, 2), (1, 1), (2, 0)])
def test_a_leaf_that_comes_twice_is_refused(node: tuple[int, int]) -> None:
    tree = Tree(4, text)
    tree.put((0, 2), "2")
    with pytest.raises(ProgramError, match="twice"):
        tree.put(node, "again")


def test_a_lost_leaf_is_told() -> None:
    tree = Tree(3, text)
    tree.put((1, 0), "ab")
    with pytest.raises(ProgramError, match="1 of 3 blocks of a sum are missing"):
        tree.root()
    with pytest.raises(ProgramError, match="none of its own"):
        tree.put((0, 3), "d")


numbers = st.floats(allow_nan=False, allow_infinity=False)
radii = st.floats(min_value=0, max_value=1e300)


@example(0.0, 4.2e-257, 0.0, 4.2e-257, "prod", 1, 1)  # a product of radii below the least float64
@example(5e-324, 0.4, 0.4, 5e-324, "prod", 1, 1)
@settings(max_examples=300)
@given(
    numbers, radii, numbers, radii, st.sampled_from(["sum", "max", "prod"]), st.sampled_from([-1, 1]), st.sampled_from([-1, 1])
)
def test_float64_parts_are_enclosed(a: float, r: float, b: float, s: float, reduce: Any, up: int, side: int) -> None:
    one, two = (Part(Floats(np.array([m]), np.array([w])), (0,)) for m, w in ((a, r), (b, s)))
    got = combined(one, two, reduce, 53).values
    x, y = Fraction(a) + up * Fraction(r), Fraction(b) + side * Fraction(s)
    exact = {"sum": x + y, "max": max(x, y), "prod": x * y}[reduce]
    (mid,), (rad,) = got.exact()
    assert rad == math.inf or abs(mid - exact) <= rad


def test_a_radius_that_is_halved_would_be_seen() -> None:
    got = combined(*(Part(Floats(np.array([m]), np.array([0.0])), (0,)) for m in (1.0, 2.0**-60)), "sum", 53).values
    assert Fraction(float(got.rad[0])) / 2 < Fraction(2) ** -60 <= Fraction(float(got.rad[0]))


def test_exact_sums_stay_exact() -> None:
    got = combined(*(Part(Floats(np.array([m]), np.array([0.0])), (0,)) for m in (1.0, 0.5)), "sum", 53).values
    assert got.mid.tolist() == [1.5] and got.rad.tolist() == [0.0]


SPECIAL = [math.nan, math.inf, -math.inf, 2.0, 0.0]


@pytest.mark.parametrize("reduce", ["sum", "prod", "max"])
def test_special_values_follow_the_floats_in_every_kind(reduce: Any) -> None:
    for a, b in itertools.product(SPECIAL, repeat=2):
        with np.errstate(all="ignore"):
            want = {"sum": np.add, "prod": np.multiply, "max": np.maximum}[reduce](np.float64(a), np.float64(b))
        for kind in (as_floats, as_objects):
            got = combined(Part(kind(a), (0,)), Part(kind(b), (0,)), reduce, 53).values.exact()
            assert (got[1] == [0] or math.isfinite(a * b)) and (
                got[0][0] == want or (math.isnan(want) and math.isnan(got[0][0]))
            ), (kind, a, b, got)


def as_floats(x: float) -> Values:
    return Floats(np.array([x]), np.array([0.0]))


def as_objects(x: float) -> Values:
    return Objects(object_array([Fraction(x) if math.isfinite(x) else x]), object_array([Fraction(0)]))


def test_what_overflows_is_not_known() -> None:
    big = Part(Floats(np.array([1.7e308]), np.array([0.0])), (0,))
    assert combined(big, big, "sum", 53).values.exact()[1] == [math.inf]
    unknown = Part(Floats(np.array([math.nan]), np.array([math.inf])), (0,))
    for reduce in ("sum", "max", "prod"):
        assert combined(big, unknown, reduce, 53).values.exact()[1] == [math.inf]


def test_integers_of_different_units_add_up_exactly() -> None:
    a = Part(Scaled(object_array([3]), -2, Fraction(1, 8)), (0,))
    b = Part(Scaled(object_array([10**30]), 5, 0.25), (0,))
    got = combined(a, b, "sum", 53).values
    assert isinstance(got, Scaled)
    assert got.exact() == ([Fraction(3, 4) + 32 * 10**30], [Fraction(3, 8)])


def test_parts_of_different_boxes() -> None:
    a, b = (Part(Floats(np.array(m), np.zeros(2)), (k,)) for m, k in (([1.0, 2.0], 0), ([10.0, 20.0], 3)))
    both = combined(a, b, "sum", 53)
    assert both.start == (0,) and both.values.mid.tolist() == [1, 2, 0, 10, 20]
    assert combined(a, b, "max", 53).values.mid.tolist() == [1, 2, -math.inf, 10, 20]
    assert combined(a, Part(b.values, (1,)), "sum", 53).values.mid.tolist() == [1, 12, 20]
    mixed = [Part(as_floats(1.5), (1,)), Part(as_objects(0.25), (0,))]
    assert placed(mixed, (0,), (2,), "sum").exact()[0] == [Fraction(1, 4), Fraction(3, 2)]
    units = [Part(Scaled(object_array([1]), e, Fraction(0)), (k,)) for k, e in ((0, -3), (1, 4))]
    assert placed(units, (0,), (2,), "sum").exact()[0] == [Fraction(1, 8), 16]


def test_balls_are_added_at_their_precision_and_enclose() -> None:
    with precision(100):
        xs = [(flint.arb(1) / (k + 3)).exp() for k in range(11)]
    total = Sum(len(xs), "sum", 100)
    for k in (5, 1, 0, 10, 9, 8, 2, 3, 4, 7, 6):
        total.put((0, k), Part(Balls(object_array([xs[k]])), (0,)))
    got = total.root().values.balls[0]
    with precision(400):
        exact = sum(((flint.arb(1) / (k + 3)).exp() for k in range(11)), flint.arb(0))
        assert got.contains(exact) and got.rad() < flint.arb(2) ** -90
