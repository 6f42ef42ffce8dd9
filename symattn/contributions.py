"""What one read adds to the gradient of its tensor, and how the contributions to one gradient are added up.

A read ``X[I]`` in a statement over the indices F, R contributes at ``u = I(F, R)``. Where a subscript is an index, or an index up
to sign and shift (``t - 1``, ``c + d/2``, ``m - 1 - i``), that equation is solved: the contribution is written in u. Elsewhere it
stays as a condition, which readings take as a scatter-add.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import sympy as sp

from symattn.conditions import normal_condition
from symattn.indexed import Tensor, conjuncts, index, integer_symbols, name_of, reads, subscripts_of, tensor
from symattn.program import Program, Statement
from symattn.scans import Scan

__all__ = ["Names", "Part", "contribution", "count_out", "total_of"]


@dataclass
class Names:
    """Names and indices that are in use, and fresh ones."""

    program: Program
    taken: set[str] = field(init=False)
    dims: dict[sp.Symbol, sp.Expr] = field(init=False)

    def __post_init__(self) -> None:
        self.taken = {*self.program.inputs, *(s.name for s in self.program)}
        self.dims = dict(self.program.dims)

    def name(self, wish: str) -> str:
        """``wish``, with primes until it is free."""
        while wish in self.taken:
            wish += "'"
        self.taken.add(wish)
        return wish

    def twin(self, a: sp.Symbol, used: Iterable[sp.Symbol]) -> sp.Symbol:
        """An index of the same size as ``a``, primed until it is not in ``used``."""
        used, b = set(used), index(a.name + "'")
        while b in used or self.dims.setdefault(b, self.dims[a]) != self.dims[a]:
            b = index(b.name + "'")
        return b

    def of_size(self, n: sp.Expr, used: Iterable[sp.Symbol]) -> sp.Symbol:
        """An index of size ``n`` that is not in ``used``: one that the program knows, or a new letter."""
        used = set(used)
        for a, v in self.dims.items():
            if v == n and a not in used:
                return a
        busy = {a.name for a in self.dims} | self.taken | {a.name for a in self.program.sizes}
        letters = [x + tail for tail in ("", *map(str, range(1, len(busy) + 2))) for x in "uvwxyz"]
        a = index(next(x for x in letters if x not in busy))
        self.dims[a] = n
        return a


@dataclass(frozen=True)
class Part:
    """One contribution to a gradient: sum over ``over`` of ``expr`` where ``where``, at the subscripts ``at``."""

    at: tuple[sp.Symbol, ...]
    expr: sp.Expr
    over: tuple[sp.Symbol, ...]
    where: sp.Basic
    source: str


def count_out(
    expr: sp.Expr, over: tuple[sp.Symbol, ...], where: sp.Basic, dims: dict[sp.Symbol, sp.Expr]
) -> tuple[sp.Expr, tuple[sp.Symbol, ...]]:
    """Sum over indices that neither expression nor condition has: a factor, their size."""
    used = integer_symbols(expr) | integer_symbols(where)
    for a in over:
        if a not in used:
            expr = dims[a] * expr
    return expr, tuple(a for a in over if a in used)


def contribution(
    s: Statement, x: Tensor, weight: sp.Expr, slope: sp.Expr, program: Program, names: Names, ends: bool = False
) -> Part | None:
    """What the read ``x`` of ``s`` adds to the gradient of its tensor; None where that is nothing.

    Parameters
    ----------
    s, x
        The statement and one of its reads.
    weight, slope
        The gradient of the target and the derivative of the expression by the read; the contribution is their product.
    program, names
        Where sizes and free letters are.
    ends
        Whether the weight is defined in a scan along the index of the scan of ``s``: it is 0 beyond the ends.
    """
    at: list[sp.Symbol] = []
    where, expr = s.where, weight * slope
    plain = {a for a in subscripts_of(x) if a in s.domain}
    table: dict[sp.Basic, sp.Basic] = {}
    for k, a in enumerate(subscripts_of(x)):
        if a in s.domain and a not in at:
            at.append(a)
            continue
        u = names.of_size(program.shapes[name_of(x)][k], {*s.domain, *at, *plain})
        at.append(u)
        b = _solvable(a, k, x, s.domain)
        if b is None:
            where = sp.And(where, sp.Eq(u, a))
            continue
        table[b] = _solution(a, b, u)
        if not (ends and s.scan is not None and b == s.scan.index and _vanishes_beyond(b, slope, s.where, program)):
            limits = _in_range(a, b, u, names.dims)
            if limits == sp.false:
                return None
            where = sp.And(where, limits)
    expr, where = expr.xreplace(table), _moved_condition(where, table, names.dims)
    if where == sp.false:
        return None
    expr, over = count_out(expr, tuple(a for a in s.domain if a not in at and a not in table), where, names.dims)
    return Part(tuple(at), expr, over, where, s.name)


def _solvable(a: sp.Expr, k: int, x: Tensor, domain: tuple[sp.Symbol, ...]) -> sp.Symbol | None:
    """The one index that a subscript is, up to sign and shift, if no other subscript of the read depends on it."""
    inside = integer_symbols(a) & set(domain)
    if len(inside) != 1 or reads(a) or not a.is_Add:
        return None
    (b,) = inside
    if a.coeff(b, 1) not in (1, -1) or (a - a.coeff(b, 1) * b).has(b):
        return None
    return None if any(b in integer_symbols(c) for n, c in enumerate(subscripts_of(x)) if n != k) else b


def _solution(a: sp.Expr, b: sp.Symbol, u: sp.Symbol) -> sp.Expr:
    """``b`` such that the subscript ``a`` is ``u``."""
    sign = a.coeff(b, 1)
    return sp.expand(sign * (u - (a - sign * b)))


def _moved_condition(where: sp.Basic, table: Mapping[sp.Basic, sp.Basic], dims: Mapping[sp.Symbol, sp.Expr]) -> sp.Basic:
    """A condition in the new index, without what the range of that decides."""
    kept = []
    for c in conjuncts(where):
        moved = c.xreplace(table)
        known = normal_condition(moved, dims) if moved != c else moved
        if known != sp.true:
            kept.append(sp.false if known == sp.false else moved)
    return sp.And(*kept)


def _in_range(a: sp.Expr, b: sp.Symbol, u: sp.Symbol, dims: Mapping[sp.Symbol, sp.Expr]) -> sp.Basic:
    """The condition on u that the solution for b is in the range of b, only the sides that can fail."""
    sign, n = a.coeff(b, 1), dims[b]
    rest = sp.expand(a - sign * b)
    up = (sp.Ge(u, rest), sp.Lt(u, sp.expand(rest + n)))
    down = (sp.Le(u, rest), sp.Gt(u, sp.expand(rest - n)))
    kept = []
    for side in up if sign == 1 else down:
        whole = sp.fraction(sp.together(side.lhs - side.rhs))[0]  # halves of sizes are no integers that SymPy sees
        known = normal_condition(side.func(whole, 0), dims)
        if known != sp.true:
            kept.append(sp.false if known == sp.false else side)
    return sp.And(*kept)


def _vanishes_beyond(b: sp.Symbol, slope: sp.Expr, where: sp.Basic, program: Program) -> bool:
    """Whether a slope has a finite value also where the index b of a scan is beyond the ends of the scan's axis."""
    if b in integer_symbols(where):
        return False
    stand = {x: sp.Dummy(real=True) for x in reads(slope)}
    if not slope.xreplace(stand).is_polynomial(*stand.values(), b):
        return False
    for x in stand:
        axis = program.scan_axes.get(name_of(x))
        if any(b in integer_symbols(a) for k, a in enumerate(subscripts_of(x)) if k != axis):
            return False
    return True


