"""Tensors on pairs of rows and keys as sums of products: coefficients that a row has, times atoms that a pair has.

The atoms are exact dyadic numbers (a product ``sum over c of left right`` of given matrices, a given tensor, a position) and
exponentials of sums of those. What a statement makes of them - quotients by row tensors, products, masks - is read off its
expression, whatever the statement is called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import sympy as sp

from symattn.errors import UnfitError
from symattn.program import Tensor, integer_symbols, name_of, reads, subscripts_of

Conditions: TypeAlias = frozenset[sp.Basic]


@dataclass(frozen=True)
class Axes:
    """The indices of a pair: those of a batch, those of its rows, that of its keys. All others are channels."""

    batch: tuple[sp.Symbol, ...]
    rows: tuple[sp.Symbol, ...]
    key: sp.Symbol

    def level(self, e: sp.Basic) -> str:
        """What an expression depends on: ``"batch"``, ``"row"``, ``"key"`` or ``"pair"``; channels are not looked at."""
        used = integer_symbols(e)
        row, key = not used.isdisjoint(self.rows), self.key in used
        return "pair" if row and key else "row" if row else "key" if key else "batch"

    def channels(self, read: Tensor) -> tuple[sp.Symbol, ...]:
        """The indices of a read that are none of a pair."""
        return tuple(a for a in subscripts_of(read) if a not in self.batch and a not in self.rows and a != self.key)


@dataclass(frozen=True)
class Dot:
    """``sum over channels of left right``: an exact number for each pair. ``left`` has rows, ``right`` has keys."""

    left: Tensor
    right: Tensor


@dataclass(frozen=True)
class Plain:
    """A given tensor or a position: an exact number for each pair."""

    expr: sp.Expr


Exact: TypeAlias = Dot | Plain


@dataclass(frozen=True)
class Score:
    """``sum of coefficient atom`` where the conditions hold: what an exponential is taken of, less its row maximum."""

    parts: tuple[tuple[Exact, sp.Expr], ...]
    where: Conditions


@dataclass(frozen=True)
class Monomial:
    """A product of atoms where conditions hold; ``matrices`` are reads that have channels."""

    exact: tuple[Exact, ...] = ()
    scores: tuple[Score, ...] = ()
    matrices: tuple[Tensor, ...] = ()
    where: Conditions = frozenset()

    def __mul__(self, other: Monomial) -> Monomial:
        return Monomial(
            tuple(sorted(self.exact + other.exact, key=str)),
            self.scores + other.scores,
            tuple(sorted(self.matrices + other.matrices, key=str)),
            self.where | other.where,
        )

    def within(self, where: Conditions) -> Monomial:
        """The product where further conditions hold; an exponential is then needed there only."""
        return Monomial(self.exact, self.scores, self.matrices, self.where | where)


Form: TypeAlias = dict[Monomial, sp.Expr]
ONE = Monomial()


def plus(a: Mapping[Monomial, sp.Expr], b: Mapping[Monomial, sp.Expr]) -> Form:
    """The sum of two forms.

    >>> plus({ONE: sp.Integer(1)}, {ONE: sp.Integer(2)})[ONE]
    3
    """
    out = dict(a)
    for m, c in b.items():
        out[m] = out[m] + c if m in out else c
    return {m: c for m, c in out.items() if c != 0}


def times(a: Mapping[Monomial, sp.Expr], b: Mapping[Monomial, sp.Expr]) -> Form:
    """The product of two forms."""
    out: Form = {}
    for m, c in a.items():
        for n, e in b.items():
            out = plus(out, {m * n: c * e})
    return out


@dataclass
class Reader:
    """Reads scalar expressions as forms.

    Parameters
    ----------
    axes
        The indices of a pair.
    pairs
        Name of a tensor on pairs -> its form.
    given
        Names of inputs.
    shifts
        Score -> the tensor of its row maxima.
    aliases
        Tensor on rows -> what it is called in coefficients.
    named
        Gives an expression on rows a tensor of its own.
    """

    axes: Axes
    given: frozenset[str]
    named: Callable[[sp.Expr], sp.Expr]
    pairs: dict[str, Form] = field(default_factory=dict)
    shifts: dict[Score, Tensor] = field(default_factory=dict)
    aliases: dict[Tensor, sp.Expr] = field(default_factory=dict)
    factors: dict[tuple[Score, sp.Expr], sp.Expr] = field(default_factory=dict)

    def form(self, e: sp.Expr, where: Conditions) -> Form:
        """An expression at points where conditions hold."""
        found = self._form(e, where)
        return {m.within(where): c for m, c in found.items()}

    def _form(self, e: sp.Expr, where: Conditions) -> Form:
        if self._is_position(e):
            return {Monomial(exact=(Plain(e),)): sp.S.One}
        if isinstance(e, sp.Add):
            out: Form = {}
            for a in e.args:
                out = plus(out, self._form(a, where))
            return out
        if isinstance(e, sp.Mul):
            return self._product(e, where)
        if isinstance(e, sp.Indexed):
            return self._read(e)
        if isinstance(e, sp.exp):
            return self._exponential(e, where)
        if isinstance(e, sp.Pow) and e.exp.is_Integer and 0 < e.exp <= 4 and self.depends(e.base):
            base = out = self._form(e.base, where)
            for _ in range(int(e.exp) - 1):
                out = times(out, base)
            return out
        if not self.depends(e):
            return {ONE: e.xreplace(self.aliases)}
        raise UnfitError(f"`{e}` is no sum of products of exact scores and their exponentials")

    def _is_position(self, e: sp.Expr) -> bool:
        """Whether an expression is an integer made of indices and sizes, that of a key among them."""
        return bool(e.is_integer) and not reads(e) and self.axes.level(e) in ("key", "pair")

    def _product(self, e: sp.Mul, where: Conditions) -> Form:
        rest = [a for a in e.args if self.depends(a)]
        places = [a for a in rest if self._is_position(a)]
        rest = [*(a for a in rest if a not in places), *([sp.Mul(*places)] if places else [])]
        out: Form = {ONE: sp.Mul(*[a for a in e.args if not self.depends(a)]).xreplace(self.aliases)}
        later = [a for a in rest if isinstance(a, sp.exp)]
        for a in [*(a for a in rest if not isinstance(a, sp.exp)), *later]:
            inside = where
            if a in later and out:
                inside = where | frozenset.intersection(*(m.where for m in out))
            out = times(out, self._form(a, inside))
        return out

    def depends(self, e: sp.Basic) -> bool:
        """Whether an expression has something that a pair or a channel has, a row has not."""
        if self.axes.level(e) in ("key", "pair"):
            return True
        return any(self.axes.channels(x) for x in reads(e))

    def _read(self, x: Tensor) -> Form:
        name = name_of(x)
        if name in self.pairs:
            return self.pairs[name]
        if not all(isinstance(a, sp.Symbol) for a in subscripts_of(x)):
            raise UnfitError(f"`{x}` looks at another place than its own")
        if self.axes.channels(x):
            return {Monomial(matrices=(x,)): sp.S.One}
        if not self.depends(x):
            return {ONE: sp.sympify(x).xreplace(self.aliases)}
        if name not in self.given:
            raise UnfitError(f"`{x}` is computed for each key, and is no input")
        return {Monomial(exact=(Plain(x),)): sp.S.One}

    def _exponential(self, e: sp.exp, where: Conditions) -> Form:
        inside = self._form(e.args[0], where)
        score = self.score(inside, where)
        rest = sum((c for m, c in inside.items() if not m.exact and not m.scores), sp.S.Zero)
        if score is None:
            raise UnfitError(f"`{e}` is the exponential of nothing that a pair has")
        if score not in self.shifts:
            raise UnfitError(f"`{e}` has no row maximum over the same points taken off")
        away = rest + self.shifts[score]
        factor = sp.S.One if away == 0 else self._factor(score, away)
        return {Monomial(scores=(score,), where=score.where): factor}

    def _factor(self, score: Score, away: sp.Expr) -> sp.Expr:
        """What a row has to multiply the exponential with: one tensor, so that quotients of it cancel."""
        if (score, away) not in self.factors:
            self.factors[score, away] = self.named(sp.exp(away))
        return self.factors[score, away]

    def score(self, form: Mapping[Monomial, sp.Expr], where: Conditions) -> Score | None:
        """The part of a form that pairs have as a score; None where there is none."""
        parts: dict[Exact, sp.Expr] = {}
        for m, c in form.items():
            if m.scores or m.matrices or len(m.exact) > 1:
                raise UnfitError("a score is not affine in one exact product")
            if not m.where <= where and m.exact:
                raise UnfitError("a score has parts that only some of its points have")
            for a in m.exact:
                parts[a] = parts.get(a, sp.S.Zero) + c
        return Score(tuple(sorted(parts.items(), key=lambda p: (isinstance(p[0], Plain), str(p[0])))), where) if parts else None
