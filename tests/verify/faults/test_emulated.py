"""Faults of range, format and tile: planted in kernels that share no code with it, each is explained by its row."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from symattn.verify.diagnosis.search import Search
from symattn.verify.faults import emulated, emulated_backward, emulated_rounding
from symattn.verify.judge import run_case
from symattn.verify.kernels.registry import resolve
from tests.quality import backward_rows, forward_rows, further_rows
from tests.quality.kernels.correct import CORRECT
from tests.quality.row import Row
from tests.quality.running import observed, pack, reference

FAULTS = {f.id: f for f in (*emulated.ROWS, *emulated_rounding.ROWS, *emulated_backward.ROWS)}
PLANTED = {r.id: r for r in (*forward_rows.ROWS, *backward_rows.ROWS, *further_rows.ROWS)}
# planted row -> the fault that explains it, what its label holds, and the kernels in which
EXPLAINED = {
    "F25": ("F25", "", ("three-pass", "online-16", "exp2")),
    "F27": ("F27", "-10000 instead", ("eager", "three-pass", "online-16", "split", "exp2")),
    "F32": ("F32", "NaN", ("eager", "three-pass", "online-16", "split", "exp2")),
    "F32b": ("F32", "mean", ("eager", "three-pass", "online-16", "split", "exp2")),
    "F34": ("F34", "", ("three-pass", "online-16", "split", "exp2")),
    "F42": ("F42", "of the output, tile ", ("online-16", "exp2")),
    "F43": ("F43", "tile ", ("online-16", "exp2")),
    "F45": ("F45", "-50000", ("three-pass", "online-16", "exp2")),
    "F46": ("F46", "", ("three-pass", "online-16", "exp2")),
    "F47": ("F47", "", ("three-pass", "online-16", "exp2")),
    "F49": ("F49", "after every key", ("eager", "three-pass", "online-16", "exp2")),
    "F55": ("F55", "threshold 5.55, tile 16", ("lagging-maximum",)),
    "F56": ("F56", "threshold 5.55, tile 16", ("lagging-maximum",)),
    "B15": ("B15", "16", ("online-16", "exp2", "split")),
    "B22": ("B22", "tile 16", ("online-16", "online-16-backwards")),
    "B25": ("B25", "", ("online-16", "exp2", "split", "queries-first")),
    "B26": ("B26", "float16", ("online-16", "exp2", "split")),
    "B28": ("B28", "16", ("online-16", "exp2", "split")),
    "B29": ("B29", "", ("online-16", "exp2", "split")),
    "X02": ("F57", "tile ", ("online-16", "exp2")),
    "X03": ("F58", "of the sum, tile ", ("online-16", "exp2")),
    "X09": ("F140", "bfloat16", ("three-pass", "online-16", "split")),
    "X10": ("F142", "bfloat16", ("online-16",)),
    "X11": ("F141", "bfloat16", ("three-pass", "online-16")),
    "X25": ("F145", "16", ("three-pass", "online-16", "split", "exp2")),
    "X28": ("F143", "float8_e4m3fn", ("three-pass", "online-16")),
    "Y04": ("B52", "16", ("online-16", "exp2", "split")),
    "Y15": ("B50", "bfloat16, tile 16", ("online-16",)),
    "Y09": ("B51", "16", ("online-16", "exp2", "split")),
    "Y11": ("B26", "bfloat16", ("online-16", "exp2", "split")),
}
OTHERS = ("F05", "F13", "F33", "F40", "X13", "X15", "B01", "B16")
"""Faults that are none of these."""


@functools.lru_cache(maxsize=8)
def cases(id: str, plan: str, dtype: str):
    row = PLANTED[id]
    wanted = [*row.kinds[:2], "normal"] if len(row.kinds) < 5 else ["tall", "normal", "square"]
    applies = pack(row.definition, dtype)
    return observed(row, plan, dtype, [k for k in dict.fromkeys(wanted) if k in applies])


def labels(id: str, fault: str, plan: str, dtype: str) -> list[str]:
    found = Search(cases(id, plan, dtype), [FAULTS[fault]]).run()
    return [h.label for e in found if e.faults and not e.open for h in (*e.forward, *e.backward)]


def runs(id: str, row: Row):
    return [(id, plan, dtype) for plan, dtype in row.runs() if plan in EXPLAINED[id][2]]


QUICK = [runs(id, PLANTED[id])[k % len(runs(id, PLANTED[id]))] for k, id in enumerate(EXPLAINED)]
ALL = [r for id in EXPLAINED for r in runs(id, PLANTED[id])]


@pytest.mark.parametrize("id, plan, dtype", QUICK)
def test_it_is_explained(id, plan, dtype):
    fault, label, _ = EXPLAINED[id]
    assert any(label in x for x in labels(id, fault, plan, dtype))


@pytest.mark.slow
@pytest.mark.parametrize("id, plan, dtype", ALL)
def test_it_is_explained_in_every_kernel_and_dtype(id, plan, dtype):
    fault, label, _ = EXPLAINED[id]
    assert any(label in x for x in labels(id, fault, plan, dtype))


@pytest.mark.parametrize("id", ["F42", "X02", "X03"])
def test_the_tile_is_told(id):
    for plan, tile in (("online-16", 16), ("exp2", 32)):
        found = labels(id, EXPLAINED[id][0], plan, "float32")
        assert found and all(x.endswith(f"tile {tile}") for x in found)


def clamped(query, key, value, attn_mask, enable_gqa=False):
    """An additive mask held in a format without infinities."""
    wide = np.float32 if query.dtype.itemsize < 4 else query.dtype.type
    q, k, v, mask = (x.astype(wide) for x in (query, key, value, attn_mask))
    k, v = (x.repeat(q.shape[1] // k.shape[1], 1) for x in (k, v))
    z = q @ k.swapaxes(2, 3) * wide(q.shape[3] ** -0.5) + np.maximum(mask, wide(-65504))
    e = np.exp(z - z.max(3, keepdims=True))
    return (e @ v / e.sum(3, keepdims=True)).astype(query.dtype)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_an_additive_mask_that_is_clamped_is_explained(dtype):
    clamped.arrays, seen = "numpy", []
    case = run_case(resolve(clamped), reference({"attn_mask": "additive"}, "normal", dtype), "normal", backward=False, seen=seen)
    assert case.verdict == "fail"
    assert any("added to the score" in h.label for e in Search(seen, [FAULTS["F27"]]).run() if e.faults for h in e.forward)


@pytest.mark.parametrize("id", OTHERS)
def test_no_emulation_explains_another_fault(id):
    row = PLANTED[id]
    plan, dtype = next(r for r in row.runs() if r == ("online-16", "bfloat16"))
    found = Search(cases(id, plan, dtype), list(FAULTS.values()), budget=0).run()
    assert not [e for e in found if e.faults]


def test_a_correct_kernel_is_explained_by_nothing_else():
    row = Row("F00", "nothing", {}, {}, ("normal", "long"))
    for plan in ("online-16", "eager"):
        found = observed(row, plan, "bfloat16", row.kinds)
        assert not any(o.failing for o in found)
        assert [e for e in Search(found, list(FAULTS.values())).run() if e.faults] == []


def test_rows_say_where_they_show():
    for f in FAULTS.values():
        assert f.wrong and f.right and f.look and f.shows, f.id
        assert f.kind in ("range", "arithmetic", "mathematics") and f.backward_only == (f.id[0] == "B")
    assert all(plan in CORRECT for _, _, plans in EXPLAINED.values() for plan in plans)
