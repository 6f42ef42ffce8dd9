"""Exact values: rational numbers, and SymPy expressions such as ``exp(10*sqrt(3)/3)`` where a value is irrational."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import sympy as sp

from symattn.errors import UndecidedError
from symattn.indexed import expression
from symattn.numbers import Exact
from symattn.program import Program
from symattn.readings.balls import NAMESPACE as BALLS
from symattn.readings.balls import precision
from symattn.readings.code import Namespace, constant
from symattn.readings.evaluate import evaluate_over
from symattn.readings.tables import LOGIC, NumberTable, Objects, piecewise_of, product_by_rows

BITS = (64, 256, 1024, 4096)
"""Precisions at which two exact numbers are told apart, before their difference is asked to be 0 by algebra."""


def evaluate(
    program: Program, inputs: Mapping[str, object], *, sizes: Mapping[sp.Symbol | str, int] | None = None
) -> dict[str, Objects]:
    """Every tensor of a program as exact SymPy numbers.

    Parameters
    ----------
    program
        Any program. Use it at small sizes: expressions grow with the number of statements.
    inputs
        Arrays of exact numbers: floats are the dyadic rationals that they are, text is read exactly.
    sizes
        Sizes that no input shows.

    Returns
    -------
    dict
        Object arrays of SymPy numbers: ``Rational`` where the value is rational by arithmetic alone, expressions
        otherwise; ``nan``, ``oo`` and ``-oo`` are SymPy's.

    Raises
    ------
    UndecidedError
        When a condition or a maximum compares two numbers that neither 4096 bits nor algebra tells apart.

    >>> from symattn.program import Statement, indices, size, tensor
    >>> i, = indices("i")
    >>> d = size("d")
    >>> p = Program((Statement(tensor("y", i), tensor("x", i) / sp.sqrt(d)),), {i: d}, ("y",))
    >>> evaluate(p, {"x": ["0.1", "1/3", 10]})["y"].tolist()
    [sqrt(3)/30, sqrt(3)/9, 10*sqrt(3)/3]
    """
    return evaluate_over(program, inputs, TABLE, sizes)


def number(x: Exact) -> Any:
    """An exact number as SymPy number."""
    if isinstance(x, Fraction):
        return sp.Rational(x.numerator, x.denominator)
    if isinstance(x, float):
        return sp.nan if x != x else sp.oo if x > 0 else -sp.oo
    return expression(x) if isinstance(x, int) else x


def compare(a: Any, b: Any) -> int | None:
    """-1, 0 or 1 as a is less than, equal to or greater than b; None when one is NaN.

    >>> compare(sp.sqrt(2) + sp.sqrt(3), sp.sqrt(5 + 2 * sp.sqrt(6))), compare(sp.exp(1), sp.pi)
    (0, -1)
    """
    a, b = expression(a), expression(b)
    if a is sp.nan or b is sp.nan:
        return None
    if a == b:
        return 0
    if a.is_infinite or b.is_infinite:
        return -1 if a is -sp.oo or b is sp.oo else 1
    difference = a - b
    if difference.is_Rational:
        return int(sp.sign(difference))
    for bits in BITS:
        with precision(bits):
            d = constant(difference, BALLS)
            if d > 0 or d < 0:
                return 1 if d > 0 else -1
        if bits == BITS[1] and 0 in (sp.expand(difference), sp.expand(sp.radsimp(sp.sqrtdenest(difference)))):
            return 0
    if difference.equals(0):
        return 0
    raise UndecidedError(f"{a} and {b} agree to {BITS[-1]} bits and algebra does not show that they are equal")


def _test(accepts: Callable[[int], bool]) -> Callable[[Any, Any], bool]:
    def f(a: Any, b: Any) -> bool:
        c = compare(a, b)
        return c is not None and accepts(c)

    return f


def _div(a: Any, b: Any) -> Any:
    return sp.nan if b == 0 else expression(a) / b


def _log(x: Any) -> Any:
    if x.is_Rational and x <= 0:
        return -sp.oo if x == 0 else sp.nan
    return sp.log(x)


def _sqrt(x: Any) -> Any:
    return sp.nan if x.is_negative else sp.sqrt(x)


def _power(a: Any, b: Any) -> Any:
    if a == 0 and b.is_negative:
        return sp.nan
    y = sp.Pow(a, b)
    return y if y.is_real or y.is_infinite else sp.nan


def _largest(values: Sequence[Any]) -> Any:
    out = values[0]
    for v in values[1:]:
        c = compare(v, out)
        if c is None:
            return sp.nan
        out = v if c > 0 else out
    return out


def _floor(x: Any) -> Any:
    return x if x.is_infinite or x is sp.nan else sp.floor(x)


def _sign(x: Any) -> Any:
    c = compare(x, 0)
    return sp.nan if c is None else sp.Integer(c)


def _wave(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: sp.nan if x.is_infinite else f(x)


def _dot(a: Sequence[Any], b: Sequence[Any]) -> Any:
    return sp.Add(*[x * y for x, y in zip(a, b, strict=True)])


_by_rows = product_by_rows(_dot)


def _matmul(a: Objects, b: Objects) -> Objects:
    """The product; by flint where all numbers are rational."""
    if not all(x.is_Rational for m in (a, b) for x in m.ravel().tolist()):
        return _by_rows(a, b)
    left, right = (flint.fmpq_mat(*m.shape, [flint.fmpq(int(x.p), int(x.q)) for x in m.ravel().tolist()]) for m in (a, b))
    out = np.empty(a.shape[0] * b.shape[1], dtype=object)
    out[:] = [sp.Rational(int(x.p), int(x.q)) for x in (left * right).entries()]
    return out.reshape(a.shape[0], b.shape[1])


TABLE = NumberTable(
    namespace=Namespace(
        {
            "rational": sp.Rational,
            "pi": lambda: sp.pi,
            "infinity": lambda s: s * sp.oo,
            "not_a_number": lambda: sp.nan,
            "div": _div,
            "power": _power,
            "sqrt": _sqrt,
            "exp": sp.exp,
            "log": _log,
            "tanh": sp.tanh,
            "sinh": sp.sinh,
            "cosh": sp.cosh,
            "sin": _wave(sp.sin),
            "cos": _wave(sp.cos),
            "erf": sp.erf,
            "sigmoid": lambda x: 1 / (1 + sp.exp(-x)),
            "absolute": sp.Abs,
            "sign": _sign,
            "step": lambda x, at_zero: (
                sp.nan if x is sp.nan else at_zero if compare(x, 0) == 0 else sp.Integer(compare(x, 0) == 1)
            ),
            "maximum": lambda *x: _largest(x),
            "minimum": lambda *x: -_largest([-v for v in x]),
            "floor_div": lambda a, b: _floor(_div(a, b)),
            "ceiling": lambda x: -_floor(-x),
            "mod": lambda a, b: a - b * _floor(_div(a, b)),
            "piecewise": piecewise_of(sp.nan),
            "less": _test(lambda c: c < 0),
            "less_equal": _test(lambda c: c <= 0),
            "equal": _test(lambda c: c == 0),
            **LOGIC,
        }
    ),
    number=number,
    add=lambda values: sp.Add(*values),
    multiply=lambda values: sp.Mul(*values),
    largest=_largest,
    matmul=_matmul,
    finite=lambda x: bool(x.is_finite),
    integer=lambda x: int(x) if x.is_Integer else None,
    nan=sp.nan,
    negative_infinity=-sp.oo,
)
"""The number type of exact numbers."""
