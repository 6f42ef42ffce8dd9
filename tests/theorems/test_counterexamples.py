"""Counterexamples again in fractions: attention by hand, with a power of a whole number for every exponential."""

from __future__ import annotations

from fractions import Fraction

import pytest
import sympy as sp

from symattn.definition import Definition
from symattn.theorems import prove


def weights(found, sink=True):
    """The rows of exp(scores) as fractions, and the exponential of the sink: inputs are whole numbers and logarithms of them."""
    q, k = found.inputs["Q"], found.inputs["K"]
    rows = [[fraction_exp(sum(a * b for a, b in zip(x, y, strict=True))) for y in k] for x in q]
    return rows, fraction_exp(found.inputs["sink"]) if sink else Fraction(0)


def fraction_exp(x) -> Fraction:
    """``exp`` of a whole multiple of the logarithm of a whole number."""
    x = sp.sympify(x)
    number, rest = x.as_coeff_Mul()
    if x == 0:
        return Fraction(1)
    assert number.is_Integer and isinstance(rest, sp.log) and rest.args[0].is_Integer
    return Fraction(int(rest.args[0])) ** int(number)


def fractions(values):
    return [[Fraction(int(x)) for x in row] for row in values]


def shown(x) -> Fraction:
    assert x.is_Rational
    return Fraction(int(x.p), int(x.q))


def entry(found):
    return tuple(map(int, found.what[found.what.index("[") + 1 : -1].split(", ")))


SINK = Definition(sink=True, scale=1)


def test_rows_with_a_sink_sum_to_less():
    found = prove("rows-sum-to-one", SINK).counterexample
    rows, sink = weights(found)
    (i,) = entry(found)
    assert shown(found.left) == sum(rows[i]) / (sum(rows[i]) + sink) and shown(found.right) == 1
    assert shown(found.left) != 1


def test_a_shift_moves_the_output_beside_a_sink():
    found = prove("shift-invariance", SINK).counterexample
    rows, sink = weights(found)
    i, e = entry(found)
    v = fractions(found.inputs["V"])
    shift = fraction_exp(found.inputs["r"][i])

    def out(factor):
        row = [factor * x for x in rows[i]]
        return sum(w * x[e] for w, x in zip(row, v, strict=True)) / (sum(row) + sink)

    assert shown(found.left) == out(shift) and shown(found.right) == out(1)
    assert out(shift) != out(1)


def test_the_hull_is_left_beside_a_sink():
    found = prove("hull", SINK).counterexample
    rows, sink = weights(found)
    i, e = entry(found)
    v = [x[e] for x in fractions(found.inputs["V"])]
    low = Fraction(int(found.inputs["low"][e]))
    total = sum(rows[i]) + sink
    assert shown(found.left) == sum(w * x for w, x in zip(rows[i], v, strict=True)) / total - low
    assert shown(found.right) == sum(w * (x - low) for w, x in zip(rows[i], v, strict=True)) / total


def test_the_values_receive_less_beside_a_sink():
    found = prove("value-total", SINK).counterexample
    rows, sink = weights(found)
    (e,) = entry(found)
    d_out = [row[e] for row in fractions(found.inputs["dO"])]
    left = sum(d * sum(row) / (sum(row) + sink) for d, row in zip(d_out, rows, strict=True))
    assert (shown(found.left), shown(found.right)) == (left, sum(d_out)) and left != sum(d_out)


def test_a_causal_mask_breaks_permutations():
    found = prove("key-permutation", Definition(causal="top-left", scale=1)).counterexample
    rows, _ = weights(found, sink=False)
    i, e = entry(found)
    v = [x[e] for x in fractions(found.inputs["V"])]
    pi = [int(x) for x in found.inputs["pi"]]

    def out(order):
        kept = [order[j] for j in range(len(order)) if j <= i]
        return sum(rows[i][j] * v[j] for j in kept) / sum(rows[i][j] for j in kept)

    assert shown(found.left) == out(pi) and shown(found.right) == out(range(len(pi)))
    assert out(pi) != out(range(len(pi)))


@pytest.mark.parametrize("name", ["rows-sum-to-one", "shift-invariance", "hull", "value-total", "score-rows"])
def test_numbers_are_short_where_they_can_be(name):
    found = prove(name, SINK).counterexample
    assert found.left.is_Rational and found.right.is_Rational
