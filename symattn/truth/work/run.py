"""A job done in blocks: cut, handed to an executor item by item, put together by number, saved now and then.

What comes out does not depend on the executor, on how many workers it has, on the order in which they finish, on how many blocks
are in an item, or on whether the run was interrupted: the blocks follow from the program and its sizes, each is evaluated by
itself, and sums are added in a fixed tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sp

from symattn.errors import ProgramError
from symattn.program import Program
from symattn.readings.blockgrid import BlockGrid, widths
from symattn.readings.cutting import partition_at
from symattn.readings.partition import Partition, uncut
from symattn.readings.sizes import find_sizes, size_value
from symattn.truth.tiers import Found
from symattn.truth.values import Values
from symattn.truth.work.checkpoint import Checkpoint, State, digest
from symattn.truth.work.crew import Crew, Work
from symattn.truth.work.engines import Engine
from symattn.truth.work.items import Done, Item, item_of
from symattn.truth.work.packed import unpacked
from symattn.truth.work.sums import Part, Sum, placed

__all__ = ["Work", "evaluate"]

Array = npt.NDArray[Any]


def evaluate(
    engine: Engine,
    program: Program,
    inputs: Mapping[str, Any],
    *,
    sizes: Mapping[sp.Symbol | str, int] | None = None,
    outputs: tuple[str, ...] | None = None,
    work: Work | None = None,
) -> dict[str, Found] | str:
    """Tensors of a program by an engine, in blocks.

    Parameters
    ----------
    engine
        What evaluates a block.
    program, inputs, sizes
        As for the readings.
    outputs
        Names of tensors; by default the outputs of the program.
    work
        Where and how it is done.

    Returns
    -------
    dict or text
        The values of each tensor; text where the engine does not take a block, with its reason.

    Raises
    ------
    FileFormatError
        When the checkpoint is damaged, or is that of another problem.
    WorkerError
        When no worker is to be had, or they are lost again and again.
    KeyboardInterrupt
        On Ctrl-C, after the items that are being done have come in and been saved; a second one does not wait for them.

    >>> import numpy as np
    >>> from symattn.definition import Definition
    >>> from symattn.truth.work.engines import engine_for
    >>> q = np.array([[0.5], [1.0]])
    >>> found = evaluate(engine_for("balls", 100), Definition().program(), {"Q": q, "K": q, "V": q}, work=Work(workers=1))
    >>> found["O"].values.balls[0, 0].str(10, radius=False)
    '0.7810882504'
    """
    wanted = program.outputs if outputs is None else outputs
    lean = program.with_statements(program.statements, wanted).live()
    given = {n: inputs[n] for n in lean.inputs if n in inputs}
    arrays = {n: _array(v) for n, v in given.items()}
    found = find_sizes(lean, {n: v.shape for n, v in arrays.items()}, {k: v for k, v in (sizes or {}).items() if _has(lean, k)})
    work = work or Work()
    problem = ""
    if work.checkpoint is not None:
        problem = digest(lean, arrays, {str(s): n for s, n in found.items()})
    checkpoint = Checkpoint(work.checkpoint, problem, work.every)
    with Crew(work) as crew:
        try:
            return _Run(engine, crew, checkpoint, found).values(lean, arrays, {}, engine.text)
        except _DeclinedError as why:
            return str(why)


def _has(program: Program, size: sp.Symbol | str) -> bool:
    return str(size) in map(str, program.sizes)


def _array(x: Any) -> Array:
    a = np.asarray(x)
    return a if a.dtype.kind in "biufV" else np.asarray(x, dtype=object)


class _DeclinedError(Exception):
    """The engine does not take a block."""


class _Run:
    """One run: programs one after another, each cut into blocks."""

    def __init__(self, engine: Engine, crew: Crew, checkpoint: Checkpoint, sizes: Mapping[sp.Symbol, int]) -> None:
        self.engine, self.crew, self.checkpoint, self.sizes = engine, crew, checkpoint, sizes

    def values(self, program: Program, inputs: Mapping[str, Array], known: Mapping[str, Values], path: str) -> dict[str, Found]:
        """The outputs of a program: what comes before the blocks, the blocks, and what waits for them."""
        cut = partition_at(program, program.outputs, self.sizes, passing=self.engine.passes)
        if cut is None:
            return self._blocks(uncut(program), inputs, known, path)
        found: dict[str, Found] = {}
        if cut.first is not None:
            found |= self.values(cut.first, inputs, known, f"{path}/first")
        have = {**known, **{n: f.values for n, f in found.items()}}
        found |= self._blocks(cut, inputs, have, path)
        if cut.rest is not None:
            have |= {n: f.values for n, f in found.items()}
            found |= self.values(cut.rest, inputs, have, f"{path}/rest")
        return {n: found[n] for n in program.outputs}

    def _blocks(self, cut: Partition, inputs: Mapping[str, Array], known: Mapping[str, Values], path: str) -> dict[str, Found]:
        grid = BlockGrid(cut, self.sizes, widths(cut, self.sizes, self.engine.points, self.engine.rows))
        state = self.checkpoint.state(path, grid.count)

        def item(numbers: list[int]) -> Item:
            return item_of(self.engine, grid, numbers, inputs, known)

        def take(done: Done) -> None:
            if done.declined is not None:
                raise _DeclinedError(done.declined)
            with self.checkpoint.changing():
                _merge(state, done, grid, self.engine.bits)

        left = [k for k in range(grid.count) if k not in state.done]
        try:
            self.crew.do(item, left, take, ", ".join(cut.given_back), grid.count)
        finally:
            self.checkpoint.save()
        if len(state.done) != grid.count:
            raise ProgramError(f"{grid.count - len(state.done)} of {grid.count} blocks are missing")
        return {n: Found(_gathered(grid, n, state), state.assumptions.get(n)) for n in cut.given_back}


def _merge(state: State, done: Done, grid: BlockGrid, bits: int) -> None:
    """Take what an item gave: its slices by number, its parts into their sums."""
    twice = state.done & set(done.numbers)
    if twice:
        raise ProgramError(f"block {min(twice)} came twice")
    for (slot, node), (values, start) in done.nodes.items():
        name = slot[0]
        if slot not in state.sums:
            state.sums[slot] = Sum(grid.leaves(name), grid.partition.partial[name], bits)
        state.sums[slot].put(node, Part(unpacked(values), start))
    state.slices |= done.slices
    state.assumptions |= done.assumptions
    state.done |= set(done.numbers)


def _gathered(grid: BlockGrid, name: str, state: State) -> Values:
    """A whole tensor: its slices side by side, or its sums."""
    program, partial = grid.partition.program, name in grid.partition.partial
    shape = tuple(size_value(n, grid.sizes) for n in program.shapes[name])
    parts: dict[tuple[int, ...], Part] = {}
    for b in (b for b in map(grid.block, range(grid.count)) if grid.counts(name, b)):
        at = grid.region(name, b) if partial else grid.slices(name, b)
        start = tuple(s.start or 0 for s in at)
        if start in parts:
            continue
        if partial:
            box = tuple(n if s.start is None else s.stop - s.start for s, n in zip(at, shape, strict=True))
            root = state.sums[name, grid.leaf(name, b)[0]].root()
            parts[start] = Part(placed([root], start, box, grid.partition.partial[name]), start)
        else:
            parts[start] = Part(unpacked(state.slices[name, b.number]), start)
    return placed(list(parts.values()), (0,) * len(shape), shape, program[name].reduce if program[name].over else "sum")
