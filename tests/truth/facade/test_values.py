"""What enclosures rest on: every kind of values says the same of the same numbers, and fractions are made only when asked for."""

from __future__ import annotations

import math
from fractions import Fraction

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symattn import formats
from symattn.formats import FORMATS, round_exact
from symattn.readings.specials import NAN, NEGATIVE
from symattn.truth import values as values_module
from symattn.truth.enclosure import Enclosure, How, classified
from symattn.truth.neighbours import rounded
from symattn.truth.patched import Joined, Patched
from symattn.truth.questions import Digits, Nothing, Rounding, guaranteed, tiny
from symattn.truth.values import Balls, Floats, Objects, Scaled, Values, object_array


def kinds() -> dict[str, Values]:
    """Six values of each kind: large and small ones, a point, one of which nothing is known, special ones where they can be."""
    r = Fraction(1, 2**80)
    mids = [Fraction(3) * Fraction(2) ** e + Fraction(1, 3) for e in (-60, 0, 900)] + [Fraction(5, 8), Fraction(0)]
    objects = Objects(object_array([*mids, math.nan]), object_array([r, r, r, Fraction(0), math.inf, Fraction(0)]))
    whole = Scaled(
        np.array([10**30, -(7**200), 5, 0, 2**3000, 1], dtype=object), -90, object_array([r, r, Fraction(0), 0, 0, math.inf])
    )
    few = Scaled(np.arange(-3, 3, dtype=np.int64), -5, Fraction(1, 2**9))
    floats = Floats(np.array([0.1, -3e200, 5e-324, 0.0, math.inf, math.nan]), np.array([1e-18, 1e190, 0, 1e-320, 0, math.inf]))
    balls = Balls(
        object_array(
            [flint.arb(1) / 3, flint.arb(2), (-flint.arb(10**6)).exp(), flint.arb(10**6).exp(), NEGATIVE, flint.arb.nan()]
        )
    )
    patched = Patched(floats, Joined([few.each(lambda a: a[:2]), balls]), np.array([-1, 0, 3, -1, 1, 6]))
    return {"objects": objects, "whole": whole, "few": few, "floats": floats, "balls": balls, "patched": patched}


KINDS = kinds()


def encloses(v: Values) -> None:
    for m, r, am, ar in zip(*v.exact(), *(a.tolist() for a in v.approx()), strict=True):
        if isinstance(m, float):
            assert ar == 0 and (am == m or (math.isnan(am) and math.isnan(m)))
        elif ar < math.inf:
            assert not isinstance(r, float) and Fraction(am) - Fraction(ar) <= m - r and m + r <= Fraction(am) + Fraction(ar)


@pytest.mark.parametrize("name", KINDS)
def test_float64_encloses_what_fractions_say(name):
    encloses(KINDS[name])


@pytest.mark.parametrize("name", KINDS)
def test_sizes_are_near_and_points_are_points(name):
    v = KINDS[name]
    for m, r, size, width, point, lost in zip(
        *v.exact(), *(a.tolist() for a in (*v.magnitudes(), v.points(), v.lost())), strict=True
    ):
        assert point == (r == 0)
        for x, near in ((m, size), (r, width)):
            if not isinstance(x, float) and 1e-300 < near < 1e300:
                assert abs(Fraction(near) - abs(x)) <= abs(x) / 2**27 or lost


@pytest.mark.parametrize("name", KINDS)
def test_a_part_and_a_permutation_are_those_of_the_fractions(name):
    v = KINDS[name]
    order = np.array([[3, 1], [5, 0]])
    got = v.each(lambda a: a[order])
    mids, rads = v.exact()
    some = v.exact(np.array([4, 2]))
    assert got.shape == (2, 2)
    for k, x in enumerate(got.exact()[0]):
        y = mids[order.ravel()[k]]
        assert x == y or (math.isnan(x) and math.isnan(y))
    assert [str(x) for x in some[0]] == [str(mids[4]), str(mids[2])] and some[1] == [rads[4], rads[2]]


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("format", FORMATS)
def test_ends_are_rounded_as_fractions_are(name, format):
    v = KINDS[name]
    found = rounded(v, format)
    for m, r, low, high, open_ in zip(*v.exact(), found.low.tolist(), found.high.tolist(), found.open.tolist(), strict=True):
        if isinstance(m, float) or isinstance(r, float):
            assert open_ == isinstance(r, float)
            continue
        ends = [round_exact(x, format) for x in (m - r, m + r)]
        same = ends[0] == ends[1] or (all(math.isnan(e) for e in ends) and (m - r > 0) == (m + r > 0))
        assert (open_ or same) if v.sharp and r else open_ == (not same), (m, r)
        if not open_:
            assert low == high == ends[0] or math.isnan(low)


