"""Classes of elements, panels by axes, blocks, and pooling that never hides what is out."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from symattn.verify.evidence import Evidence
from symattn.verify.writers import picture
from tests.verify.writers.reports import evidence


def one(kernel, exact, bound, rad=0):
    cells = [np.array([[x]], dtype=object) for x in (exact, Fraction(rad))]
    return picture.classes(Evidence(np.array([[kernel]]), *cells, np.array([[bound]])))[0][0, 0]


@pytest.mark.parametrize(
    "kernel, exact, bound, rad, found",
    [
        (0.0, Fraction(0), 1.0, 0, 0),
        (0.01, Fraction(1, 100), 1.0, 0, 1),
        (0.25, Fraction(0), 4.0, 0, 2),
        (1.0, Fraction(0), 4.0, 0, 3),
        (1.0, Fraction(0), 1.0, 0, 4),
        (1.0, Fraction(0), math.inf, 0, picture.NO_BOUND),
        (1.0, Fraction(0), 1.0, Fraction(1, 2), picture.OPEN),
        (2.0, Fraction(0), 1.0, 0, 7),
        (100.0, Fraction(0), 1.0, 0, 8),
        (1e9, Fraction(0), 1.0, 0, 9),
        (math.nan, Fraction(0), 1.0, 0, 9),
        (0.0, -math.inf, 0.0, 0, 9),
        (-math.inf, -math.inf, 0.0, 0, 0),
        (1.0, Fraction(0), 0.0, 0, 9),
    ],
)
def test_classes(kernel, exact, bound, rad, found):
    assert one(kernel, exact, bound, rad) == found


def test_blocks_of_rows_show_their_worst():
    e = evidence((1, 2, 70, 3), [(0, 1, 69, 2)])
    found = picture.overview("out", e)
    assert found.cells.shape == (2, 24) and found.columns == "block of 3 rows (query)" and found.cells[1, 23] == 8
    tiled = picture.overview("grad_key", e, 16)
    assert tiled.cells.shape == (2, 5) and (tiled.rows, tiled.columns) == ("key head", "block of 16 rows (key)")
    assert picture.overview("lse", evidence((1, 2, 3))) is None


@pytest.mark.parametrize(
    "name, shape, count, rows, columns",
    [
        ("lse", (2, 3, 4), 2, "head", "query"),
        ("grad_attn_mask", (1, 2, 3, 4), 2, "query", "key"),
        ("grad_attn_mask", (3, 4), 1, "query", "key"),
        ("grad_sinks", (3,), 1, "row", "head"),
        ("grad_slope", (), 1, "row", "column"),
    ],
)
def test_panels_by_axes(name, shape, count, rows, columns):
    found = picture.panels(name, evidence(shape))
    assert (len(found), found[0].rows, found[0].columns) == (count, rows, columns)


def test_pooling_keeps_what_is_out():
    cells = np.zeros((1000, 500), dtype=np.uint8)
    cells[999, 499] = cells[0, 250] = 9
    found = picture.pooled(cells)
    assert found.shape == (picture.MOST, picture.MOST) and found[-1, -1] == 9 and (found == 9).sum() == 2
