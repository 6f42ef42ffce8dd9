"""Numbers that are known up to names (:mod:`symattn.truth.names`) as a number type for the evaluator of programs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from symattn.numbers import Exact
from symattn.readings.code import Namespace, constant
from symattn.readings.tables import LOGIC, Decision, NumberTable, Objects, piecewise_of, product_by_rows
from symattn.truth.names import UNKNOWN, Known, Name, known, total

__all__ = ["NAMESPACE", "TABLE"]


def _product(values: Sequence[Any]) -> Any:
    out = values[0]
    for v in values[1:]:
        out = out * v
    return out


def _number(x: Exact) -> Any:
    if isinstance(x, (int, Fraction)):
        return Known(x)
    return UNKNOWN if isinstance(x, float) else constant(x, NAMESPACE)


def _function(kind: str, at_zero: int | None = None, positive: bool = False) -> Callable[[Any], Any]:
    """A function whose values are named by their argument; rational at 0, where it is."""

    def f(x: Any) -> Any:
        if x is UNKNOWN:
            return x
        y = known(x)
        if at_zero is not None and not y.coefficient:
            return Known(at_zero)
        return Known(1, frozenset({(Name(kind, y, positive), 1)}))

    f.__name__ = kind
    return f


def _sigmoid(x: Any) -> Any:
    return x if x is UNKNOWN else Known(Fraction(1, 2)) if not known(x).coefficient else _of("sigmoid", x, True)


def _of(kind: str, x: Any, positive: bool = False) -> Known:
    return Known(1, frozenset({(Name(kind, known(x), positive), 1)}))


def _log(x: Any) -> Any:
    if x is UNKNOWN or not known(x).positive:
        return UNKNOWN
    return Known(0) if known(x) == Known(1) else _of("log", x)


def _sqrt(x: Any) -> Any:
    if x is UNKNOWN:
        return x
    y = known(x)
    if not y.coefficient:
        return y
    if not y.positive:
        return UNKNOWN
    if not y.factors:
        top, below = (math.isqrt(v) for v in (y.coefficient.numerator, y.coefficient.denominator))
        if Fraction(top, below) ** 2 == y.coefficient:
            return Known(Fraction(top, below))
    return _of("sqrt", y, True)


def _power(a: Any, b: Any) -> Any:
    if a is UNKNOWN or b is UNKNOWN:
        return UNKNOWN
    base, k = known(a), known(b).rational
    if k is not None and k.denominator == 1 and abs(k) <= 64:
        return base ** int(k)
    return Known(1, frozenset({(Name("power", (base, known(b)), True), 1)})) if base.positive else UNKNOWN


def _order(a: Any, b: Any) -> int | None:
    """-1, 0 or 1 where it is known how two numbers compare."""
    if a is UNKNOWN or b is UNKNOWN:
        return None
    x, y = known(a), known(b)
    if x == y:
        return 0
    d = total((x, -y))
    return 1 if d.positive else -1 if (-d).positive else None


def _largest(values: Sequence[Any]) -> Any:
    """The largest; where that is not known, the name of the largest of these."""
    out = values[0]
    for v in values[1:]:
        way = _order(v, out)
        if way is None:
            if any(x is UNKNOWN for x in values):
                return UNKNOWN
            return Known(1, frozenset({(Name("max", frozenset(map(known, values))), 1)}))
        out = v if way > 0 else out
    return out


def _absolute(x: Any) -> Any:
    way = _order(x, 0)
    return UNKNOWN if way is None else x if way >= 0 else -x


def _sign(x: Any) -> Any:
    way = _order(x, 0)
    return UNKNOWN if way is None else Known(way)


def _step(x: Any, at_zero: Any) -> Any:
    way = _order(x, 0)
    return UNKNOWN if way is None else at_zero if way == 0 else Known(int(way > 0))


def _rationally(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of rational numbers, unknown elsewhere."""

    def g(*args: Any) -> Any:
        found = [None if x is UNKNOWN else known(x).rational for x in args]
        return UNKNOWN if any(x is None for x in found) else f(*found)

    return g


def _test(accepts: Callable[[int], bool]) -> Callable[[Any, Any], Decision]:
    def f(a: Any, b: Any) -> Decision:
        way = _order(a, b)
        return None if way is None else accepts(way)

    return f


def _matmul(a: Objects, b: Objects) -> Objects:
    """Row times column; rational matrices as integers over one denominator."""
    left, right = _integers(a), _integers(b)
    if left is not None and right is not None:
        (x, p), (y, q) = left, right
        product = np.dot(x, y)
        out = np.empty(product.shape, dtype=object)
        out.ravel()[:] = [Known(Fraction(v, p * q)) for v in product.ravel().tolist()]
        return out
    return _by_rows(a, b)


_by_rows = product_by_rows(lambda row, column: total(x * y for x, y in zip(row, column, strict=True)))


def _integers(a: Objects) -> tuple[Objects, int] | None:
    found = [x.rational if isinstance(x, Known) else None for x in a.ravel().tolist()]
    rational = [x for x in found if x is not None]
    if len(rational) < len(found):
        return None
    below = math.lcm(*{x.denominator for x in rational})
    out = np.empty(len(rational), dtype=object)
    out[:] = [x.numerator * (below // x.denominator) for x in rational]
    return out.reshape(a.shape), below


def _integer(x: Any) -> int | None:
    r = x.rational if isinstance(x, Known) else None
    return int(r) if r is not None and r.denominator == 1 else None


NAMESPACE = Namespace(
    {
        "rational": lambda p, q: Known(Fraction(p, q)),
        "pi": lambda: Known(1, frozenset({(Name("pi", (), True), 1)})),
        "infinity": lambda sign: UNKNOWN,
        "not_a_number": lambda: UNKNOWN,
        "div": lambda a, b: UNKNOWN if a is UNKNOWN else known(a) / b,
        "power": _power,
        "sqrt": _sqrt,
        "exp": _function("exp", 1, True),
        "log": _log,
        "tanh": _function("tanh", 0),
        "sinh": _function("sinh", 0),
        "cosh": _function("cosh", 1, True),
        "sin": _function("sin", 0),
        "cos": _function("cos", 1),
        "erf": _function("erf", 0),
        "sigmoid": _sigmoid,
        "absolute": _absolute,
        "sign": _sign,
        "step": _step,
        "maximum": lambda *x: _largest(x),
        "minimum": lambda *x: -_largest([-v for v in x]),
        "floor_div": _rationally(lambda a, b: Known(a // b) if b else UNKNOWN),
        "ceiling": _rationally(lambda a: Known(math.ceil(a))),
        "mod": _rationally(lambda a, b: Known(a % b) if b else UNKNOWN),
        "piecewise": piecewise_of(UNKNOWN),
        "less": _test(lambda way: way < 0),
        "less_equal": _test(lambda way: way <= 0),
        "equal": _test(lambda way: way == 0),
        **LOGIC,
    }
)

TABLE = NumberTable(
    namespace=NAMESPACE,
    number=_number,
    add=total,
    multiply=_product,
    largest=_largest,
    matmul=_matmul,
    finite=lambda x: x is not UNKNOWN,
    integer=_integer,
    nan=UNKNOWN,
    negative_infinity=UNKNOWN,
)
"""The number type, for the evaluator of programs."""
