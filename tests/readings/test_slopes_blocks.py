"""Bounds taken block by block of rows are those of the whole, whatever positions, look-ups and masks a list reads.

They may be a little smaller: what is greatest over a block, or a power of two in all of it, need not be in the whole.
"""

from __future__ import annotations

import numpy as np
import pytest

from symattn import arithmetic, variants
from symattn.definition import Definition
from symattn.program import Program, Statement, indices, size, tensor
from symattn.readings import floats as formats
from symattn.readings.blocks import rows_of
from symattn.readings.slopes import bounded
from symattn.verify import programs
from tests.support import rows
from tests.variants.entries import SPECIAL, numbers_for

T = tensor
i, j, c = indices("i j c")
n, m, d = size("n"), size("m"), size("d")


def same_in_blocks(monkeypatch, program, given, how, sizes=None, outputs=None):
    """The bounds of blocks of one row or two are those of the whole."""
    whole = bounded.bounds(program, given, how, outputs, sizes=sizes)
    monkeypatch.setattr(bounded, "BLOCK", 16)
    blocks = bounded.bounds(program, given, how, outputs, sizes=sizes)
    for name, a in whole.items():
        b = blocks[name]
        assert np.array_equal(a.value, b.value, equal_nan=True) or np.allclose(a.value, b.value, rtol=1e-12, equal_nan=True)
        for x, y in ((a.bound, b.bound), (a.own, b.own)):
            assert np.array_equal(np.isfinite(x), np.isfinite(y)), name
            there = np.isfinite(x)
            assert (y[there] <= x[there] * 1.001).all() and (y[there] >= x[there] * 0.9).all(), name


def arrays_of(program, name, kind=np.float32):
    sizes = {str(s): {"n": 5, "m": 7, "d": 4, "dv": 3, "dmodel": 4}.get(str(s), 2) for s in program.sizes}
    sizes |= {k: v for k, v in SPECIAL.get(name, {}).items() if k not in ("n", "m", "d", "dv")}
    given = numbers_for(program, sizes, 3)
    arrays = {x: np.vectorize(float, otypes=[float])(np.asarray(a)).astype(kind) for x, a in given.items()}
    return arrays | {x: np.asarray(given[x]).astype(np.int64) for x in program.discrete}, sizes


@pytest.mark.parametrize("name", rows())
def test_blocks_give_what_the_whole_gives(monkeypatch, name):
    program = variants.get(name).definition.program()
    arrays, sizes = arrays_of(program, name)
    same_in_blocks(monkeypatch, program, arrays, arithmetic.uniform("float32", "float32"), sizes)


def test_gradients_from_saved_outputs_are_taken_by_their_own_rows(monkeypatch):
    how = arithmetic.get("flash-bf16")
    part = programs.staged(programs.followed(variants.get("causal").definition.program(), how, gradient=True), ("O", "L"))
    arrays, sizes = arrays_of(part, "causal", formats.dtype_of("bfloat16"))
    index = {out: [str(r.index) for r in rows_of(part, (out,))] for out in part.outputs}
    assert "i" in index["dQ"] and "j" in index["dK"] and "j" not in index["dQ"] and "i" not in index["dV"]
    for out in part.outputs:
        same_in_blocks(monkeypatch, part, arrays, how, sizes, [out])
    assert not rows_of(part, ("dQ", "dK")) or all(str(r.index) not in "ij" for r in rows_of(part, ("dQ", "dK")))


def test_gradients_end_to_end_take_the_bounds_of_outputs_found_before(monkeypatch):
    how = arithmetic.get("flash-fp32")
    whole = programs.followed(Definition(heads=2).program(), how, gradient=True)
    arrays, sizes = arrays_of(whole, "heads")
    assert [str(r.index) for r in rows_of(whole, ("dK",))] == ["h"]  # in other blocks than the output that it reads
    same_in_blocks(monkeypatch, whole, arrays, how, sizes)
    alone = bounded.bounds(whole, arrays, how, ["dK"], sizes=sizes)["dK"].bound  # nothing is found before
    with_all = bounded.bounds(whole, arrays, how, sizes=sizes)["dK"].bound
    assert np.allclose(alone, with_all, rtol=1e-3)


def test_what_needs_other_rows_is_not_cut():
    shifted = Statement(T("y", i), T("x", i) + T("x", i - 1), where=i >= 1)
    assert not rows_of(Program((shifted,), {i: n}, ("y",), {"x": (n,)}), ("y",))
    looked_up = Statement(T("y", i, j), T("S", i, j) + T("b", i - j + m - 1), where=j <= i)
    (found,) = (
        r for r in rows_of(Program((looked_up,), {i: n, j: m}, ("y",), {"S": (n, m), "b": (n + m,)}), ("y",)) if r.index == i
    )
    assert dict(found.axes) == {"y": 0, "S": 0}
    turned = Program((Statement(T("a", i, j), T("S", i, j) * T("S", j, i)),), {i: n, j: n}, ("a",))
    assert not rows_of(turned, ("a",))
    summed = Program(
        (Statement(T("s", i), T("S", i, j), (j,)), Statement(T("t", i), T("s", i) + T("u", i))), {i: n, j: m}, ("t",)
    )
    assert [r.index for r in rows_of(summed, ("t",))] == [i]
