"""A gradient by tiles: the list that recomputes the weights, with its sums over keys taken tile by tile as kernels take them.

What has the size of the weights exists for one tile at a time. A gradient of queries is added up along the tiles, in a scan or as
one sum over all parts; a gradient of keys is made in the tile that holds them. That the tiles hit every key once
(:mod:`symattn.tiling`) and that a running sum is the sum of its terms is all that changes.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

import sympy as sp

from symattn.errors import ProgramError
from symattn.indexed import integer_symbols, subscripts_of, tensor
from symattn.program import Program, Scan, Statement
from symattn.tiling import Tiles, tiled

__all__ = ["by_tiles", "derived_of"]


def derived_of(whole: Program, outputs: Collection[str]) -> tuple[Statement, ...]:
    """The statements of a list that its forward outputs do not need: those of the gradient."""
    forward = {s.name for s in whole.with_statements(whole.statements, tuple(outputs)).live()}
    return tuple(s for s in whole if s.name not in forward)


def by_tiles(
    forward: Program,
    whole: Program,
    outputs: Collection[str],
    row: sp.Symbol,
    tiles: Tiles,
    walk: bool = True,
    kept: Collection[str] = (),
) -> Program:
    """The statements of ``forward``, followed by those of a gradient tile by tile.

    Parameters
    ----------
    forward
        The forward statements of an algorithm; it defines what the gradient reads of the forward: outputs and log-sum-exp.
    whole
        Forward and backward of the same definition over whole rows of keys, from :func:`symattn.presentation.recompute`.
    outputs
        The outputs of its forward part.
    row
        The index of the query.
    tiles
        How keys are cut.
    walk
        Whether gradients of queries are added up in a scan along the tiles; else they are one sum over all tiles.
    kept
        Tensors that both forward lists define with the same values, outputs included, if not in the same words.

    Returns
    -------
    Program
        Its outputs are ``outputs``, then the gradients as in ``whole``.

    Raises
    ------
    ProgramError
        When the gradient reads a tensor that ``forward`` does not define in the same way.
    """
    own = tuple(s for s in derived_of(whole, outputs) if s.name not in forward)
    known, kept = {s.name for s in own}, {*outputs, *kept}
    for n in sorted({n for s in own for n in s.needs} - known):
        if n in whole and n not in kept and not (n in forward and forward[n] == whole[n]):
            raise ProgramError(f"the gradient reads {n}, which an algorithm by tiles does not keep")
    work = _ByTiles(
        whole, row, tiles, {s.name: s.indices.index(tiles.index) for s in own if {row, tiles.index} <= set(s.indices)}, walk
    )
    for s in own:
        work.put(s)
    gradients = [o for o in whole.outputs if o not in outputs]
    both = (*forward.statements, *work.out)
    return forward.with_statements(both, (*outputs, *gradients), {**whole.dims, **forward.dims}, whole.shapes).live()


@dataclass
class _ByTiles:
    whole: Program
    row: sp.Symbol
    tiles: Tiles
    cut: dict[str, int]
    walk: bool
    out: list[Statement] = field(default_factory=list)

    def put(self, s: Statement) -> None:
        """The statements that stand for one of the gradient."""
        j, outward = self.tiles.index, s.name in self.whole.outputs
        if not (s.name in self.cut or s.needs & self.cut.keys()):
            self.out.append(s)
            return
        if self.tiles.along(s, self.cut) is not self.tiles:
            self.out.append(tiled(s, self.tiles, self.cut))
        elif j in s.over and self.row in s.indices and self.walk and s.reduce == "sum":
            self.added_up(s)
        elif j in s.indices and self.tiles.axes != (j,) and (self.row not in s.indices or outward):
            self.per_key(s)
        else:
            self.out.append(tiled(s, self.tiles, self.cut))

    def added_up(self, s: Statement) -> None:
        """``X[i] = sum over j``: the part of each tile, the running sum, its last value."""
        t = self.tiles.tile
        k = s.indices.index(self.row) + 1
        at = (*s.indices[:k], t, *s.indices[k:])
        part = tiled(s, self.tiles, self.cut)
        over = tuple(a for a in part.over if a != t)
        self.out.append(replace(part, target=tensor(s.name + "t", *at), over=over))
        total = tensor(s.name + "s", *at)
        self.out.append(Statement(total, total.xreplace({t: t - 1}) + self.out[-1].target, scan=Scan(t)))
        self.out.append(Statement(s.target, total.xreplace({t: self.count - 1})))

    @property
    def count(self) -> sp.Expr:
        """How many tiles there are."""
        length = self.whole.dims[self.tiles.index]
        return length if not self.tiles.places else Tiles.count(length, self.tiles.block)

    def per_key(self, s: Statement) -> None:
        """``X[j]``: made in the tile that holds the key, where tiles are the same for all queries; else at the places of j."""
        j = self.tiles.index
        fixed = self.row not in integer_symbols(self.tiles.position)
        if fixed:
            made = tiled(s, self.tiles, self.cut)
            at = subscripts_of(made.target)
            self.out.append(replace(made, target=tensor(s.name + "t", *at)))
            look = dict(zip(self.tiles.axes, self.tiles.tile_of(j), strict=True))
            self.cut.pop(s.name, None)
            self.out.append(Statement(s.target, self.out[-1].target.xreplace(look)))
            return
        self.out.append(self._at_places(s))

    def _at_places(self, s: Statement) -> Statement:
        """A statement over keys as a sum over all places whose position is the key."""
        j = self.tiles.index
        expr, where = self.tiles.read(s.expr, self.cut), self.tiles.read(s.where, self.cut)
        hit = sp.Eq(j, self.tiles.position)
        return replace(s, expr=expr, over=(*s.over, *self.tiles.axes), where=sp.And(hit, self.tiles.inside, where))
