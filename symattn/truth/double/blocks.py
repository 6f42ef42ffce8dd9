"""A program block by block: the tensors of a block fit the cache and are forgotten, what blocks give is put together.

How a program is cut is :mod:`symattn.readings.partition`'s; a block is a program again. What is given back lies in whole arrays,
with an error for every element; a partial sum is added with one more rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import Any

import sympy as sp

from symattn.program import Program
from symattn.readings.blockgrid import BlockGrid
from symattn.readings.cutting import partition_at
from symattn.readings.partition import Partition
from symattn.readings.sizes import size_value
from symattn.truth.double.approx import Approx, Array
from symattn.truth.double.functions import Library
from symattn.truth.double.gathered import Gathered, as_approx, light
from symattn.truth.double.statements import Statements

__all__ = ["POINTS", "Run"]

POINTS = 1 << 20
"""Elements of the largest array of a block: a few such arrays at a time stay in the cache."""

SMALL = 1 << 16
"""Elements of the largest array up to which a program is never cut, though conditions might leave blocks only a part of it."""

LEFT_OUT = 4
"""Blocks at least where conditions leave each only a part of an index: of a causal mask 5/8 are evaluated then."""

LEAST = 1 << 18
"""Elements of the largest array of a block that are worth its overhead."""

Numbers = dict[str, "Approx | Gathered"]


class Run:
    """Evaluations of a program and of its parts.

    Parameters
    ----------
    given
        The inputs as exact arrays.
    library, used
        Where functions come from, and the names of those that were used.
    points
        Elements of the largest array of a block.
    progress
        Called with the number of blocks that are done and of all.
    """

    def __init__(
        self,
        given: Mapping[str, Array],
        library: Library,
        used: set[str],
        points: int = POINTS,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.given, self.library, self.used = given, library, used
        self.points, self.progress = points, progress

    def cut(self, program: Program, known: Numbers, sizes: Mapping[sp.Symbol, int]) -> Numbers:
        """The tensors that a program gives, cut where it is too large for one block."""
        plan = planned(program, tuple(sizes.items()), self.points)
        if plan.partition is not None:
            return self.parted(plan, plan.partition, known, sizes)
        inputs: Numbers = {n: self.shared(known[n]) for n in program.inputs}
        statements = self.statements(program, inputs, self.given, sizes, plan.memo, {"pool": plan.pool})
        made = statements.run()
        found: Numbers = {n: light(made[n]) for n in program.outputs}
        statements.release(keep=program.outputs)
        return found

    def statements(
        self,
        program: Program,
        known: Numbers,
        given: Mapping[str, Any],
        sizes: Mapping[sp.Symbol, int],
        memo: dict[Any, Any],
        scratch: dict[Any, Any],
    ) -> Statements:
        """The evaluation of a program as a whole."""
        inputs = {n: as_approx(known[n]) for n in program.inputs}
        return Statements(program, sizes, given, inputs, self.library, self.used, memo, scratch)

    def parted(self, plan: Plan, p: Partition, known: Numbers, sizes: Mapping[sp.Symbol, int]) -> Numbers:
        """What a program gives, before the blocks, block by block and after them."""
        found = dict(known)
        if p.first is not None:
            found |= self.cut(p.first, found, sizes)
        gathered = {n: Gathered(shape, p.partial.get(n)) for n, shape in plan.shapes.items()}
        scratch: dict[Any, Any] = {"pool": plan.pool}
        for k, piece in enumerate(plan.pieces):
            self.block(plan, p.local, piece, found, gathered, scratch)
            if self.progress is not None:
                self.progress(k + 1, len(plan.pieces))
        found |= gathered
        if p.rest is not None:
            found |= self.cut(p.rest, found, sizes)
        return found

    def block(
        self,
        plan: Plan,
        local: Program,
        piece: Piece,
        found: Numbers,
        gathered: Mapping[str, Gathered],
        scratch: dict[Any, Any],
    ) -> None:
        """One block: its tensors from slices, put where they belong or added to what there is."""
        known: Numbers = {}
        given = {}
        for n in local.inputs:
            place = piece.slices[n]
            cut = any(s != slice(None) for s in place)
            known[n] = _sliced(as_approx(found[n]), place) if cut else self.shared(found[n])
            if n in self.given:
                given[n] = self.given[n][place] if cut else self.given[n]
        statements = self.statements(local, known, given, piece.sizes, plan.memo, scratch)
        made = statements.run()
        for n in piece.wanted:
            gathered[n].put(made[n], piece.slices[n])
        statements.release()

    @staticmethod
    def shared(a: Approx | Gathered) -> Approx:
        """A tensor that all blocks read: its norms are found once."""
        a = as_approx(a)
        if a.norms is None:
            a.norms = {}
        return a


@dataclass(frozen=True)
class Piece:
    """A block: its sizes, where its inputs and results lie in the whole, and which of its results count."""

    sizes: Mapping[sp.Symbol, int]
    slices: Mapping[str, tuple[slice, ...]]
    wanted: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """A program cut at some sizes: its parts, its blocks, the shapes of what these give; one that is left whole has no parts.

    ``memo`` is what is found of it on the way. ``pool`` holds the arrays of a block for the next one, here or in another
    evaluation: memory that is asked for anew takes as long to come as a matrix product to fill it.
    """

    partition: Partition | None = None
    pieces: tuple[Piece, ...] = ()
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    memo: dict[Any, Any] = field(default_factory=dict)
    pool: dict[int, list[Any]] = field(default_factory=dict)


@lru_cache(maxsize=8)
def planned(program: Program, sizes: tuple[tuple[sp.Symbol, int], ...], points: int) -> Plan:
    """How a program is cut so that no array of a block has more than about so many elements."""
    known = dict(sizes)
    most = _most(program, known)
    p = partition_at(program, program.outputs, known) if most > min(points, SMALL) else None
    if p is None or (most <= points and not p.reached):
        return Plan()
    blocks = BlockGrid(p, known, widths_of(p, known, min(points, max(most // LEFT_OUT, LEAST)) if p.reached else points))
    names = (*p.local.inputs, *p.given_back)
    pieces = [
        Piece(
            {s: block.sizes[s.name] for s in p.local.sizes},
            {n: blocks.slices(n, block) for n in names},
            tuple(n for n in p.given_back if blocks.counts(n, block)),
        )
        for block in map(blocks.block, range(blocks.count))
    ]
    return Plan(p, tuple(pieces), {n: tuple(size_value(a, known) for a in p.program.shapes[n]) for n in p.given_back})


def widths_of(p: Partition, sizes: Mapping[sp.Symbol, int], points: int) -> dict[sp.Symbol, int]:
    """How many values of each cut index a block has, so that no array of it has more than about ``points`` elements.

    What does not depend on the cut indices (a part of a sum over the queries) has its size in any case and does not count.
    """
    cut = [c.index for c in p.cuts]
    length = {a: size_value(p.program.dims[a], sizes) for s in p.program for a in (*s.domain, *cut)}
    rows = [1]
    for s in (p.program[s.name] for s in p.local):
        axes = s.indices if _product(s) else s.domain
        if cut[-1] in axes:
            rows.append(prod(length[a] for a in axes if a not in cut))
    room, found = max(1, points // max(rows)), {}
    for a in reversed(cut):
        found[a] = min(length[a], room)
        room = max(1, room // length[a])
    return found


def _most(program: Program, sizes: Mapping[sp.Symbol, int]) -> int:
    """The elements of the largest array that a program needs."""
    length = {a: size_value(program.dims[a], sizes) for s in program for a in s.domain}
    return max(prod(length[a] for a in (s.indices if _product(s) else s.domain)) for s in program)


def _product(s: Any) -> bool:
    """Whether a statement is a sum of products, which forms no array of its whole grid."""
    return bool(s.over) and s.reduce == "sum" and isinstance(s.expr, sp.Mul)


def _sliced(a: Approx, place: tuple[slice, ...]) -> Approx:
    """A part of a tensor; a coefficient for the whole of an axis is one for a part of it."""

    def f(v: Array) -> Array:
        if v.shape == a.value.shape:
            return v[place]
        return v[tuple(slice(None) if n == 1 else s for s, n in zip(place, v.shape, strict=True))]

    return a.mapped(f)
