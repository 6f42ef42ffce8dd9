"""Sums of products of arrays with indices: the numbers of an einsum, whatever the order of the axes; laid out as asked."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import sympy as sp

from symattn.readings.products import contract

h, i, j, e = sp.symbols("h i j e", integer=True)
SIZES = {h: 2, i: 3, j: 4, e: 5}
LETTERS = {h: "h", i: "i", j: "j", e: "e"}


@pytest.mark.parametrize("out", [(), (h,), (h, i, e), (h, e, i), (e, i, h), (i, j), (j, i)])
@pytest.mark.parametrize("carried", [((h, i, j), (h, e, j)), ((h, i, j), (h, i, j), (h, j, e)), ((j, i), (i, j), (h, e), (e, j))])
def test_it_is_an_einsum_in_whatever_order_and_of_rows_first(carried, out):
    rng = np.random.default_rng(0)
    wanted = tuple(a for a in out if any(a in ix for ix in carried))
    over = [a for a in SIZES if a not in wanted and any(a in ix for ix in carried)]
    for turned in itertools.product([False, True], repeat=len(carried)):
        arrays = [rng.standard_normal([SIZES[a] for a in ix]) for ix in carried]
        arrays = [np.asfortranarray(a) if t else a for a, t in zip(arrays, turned, strict=True)]
        found = contract(list(zip(arrays, carried, strict=True)), wanted, over, SIZES)
        names = ",".join("".join(LETTERS[a] for a in ix) for ix in carried) + "->" + "".join(LETTERS[a] for a in wanted)
        assert np.allclose(found, np.einsum(names, *arrays), rtol=1e-12, atol=1e-12)
        assert found.flags.c_contiguous
