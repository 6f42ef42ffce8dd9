"""Terms of the normal form: coefficient * atom powers * conditions, summed over bound indices; and their canonical names.

Two terms that differ only in the names of bound indices of one dimension have the same :func:`canonical` string.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import comb

import sympy as sp

from symattn.conditions import serial
from symattn.errors import LimitError
from symattn.sums import SumOver

__all__ = ["Term", "canonical", "expanded", "over_one_denominator", "vanishes"]

_LEAVES = 2000


@dataclass(frozen=True)
class Term:
    """``coefficient * prod atom**power * prod [condition]`` summed over ``bound``. The coefficient holds numbers and sizes."""

    coefficient: sp.Expr
    atoms: Mapping[sp.Expr, sp.Rational]
    bound: frozenset[sp.Symbol] = frozenset()
    conditions: frozenset[sp.Basic] = frozenset()

    def having(self, a: sp.Symbol) -> tuple[list[sp.Expr], list[sp.Basic]]:
        """The atoms and the conditions in which the index ``a`` occurs."""
        return [x for x in self.atoms if x.has(a)], [c for c in self.conditions if c.has(a)]


def _pieces(t: Term) -> list[tuple[sp.Basic, str]]:
    """Atoms with their powers, and conditions, each with a tag."""
    return [(x, f"^{p}") for x, p in t.atoms.items()] + [(c, "?") for c in t.conditions]


def canonical(t: Term, dims: Mapping[sp.Symbol, sp.Expr]) -> str:
    """The term without its coefficient as a string in which bound indices have canonical names.

    Parts of the term that share no bound index are named separately, so that equal factors cost nothing.

    Raises
    ------
    LimitError
        When the term is so symmetric that too many namings would have to be compared.
    """
    pieces = [(p, tag, frozenset(a for a in t.bound if p.has(a))) for p, tag in _pieces(t)]
    free = _line([(p, tag) for p, tag, own in pieces if not own], {})
    groups: list[tuple[set[sp.Symbol], list[tuple[sp.Basic, str]]]] = []
    for p, tag, own in pieces:
        if own:
            touching = [g for g in groups if g[0] & own]
            groups = [g for g in groups if not g[0] & own]
            groups.append((set(own).union(*[g[0] for g in touching]), [(p, tag), *[q for g in touching for q in g[1]]]))
    return free + " | " + " | ".join(sorted(_name(ixs, ps, dims) for ixs, ps in groups))


def _line(pieces: list[tuple[sp.Basic, str]], names: Mapping[sp.Symbol, str]) -> str:
    """Atoms as often as they occur, each condition once."""
    found = [(serial(p, names), tag) for p, tag in pieces]
    return " ".join(sorted([p + tag for p, tag in found if tag != "?"] + list({p + tag for p, tag in found if tag == "?"})))


def _name(bound: Iterable[sp.Symbol], pieces: list[tuple[sp.Basic, str]], dims: Mapping[sp.Symbol, sp.Expr]) -> str:
    """The least string over the namings of ``bound`` that colour refinement leaves."""
    leaves = 0

    def refine(colour: dict[sp.Symbol, str]) -> dict[sp.Symbol, str]:
        while True:
            seen = {}
            for a in colour:
                names = {**{x: f"<{c}>" for x, c in colour.items()}, a: "@"}
                seen[a] = (colour[a], tuple(sorted(serial(p, names) + tag for p, tag in pieces if p.has(a))))
            rank = {v: f"{k:03d}" for k, v in enumerate(sorted(set(seen.values())))}
            new = {a: rank[seen[a]] for a in colour}
            if len(set(new.values())) == len(set(colour.values())):
                return new
            colour = new

    def least(colour: dict[sp.Symbol, str]) -> str:
        nonlocal leaves
        classes: dict[str, list[sp.Symbol]] = {}
        for a, c in colour.items():
            classes.setdefault(c, []).append(a)
        open_ = sorted(c for c, xs in classes.items() if len(xs) > 1)
        if not open_:
            leaves += 1
            if leaves > _LEAVES:
                raise LimitError(f"a product of {len(pieces)} factors is too symmetric to be brought to one form")
            names = {a: f"_{c}:{serial(dims[a])}" for a, c in colour.items()}
            return f"sum({','.join(sorted(names.values()))}) " + _line(pieces, names)
        return min(least(refine({**colour, a: colour[a] + "!"})) for a in classes[open_[0]])

    return least(refine({a: serial(dims[a]) for a in bound}))


def over_one_denominator(e: sp.Expr) -> tuple[sp.Expr, sp.Expr, sp.Expr]:
    """A sum as (number, sum, denominator), functions being symbols: ``1 + x/y`` is ``(1, y + x, y)``."""
    table = {f: sp.Dummy(positive=True) for f in e.atoms(sp.Function, SumOver)}
    above, below = sp.fraction(sp.together(e.xreplace(table)))
    number, rest = sp.expand(above).as_content_primitive()
    if rest.could_extract_minus_sign():
        number, rest = -number, sp.expand(-rest)
    back = {d: f for f, d in table.items()}
    return number, rest.xreplace(back), below.xreplace(back)


def expanded(e: sp.Expr, limit: int) -> sp.Expr:
    """``e`` multiplied out.

    Raises
    ------
    LimitError
        When that may give more than ``limit`` terms.

    >>> x, y = sp.symbols("x y")
    >>> expanded((x + y) ** 2, 10)
    x**2 + 2*x*y + y**2
    >>> expanded((x + y) ** 20, 10)
    Traceback (most recent call last):
    ...
    symattn.errors.LimitError: multiplied out this has more than 10 terms
    """
    if _terms(e, limit) > limit:
        raise LimitError(f"multiplied out this has more than {limit} terms")
    return sp.expand(e)


def _terms(e: sp.Expr, limit: int) -> int:
    """A bound of the number of terms of an expression that is multiplied out; anything beyond the limit where it is beyond."""
    if isinstance(e, sp.Add):
        return sum(_terms(a, limit) for a in e.args)
    if isinstance(e, sp.Mul):
        count = 1
        for a in e.args:
            count *= _terms(a, limit)
            if count > limit:
                break
        return count
    if isinstance(e, sp.Pow) and e.exp.is_Integer:
        inner, n = min(_terms(e.base, limit), limit + 1), abs(int(e.exp))
        return 1 if inner <= 1 else limit + 1 if n > limit else comb(inner + n - 1, n)
    return max((_terms(a, limit) for a in e.args), default=1) if isinstance(e, sp.Function) else 1


def vanishes(c: sp.Expr) -> bool:
    """Whether a coefficient, an expression in numbers and sizes, is seen to be 0."""
    e = sp.expand(c)
    return bool(e == 0) or (not e.is_number and bool(sp.cancel(sp.together(e)) == 0))