def total_of(target: Tensor, parts: list[Part], seed: Tensor | None, names: Names, scan: Scan | None = None) -> list[Statement]:
    """``target`` = the sum of all contributions and the seed, in as few statements as their domains allow.

    The last statement defines ``target``, in the scan if one is given; those before it are helpers.
    """
    own = [_moved(p, target, names) for p in parts]
    if own and seed is None and (len(own) == 1 or (not any(p.over for p in own) and len({p.where for p in own}) == 1)):
        return [Statement(target, sp.Add(*[p.expr for p in own]), own[0].over, where=own[0].where, scan=scan)]
    out, total = [], [] if seed is None else [seed]
    for p in own:
        if p.over or p.where != sp.true:
            part = tensor(names.name(f"{name_of(target)}_{p.source}"), *subscripts_of(target))
            out.append(Statement(part, p.expr, p.over, where=p.where))
            total.append(part)
        else:
            total.append(p.expr)
    return [*out, Statement(target, sp.Add(*total), scan=scan)]


def _moved(p: Part, target: Tensor, names: Names) -> Part:
    """The contribution with its subscripts renamed to those of the target, and bound indices out of their way."""
    to = subscripts_of(target)
    table = dict(zip(p.at, to, strict=True))
    for a in p.over:
        if a in to:
            table[a] = names.twin(a, {*to, *p.at, *p.over, *table.values()})
    return Part(to, p.expr.xreplace(table), tuple(table.get(a, a) for a in p.over), p.where.xreplace(table), p.source)
