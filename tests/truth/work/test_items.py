"""Items of work: plain data, no more of the arrays than their blocks read, and the same parts however blocks are put together."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import sympy as sp

from symattn.readings.blockgrid import BlockGrid
from symattn.readings.cutting import partition_at
from symattn.truth.work.items import Item, item_of, perform
from tests.truth.work.jobs import BALLS, job


def grid_of(name: str = "causal", rows: int = 4) -> tuple[BlockGrid, Any]:
    program, inputs, sizes = job(name)
    numbers = {s: sizes[str(s)] for s in program.sizes}
    cut = partition_at(program, program.outputs, {s: 64 if str(s) in "nm" else 4 for s in program.sizes})
    assert cut is not None
    return BlockGrid(cut, numbers, {c.index: rows if c.index == cut.cuts[-1].index else 1 for c in cut.cuts}), inputs


def item(numbers: list[int], name: str = "causal") -> Item:
    grid, inputs = grid_of(name)
    return item_of(BALLS, grid, numbers, inputs, {})


def test_an_item_has_the_rows_and_keys_that_its_blocks_read() -> None:
    for number, keys in ((0, 4), (1, 8), (2, 12)):
        found = item([number])
        assert found.inputs["Q"].shape[:2] == (1, 4) and found.inputs["K"].shape[:2] == (1, keys)
    both = item([1, 2])
    assert both.inputs["Q"].shape[:2] == (1, 8) and both.inputs["K"].shape[:2] == (1, 12)


def test_an_item_is_plain_data_that_a_worker_gets_as_it_is() -> None:
    one = item([1, 2])
    sent = pickle.loads(pickle.dumps(one))
    assert sent.program == one.program and sent.numbers == (1, 2)
    a, b = perform(one), perform(sent)
    assert a.slices.keys() == b.slices.keys() and a.nodes.keys() == b.nodes.keys()
    assert all(np.array_equal(x, b.slices[k][n]) for k, v in a.slices.items() for n, x in v.items())
    assert all(x.dtype != object for v in a.slices.values() for x in v.values())
    assert all(x.dtype != object for v, _ in a.nodes.values() for x in v.values())


def test_parts_of_neighbours_come_back_as_one_node() -> None:
    alone = [perform(item([k])) for k in (0, 1)]
    both = perform(item([0, 1]))
    assert len(alone[0].nodes) == len(both.nodes) == 2  # dK and dV of the first batch
    assert {node for _, node in both.nodes} == {(1, 0)} and {node for d in alone for _, node in d.nodes} == {(0, 0), (0, 1)}


def test_no_block_of_a_long_sequence_holds_more_than_its_part() -> None:
    program = job()[0]
    long = {s: {"B": 2, "n": 8192, "m": 8192}.get(str(s), 64) for s in program.sizes}
    cut = partition_at(program, program.outputs, long)
    assert cut is not None
    from symattn.readings.blockgrid import widths

    grid = BlockGrid(cut, long, widths(cut, long, 1 << 18))
    block = grid.block(grid.count - 1)
    table = {sp.Symbol(n, **s.assumptions0): block.sizes[n] for s in cut.local.sizes for n in [str(s)] if n in block.sizes}
    elements = {s.name: int(np.prod([int(v.xreplace(table)) for v in cut.local.shape_of(s)])) for s in cut.local}
    pairs = [n for n in elements if len(cut.program[n].indices) == 3 and n not in ("O", "dQ", "dK", "dV")]
    assert len(pairs) > 5 and max(elements[n] for n in pairs) <= 1 << 18  # of 2^26 pairs of a batch
