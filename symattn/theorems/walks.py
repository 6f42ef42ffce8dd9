"""Proofs that a kernel algorithm gives what its definition says, for all sizes and any size of tiles.

The definition is cut into tiles (:func:`symattn.tiling.tiled`): that the places of all tiles hit every key once is division with
remainder, the one fact that is not an identity of sums. What the two lists have word for word in common, the scores, are names.
A scan is replaced by its closed form, which is shown to satisfy the step. Numerators and denominators are then compared across.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import cached_property

import sympy as sp

from symattn.algorithms import EQUAL, flash_list, gradient_by_tiles, plain
from symattn.conditions import Exists
from symattn.definition import Definition
from symattn.forms.algorithms import tiles_for
from symattn.indexed import Tensor, conjuncts, index, integer_symbols, name_of, reads, size, subscripts_of, tensor
from symattn.normalform import NormalForm
from symattn.program import Program, Statement
from symattn.theorems.duality import called
from symattn.theorems.proofs import DIVISION, NORMAL_FORM, WORD_FOR_WORD, Part
from symattn.tiling import Tiles, tiled

__all__ = ["Walk", "closed_form"]

_STAR = "*"


def closed_form(s: Statement, program: Program, name: str, before: sp.Symbol) -> Statement | None:
    """The candidate for the closed form of ``x[t] = a[t] x[t-1] + u[t]`` with ``a[t] = exp(f[t-1] - f[t])``, or ``a = 1``.

    It is ``sum over s <= t of exp(f[s] - f[t]) u[s]``, under ``name``, with ``before`` as s; nothing is claimed before the step
    is shown to hold. None where the statement is of another kind.

    >>> from symattn.indexed import indices, size
    >>> from symattn.program import Scan
    >>> t, s = indices("t s")
    >>> x, m = tensor("x", t), tensor("m", t)
    >>> step = Statement(x, sp.exp(m.xreplace({t: t - 1}) - m) * x.xreplace({t: t - 1}) + tensor("u", t), scan=Scan(t))
    >>> print(closed_form(step, Program((step,), {t: size("T")}, ("x",), {"m": (size("T"),)}), "C", s))
    C[t] = sum over s of exp(m[s] - m[t])*u[s]   where s <= t
    """
    assert s.scan is not None
    t = s.scan.index
    last = s.target.xreplace({t: t - 1})
    plain_sum = sp.expand(s.expr, power_exp=False)
    a = plain_sum.coeff(last, 1)
    u = sp.expand(plain_sum - a * last, power_exp=False)
    if any(name_of(x) == s.name for x in (*reads(a), *reads(u))) or a == 0:
        return None
    for x in reads(a):
        if name_of(x) in program and not program[name_of(x)].over:
            q = program[name_of(x)]
            a = a.xreplace({x: q.expr.xreplace(dict(zip(q.indices, subscripts_of(x), strict=True)))})
    exponent = sp.S.Zero if a == 1 else a.args[0] if isinstance(a, sp.exp) else None
    if exponent is None:
        return None
    f = -sp.Add(*[e for e in sp.Add.make_args(exponent) if any(t in subscripts_of(x) for x in reads(e))])
    weight = sp.exp(f.xreplace({t: before}) - f)
    return Statement(tensor(name, *s.indices), weight * u.xreplace({t: before}), (before,), where=sp.Le(before, t))


class Walk:
    """An algorithm's program beside the definition's, cut into the same tiles.

    Parameters
    ----------
    definition
        With an algorithm that goes by tiles.
    program
        What is to be judged.
    reference
        What it is to give, over whole rows of keys.
    given
        Tensors that are known to be equal in both.
    """

    def __init__(self, definition: Definition, program: Program, reference: Program, given: Collection[str] = ()) -> None:
        self.definition = definition
        self.ranges = program.dims
        self.program = numbered(program)
        self.reference = reference
        self.given = frozenset(given)
        self.tiles = tiles_for(definition)
        self.row = index("i")
        self.dims: dict[sp.Symbol, sp.Expr] = {**reference.dims, **self.program.dims}
        self.t = self.tiles.tile
        self.count = self.dims[self.t]
        self.before = index("s")
        self.dims.setdefault(self.before, self.count)
        self._known: dict[tuple[sp.Basic, tuple[sp.Symbol, ...]], Exists] = {}

    @classmethod
    def forward(cls, definition: Definition, program: Program | None = None) -> Walk:
        """The forward list of an algorithm and that of its definition."""
        d = of_any_block(definition, program)
        return cls(d, d.program() if program is None else program, plain(d).program())

    @classmethod
    def gradient(cls, definition: Definition, program: Program | None = None) -> Walk:
        """The gradient by tiles and the definition's gradient with recomputed weights; both read the same outputs."""
        d = of_any_block(definition, program)
        outputs = plain(d).program().outputs
        listed = gradient_by_tiles(d).program if program is None else program
        whole = flash_list(d)[0]
        own = whole.with_statements(whole.statements, [o for o in whole.outputs if o not in outputs])
        return cls(d, listed, own, {*outputs, *EQUAL})

    # ---------------------------------------------------------------- the two lists
    @cached_property
    def cut(self) -> tuple[Statement, ...]:
        """The definition's statements over the places of the tiles."""
        return tuple(s for s in self._tiled if s.name not in self.per_key)

    @cached_property
    def _tiled(self) -> tuple[Statement, ...]:
        own = [s for s in self.reference if s.name not in self.given]
        return tuple(cut_all(own, self.tiles, self.row))

    @cached_property
    def per_key(self) -> dict[str, Statement]:
        """The definition's tensors over keys alone that sum over queries, in the layout of the tiles; each judged by itself."""
        own, j = self.reference, self.tiles.index
        return {s.name: s for s in self._tiled if j in own[s.name].indices and j not in s.indices and self.row not in s.indices}

    @property
    def order(self) -> tuple[Statement, ...]:
        """The statement of the order in which tiles are visited, where there is one."""
        return tuple(self.program[n] for n in self._visited if n in self.program)

    @cached_property
    def _visited(self) -> tuple[str, ...]:
        return tuple(name_of(x) for x in reads(self.tiles.position))

    @cached_property
    def shared(self) -> frozenset[str]:
        """The tensors that both lists define word for word, from equal ones."""
        known = {*self.given, *self.per_key}
        return common((*self.order, *self.cut), self.program, known) | known

    @cached_property
    def starred(self) -> dict[str, Statement]:
        """The definition's other statements, under names with a star, by the name without."""
        names = {s.name: s.name + _STAR for s in self.cut if s.name not in self.shared}
        keys = [replace(called(s, names), target=tensor(n + _STAR, *s.indices)) for n, s in self.per_key.items()]
        return {s.name: called(s, names) for s in self.cut if s.name in names} | {s.name.removesuffix(_STAR): s for s in keys}

    def star(self, x: Tensor) -> Tensor:
        """The definition's tensor in place of the algorithm's."""
        name = name_of(x)
        return tensor(name + _STAR if name in self.starred else name, *subscripts_of(x))

    def star_all(self, e: sp.Expr) -> sp.Expr:
        """An expression with the definition's tensors in place of the algorithm's."""
        return e.xreplace({x: self.star(x) for x in reads(e)})

    @cached_property
    def closed(self) -> dict[str, Statement]:
        """The closed forms of the scan's tensors, by name."""
        found = {}
        for s in self.program:
            if s.scan is not None and s.scan.step > 0:
                c = closed_form(s, self.program, "C_" + s.name, self.before)
                if c is not None:
                    found[s.name] = c
        return found

    def with_closed(self, e: sp.Expr) -> sp.Expr:
        """An expression with the scan's tensors replaced by their closed forms."""
        table = {x: tensor(self.closed[name_of(x)].name, *subscripts_of(x)) for x in reads(e) if name_of(x) in self.closed}
        return e.xreplace(table)

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        """Everything that a proof opens: conditions on counts are existence, scans are closed forms."""
        own = [self.witnessed(s) for s in self.program if s.scan is None]
        own = [replace(s, expr=self.with_closed(s.expr)) for s in own]
        return (*own, *self.closed.values(), *self.starred.values())

    def witnessed(self, s: Statement) -> Statement:
        """A condition that some keys have been met says that there is one."""
        found = [(c, self._exists(c)) for c in conjuncts(s.where)]
        some = [e for _, e in found if e is not None]
        if not some or any(e is None for _, e in found):
            return s
        # that a key of an earlier tile has been met says that there is an earlier tile
        return replace(s, where=max(some, key=lambda e: len(e.conditions)))

    def _exists(self, c: sp.Basic) -> Exists | None:
        if not (isinstance(c, sp.Ge) and c.rhs == 1):
            return None
        if c.lhs == self.t:
            return self._sized([sp.Le(self.before, self.t - 1)], (self.before,))
        if not isinstance(c.lhs, sp.Indexed) or name_of(c.lhs) not in self.program:
            return None
        number = self.program[name_of(c.lhs)]
        if number.expr != 1 or number.reduce != "sum" or number.scan is not None:
            return None
        at = dict(zip(number.indices, subscripts_of(c.lhs), strict=True))
        return self._sized([q.xreplace(at) for q in number.conditions], number.over)

    def _sized(self, conditions: Iterable[sp.Basic], over: Iterable[sp.Symbol]) -> Exists:
        key = sp.And(*conditions), tuple(over)
        if key not in self._known:
            found = Exists.over(conjuncts(key[0]), {a: self.dims[a] for a in key[1]})
            self.dims |= zip(found.indices, found.sizes, strict=True)
            self._known[key] = found
        return self._known[key]

    # ---------------------------------------------------------------- proofs
    def form(self, *opaque: str) -> NormalForm:
        """The normal form of everything, with the common tensors and ``opaque`` as names."""
        return NormalForm(self.statements, self.dims, opaque={*self.shared, *opaque})

    def equal(self, text: str, left: sp.Expr, right: sp.Expr, *opaque: str) -> Part:
        """An equation as a step of a proof."""
        _ = self.statements  # gives bound indices of conditions their sizes
        return Part(text, NORMAL_FORM, self.form(*opaque).equal(left, right))

    def holds(self, left: sp.Expr, right: sp.Expr) -> bool:
        """Whether an equation is proved."""
        _ = self.statements
        return self.form().equal(left, right)

    def tiles_part(self) -> Part:
        """That the tiles hit every key once: the position is ``block * tile + place``, tiles in order or turned."""
        tiles, length = self.tiles, self.reference.dims[self.tiles.index]
        known = all(n == self.ranges[a] for a, n in self.reference.dims.items() if a in self.ranges)
        if tiles.places:
            visited = self.order[0].target if self.order else self.t
            known &= sp.expand(tiles.position - tiles.block * visited - tiles.places[0]) == 0
            known &= tiles.inside == sp.Lt(tiles.position, length) and self.ranges[tiles.places[0]] == tiles.block
            known &= self.ranges[self.t] == Tiles.count(length, tiles.block)
        known &= all(turned(s.expr, self.t, self.count) for s in self.order)
        return Part("every key is in one tile, at one place", DIVISION, bool(known))

    def empty_part(self, name: str) -> Part:
        """That the output is 0 where no key is met: it is divided, or summed, only where one is."""
        fine = (
            self.reference["E"].where == sp.true
            or self.definition.sink
            or isinstance(self.witnessed(self.program[name]).where, Exists)
        )
        return Part(f"{name} is 0 where a query meets no key", WORD_FOR_WORD, fine)

    def steps(self, names: Iterable[str]) -> Iterator[Part]:
        """That closed forms satisfy the steps of the scan, from 0 before the first one."""
        for n in names:
            s = self.program[n]
            if n not in self.closed:
                yield Part(f"{n} has a closed form", NORMAL_FORM, False)
                continue
            c = self.closed[n]
            yield self.equal(f"{c} satisfies the step of {s.target}", c.target, self.with_closed(s.expr))

    def rest(self, proved: Collection[str]) -> Iterator[Part]:
        """That the outputs are made of equal tensors word for word as in the definition."""
        known = {*proved, *self.shared}
        there = {s.name: s for s in self.cut}
        for o in self.reference.outputs:
            todo, fine = [o], True
            seen = set(known)
            while todo:
                n = todo.pop()
                if n in seen:
                    continue
                if n not in there:
                    fine &= n not in self.program
                    continue
                seen.add(n)
                fine &= n in self.program and self.program[n] == there[n]
                todo += list(there[n].needs)
            yield Part(f"{o} is made of these as in the definition", WORD_FOR_WORD, fine)


