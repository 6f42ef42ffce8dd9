"""Conditions as the normal form sees them: one shape for each, what index ranges alone decide, and existence over an index.

Comparisons of indices and sizes are comparisons of integers, so ``x < y`` is ``x <= y - 1``; each becomes ``e >= 0`` with ``e``
expanded. Comparisons that read tensors are comparisons of real numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import sympy as sp

from symattn.indexed import conjuncts, integer_symbols, reads

__all__ = ["Exists", "normal_condition", "normal_conditions", "serial", "strongest"]


class Exists(sp.Basic):
    """``Exists(conditions, indices, sizes)``: some value of the indices satisfies the condition. A condition without bound names.

    >>> i, j = sp.symbols("i j", integer=True)
    >>> a = Exists.over([sp.Le(j, i)], {j: sp.Integer(3)})
    >>> b = Exists.over([sp.Le(j, i)], {j: sp.Integer(3)})
    >>> a == b, serial(a) == serial(b)
    (False, True)
    """

    @classmethod
    def over(cls, conditions: Iterable[sp.Basic], indices: Mapping[sp.Symbol, sp.Expr]) -> Exists:
        """Some value of the indices, given with their sizes, satisfies all conditions; the indices get names of their own."""
        table = {a: sp.Dummy(a.name, integer=True) for a in indices}
        return cls(sp.Tuple(*[c.xreplace(table) for c in conditions]), sp.Tuple(*table.values()), sp.Tuple(*indices.values()))

    @property
    def conditions(self) -> tuple[sp.Basic, ...]:
        """What must hold together."""
        return tuple(self.args[0])

    @property
    def indices(self) -> tuple[sp.Symbol, ...]:
        """The indices that are sought."""
        return tuple(self.args[1])

    @property
    def sizes(self) -> tuple[sp.Expr, ...]:
        """The sizes of these indices."""
        return tuple(self.args[2])

    @property
    def binds(self) -> tuple[tuple[sp.Symbol, ...], tuple[sp.Expr, ...], tuple[sp.Basic, ...]]:
        """The bound indices, their sizes, and what they are bound in."""
        return self.indices, self.sizes, self.conditions

    @property
    def free_symbols(self) -> set[sp.Basic]:
        """All symbols but the indices that are sought."""
        return {a for c in self.conditions for a in c.free_symbols} - set(self.indices)


def serial(e: sp.Basic, names: Mapping[sp.Symbol, str] | None = None) -> str:
    """A string that is the same for expressions equal up to the order of commutative arguments, with indices named by ``names``.

    >>> i, j = sp.symbols("i j", integer=True)
    >>> serial(i - j, {i: "@", j: "#"}) == serial(-j + i, {i: "@", j: "#"})
    True
    """
    names = names or {}
    if isinstance(e, sp.Symbol):
        if e in names:
            return names[e]
        kind = "s" if e.is_positive else "i" if e.is_integer else "r"
        return f"{kind}:{e.name}"
    if isinstance(e, sp.Indexed):
        return f"{e.base.label}[{','.join(serial(a, names) for a in e.indices)}]"
    if hasattr(e, "binds"):
        indices, sizes, parts = e.binds
        depth = sum(v.startswith("?") for v in names.values())
        inner = {**names, **{a: f"?{depth + k}" for k, a in enumerate(indices)}}
        lengths = ",".join(serial(n) for n in sizes)
        return f"{type(e).__name__}({lengths};{','.join(sorted(serial(c, inner) for c in parts))})"
    if not e.args:
        return str(e)
    if isinstance(e, sp.Abs):  # the sign that SymPy gives the argument hangs on names
        return f"Abs({min(serial(e.args[0], names), serial(sp.expand(-e.args[0]), names))})"
    args = [serial(a, names) for a in e.args]
    if isinstance(e, (sp.Eq, sp.Ne)):
        if e.rhs == 0:
            args = [min(args[0], serial(sp.expand(-e.lhs), names)), args[1]]
        else:
            args.sort()
    elif isinstance(e, (sp.Add, sp.Mul, sp.And, sp.Or, sp.Max, sp.Min)):
        args.sort()
    return f"{type(e).__name__}({','.join(args)})"


def normal_conditions(where: sp.Basic, dims: Mapping[sp.Symbol, sp.Expr]) -> frozenset[sp.Basic] | None:
    """The conjuncts of ``where`` in normal shape without those that always hold; None when they cannot hold."""
    out: set[sp.Basic] = set()
    for c in conjuncts(where):
        q = normal_condition(c, dims)
        if q == sp.false:
            return None
        out |= {q} - {sp.true}
    return strongest(frozenset(out))


def normal_condition(c: sp.Basic, dims: Mapping[sp.Symbol, sp.Expr]) -> sp.Basic:
    """One condition in normal shape; ``true`` or ``false`` where the ranges of its indices decide it.

    >>> i, j, n = sp.symbols("i j", integer=True) + (sp.Symbol("n", integer=True, positive=True),)
    >>> normal_condition(sp.Lt(j, i), {i: n, j: n}), normal_condition(sp.Ge(i, 0), {i: n})
    (i - j - 1 >= 0, True)
    """
    if isinstance(c, (sp.Gt, sp.Lt, sp.Ge, sp.Le)):
        e = c.lhs - c.rhs if isinstance(c, (sp.Gt, sp.Ge)) else c.rhs - c.lhs
        if e.has(sp.oo, -sp.oo, sp.zoo, sp.nan):
            return c
        e = sp.expand(e)
        if not e.is_integer:
            return sp.Ge(e, 0) if isinstance(c, (sp.Ge, sp.Le)) else sp.Gt(e, 0)
        if isinstance(c, (sp.Gt, sp.Lt)):
            e = e - 1
        low, high = _bounds(e, dims)
        if low is not None and low.is_nonnegative:
            return sp.true
        if high is not None and high.is_negative:
            return sp.false
        return sp.Ge(e, 0)
    if isinstance(c, (sp.Eq, sp.Ne)):
        if c.lhs.is_integer and c.rhs.is_integer:
            e = _no_remainder(sp.expand(c.lhs - c.rhs))
            if e.is_number:
                return sp.true if (e == 0) == isinstance(c, sp.Eq) else sp.false
            return c.func(e, 0)
        return c
    if isinstance(c, Exists):
        kept = [normal_condition(q, dims) for q in c.conditions]
        if sp.false in kept:
            return sp.false
        kept = sorted(strongest(frozenset(kept) - {sp.true}), key=str)
        first = dict.fromkeys(c.indices, sp.S.Zero)
        if all(normal_condition(q.xreplace(first), dims) == sp.true for q in kept):
            return sp.true
        return Exists(sp.Tuple(*kept), sp.Tuple(*c.indices), sp.Tuple(*c.sizes))
    return c


def _no_remainder(e: sp.Expr) -> sp.Expr:
    """``(x mod k) - r``, which is 0 where a remainder is r, as ``(x - r) mod k``, which is 0 there too.

    >>> x = sp.Symbol("x", integer=True)
    >>> _no_remainder(sp.Mod(x, 2) - 1) == sp.Mod(x + 1, 2)
    True
    """
    r, rest = (-e).as_coeff_Add()
    found = -rest
    k = found.args[1] if isinstance(found, sp.Mod) else None
    if k is not None and k.is_Integer and r.is_Integer and 0 < r < k:
        return sp.Mod(sp.expand(found.args[0] - r), found.args[1])
    return e


def _bounds(e: sp.Expr, dims: Mapping[sp.Symbol, sp.Expr]) -> tuple[sp.Expr | None, sp.Expr | None]:
    """The least and the greatest value of an expression linear in indices, over their ranges; None when it is not."""
    if reads(e) or any(integer_symbols(f) & dims.keys() for f in e.atoms(sp.Function, sp.Mod, sp.Pow)):
        return None, None
    known = [a for a in integer_symbols(e) if a in dims]
    if any(a not in dims and not a.is_positive for a in integer_symbols(e)):
        return None, None
    low = high = e
    for a in known:
        slope = e.coeff(a, 1)
        if sp.expand(e - slope * a).has(a) or slope.is_nonnegative is None:
            return None, None
        ends = (sp.S.Zero, dims[a] - 1) if slope.is_nonnegative else (dims[a] - 1, sp.S.Zero)
        low, high = low.xreplace({a: ends[0]}), high.xreplace({a: ends[1]})
    return sp.expand(low), sp.expand(high)


def strongest(conditions: frozenset[sp.Basic]) -> frozenset[sp.Basic]:
    """The conditions without those that another one implies: of ``e + 1 >= 0`` and ``e >= 0`` the second stays.

    >>> i, j = sp.symbols("i j", integer=True)
    >>> strongest(frozenset({sp.Ge(i - j, 0), sp.Ge(i - j + 1, 0)}))
    frozenset({i - j >= 0})
    """
    least: dict[tuple[type, sp.Expr], sp.Expr] = {}
    rest: set[sp.Basic] = set()
    for c in conditions:
        if isinstance(c, (sp.Ge, sp.Gt)) and c.rhs == 0:
            number, part = c.lhs.as_coeff_Add()
            key = (type(c), part)
            least[key] = min(number, least[key]) if key in least else number
        else:
            rest.add(c)
    return frozenset(rest | {kind(part + number, 0) for (kind, part), number in least.items()})
