"""How many points the domain of a statement has, and how many of its targets have any: closed forms where masks have them.

A condition on positions that bounds one index by another (causal, a window) is summed piece by piece between the positions at
which another bound takes over. Sizes are taken to be large: the result is compared with a count, point by point, from the
first size on from which it holds, which it carries. Every other condition is a count with a name, and keeps what it counts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import sympy as sp

from symattn.errors import LimitError
from symattn.indexed import all_reads, conjuncts, integer_symbols

__all__ = ["Counted", "Counter"]

LARGE = 10**6
TRIED = 24
"""Up to which size a closed form is compared with a count."""


@dataclass(frozen=True)
class Counted:
    """A count with a name: of the points at which a condition holds, or (``of`` fewer indices) of rows with such a point.

    Parameters
    ----------
    over
        Index -> size.
    of
        The indices whose values are counted; a value counts when the condition holds for some values of the others.
    where
        The condition.
    """

    over: tuple[tuple[sp.Symbol, sp.Expr], ...]
    of: tuple[sp.Symbol, ...]
    where: sp.Basic

    @property
    def countable(self) -> bool:
        """Whether positions and sizes alone decide the condition."""
        return not all_reads(self.where)

    def at(self, sizes: Mapping[sp.Symbol, int]) -> int:
        """The number at given sizes, counted point by point.

        Raises
        ------
        LimitError
            When the condition reads tensors.
        """
        if not self.countable:
            raise LimitError(f"how often {self.where} holds depends on the numbers that are put in")
        table = {a: sp.Integer(v) for a, v in sizes.items()}
        where = self.where.xreplace(table)
        axes = [a for a, _ in self.over]
        holds = sp.lambdify(axes, where, modules="math", cse=False) if axes else None
        seen = set()
        for p in itertools.product(*(range(int(n.xreplace(table))) for _, n in self.over)):
            if holds is None or holds(*p):
                seen.add(tuple(v for a, v in zip(axes, p, strict=True) if a in self.of))
        return len(seen)


@dataclass
class Counter:
    """Counts the points of domains; remembers the names that it gave, and from which size on its closed forms hold.

    Parameters
    ----------
    equal
        Sizes that are taken to be one: {m: n} for self-attention.
    """

    equal: Mapping[sp.Symbol, sp.Expr] = field(default_factory=dict)
    names: dict[Counted, sp.Symbol] = field(default_factory=dict)
    least: int = 1

    def points(
        self, over: Sequence[tuple[sp.Symbol, sp.Expr]], where: sp.Basic, of: Iterable[sp.Symbol] | None = None
    ) -> sp.Expr:
        """The number of points, or of values of the indices ``of`` for which there is one.

        >>> i, j = sp.symbols("i j", integer=True)
        >>> n = sp.Symbol("n", integer=True, positive=True)
        >>> sp.factor(Counter().points([(i, n), (j, n)], sp.Le(j, i)))
        n*(n + 1)/2
        """
        table = dict(self.equal)
        sizes = [(a, n.xreplace(table)) for a, n in over]
        where = where.xreplace(table)
        wanted = tuple(a for a, _ in sizes) if of is None else tuple(of)
        bound = {a for c in conjuncts(where) for a in self._indices(c, sizes)}
        free = [n for a, n in sizes if a not in bound and a in wanted]
        held = tuple((a, n) for a, n in sizes if a in bound)
        count = sp.Mul(*free)
        if not held:
            return count
        return count * self._held(Counted(held, tuple(a for a, _ in held if a in wanted), where))

    @staticmethod
    def _indices(c: sp.Basic, sizes: Sequence[tuple[sp.Symbol, sp.Expr]]) -> set[sp.Symbol]:
        found = integer_symbols(c) | {a for x in all_reads(c) for a in integer_symbols(x)}
        return {a for a, _ in sizes if a in found}

    def _held(self, c: Counted) -> sp.Expr:
        found = _closed(c) if c.countable else None
        if found is not None:
            self.least = max(self.least, found[1])
            return found[0]
        if not c.of:
            return sp.S.One
        if c not in self.names:
            letter = "kept" if len(c.of) == len(c.over) else "rows"
            taken = sum(s.name.startswith(letter) for s in self.names.values())
            self.names[c] = sp.Symbol(letter + (str(taken + 1) if taken else ""), integer=True, nonnegative=True)
        return self.names[c]


@lru_cache(maxsize=256)
def _closed(c: Counted) -> tuple[sp.Expr, int] | None:
    """A closed form in one size, and from which size on it holds; None where there is none."""
    found = {a for _, n in c.over for a in n.free_symbols} | {a for a in integer_symbols(c.where) if a not in dict(c.over)}
    if len(c.over) != 2 or len(found) != 1:
        return None
    n = next(iter(found))
    formula = _summed(c, n)
    if formula is None:
        return None
    least = 1
    for value in range(1, TRIED + 1):
        if formula.xreplace({n: sp.Integer(value)}) != c.at({n: value}):
            least = value + 1
    return (formula, least) if least <= TRIED // 2 else None


def _summed(c: Counted, n: sp.Symbol) -> sp.Expr | None:
    """The sum over the first index of how many values of the second one are between its bounds."""
    (i, rows), (j, columns) = c.over
    if c.of == (j,):
        (i, rows), (j, columns) = (j, columns), (i, rows)
    lower, upper = [sp.S.Zero], [columns - 1]
    for q in conjuncts(c.where):
        bound = _bound(q, j)
        if bound is None:
            return None
        (upper if bound[0] else lower).append(bound[1])
    one = c.of in ((i,), (j,))
    cuts = [sp.S.Zero, rows]
    pairs = [*itertools.combinations(upper, 2), *itertools.combinations(lower, 2), *((a + 1, b) for a in upper for b in lower)]
    for a, b in pairs:
        difference = sp.expand(a - b)
        slope = difference.coeff(i, 1)
        if slope == 0:
            continue
        at = sp.expand(-difference.coeff(i, 0) / slope)
        if slope not in (1, -1) or not at.subs(n, LARGE).is_Integer:
            return None
        cuts += [at, at + 1]
    inside = sorted({k for k in cuts if 0 <= k.subs(n, LARGE) <= rows.subs(n, LARGE)}, key=lambda k: k.subs(n, LARGE))
    total = sp.S.Zero
    for first, end in itertools.pairwise(inside):
        at = {i: first.subs(n, LARGE), n: LARGE}
        top = min(upper, key=lambda e: e.subs(at))
        bottom = max(lower, key=lambda e: e.subs(at))
        if (top - bottom + 1).subs(at) > 0:
            total += end - first if one else sp.summation(sp.expand(top - bottom + 1), (i, first, end - 1))
    return sp.expand(total)


def _bound(q: sp.Basic, j: sp.Symbol) -> tuple[bool, sp.Expr] | None:
    """A condition as a bound of j: whether it is one from above, and the bound itself."""
    if not isinstance(q, (sp.Le, sp.Lt, sp.Ge, sp.Gt)):
        return None
    low, high = (q.lhs, q.rhs) if isinstance(q, (sp.Le, sp.Lt)) else (q.rhs, q.lhs)
    rest = sp.expand(high - low)  # at least 0, or at least 1
    if isinstance(q, (sp.Lt, sp.Gt)):
        rest -= 1
    slope = rest.coeff(j, 1)
    if slope not in (1, -1) or sp.expand(rest - slope * j).has(j) or rest.atoms(sp.Function, sp.Mod, sp.floor):
        return None
    other = sp.expand(rest - slope * j)
    return (True, other) if slope == -1 else (False, -other)
