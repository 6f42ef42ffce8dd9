"""The blocks of a cut program at given sizes: which values each has, what it is given, and where what it gives belongs.

Blocks are numbered in the order of a grid, outermost cut index first. How large they are follows from the sizes alone, so that
whoever evaluates them, in whatever order, evaluates the same ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import sympy as sp

from symattn.readings.blocks import pieces
from symattn.readings.partition import Partition
from symattn.readings.reach import Interval, reach
from symattn.readings.sizes import size_value

__all__ = ["Block", "BlockGrid", "Range", "widths"]

Range = tuple[int, int]
"""``start`` and ``stop`` of values of an index."""


@dataclass(frozen=True)
class Block:
    """One block.

    Parameters
    ----------
    number
        Its place among the blocks.
    place
        Its place along each cut index.
    ranges
        The values that it has of each cut and reached index.
    sizes
        The size symbols of the local program, by name.
    """

    number: int
    place: tuple[int, ...]
    ranges: Mapping[sp.Symbol, Range]
    sizes: Mapping[str, int]


def widths(partition: Partition, sizes: Mapping[sp.Symbol, int], points: int, rows: int = 1) -> dict[sp.Symbol, int]:
    """How many values of each cut index a block has, so that no tensor of it has more than about ``points`` elements.

    The innermost index has ``rows`` values at least, however many elements that makes.

    The innermost index is taken first: as many of its values as fit, then of the next.

    >>> from symattn.definition import Definition
    >>> from symattn.readings.partition import partition
    >>> program = Definition(lse=False).program(batch=True)
    >>> b, i = program["O"].indices[:2]
    >>> widths(partition(program, (b, i)), {s: 8 for s in program.sizes}, 100)
    {i: 8, b: 1}
    """
    length = {a: size_value(n, sizes) for a, n in partition.program.dims.items() if n.free_symbols <= sizes.keys()}
    cut = [c.index for c in partition.cuts]
    found = [s.indices for s in (partition.program[s.name] for s in partition.local) if cut and cut[-1] in s.indices]
    room = max(rows, points // max((prod(length[a] for a in axes if a not in cut) for axes in found), default=1))
    width: dict[sp.Symbol, int] = {}
    for a in reversed(cut):
        width[a] = min(length[a], room)
        room = max(1, room // length[a])
    return width


class BlockGrid:
    """All blocks of a cut program.

    Parameters
    ----------
    partition
        The cut program.
    sizes
        Size symbol of the program -> number.
    width
        The most values that a block has of each cut index; the values are dealt out as equally as can be.

    >>> from symattn.definition import Definition
    >>> from symattn.readings.partition import partition
    >>> program = Definition(causal="top-left", lse=False).program()
    >>> i = program["O"].indices[0]
    >>> blocks = BlockGrid(partition(program, (i,)), {s: 6 for s in program.sizes}, {i: 3})
    >>> blocks.count, blocks.block(0).ranges
    (2, {i: (0, 3), j: (0, 3)})
    """

    def __init__(self, partition: Partition, sizes: Mapping[sp.Symbol, int], width: Mapping[sp.Symbol, int]) -> None:
        self.partition = partition
        self.sizes = dict(sizes)
        self._blocks: dict[int, Block] = {}
        self._lengths = {a: size_value(partition.program.dims[a], sizes) for s in partition.program for a in s.domain}
        self.ranges = [list(pieces(self._lengths[c.index], width[c.index])) for c in partition.cuts]

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """How many blocks lie along each cut index."""
        return tuple(map(len, self.ranges))

    @property
    def count(self) -> int:
        """How many blocks there are."""
        return prod(self.shape)

    def block(self, number: int) -> Block:
        """The block of a number."""
        if number not in self._blocks:
            self._blocks[number] = self._made(number)
        return self._blocks[number]

    def _made(self, number: int) -> Block:
        place = tuple(int(k) for k in np.unravel_index(number, self.shape)) if self.shape else ()
        ranges = {c.index: self.ranges[axis][k] for axis, (c, k) in enumerate(zip(self.partition.cuts, place, strict=True))}
        box: dict[sp.Symbol, Interval] = {s: (n, n) for s, n in self.sizes.items()}
        box |= {a: (0, n - 1) for a, n in self._lengths.items()}
        box |= {a: (start, stop - 1) for a, (start, stop) in ranges.items()}
        for c in self.partition.reached:
            ranges[c.index] = reach(self.partition.conditions[c.index], c.index, self._lengths[c.index], box)
        moved = (*self.partition.cuts, *self.partition.reached)
        numbers = {s.name: n for s, n in self.sizes.items()}
        numbers |= {c.start.name: ranges[c.index][0] for c in moved}
        numbers |= {c.count.name: ranges[c.index][1] - ranges[c.index][0] for c in moved}
        wanted = {s.name for s in self.partition.local.sizes}
        return Block(number, place, ranges, {n: v for n, v in numbers.items() if n in wanted})

    def slices(self, name: str, block: Block) -> tuple[slice, ...]:
        """Where a block's part of a tensor lies in the whole: what an input is sliced by, and where a result belongs."""
        return tuple(slice(None) if a is None else slice(*block.ranges[a]) for a in self.partition.axes[name])

    def region(self, name: str, block: Block) -> tuple[slice, ...]:
        """Where all blocks that are added up with this one lie in the whole: the axes that no cut index has are whole."""
        cut = {c.index for c in self.partition.cuts}
        axes = self.partition.axes[name]
        return tuple(s if a in cut else slice(None) for a, s in zip(axes, self.slices(name, block), strict=True))

    def counts(self, name: str, block: Block) -> bool:
        """Whether a block's part of a tensor is wanted: of blocks that give the same, that of the first is."""
        absent = self.partition.absent(name)
        return all(k == 0 or c.index not in absent for c, k in zip(self.partition.cuts, block.place, strict=True))

    def leaf(self, name: str, block: Block) -> tuple[tuple[int, ...], int]:
        """Which sum of a partial tensor a block belongs to, and its number among those that are added up."""
        bound = self.partition.bound(name)
        axes = [(k, n, c.index in bound) for c, k, n in zip(self.partition.cuts, block.place, self.shape, strict=True)]
        inner = [(k, n) for k, n, summed in axes if summed]
        number = int(np.ravel_multi_index([k for k, _ in inner], [n for _, n in inner]))
        return tuple(k for k, _, summed in axes if not summed), number

    def leaves(self, name: str) -> int:
        """How many blocks are added up in each sum of a partial tensor."""
        bound = self.partition.bound(name)
        return prod(n for c, n in zip(self.partition.cuts, self.shape, strict=True) if c.index in bound)
