"""How far an index reaches: the values that a condition leaves of it, while other indices keep to a block.

A causal condition ``j <= i`` leaves of the keys, for the queries of a block, those up to the last query. What a condition leaves
is found by interval arithmetic on integers, so it needs no form of the condition: whatever is not excluded is kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

import sympy as sp

__all__ = ["Interval", "may_hold", "reach"]

Interval: TypeAlias = tuple[Any, Any]
"""Two exact numbers, both in it; an end that is not known is an infinite float."""

ALL: Interval = (-math.inf, math.inf)


def reach(conditions: Iterable[sp.Basic], index: sp.Symbol, length: int, box: Mapping[sp.Symbol, Interval]) -> tuple[int, int]:
    """The least range of ``index``, from 0 to ``length``, outside which interval arithmetic excludes every condition.

    Parameters
    ----------
    conditions
        The conditions of several statements: a value that one of them may hold at is kept.
    index, length
        The index and how many values it has.
    box
        The values of all other indices and of the sizes.

    Returns
    -------
    tuple
        ``start`` and ``stop``. Where nothing is left, one value is: a range is never empty.

    Notes
    -----
    ``may_hold`` on ``[x, length - 1]`` can only turn from true to false as x grows, because interval arithmetic on a smaller
    interval gives a smaller one. So the end is found by bisection, and likewise the start.

    >>> i, j = sp.symbols("i j", integer=True)
    >>> reach([sp.Le(j, i) & sp.Lt(i - j, 3)], j, 100, {i: (8, 11)})
    (6, 12)
    """
    lows, highs = [], []
    for condition in set(conditions):
        if not may_hold(condition, {**box, index: (0, length - 1)}):
            continue
        low, high = 0, length - 1  # the greatest x with [x, length - 1] not excluded is the last value kept
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if may_hold(condition, {**box, index: (middle, length - 1)}) else (low, middle - 1)
        last = low
        low, high = 0, last
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if may_hold(condition, {**box, index: (0, middle)}) else (middle + 1, high)
        lows.append(low)
        highs.append(last)
    return (min(lows), max(highs) + 1) if lows else (0, 1)


def may_hold(condition: sp.Basic, box: Mapping[sp.Symbol, Interval]) -> bool:
    """Whether interval arithmetic leaves open that a condition holds somewhere in a box; what reads tensors is open.

    >>> i, j = sp.symbols("i j", integer=True)
    >>> may_hold(sp.Le(j, i), {i: (0, 3), j: (4, 9)}), may_hold(sp.Le(sp.floor(j / 4), sp.floor(i / 4)), {i: (0, 2), j: (3, 9)})
    (False, True)
    """
    if condition in (sp.true, sp.false):
        return bool(condition)
    if isinstance(condition, sp.And):
        return all(may_hold(c, box) for c in condition.args)
    if isinstance(condition, sp.Or):
        return any(may_hold(c, box) for c in condition.args)
    if isinstance(condition, sp.core.relational.Relational):
        (a, b), (c, d) = _interval(condition.lhs, box), _interval(condition.rhs, box)
        if isinstance(condition, (sp.Lt, sp.Gt)):
            return a < d if isinstance(condition, sp.Lt) else c < b
        if isinstance(condition, (sp.Le, sp.Ge)):
            return a <= d if isinstance(condition, sp.Le) else c <= b
        if isinstance(condition, sp.Eq):
            return a <= d and c <= b
        return not (a == b == c == d)
    return True


def _interval(e: sp.Expr, box: Mapping[sp.Symbol, Interval]) -> Interval:
    """An interval that holds every value of an integer expression in a box."""
    if isinstance(e, sp.Symbol):
        return box.get(e, ALL)
    if isinstance(e, sp.Rational):
        value = Fraction(int(e.p), int(e.q))
        return value, value
    if isinstance(e, sp.Add):
        parts = [_interval(a, box) for a in e.args]
        return sum(p[0] for p in parts), sum(p[1] for p in parts)
    if isinstance(e, sp.Mul):
        out: Interval = (1, 1)
        for a in e.args:
            out = _times(out, _interval(a, box))
        return out
    if isinstance(e, sp.Pow) and e.exp == -1:
        low, high = _interval(e.base, box)
        return (_reciprocal(high), _reciprocal(low)) if low > 0 else ALL
    if isinstance(e, (sp.floor, sp.ceiling)):
        whole = math.floor if isinstance(e, sp.floor) else math.ceil
        low, high = (x if isinstance(x, float) else whole(x) for x in _interval(e.args[0], box))
        return low, high
    if isinstance(e, (sp.Max, sp.Min)):
        parts = [_interval(a, box) for a in e.args]
        pick = max if isinstance(e, sp.Max) else min
        return pick(p[0] for p in parts), pick(p[1] for p in parts)
    if isinstance(e, sp.Abs):
        low, high = _interval(e.args[0], box)
        return (0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))
    if isinstance(e, sp.Mod):
        (low, high), (least, most) = _interval(e.args[0], box), _interval(e.args[1], box)
        if least > 0:
            return (low, high) if low >= 0 and high < least else (0, most)
    return ALL


def _reciprocal(x: Any) -> Any:
    return 0 if isinstance(x, float) else 1 / Fraction(x)


def _times(a: Interval, b: Interval) -> Interval:
    """The product of two intervals; 0 times an end that is not known is 0."""
    ends = [0 if x == 0 or y == 0 else x * y for x in a for y in b]
    return min(ends), max(ends)
