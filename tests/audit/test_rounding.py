"""Inputs that a page printed rounded: what is refuted for all of them is wrong, and the rest is not decidable."""

import itertools
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest

from symattn.audit.claimsfile import parse
from symattn.audit.page import audit
from symattn.audit.printed import UNDECIDED, WITHIN, WRONG
from symattn.audit.ranges import Box
from symattn.audit.sheet import Sheet

DATA = Path(__file__).parent / "data"


def page(text):
    return parse(text.encode(), "test")


SCALED = """
[inputs]
scaled = ["5.77", "2.89", "1.73", "6.93"]
half_width = {width}
[claims]
weights = {weights}
"""


def statuses(text):
    return [f.verdict.status for f in audit(page(text)).findings]


def test_a_number_that_some_inputs_bear_out_is_not_decidable():
    """The exact weight of the printed scores is 0.2346; for scores within 0.005 it lies in 0.2328 ... 0.2364."""
    text = SCALED.format(width='"0.005"', weights='["0.2340", "...", "...", "..."]')
    assert statuses(text) == [WITHIN]
    assert audit(page(text)).exit_code == 3


def test_the_same_number_is_wrong_where_inputs_are_exact():
    assert statuses(SCALED.format(width='"0"', weights='["0.2340", "...", "...", "..."]')) == [WRONG]


def test_a_number_that_no_inputs_bear_out_is_wrong():
    assert statuses(SCALED.format(width='"printed"', weights='["0.2380", "...", "...", "..."]')) == [WRONG]


def test_a_half_width_of_one_input():
    text = '[inputs]\nQ = ["1"]\nK = [["1"], ["2"]]\nhalf_width = {Q = "0.5"}\n[claims]\nscores = ["1.4", "1.2"]'
    assert statuses(text) == [WITHIN, WITHIN]
    text = text.replace("1.2", "4")
    assert statuses(text) == [WITHIN, WRONG]


def test_a_bare_integer_from_rounded_inputs_is_not_decidable():
    text = '[inputs]\nQ = ["1.2", "0.3"]\nK = [["2", "1"]]\nhalf_width = {Q = "printed"}\n[claims]\nscores = ["3"]'
    assert statuses(text) == [WRONG]  # 2.7 +- 0.15
    assert statuses(text.replace('["3"]', '["2.8"]')) == ["last_digit"]
    assert statuses(text.replace('["1.2", "0.3"]', '["1.4", "0.1"]')) == [WITHIN]  # 2.9 +- 0.15


def test_expressions_of_rounded_inputs():
    claims = 'p = {of = "softmax(u)", printed = ["0.09", "0.26", "0.40"]}'
    text = f'[inputs]\nu = ["1.0", "2.0", "3.0"]\nhalf_width = "0.05"\n[claims]\n{claims}'
    assert statuses(text) == ["rounded", WITHIN, WRONG]


def corners(scores, width):
    """The extreme weights of a softmax by trying all corners of the box, in mpmath."""
    best = [[mpmath.inf, -mpmath.inf] for _ in scores]
    for signs in itertools.product((-1, 1), repeat=len(scores)):
        e = [mpmath.exp(s + g * width) for s, g in zip(scores, signs, strict=True)]
        for k, x in enumerate(e):
            p = x / sum(e)
            best[k] = [min(best[k][0], p), max(best[k][1], p)]
    return best


@pytest.mark.parametrize("seed", range(5))
def test_the_interval_is_the_range_over_the_corners(seed):
    rng = np.random.default_rng(seed)
    scores = [Fraction(int(v), 100) for v in rng.integers(-300, 300, 4)]
    width = Fraction(1, 200)
    text = f'[inputs]\nscaled = {[str(s) for s in scores]}\nhalf_width = "1/200"\n[claims]\nweights = "0"'
    box = Box(Sheet(page(text).examples[0]))
    with mpmath.workdps(40):
        want = corners([mpmath.mpf(s.numerator) / s.denominator for s in scores], mpmath.mpf(1) / 200)
        for k, (low, high) in enumerate(want):
            found = box.sharpened("P", (k,))
            assert abs(found[0] - Fraction(str(low))) < Fraction(1, 10**30)
            assert abs(found[1] - Fraction(str(high))) < Fraction(1, 10**30)
            wide = box.interval("P", (k,))
            assert wide[0] <= found[0] <= found[1] <= wide[1]
    assert width * 200 == 1


def test_random_points_of_the_box_lie_in_the_interval_of_the_output():
    rng = np.random.default_rng(7)
    q, k, v = (rng.integers(-20, 20, (2, 3)), rng.integers(-20, 20, (3, 3)), rng.integers(-20, 20, (3, 2)))
    rows = {n: [[f"{x / 10:.1f}" for x in row] for row in m] for n, m in (("Q", q), ("K", k), ("V", v))}
    text = "[inputs]\n" + "\n".join(f"{n} = {m}" for n, m in rows.items()) + '\nhalf_width = "0.005"\n[claims]\nw = "0"'
    box = Box(Sheet(page(text).examples[0]))
    intervals = {p: box.sharpened("O", p) for p in np.ndindex(2, 2)}
    for _ in range(50):
        a, b, c = (m / 10 + rng.uniform(-0.005, 0.005, m.shape) for m in (q, k, v))
        s = a @ b.T / np.sqrt(3)
        w = np.exp(s) / np.exp(s).sum(1, keepdims=True)
        for p, x in np.ndenumerate(w @ c):
            assert intervals[p][0] - Fraction(1, 10**9) <= Fraction(x) <= intervals[p][1] + Fraction(1, 10**9)
    for p, (low, high) in intervals.items():
        wide = box.interval("O", p)
        assert high - low < (wide[1] - wide[0]) * 7 / 10


def test_printed_intermediates_allow_what_their_digits_do_not_give():
    text = """
[inputs]
scores = ["1", "2"]
[definition]
scale = "1/3"
[claims]
scaled = ["0.3", "0.7"]
weights = ["0.416", "0.600"]
"""
    found = {f.name: f for f in audit(page(text)).findings}
    assert found["weights[0]"].follows == "rounding"  # softmax(0.3, 0.7) is 0.4013; of scores within 0.05: 0.3775 ... 0.4256
    assert found["weights[1]"].chained.status == "rounded" or found["weights[1]"].follows == "rounding"
    assert not found["weights[0]"].carried
    assert UNDECIDED not in {f.verdict.status for f in found.values()}


def test_numbers_that_a_page_computed_with_more_digits_of_its_inputs_than_it_prints():
    """example-05 prints W_O to eight decimals: taken as exact, six numbers of its second print are wrong; as rounded, none is."""
    text = (DATA / "example-05.toml").read_text(encoding="utf-8")
    head, both = text.split('name = "both"')
    rounded = head + 'name = "both"' + both.replace("[example.inputs]", '[example.inputs]\nhalf_width = {W_O = "5e-9"}', 1)
    found = {f.name: f.verdict.status for f in audit(page(rounded)).findings if "Z_text" in f.name}
    assert list(found.values()).count(WITHIN) == 6
    assert set(found.values()) == {WITHIN, "rounded"}
