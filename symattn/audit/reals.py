"""Operations on exact real numbers: rational arithmetic is done at once, what is irrational becomes a tree.

Equal parts cancel where their form shows it, and roots, exponentials and logarithms of what they undo are undone. Sizes, depths
and exponents are bounded.
"""

from __future__ import annotations

import math
from fractions import Fraction

import flint

from symattn.audit.trees import INFINITY, MOST_BITS, Real, Tree, checked, enclose, infinite, same, sign, touches_zero, tree
from symattn.errors import InputValueError, LimitError

LARGEST_POWER = 2000
LARGEST_EXPONENT = 10**6
"""Of what ``exp`` is taken, in absolute value."""


def add(a: Real, b: Real) -> Real:
    """The sum."""
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return checked(a + b)
    if a == 0 or b == 0:
        return b if a == 0 else a
    return _infinite_sum([a, b]) or tree("add", a, b)


def _infinite_sum(terms: list[Real]) -> Real | None:
    """The infinity that a sum is; None where all terms are finite."""
    signs = {infinite(t) for t in terms} - {0}
    if len(signs) > 1:
        raise InputValueError("an infinity less an infinity has no value")
    return (INFINITY if 1 in signs else negative(INFINITY)) if signs else None


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
    if found := _infinite_sum(rest):
        return found
    if rational or not rest:
        rest.append(rational)
    return rest[0] if len(rest) == 1 else tree("add", *rest)


def negative(a: Real) -> Real:
    """The number with the other sign."""
    if isinstance(a, Fraction):
        return -a
    return a.args[0] if a.op == "neg" else tree("neg", a)


def subtract(a: Real, b: Real) -> Real:
    """The difference; 0 where both are the same tree, be it of an interval."""
    return Fraction(0) if same(a, b) else add(a, negative(b))


def multiply(a: Real, b: Real) -> Real:
    """The product."""
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return checked(a * b)
    if infinite(a) or infinite(b):
        s = (sign(a) or 0) * (sign(b) or 0)
        if not s:
            raise InputValueError("an infinity times zero has no value")
        return INFINITY if s > 0 else negative(INFINITY)
    if a == 0 or b == 0:
        return Fraction(0)
    if a == 1 or b == 1:
        return b if a == 1 else a
    if isinstance(a, Tree) and a.op == "sqrt" and same(a, b):
        return a.args[0]
    return tree("mul", a, b)


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
    if infinite(b) and not infinite(a):
        return Fraction(0)
    if infinite(a) and not infinite(b) and not touches_zero(b):
        return multiply(a, Fraction(sign(b) or 0))
    if same(a, b) and not touches_zero(b) and not infinite(a):
        return Fraction(1)
    if touches_zero(b):
        raise InputValueError("a division by a number that may be zero")
    return tree("div", a, b)


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
        return a.args[0] if a.op == "sqrt" and n == 2 else tree("pow", a, b)
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
    return tree("sqrt", a)


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
    elif infinite(a) < 0:
        return Fraction(0)
    elif not abs(enclose(a, 64)) < LARGEST_EXPONENT:
        raise LimitError(f"an exponential of a number beyond {LARGEST_EXPONENT} is not computed")
    return tree("exp", a)


def log(a: Real) -> Real:
    """The natural logarithm of a positive number."""
    if a == 1:
        return Fraction(0)
    if isinstance(a, Tree) and a.op == "exp":
        return a.args[0]
    if sign(a) != 1:
        raise InputValueError("a logarithm of a number that is not positive, or may not be")
    return tree("log", a)


def tanh(a: Real) -> Real:
    """The hyperbolic tangent."""
    return Fraction(0) if a == 0 else tree("tanh", a)


def sin(a: Real) -> Real:
    """The sine of an angle in radians."""
    return Fraction(0) if a == 0 else tree("sin", a)


def cos(a: Real) -> Real:
    """The cosine of an angle in radians."""
    return Fraction(1) if a == 0 else tree("cos", a)


def constant(name: str) -> Real:
    """``pi`` or ``e``."""
    return Tree("pi", (), 0) if name == "pi" else exp(Fraction(1))


def absolute(a: Real) -> Real:
    """The absolute value."""
    if isinstance(a, Fraction):
        return abs(a)
    s = sign(a)
    return a if s == 1 else negative(a) if s == -1 else tree("abs", a)


def softmax(scores: list[Real]) -> list[Real]:
    """The weights of scores; an interval enters each weight in one direction only, so bounds of weights are the best there are.

    >>> softmax([Fraction(2), Fraction(2)])
    [Fraction(1, 2), Fraction(1, 2)]
    """
    if any(map(infinite, scores)):
        return _masked_softmax(scores)
    if any(isinstance(x, Tree) and x.wide for x in scores):
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


def _masked_softmax(scores: list[Real]) -> list[Real]:
    """Weights where a mask put minus infinity: 0 there."""
    if any(infinite(x) > 0 for x in scores) or all(map(infinite, scores)):
        raise InputValueError("a softmax of infinities only, or of plus infinity, has no value")
    kept = iter(softmax([x for x in scores if not infinite(x)]))
    return [Fraction(0) if infinite(x) else next(kept) for x in scores]
