"""Balls: every number is a midpoint with a radius that provably contains the exact value (Arb, by python-flint)."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import sympy as sp

from symattn.errors import UndecidedError
from symattn.numbers import Exact
from symattn.program import Program
from symattn.readings.code import Namespace, constant
from symattn.readings.evaluate import evaluate_over
from symattn.readings.limits import checked_bits
from symattn.readings.specials import NAN, NEGATIVE, POSITIVE, Ball, Special, sign_of, special
from symattn.readings.tables import LOGIC, Decision, NumberTable, Objects, piecewise_of

_LOCK = threading.RLock()


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Set the precision of python-flint, one user at a time, and restore it: the only place that touches it.

    >>> before = flint.ctx.prec
    >>> with precision(333):
    ...     flint.ctx.prec
    333
    >>> flint.ctx.prec == before
    True
    """
    with _LOCK:
        before = flint.ctx.prec
        flint.ctx.prec = bits
        try:
            yield
        finally:
            flint.ctx.prec = before


def evaluate(
    program: Program,
    inputs: Mapping[str, object],
    *,
    sizes: Mapping[sp.Symbol | str, int] | None = None,
    bits: int = 200,
    known: Mapping[str, Objects] | None = None,
) -> dict[str, Objects]:
    """Every tensor of a program as balls that contain the exact values.

    Parameters
    ----------
    program
        Any program.
    inputs
        Arrays of exact numbers: floats are the dyadic rationals that they are, text is read exactly.
    sizes
        Sizes that no input shows.
    bits
        Working precision. The radius is what the arithmetic proves at this precision.
    known
        Further inputs as arrays of balls, which another program gave.

    Returns
    -------
    dict
        Object arrays of ``flint.arb``; NaN and infinities are ``Special`` values. A ball with infinite radius says that
        nothing is known at this precision.

    Raises
    ------
    UndecidedError
        When a condition depends on balls that do not decide it; more bits may.
    DefinitionError, LimitError
        For bits that are no integer from 2 to 3200000.

    >>> from symattn.program import Statement, indices, size, tensor
    >>> i, j = indices("i j")
    >>> p = Program((Statement(tensor("l", i), sp.exp(tensor("S", i, j)), (j,)),), {i: size("n"), j: size("m")}, ("l",))
    >>> evaluate(p, {"S": [["0.1", 0]]})["l"][0].str(20)
    '[2.1051709180756476248 +/- 1.18e-20]'
    """
    with precision(checked_bits(bits)):
        return evaluate_over(program, inputs, TABLE, sizes, known)


def ball(x: Exact) -> Any:
    """An exact number as the smallest ball at the current precision, or as a ``Special``."""
    if isinstance(x, int):
        return Ball(x)
    if isinstance(x, Fraction):
        return Ball(x.numerator) if x.denominator == 1 else Ball(flint.fmpq(x.numerator, x.denominator))
    if isinstance(x, float):
        return special(x) if not math.isfinite(x) else Ball(x)
    return constant(x, NAMESPACE)


def is_finite(x: Any) -> bool:
    """Whether a value is a ball of finite radius.

    >>> is_finite(Ball(1)), is_finite(Ball.nan()), is_finite(NAN)
    (True, False, False)
    """
    return isinstance(x, int) or (isinstance(x, Ball) and bool(x.is_finite()))


SCALE = 40_000
"""Exponents of two beyond this are not written out as fractions: below 2^-40000 a number is given as 0 with that radius."""


def parts(x: Any, scale: int = SCALE) -> tuple[Exact, Exact]:
    """Midpoint and radius as exact numbers: ``mid - rad <= value <= mid + rad``.

    A special value has radius 0; a ball of which nothing is known is 0 with radius infinity. A number below 2^-scale (the
    exponential of a "minus infinity" such as -1e9) is 0 with radius 2^-scale, and one above 2^scale is not known.

    >>> parts(Ball(3) / 2), parts(NEGATIVE)
    ((Fraction(3, 2), Fraction(0, 1)), (-inf, Fraction(0, 1)))
    >>> parts(Ball(-(10**9)).exp())[0]
    Fraction(0, 1)
    """
    if isinstance(x, Special):
        return x.value, Fraction(0)
    if not x.is_finite():
        return Fraction(0), math.inf
    (mid, e), (rad, f) = (tuple(map(int, v.man_exp())) for v in (x.mid(), x.rad()))
    if max(mid and e + mid.bit_length(), rad and f + rad.bit_length()) > scale:
        return Fraction(0), math.inf
    if mid and e + mid.bit_length() < -scale:
        mid, e, rad, f = 0, 0, 1, max(-scale, rad and f + rad.bit_length()) + 1
    elif rad and f < -2 * scale:
        rad, f = 1, -2 * scale + 64
    return _dyadic(mid, e), _dyadic(rad, f)


