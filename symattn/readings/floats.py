"""NumPy dtypes as number types: exact values rounded once into a dtype, and the table of array functions of that dtype.

float16 and bfloat16 accumulate in float32: a sum or a contraction is formed there and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sp

from symattn import formats
from symattn.errors import InputValueError
from symattn.numbers import Exact, exact_array
from symattn.readings.balls import NAMESPACE as BALLS
from symattn.readings.balls import parts, precision
from symattn.readings.code import Namespace, constant

Array = npt.NDArray[Any]
BITS = 300
"""Precision at which an irrational constant is computed before it is rounded; no float dtype has a quarter of it."""


def dtype_of(name: Any) -> np.dtype[Any]:
    """A float dtype by name or type; ``"bfloat16"`` is found in ml_dtypes.

    Raises
    ------
    InputValueError
        When it is no float dtype that this reading computes in.

    >>> dtype_of("float32"), dtype_of("bf16")
    (dtype('float32'), dtype(bfloat16))
    """
    try:
        found = np.dtype(name) if not isinstance(name, str) or name in ("longdouble", "float128") else formats.get(name).dtype
    except (TypeError, LookupError) as why:
        raise InputValueError(f"{name!r} is no float dtype: {why}") from why
    if found not in (
        np.dtype(np.float16),
        np.dtype(np.float32),
        np.dtype(np.float64),
        np.dtype(np.longdouble),
        formats.get("bfloat16").dtype,
    ):
        raise InputValueError(f"the numpy reading computes in float16, bfloat16, float32, float64 or longdouble, not in {found}")
    return found


def accumulator(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which sums are formed: float32 for the 16-bit formats, else the same.

    >>> accumulator(np.dtype("float16")), accumulator(np.dtype("float64"))
    (dtype('float32'), dtype('float64'))
    """
    return np.dtype(np.float32) if dtype.itemsize == 2 else dtype


def rounded(values: object, dtype: np.dtype[Any]) -> Array:
    """Exact numbers (anything that ``exact_array`` takes), each rounded once into a dtype.

    >>> rounded(["1/3", "0.1"], np.dtype("float32"))
    array([0.33333334, 0.1       ], dtype=float32)
    """
    a = np.asarray(values)
    if a.dtype == dtype:
        return a
    if (a.dtype.kind in "fiub" and dtype.kind == "f") or (a.dtype.kind == "V" and np.can_cast(a.dtype, dtype)):
        return a.astype(dtype)
    if a.dtype.kind in "fiub":
        return _odd(a).astype(dtype)
    exact = exact_array(values)
    flat = [approximation(x) for x in exact.ravel().tolist()]
    if dtype == np.longdouble and np.dtype(np.longdouble) != np.dtype(np.float64):
        out = np.array([_long(x) for x in flat], dtype=np.longdouble)
    else:
        out = formats.to_array(np.array([*flat, None], dtype=object)[:-1], str(dtype))
    return out.reshape(exact.shape)


def _odd(a: Array) -> Array:
    """Numbers rounded to odd in float32: rounding these once more, to a shorter format, gives the numbers rounded once."""
    wide = a if a.dtype.kind == "f" else a.astype(np.longdouble)
    short = wide.astype(np.float32)
    short = np.where(np.abs(short) > np.abs(wide), np.nextafter(short, np.float32(0)), short)
    inexact = np.isfinite(wide) & (short != wide)
    return (np.ascontiguousarray(short).view(np.uint32) | inexact).view(np.float32)


def approximation(x: Exact) -> Fraction | float:
    """A number as a fraction: itself where it is rational, else the midpoint of a ball of 300 bits.

    >>> float(approximation(sp.sqrt(2)))
    1.4142135623730951
    """
    if not isinstance(x, sp.Basic):
        return x
    with precision(BITS):
        return midpoint(constant(x, BALLS))


def midpoint(b: Any) -> Fraction | float:
    """The midpoint of a ball as a fraction; a special value as a float.

    >>> import flint
    >>> midpoint(flint.arb(3) / 2)
    Fraction(3, 2)
    """
    mid, rad = parts(b)
    return math.nan if isinstance(rad, float) else mid


def _long(x: Fraction | float) -> Any:
    """A longdouble from two float64 halves, added in longdouble: rounded once."""
    if isinstance(x, float):
        return np.longdouble(x)
    high = float(x)
    return np.longdouble(high) + np.longdouble(float(x - Fraction(high)))


@lru_cache(maxsize=16)
def table(dtype: np.dtype[Any]) -> Namespace:
    """The array functions of a dtype; each keeps it."""

    def like(f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *x: np.asarray(f(*x)).astype(dtype, copy=False)

    def piecewise(*branches: tuple[Callable[[], Any], Callable[[], Any]]) -> Any:
        out: Any = np.array(math.nan).astype(dtype)
        for value, condition in reversed(branches):
            out = np.where(condition(), value(), out)
        return out.astype(dtype, copy=False)

    def fold(f: Callable[[Any, Any], Any]) -> Callable[..., Any]:
        def g(*x: Any) -> Any:
            out = x[0]
            for v in x[1:]:
                out = f(out, v)
            return out

        return g

    def erf(x: Any) -> Any:
        if accumulator(dtype).itemsize > 8:
            return rounded(np.frompyfunc(_erf, 1, 1)(np.asarray(x).astype(object)), dtype)
        return np.asarray(np.frompyfunc(math.erf, 1, 1)(np.asarray(x, dtype=np.float64)), dtype=np.float64)

    def logistic(x: Any) -> Any:
        small = np.exp(-np.abs(x))
        return np.where(np.signbit(x), small, 1) / (1 + small)

    functions = {
        name: like(getattr(np, name)) for name in ("sqrt", "exp", "log", "tanh", "sinh", "cosh", "sin", "cos", "sign", "power")
    }
    return Namespace(
        {
            **functions,
            "erf": like(erf),
            "sigmoid": like(logistic),
            "div": like(np.true_divide),
            "absolute": like(np.abs),
            "step": like(lambda x, at_zero: np.where(x > 0, 1, np.where(x < 0, 0, np.where(x == 0, at_zero, x)))),
            "maximum": like(fold(np.maximum)),
            "minimum": like(fold(np.minimum)),
            "floor_div": like(lambda a, b: np.floor(np.true_divide(a, b))),
            "ceiling": like(np.ceil),
            "mod": like(lambda a, b: a - b * np.floor(np.true_divide(a, b))),
            "piecewise": piecewise,
            "less": np.less,
            "less_equal": np.less_equal,
            "equal": np.equal,
            "negation": np.logical_not,
            "conjunction": fold(np.logical_and),
            "disjunction": fold(np.logical_or),
        }
    )


@lru_cache(maxsize=4096)
def number(expr: sp.Expr, dtype: np.dtype[Any]) -> Any:
    """A numeric expression as one constant of a dtype, rounded once from its exact value.

    >>> number(sp.sqrt(3) / 3, np.dtype("float32"))
    np.float32(0.57735026)
    """
    exact = np.empty(1, dtype=object)
    exact[0] = expr
    return rounded(exact, dtype)[0]


def _erf(x: Any) -> Any:
    """Erf of one longdouble, as a fraction."""
    if not np.isfinite(x):
        return float(np.sign(x))
    return approximation(sp.erf(sp.Rational(*map(int, x.as_integer_ratio())), evaluate=False))
