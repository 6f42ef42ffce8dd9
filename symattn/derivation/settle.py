"""Exact zeros and other rational values hidden in irrational terms, found by a guess and settled by a proof.

``dS_1 + dS_2`` may be 0 although both are irrational; no number of digits shows that. A rational number that an enclosure
suggests is proved by arithmetic in a field of fractions: exponentials are powers of one generator for each direction of their
exponents, roots obey ``r*r == n``, the sine and the cosine of an angle have squares that add up to 1 (so a rotated query meets a
key at its own position as if neither were rotated), every other function value is a symbol of its own. What is proved there holds
for the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from math import gcd, lcm
from typing import Any

from sympy.polys.domains import QQ
from sympy.polys.fields import field
from sympy.polys.rings import PolyElement

from symattn.derivation import exactvalue as ev
from symattn.derivation.exactvalue import Exact

MOST_SYMBOLS = 12
MOST_ELEMENTS = 400
LARGEST_POWER = 100
MOST_TERMS = 2000
"""Terms of a sum of fractions before it is cancelled: more take minutes, and the proof is given up."""
SIMPLEST = 10**6
"""Guesses have denominators up to this."""

Element = Callable[[str, tuple[int, ...]], Exact]
Direction = ev.Monomial


class _TooLarge(Exception):
    """The proof would be too large to be tried."""


def guess(mid: Fraction, rad: Fraction) -> Fraction | None:
    """The simple rational number that an enclosure seems to be, or None.

    >>> guess(Fraction(1, 2) + Fraction(1, 2**200), Fraction(1, 2**190)), guess(Fraction(314159265, 10**8), Fraction(1, 2**190))
    (Fraction(1, 2), None)
    """
    found = mid.limit_denominator(SIMPLEST)
    return found if abs(found - mid) <= rad and rad < Fraction(1, 2**100) else None


def equals(value: Exact, target: Fraction, element: Element) -> bool:
    """Whether the value is proved to be ``target``; False where it is not, or where the proof would be too large.

    >>> e = ev.call("exp", ev.rational(1))
    >>> half = ev.divide(e, ev.add(e, e))
    >>> one = ev.add(ev.divide(e, ev.add(e, ev.ONE)), ev.divide(ev.ONE, ev.add(e, ev.ONE)))
    >>> equals(one, Fraction(1), lambda name, index: ev.ZERO), equals(one, Fraction(1, 2), lambda name, index: ev.ZERO)
    (True, False)
    """
    try:
        return _Proof(value, element).is_equal(target)
    except _TooLarge:
        return False


class _Proof:
    def __init__(self, value: Exact, element: Element) -> None:
        self.value, self.element = value, element
        self.opaque: list[ev.Generator] = []
        self.roots: list[int] = []
        self.steps: dict[Direction, set[Fraction]] = {}
        self.known: dict[ev.Ref, Exact] = {}
        self.collect(value)
        self.power = _powers(self.steps)
        names = list(dict.fromkeys(name for name, _ in self.power.values()))
        angles = [(g, ev.Call("cos", g.args)) for g in self.opaque if isinstance(g, ev.Call) and g.name == "sin"]
        self.angles = [(sine, cosine) for sine, cosine in angles if cosine in self.opaque]
        count = len(self.opaque) + len(self.roots) + len(names)
        if not 0 < count <= MOST_SYMBOLS + len(self.angles):
            raise _TooLarge
        self.field, *symbols = field(",".join(f"x{k}" for k in range(count)), QQ)
        self.symbol: dict[object, Any] = dict(
            zip([*self.opaque, *(ev.Root(n) for n in self.roots), *names], symbols, strict=True)
        )
        self.vanishing = [self.symbol[ev.Root(n)].numer ** 2 - n for n in self.roots]
        self.vanishing += [sum(self.symbol[g].numer ** 2 for g in pair) - 1 for pair in self.angles]
        self.done: dict[ev.Ref, Any] = {}

    # --- what occurs

    def collect(self, value: Exact) -> None:
        if value.special or len(self.known) > MOST_ELEMENTS:
            raise _TooLarge
        for _, m in value.terms:
            for g, _ in m:
                self.collect_generator(g)

    def collect_generator(self, g: ev.Generator) -> None:
        if isinstance(g, ev.Root):
            self.roots += [g.radicand] if g.radicand not in self.roots else []
        elif isinstance(g, ev.Group):
            self.collect(g.body)
        elif isinstance(g, ev.Ref):
            if g not in self.known:
                self.known[g] = self.element(g.tensor, g.index)
                self.collect(self.known[g])
        elif g.name == "exp" and g.args[0].numeric:
            for c, m in g.args[0].terms:
                self.steps.setdefault(m, set()).add(c)
        elif g not in self.opaque:
            self.opaque.append(g)

    # --- arithmetic in the field

    def of(self, value: Exact) -> Any:
        total = self.field.zero
        for c, m in value.terms:
            term = self.field(QQ(c.numerator, c.denominator))
            for g, p in m:
                factor = self.of_generator(g)
                self.bound(len(term.numer) * len(factor.numer) ** abs(p), len(term.denom) * len(factor.denom) ** abs(p))
                term *= factor**p
            self.bound(len(total.numer) * len(term.denom) + len(term.numer) * len(total.denom))
            total += term
        return self.reduced(total)

    def bound(self, *terms: int) -> None:
        """Give up the proof where polynomials of as many terms would be made."""
        if max(terms) > MOST_TERMS:
            raise _TooLarge

    def of_generator(self, g: ev.Generator) -> Any:
        if isinstance(g, ev.Group):
            return self.of(g.body)
        if isinstance(g, ev.Ref):
            if g not in self.done:
                self.done[g] = self.of(self.known[g])
            return self.done[g]
        if isinstance(g, ev.Call) and g.name == "exp" and g.args[0].numeric:
            product = self.field.one
            for c, m in g.args[0].terms:
                name, k = self.power[m, c]
                product *= self.symbol[name] ** k
            return product
        return self.symbol[g]

    def reduced(self, x: Any) -> Any:
        """A fraction without squares of roots and of one of the sine and the cosine of an angle."""
        if not self.vanishing:
            return x
        over, under = (_remainder(p, self.vanishing) for p in (x.numer, x.denom))
        if not under:
            raise _TooLarge
        return self.field(over) / self.field(under)

    def is_equal(self, target: Fraction) -> bool:
        return not self.of(self.value) - self.field(QQ(target.numerator, target.denominator))


def _powers(steps: dict[Direction, set[Fraction]]) -> dict[tuple[Direction, Fraction], tuple[object, int]]:
    """For each exponent ``c * direction`` the symbol and the power that its exponential is.

    All exponentials of a direction are powers of one symbol, unless the powers would be too large: then each is its own.
    """
    found: dict[tuple[Direction, Fraction], tuple[object, int]] = {}
    for direction, coefficients in steps.items():
        unit = _common(coefficients)
        small = all(abs(c / unit) <= LARGEST_POWER for c in coefficients)
        for c in coefficients:
            found[direction, c] = (direction, int(c / unit)) if small else ((direction, c), 1)
    return found


def _remainder(p: PolyElement, vanishing: list[PolyElement]) -> PolyElement:
    """What is left of a polynomial; the relations have leading terms without a common symbol, so the order does not matter."""
    return p.rem(vanishing) if p else p


def _common(coefficients: Iterable[Fraction]) -> Fraction:
    """The largest number that all coefficients are integer multiples of."""
    c = list(coefficients)
    below = lcm(*(x.denominator for x in c))
    return Fraction(gcd(*(int(x * below) for x in c)), below)
