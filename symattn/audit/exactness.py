"""Exact values against rational numbers: order, digits, and equality that no number of digits shows.

A value is an ``int``, a ``Fraction``, or a SymPy number such as ``exp(2)/(1 + exp(2))``. It is enclosed by balls of as many bits
as a question takes; what 4096 bits leave open is asked of algebra: a sum of exponentials of algebraic numbers is zero when the
coefficients of equal exponents are (Lindemann and Weierstrass: and only then).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import flint
import sympy as sp

from symattn.errors import InputValueError, LimitError, ProgramError, UndecidedError
from symattn.readings.balls import NAMESPACE, ball, is_finite, parts, precision

Value: TypeAlias = Any
"""``int``, ``Fraction`` or a SymPy number (untyped)."""

BITS = (96, 256, 1024, 4096)
_HYPERBOLIC = (sp.tanh, sp.sinh, sp.cosh)
MOST_TERMS = 3000
LARGEST = 20_000
"""Operations in an expression up to which algebra is asked whether it is 0."""
MOST_DIGITS = 4000
LOG10_2 = 0.30102999566

_FUNCTIONS: dict[str, Any] = dict(NAMESPACE.functions)
_CONSTANTS: dict[Any, Callable[[], Any]] = {sp.E: lambda: flint.arb(1).exp(), sp.pi: flint.arb.pi}


def rational_of(value: Value) -> Fraction | None:
    """The value as a fraction where it is one by its form, None otherwise.

    >>> rational_of(sp.Rational(1, 3)), rational_of(sp.exp(1))
    (Fraction(1, 3), None)
    """
    if isinstance(value, (int, Fraction)):
        return Fraction(value)
    if isinstance(value, sp.Rational):
        return Fraction(int(value.p), int(value.q))
    if isinstance(value, sp.Expr):  # that it has no symbols is found out where it is enclosed
        return None
    raise InputValueError(f"{value!r} is no exact number; give an int, a Fraction or a SymPy number")


def enclose(value: Value, bits: int) -> Any:
    """A ball (``flint.arb``) of working precision ``bits`` that contains the value.

    Raises
    ------
    InputValueError
        For what is no exact number, a float for example.

    >>> enclose(sp.sqrt(2), 64)
    [1.41421356237310 +/- 4.96e-15]
    """
    r = rational_of(value)
    if r is None:
        return _enclosed(value, bits)
    with precision(bits):
        return ball(r)


@lru_cache(maxsize=200_000)
def _enclosed(e: Any, bits: int) -> Any:
    """The ball of a SymPy number; parts that numbers of one page share (a row's sum of exponentials) are evaluated once."""
    of = [] if e.is_Atom else [_enclosed(a, bits) for a in e.args]
    with precision(bits):
        if isinstance(e, sp.Rational):
            return ball(Fraction(int(e.p), int(e.q)))
        if e in _CONSTANTS:
            return _CONSTANTS[e]()
        if isinstance(e, sp.Add):
            return sum(of, flint.arb(0))
        if isinstance(e, sp.Mul):
            return math.prod(of, start=flint.arb(1))
        if isinstance(e, sp.Pow):
            return _power(e, *of)
        name = {"Abs": "absolute", "Max": "maximum", "Min": "minimum"}.get(type(e).__name__, type(e).__name__)
        if name not in _FUNCTIONS:
            raise ProgramError(f"no enclosure is known of {type(e).__name__} in `{e}`")
        return _FUNCTIONS[name](*of)


def _power(e: sp.Pow, base: Any, exponent: Any) -> Any:
    if not e.exp.is_Rational:
        return _FUNCTIONS["power"](base, exponent)
    up = abs(Fraction(int(e.exp.p), int(e.exp.q)))
    raised = base if up == 1 else _FUNCTIONS["sqrt"](base) if up == Fraction(1, 2) else _FUNCTIONS["power"](base, ball(up))
    return _FUNCTIONS["div"](flint.arb(1), raised) if e.exp.is_negative else raised


def order(value: Value, point: Fraction | int) -> int:
    """-1, 0 or 1 as the value is less than, equal to or greater than a rational number.

    Raises
    ------
    UndecidedError
        When 4096 bits do not tell them apart and algebra does not show that they are equal.

    >>> order(sp.exp(1), 3), order(sp.sqrt(2) * sp.sqrt(8), 4)
    (-1, 0)
    >>> half = 1 / (1 + sp.exp(sp.sqrt(2) - 2 / sp.sqrt(2)))
    >>> order(half, Fraction(1, 2)), order(sp.exp(2) / (sp.exp(2) + sp.exp(1)) + 1 / (1 + sp.exp(1)), 1)
    (0, 0)
    """
    r = rational_of(value)
    if r is not None:
        return (r > point) - (r < point)
    if value is sp.oo or value is -sp.oo:
        return 1 if value is sp.oo else -1
    point = Fraction(point)
    for bits in BITS:
        x = enclose(value, bits)
        if is_finite(x):
            with precision(bits):
                gap = x - ball(point)
            if gap > 0 or gap < 0:
                return 1 if gap > 0 else -1
        if bits == BITS[1] and vanishes(value - sp.Rational(point.numerator, point.denominator)):
            return 0
    raise UndecidedError(
        f"{BITS[-1]} bits do not tell {shown(value)} from {point}, and algebra does not show that they are equal"
    )


def vanishes(e: sp.Expr) -> bool:
    """Whether algebra shows that an expression is 0: as a sum of exponentials, the coefficients of which are 0.

    Fractions with one denominator are put together first; those that are a constant (a row of weights sums to 1) drop out, so
    that denominators are multiplied only where they have to be, and only while the product stays small.

    >>> vanishes(sp.exp(1) * sp.exp(2) - sp.exp(3)), vanishes(sp.exp(1) - 3)
    (True, False)
    """
    if sp.count_ops(e) > LARGEST:
        return False
    e = e.replace(lambda x: isinstance(x, _HYPERBOLIC), lambda x: x.rewrite(sp.exp))
    above: dict[Any, list[Any]] = {}
    for term in sp.Add.make_args(e):
        n, d = _split(term)
        above.setdefault(d, []).append(n)
    constant, rest = sp.S.Zero, []
    for d, numerators in above.items():
        n = sp.Add(*numerators)
        c = _ratio(n, d)
        if c is None:
            rest.append(n / d)
        else:
            constant += c
    if not rest:
        return _zero(constant)
    n = sp.together(sp.Add(constant, *rest)).as_numer_denom()[0]
    return _terms(n) <= MOST_TERMS and all(map(_zero, _by_exponent(n).values()))


def _split(term: Any) -> tuple[Any, Any]:
    """Numerator and denominator, sums only in the latter: SymPy's own would move exponentials there."""
    below = [f for f in sp.Mul.make_args(term) if isinstance(f, sp.Pow) and f.exp.is_Integer and f.exp < 0 and f.base.is_Add]
    above = [f for f in sp.Mul.make_args(term) if f not in below]
    return sp.Mul(*above), sp.Mul(*(f.base**-f.exp for f in below))


def _ratio(n: Any, d: Any) -> Any | None:
    """The constant that a fraction of two sums of exponentials is; None where it is none, or this is not seen."""
    if _terms(n) * _terms(d) > MOST_TERMS:
        return None
    below, above = _by_exponent(d), _by_exponent(n)
    e, coefficient = next(iter(below.items()))
    c = above.get(e, sp.S.Zero) / coefficient
    return c if all(_zero(above.get(x, 0) - c * below.get(x, 0)) for x in above.keys() | below.keys()) else None


def _by_exponent(e: Any) -> dict[Any, Any]:
    """A sum of exponentials as exponent -> coefficient."""
    found: dict[Any, list[Any]] = {}
    for term in sp.Add.make_args(sp.expand(e, power_exp=False, log=False)):
        exponents = [f.exp for f in sp.Mul.make_args(term) if isinstance(f, sp.exp)]
        rest = [f for f in sp.Mul.make_args(term) if not isinstance(f, sp.exp)]
        found.setdefault(sp.expand(sp.radsimp(sp.Add(*exponents))), []).append(sp.Mul(*rest))
    return {x: sp.Add(*coefficients) for x, coefficients in found.items()}


def _terms(e: Any) -> int:
    """How many terms an expression has at most when it is expanded."""
    if isinstance(e, sp.Add):
        return sum(map(_terms, e.args))
    if isinstance(e, sp.Mul):
        return min(math.prod(map(_terms, e.args)), 10**9)
    if isinstance(e, sp.Pow) and e.exp.is_Integer and e.exp > 0:
        return min(_terms(e.base) ** min(int(e.exp), 40), 10**9)
    return 1


def _zero(e: Any) -> bool:
    e = sp.sympify(e)
    return e == 0 or 0 in (sp.expand(sp.radsimp(sp.expand(e))), sp.expand(sp.radsimp(sp.sqrtdenest(e))))


def approximate(value: Value, bits: int = 256) -> Fraction:
    """A rational number next to the value: the value itself where it is rational, the midpoint of a narrow ball otherwise.

    >>> float(approximate(sp.sqrt(2)))
    1.4142135623730951
    """
    r = rational_of(value)
    return r if r is not None else Fraction(parts(enclose(value, bits))[0])


def decimal(value: Value, digits: int = 40) -> str:
    """The value rounded to significant digits, halves to even; a shorter decimal is written as it is.

    Raises
    ------
    LimitError
        For more than 4000 digits.

    >>> decimal(Fraction(1, 8)), decimal(sp.exp(-20), 5), decimal(-sp.sqrt(2), 6), decimal(Fraction(200, 3), 4)
    ('0.125', '2.0612e-9', '-1.41421', '66.67')
    """
    if not 0 < digits <= MOST_DIGITS:
        raise LimitError(f"from 1 to {MOST_DIGITS} digits can be shown, got {digits}")
    r = rational_of(value)
    if r is not None:
        return _placed(*_significant(r, digits)) if r else "0"
    if value is sp.oo or value is -sp.oo:
        return "inf" if value is sp.oo else "-inf"
    for bits in (digits * 4 + 64, digits * 8 + 512, digits * 16 + 4096):
        x = enclose(value, bits)
        mid, rad = parts(x)
        if not mid and (x > 0 or x < 0):  # far below all printed numbers: exp(-1e9)
            with precision(bits):
                return str(x.str(digits, radius=False))
        if isinstance(rad, Fraction) and (mid - rad > 0 or mid + rad < 0):
            ends = {_significant(Fraction(e), digits) for e in (mid - rad, mid + rad)}
            if len(ends) == 1:
                return _placed(*ends.pop())
    if vanishes(value):
        return "0"
    if isinstance(rad, Fraction) and (mid - rad > 0 or mid + rad < 0):  # next to a tie, or a shorter decimal by algebra alone
        return _placed(*_significant(Fraction(mid), digits))
    raise UndecidedError(f"{shown(value)} is 0 as far as {bits} bits show; its digits are not known")


def _significant(x: Fraction, digits: int) -> tuple[int, int]:
    """``(n, k)`` with x about n * 10^k and n of that many digits, without trailing zeros."""
    size = int((abs(x.numerator).bit_length() - x.denominator.bit_length()) * LOG10_2)  # text of large integers is slow
    for k in range(size - digits - 2, size - digits + 4):
        n = round(x / Fraction(10) ** k)
        if abs(n) < 10**digits:
            break
    while n and n % 10 == 0:
        n, k = n // 10, k + 1
    return n, k


def _placed(n: int, k: int) -> str:
    """``n * 10^k`` as people write it: with an exponent only where there would be many zeros."""
    sign, text = "-" if n < 0 else "", str(abs(n))
    point = len(text) + k
    if -5 < point <= 21:
        if k >= 0:
            return sign + text + "0" * k
        return sign + (text[:point] + "." + text[point:] if point > 0 else "0." + "0" * -point + text)
    return f"{sign}{text[0]}{'.' if text[1:] else ''}{text[1:]}e{point - 1}"


def shown(value: Value, most: int = 60) -> str:
    """A value for a message, cut where it is long."""
    try:
        text = str(value)
    except ValueError:  # Python writes no integers of more than 4300 digits
        return "a number of more than 4300 digits"
    return text if len(text) <= most else text[: most - 3] + "..."
