"""One step of rewriting of a term of the normal form: each rule returns the terms that replace it, or None if it does not fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sp

from symattn.conditions import Exists, serial, strongest
from symattn.indexed import all_reads, name_of, reads, subscripts_of
from symattn.matching import match, match_all
from symattn.ranges import between
from symattn.terms import Term

if TYPE_CHECKING:
    from symattn.normalform import NormalForm
    from symattn.sums import Contraction, Outside

__all__ = ["Reduction"]

_NONE: frozenset[sp.Basic] = frozenset()


@dataclass(frozen=True)
class _Known:
    """A known sum, worked out: factors and conditions that have the bound indices, what they equal, and when."""

    atoms: tuple[tuple[sp.Expr, sp.Rational], ...]
    bound: tuple[sp.Symbol, ...]
    conditions: tuple[sp.Basic, ...]
    value: tuple[Term, ...]
    given: frozenset[sp.Basic]


class Reduction:
    """The rules, for one :class:`~symattn.normalform.NormalForm`."""

    def __init__(self, form: NormalForm) -> None:
        self.form = form
        self._sums: list[_Known] | None = None

    def step(self, t: Term, split: bool) -> list[Term] | None:
        """Apply the first rule that fits."""
        for rule in (
            self._conditions,
            self._equality,
            self._absolute,
            self._sum_atom,
            self._first_of_sum,
            self._substitute,
            self._contract,
            self._count,
        ):
            found = rule(t)
            if found is not None:
                return found
        return self._split(t) if split else None

    # ---------------------------------------------------------------- conditions
    def _conditions(self, t: Term) -> list[Term] | None:
        if sp.false in t.conditions:
            return []
        kept = strongest(t.conditions)
        for c in [c for c in kept if isinstance(c, Exists)]:
            if self._witnessed(c, kept - {c}):
                kept -= {c}
        return None if kept == t.conditions else [Term(t.coefficient, t.atoms, t.bound, kept)]

    def _witnessed(self, c: Exists, others: frozenset[sp.Basic]) -> bool:
        """Whether the other conditions already hold at some value of the indices that are sought, or name the same."""
        if serial(c) in {serial(q) for q in others}:
            return True
        sought = dict(zip(c.indices, c.sizes, strict=True))
        fits = lambda a, e: a in sought and (e is a or self.form.dims.get(e) == sought[a])
        return any(True for _ in match_all(c.conditions, [q for q in others if not isinstance(q, Exists)], {}, fits))

    def _equality(self, t: Term) -> list[Term] | None:
        for c in t.conditions:
            if isinstance(c, sp.Eq):
                for x, y in _solutions(c, t.bound):
                    if self._in_range(y, self.form.dims[x], t.conditions - {c}):
                        rest = Term(t.coefficient, t.atoms, t.bound - {x}, t.conditions - {c})
                        moved = self.form.renamed(rest, {x: y})
                        return [] if moved is None else [moved]
        return None

    def _in_range(self, y: sp.Expr, size: sp.Expr, conditions: frozenset[sp.Basic]) -> bool:
        """Whether ``y`` is known to be a value of an index of that size."""
        dims = self.form.dims
        if y in dims:
            return bool(dims[y] == size)
        if y == 0 or sp.expand(y - size) == -1:
            return True
        have = {serial(q) for q in conditions}
        if between(
            y, size, self.form.dims, lambda c: (q := self.form.normal(c)) is not None and all(serial(x) in have for x in q)
        ):
            return True
        for pattern, n, where in self.form.ranges:
            if n != size:
                continue
            for m in match(pattern, y, {}, lambda a, e: a in dims and e in dims and dims[e] == dims[a]):
                need = self.form.normal(sp.And(*[q.xreplace(m) for q in where]))
                # the read is in range at some value of the other indices of its conditions
                fits = lambda a, e: a in dims and (e is a or (e in dims and dims[e] == dims[a]))
                if need is not None and next(match_all([*need], [*conditions], {a: a for a in m.values()}, fits), None):
                    return True
        return False

    def apart(self, t: Term) -> list[Term]:
        """The term inside and outside the conditions ``c`` of each total in it: ``l = [c] l + (1 - [c]) rest``."""
        form, out = self.form, [t]
        done: set[sp.Expr] = set()
        for x in t.atoms:
            for y in all_reads(x) if x not in form.dims else ():
                if name_of(y) not in form.outside or y in done:
                    continue
                done.add(y)
                known = form.outside[name_of(y)]
                at = dict(zip(known.at, subscripts_of(y), strict=True))
                out = [z for r in out for z in self._inside_outside(r, y, known, at)]
        return out

    def _inside_outside(self, t: Term, y: sp.Expr, known: Outside, at: Mapping[sp.Symbol, sp.Expr]) -> list[Term]:
        where = self.form.normal(sp.And(*known.conditions).xreplace(at))
        if where is not None and strongest(t.conditions | where) == strongest(t.conditions):
            return [t]
        kept = Term(t.coefficient, {x: p for x, p in t.atoms.items() if not x.has(y)}, t.bound, t.conditions)
        value = known.value.xreplace(at)
        new = [self.form.expand(x.xreplace({y: value}) ** p, t.conditions) for x, p in t.atoms.items() if x.has(y)]
        if not new:
            return [t]
        rest = self.form.times([kept], *new)
        if where is None:
            return rest
        less = [Term(-r.coefficient, r.atoms, r.bound, r.conditions | where) for r in rest]
        return [Term(t.coefficient, t.atoms, t.bound, t.conditions | where), *rest, *less]

    def _split(self, t: Term) -> list[Term] | None:
        """Take a condition apart: complements have one orientation, alternatives are sums."""
        for c in sorted(t.conditions, key=serial):
            less = t.conditions - {c}
            parts = self._parts(c, t.bound)
            if parts is not None:
                out = []
                for sign, new in parts:
                    q = self.form.normal(new)
                    if q is not None:
                        out.append(Term(sign * t.coefficient, t.atoms, t.bound, less | q))
                return out
        return None

    def _parts(self, c: sp.Basic, bound: frozenset[sp.Symbol]) -> list[tuple[int, sp.Basic]] | None:
        if isinstance(c, sp.Ne):
            return [(1, sp.true), (-1, sp.Eq(c.lhs, c.rhs))]
        if isinstance(c, sp.Not):
            return [(1, sp.true), (-1, c.args[0])]
        if isinstance(c, sp.And):
            return [(1, c)]
        if isinstance(c, sp.Or):
            first, rest = c.args[0], sp.Or(*c.args[1:])
            return [(1, first), (1, rest), (-1, sp.And(first, rest))]
        if isinstance(c, sp.Gt) and c.rhs == 0:
            return [(1, sp.true), (-1, sp.Ge(-c.lhs, 0))]
        if isinstance(c, sp.Ge) and c.rhs == 0 and c.lhs.is_integer:
            number = c.lhs.as_coeff_Add()[0]
            if number < 0:
                return [(1, sp.true), (-1, sp.Ge(sp.expand(-c.lhs - 1), 0))]
            masked = {a: f"<{serial(self.form.dims[a])}>" for a in bound}
            back = sp.expand(-c.lhs)
            if number == 0 and serial(c.lhs, masked) > serial(back, masked):
                return [(1, sp.true), (-1, sp.Ge(back, 0)), (1, sp.Eq(c.lhs, 0))]
        return None

    # ---------------------------------------------------------------- factors
    def _absolute(self, t: Term) -> list[Term] | None:
        """Even powers of ``|x|`` are powers of ``x``."""
        for x, p in t.atoms.items():
            if isinstance(x, sp.Abs) and p.is_Integer and p not in (0, 1):
                even = p - p % 2
                rest = {z: q for z, q in t.atoms.items() if z != x} | ({x: sp.S.One} if p % 2 else {})
                return self.form.times(
                    [Term(t.coefficient, rest, t.bound, t.conditions)], self.form.expand(x.args[0] ** even, t.conditions)
                )
        return None

    def _sum_atom(self, t: Term) -> list[Term] | None:
        """A positive power of a sum is multiplied out."""
        for x, p in t.atoms.items():
            if isinstance(x, sp.Add) and p >= 1:
                rest = {z: q for z, q in t.atoms.items() if z != x} | ({x: p - 1} if p != 1 else {})
                return self.form.times([Term(t.coefficient, rest, t.bound, t.conditions)], self.form.expand(x, t.conditions))
        return None

    def _first_of_sum(self, t: Term) -> list[Term] | None:
        """``first * u**-q`` with ``u = first + rest`` is ``u**(1-q) - rest * u**-q``."""
        for x, p in t.atoms.items():
            if not (isinstance(x, sp.Add) and p < 0):
                continue
            parts = [(a, self.form.expand(a, t.conditions)) for a in x.args]
            simple = [
                (a, e[0]) for a, e in parts if len(e) == 1 and e[0].atoms and not e[0].bound and e[0].conditions <= t.conditions
            ]
            if not simple:
                continue
            masked = {a: f"<{serial(self.form.dims[a])}>" for a in t.bound}
            first, one = max(simple, key=lambda q: (len(q[1].atoms), serial(q[0], masked)))
            if all((t.atoms.get(z, 0) - r) * r >= 0 and t.atoms.get(z, 0) != 0 for z, r in one.atoms.items()):
                left = {z: t.atoms.get(z, sp.S.Zero) - one.atoms.get(z, sp.S.Zero) for z in {**t.atoms, **one.atoms}}
                left = {z: r for z, r in left.items() if r != 0}
                c = t.coefficient / one.coefficient
                higher = {**left, x: p + 1} if p != -1 else {z: r for z, r in left.items() if z != x}
                rest = self.form.expand(sp.Add(*[a for a in x.args if a != first]), t.conditions)
                return [
                    Term(c, higher, t.bound, t.conditions),
                    *self.form.times([Term(-c, left, t.bound, t.conditions)], rest),
                ]
        return None

    def _substitute(self, t: Term) -> list[Term] | None:
        dims = self.form.dims
        for x, p in t.atoms.items():
            for pattern, value in self.form.subst:
                m = next(match(pattern, x, {}, lambda a, e: a in dims and (e not in dims or dims[e] == dims[a])), None)
                if m is not None:
                    rest = Term(t.coefficient, {z: r for z, r in t.atoms.items() if z != x}, t.bound, t.conditions)
                    return self.form.times([rest], self.form.expand(value.xreplace(m) ** p, t.conditions))
        return None

    # ---------------------------------------------------------------- sums
    def _count(self, t: Term) -> list[Term] | None:
        """An index that occurs nowhere: its size."""
        for a in t.bound:
            if t.having(a) == ([], []):
                return [Term(t.coefficient * self.form.dims[a], t.atoms, t.bound - {a}, t.conditions)]
        return None

    def _contract(self, t: Term) -> list[Term] | None:
        if not t.bound:
            return None
        if self._sums is None:
            self._sums = [k for c in self.form.contract for k in self._worked_out(c)]
        for known in self._sums:
            for m, atoms, conditions in self._occurrences(known, t):
                rest = Term(
                    t.coefficient,
                    {z: r for z, r in t.atoms.items() if z not in atoms},
                    t.bound - {m[a] for a in known.bound},
                    t.conditions - conditions,
                )
                value = [self._moved(v, m) for v in known.value]
                if any(v is None for v in value):
                    continue
                out = self.form.times([rest], [v for v in value if v is not None])
                return [self._guarded(o, known, m) for o in out]
        return None

    def _worked_out(self, c: Contraction) -> Iterator[_Known]:
        """Expand the pattern; what has no bound index goes to the other side."""
        where = self.form.normal(c.where)
        given = self.form.normal(c.given)
        if where is None or given is None:
            return
        terms = self.form.expand(c.pattern, where)
        if len(terms) != 1:
            return
        t = terms[0]
        bound = t.bound | set(c.over)
        conditions = strongest(t.conditions | where)

        def inside(e: sp.Basic) -> bool:
            return any(e.has(a) for a in bound)

        held = frozenset(q for q in conditions if not inside(q))
        apart = {x: -p for x, p in t.atoms.items() if not inside(x)}
        value = self.form.times([Term(1 / t.coefficient, apart)], self.form.expand(c.value))
        atoms = tuple((x, p) for x, p in t.atoms.items() if inside(x))
        yield _Known(atoms, tuple(bound), tuple(q for q in conditions if inside(q)), tuple(value), held | given)

    def _occurrences(
        self, known: _Known, t: Term
    ) -> Iterator[tuple[dict[sp.Symbol, sp.Expr], set[sp.Expr], frozenset[sp.Basic]]]:
        """The places where a known sum is a factor of the term: its bound indices occur in nothing else."""
        dims, bound = self.form.dims, set(known.bound)

        def fits(a: sp.Symbol, e: sp.Expr) -> bool:
            if a not in dims:
                return False
            if e is a:
                return True
            if a in bound:
                return e in t.bound and dims[e] == dims[a]
            return e not in dims or dims[e] == dims[a]

        powers = dict(known.atoms)
        for m, used in match_all([x for x, _ in known.atoms], list(t.atoms), {}, fits):
            if any(t.atoms[u] != powers[x] for u, (x, _) in zip(used, known.atoms, strict=True)):
                continue
            for m2, conditions in match_all(known.conditions, list(t.conditions), m, fits):
                mine = [m2.get(a) for a in known.bound]
                if None in mine or len(set(mine)) != len(mine) or not set(mine) <= t.bound:
                    continue
                if any(set(t.having(b)[0]) - set(used) or set(t.having(b)[1]) - set(conditions) for b in mine):
                    continue
                if any(m2[a].has(b) for a in m2 if a not in bound for b in mine):
                    continue
                if not {a for q in known.given for a in q.free_symbols if a in dims} <= m2.keys():
                    continue
                have = {serial(q) for q in t.conditions}
                need = [self.form.normal(q.xreplace(m2)) for q in known.given]
                if all(n is not None and all(serial(q) in have for q in n) for n in need):
                    yield m2, set(used), frozenset(conditions)

    def _moved(self, v: Term, m: Mapping[sp.Symbol, sp.Expr]) -> Term | None:
        free = {a for x in (*v.atoms, *v.conditions) for a in x.free_symbols if a in self.form.dims} - v.bound
        if not free <= m.keys():
            return None
        return self.form.renamed(v, {**{a: self.form.fresh(a) for a in v.bound}, **m})

    def _guarded(self, t: Term, known: _Known, m: Mapping[sp.Symbol, sp.Expr]) -> Term:
        """The sum is 0 where nothing satisfies its conditions; said where a factor of the term may have no value there."""
        if not known.conditions or not self._partial(t):
            return t
        guard = self.form.exists(
            [q.xreplace({a: e for a, e in m.items() if a not in known.bound}) for q in known.conditions], known.bound
        )
        return Term(t.coefficient, t.atoms, t.bound, t.conditions | (frozenset({sp.false}) if guard is None else guard))

    def _partial(self, t: Term) -> bool:
        """Whether a factor divides by, or is a function of, a tensor that has no value everywhere."""
        have = {serial(q) for q in t.conditions}
        for x, p in t.atoms.items():
            if isinstance(x, (sp.Indexed, sp.Symbol)) and p > 0 and p.is_integer:
                continue
            for y in all_reads(x) if not isinstance(x, sp.Symbol) or x not in self.form.dims else ():
                if name_of(y) in self.form.support and any(serial(q) not in have for q in self.form.supported(y)):
                    return True
        return False


def _solutions(c: sp.Eq, bound: Iterable[sp.Symbol]) -> Iterator[tuple[sp.Symbol, sp.Expr]]:
    """Bound indices that an equality determines, with their values."""
    for x in sorted((a for a in bound if c.has(a)), key=str):
        for a, b in ((c.lhs, c.rhs), (c.rhs, c.lhs)):
            if a == x and not b.has(x):
                yield x, b
        if c.rhs == 0 and not reads(c.lhs):
            slope = c.lhs.coeff(x, 1)
            rest = sp.expand(c.lhs - slope * x)
            if slope in (1, -1) and not rest.has(x):
                yield x, sp.expand(-rest / slope)