def numbered(program: Program) -> Program:
    """The program with the number of tiles as a size of its own: the proof holds for any."""
    found = {e: size("tiles") for v in program.dims.values() for e in v.atoms(sp.ceiling) if not e.args[0].has(sp.ceiling)}
    listed = tuple(s.xreplace(found) for s in program)
    dims = {a: n.xreplace(found) for a, n in program.dims.items()}
    return Program(listed, dims, program.outputs, {k: tuple(n.xreplace(found) for n in v) for k, v in program.shapes.items()})


def of_any_block(definition: Definition, program: Program | None) -> Definition:
    """The definition with its log-sum-exp as an output; for any size of tiles where its own program is meant."""
    return definition.replace(lse=True, **({} if program is not None else {"block": None}))


def cut_all(statements: Iterable[Statement], tiles: Tiles, row: sp.Symbol) -> Iterator[Statement]:
    """The statements over queries and keys of a list, over the places of the tiles."""
    cut: dict[str, int] = {}
    for s in statements:
        if {row, tiles.index} <= set(s.indices):
            cut[s.name] = s.indices.index(tiles.index)
        if tiles.places and (s.name in cut or s.needs & cut.keys()):
            yield tiled(s, tiles, cut)  # what sums over queries gets the axes of the tiles, and is read by no other as such
        else:
            yield s


def common(statements: Iterable[Statement], program: Program, given: Collection[str] = ()) -> frozenset[str]:
    """The tensors that a list and a program define word for word, from equal ones."""
    found: set[str] = set(given)
    mine = {s.name for s in program}
    listed = tuple(statements)
    theirs = {s.name for s in listed}
    for s in listed:
        known = all(n in found or (n not in mine and n not in theirs) for n in s.needs)
        if known and s.name in mine and program[s.name] == s and not s.range_only:
            found.add(s.name)
    return frozenset(found)


def turned(e: sp.Expr, t: sp.Symbol, count: sp.Expr) -> bool:
    """Whether ``e`` is a number of tiles minus t, modulo their count: a permutation of the tiles.

    >>> i, t = sp.symbols("i t", integer=True)
    >>> turned(sp.Mod(i - t, 5), t, sp.Integer(5)), turned(sp.Mod(i - 2 * t, 5), t, sp.Integer(5))
    (True, False)
    """
    if not isinstance(e, sp.Mod) or e.args[1] != count:
        return False
    rest = sp.expand(e.args[0] + t), sp.expand(e.args[0] - t)
    return any(not x.has(t) and t not in integer_symbols(x) for x in rest)
