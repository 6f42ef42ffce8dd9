"""Recurrences with decays, brought to a shape in which proofs see that products of factors telescope.

Every positive sequence of factors is ``a[t] = exp(u[t+1] - u[t])`` for a potential ``u``, and a product of factors over a
stretch of steps is the exponential of the difference of the potential at its ends. So a proof for all potentials is a proof for
all positive factors; both sides being rational in the factors, it holds for all others too, where no divisor is 0. A constant
factor has the potential ``t log a``.

In a *chunked* world a position is a pair, its chunk and its place in the chunk: ``i = length*y + s``. That is a bijection of
positions and pairs in range, and ``j <= i`` is the order of pairs by chunk, then by place. What is not of the expected shape is
refused with ProgramError: then nothing is proved.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import sympy as sp

from symattn.errors import ProgramError
from symattn.indexed import Tensor, conjuncts, index, name_of, reads, size, subscripts_of, tensor
from symattn.program import Program, Statement
from symattn.stages.decays import GIVEN

__all__ = ["World"]

CONSTANT = ("gam", "lgam")
LOGARITHMS = ("lgam", "Lal", "Lac")
LETTERS = frozenset(GIVEN.values())


@dataclass
class World:
    """The statements of some evaluations of one recurrence, in potentials; in pairs of chunk and place where one is chunked.

    Parameters
    ----------
    programs
        Evaluations of the same definition.
    """

    programs: tuple[Program, ...]
    length: sp.Expr | None = field(init=False)
    gate: Tensor | None = field(init=False)
    dims: dict[sp.Symbol, sp.Expr] = field(init=False)

    def __post_init__(self) -> None:
        self.length = next((n for p in self.programs if (n := _chunk_length(p)) is not None), None)
        found = {x for p in self.programs for s in p for x in reads(s.expr) if name_of(x) in LETTERS}
        names = {name_of(x) for x in found}
        if len(names) > 1:
            raise ProgramError(f"two decays, {' and '.join(sorted(names))}")
        self.gate = min(found, key=str) if found else None
        self.dims = {a: n for p in self.programs for a, n in p.dims.items()}
        if self.length is not None:
            chunks = sp.ceiling(size("n") / self.length)
            for a in [a for a, n in self.dims.items() if n == size("n")]:
                self.dims |= {self.chunk(a): chunks, self.place(a): self.length}

    # ---------------------------------------------------------------- positions
    def chunk(self, a: sp.Symbol) -> sp.Symbol:
        """The index of the chunk of position ``a``."""
        return index(f"{a}y")

    def place(self, a: sp.Symbol) -> sp.Symbol:
        """The index of the place of position ``a`` in its chunk."""
        return index(f"{a}s")

    def split(self, a: sp.Basic) -> bool:
        """Whether an index is a position that is written as a pair."""
        return self.length is not None and self.dims.get(a) == size("n")

    def at(self, a: sp.Expr) -> tuple[sp.Expr, ...]:
        """The subscripts that a position becomes."""
        return (self.chunk(a), self.place(a)) if self.split(a) else (a,)

    def over(self, *bound: sp.Symbol) -> tuple[tuple[sp.Symbol, ...], sp.Basic]:
        """Bound indices, and the condition that the pairs among them are in range."""
        out = tuple(b for a in bound for b in self.at(a))
        return out, sp.And(*[sp.Ne(tensor("in", *self.at(a)), 0) for a in bound if self.split(a)])

    # ---------------------------------------------------------------- potentials
    def _axes(self) -> tuple[tuple[sp.Expr, ...], tuple[sp.Expr, ...]]:
        """The subscripts of the factors before and behind that of the position."""
        assert self.gate is not None
        sub = subscripts_of(self.gate)
        if name_of(self.gate) in CONSTANT:
            return sub, ()
        last = 1 if name_of(self.gate) in ("Ac", "Lac") else 0
        return sub[: len(sub) - 1 - last], sub[len(sub) - last :]

    def _rate(self) -> sp.Expr:
        return tensor("lgam", *self._axes()[0])

    @property
    def constant(self) -> bool:
        """Whether the factor is the same at all steps."""
        return self.gate is not None and name_of(self.gate) in CONSTANT

    def before(self, a: sp.Expr) -> sp.Expr:
        """The potential before step ``a`` of a world without chunks."""
        if self.gate is None:
            return sp.S.Zero
        if self.constant:
            return self._rate() * a
        lead, last = self._axes()
        return tensor("u", *lead, a, *last)

    def after(self, a: sp.Expr) -> sp.Expr:
        """The potential after step ``a``."""
        if self.gate is None or self.length is None:
            return self.before(a + 1)
        if self.constant:
            return self._rate() * (tensor("edge", self.chunk(a)) + self.place(a) + 1)
        lead, last = self._axes()
        return tensor("u", *lead, *self.at(a), *last)

    def edge(self, x: sp.Expr) -> sp.Expr:
        """The potential before the first step of chunk ``x``, which is that after the last step of the chunk before."""
        if self.gate is None:
            return sp.S.Zero
        if self.constant:
            return self._rate() * tensor("edge", x)
        lead, last = self._axes()
        return tensor("v", *lead, x, *last)

    @property
    def start(self) -> sp.Expr:
        """The potential before the first step."""
        return self.before(sp.S.Zero) if self.length is None else self.edge(sp.S.Zero)

    @property
    def known(self) -> tuple[tuple[sp.Expr, sp.Expr], ...]:
        """Values for proofs: the first chunk starts at 0."""
        return ((sp.exp(self._rate() * tensor("edge", 0)), sp.S.One),) if self.constant else ()

    # ---------------------------------------------------------------- statements
    def statements(self, program: Program) -> dict[str, Statement]:
        """The statements of a program in this world, by name; scans are kept."""
        return {s.name: self._translated(s) for s in program if not (s.name in LETTERS and s.name in CONSTANT)}

    def _translated(self, s: Statement) -> Statement:
        scan = replace(s.scan, index=self.chunk(s.scan.index)) if s.scan and self.split(s.scan.index) else s.scan
        whole = s.expr if isinstance(s.expr, (sp.Indexed, sp.Symbol)) and name_of(s.expr) in LETTERS else None
        if whole is not None and len(s.over) == 1 and s.over[0] in subscripts_of(whole):
            if (s.reduce == "prod") == (name_of(whole) in LOGARITHMS) or s.reduce == "max":
                raise ProgramError(f"{s.name}: factors are multiplied, and their logarithms added, in `{s}`")
            upper, lower = self._stretch(s, s.over[0])
            rest = sp.And(*[c for c in s.conditions if not c.has(s.over[0])])
            expr = sp.exp(upper - lower) if s.reduce == "prod" else upper - lower
            return Statement(tensor(s.name, *self._subscripts(s.indices)), expr, where=self._where(rest), scan=scan)
        over, inside = self.over(*s.over)
        target, where = tensor(s.name, *self._subscripts(s.indices)), sp.And(self._where(s.where), inside)
        return Statement(target, self.expression(s.expr), over, s.reduce, where, scan=scan)

    def _stretch(self, s: Statement, t: sp.Symbol) -> tuple[sp.Expr, sp.Expr]:
        """The potentials at the upper and the lower end of a product (or sum) over the steps t that the condition keeps."""
        upper: list[sp.Expr] = []
        lower: list[sp.Expr] = []
        chunk: list[sp.Expr] = []
        rest = [c for c in s.conditions if not c.has(t)]
        for c in (c for c in s.conditions if c.has(t)):
            x, y = (c.gts, c.lts) if isinstance(c, (sp.Ge, sp.Gt, sp.Le, sp.Lt)) else (None, None)
            if isinstance(c, (sp.Le, sp.Ge)) and y == t and x in self.dims:
                upper.append(x)
            elif isinstance(c, (sp.Lt, sp.Gt)) and x == t and y in self.dims:
                lower.append(y)
            elif isinstance(c, sp.Eq) and self._of_chunk(t) in c.args:
                chunk += [a for a in c.args if a != self._of_chunk(t)]
            else:
                raise ProgramError(f"{s.name}: {c} is no end of a stretch of steps")
        ends = self.dims.keys() >= {*upper, *lower}
        if not ends or max(map(len, (upper, lower, chunk))) > 1 or not (upper or chunk):
            raise ProgramError(f"{s.name}: no stretch of steps, in `{s}`")
        if upper and lower and not any(c in (sp.Le(lower[0], upper[0]), sp.Ge(upper[0], lower[0])) for c in rest):
            raise ProgramError(f"{s.name}: the stretch may end before it starts, in `{s}`")
        if chunk and any(chunk[0] != self._of_chunk(a) for a in (*upper, *lower)):
            raise ProgramError(f"{s.name}: the ends are in other chunks than the steps, in `{s}`")
        x = self._chunk_number(chunk[0]) if chunk else sp.S.Zero
        above = self.after(upper[0]) if upper else self.edge(x + 1)
        below = self.after(lower[0]) if lower else self.edge(x) if chunk else self.start
        return above, below

    def _of_chunk(self, a: sp.Expr) -> sp.Expr:
        return sp.floor(a / self.length) if self.length is not None else sp.nan

    def _chunk_number(self, e: sp.Expr) -> sp.Expr:
        return (
            e.xreplace({self._of_chunk(a): self.chunk(a) for a in self.dims if self.split(a)}) if self.length is not None else e
        )

    def _subscripts(self, sub: Iterable[sp.Expr]) -> tuple[sp.Expr, ...]:
        return tuple(b for a in sub for b in self.at(self._chunk_number(a)))

    def expression(self, e: sp.Expr) -> sp.Expr:
        """An expression with its decays in potentials and its positions in pairs."""
        table: dict[sp.Basic, sp.Basic] = {}
        for p in e.atoms(sp.Pow, sp.exp):
            base, rate = (p.base, p.exp) if isinstance(p, sp.Pow) else (None, p.args[0])
            if base is not None and isinstance(base, (sp.Indexed, sp.Symbol)) and name_of(base) == "gam":
                table[p] = sp.exp(sp.expand(self._rate() * self._steps(rate)))
            elif base is None and self.constant and rate.has(tensor("lgam", *self._axes()[0])) and rate != self._rate():
                table[p] = sp.exp(sp.expand(self._rate() * self._steps(sp.expand(rate / self._rate()))))
        out = e.xreplace(table)
        return out.xreplace(
            {x: self._read(x) for x in reads(out) if x not in table.values() and name_of(x) not in ("u", "v", "edge")}
        )

    def _steps(self, count: sp.Expr) -> sp.Expr:
        """A number of steps: positions and ends of chunks in the edges of chunks."""
        if self.length is None:
            return count
        n, length = size("n"), self.length
        edges: dict[sp.Basic, sp.Basic] = {}
        numbers = [self._of_chunk(a) for a in self.dims if self.split(a)] + [
            a for a, m in self.dims.items() if m == sp.ceiling(n / length)
        ]
        for x in numbers:
            start, end = (tensor("edge", self._chunk_number(x) + k) for k in (0, 1))
            edges[sp.Min(length, n - length * x, evaluate=False)] = end - start
            edges[sp.Min(length * (x + 1), n, evaluate=False)] = end
        out = count
        for m in count.atoms(sp.Min):
            known = [v for k, v in edges.items() if {sp.expand(a) for a in k.args} == {sp.expand(a) for a in m.args}]
            if not known:
                raise ProgramError(f"{m} is no end of a chunk")
            out = out.xreplace({m: sp.Dummy(str(m))}).subs({}) if False else out.xreplace({m: known[0]})
        out = sp.expand(out)
        hidden = {x: sp.Dummy() for x in out.atoms(sp.Indexed)}
        plain = out.xreplace(hidden)
        for x in numbers:
            plain = sp.expand(plain.xreplace({x: tensor("edge", self._chunk_number(x)) / length}))
            hidden |= {y: hidden.get(y, sp.Dummy()) for y in plain.atoms(sp.Indexed)}
            plain = plain.xreplace(hidden)
        for a in [a for a in plain.free_symbols if self.split(a)]:
            plain = plain.xreplace({a: tensor("edge", self.chunk(a)) + self.place(a)})
        return sp.expand(plain.xreplace({d: x for x, d in hidden.items()}))

    def _read(self, x: Tensor) -> sp.Expr:
        name, sub = name_of(x), subscripts_of(x)
        if name not in LETTERS:
            return tensor(name, *self._subscripts(sub)) if sub else x
        if self.constant:
            return sp.exp(self._rate()) if name == "gam" else self._rate()
        if self.length is not None:
            raise ProgramError(f"{x}: a single factor in a chunked evaluation")
        lead, _ = self._axes()
        i = sub[len(lead)]
        fading = self.before(i + 1) - self.before(i)
        return fading if name in LOGARITHMS else sp.exp(fading)

    def _where(self, where: sp.Basic) -> sp.Basic:
        parts = list(conjuncts(where))
        same = {frozenset(a for a in self.dims if c.has(a)) for c in parts if isinstance(c, sp.Eq)}
        return sp.And(*[self._condition(c, same) for c in parts])

    def _condition(self, c: sp.Basic, same: set[frozenset[sp.Symbol]]) -> sp.Basic:
        positions = [a for a in self.dims if self.split(a) and c.has(a)]
        if self.length is None or not positions:
            return c
        if isinstance(c, (sp.Eq, sp.Ne)) and not reads(c):
            return c.func(*[self._chunk_number(a) for a in c.args])
        if isinstance(c, (sp.Le, sp.Lt, sp.Ge, sp.Gt)) and not reads(c) and len(positions) == 2:
            e = sp.expand(c.gts - c.lts - (1 if isinstance(c, (sp.Lt, sp.Gt)) else 0))
            (b,) = [a for a in positions if e.coeff(a, 1) == 1]
            (a,) = [a for a in positions if e.coeff(a, 1) == -1]
            k = sp.expand(e - b + a)
            if k not in (0, -1):
                raise ProgramError(f"{c} is no order of two positions")
            inside = sp.Ge(self.place(b) - self.place(a) + k, 0)
            if frozenset((a, b)) in same:
                return inside
            x, y = self.chunk(a), self.chunk(b)
            return sp.Or(sp.Ge(y - x - 1, 0), sp.And(sp.Eq(x, y), inside))
        if not set(positions) & c.free_symbols - {a for x in reads(c) for a in x.free_symbols}:
            return c.xreplace({x: self._read(x) for x in reads(c)})
        raise ProgramError(f"{c} is not a condition on chunks")


def _chunk_length(program: Program) -> sp.Expr | None:
    """What positions are divided by where chunks are counted."""
    for s in program:
        for f in (*s.expr.atoms(sp.floor), *s.where.atoms(sp.floor)):
            (position,) = [a for a in f.free_symbols if a in program.dims]
            return position / f.args[0]
    return None
