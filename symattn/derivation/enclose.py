"""Enclosures of exact values: the sign of an irrational number, decided with as many bits as it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import flint
import sympy as sp

from symattn.derivation import exactvalue as ev
from symattn.derivation.exactvalue import Exact
from symattn.errors import LimitError, UndecidedError
from symattn.readings.balls import NAMESPACE, ball, precision
from symattn.readings.specials import Special

BITS = (64, 256, 1024, 4096)
MOST_BITS = 40_000


class Encloser:
    """Balls around exact values; ``element`` gives the exact value of a named element."""

    def __init__(self, element: Callable[[str, tuple[int, ...]], Exact]) -> None:
        self.element = element
        self._known: dict[tuple[ev.Ref, int], Any] = {}

    def ball(self, value: Exact, bits: int) -> Any:
        """A ``flint.arb`` that holds the value.

        >>> two = ev.sqrt(ev.rational(2))
        >>> Encloser(lambda name, index: ev.ZERO).ball(two, 64)
        [1.41421356237310 +/- 4.96e-15]
        """
        with precision(bits):
            return self._value(value, bits)

    def sign(self, value: Exact) -> int:
        """-1, 0 or 1. Zero is known by collecting like terms; where that does not show it, more bits are tried up to a cap.

        Raises
        ------
        UndecidedError
            When the cap is reached and the enclosure still holds zero.
        """
        r = value.rational
        if r is not None:
            return (r > 0) - (r < 0)
        if value.special:
            return {"oo": 1, "-oo": -1}.get(value.special, 0)
        for bits in BITS:
            b = self.ball(value, bits)
            if b > 0 or b < 0:
                return 1 if b > 0 else -1
        raise UndecidedError(f"the sign of {value} is not decided at {BITS[-1]} bits")

    def floor(self, value: Exact) -> int:
        """The largest integer that is not above the value.

        Raises
        ------
        UndecidedError
            When the enclosure holds an integer and both sides of it at the largest precision.

        >>> Encloser(lambda name, index: ev.ZERO).floor(ev.negate(ev.sqrt(ev.rational(2))))
        -2
        """
        r = value.rational
        if r is not None:
            return r.numerator // r.denominator
        for bits in BITS:
            b = self.ball(value, bits)
            with precision(bits):
                found = b.floor().unique_fmpz() if b.is_finite() else None
            if found is not None:
                return int(found)
        raise UndecidedError(f"the floor of {value} is not decided at {BITS[-1]} bits; it is an integer as far as these show")

    def bounds(self, value: Exact, bits: int) -> tuple[Fraction, Fraction]:
        """Midpoint and radius of the enclosure, exactly.

        Raises
        ------
        UndecidedError
            When the enclosure is not finite.
        """
        return bounds(self.ball(value, bits))

    def _value(self, value: Exact, bits: int) -> Any:
        if value.special:
            return flint.arb({"nan": "nan", "oo": "inf", "-oo": "-inf"}[value.special])
        total = flint.arb(0)
        for c, m in value.terms:
            term = ball(c)
            for g, p in m:
                term *= _power(self._generator(g, bits), p)
            total += term
        return total

    def _generator(self, g: ev.Generator, bits: int) -> Any:
        if isinstance(g, ev.Root):
            return flint.arb(g.radicand).sqrt()
        if isinstance(g, ev.Group):
            return self._value(g.body, bits)
        if isinstance(g, ev.Ref):
            if (g, bits) not in self._known:
                self._known[g, bits] = self._value(self.element(g.tensor, g.index), bits)
            return self._known[g, bits]
        args = [self._value(a, bits) for a in g.args]
        if g.name == "floor":
            return args[0].floor()
        found = NAMESPACE.functions[FUNCTIONS.get(g.name, g.name)](*args)
        return flint.arb(found.value) if isinstance(found, Special) else found


def _power(b: Any, p: int) -> Any:
    """An integer power, by products: that of flint is NaN where the midpoint is 0 and the radius is not."""
    if p == 0 or b.mid() != 0 or b.is_exact():
        return b**p
    found = b
    for bit in bin(abs(p))[3:]:
        found = found * found * b if bit == "1" else found * found
    return found if p > 0 else 1 / found


def bounds(b: Any) -> tuple[Fraction, Fraction]:
    """Midpoint and radius of a ``flint.arb`` as fractions.

    Raises
    ------
    LimitError
        When they are too large to be written as fractions.
    UndecidedError
        When the enclosure is not finite.

    >>> bounds(flint.arb(0.5))
    (Fraction(1, 2), Fraction(0, 1))
    """
    if isinstance(b, Special) or not b.is_finite():
        raise UndecidedError("an enclosure is not finite at this precision")
    parts: list[Fraction] = []
    tiny = Fraction(0)
    for x in (b.mid(), b.rad()):
        m, e = (int(v) for v in x.man_exp())
        if m and e + m.bit_length() > MOST_BITS:
            raise LimitError("it is larger than 10**12000")
        if m and e < -2 * MOST_BITS:
            tiny += Fraction(1, 2**MOST_BITS)  # more than what is left out
            m = 0
        parts.append(Fraction(m) * Fraction(2) ** e if m else Fraction(0))
    parts[1] += tiny
    return parts[0], parts[1]


def compare(relation: sp.Basic, a: Exact, b: Exact, enclose: Encloser) -> bool:
    """Whether a relation of two exact values holds; NaN is unequal to everything."""
    if a.special or b.special:
        if "nan" in (a.special, b.special):
            return isinstance(relation, sp.Ne)
        x, y = ({"oo": 1, "-oo": -1}.get(v.special, 0) for v in (a, b))
        order = (x > y) - (x < y)
    else:
        order = enclose.sign(ev.add(a, ev.negate(b)))
    tests = {sp.Eq: order == 0, sp.Ne: order != 0, sp.Le: order <= 0, sp.Lt: order < 0, sp.Ge: order >= 0, sp.Gt: order > 0}
    return next(truth for kind, truth in tests.items() if isinstance(relation, kind))


FUNCTIONS: Mapping[str, str] = {"pow": "power", "Abs": "absolute", "Max": "maximum", "Min": "minimum", "Mod": "mod", "Pi": "pi"}
"""Names of functions in exact values -> names in the number table of balls, where they differ."""
