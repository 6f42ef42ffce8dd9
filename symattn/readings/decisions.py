"""Conditions on indices, sizes and given numbers: decided once, exactly, and therefore alike in every reading.

Whole numbers and fractions are compared as what they are. Where a condition divides by something that may be 0 or holds a
function (``exp(i) < j``), it is judged point by point: by balls of rising precision, and what these leave open (equal numbers)
by algebra. A comparison with something that has no value, ``1/0``, is undefined; ``and`` and ``or`` pass over it where the other
side decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sp
from sympy.functions.elementary.piecewise import ExprCondPair

from symattn.errors import UndecidedError
from symattn.numbers import exact_array
from symattn.program import Tensor, integer_symbols, reads
from symattn.readings.code import Namespace, compiled, constant

States = npt.NDArray[np.int8]
NO, YES, OPEN, OUTSIDE, UNDEFINED = 0, 1, 2, 3, 4
"""States of a condition at a point: false, true, undecided by the numbers, a look-up out of range, without a value."""

BITS = (64, 256, 1024)
"""Precisions at which balls are asked before algebra is."""
WORD = 2**62
"""What stays below this in absolute value is computed in 64-bit integers."""

_WHOLE = (sp.Add, sp.Mul, sp.Abs, sp.Max, sp.Min, sp.sign, sp.floor, sp.ceiling, sp.Piecewise, ExprCondPair)
_LOGIC = (sp.core.relational.Relational, sp.And, sp.Or, sp.Not)


def total(e: sp.Basic) -> bool:
    """Whether an expression or condition has a rational value wherever its tensors and indices have one.

    >>> i, j = sp.symbols("i j", integer=True)
    >>> total(sp.floor(i / 2) < j), total(1 / i < j), total(sp.exp(i) < j)
    (True, False, False)
    """
    if isinstance(e, (sp.Indexed, sp.Symbol, sp.Rational)) or e in (sp.true, sp.false, sp.oo, -sp.oo):
        return True
    if isinstance(e, sp.Pow):
        return bool(e.exp.is_Integer and e.exp > 0) and total(e.base)
    if isinstance(e, sp.Mod):
        return bool(e.args[1].is_Rational and e.args[1] != 0) and total(e.args[0])
    return isinstance(e, (*_WHOLE, *_LOGIC)) and all(map(total, e.args))


def decide(condition: sp.Basic, columns: Mapping[sp.Basic, Any], count: int, integers: Namespace) -> States:
    """The states of a condition at some points.

    Parameters
    ----------
    condition
        In reads, indices and sizes.
    columns
        The values of each outermost read, index and size: arrays that broadcast, of integers, floats or exact numbers.
    count
        The number of points, which all columns have once they are broadcast and made flat.
    integers
        The functions of integers and fractions on arrays.
    """
    if total(condition):
        arrays = _comparable(condition, columns)
        if arrays is not None:
            f, constants = compiled(condition, tuple(columns), integers)
            found = f(*(constant(c, integers) for c in constants), *arrays)
            return np.broadcast_to(np.asarray(found, dtype=bool).ravel(), (count,)).astype(np.int8)
    flat = [np.broadcast_to(_exact(v).ravel(), (count,)).tolist() for v in columns.values()]
    return _judged(condition, tuple(columns), list(zip(*flat, strict=True)) if flat else [()] * count)


def _comparable(condition: sp.Basic, columns: Mapping[sp.Basic, Any]) -> list[Any] | None:
    """Columns in which arrays of integers and fractions are computed without error; None where there is no such way."""
    values = [np.asarray(v) for v in columns.values()]
    if all(v.dtype.kind in "biu" for v in values):
        top = {x: int(max(abs(int(v.max())), abs(int(v.min())))) if v.size else 0 for x, v in zip(columns, values, strict=True)}
        if _reach(condition, top) < WORD:
            return [v.astype(np.int64) for v in values]
        return [v.astype(np.int64).astype(object) for v in values]
    if _plain(condition):
        if all(v.dtype != object or all(isinstance(x, (int, float, Fraction)) for x in v.ravel().tolist()) for v in values):
            return [v.astype(np.float64) if v.dtype.kind == "V" or v.dtype == np.float16 else v for v in values]
        return None
    exact = [_exact(v) for v in values]
    return exact if all(isinstance(x, (int, Fraction)) for v in exact for x in v.ravel().tolist()) else None


def _plain(c: sp.Basic) -> bool:
    """Whether a condition compares tensors, indices and numbers as they are: nothing is computed from them."""
    if isinstance(c, sp.core.relational.Relational):
        return all(isinstance(a, (sp.Indexed, sp.Symbol)) or a.is_number for a in c.args)
    return all(map(_plain, c.args))


def _exact(v: Any) -> npt.NDArray[Any]:
    """An array of exact numbers; integers are Python's."""
    a = np.asarray(v)
    return a.astype(np.int64).astype(object) if a.dtype.kind in "biu" else exact_array(a)


