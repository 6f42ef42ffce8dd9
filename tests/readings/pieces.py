"""A cut program put together from its pieces, in plain loops: what the tests of the partition compare with the whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from symattn.readings.blockgrid import BlockGrid

Evaluate = Callable[..., dict[str, Any]]
"""``evaluate(program, inputs, known, sizes)``."""
EMPTY = {"sum": 0, "prod": 1, "max": None}


def sized(sizes: Mapping[Any, int], program: Any) -> dict[str, int]:
    """Those sizes that a program has."""
    wanted = {str(s) for s in program.sizes}
    return {str(s): int(n) for s, n in sizes.items() if str(s) in wanted}


def put_together(grid: BlockGrid, inputs: Mapping[str, Any], evaluate: Evaluate, combine: Mapping[str, Any], zero: Any) -> dict:
    """Every output of the cut program, the blocks one after another.

    ``combine`` has a function of two numbers for each way to reduce, and ``zero`` makes a number of 0, 1 or None (-oo).
    """
    p = grid.partition
    known: dict[str, Any] = {}

    def run(program: Any, sizes: Mapping[Any, int], cut: Callable[[str, Any], Any]) -> dict[str, Any]:
        given = {n: cut(n, inputs[n]) for n in program.inputs if n in inputs}
        more = {n: cut(n, known[n]) for n in program.inputs if n not in inputs}
        found = evaluate(program, given, more, sized(sizes, program))
        return {n: found[n] for n in program.outputs}

    if p.first is not None:
        known |= run(p.first, grid.sizes, lambda n, x: x)
    parts: dict[str, Any] = {}
    for number in range(grid.count):
        block = grid.block(number)
        got = run(p.local, block.sizes, lambda n, x: np.asarray(x)[(*grid.slices(n, block), ...)])
        for name, value in got.items():
            shape = [int(n.xreplace(dict(grid.sizes))) for n in p.program.shapes[name]]
            statement = p.program[name]
            if name not in parts:
                parts[name] = np.empty(shape, dtype=object)
                parts[name].fill(zero(EMPTY[statement.reduce] if statement.over else 0))
            if grid.counts(name, block):
                at = grid.slices(name, block)
                if name in p.partial:
                    value = np.frompyfunc(combine[statement.reduce], 2, 1)(parts[name][at], value)
                parts[name][at] = value if np.ndim(value) else np.asarray(value)[()]
    known |= parts
    if p.rest is not None:
        known |= run(p.rest, grid.sizes, lambda n, x: x)
    return {n: known[n] for n in p.program.outputs}
