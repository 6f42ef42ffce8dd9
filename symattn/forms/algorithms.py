"""Kernel algorithms: the statements that an algorithm writes in place of weights and weighted sum, tile of keys by tile.

* ``online`` (a tile is one key, or ``block`` of them), ``flash``: a scan over the tiles with a running maximum, a denominator
  and an output that are rescaled when the maximum grows.
* ``ring``: the same, a shard of keys at each step, in the order in which the shards reach the queries of a shard.
* ``split``: every part of the keys on its own, with its log-sum-exp; the parts are merged by those.
* ``paged``: keys and values are looked up in pages of a cache through a table of pages.

The meaning is that of the definition without the field (:mod:`symattn.theorems.algorithms` proves it). A running maximum is
written as the maximum over all tiles so far, which is what the recurrence gives in any arithmetic.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import sympy as sp

from symattn.building import Builder
from symattn.errors import DefinitionError
from symattn.indexed import Tensor, all_reads, name_of, size, subscripts_of, tensor
from symattn.program import Scan, Statement
from symattn.stages.scores import scores
from symattn.stages.values import kept_by_dropout, or_for_empty_rows
from symattn.tiling import Tiles, reads_apart, tiled

if TYPE_CHECKING:
    from symattn.definition import Definition

WALKS = ("online", "flash", "ring")
"""The algorithms that walk along the tiles."""
BLOCK = "Bc"
"""The name of the size of a tile where the definition gives no number."""
TABLE = "T"
"""The name of the number of pages that the table of a sequence has."""


def block_of(d: Definition) -> sp.Expr:
    """The number of keys of a tile."""
    return size(BLOCK) if d.block is None else sp.Integer(d.block)


def key_count(d: Definition) -> sp.Expr | None:
    """The number of keys where it is not the length of K: every slot of the pages of a sequence."""
    return size(TABLE) * block_of(d) if d.algorithm == "paged" else None


def tiles_of(b: Builder) -> Tiles:
    """How the keys are cut."""
    d, at = b.d, b.at
    j, length = at["j"], at.size_of("j")
    if d.algorithm == "online" and d.block is None:
        return Tiles(j, (j,), j)
    width = block_of(b.d)
    count = Tiles.count(length, width)
    t, r = at.sized("t", count), at.sized("r", width)
    if d.algorithm != "ring":
        return Tiles.of(j, t, r, width, length)
    # queries are cut into as many shards as keys; shard h starts with its own keys and then gets those of h - 1, h - 2, ..
    own = sp.floor(at["i"] / sp.ceiling(at.size_of("i") / count))
    return Tiles.of(j, t, r, width, length, b.add(tensor("shard", at["i"], t), sp.Mod(own - t, count), aux=True))


def attended(b: Builder) -> Tensor:
    """The output ``O`` by the algorithm of the definition; with ``m`` and ``l`` such that ``L = m + log(l)``."""
    tiles = tiles_of(b)
    mark = len(b.statements)
    z = scores(b)
    b.shapes.update(_read_whole(b))
    z = cut_scores(b, mark, z, tiles)
    written = _Written(b, tiles, z)
    return written.merged() if b.d.algorithm == "split" else written.walked()


def _read_whole(b: Builder) -> dict[str, tuple[sp.Expr, ...]]:
    """The shapes of inputs that are going to be read tile by tile, so that no read has an index for each axis."""
    v = b.at.key(b.value, b.at["e"])
    seen = [x for s in b.statements for e in (s.expr, s.where) for x in all_reads(e)]
    seen += [x for e in (v, kept_by_dropout(b)[1], b.where) for x in all_reads(e)]
    dims, own = b.at.dims, {s.name for s in b.statements}
    return {
        name_of(x): tuple(dims[a] for a in subscripts_of(x))
        for x in seen
        if name_of(x) not in own and b.at["j"] in subscripts_of(x) and all(a in dims for a in subscripts_of(x))
    }


def cut_scores(b: Builder, mark: int, z: Tensor, tiles: Tiles) -> Tensor:
    """The statements over queries and keys since ``mark`` as statements over queries and places; the score there."""
    i, j = b.at["i"], tiles.index
    if tiles.axes == (j,):
        return z
    cut = {s.name: s.indices.index(j) for s in b.statements[mark:] if {i, j} <= set(s.indices)}
    for k in range(mark, len(b.statements)):
        s = b.statements[k]
        if s.name in cut or s.needs & cut.keys():
            if reads_apart(s, cut, j):
                raise DefinitionError(
                    f"algorithm={b.d.algorithm!r} has the scores tile by tile, and {s.name} reads them at other keys, in `{s}`; "
                    "leave the field algorithm out"
                )
            b.statements[k] = tiled(s, tiles, cut)
    return tiles.target(z)


def tiles_for(d: Definition, batch: bool = False) -> Tiles:
    """How the algorithm of a definition cuts the keys.

    >>> from symattn.definition import Definition
    >>> tiles_for(Definition(algorithm="flash", block=2)).position
    r + 2*t
    """
    from symattn.building import start

    return tiles_of(start(d, batch))


class _Written:
    """What the algorithms write: the parts that they have in common, each added when it is asked for."""

    def __init__(self, b: Builder, tiles: Tiles, z: Tensor) -> None:
        self.b, self.d, self.at, self.tiles, self.z = b, b.d, b.at, tiles, z
        self.t, self.places = tiles.tile, tiles.places
        self.masked = b.where != sp.true
        self.where = tiles.condition(b.where)
        self.count = self.at.size_of("j") if tiles.axes == (tiles.index,) else self.at.lengths["t"]

    # the pieces
    def per_tile(self, name: str, *last: sp.Symbol) -> Tensor:
        """A tensor over heads, queries and tiles."""
        return self.at.query(name, self.t, *last)

    def at_tile(self, x: Tensor, t: sp.Expr) -> Tensor:
        """The tensor at another tile."""
        return x.xreplace({self.t: t})

    def last(self, x: Tensor) -> Tensor:
        """The tensor after the last tile."""
        return self.at_tile(x, self.count - 1)

    @cached_property
    def before(self) -> sp.Symbol:
        """An index over the tiles up to the current one."""
        return self.at.sized("s", self.count)

    def sum_of_tile(self, name: str, expr: sp.Expr, *last: sp.Symbol, where: sp.Basic) -> sp.Expr:
        """The sum over the places of a tile; where a tile is one key there is nothing to sum."""
        return self.b.add(self.per_tile(name, *last), expr, *self.places, where=where, aux=True)

    def values(self) -> tuple[sp.Expr, sp.Basic]:
        """What the weights are multiplied by, ``V`` and the factor of kept weights, and where."""
        factor, kept = kept_by_dropout(self.b)
        v = self.at.key(self.b.value, self.at["e"])
        return self.tiles.read(v * factor), sp.And(self.where, self.tiles.read(kept))

    # a walk along the tiles
    def walked(self) -> Tensor:
        """Running maximum, rescaled denominator and output; divided at the end."""
        b, at, t, e = self.b, self.at, self.t, self.at["e"]
        top = self.running_maximum()
        weight = b.add(at.query("E", *self.tiles.axes), sp.exp(self.z - top), where=self.where, aux=True)
        older = [sp.Ge(t, 1)]
        if self.masked and not self.d.sink:
            older.append(sp.Ge(self.at_tile(self.seen, t - 1), 1))
        gain = sp.exp(self.at_tile(top, t - 1) - top)
        rescale = b.add(self.per_tile("rs"), gain, where=sp.And(*older), aux=True)
        value, where = self.values()
        keys = self.sum_of_tile("lt", weight, where=self.where) if self.places else weight
        part = self.sum_of_tile("Ot", weight * value, e, where=where)
        scan: dict[str, Any] = {"scan": Scan(t)}
        total, out = self.per_tile("ls"), self.per_tile("Os", e)
        b.add(total, rescale * self.at_tile(total, t - 1) + keys, aux=True, **scan)
        b.add(out, rescale * self.at_tile(out, t - 1) + part, aux=True, **scan)
        return self.finished(self.last(top), self.last(total), self.last(out))

    @cached_property
    def seen(self) -> Tensor:
        """The number of keys that the query has met up to the tile."""
        s, t = self.before, self.t
        where = sp.And(self.where.xreplace({t: s}), sp.Le(s, t))
        over = (s, *self.places)
        return self.b.add(self.per_tile("seen"), sp.Integer(1), *over, where=where, aux=True)

    def running_maximum(self) -> Tensor:
        """The largest score of the tiles so far; with a sink, that of the sink too."""
        b, s, t = self.b, self.before, self.t
        if self.masked and not self.d.sink:
            _ = self.seen
        where = sp.And(self.where.xreplace({t: s}), sp.Le(s, t))
        marks: dict[str, Any] = {"range_only": True, "aux": True}
        keys = self.per_tile("ms0" if self.d.sink else "ms")
        b.add(keys, self.at_tile(self.z, s), s, *self.places, where=where, reduce="max", **marks)
        if not self.d.sink:
            return keys
        return b.add(self.per_tile("ms"), sp.Max(keys, self.at.per_head("sink"), evaluate=False), **marks)

    def finished(self, top: sp.Expr, total: sp.Expr, out: sp.Expr) -> Tensor:
        """The shift ``m``, the denominator ``l`` with the sink, and the output divided by it."""
        b, at, d = self.b, self.at, self.d
        m = b.add(at.query("m"), top, aux=True)
        if d.sink:
            of_sink = b.add(at.query("E0"), sp.exp(at.per_head("sink") - m), aux=True)
            total = b.add(at.query("lk"), total, aux=True) + of_sink
        denominator = b.add(at.query("l"), total, aux=True)
        some = sp.Ge(self.last(self.seen), 1) if self.masked and not d.sink else sp.true
        out = or_for_empty_rows(b, lambda name: b.add(at.query(name, at["e"]), out / denominator, where=some))
        if d.sink:
            b.add(at.query("P0"), at.query("E0") / denominator)
        return out

    # parts that are merged
    def merged(self) -> Tensor:
        """Every part of the keys with its output and log-sum-exp, and the average of the outputs with ``exp(Lt - m)``."""
        b, at, d, t, e = self.b, self.at, self.d, self.t, self.at["e"]
        some: sp.Basic = sp.true
        if self.masked:
            number = self.per_tile("nt")
            some = sp.Ge(b.add(number, sp.Integer(1), *self.places, where=self.where, aux=True), 1)
        marks: dict[str, Any] = {"range_only": True, "aux": True}
        top = b.add(self.per_tile("mt"), self.z, *self.places, where=self.where, reduce="max", **marks)
        weight = b.add(at.query("E", *self.tiles.axes), sp.exp(self.z - top), where=self.where, aux=True)
        total = self.sum_of_tile("lt", weight, where=self.where)
        value, where = self.values()
        out = b.add(self.per_tile("Ot", e), weight / total * value, *self.places, where=where)
        part = b.add(self.per_tile("Lt"), top + sp.log(total), where=some)
        if d.sink:
            keys = b.add(at.query("m0"), part, t, where=some, reduce="max", **marks)
            m = b.add(at.query("m"), sp.Max(keys, at.per_head("sink"), evaluate=False), **marks)
        else:
            m = b.add(at.query("m"), part, t, where=some, reduce="max", **marks)
        share = b.add(self.per_tile("wt"), sp.exp(part - m), where=some, aux=True)
        if d.sink:
            of_sink = b.add(at.query("E0"), sp.exp(at.per_head("sink") - m), aux=True)
            denominator = b.add(at.query("l"), b.add(at.query("lk"), share, t, where=some, aux=True) + of_sink, aux=True)
        else:
            denominator = b.add(at.query("l"), share, t, where=some, aux=True)
        out = or_for_empty_rows(b, lambda name: b.add(at.query(name, e), share / denominator * out, t, where=some))
        if d.sink:
            b.add(at.query("P0"), at.query("E0") / denominator)
        return out


def paged(b: Builder, statements: list[Statement]) -> list[Statement]:
    """The statements with keys and values looked up in their pages: ``K[j, c]`` is ``Kc[page[floor(j/Bc)], j mod Bc, c]``."""
    at = b.at
    width = block_of(b.d)

    def place(x: Tensor) -> Tensor:
        heads, (position, channel) = subscripts_of(x)[len(at.batch_axes) : -2], subscripts_of(x)[-2:]
        page = tensor("page", *subscripts_of(x)[: len(at.batch_axes)], sp.floor(position / width))
        return tensor(name_of(x) + "c", *heads, page, sp.Mod(position, width), channel)

    out = []
    for s in statements:
        table = {x: place(x) for e in (s.expr, s.where) for x in all_reads(e) if name_of(x) in ("K", "V")}
        out.append(replace(s, expr=s.expr.xreplace(table), where=s.where.xreplace(table)) if table else s)
    pages, slots = size("pages"), width
    channels = {"K": at.size_of("c"), "V": at.size_of("e")}
    for name, n in channels.items():
        b.shapes[name + "c"] = (*(at.dims[a] for a in at.key_heads), pages, slots, n)
    b.shapes["page"] = (*(at.dims[a] for a in at.batch_axes), size(TABLE))
    return out
