"""Decimals that are right in every digit: printed from enclosures, rounded once, halves to even.

``digits`` is the number of places after the point; a number too small to show itself there (two digits of it, from three places
on), or of nine and more digits before the point, is written with a power of ten and ``digits`` significant digits.
"""

from __future__ import annotations

import math
from fractions import Fraction

TALL = 10**8
LOG = math.log10(2)


def rounded(x: Fraction, places: int) -> int:
    """``x * 10**places`` rounded to an integer, halves to even.

    >>> rounded(Fraction(1, 8), 2), rounded(Fraction(-5, 3), 1)
    (12, -17)
    """
    return round(x * Fraction(10) ** places)


def fixed(x: Fraction, places: int) -> str:
    """``x`` with ``places`` digits after the point.

    >>> fixed(Fraction(2, 3), 4), fixed(Fraction(-1, 10**9), 4)
    ('0.6667', '0.0000')
    """
    n = rounded(x, places)
    body = f"{abs(n) // 10**places}.{abs(n) % 10**places:0{places}d}" if places else str(abs(n))
    return "-" + body if n < 0 else body


def exponent_of(x: Fraction) -> int:
    """The power of ten of the first digit of ``x``.

    >>> exponent_of(Fraction(1, 1000)), exponent_of(Fraction(999))
    (-3, 2)
    """
    a = abs(x)
    e = round((a.numerator.bit_length() - a.denominator.bit_length()) * LOG)  # close: the loops take a step or two
    while a >= Fraction(10) ** (e + 1):
        e += 1
    while a < Fraction(10) ** e:
        e -= 1
    return e


def decimal(x: Fraction, digits: int) -> str:
    """The decimal of ``x`` as derivations print it.

    >>> decimal(Fraction(1, 3), 4), decimal(Fraction(1, 300000), 4), decimal(Fraction(5), 4), decimal(Fraction(1, 2), 4)
    ('0.3333', '3.333e-6', '5', '0.5')
    """
    if is_exact(x, digits):
        return _plain(x, digits)
    if Fraction(1, 10 ** (digits - 1 if digits > 2 else digits)) / 2 > abs(x) or abs(x) >= TALL:
        significant = max(digits, 2)
        e = exponent_of(x)
        n = rounded(x, significant - 1 - e)
        if abs(n) >= 10**significant:
            e += 1
            n = rounded(x, significant - 1 - e)
        mantissa = fixed(Fraction(n, 10 ** (significant - 1)), significant - 1)
        return f"{mantissa}e{e}"
    return fixed(x, digits)


def is_exact(x: Fraction, digits: int) -> bool:
    """Whether ``x`` has at most ``digits`` digits after the point and fewer than nine before it.

    >>> is_exact(Fraction(1, 8), 3), is_exact(Fraction(1, 8), 2)
    (True, False)
    """
    return (x * 10**digits).denominator == 1 and abs(x) < TALL


def _plain(x: Fraction, digits: int) -> str:
    body = fixed(x, digits)
    return body.rstrip("0").rstrip(".") if "." in body else body


def enclosed_decimal(mid: Fraction, rad: Fraction, digits: int) -> str | None:
    """The decimal that every number in an enclosure rounds to; None where the enclosure does not decide it.

    >>> enclosed_decimal(Fraction(1, 3), Fraction(1, 10**6), 4), enclosed_decimal(Fraction(1, 3), Fraction(1, 10), 4)
    ('0.3333', None)
    """
    low, high = decimal(mid - rad, digits), decimal(mid + rad, digits)
    if rad == 0 or low == high:
        return low
    # an end may happen to be an exact decimal, which is printed without its zeros
    padded = {fixed(x, digits) for x in (mid - rad, mid + rad)} if "e" not in low + high else {low, high}
    return padded.pop() if len(padded) == 1 else None
