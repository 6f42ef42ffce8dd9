"""Values as plain arrays: what comes back is what was put away, and no object is among them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest

from symattn.errors import FileFormatError
from symattn.readings.balls import precision
from symattn.readings.specials import NAN, NEGATIVE, POSITIVE
from symattn.truth.values import Balls, Floats, Objects, Scaled, Values, object_array
from symattn.truth.work.packed import packed, settled, unpacked


def balls(seed: int = 0) -> list[Any]:
    r = np.random.default_rng(seed)
    found = [NAN, POSITIVE, NEGATIVE, flint.arb.nan(), flint.arb(0), flint.arb(5), flint.arb(0, 1), flint.arb(-(10**30)).exp()]
    for bits in (53, 200, 700):
        with precision(bits):
            found += [flint.arb(float(x)).exp() / 7 for x in r.standard_normal(20) * 50]
            found += [flint.arb(1, float(x)) for x in 2.0 ** r.integers(-900, 0, size=5)]  # radii that are powers of two
    return found


def kinds() -> dict[str, Values]:
    huge = [10**400, -1, 0, -(2**64), 255, -256]
    return {
        "balls": settled(Balls(object_array(balls()))),
        "floats": Floats(np.array([[1.5, -0.0], [math.nan, math.inf]]), np.array([[0.0, 1e-300], [0.0, 0.0]])),
        "scaled": Scaled(object_array(huge), -700, Fraction(1, 3)),
        "objects": Objects(
            object_array([Fraction(1, 3), math.nan, -math.inf]), object_array([Fraction(0), math.inf, Fraction(7)])
        ),
        "a number": Floats(np.array(2.5), np.array(0.5)),
        "nothing": Objects(object_array([], (0, 3)), object_array([], (0, 3))),
    }


def numbers(v: Values) -> list[str]:
    if isinstance(v, Balls):
        return [
            repr(x) if not isinstance(x, flint.arb) else str((x.mid().man_exp(), x.rad().man_exp())) if x.is_finite() else "?"
            for x in v.balls.ravel()
        ]
    return [repr(x) for part in v.exact() for x in part]


@pytest.mark.parametrize("kind", kinds())
def test_values_come_back_number_for_number(kind: str) -> None:
    v = kinds()[kind]
    arrays = packed(v)
    assert all(a.dtype != object for a in arrays.values())
    back = unpacked(arrays)
    assert type(back) is type(v) and back.shape == v.shape
    assert numbers(back) == numbers(v)


def test_a_ball_that_is_put_away_still_holds_what_it_held_and_is_hardly_larger() -> None:
    before = [x for x in balls(3) if isinstance(x, flint.arb) and x.is_finite()]
    after = unpacked(packed(Balls(object_array(before)))).balls
    with precision(2000):
        for x, y in zip(before, after, strict=True):
            assert y.contains(x) and y.mid() == x.mid()
            assert y.rad() <= x.rad() * (1 + flint.arb(2) ** -28)


def test_the_precision_in_use_changes_nothing() -> None:
    v = kinds()["balls"]
    with precision(10):
        assert numbers(unpacked(packed(v))) == numbers(v)


@pytest.mark.parametrize("harm", ["cut", "lost", "kind", "shape"])
def test_damaged_values_are_refused(harm: str) -> None:
    arrays = dict(packed(kinds()["objects"]))
    if harm == "cut":
        arrays["mid.above.bytes"] = arrays["mid.above.bytes"][:-1]
    elif harm == "lost":
        del arrays["rad.codes"]
    elif harm == "kind":
        arrays["kind"] = np.array("pickle")
    else:
        arrays["shape"] = np.array([4])
    with pytest.raises(FileFormatError):
        unpacked(arrays)
