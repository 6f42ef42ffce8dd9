"""Where a condition of a program holds, on given arrays: integers and fractions exactly, as a boolean array over its indices.

This is what needs no number type: masks, positions and document numbers. Readings have their own evaluators.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sp

from symattn.errors import ProgramError
from symattn.indexed import integer_symbols, name_of, subscripts_of

Array = npt.NDArray[Any]

_COMPARE: Mapping[Any, Callable[[Any, Any], Any]] = {
    sp.Lt: lambda a, b: a < b,
    sp.Le: lambda a, b: a <= b,
    sp.Gt: lambda a, b: a > b,
    sp.Ge: lambda a, b: a >= b,
    sp.Eq: lambda a, b: a == b,
    sp.Ne: lambda a, b: a != b,
}
_FUNCTIONS: Mapping[Any, Callable[[Any], Any]] = {
    sp.exp: np.exp,
    sp.log: np.log,
    sp.tanh: np.tanh,
    sp.sin: np.sin,
    sp.cos: np.cos,
    sp.erf: np.vectorize(math.erf, otypes=[float]),
}


def holds(
    condition: sp.Basic, axes: tuple[sp.Symbol, ...], sizes: Mapping[sp.Symbol, int], tensors: Mapping[str, Array]
) -> npt.NDArray[np.bool_]:
    """A boolean array over ``axes`` (size 1 where the condition does not depend on an axis).

    Parameters
    ----------
    condition
        In index and size symbols and tensors.
    axes
        Index symbols, the axes of the result.
    sizes
        The number of values of every index, and the number that every size symbol is.
    tensors
        By name.

    >>> from symattn.indexed import indices
    >>> i, j = indices("i j")
    >>> holds(j <= i, (i, j), {i: 2, j: 2}, {}).tolist()
    [[True, False], [True, True]]
    """
    values: dict[sp.Basic, Any] = dict(sizes)
    for k, a in enumerate(axes):
        values[a] = np.arange(sizes[a]).reshape([-1 if k == x else 1 for x in range(len(axes))])
    with np.errstate(all="ignore"):
        found = np.asarray(_value(condition, values, tensors), dtype=bool)
    return found.reshape((1,) * (len(axes) - found.ndim) + found.shape)


def depends_on(condition: sp.Basic) -> frozenset[sp.Symbol]:
    """The index symbols of a condition."""
    return frozenset(a for a in integer_symbols(condition) if not a.is_positive)


def _value(e: Any, values: Mapping[sp.Basic, Any], tensors: Mapping[str, Array]) -> Any:
    def of(x: sp.Basic) -> Any:
        return _value(x, values, tensors)

    if e in values:
        return values[e]
    if e in (sp.true, sp.false):
        return e == sp.true
    if isinstance(e, sp.Integer):
        return int(e)
    if isinstance(e, sp.Rational):
        return Fraction(int(e.p), int(e.q))
    if e in (sp.oo, -sp.oo):
        return math.inf if e == sp.oo else -math.inf
    if isinstance(e, (sp.Indexed, sp.Symbol)):
        array = _wide(tensors[name_of(e)])
        subscripts = tuple(of(x) for x in subscripts_of(e))
        return array[subscripts] if subscripts else array
    if isinstance(e, (sp.And, sp.Or)):
        parts = [np.asarray(of(a), dtype=bool) for a in e.args]
        found = parts[0]
        for p in parts[1:]:
            found = found & p if isinstance(e, sp.And) else found | p
        return found
    if isinstance(e, sp.Not):
        return ~np.asarray(of(e.args[0]), dtype=bool)
    for kind, compare in _COMPARE.items():
        if isinstance(e, kind):
            return compare(of(e.args[0]), of(e.args[1]))
    return _number(e, [of(a) for a in e.args])


def _number(e: Any, args: list[Any]) -> Any:
    if isinstance(e, (sp.Add, sp.Mul)):
        found = args[0]
        for a in args[1:]:
            found = found + a if isinstance(e, sp.Add) else found * a
        return found
    if isinstance(e, sp.Pow):
        base, exponent = args
        if isinstance(exponent, int) and exponent >= 0:
            return base**exponent
        if exponent == -1 and not isinstance(base, float):
            return _elementwise(
                lambda x: Fraction(1) / x if isinstance(x, Fraction) else Fraction(1, x) if _whole(x) else 1 / x, base
            )
        return np.power(_float(base), _float(exponent))
    if isinstance(e, sp.floor):
        return _elementwise(math.floor, args[0])
    if isinstance(e, sp.Abs):
        return abs(args[0])
    if isinstance(e, (sp.Max, sp.Min)):
        found = args[0]
        for a in args[1:]:
            found = np.maximum(found, a) if isinstance(e, sp.Max) else np.minimum(found, a)
        return found
    for kind, function in _FUNCTIONS.items():
        if isinstance(e, kind):
            return function(_float(args[0]))
    raise ProgramError(f"a condition cannot contain {e}")


def _whole(x: Any) -> bool:
    return isinstance(x, (int, np.integer))


def _elementwise(function: Callable[[Any], Any], x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return np.frompyfunc(function, 1, 1)(x.astype(object))
    return function(x)


def _float(x: Any) -> Any:
    return np.asarray(x, dtype=float) if isinstance(x, np.ndarray) else float(x)


def _wide(x: Array) -> Array:
    """An array in a dtype that compares with everything: small floats as float64."""
    x = np.asarray(x)
    return x.astype(np.float64) if x.dtype.kind == "V" or x.dtype == np.float16 else x
