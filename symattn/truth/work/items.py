"""An item of work: some blocks in a row as plain data, and the function that does it, the same in every process.

What comes back is plain data as well: the slices that its blocks give, and of the tensors that are added up the whole nodes of
the tree (:mod:`symattn.truth.work.sums`) that its blocks make. It does not depend on which blocks are in one item.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

from symattn.program import Program, Reduce
from symattn.readings.blockgrid import BlockGrid
from symattn.truth.tiers import Found
from symattn.truth.values import Values
from symattn.truth.work.engines import Engine
from symattn.truth.work.packed import Packed, packed, unpacked
from symattn.truth.work.sums import Node, Part, Sum

__all__ = ["Done", "Item", "Leaf", "Slot", "item_of", "perform"]

Array = npt.NDArray[Any]
Slot = tuple[str, tuple[int, ...]]
"""A sum: the tensor, and the place of its blocks along the cut indices that are not added up."""


@dataclass(frozen=True)
class Leaf:
    """Where the part of a block goes: which sum, and which number in it."""

    slot: Slot
    number: int
    leaves: int
    reduce: Reduce
    start: tuple[int, ...]


@dataclass(frozen=True)
class Piece:
    """One block of an item: its number and sizes, how the item's arrays are sliced for it, and what is wanted of it."""

    number: int
    sizes: Mapping[str, int]
    slices: Mapping[str, tuple[slice, ...]]
    whole: tuple[str, ...]
    leaves: Mapping[str, Leaf]


@dataclass(frozen=True)
class Item:
    """Some blocks in a row.

    Parameters
    ----------
    engine
        What evaluates them.
    program
        The program of a block.
    inputs, known
        Arrays as far as the blocks read them, and values that an earlier program gave.
    pieces
        The blocks.
    """

    engine: Engine
    program: Program
    inputs: Mapping[str, Array]
    known: Mapping[str, Packed]
    pieces: tuple[Piece, ...]

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of the blocks."""
        return tuple(p.number for p in self.pieces)


@dataclass(frozen=True)
class Done:
    """What an item gives.

    Parameters
    ----------
    numbers
        The blocks that are in it.
    slices
        Tensor and number of a block -> its values.
    nodes
        Sum and node -> its values and where they start.
    assumptions
        Tensor -> what its values rest on.
    declined
        Why the engine did not take it; None where it did.
    seconds
        Processor time that it took.
    """

    numbers: tuple[int, ...]
    slices: Mapping[tuple[str, int], Packed] = field(default_factory=dict)
    nodes: Mapping[tuple[Slot, Node], tuple[Packed, tuple[int, ...]]] = field(default_factory=dict)
    assumptions: Mapping[str, str] = field(default_factory=dict)
    declined: str | None = None
    seconds: float = 0.0


def item_of(
    engine: Engine, grid: BlockGrid, numbers: Sequence[int], inputs: Mapping[str, Array], known: Mapping[str, Values]
) -> Item:
    """Some blocks with the parts of the arrays that they read, each part once."""
    partition, blocks = grid.partition, [grid.block(k) for k in numbers]
    read = partition.local.inputs
    boxes = {n: [grid.slices(n, b) for b in blocks] for n in read}
    hull = {n: tuple(_hull([box[k] for box in found]) for k in range(len(found[0]))) for n, found in boxes.items()}
    pieces = []
    for b, at in zip(blocks, range(len(blocks)), strict=True):
        slices = {n: tuple(_within(s, h) for s, h in zip(boxes[n][at], hull[n], strict=True)) for n in read}
        leaves = {}
        for n in partition.partial:
            if grid.counts(n, b):
                place, number = grid.leaf(n, b)
                start = tuple(s.start or 0 for s in grid.slices(n, b))
                leaves[n] = Leaf((n, place), number, grid.leaves(n), partition.partial[n], start)
        whole = tuple(n for n in partition.whole if grid.counts(n, b))
        pieces.append(Piece(b.number, b.sizes, slices, whole, leaves))
    given = {n: np.array(_part(hull[n], inputs[n]), order="C") for n in read if n in inputs}
    more = {n: packed(known[n].each(partial(_part, hull[n]))) for n in read if n not in inputs}
    return Item(engine, partition.local, given, more, tuple(pieces))


def _part(at: tuple[slice, ...], array: Array) -> Array:
    """A box of an array, as an array even where it has no axis."""
    index: Any = (*at, ...)
    return array[index]


def _hull(slices: Sequence[slice]) -> slice:
    if slices[0].start is None:
        return slices[0]
    return slice(min(s.start for s in slices), max(s.stop for s in slices))


def _within(s: slice, hull: slice) -> slice:
    return s if s.start is None else slice(s.start - hull.start, s.stop - hull.start)


@cache
def _threads() -> ThreadpoolController:
    return ThreadpoolController()


def perform(item: Item) -> Done:
    """The work of an item, with one BLAS thread: its number would change the bits."""
    began = time.process_time()
    evaluate = item.engine.load()
    known = {n: unpacked(v) for n, v in item.known.items()}
    slices: dict[tuple[str, int], Packed] = {}
    sums: dict[Slot, Sum] = {}
    assumptions: dict[str, str] = {}
    with _threads().limit(limits=1, user_api="blas"):
        for piece in item.pieces:
            wanted = (*piece.whole, *piece.leaves)
            found = evaluate(
                item.program,
                {n: _part(piece.slices[n], x) for n, x in item.inputs.items()},
                known={n: v.each(partial(_part, piece.slices[n])) for n, v in known.items()},
                sizes=piece.sizes,
                outputs=item.program.outputs,
                **item.engine.arguments,
            )
            if isinstance(found, str):
                return Done(item.numbers, declined=found)
            assumptions |= {n: v.assumption for n, v in found.items() if n in wanted and v.assumption is not None}
            slices |= {(n, piece.number): packed(found[n].values) for n in piece.whole}
            _add(sums, piece, found, item.engine.bits)
    nodes = {(slot, node): (packed(p.values), p.start) for slot, s in sums.items() for node, p in s.nodes.items()}
    return Done(item.numbers, slices, nodes, assumptions, None, time.process_time() - began)


def _add(sums: dict[Slot, Sum], piece: Piece, found: Mapping[str, Found], bits: int) -> None:
    """The parts of a block, each put into its sum."""
    for name, leaf in piece.leaves.items():
        if leaf.slot not in sums:
            sums[leaf.slot] = Sum(leaf.leaves, leaf.reduce, bits)
        sums[leaf.slot].put((0, leaf.number), Part(found[name].values, leaf.start))
