"""Numbers that are known up to names: a rational times a product of powers of named numbers, of which only the names are known.

``exp(x)`` is a name that depends on ``x`` alone, so equal arguments give equal numbers; a sum of different names is a name of its
own, made of its terms without their common factor. So ``E/l`` summed is 1 where ``l`` is the sum of ``E``, a row of equal scores
has rational weights, and ``x - x`` is 0 whatever ``x`` is. Two numbers that are equal here are equal; two that differ here may be
equal all the same, and nothing follows from it. Division is by what is certainly positive or rational only; everything else is
:data:`UNKNOWN`. As a number type for the evaluator of programs it knows nothing of attention.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from symattn.numbers import Exact
from symattn.readings.code import Namespace, constant
from symattn.readings.tables import LOGIC, Decision, NumberTable, Objects, piecewise_of, product_by_rows

__all__ = ["TABLE", "UNKNOWN", "Known", "Name"]


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
        return other if other is UNKNOWN else total((self, _known(other)))

    def __sub__(self, other: Any) -> Any:
        return other if other is UNKNOWN else total((self, -_known(other)))

    def __mul__(self, other: Any) -> Any:
        if other is UNKNOWN:
            return other
        y = _known(other)
        return Known(self.coefficient * y.coefficient, _times(self.factors, y.factors))

    def __truediv__(self, other: Any) -> Any:
        y = _known(other) if other is not UNKNOWN else other
        if y is UNKNOWN or not (y.coefficient and all(n.positive for n, _ in y.factors)):
            return UNKNOWN
        return Known(self.coefficient / y.coefficient, _times(self.factors, frozenset((n, -k) for n, k in y.factors)))

    def __pow__(self, k: int) -> Any:
        if k < 0:
            return Known(1) / self**-k
        return Known(self.coefficient**k, frozenset((n, p * k) for n, p in self.factors if k))

    def __radd__(self, other: Any) -> Any:
        return _known(other) + self

    def __rsub__(self, other: Any) -> Any:
        return _known(other) - self

    def __rmul__(self, other: Any) -> Any:
        return _known(other) * self


class _Unknown:
    """A number of which nothing is known, NaN and the infinities among them; whatever it meets is unknown."""

    def _same(self, *_: Any) -> _Unknown:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __pow__ = __neg__ = __abs__ = _same

    def __repr__(self) -> str:
        return "unknown"


UNKNOWN: Any = _Unknown()


def _known(x: Any) -> Known:
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


def _product(values: Sequence[Any]) -> Any:
    out = values[0]
    for v in values[1:]:
        out = out * v
    return out


def _number(x: Exact) -> Any:
    if isinstance(x, (int, Fraction)):
        return Known(x)
    return UNKNOWN if isinstance(x, float) else constant(x, NAMESPACE)


def _function(kind: str, at_zero: int | None = None, positive: bool = False) -> Callable[[Any], Any]:
    """A function whose values are named by their argument; rational at 0, where it is."""

    def f(x: Any) -> Any:
        if x is UNKNOWN:
            return x
        y = _known(x)
        if at_zero is not None and not y.coefficient:
            return Known(at_zero)
        return Known(1, frozenset({(Name(kind, y, positive), 1)}))

    f.__name__ = kind
    return f


def _sigmoid(x: Any) -> Any:
    return x if x is UNKNOWN else Known(Fraction(1, 2)) if not _known(x).coefficient else _of("sigmoid", x, True)


def _of(kind: str, x: Any, positive: bool = False) -> Known:
    return Known(1, frozenset({(Name(kind, _known(x), positive), 1)}))


def _log(x: Any) -> Any:
    if x is UNKNOWN or not _known(x).positive:
        return UNKNOWN
    return Known(0) if _known(x) == Known(1) else _of("log", x)


def _sqrt(x: Any) -> Any:
    if x is UNKNOWN:
        return x
    y = _known(x)
    if not y.coefficient:
        return y
    if not y.positive:
        return UNKNOWN
    if not y.factors:
        top, below = (math.isqrt(v) for v in (y.coefficient.numerator, y.coefficient.denominator))
        if Fraction(top, below) ** 2 == y.coefficient:
            return Known(Fraction(top, below))
    return _of("sqrt", y, True)


def _power(a: Any, b: Any) -> Any:
    if a is UNKNOWN or b is UNKNOWN:
        return UNKNOWN
    base, k = _known(a), _known(b).rational
    if k is not None and k.denominator == 1 and abs(k) <= 64:
        return base ** int(k)
    return Known(1, frozenset({(Name("power", (base, _known(b)), True), 1)})) if base.positive else UNKNOWN


def _order(a: Any, b: Any) -> int | None:
    """-1, 0 or 1 where it is known how two numbers compare."""
    if a is UNKNOWN or b is UNKNOWN:
        return None
    x, y = _known(a), _known(b)
    if x == y:
        return 0
    d = total((x, -y))
    return 1 if d.positive else -1 if (-d).positive else None


def _largest(values: Sequence[Any]) -> Any:
    """The largest; where that is not known, the name of the largest of these."""
    out = values[0]
    for v in values[1:]:
        way = _order(v, out)
        if way is None:
            if any(x is UNKNOWN for x in values):
                return UNKNOWN
            return Known(1, frozenset({(Name("max", frozenset(map(_known, values))), 1)}))
        out = v if way > 0 else out
    return out


def _absolute(x: Any) -> Any:
    way = _order(x, 0)
    return UNKNOWN if way is None else x if way >= 0 else -x


def _sign(x: Any) -> Any:
    way = _order(x, 0)
    return UNKNOWN if way is None else Known(way)


def _step(x: Any, at_zero: Any) -> Any:
    way = _order(x, 0)
    return UNKNOWN if way is None else at_zero if way == 0 else Known(int(way > 0))


def _rationally(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of rational numbers, unknown elsewhere."""

    def g(*args: Any) -> Any:
        found = [None if x is UNKNOWN else _known(x).rational for x in args]
        return UNKNOWN if any(x is None for x in found) else f(*found)

    return g


