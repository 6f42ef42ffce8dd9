"""Exact real numbers as trees that share their parts: what they are, their enclosures, their order, their form in SymPy.

A number is a ``Fraction`` or a :class:`Tree`: an operation on such numbers. It is enclosed by balls of any precision and
handed to SymPy, operation by operation, where a verdict is asked for. A leaf may also be an interval, a number that a page
printed rounded. The operations are in :mod:`symattn.audit.reals`.
"""

from __future__ import annotations

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
    wide: bool = False
    """Whether an interval is among its parts."""
    enclosures: dict[int, Any] = field(default_factory=dict, repr=False)


Real: TypeAlias = Fraction | Tree
INFINITY = Tree("inf", (), 0)


def infinite(a: Real) -> int:
    """1 or -1 for plus or minus infinity, which masks are made of; 0 for any number."""
    if isinstance(a, Fraction):
        return 0
    return 1 if a.op == "inf" else -1 if a.op == "neg" and a.args[0] is INFINITY else 0


def interval(low: Fraction, high: Fraction) -> Real:
    """A number of which two bounds are known."""
    return low if low == high else Tree("interval", (), 0, (low, high), wide=True)


def from_value(x: Any) -> Real:
    """A number that is given: an int, a Fraction or a SymPy number.

    >>> from_value(sp.Rational(1, 3)), from_value(sp.sqrt(2)).op
    (Fraction(1, 3), 'given')
    """
    r = rational_of(x)
    return checked(r) if r is not None else Tree("given", (), 0, given=x)


def tree(op: str, *args: Real) -> Tree:
    """An operation on numbers.

    Raises
    ------
    LimitError
        When it would be nested more than 80 deep.
    InputValueError
        When it is of an infinity.
    """
    if op != "neg" and any(infinite(a) for a in args):
        raise InputValueError("an infinity is no number that can be computed with here")
    depth = 1 + max(a.depth if isinstance(a, Tree) else 0 for a in args)
    if depth > DEEPEST:
        raise LimitError(f"a value is nested more than {DEEPEST} operations deep")
    return Tree(op, args, depth, wide=any(isinstance(a, Tree) and a.wide for a in args))


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


def same(a: Real, b: Real) -> bool:
    """Whether two numbers are the same by their form."""
    if a is b:
        return True
    if isinstance(a, Fraction) or isinstance(b, Fraction):
        return a == b
    if a.op != b.op or len(a.args) != len(b.args) or a.depth != b.depth or not a.args:
        return a.op == b.op and (a.op in ("pi", "inf") or (a.op == "given" and a.given == b.given))
    return a.depth < 12 and all(same(x, y) for x, y in zip(a.args, b.args, strict=True))


def sign(a: Real) -> int | None:
    """1, 0 or -1; None where 1000 bits, or the width of an interval, leave it open."""
    if isinstance(a, Fraction):
        return (a > 0) - (a < 0)
    if infinite(a):
        return infinite(a)
    for bits in (64, 256, 1000):
        x = enclose(a, bits)
        if x > 0 or x < 0:
            return 1 if x > 0 else -1
    return None


def touches_zero(a: Real) -> bool:
    """Whether a number is not shown to differ from 0."""
    return sign(a) in (0, None)


def enclose(a: Real, bits: int) -> Any:
    """A ball that contains the number.

    >>> enclose(tree("sqrt", Fraction(2)), 64).str(10)
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
    "sin": lambda x: x.sin(),
    "cos": lambda x: x.cos(),
    "abs": abs,
    "pi": flint.arb.pi,
    "inf": flint.arb.pos_inf,
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
    "sin": lambda x: sp.sin(x),
    "cos": lambda x: sp.cos(x),
    "abs": lambda x: sp.Abs(x),
    "pi": lambda: sp.pi,
    "inf": lambda: sp.oo,
}


def to_sympy(a: Real, known: dict[int, Any] | None = None) -> Any:
    """The number as a SymPy number, built operation by operation; a fraction stays one.

    >>> to_sympy(tree("div", Fraction(10), tree("sqrt", Fraction(3))))
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
