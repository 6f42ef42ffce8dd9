"""From a list of statements to loops: which statement stands in which loop, what is kept of it, and what is carried along.

Three facts are all that is used. A statement may be evaluated one value of an index at a time. A tensor that is read only
where it is made needs no axis for a loop around it. What is summed, or maximised, up to a step is what was there before and
the step's own share: ``max over s <= t of Z[s] = Max(x[t-1], Z[t])``. So a scan is a variable that is overwritten, and nothing
has to be proved that the list does not say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import sympy as sp

from symattn.derivation.kernels.loads import with_loads
from symattn.derivation.kernels.loops import Assign, For, Kernel, Node, Start, written
from symattn.derivation.kernels.units import Unit, opened, with_names
from symattn.errors import ProgramError
from symattn.indexed import Tensor, all_reads, conjuncts, name_of, reads, subscripts_of, tensor
from symattn.program import Program
from symattn.tiling import Tiles

__all__ = ["lowered"]


def lowered(program: Program, loops: Sequence[sp.Symbol], row: sp.Symbol, tiles: Tiles) -> Kernel:
    """A program as a kernel runs it.

    Parameters
    ----------
    program
        Statements by tiles; constants are written in place.
    loops
        The indices that are looped over, the outermost first; all others are those of vectors.
    row
        The index of the query.
    tiles
        How keys are cut.

    Raises
    ------
    ProgramError
        When something is read in a loop that another loop has not kept.

    >>> from symattn.definition import Definition
    >>> from symattn.derivation.shaping import with_constants_in_place
    >>> from symattn.forms.algorithms import tiles_for
    >>> d = Definition(algorithm="online")
    >>> i, j = sp.symbols("i j", integer=True)
    >>> kernel = lowered(with_constants_in_place(d.program()), (i, j), i, tiles_for(d))
    >>> [(str(a.target), str(a.expr)) for a in kernel.assigned() if a.name == "l"]
    [('l', 'E + l*rs')]
    """
    return _Lowering(program, tuple(loops), row, tiles).kernel()


class _Lowering:
    def __init__(self, program: Program, loops: tuple[sp.Symbol, ...], row: sp.Symbol, tiles: Tiles) -> None:
        self.program, self.loops, self.row, self.tiles = program, loops, row, tiles
        self.scanned = {a for a in loops if a in tiles.axes}
        self.dims = dict(program.dims)
        units = [self._prefix(Unit.of(s)) for s in program]
        units = [self._scattered(self._summed(u, program)) for u in units]
        self.units = self._stored(self._renamed(units))
        self.by_name = {u.name: u for u in self.units}
        self.memory = frozenset(program.outputs)
        self.paths: dict[str, tuple[sp.Symbol, ...]] = {}

    # ---------------------------------------------------------------- what a statement becomes
    def _prefix(self, u: Unit) -> Unit:
        """A reduction over all steps up to the current one as the value before and the step's own share."""
        for c in conjuncts(u.where):
            if isinstance(c, sp.Le) and c.lhs in u.over and c.rhs in u.free and c.rhs in self.scanned:
                at: dict[sp.Basic, sp.Basic] = {c.lhs: c.rhs}
                rest = sp.And(*[q.xreplace(at) for q in conjuncts(u.where) if q != c])
                over = tuple(a for a in u.over if a != c.lhs)
                return replace(u, expr=u.expr.xreplace(at), over=over, where=rest, carry=c.rhs, onto=True)
        return u

    def _summed(self, u: Unit, program: Program) -> Unit:
        """Whether loops add it up: it is over loop indices, and reads what exists for one query and one place at a time."""
        small = {self.row, self.tiles.axes[-1]}
        looped = set(u.over) & set(self.loops)
        large = any(n in program and small <= set(program[n].indices) for n in u.needs)
        return replace(u, fused=True, onto=True) if looped and large else u

    def _scattered(self, u: Unit) -> Unit:
        """A sum over the places whose position is the key: each place gives its share to its key."""
        position = self.tiles.position
        for c in conjuncts(u.where):
            if isinstance(c, sp.Eq) and position in c.args and set(self.tiles.axes) <= set(u.over) and u.fused:
                key = c.args[1] if c.args[0] == position else c.args[0]
                place = self.tiles.axes[-1]
                at = u.target.xreplace({key: position})
                free = tuple(place if a == key else a for a in u.free)
                where = sp.And(*[q for q in conjuncts(u.where) if q != c])
                return replace(u, target=at, free=free, over=tuple(a for a in u.over if a != place), where=where)
        return u

    def _renamed(self, units: list[Unit]) -> list[Unit]:
        """A statement that takes the last value of what is carried gives its name to it."""
        names: dict[str, str] = {}
        copies: dict[str, Unit] = {}
        for u in units:
            if isinstance(u.expr, (sp.Indexed, sp.Symbol)) and not u.over and u.where == sp.true:
                of = next((x for x in units if x.name == name_of(u.expr) and x.name not in names), None)
                if of is not None and self._last(u.expr, of) and self._free_without(of) == u.free:
                    copies[u.name] = u
                    if u.name not in {str(a) for a in self.program.sizes}:  # m is a number of keys already
                        names[of.name] = u.name
        left = [opened(u, copies) for u in units if u.name not in copies]
        return [self._called(u, names) for u in left]

    def _last(self, x: Tensor, of: Unit) -> bool:
        """Whether a read is of the value after the last turn of a loop over tiles."""
        at = dict(zip(of.free, subscripts_of(x), strict=False))
        return any(at.get(a) == self.dims[a] - 1 for a in self.scanned & set(of.free))

    def _free_without(self, u: Unit) -> tuple[sp.Symbol, ...]:
        return tuple(a for a in u.free if a not in self.scanned)

    def _called(self, u: Unit, names: Mapping[str, str]) -> Unit:
        """A unit with tensors renamed everywhere."""
        if not names:
            return u
        return replace(
            u,
            name=names.get(u.name, u.name),
            target=with_names(u.target, names),
            expr=with_names(u.expr, names),
            where=with_names(u.where, names),
        )

    def _stored(self, units: list[Unit]) -> list[Unit]:
        """What a statement looks up per key from the tile that holds it is written there, tile by tile."""
        look = self.tiles.tile_of(self.tiles.index) if self.tiles.places else ()
        made = {u.name: u for u in units}
        out = []
        for u in units:
            of = made.get(name_of(u.expr)) if isinstance(u.expr, sp.Indexed) else None
            fits = look and of is not None and self.tiles.index in u.free and not u.over and u.where == sp.true
            if fits and of is not None and u.expr == of.target.xreplace(dict(zip(self.tiles.axes, look, strict=True))):
                at = u.target.xreplace({self.tiles.index: self.tiles.position})
                free = tuple(b for a in u.free for b in (self.tiles.axes if a == self.tiles.index else (a,)))
                u = replace(u, target=at, free=free, expr=of.target, where=self.tiles.inside)
            out.append(u)
        return out

    # ---------------------------------------------------------------- loops
    def kernel(self) -> Kernel:
        """The whole kernel."""
        self._place(list(self.units), self.loops, ())
        self.kept = {u.name: self._dropped(u) for u in self.units}
        body = self._body(list(self.units), self.loops, ())
        body = with_loads(body, frozenset(self.by_name), self.program.discrete)
        known = written(body)
        reads_ = tuple(n for n in self.program.inputs if n not in known)
        return Kernel(reads_, tuple(self.program.outputs), body, self.program.dims)

    def _split(self, todo: list[Unit], a: sp.Symbol) -> tuple[list[Unit], list[Unit], list[Unit]]:
        """What stands before a loop, in it, and behind it."""
        before: list[Unit] = []
        inside: list[Unit] = []
        after: list[Unit] = []
        names: dict[str, list[Unit]] = {}
        for u in todo:
            read_later = {n for n in u.needs if n in names and (names[n] is after or self._whole(u, n, a))}
            looped = a in u.free or (u.fused and a in u.over)
            where = after if read_later else inside if looped else before
            if where is before and any(names.get(n) is inside for n in u.needs):
                where = after
            where.append(u)
            names[u.name] = where
        return before, inside, after

    def _whole(self, u: Unit, name: str, a: sp.Symbol) -> bool:
        """Whether a read wants what a loop has made when it is over."""
        of = self.by_name[name]
        if of.fused and a in of.over:
            return True
        if a not in of.free or of.target != tensor(of.name, *of.free):
            return a in of.free and a not in u.free
        k = of.free.index(a)
        found = [x for e in (u.expr, u.where) for x in all_reads(e) if name_of(x) == name]
        bound = a in u.over and not u.fused
        return bound or any(subscripts_of(x)[k] not in (a, a - 1) for x in found)

    def _place(self, todo: list[Unit], loops: tuple[sp.Symbol, ...], path: tuple[sp.Symbol, ...]) -> None:
        """The loops around each unit."""
        for u in todo:
            self.paths[u.name] = path
        if todo and loops:
            a, rest = loops[0], loops[1:]
            _, inside, _ = self._split(todo, a)
            self._place(inside, rest, (*path, a))

    def _dropped(self, u: Unit) -> frozenset[sp.Symbol]:
        """The axes that its variable does not have."""
        path = self.paths[u.name]
        summing = [k for k, a in enumerate(path) if a == u.carry or (u.fused and a in u.over)]
        outer = path[: summing[0]] if summing else path
        if u.name in self.memory or u.target != tensor(u.name, *u.free):
            return frozenset({u.carry} - {None})
        found = (set(outer) | ({u.carry} if u.carry is not None else set())) & set(u.free)
        for v in self.units:
            if u.name in v.needs:
                shared = _common(path, self.paths[v.name])
                found -= {a for a in found if not self._at_hand(v, u, a, a in shared)}
        return frozenset(found)

    def _at_hand(self, v: Unit, u: Unit, a: sp.Symbol, within: bool) -> bool:
        """Whether a variable without an axis has what a unit reads.

        In the loop that is this turn's value or the one before; behind the loop that of the last turn.
        """
        k = u.free.index(a)
        at = {subscripts_of(x)[k] for e in (v.expr, v.where) for x in all_reads(e) if name_of(x) == u.name}
        return at <= ({a, a - 1} if within else {self.dims[a] - 1} if a in self.scanned else set())

    def _body(self, todo: list[Unit], loops: tuple[sp.Symbol, ...], path: tuple[sp.Symbol, ...]) -> tuple[Node, ...]:
        if not todo or not loops:
            return tuple(n for u in todo for n in self._assigned(u))
        a, rest = loops[0], loops[1:]
        before, inside, after = self._split(todo, a)
        nodes: list[Node] = [n for u in before for n in self._assigned(u)]
        if inside:
            starts = [self._start(u) for u in inside if self._first(u) == a]
            starts += [self._start(u) for u in inside if a in self._read_before(u) and self._first(u) is None]
            body = self._body(inside, rest, (*path, a))
            nodes += [*starts, For(a, self.dims[a], body, _carries(body, (s.target for s in starts)))]
            # a variable from outside that is added to is carried too
            outer = {u.name for u in inside if self._first(u) is not None and self._first(u) != a and self._added_in(u, a, path)}
            if outer:
                loop = nodes[-1]
                assert isinstance(loop, For)
                nodes[-1] = replace(loop, carried=True)
        return (*nodes, *(n for u in after for n in self._assigned(u)))

    def _added_in(self, u: Unit, a: sp.Symbol, path: tuple[sp.Symbol, ...]) -> bool:
        """Whether a loop that stands deeper than the start of a variable gives it more than one share."""
        first = self._first(u)
        return first in path and a not in u.free

    def _first(self, u: Unit) -> sp.Symbol | None:
        """The outermost loop along which a variable is carried or added to."""
        return next((a for a in self.paths[u.name] if a == u.carry or (u.fused and a in u.over)), None)

    def _read_before(self, u: Unit) -> set[sp.Symbol]:
        """The loops for which another unit reads the value of the turn before."""
        found = set()
        for v in self.units:
            if v.name == u.name or u.target != tensor(u.name, *u.free):
                continue
            for x in {x for e in (v.expr, v.where) for x in all_reads(e) if name_of(x) == u.name}:
                found |= {a for a, at in zip(u.free, subscripts_of(x), strict=True) if a in self.scanned and at == a - 1}
        return found

    def _first_value(self, u: Unit) -> sp.Expr:
        largest = (u.reduce == "max" and (u.over or u.onto)) or u.expr.has(sp.Max)
        return -sp.oo if largest else sp.S.Zero

    def _start(self, u: Unit) -> Start:
        target = self._variable(u)
        if target != u.target and u.target != tensor(u.name, *u.free):  # a place in memory: all of it
            target = self.program[u.name].target
        return Start(self._memory_start(u, target), self._first_value(u))

    def _memory_start(self, u: Unit, target: Tensor) -> Tensor:
        if u.name in self.program and u.target != tensor(u.name, *u.free):
            return self.program[u.name].target
        return target

    # ---------------------------------------------------------------- assignments
    def _variable(self, u: Unit) -> Tensor:
        """The variable, or the place in memory, that a unit assigns."""
        gone = self.kept[u.name]
        if u.target != tensor(u.name, *u.free):
            return self._read(u.target, u)
        return tensor(u.name, *(a for a in u.free if a not in gone))

    def _old(self, u: Unit, x: Tensor) -> Tensor:
        return tensor(u.name + "'", *subscripts_of(x))

    def _assigned(self, u: Unit) -> tuple[Node, ...]:
        target = self._variable(u)
        kept: tuple[Node, ...] = ()
        loops = self.paths[u.name]
        if self._read_before(u):
            axes = tuple(a for a in subscripts_of(target) if isinstance(a, sp.Symbol))
            kept = (Assign(self._old(u, target), axes, target, name=u.name),)
        over = tuple(a for a in u.over if not (u.fused and a in loops))
        free = tuple(a for a in u.free if a not in loops and a not in self.kept[u.name])
        expr, where = self._inside(u.expr, u), self._inside(u.where, u)
        return (*kept, Assign(target, free, expr, over, u.reduce, where, u.onto, u.name))

    def _inside(self, e: sp.Basic, u: Unit) -> sp.Basic:
        """An expression with tensors read as variables."""
        table = {x: self._read(x, u) for x in reads(e)}
        return e.xreplace({x: y for x, y in table.items() if x != y})

    def _read(self, x: Tensor, u: Unit) -> Tensor:
        n = name_of(x)
        subscripts = tuple(self._inside(a, u) for a in subscripts_of(x))
        of = self.by_name.get(n)
        if of is None or of.target != tensor(of.name, *of.free):
            return tensor(n, *subscripts)
        gone = self.kept[n]
        before = any(at == a - 1 for a, at in zip(of.free, subscripts, strict=True) if a in gone)
        for a, at in zip(of.free, subscripts, strict=True):
            if a in gone and at not in (a, a - 1, self.dims[a] - 1):
                raise ProgramError(f"{u.name}: `{x}` is read at another turn of the loop over {a} than it is kept for")
        left = tuple(at for a, at in zip(of.free, subscripts, strict=True) if a not in gone)
        return tensor(n + "'" if before and n != u.name else n, *left)


def _common(a: Sequence[sp.Symbol], b: Sequence[sp.Symbol]) -> tuple[sp.Symbol, ...]:
    out = []
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        out.append(x)
    return tuple(out)


def _carries(body: tuple[Node, ...], starts: Iterable[Tensor]) -> bool:
    """Whether a loop changes a variable that was started before it."""
    return bool(written(body) & {name_of(x) for x in starts})
