"""What a kernel cannot take: the grammar, the nearest sizes, and texts that are refused."""

from __future__ import annotations

import itertools
import math

import pytest

from symattn.errors import GrammarError, ShapeError
from symattn.verify.pack.requirement import Requirement
from symattn.verify.pack.shapes import Shape

SHAPE = Shape.parse("2,4,2,5,7,6")


@pytest.mark.parametrize(
    "text, shape",
    [
        ("d % 8 == 0", "2,4,2,5,7,8"),
        ("D % 8 == 0, N == M, 5 < n, n < 7", "2,4,2,6,6,8"),
        ("n == m and d >= 64 and n > 5 and m < 7", "2,4,2,6,6,64"),
        ("64 <= d <= 128", "2,4,2,5,7,64"),
        ("b == 1", "1,4,2,5,7,6"),
        ("g == 1, h == 4", "2,4,4,5,7,6"),
        ("hkv == h, h == 3", "2,3,3,5,7,6"),
        ("dv == 2*d, d < 5", "2,4,2,5,7,4,8"),
        ("(n + 1) // 2 == 8 - 0", "2,4,2,15,7,6"),
        ("n % 128 == 0, m % 128 == 0", "2,4,2,128,128,6"),
        ("n != m", "2,4,2,5,7,6"),
    ],
)
def test_the_nearest_sizes(text, shape):
    rule = Requirement.parse(text)
    found = rule.fit(SHAPE)
    assert rule.holds(found) and found.h % found.hkv == 0
    assert str(found) == shape


def test_no_nearer_sizes_fit():
    """Against all sizes up to 12, for two names that a text ties together."""
    for text, holds in (("n * m == 24", lambda n, m: n * m == 24), ("n > m + 3", lambda n, m: n > m + 3)):
        far = lambda n, m: abs(math.log(n / 5)) + abs(math.log(m / 7))
        best = min((far(n, m) for n, m in itertools.product(range(1, 13), repeat=2) if holds(n, m)))
        found = Requirement.parse(text).fit(SHAPE)
        assert far(found.n, found.m) == pytest.approx(best)


@pytest.mark.parametrize(
    "text",
    ["", "d", "d %% 8 == 0", "d = 8", "d == ", "k == 3", "__import__('os')", "d == 8;", "d ** 2 == 4", "(d == 8", "d.real == 1",
     "d == 8 or n == m", "1" * 30 + " == d", "(" * 150 + "d", "d == 8" * 100],
)  # fmt: skip
def test_what_is_not_in_the_grammar_is_refused(text):
    with pytest.raises(GrammarError, match="requirement"):
        Requirement.parse(text)


@pytest.mark.parametrize("text", ["d < 1", "d % 0 == 1", "d // (n - n) == 1", "n == m, n == m + 1"])
def test_what_no_sizes_fulfil_is_refused(text):
    with pytest.raises(ShapeError, match="no sizes near"):
        Requirement.parse(text).fit(SHAPE)
