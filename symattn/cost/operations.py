"""How many operations on numbers an expression is, as it is written: multiplications, additions, divisions, exponentials ...

What holds only sizes and positions is no operation on data: ``1/sqrt(d)`` is a constant, ``i - j`` an integer. A change of
sign is none. A power to a whole number is multiplications, a quotient one division.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import sympy as sp

from symattn.indexed import reads

__all__ = ["KINDS", "Operations", "operations_of"]


@dataclass(frozen=True)
class Operations:
    """Numbers of operations, as expressions in sizes.

    >>> Operations(multiplications=sp.Integer(2)) + Operations(multiplications=sp.Integer(1), exponentials=sp.Integer(1))
    Operations(multiplications=3, additions=0, divisions=0, exponentials=1, functions=0, comparisons=0)
    """

    multiplications: sp.Expr = sp.S.Zero
    additions: sp.Expr = sp.S.Zero
    divisions: sp.Expr = sp.S.Zero
    exponentials: sp.Expr = sp.S.Zero
    functions: sp.Expr = sp.S.Zero
    comparisons: sp.Expr = sp.S.Zero

    def __add__(self, other: Operations) -> Operations:
        return Operations(*(getattr(self, k) + getattr(other, k) for k in KINDS))

    def times(self, factor: sp.Expr) -> Operations:
        """So many times these operations."""
        return Operations(*(getattr(self, k) * factor for k in KINDS))

    def xreplace(self, table: Mapping[sp.Basic, sp.Basic]) -> Operations:
        """With sizes put in."""
        return Operations(*(sp.expand(getattr(self, k).xreplace(table)) for k in KINDS))

    def expanded(self) -> Operations:
        """Multiplied out."""
        return self.xreplace({})

    @property
    def total(self) -> sp.Expr:
        """All of them."""
        return sp.expand(sum((getattr(self, k) for k in KINDS), sp.S.Zero))


KINDS = tuple(f.name for f in fields(Operations))
ONE = sp.S.One


def operations_of(e: sp.Expr) -> Operations:
    """The operations of one evaluation of an expression.

    >>> x, y = sp.symbols("x y", real=True)
    >>> operations_of(sp.exp(x - y) / y + 3 * x * y)
    Operations(multiplications=2, additions=2, divisions=1, exponentials=1, functions=0, comparisons=0)
    """
    if not reads(e):
        return Operations()
    if isinstance(e, sp.Add):
        return _terms(e)
    if isinstance(e, sp.Mul):
        return _factors(e)
    if isinstance(e, sp.Pow):
        return _power(e)
    if isinstance(e, (sp.Indexed, sp.Symbol)):
        return Operations()
    inner = _all(e.args)
    if isinstance(e, sp.exp):
        return inner + Operations(exponentials=ONE)
    if isinstance(e, (sp.Max, sp.Min)):
        return inner + Operations(comparisons=sp.Integer(len(e.args) - 1))
    if isinstance(e, sp.Piecewise):
        return _all(tuple(value for value, _ in e.args))
    return inner + Operations(functions=ONE)


def _all(args: tuple[sp.Expr, ...]) -> Operations:
    found = Operations()
    for a in args:
        found = found + operations_of(a)
    return found


def _terms(e: sp.Add) -> Operations:
    """One addition less than there are terms; those without data are one constant."""
    data = [t for t in e.args if reads(t)]
    count = len(data) + (len(data) < len(e.args))
    return _all(tuple(data)) + Operations(additions=sp.Integer(count - 1))


def _factors(e: sp.Mul) -> Operations:
    """Factors above and below the line: a multiplication between two above, and two below; one division by all that is below."""
    above, below, constant = [], [], ONE
    for f in e.args:
        if not reads(f):
            constant *= f
        elif isinstance(f, sp.Pow) and f.exp.is_Integer and f.exp.is_negative:
            below.append(sp.Pow(f.base, -f.exp))
        else:
            above.append(f)
    scaled = constant not in (1, -1)
    found = _all((*above, *below))
    tops = len(above) + scaled
    products = max(tops - 1, 0) + max(len(below) - 1, 0)
    return found + Operations(multiplications=sp.Integer(products), divisions=sp.Integer(bool(below)))


def _power(e: sp.Pow) -> Operations:
    base, exponent = operations_of(e.base), e.exp
    if exponent.is_Integer:
        products = sp.Integer(abs(int(exponent)) - 1)
        return base + Operations(multiplications=products, divisions=sp.Integer(bool(exponent.is_negative)))
    if exponent in (sp.Rational(1, 2), sp.Rational(-1, 2)):
        return base + Operations(functions=ONE, divisions=sp.Integer(bool(exponent.is_negative)))
    return base + operations_of(exponent) + Operations(functions=ONE)
