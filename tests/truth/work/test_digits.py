"""Fixed-point numbers in digits: laid out, side by side and added, against fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symattn.truth.limbs import fixed
from symattn.truth.limbs.fixed import Fixed, Piece
from symattn.truth.limbs.values import Limbs
from symattn.truth.work import digits
from symattn.truth.work.packed import packed, unpacked
from symattn.truth.work.sums import Part, combined, placed

UNITS = st.integers(-300, 40)


def limbs(
    seed: int, units: list[int], shape: tuple[int, ...] = (2, 3), wide: int = 4, radius: Fraction = Fraction(1, 7)
) -> Limbs:
    """Numbers in as many pieces as there are units, their axes turned about, digits as the engine may leave them."""
    r = np.random.default_rng(seed)
    size = math.prod(shape)
    cuts = [0, *sorted(r.integers(0, size + 1, size=len(units) - 1).tolist()), size]
    pieces = tuple(
        Piece(b, r.integers(-(2**23), 2**23, size=(int(r.integers(1, wide + 1)), e - b)), u)
        for b, e, u in zip(cuts[:-1], cuts[1:], units, strict=True)
    )
    return Limbs(Fixed(pieces, shape[::-1], (1, 0), radius, Fraction(3)))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.lists(UNITS, min_size=1, max_size=4))
def test_laid_out_the_numbers_are_the_same(seed: int, units: list[int]) -> None:
    v = limbs(seed, units)
    assert digits.laid_out(v).exact() == v.exact()
    back = unpacked(packed(v))
    assert isinstance(back, Limbs) and back.exact() == v.exact() and back.shape == v.shape
    part = v.each(lambda a: a[1:, ::2])
    assert isinstance(part, Limbs) and digits.laid_out(part).exact() == part.exact()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), UNITS, UNITS)
def test_sums_are_exact_and_radii_add_up(seed: int, one: int, two: int) -> None:
    a, b = limbs(seed, [one, one + 5]), limbs(seed + 1, [two], radius=Fraction(1, 5))
    got = combined(Part(a, (0, 0)), Part(b, (0, 0)), "sum", 53).values
    assert isinstance(got, Limbs)
    assert got.exact() == ([x + y for x, y in zip(a.exact()[0], b.exact()[0], strict=True)], [Fraction(12, 35)] * 6)


def test_a_carry_that_is_dropped_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = limbs(1, [-48]), limbs(2, [-48])
    right = [x + y for x, y in zip(a.exact()[0], b.exact()[0], strict=True)]

    def without(words: Any) -> Any:
        return (words + digits.HALF) % (1 << digits.BITS) - digits.HALF

    monkeypatch.setattr(digits, "normal", without)
    assert digits.added(a, b).exact()[0] != right


@pytest.mark.parametrize("chunk", [1, 4, 5])
def test_a_few_numbers_at_a_time_are_the_same_numbers(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    a, b = limbs(3, [-70, 5, -9], (3, 7)), limbs(4, [-48], (3, 7))
    whole = digits.laid_out(a), digits.added(a, b)
    monkeypatch.setattr(digits, "CHUNK", chunk)
    for one, other in zip(whole, (digits.laid_out(a), digits.added(a, b)), strict=True):
        assert np.array_equal(one.fixed.pieces[0].digits, other.fixed.pieces[0].digits)
    assert whole[1].exact()[0] == [x + y for x, y in zip(a.exact()[0], b.exact()[0], strict=True)]


@pytest.mark.parametrize(("unit", "chunk"), [(-40, 4), (-1060, 5), (880, 1 << 12)])
def test_a_first_look_is_near_the_numbers(monkeypatch: pytest.MonkeyPatch, unit: int, chunk: int) -> None:
    monkeypatch.setattr(fixed, "CHUNK", chunk)
    v = limbs(5, [unit, unit + 3], (3, 7), wide=3)
    exact = v.exact()[0]
    mids, rads = (a.ravel().tolist() for a in v.approx())
    assert all(abs(Fraction(x) - y) <= r for x, y, r in zip(mids, exact, rads, strict=True))
    sizes = v.magnitudes()[0].ravel().tolist()
    assert all(abs(x - abs(y)) <= abs(y) / 2**28 + Fraction(2) ** -1060 for x, y in zip(map(Fraction, sizes), exact, strict=True))


def test_nothing_is_unknown_of_numbers_with_a_finite_radius() -> None:
    piece = (Piece(0, np.array([[1, 2]]), 0),)
    for radius, want in ((Fraction(1), [False, False]), (Fraction(2) ** 2000, [True, False])):
        v = Limbs(Fixed(piece, (2,), (0,), radius, Fraction(1), {1: math.inf}))
        assert v.unknown().tolist() == want == (np.isinf(v.magnitudes()[1]) & ~v.points()).tolist()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), UNITS, UNITS)
def test_boxes_side_by_side(seed: int, one: int, two: int) -> None:
    a, b = limbs(seed, [one, two]), limbs(seed + 1, [two], radius=Fraction(1, 5))
    got = placed([Part(a, (1, 3)), Part(b, (4, 0))], (1, 0), (5, 7), "sum")
    want = np.zeros((5, 7), dtype=object) + Fraction(0)
    want[0:2, 3:6] = np.array(a.exact()[0], dtype=object).reshape(2, 3)
    want[3:5, 0:3] = np.array(b.exact()[0], dtype=object).reshape(2, 3)
    assert isinstance(got, Limbs) and got.exact() == (want.ravel().tolist(), [Fraction(1, 5)] * 35)


def test_special_values_keep_their_places_and_are_added_as_floats_are() -> None:
    special = Limbs(Fixed((Piece(0, np.array([[1, 2]]), -3),), (2,), (0,), Fraction(0), Fraction(1), {1: -math.inf}))
    plain = Limbs(Fixed((Piece(0, np.array([[5, 7]]), 0),), (2,), (0,), Fraction(0), Fraction(1)))
    assert unpacked(packed(special)).exact() == special.exact()
    turned = special.each(lambda a: a[::-1])
    assert isinstance(turned, Limbs) and digits.laid_out(turned).exact()[0] == [-math.inf, Fraction(1, 8)]
    both = placed([Part(special, (2,)), Part(plain, (0,))], (0,), (4,), "sum").exact()[0]
    assert both == [5, 7, Fraction(1, 8), -math.inf]
    assert combined(Part(special, (0,)), Part(plain, (0,)), "sum", 53).values.exact()[0] == [Fraction(41, 8), -math.inf]
    assert combined(Part(special, (0,)), Part(plain, (0,)), "max", 53).values.exact()[0] == [5, 7]