def _dyadic(mantissa: int, exponent: int) -> Fraction:
    return Fraction(mantissa << exponent) if exponent >= 0 else Fraction(mantissa, 1 << -exponent)


def _function(name: str, at_minus: Any, at_plus: Any) -> Callable[[Any], Any]:
    """A function by the name of Arb's method, with its limits at -oo and oo."""
    method = getattr(Ball, name)

    def f(x: Any) -> Any:
        if isinstance(x, Ball):
            return method(x)
        if isinstance(x, Special):
            limit = NAN if x is NAN else at_plus if x is POSITIVE else at_minus
            return Ball(limit) if isinstance(limit, int) else limit
        return method(Ball(x))

    f.__name__ = name
    return f


def _div(a: Any, b: Any) -> Any:
    if isinstance(b, Special):
        return NAN if b is NAN or isinstance(a, Special) else Ball(0) if is_finite(a) else Ball.nan()
    if isinstance(a, Special):
        s = sign_of(b)
        return a if a is NAN else Ball.nan() if s is None else NAN if s == 0 else a * Ball(int(s))
    return NAN if b == 0 else Ball(a) / b


_log = _function("log", NAN, POSITIVE)
_sqrt = _function("sqrt", NAN, POSITIVE)
_exp = _function("exp", 0, POSITIVE)


def _whole(x: Any, k: int) -> Any:
    """A power with a positive integer; Arb's own knows nothing of a ball whose midpoint is 0."""
    if isinstance(x, Ball) and x.mid() == 0 and not x.is_exact():
        reach = x.abs_upper() ** k
        return reach.union(Ball(0)) if k % 2 == 0 else reach.union(-reach)
    return x**k


def _sigmoid(x: Any) -> Any:
    """The logistic function; it rises, so a wide ball is taken by its ends."""
    if isinstance(x, Special):
        return NAN if x is NAN else Ball(int(x is POSITIVE))
    x = Ball(x)
    if not x.is_finite():
        return Ball(0.5, 0.5)
    return (1 / (1 + (-x.lower()).exp())).union(1 / (1 + (-x.upper()).exp()))


def _logarithm(x: Any) -> Any:
    if isinstance(x, Ball):
        return NEGATIVE if x == 0 else NAN if x < 0 else _log(x)
    return _log(x)


def _root(x: Any) -> Any:
    return NAN if isinstance(x, Ball) and x < 0 else _sqrt(x)


def _power(a: Any, b: Any) -> Any:
    if isinstance(a, Special) or isinstance(b, Special):
        return _exp(_logarithm(a) * b)
    if Ball(b).is_exact() and Ball(b).is_integer():
        k = int(Ball(b).unique_fmpz())
        return _div(1, _whole(Ball(a), -k)) if k < 0 else _whole(Ball(a), k) if k else Ball(1)
    if a == 0:
        return Ball(0) if b > 0 else NAN if b < 0 else Ball.nan()
    return NAN if a < 0 else Ball(a) ** Ball(b)


def _less(a: Any, b: Any) -> Decision:
    x, y = _order(a), _order(b)
    if isinstance(x, float) or isinstance(y, float):
        x, y = (v if isinstance(v, float) else 0.0 for v in (x, y))
        return x < y if is_known(a) and is_known(b) else None
    return True if x < y else False if x >= y else None


def _less_equal(a: Any, b: Any) -> Decision:
    x, y = _order(a), _order(b)
    if isinstance(x, float) or isinstance(y, float):
        x, y = (v if isinstance(v, float) else 0.0 for v in (x, y))
        return x <= y if is_known(a) and is_known(b) else None
    return True if x <= y else False if x > y else None


def _equal(a: Any, b: Any) -> Decision:
    x, y = _order(a), _order(b)
    if isinstance(x, float) or isinstance(y, float):
        return x == y if is_known(a) and is_known(b) else None
    return True if x == y else False if x < y or x > y else None


