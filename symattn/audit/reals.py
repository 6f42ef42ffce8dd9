"""Real numbers as exact trees: fractions where they are rational, else roots, exponentials and logarithms of such trees.

Rational arithmetic is done at once; what is irrational stays a tree that shares its parts, is enclosed by balls of any precision
(:func:`enclose`) and handed to SymPy, operation by operation, where a verdict is asked for (:func:`to_sympy`). A leaf may also be
an interval: a number that a page printed rounded. Sizes, depths and the number of operations are bounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

import flint
import sympy as sp

from symattn.audit.exactness import enclose as enclosure_of
from symattn.audit.exactness import rational_of
from symattn.errors import InputValueError, LimitError
from symattn.readings.balls import ball, is_finite, parts, precision

MOST_BITS = 20_000
"""Of a numerator or a denominator."""
DEEPEST = 80
LARGEST_POWER = 2000
LARGEST_EXPONENT = 10**6
"""Of what ``exp`` is taken, in absolute value."""


@dataclass(frozen=True, eq=False, slots=True)
class Tree:
    """An operation on real numbers that gives an irrational number, or an interval."""

    op: str
    args: tuple[Real, ...]
    depth: int
    ends: tuple[Fraction, Fraction] | None = None
    """Of an interval, which is a leaf."""
    given: Any = None
    """A SymPy number, which is a leaf."""
    enclosures: dict[int, Any] = field(default_factory=dict, repr=False)


Real: TypeAlias = Fraction | Tree


def interval(low: Fraction, high: Fraction) -> Real:
    """A number of which two bounds are known."""
    return low if low == high else Tree("interval", (), 0, (low, high))


def from_value(x: Any) -> Real:
    """A number that is given: an int, a Fraction or a SymPy number.

    >>> from_value(sp.Rational(1, 3)), from_value(sp.sqrt(2)).op
    (Fraction(1, 3), 'given')
    """
    r = rational_of(x)
    return checked(r) if r is not None else Tree("given", (), 0, given=x)


def add(a: Real, b: Real) -> Real:
    """The sum."""
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return checked(a + b)
    if a == 0 or b == 0:
        return b if a == 0 else a
    return _tree("add", a, b)


def total(terms: list[Real]) -> Real:
    """The sum of many, the rational ones first, so that a long sum is no deep tree.

    >>> total([Fraction(1), Fraction(1, 2)])
    Fraction(3, 2)
    """
    rational = Fraction(0)
    rest: list[Real] = []
    for t in terms:
        if isinstance(t, Fraction):
            rational = checked(rational + t)
        else:
            rest.append(t)
    if rational or not rest:
        rest.append(rational)
    return rest[0] if len(rest) == 1 else _tree("add", *rest)


def negative(a: Real) -> Real:
    """The number with the other sign."""
    if isinstance(a, Fraction):
        return -a
    return a.args[0] if a.op == "neg" else _tree("neg", a)


def subtract(a: Real, b: Real) -> Real:
    """The difference; 0 where both are the same tree, be it of an interval."""
    return Fraction(0) if same(a, b) else add(a, negative(b))


def multiply(a: Real, b: Real) -> Real:
    """The product."""
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return checked(a * b)
    if a == 0 or b == 0:
        return Fraction(0)
    if a == 1 or b == 1:
        return b if a == 1 else a
    if isinstance(a, Tree) and a.op == "sqrt" and same(a, b):
        return a.args[0]
    return _tree("mul", a, b)


def divide(a: Real, b: Real) -> Real:
    """The quotient.

    Raises
    ------
    InputValueError
        When the divisor is 0, or an interval around 0.
    """
    if isinstance(b, Fraction):
        if b == 0:
            raise InputValueError("a division by zero")
        return multiply(a, 1 / b)
    if same(a, b) and not touches_zero(b):
        return Fraction(1)
    if touches_zero(b):
        raise InputValueError("a division by a number that may be zero")
    return _tree("div", a, b)


def power(a: Real, b: Real) -> Real:
    """``a`` to the power ``b``: whole powers of anything, other powers of positive numbers.

    Raises
    ------
    InputValueError
        Where it has no value.
    LimitError
        When it would be too large.
    """
    if isinstance(b, Fraction) and b.denominator == 1:
        n = int(b)
        if abs(n) > LARGEST_POWER:
            raise LimitError(f"a power of {n} is too large; up to {LARGEST_POWER} are computed")
        if n < 0:
            return divide(Fraction(1), power(a, -b))
        if isinstance(a, Fraction):
            if max(a.numerator.bit_length(), a.denominator.bit_length()) * n > MOST_BITS:
                raise LimitError("a power has too many digits")
            return a**n
        if n <= 1:
            return a if n else Fraction(1)
        return a.args[0] if a.op == "sqrt" and n == 2 else _tree("pow", a, b)
    if isinstance(b, Fraction) and b.denominator == 2 and abs(b) <= 20:
        root = sqrt(a)
        return power(root, Fraction(b.numerator))
    return exp(multiply(b, log(a)))


def sqrt(a: Real) -> Real:
    """The square root; of the square of a fraction it is that fraction.

    >>> sqrt(Fraction(9, 4)), sqrt(Fraction(2)).op
    (Fraction(3, 2), 'sqrt')
    """
    if isinstance(a, Fraction):
        if a < 0:
            raise InputValueError("a square root of a negative number")
        above, below = math.isqrt(a.numerator), math.isqrt(a.denominator)
        if above * above == a.numerator and below * below == a.denominator:
            return Fraction(above, below)
    elif sign(a) == -1:
        raise InputValueError("a square root of a negative number")
    return _tree("sqrt", a)


def root(a: Real, n: Real) -> Real:
    """The root of any order; whole roots of fractions are found.

    >>> root(Fraction(27, 8), Fraction(3))
    Fraction(3, 2)
    """
    if n == 2:
        return sqrt(a)
    if isinstance(n, Fraction) and n.denominator == 1 and 0 < n < 60 and isinstance(a, Fraction) and a >= 0:
        found = [_whole_root(x, int(n)) for x in (a.numerator, a.denominator)]
        if None not in found:
            return Fraction(found[0], found[1])  # type: ignore[arg-type]
    return power(a, divide(Fraction(1), n))


def _whole_root(x: int, n: int) -> int | None:
    k = int(flint.fmpz(x).root(n))
    return k if k**n == x else None


def exp(a: Real) -> Real:
    """The exponential."""
    if isinstance(a, Fraction):
        if abs(a) > LARGEST_EXPONENT:
            raise LimitError(f"an exponential of a number beyond {LARGEST_EXPONENT} is not computed")
        if a == 0:
            return Fraction(1)
    elif a.op == "log":
        return a.args[0]
    elif not abs(enclose(a, 64)) < LARGEST_EXPONENT:
        raise LimitError(f"an exponential of a number beyond {LARGEST_EXPONENT} is not computed")
    return _tree("exp", a)


def log(a: Real) -> Real:
    """The natural logarithm of a positive number."""
    if a == 1:
        return Fraction(0)
    if isinstance(a, Tree) and a.op == "exp":
        return a.args[0]
    if sign(a) != 1:
        raise InputValueError("a logarithm of a number that is not positive, or may not be")
    return _tree("log", a)


def tanh(a: Real) -> Real:
    """The hyperbolic tangent."""
    return Fraction(0) if a == 0 else _tree("tanh", a)


def constant(name: str) -> Real:
    """``pi`` or ``e``."""
    return Tree("pi", (), 0) if name == "pi" else exp(Fraction(1))


def absolute(a: Real) -> Real:
    """The absolute value."""
    if isinstance(a, Fraction):
        return abs(a)
    s = sign(a)
    return a if s == 1 else negative(a) if s == -1 else _tree("abs", a)


def softmax(scores: list[Real]) -> list[Real]:
    """The weights of scores; an interval enters each weight in one direction only, so bounds of weights are the best there are.

    >>> softmax([Fraction(2), Fraction(2)])
    [Fraction(1, 2), Fraction(1, 2)]
    """
    if any(has_interval(x) for x in scores):
        return [divide(Fraction(1), total([exp(subtract(x, y)) for x in scores])) for y in scores]
    if all(same(x, scores[0]) for x in scores):
        return [Fraction(1, len(scores))] * len(scores)
    top = (
        max((x for x in scores if isinstance(x, Fraction)), default=Fraction(0))
        if isinstance(scores[0], Fraction)
        else Fraction(0)
    )
    if all(isinstance(x, Fraction) for x in scores):
        scores = [subtract(x, top) for x in scores]
    terms = [exp(x) for x in scores]
    whole = total(terms)
    return [divide(t, whole) for t in terms]


def same(a: Real, b: Real) -> bool:
    """Whether two numbers are the same by their form."""
    if a is b:
        return True
    if isinstance(a, Fraction) or isinstance(b, Fraction):
        return a == b
    if a.op != b.op or len(a.args) != len(b.args) or a.depth != b.depth or not a.args:
        return a.op == b.op and (a.op == "pi" or (a.op == "given" and a.given == b.given))
    return a.depth < 12 and all(same(x, y) for x, y in zip(a.args, b.args, strict=True))


def has_interval(a: Real) -> bool:
    """Whether something in a number is an interval."""
    return isinstance(a, Tree) and bool(a.ends or any(has_interval(x) for x in a.args))


def sign(a: Real) -> int | None:
    """1, 0 or -1; None where 1000 bits, or the width of an interval, leave it open."""
    if isinstance(a, Fraction):
        return (a > 0) - (a < 0)
    for bits in (64, 256, 1000):
        x = enclose(a, bits)
        if x > 0 or x < 0:
            return 1 if x > 0 else -1
    return None


def touches_zero(a: Real) -> bool:
    """Whether a number is not shown to differ from 0."""
    return sign(a) in (0, None)


def checked(x: Fraction) -> Fraction:
    """The fraction, if it has not too many digits.

    Raises
    ------
    LimitError
        Beyond 20000 bits.
    """
    if x.numerator.bit_length() > MOST_BITS or x.denominator.bit_length() > MOST_BITS:
        raise LimitError(f"a number of more than {MOST_BITS} bits came up on the way")
    return x


def _tree(op: str, *args: Real) -> Tree:
    depth = 1 + max(a.depth if isinstance(a, Tree) else 0 for a in args)
    if depth > DEEPEST:
        raise LimitError(f"a value is nested more than {DEEPEST} operations deep")
    return Tree(op, args, depth)


def enclose(a: Real, bits: int) -> Any:
    """A ball that contains the number.

    >>> enclose(sqrt(Fraction(2)), 64).str(10)
    '[1.414213562 +/- 3.74e-10]'
    """
    with precision(bits):
        return _enclosed(a, bits)


def _enclosed(a: Real, bits: int) -> Any:
    if isinstance(a, Fraction):
        return ball(a)
    found = a.enclosures.get(bits)
    if found is None:
        if a.ends is not None:
            low, high = map(ball, a.ends)
            found = low.union(high)
        elif a.given is not None:
            found = enclosure_of(a.given, bits)
        else:
            found = _BALLS[a.op](*(_enclosed(x, bits) for x in a.args))
        a.enclosures[bits] = found
    return found


def _ball_sum(*xs: Any) -> Any:
    out = xs[0]
    for x in xs[1:]:
        out = out + x
    return out


_BALLS: dict[str, Any] = {
    "add": _ball_sum,
    "neg": lambda x: -x,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "pow": lambda x, n: x ** int(n.unique_fmpz()),
    "sqrt": lambda x: x.sqrt(),
    "exp": lambda x: x.exp(),
    "log": lambda x: x.log(),
    "tanh": lambda x: x.tanh(),
    "abs": abs,
    "pi": flint.arb.pi,
}

_SYMPY: dict[str, Any] = {
    "add": lambda *xs: sp.Add(*xs),
    "neg": lambda x: -x,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "pow": lambda x, n: x**n,
    "sqrt": lambda x: sp.sqrt(x),
    "exp": lambda x: sp.exp(x),
    "log": lambda x: sp.log(x),
    "tanh": lambda x: sp.tanh(x),
    "abs": lambda x: sp.Abs(x),
    "pi": lambda: sp.pi,
}


def to_sympy(a: Real, known: dict[int, Any] | None = None) -> Any:
    """The number as a SymPy number, built operation by operation; a fraction stays one.

    >>> to_sympy(divide(Fraction(10), sqrt(Fraction(3))))
    10*sqrt(3)/3
    """
    if isinstance(a, Fraction):
        return sp.Rational(a.numerator, a.denominator)
    if a.given is not None:
        return a.given
    known = {} if known is None else known
    if id(a) not in known:
        known[id(a)] = _SYMPY[a.op](*(to_sympy(x, known) for x in a.args))
    return known[id(a)]


def bounds(a: Real, bits: int = 128) -> tuple[Fraction, Fraction] | None:
    """Fractions below and above the number, or below and above all values of its intervals; None where nothing is known."""
    if isinstance(a, Fraction):
        return a, a
    x = enclose(a, bits)
    if not is_finite(x):
        return None
    mid, rad = parts(x)
    if isinstance(mid, float) or isinstance(rad, float):
        return None
    return Fraction(mid - rad), Fraction(mid + rad)