def _test(accepts: Callable[[int], bool]) -> Callable[[Any, Any], Decision]:
    def f(a: Any, b: Any) -> Decision:
        way = _order(a, b)
        return None if way is None else accepts(way)

    return f


def _matmul(a: Objects, b: Objects) -> Objects:
    """Row times column; rational matrices as integers over one denominator."""
    left, right = _integers(a), _integers(b)
    if left is not None and right is not None:
        (x, p), (y, q) = left, right
        product = np.dot(x, y)
        out = np.empty(product.shape, dtype=object)
        out.ravel()[:] = [Known(Fraction(v, p * q)) for v in product.ravel().tolist()]
        return out
    return _by_rows(a, b)


_by_rows = product_by_rows(lambda row, column: total(x * y for x, y in zip(row, column, strict=True)))


def _integers(a: Objects) -> tuple[Objects, int] | None:
    found = [x.rational if isinstance(x, Known) else None for x in a.ravel().tolist()]
    rational = [x for x in found if x is not None]
    if len(rational) < len(found):
        return None
    below = math.lcm(*{x.denominator for x in rational})
    out = np.empty(len(rational), dtype=object)
    out[:] = [x.numerator * (below // x.denominator) for x in rational]
    return out.reshape(a.shape), below


def _integer(x: Any) -> int | None:
    r = x.rational if isinstance(x, Known) else None
    return int(r) if r is not None and r.denominator == 1 else None


NAMESPACE = Namespace(
    {
        "rational": lambda p, q: Known(Fraction(p, q)),
        "pi": lambda: Known(1, frozenset({(Name("pi", (), True), 1)})),
        "infinity": lambda sign: UNKNOWN,
        "not_a_number": lambda: UNKNOWN,
        "div": lambda a, b: UNKNOWN if a is UNKNOWN else _known(a) / b,
        "power": _power,
        "sqrt": _sqrt,
        "exp": _function("exp", 1, True),
        "log": _log,
        "tanh": _function("tanh", 0),
        "sinh": _function("sinh", 0),
        "cosh": _function("cosh", 1, True),
        "sin": _function("sin", 0),
        "cos": _function("cos", 1),
        "erf": _function("erf", 0),
        "sigmoid": _sigmoid,
        "absolute": _absolute,
        "sign": _sign,
        "step": _step,
        "maximum": lambda *x: _largest(x),
        "minimum": lambda *x: -_largest([-v for v in x]),
        "floor_div": _rationally(lambda a, b: Known(a // b) if b else UNKNOWN),
        "ceiling": _rationally(lambda a: Known(math.ceil(a))),
        "mod": _rationally(lambda a, b: Known(a % b) if b else UNKNOWN),
        "piecewise": piecewise_of(UNKNOWN),
        "less": _test(lambda way: way < 0),
        "less_equal": _test(lambda way: way <= 0),
        "equal": _test(lambda way: way == 0),
        **LOGIC,
    }
)

TABLE = NumberTable(
    namespace=NAMESPACE,
    number=_number,
    add=total,
    multiply=_product,
    largest=_largest,
    matmul=_matmul,
    finite=lambda x: x is not UNKNOWN,
    integer=_integer,
    nan=UNKNOWN,
    negative_infinity=UNKNOWN,
)
"""The number type, for the evaluator of programs."""
