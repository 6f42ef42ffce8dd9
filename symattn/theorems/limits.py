"""Claims about the limit of an expression in a few scalars."""

from __future__ import annotations

from dataclasses import dataclass, replace

import sympy as sp

from symattn.theorems.claim import ALL, OPEN, PROVED, REFUTED, Counterexample, Decision

__all__ = ["Limit"]


@dataclass(frozen=True)
class Limit:
    """``expr -> value`` as ``variable -> point``, from above where the point is finite.

    Parameters
    ----------
    expr
        An expression in scalar symbols; what their assumptions say is used.
    variable, point
        What tends to what.
    value
        The limit.
    text
        The claim as people write it.

    >>> b, g = sp.symbols("b g", positive=True)
    >>> Limit(sp.exp(-b * g), b, sp.oo, sp.S.Zero).decide().verdict
    'proved'
    >>> Limit(sp.exp(-b * g), b, sp.oo, sp.S.One).decide().counterexample.left
    0
    """

    expr: sp.Expr
    variable: sp.Symbol
    point: sp.Expr
    value: sp.Expr
    text: str = ""

    def _found(self) -> sp.Expr | None:
        """The limit, by Gruntz's algorithm; None where it is not found."""
        try:
            found = sp.limit(self.expr, self.variable, self.point)
        except (NotImplementedError, ValueError):
            return None
        return None if found.has(sp.Limit) else found

    def decide(self) -> Decision:
        """Find the limit and compare it."""
        found = self._found()
        if found is None:
            return Decision(OPEN, "the limit is not found")
        if sp.simplify(found - self.value) == 0:
            return Decision(PROVED, "limit of a scalar", ALL)
        shown = self.counterexample()
        return Decision(OPEN, "the limit is not settled") if shown is None else Decision(REFUTED, "limit", counterexample=shown)

    def counterexample(self) -> Counterexample | None:
        """The limit, where it is another one for all values of the symbols."""
        found = self._found()
        if found is None or (found - self.value).is_zero is not False:
            return None
        what = f"limit for {self.variable} -> {self.point}"
        return Counterexample({}, {}, what, found, self.value, self.text)

    def planted(self) -> Limit:
        """The claim with another limit."""
        return replace(self, value=self.value + 1)
