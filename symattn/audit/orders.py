"""Inequalities between exact values, and between values that are known to their rounding."""

from __future__ import annotations

from symattn.audit.comparing import alike
from symattn.audit.language_symbols import ORDERS
from symattn.audit.reals import subtract
from symattn.audit.trees import Real, bounds, sign

RELATIONS = frozenset(ORDERS.values())
"""Relations that say which of two values is larger."""


def holds(a: Real, b: Real, relation: str) -> bool:
    """Whether an inequality of two numbers holds; numbers that 400 bits do not tell apart are equal.

    >>> from fractions import Fraction
    >>> from symattn.audit.reals import sqrt
    >>> holds(sqrt(Fraction(3)), Fraction(2), "LESS"), holds(Fraction(1), Fraction(1), "UNEQUAL")
    (True, False)
    """
    s = 0 if alike(a, b) else sign(subtract(a, b)) or 0
    return {"LESS": s < 0, "MORE": s > 0, "LESS EQ": s <= 0, "MORE EQ": s >= 0, "UNEQUAL": s != 0}[relation]


def may_hold(a: Real, b: Real, relation: str) -> bool:
    """Whether it holds for some of the values that two numbers may have."""
    x, y = bounds(a), bounds(b)
    if x is None or y is None:
        return False
    if relation.startswith("LESS"):
        return x[0] < y[1] or (relation == "LESS EQ" and x[0] == y[1])
    if relation.startswith("MORE"):
        return x[1] > y[0] or (relation == "MORE EQ" and x[1] == y[0])
    return not x[0] == x[1] == y[0] == y[1]
