"""Exact numbers kept in the shape in which a derivation shows them: 10/sqrt(3) stays 10 over a root, exp(2) stays e to the 2.

A value is a sum of terms, each a rational coefficient times integer powers of *generators*: square roots of integers,
function values such as exp(10/sqrt(3)), named elements such as ``P[4, 0]``, and groups (sums used as one factor). Like terms
are collected, roots are never moved out of a denominator, products of sums are never expanded. Nothing is ever rounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Any, TypeAlias

from symattn.errors import InputValueError
from symattn.numbers import exact_number


@dataclass(frozen=True)
class Root:
    """The square root of a squarefree integer above 1."""

    radicand: int


@dataclass(frozen=True)
class Call:
    """A function of exact values that has no simpler form, for example ``exp`` of 1."""

    name: str
    args: tuple[Exact, ...]


@dataclass(frozen=True)
class Ref:
    """An element of a tensor that is named instead of written out; indices count from 0."""

    tensor: str
    index: tuple[int, ...]


@dataclass(frozen=True)
class Group:
    """A sum used as one factor, for example a denominator."""

    body: Exact


Generator: TypeAlias = Root | Call | Ref | Group
Monomial: TypeAlias = tuple[tuple[Generator, int], ...]


@dataclass(frozen=True)
class Exact:
    """``sum of coefficient * product of generator ** power``, or NaN or an infinity (``special``).

    >>> print(divide(rational(10), sqrt(rational(3))))
    10*sqrt(3)^-1
    """

    terms: tuple[tuple[Fraction, Monomial], ...] = ()
    special: str = ""

    @property
    def rational(self) -> Fraction | None:
        """The value as a fraction, or None where it has generators or is no number."""
        if self.special:
            return None
        if not self.terms:
            return Fraction(0)
        return self.terms[0][0] if len(self.terms) == 1 and not self.terms[0][1] else None

    @property
    def numeric(self) -> bool:
        """Whether only integers and square roots occur."""
        return not self.special and all(isinstance(g, Root) for _, m in self.terms for g, _ in m)

    @property
    def size(self) -> int:
        """How many leaves the value has when written out."""
        return sum(1 + sum(_leaves(g) for g, _ in m) for _, m in self.terms) or 1

    def __str__(self) -> str:
        if self.special:
            return self.special
        return (
            " + ".join("*".join([str(c), *(f"{_name(g)}{'' if p == 1 else f'^{p}'}" for g, p in m)]) for c, m in self.terms)
            or "0"
        )


def _leaves(g: Generator) -> int:
    if isinstance(g, Call):
        return sum(a.size for a in g.args)
    return g.body.size if isinstance(g, Group) else 1


def _name(g: Generator) -> str:
    if isinstance(g, Root):
        return f"sqrt({g.radicand})"
    if isinstance(g, Call):
        return f"{g.name}({', '.join(map(str, g.args))})"
    return f"({g.body})" if isinstance(g, Group) else f"{g.tensor}[{', '.join(map(str, g.index))}]"


NAN, INFINITY, MINUS_INFINITY = Exact(special="nan"), Exact(special="oo"), Exact(special="-oo")
ZERO, ONE = Exact(), Exact(((Fraction(1), ()),))


def rational(x: int | Fraction) -> Exact:
    """A rational number as an exact value."""
    return Exact(((Fraction(x), ()),)) if x else ZERO


def generator(g: Generator, power: int = 1) -> Exact:
    """One generator to an integer power, as a value."""
    return Exact(((Fraction(1), ((g, power),)),))


def add(*values: Exact) -> Exact:
    """The sum, like terms collected in the order of their first appearance.

    >>> third = divide(ONE, sqrt(rational(3)))
    >>> print(add(third, multiply(rational(2), third)), "|", add(third, negate(divide(sqrt(rational(3)), rational(3)))))
    3*sqrt(3)^-1 | 0
    """
    if any(v.special for v in values):
        kinds = {v.special for v in values if v.special}
        return Exact(special=kinds.pop()) if len(kinds) == 1 else NAN
    found: dict[object, tuple[Fraction, Monomial]] = {}
    for v in values:
        for c, m in v.terms:
            key = frozenset((g, 1 if isinstance(g, Root) else p) for g, p in m)
            if key not in found:
                found[key] = (c, m)
                continue
            have, shape = found[key]
            powers = dict(m)
            for g, p in shape:  # sqrt(3) and 1/sqrt(3) are like terms: bring the new one to the shape that is there
                if isinstance(g, Root) and powers[g] != p:
                    c = c * g.radicand if powers[g] > p else c / g.radicand
            found[key] = (have + c, shape)
    return Exact(tuple((c, m) for c, m in found.values() if c))


def negate(a: Exact) -> Exact:
    """The value with its sign changed."""
    if a.special:
        return {"oo": MINUS_INFINITY, "-oo": INFINITY}.get(a.special, NAN)
    return Exact(tuple((-c, m) for c, m in a.terms))


def _times(a: Monomial, b: Monomial) -> tuple[Fraction, Monomial]:
    powers: dict[Generator, int] = dict(a)
    for g, p in b:
        powers[g] = powers.get(g, 0) + p
    c = Fraction(1)
    for g, p in powers.items():
        if isinstance(g, Root) and abs(p) > 1:
            c *= Fraction(g.radicand) ** (p // 2 if p > 0 else -(-p // 2))
            powers[g] = p % 2 if p > 0 else -(-p % 2)
    return c, tuple((g, p) for g, p in powers.items() if p)


def _sign_of_special(a: Exact) -> int:
    if a.special:
        return {"oo": 1, "-oo": -1}.get(a.special, 0)
    r = a.rational
    return 0 if r is None else (r > 0) - (r < 0)


def multiply(*values: Exact) -> Exact:
    """The product. A sum is expanded only where all its factors are rational numbers and roots; otherwise it stays a group.

    >>> e = call("exp", ONE)
    >>> print(multiply(rational(2), add(e, ONE)), "|", multiply(e, add(e, ONE)))
    2*exp(1) + 2 | 1*exp(1)*(1*exp(1) + 1)
    """
    if any(v.special for v in values):
        signs = [_sign_of_special(v) for v in values]
        sign = 1
        for s in signs:
            sign *= s
        return (INFINITY if sign > 0 else MINUS_INFINITY) if sign else NAN
    result = ONE
    for v in values:
        if len(result.terms) > 1 and len(v.terms) > 1 and not (result.numeric and v.numeric):
            result, v = _grouped(result), _grouped(v)
        elif len(result.terms) > 1 and not v.numeric:
            result = _grouped(result)
        elif len(v.terms) > 1 and not result.numeric:
            v = _grouped(v)
        products = []
        for c, m in result.terms:
            for k, w in v.terms:
                extra, both = _times(m, w)
                products.append(Exact(((c * k * extra, both),)))
        result = add(*products)
    return result


def _grouped(a: Exact) -> Exact:
    return a if len(a.terms) <= 1 else generator(Group(a))


def divide(a: Exact, b: Exact) -> Exact:
    """The quotient; a denominator that is a sum stays one. A division by 0 gives NaN."""
    if a.special or b.special:
        return (
            ZERO
            if not a.special and b.special in ("oo", "-oo")
            else NAN
            if b.special or a.special == "nan"
            else multiply(a, _sign(b))
        )
    if not b.terms:
        return NAN
    if len(b.terms) > 1:
        if a == b:
            return ONE
        return multiply(a, generator(Group(b), -1))
    ((c, m),) = b.terms
    return multiply(a, Exact(((1 / c, tuple((g, -p) for g, p in m)),)))


def _sign(b: Exact) -> Exact:
    r = b.rational
    return NAN if not r else rational(1 if r > 0 else -1)


@lru_cache(maxsize=4096)
def _square_part(n: int) -> tuple[int, int]:
    """``(s, f)`` with ``n == s*s*f``; f is squarefree as far as trial division to 1000 and one square test see."""
    s = 1
    for p in range(2, 1000):
        while n % (p * p) == 0:
            n //= p * p
            s *= p
        if p * p > n:
            break
    r = isqrt(n)
    return (s * r, 1) if r * r == n else (s, n)


def sqrt(a: Exact) -> Exact:
    """The square root: of a rational number as roots of its numerator and denominator, otherwise a named function value.

    >>> print(sqrt(rational(12)), "|", sqrt(rational(Fraction(1, 2))), "|", sqrt(rational(64)))
    2*sqrt(3) | 1*sqrt(2)^-1 | 8
    """
    r = a.rational
    if r is None or r < 0:
        return a if a.special == "oo" else NAN if a.special or r is not None else generator(Call("sqrt", (a,)))
    if not r:
        return ZERO
    (s, f), (t, h) = _square_part(r.numerator), _square_part(r.denominator)
    roots: Monomial = tuple((Root(x), p) for x, p in ((f, 1), (h, -1)) if x > 1)
    return Exact(((Fraction(s, t), roots),))


def power(a: Exact, exponent: Exact) -> Exact:
    """The power: by products for small integers, by :func:`sqrt` for halves, otherwise a named function value."""
    e = exponent.rational
    if e is None:
        return NAN if a.special or exponent.special else generator(Call("pow", (a, exponent)))
    if e < 0:
        return divide(ONE, power(a, rational(-e)))
    if e.denominator == 1 and e <= 64:
        if len(a.terms) > 1 and not a.numeric:
            return generator(Group(a), int(e)) if e else ONE
        return multiply(*[a] * int(e)) if e else ONE
    if e.denominator == 2 and e <= 64:
        return multiply(power(a, rational(int(e - Fraction(1, 2)))), sqrt(a))
    return NAN if a.special else generator(Call("pow", (a, exponent)))


_AT_INFINITY = {
    "exp": (ZERO, INFINITY),
    "tanh": (rational(-1), ONE),
    "log": (NAN, INFINITY),
    "erf": (rational(-1), ONE),
    "sigmoid": (ZERO, ONE),
}
_AT_RATIONAL = {
    ("exp", 0): ONE,
    ("log", 1): ZERO,
    ("log", 0): MINUS_INFINITY,
    ("tanh", 0): ZERO,
    ("erf", 0): ZERO,
    ("sigmoid", 0): rational(Fraction(1, 2)),
    ("sin", 0): ZERO,
    ("cos", 0): ONE,
    ("tan", 0): ZERO,
    ("sinh", 0): ZERO,
    ("cosh", 0): ONE,
    ("asin", 0): ZERO,
    ("atan", 0): ZERO,
    ("asinh", 0): ZERO,
    ("atanh", 0): ZERO,
}


def call(name: str, *args: Exact) -> Exact:
    """A function value: simplified at 0, 1 and the infinities, a named value everywhere else.

    >>> print(call("exp", ZERO), call("log", ZERO), call("tanh", INFINITY), call("exp", ONE))
    1 -oo 1 1*exp(1)
    """
    if any(a.special for a in args):
        if len(args) == 1 and name in _AT_INFINITY and args[0].special != "nan":
            return _AT_INFINITY[name][args[0].special == "oo"]
        return NAN
    if len(args) == 1 and args[0].rational is not None:
        r = args[0].rational
        if r.denominator == 1 and (name, int(r)) in _AT_RATIONAL:
            return _AT_RATIONAL[(name, int(r))]
        if name == "Abs":
            return rational(abs(r))
        if name in ("floor", "ceiling"):
            return rational(r.numerator // r.denominator if name == "floor" else -(-r.numerator // r.denominator))
        if name == "log" and r < 0:
            return NAN
    return generator(Call(name, args))


def exact(x: Any) -> Exact:
    """A number of an input as an exact value: what :func:`symattn.numbers.exact_number` gives, infinities and NaN included."""
    x = exact_number(x)
    if isinstance(x, float):
        return NAN if x != x else INFINITY if x > 0 else MINUS_INFINITY
    if isinstance(x, Fraction):
        return rational(x)
    raise InputValueError(f"{x} is irrational; a derivation takes rational numbers")