def _reach(e: sp.Basic, top: Mapping[sp.Basic, int]) -> int:
    """A bound on the absolute value of everything that is computed on the way to an expression."""
    if e in top:
        return top[e]
    if isinstance(e, sp.Rational):
        return max(abs(int(e.p)), int(e.q))
    if e in (sp.oo, -sp.oo, sp.true, sp.false):
        return 1
    if isinstance(e, sp.Pow):
        bits = _reach(e.base, top).bit_length() * int(e.exp)
        return 1 << min(bits, 64)
    if isinstance(e, sp.floor):
        return max(_reach(a, top) for a in e.args[0].as_numer_denom())
    parts = [_reach(a, top) for a in e.args]
    if isinstance(e, sp.Add):
        return sum(parts)
    return math.prod(max(p, 1) for p in parts) if isinstance(e, (sp.Mul, sp.Mod)) else max(parts)


# point by point


def _judged(condition: sp.Basic, names: tuple[sp.Basic, ...], points: Sequence[tuple[Any, ...]]) -> States:
    """The states at points whose values are exact numbers."""
    from symattn.readings import balls, exact  # they import the evaluator, which imports this module

    states: States = np.full(len(points), OPEN, dtype=np.int8)
    for bits in BITS:
        left = np.flatnonzero(states == OPEN).tolist()
        if left:
            with balls.precision(bits):
                states[left] = _states(condition, names, [points[k] for k in left], _logical(balls.NAMESPACE), balls.ball)
    for k in np.flatnonzero(states == OPEN).tolist():
        states[k] = _states(condition, names, [points[k]], _logical(exact.TABLE.namespace), exact.number)[0]
    return states


def _states(
    condition: sp.Basic,
    names: tuple[sp.Basic, ...],
    points: Sequence[tuple[Any, ...]],
    namespace: Namespace,
    number: Callable[[Any], Any],
) -> list[int]:
    f, constants = compiled(condition, names, namespace)
    fixed = [constant(c, namespace) for c in constants]
    out = []
    for p in points:
        try:
            out.append(int(f(*fixed, *map(number, p))))
        except UndecidedError:
            out.append(OPEN)
    return out


@lru_cache(maxsize=8)
def _logical(numbers: Namespace) -> Namespace:
    """The functions of a number type with comparisons that give states."""
    known: dict[str, Any] = dict(numbers.functions)

    def comparison(name: str) -> Callable[[Any, Any], int]:
        test = known[name]

        def compare(a: Any, b: Any) -> int:
            if _is_nan(a) or _is_nan(b):
                return UNDEFINED
            found = test(a, b)
            return OPEN if found is None else YES if found else NO

        return compare

    def piecewise(*branches: tuple[Callable[[], Any], Callable[[], int]]) -> Any:
        for value, condition in branches:
            state = condition()
            if state == OPEN:
                raise UndecidedError("the branch of a Piecewise is not decided at this precision; more bits may decide it")
            if state != NO:
                return value() if state == YES else known["not_a_number"]()
        return known["not_a_number"]()

    logic: dict[str, Callable[..., Any]] = {
        "negation": lambda a: {NO: YES, YES: NO}.get(a, a),
        "conjunction": lambda *a: NO if NO in a else max(YES, *a) if OPEN not in a else OPEN,
        "disjunction": lambda *a: YES if YES in a else max(NO, *a) if OPEN not in a else OPEN,
    }
    compare = {name: comparison(name) for name in ("less", "less_equal", "equal")}
    return Namespace({**known, **compare, **logic, "piecewise": piecewise})


def _is_nan(x: Any) -> bool:
    """Whether a number is one that is known to have no value: NaN, not a ball of which nothing is known."""
    value = getattr(x, "value", None)
    return x is sp.nan or (isinstance(value, float) and math.isnan(value))


def columns_of(condition: sp.Basic) -> tuple[tuple[Tensor, ...], tuple[sp.Symbol, ...]]:
    """What a condition depends on: its outermost reads, and the indices and sizes beside them.

    >>> from symattn.program import indices, tensor
    >>> i, j = indices("i j")
    >>> columns_of(sp.Lt(j, tensor("len", i)))
    ((len[i],), (j,))
    """
    rd = reads(condition)
    bare = condition.xreplace({x: sp.Symbol(f"read{k}", real=True) for k, x in enumerate(rd)})
    return rd, tuple(sorted(integer_symbols(bare), key=str))
