"""Numbers that are known up to names: a rational times a product of powers of named numbers, of which only the names are known.

``exp(x)`` is a name that depends on ``x`` alone, so equal arguments give equal numbers; a sum of different names is a name of its
own, made of its terms without their common factor. So ``E/l`` summed is 1 where ``l`` is the sum of ``E``, a row of equal scores
has rational weights, and ``x - x`` is 0 whatever ``x`` is. Two numbers that are equal here are equal; two that differ here may be
equal all the same, and nothing follows from it. Division is by what is certainly positive or rational only; everything else is
:data:`UNKNOWN`. As a number type for the evaluator of programs it knows nothing of attention.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

__all__ = ["UNKNOWN", "Known", "Name", "known", "total"]


class Name:
    """A real number of which a name is known: what kind of number, of what, and whether it is certainly positive."""

    __slots__ = ("_hash", "kind", "of", "positive")

    def __init__(self, kind: str, of: Any, positive: bool = False) -> None:
        self.kind, self.of, self.positive = kind, of, positive
        self._hash = hash((kind, of))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Name) and (self._hash, self.kind) == (other._hash, other.kind) and self.of == other.of


Factors = frozenset[tuple[Name, int]]
NONE: Factors = frozenset()


class Known:
    """A rational times powers of names.

    >>> x = Known(2, frozenset({(Name("exp", 1, True), 1)}))
    >>> (x / x).rational, (x - x).rational, (x * 3 + x).coefficient, x.rational
    (Fraction(1, 1), Fraction(0, 1), Fraction(8, 1), None)
    """

    __slots__ = ("coefficient", "factors")

    def __init__(self, coefficient: Fraction | int, factors: Factors = NONE) -> None:
        self.coefficient = Fraction(coefficient)
        self.factors = factors if self.coefficient else NONE

    @property
    def rational(self) -> Fraction | None:
        """The number where it is rational for certain."""
        return None if self.factors else self.coefficient

    @property
    def positive(self) -> bool:
        """Whether it is certainly positive."""
        return self.coefficient > 0 and all(n.positive for n, _ in self.factors)

    def __hash__(self) -> int:
        return hash((self.coefficient, self.factors))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Known) and self.coefficient == other.coefficient and self.factors == other.factors

    def __neg__(self) -> Known:
        return Known(-self.coefficient, self.factors)

    def __add__(self, other: Any) -> Any:
        return other if other is UNKNOWN else total((self, known(other)))

    def __sub__(self, other: Any) -> Any:
        return other if other is UNKNOWN else total((self, -known(other)))

    def __mul__(self, other: Any) -> Any:
        if other is UNKNOWN:
            return other
        y = known(other)
        return Known(self.coefficient * y.coefficient, _times(self.factors, y.factors))

    def __truediv__(self, other: Any) -> Any:
        y = known(other) if other is not UNKNOWN else other
        if y is UNKNOWN or not (y.coefficient and all(n.positive for n, _ in y.factors)):
            return UNKNOWN
        return Known(self.coefficient / y.coefficient, _times(self.factors, frozenset((n, -k) for n, k in y.factors)))

    def __pow__(self, k: int) -> Any:
        if k < 0:
            return Known(1) / self**-k
        return Known(self.coefficient**k, frozenset((n, p * k) for n, p in self.factors if k))

    def __radd__(self, other: Any) -> Any:
        return known(other) + self

    def __rsub__(self, other: Any) -> Any:
        return known(other) - self

    def __rmul__(self, other: Any) -> Any:
        return known(other) * self


class _Unknown:
    """A number of which nothing is known, NaN and the infinities among them; whatever it meets is unknown."""

    def _same(self, *_: Any) -> _Unknown:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __pow__ = __neg__ = __abs__ = _same

    def __repr__(self) -> str:
        return "unknown"


UNKNOWN: Any = _Unknown()


def known(x: Any) -> Known:
    """A rational as one of these numbers."""
    return x if isinstance(x, Known) else Known(x)


def _times(a: Factors, b: Factors) -> Factors:
    if not a or not b:
        return a or b
    powers = dict(a)
    for n, k in b:
        powers[n] = powers.get(n, 0) + k
    return frozenset((n, k) for n, k in powers.items() if k)


def total(values: Iterable[Any]) -> Any:
    """The sum: like terms are put together, and what stays is a name times the common factor.

    >>> a, b = (Known(1, frozenset({(Name("exp", k, True), 1)})) for k in (1, 2))
    >>> l = total([a, b])
    >>> total([a / l, b / l]).rational, total([a * 3, b * 3]) == l * 3
    (Fraction(1, 1), True)
    """
    terms: dict[Factors, Fraction] = {}
    for v in values:
        if v is UNKNOWN:
            return v
        if v.coefficient:
            terms[v.factors] = terms.get(v.factors, Fraction(0)) + v.coefficient
    terms = {f: c for f, c in terms.items() if c}
    if len(terms) < 2:
        return next((Known(c, f) for f, c in terms.items()), Known(0))
    common = _common(terms)
    if common:
        below = frozenset((n, -k) for n, k in common)
        terms = {_times(f, below): c for f, c in terms.items()}
    lead = terms[min(terms, key=hash)]
    scaled = frozenset((f, c / lead) for f, c in terms.items())
    positive = all(c > 0 and all(n.positive for n, _ in f) for f, c in scaled)
    return Known(lead, _times(frozenset({(Name("sum", scaled, positive), 1)}), common))


def _common(terms: Iterable[Factors]) -> Factors:
    """The powers of names that are in every term; a name that one lacks is there to the power 0."""
    least: dict[Name, int] = {}
    seen: dict[Name, int] = {}
    count = 0
    for f in terms:
        count += 1
        for n, k in f:
            least[n] = min(least.get(n, k), k)
            seen[n] = seen.get(n, 0) + 1
    powers = {n: k if seen[n] == count else min(k, 0) for n, k in least.items()}
    return frozenset((n, k) for n, k in powers.items() if k)