def is_known(x: Any) -> bool:
    """Whether a value is a finite ball or a special value, not a ball of which nothing is known."""
    return isinstance(x, Special) or is_finite(x)


def _order(x: Any) -> Any:
    return x.value if isinstance(x, Special) else Ball(x) if isinstance(x, int) else x


def _two(name: str, a: Any, b: Any) -> Any:
    if isinstance(a, Special) or isinstance(b, Special):
        if a is NAN or b is NAN:
            return NAN
        wins = POSITIVE if name == "max" else NEGATIVE
        if a is wins or b is wins:
            return wins
        return b if isinstance(a, Special) else a
    return getattr(Ball(a), name)(Ball(b))


def _extreme(name: str) -> Callable[..., Any]:
    def f(*args: Any) -> Any:
        out = args[0]
        for a in args[1:]:
            out = _two(name, out, a)
        return out

    return f


def _sign(x: Any) -> Any:
    s = sign_of(x)
    return Ball(0, 1) if s is None else NAN if math.isnan(s) else Ball(int(math.copysign(1, s)) if s else 0)


def _step(x: Any, at_zero: Any) -> Any:
    s = sign_of(x)
    if s is None:
        return Ball(0.5, 0.5)
    return NAN if math.isnan(s) else at_zero if s == 0 else Ball(int(s > 0))


def _floor(x: Any) -> Any:
    return x if isinstance(x, Special) else Ball(x).floor()


def _mod(a: Any, b: Any) -> Any:
    return a - b * _floor(_div(a, b))


def _sum(values: Sequence[Any]) -> Any:
    out = values[0]
    for v in values[1:]:
        out = out + v
    return out


def _product(values: Sequence[Any]) -> Any:
    out = values[0]
    for v in values[1:]:
        out = out * v
    return out


def _matmul(a: Objects, b: Objects) -> Objects:
    m = flint.arb_mat(a.tolist()) * flint.arb_mat(b.tolist())
    out = np.empty(a.shape[0] * b.shape[1], dtype=object)
    out[:] = m.entries()
    return out.reshape(a.shape[0], b.shape[1])


def _integer(x: Any) -> int | None:
    return int(x.unique_fmpz()) if isinstance(x, Ball) and x.is_exact() and x.is_integer() else None


def _settle(x: Any) -> Any:
    if isinstance(x, Special):
        return x
    if not x.is_finite():
        raise UndecidedError("a row maximum is not known at this precision; more bits may tell")
    return x.mid()


NAMESPACE = Namespace(
    {
        "rational": lambda p, q: Ball(p) if q == 1 else Ball(flint.fmpq(p, q)),
        "pi": Ball.pi,
        "infinity": lambda s: special(s * math.inf),
        "not_a_number": lambda: NAN,
        "div": _div,
        "power": _power,
        "sqrt": _root,
        "whole": _whole,
        "exp": _exp,
        "log": _logarithm,
        "tanh": _function("tanh", -1, 1),
        "sinh": _function("sinh", NEGATIVE, POSITIVE),
        "cosh": _function("cosh", POSITIVE, POSITIVE),
        "sin": _function("sin", NAN, NAN),
        "cos": _function("cos", NAN, NAN),
        "erf": _function("erf", -1, 1),
        "sigmoid": _sigmoid,
        "absolute": abs,
        "sign": _sign,
        "step": _step,
        "maximum": _extreme("max"),
        "minimum": _extreme("min"),
        "floor_div": lambda a, b: _floor(_div(a, b)),
        "ceiling": lambda a: -_floor(-a),
        "mod": _mod,
        "piecewise": piecewise_of(NAN),
        "less": _less,
        "less_equal": _less_equal,
        "equal": _equal,
        **LOGIC,
    }
)

TABLE = NumberTable(
    namespace=NAMESPACE,
    number=ball,
    add=_sum,
    multiply=_product,
    largest=lambda values: _extreme("max")(*values),
    matmul=_matmul,
    finite=is_finite,
    integer=_integer,
    nan=NAN,
    negative_infinity=NEGATIVE,
    settle=_settle,
    or_nothing=lambda x: Ball.nan() if isinstance(x, Special) else Ball(x).union(Ball(0)),
)
"""The number type of balls, at whatever precision is set when it is used."""