numbers = st.fractions(max_denominator=2**60).filter(lambda x: abs(x) < 2**60)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(numbers, st.integers(0, 40)), min_size=1, max_size=8), st.sampled_from([*FORMATS]), st.integers(1, 30))
def test_questions_are_answered_as_fractions_answer_them(pairs, format, digits):
    rads = [abs(m) / 10**k for m, k in pairs]
    v = Objects(object_array([m for m, _ in pairs]), object_array(rads))
    f = formats.get(format)
    ends = [(round_exact(m - r, f), round_exact(m + r, f)) for (m, _), r in zip(pairs, rads, strict=True)]
    want = [a != b and not (a != a and b != b) for a, b in ends]
    assert Rounding(f).open("x", v).tolist() == want
    assert Digits(digits).open("x", v).tolist() == [not guaranteed(m, r, digits) for (m, _), r in zip(pairs, rads, strict=True)]


def test_an_overflow_of_a_format_without_infinities_is_decided_only_at_one_end():
    mid = object_array([Fraction(500), Fraction(-500), Fraction(0)])
    found = rounded(Objects(mid, object_array([Fraction(1), Fraction(1), Fraction(600)])), "e4m3")
    assert np.isnan(found.low).all() and found.open.tolist() == [False, False, True]


def test_millions_of_elements_stay_arrays(monkeypatch):
    """No fraction is made until a value is read: not for statuses, not for rounding, not for a printed summary of all."""
    seen = []
    monkeypatch.setattr(values_module, "_fraction", lambda x: seen.append(x) or Fraction(x))
    n = 2**18 + 1  # with the 128 ties among them
    mid = np.linspace(1, 2, n)
    e = classified("x", Floats(mid, 1e-13), Rounding(formats.get("bfloat16")), "double", "exp within 4 ulp")
    assert e.shape == (n,) and set(np.unique(e.status)) == {"bounded", "undecided"}
    assert e[10:20].shape == (10,) and not e.decided and e.undecided.sum() == 128 and not seen
    assert e.neighbours("bfloat16")[0].dtype == "bfloat16"
    seen.clear()
    assert "262017 bounded" in repr(e) and len(seen) <= 8
    whole = Scaled(np.arange(n, dtype=np.int64), -17, Fraction(1, 2**60))
    assert (classified("x", whole, Digits(5), "limbs").status == "enclosed").sum() > n - 10


def test_how_says_status_tier_and_assumption():
    e = Enclosure.of(
        Floats(np.ones(2), np.zeros(2)), np.array([0, 1]), (How("exact", "settled"), How("bounded", "double", "luck"))
    )
    assert str(e.how(1)) == "bounded by double, assuming luck" and e.tier.tolist() == ["settled", "double"]
    assert e.counts() == {How("exact", "settled"): 1, How("bounded", "double", "luck"): 1}


def test_specials_are_points_and_nothing_known_is_open():
    v = Balls(object_array([NAN, NEGATIVE, flint.arb.nan()]))
    assert v.points().tolist() == [True, True, False]
    for question in (Digits(5), Rounding(formats.get("float16")), Nothing()):
        assert question.open("x", v).tolist() == [False, False, True]


def test_tiny_is_certain():
    v = Floats(np.array([0.0, 1e-30, 0.0]), np.array([1e-31, 1e-31, math.inf]))
    assert tiny(v, np.arange(3), Fraction(1, 10**29)) == [True, True, False]
    assert tiny(v, np.arange(3), Fraction(1, 10**29), around_zero=True) == [True, False, False]


class Forgetful(Scaled):
    """A planted slip: that the midpoint itself is rounded is forgotten."""

    def approx(self):
        return self._mids(), self._rads()


def test_a_planted_slip_shows():
    numbers = np.array([3**50, 5**40], dtype=object)
    with pytest.raises(AssertionError):
        encloses(Forgetful(numbers, -70, Fraction(1, 2**90)))
    encloses(Scaled(numbers, -70, Fraction(1, 2**90)))
