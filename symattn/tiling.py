"""Tiles of an index: ``j = position(t, r)``, a one-to-one map of the places of all tiles to the values of ``j``.

A statement over ``j`` becomes one over the tile ``t`` and the place ``r`` in it, where the position is a value of ``j`` at all:
the last tile may be partial. That the map is one-to-one is division with remainder, ``j = t*Bc + r`` with ``r < Bc``; tiles that
are visited in another order are a permutation of ``t`` on top of it. This is the only fact about tiles that a proof needs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import sympy as sp

from symattn.errors import ProgramError
from symattn.indexed import Tensor, all_reads, integer_symbols, name_of, reads, subscripts_of, tensor
from symattn.program import Statement

__all__ = ["Tiles", "one_to_one", "tiled"]


@dataclass(frozen=True)
class Tiles:
    """The tiles of an index.

    Parameters
    ----------
    index
        The index j that is cut.
    axes
        What stands for it: the tile ``t``, and the place ``r`` in it. One index alone: each value is a tile.
    position
        The value of j at a place of a tile. It may depend on other indices: the order in which tiles are visited.
    inside
        Where the position is a value of j.
    block
        The size of a tile.

    >>> i, j, t, r = sp.symbols("i j t r", integer=True)
    >>> m = sp.Symbol("m", integer=True, positive=True)
    >>> Tiles.of(j, t, r, 2, m).position, Tiles.of(j, t, r, 2, m).inside, Tiles.count(m, 2)
    (r + 2*t, r + 2*t < m, ceiling(m/2))
    """

    index: sp.Symbol
    axes: tuple[sp.Symbol, ...]
    position: sp.Expr
    inside: sp.Basic = sp.true
    block: sp.Expr = sp.S.One

    @classmethod
    def of(
        cls,
        j: sp.Symbol,
        t: sp.Symbol,
        r: sp.Symbol,
        block: sp.Expr | int,
        length: sp.Expr,
        visited: sp.Expr | None = None,
    ) -> Tiles:
        """Tiles of ``block`` values of ``j``, of which there are ``length``; ``visited`` is the tile that step t visits."""
        width = sp.sympify(block)
        position = width * (t if visited is None else visited) + r
        return cls(j, (t, r), position, sp.Lt(position, length), width)

    @staticmethod
    def count(length: sp.Expr, block: sp.Expr | int) -> sp.Expr:
        """How many tiles cover ``length`` values."""
        return sp.ceiling(length / sp.sympify(block))

    @property
    def tile(self) -> sp.Symbol:
        """The index of the tile."""
        return self.axes[0]

    @property
    def places(self) -> tuple[sp.Symbol, ...]:
        """The index of the place in a tile; none where each value is a tile."""
        return self.axes[1:]

    def condition(self, where: sp.Basic) -> sp.Basic:
        """A condition on j as one on the place."""
        return sp.And(self.inside, where.xreplace({self.index: self.position}))

    def read(self, e: sp.Basic, cut: Collection[str] = ()) -> sp.Basic:
        """An expression at the place; tensors in ``cut`` have the axes of the tile in place of j.

        Raises
        ------
        ProgramError
            When a tensor that is cut is read at another position than j.
        """
        j = self.index
        if self.axes == (j,):
            return e
        table: dict[sp.Basic, sp.Basic] = {}
        for x in reads(e):
            if name_of(x) not in cut:
                continue
            if any(a.has(j) and a != j for a in subscripts_of(x)) or j not in subscripts_of(x):
                raise ProgramError(f"`{x}` is read at another position than {j}; a program by tiles has it tile by tile")
            table[x] = self.target(x)
        held = {x: sp.Dummy(real=True) for x in table}
        moved = e.xreplace(held).xreplace({j: self.position})
        return moved.xreplace({held[x]: y for x, y in table.items()})

    def along(self, s: Statement, cut: Mapping[str, int]) -> Tiles:
        """The tiles of the bound index at which a statement reads what is cut, where that is another than j.

        ``cut`` says which axis of a tensor was j.
        """
        at = {subscripts_of(x)[cut[name_of(x)]] for e in (s.expr, s.where) for x in all_reads(e) if name_of(x) in cut}
        other = next(iter(at)) if len(at) == 1 else self.index
        return replace(self, index=other) if other != self.index and other in s.over and self.places else self

    def target(self, x: Tensor) -> Tensor:
        """A tensor with the axes of the tile in place of j."""
        at: list[sp.Expr] = []
        for a in subscripts_of(x):
            at += self.axes if a == self.index else (a,)
        return tensor(name_of(x), *at)

    def tile_of(self, position: sp.Expr) -> tuple[sp.Expr, ...]:
        """Tile and place of a value of j, where tiles are visited in their order."""
        return (sp.floor(position / self.block), sp.Mod(position, self.block))[: len(self.axes)]


def tiled(s: Statement, tiles: Tiles, cut: Mapping[str, int]) -> Statement:
    """A statement over j as one over the places of the tiles.

    ``cut`` names the tensors that have the axes of the tiles already, and which of their axes was j. A free j becomes the axes of
    the tile, a bound one is bound as both; so is another bound index at which they are read.

    >>> i, j, t, r, m = *sp.symbols("i j t r", integer=True), sp.Symbol("m", integer=True, positive=True)
    >>> row = Statement(tensor("l", i), tensor("E", i, j) * tensor("v", j), (j,), where=sp.Le(j, i))
    >>> print(tiled(row, Tiles.of(j, t, r, 2, m), {"E": 1}))
    l[i] = sum over t, r of E[i, t, r]*v[r + 2*t]   where r + 2*t < m and r + 2*t <= i
    """
    tiles = tiles.along(s, cut)
    j = tiles.index
    if j not in s.domain:
        return s
    over: list[sp.Symbol] = []
    for a in s.over:
        over += tiles.axes if a == j else (a,)
    target = tiles.target(s.target) if j in s.indices else s.target
    where = sp.And(tiles.inside, tiles.read(s.where, cut))
    return replace(s, target=target, expr=tiles.read(s.expr, cut), over=tuple(over), where=where)


def reads_apart(s: Statement, cut: Collection[str], j: sp.Symbol) -> bool:
    """Whether a statement reads a tensor of ``cut`` at another position than j, so that tiles cannot hold it."""
    found = [x for e in (s.expr, s.where) for x in all_reads(e) if name_of(x) in cut]
    return any(j in integer_symbols(a) and a != j for x in found for a in subscripts_of(x))


def one_to_one(tiles: Tiles, length: int, sizes: dict[sp.Symbol, int], count: int) -> bool:
    """Whether the places of all tiles inside hit every value of j once, at given sizes: a check of the map by counting.

    >>> i, j, t, r, m = *sp.symbols("i j t r", integer=True), sp.Symbol("m", integer=True, positive=True)
    >>> one_to_one(Tiles.of(j, t, r, 3, m), 7, {m: 7}, 3), one_to_one(Tiles.of(j, t, r, 3, m), 7, {m: 7}, 2)
    (True, False)
    """
    at = {k: sp.Integer(v) for k, v in sizes.items()}
    width = int(tiles.block.xreplace(at))
    hit = []
    for a in range(count):
        for b in range(width) if tiles.places else (0,):
            place = {**at, **dict(zip(tiles.axes, map(sp.Integer, (a, b)), strict=False))}
            if tiles.inside.xreplace(place) == sp.true:
                hit.append(int(tiles.position.xreplace(place)))
    return sorted(hit) == list(range(length))
