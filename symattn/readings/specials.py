"""NaN and the infinities beside balls: values that a ball cannot hold, with their arithmetic.

arb's own NaN means "nothing is known"; here NaN is a value that is known to be one (an input, 0/0, oo - oo).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import flint

Ball = flint.arb


class Special:
    """NaN, +oo or -oo as an operand of balls."""

    __slots__ = ("value",)
    _all: ClassVar[dict[str, Special]] = {}

    def __init__(self, value: float) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "nan" if math.isnan(self.value) else "oo" if self.value > 0 else "-oo"

    def __add__(self, other: Any) -> Any:
        return special(self.value + (other.value if isinstance(other, Special) else 0.0))

    __radd__ = __add__

    def __neg__(self) -> Special:
        return special(-self.value)

    def __sub__(self, other: Any) -> Any:
        return special(self.value - (other.value if isinstance(other, Special) else 0.0))

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        s = sign_of(other)
        if s is None:
            return self if math.isnan(self.value) else Ball.nan()
        return special(self.value * s)

    __rmul__ = __mul__

    def __pow__(self, k: int) -> Any:
        return special(self.value**k)

    def __abs__(self) -> Special:
        return special(abs(self.value))

    def is_finite(self) -> bool:
        """False, under the name that a ball answers to."""
        return False


NAN, POSITIVE, NEGATIVE = Special(math.nan), Special(math.inf), Special(-math.inf)


def special(value: float) -> Special:
    """The special value that a float is.

    >>> special(float("inf")) - special(float("inf"))
    nan
    >>> special(float("-inf")) + flint.arb(3)
    -oo
    """
    return NAN if math.isnan(value) else POSITIVE if value > 0 else NEGATIVE


def sign_of(x: Any) -> float | None:
    """The sign of an operand as a float (NaN and infinities themselves), None where a ball does not tell."""
    if isinstance(x, Special):
        return x.value
    if isinstance(x, int):
        return float((x > 0) - (x < 0))
    return 1.0 if x > 0 else -1.0 if x < 0 else 0.0 if x == 0 else None
