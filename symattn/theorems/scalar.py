"""Claims in a few scalar symbols: rational identities in exponentials, hyperbolic and trigonometric functions.

Such an identity is proved by writing every function as exponentials, each of them a symbol of its own, and cancelling: what is 0
as a rational function is 0 for all values. It holds for every entry of a tensor, whatever its size.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import sympy as sp

from symattn.errors import SymattnError
from symattn.readings import exact
from symattn.theorems.claim import ALL, OPEN, PROVED, REFUTED, Counterexample, Decision
from symattn.theorems.entrywise import algebraic

__all__ = ["Scalar"]

_WAVES = (sp.tanh, sp.sinh, sp.cosh, sp.coth, sp.sin, sp.cos, sp.tan)
_TRIED = (sp.S.One, sp.Integer(2), sp.Rational(1, 2), sp.Integer(-1), sp.Integer(3), sp.S.Zero)


@dataclass(frozen=True)
class Scalar:
    """``left = right`` for all values of the symbols, as far as both sides are defined.

    Parameters
    ----------
    left, right
        Expressions in real symbols; what their assumptions say (``positive=True``) is respected.
    text
        The equation as people write it.

    >>> x, c = sp.symbols("x", real=True), sp.Symbol("c", positive=True)
    >>> y = c * sp.tanh(x / c)
    >>> Scalar(y.diff(x), 1 - (y / c) ** 2, "dy/dx = 1 - (y/c)^2").decide().verdict
    'proved'
    >>> Scalar(y.diff(x), 1 + (y / c) ** 2).decide().counterexample.difference
    -2*tanh(1)**2
    """

    left: sp.Expr
    right: sp.Expr
    text: str = ""

    def decide(self) -> Decision:
        """Prove it, or find numbers for which it fails."""
        e = sp.sympify(self.left - self.right)
        if e == 0 or sp.cancel(algebraic(sp.together(e.rewrite(list(_WAVES), sp.exp)))) == 0:
            return Decision(PROVED, "scalar identity", ALL)
        found = self.counterexample()
        if found is not None:
            return Decision(REFUTED, "exact values", counterexample=found)
        return Decision(OPEN, "cancelling does not settle it")

    def counterexample(self) -> Counterexample | None:
        """Small exact numbers for which the sides differ."""
        e = sp.sympify(self.left - self.right)
        symbols = sorted(e.free_symbols, key=str)
        for values in _assignments(len(symbols)):
            table = dict(zip(symbols, values, strict=True))
            if any((a.is_positive and not v > 0) or (a.is_nonnegative and v < 0) for a, v in table.items()):
                continue
            left, right = sp.sympify(self.left).xreplace(table), sp.sympify(self.right).xreplace(table)
            try:
                if left.is_finite and right.is_finite and _seen(left, right) and exact.compare(left, right):
                    return Counterexample({str(a): v for a, v in table.items()}, {}, "", left, right, self.text)
            except SymattnError:
                continue
        return None


def _assignments(count: int) -> Iterator[tuple[sp.Expr, ...]]:
    """Values of so many symbols: the small ones first, then some in which the symbols differ."""
    yield from itertools.islice(itertools.product(_TRIED, repeat=count), 400)
    for step, start in itertools.product((1, 5), range(len(_TRIED))):
        yield tuple(_TRIED[(start + step * k) % len(_TRIED)] for k in range(count))


def _seen(left: sp.Expr, right: sp.Expr) -> bool:
    """Whether floats show a difference: comparing equal numbers exactly is long, and not what is searched for."""
    return bool(abs(sp.N(left - right)) > 1e-9)
