"""The exact reading decides comparisons by balls and settles equality by algebra, never by digits."""

from __future__ import annotations

import sympy as sp

from symattn.readings.exact import compare


def test_numbers_that_agree_to_many_digits_are_not_taken_for_equal():
    root = sp.sqrt(3)
    assert compare(root + sp.exp(-300), root) == 1
    assert compare(root, sp.sqrt(3 + sp.Rational(1, 10**90))) == -1


def test_equal_numbers_written_differently_are_equal():
    root = sp.sqrt(3)
    assert compare(root * (1 + sp.sqrt(2)), sp.sqrt(6) + root) == 0
    assert compare(10 / root, 10 * root / 3) == 0
    assert compare(sp.sqrt(5 + 2 * sp.sqrt(6)), sp.sqrt(2) + root) == 0
