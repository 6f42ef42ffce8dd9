"""A number as it is printed, what it claims, and whether an exact value bears it out.

What is printed says how far it goes: ``10`` claims an integer exactly, ``0.1908`` the value to half a unit of its last place,
``2.`` (as arrays are printed) to half of 10^-8, a number after ``≈`` half a unit of its last place even where it is an integer,
``1/3`` that fraction, ``0.333…`` the digits before the dots. The verdicts and their order are those of :data:`STATUSES`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

import sympy as sp

from symattn.audit.exactness import Value, approximate, decimal, order
from symattn.errors import InputValueError, UndecidedError

EXACT: Final = "exact"
ROUNDED: Final = "rounded"
NOISE: Final = "float32_noise"
TRUNCATED: Final = "truncated"
LAST_DIGIT: Final = "last_digit"
WITHIN: Final = "within_input_rounding"
WRONG: Final = "wrong"
UNDECIDED: Final = "undecided"

STATUSES: Final = {
    EXACT: "the printed value is the exact value",
    ROUNDED: "within half a unit of the last printed place",
    NOISE: "7 to 9 significant digits of a binary32 number, within 8 of its units in the last place",
    TRUNCATED: "cut toward zero instead of rounded",
    LAST_DIGIT: "off by at most 1.5 units of the last printed place",
    WITHIN: "not decidable: the inputs were printed rounded, and some numbers that round to them bear it out",
    WRONG: "off by more",
    UNDECIDED: "4096 bits do not tell the value from the end of an interval",
}
"""What can be said of a printed number, in the order in which it is tried. A bare integer that differs is wrong at once."""

ARRAY_UNIT = Fraction(1, 10**8)
MAX_TEXT, MAX_EXPONENT = 400, 400

_DASHES = str.maketrans(
    {"−": "-", "–": "-", "—": "-", "‐": "-", "\u2011": "-", "＋": "+", "\u00a0": " ", "\u2009": " ", "\u202f": " "}
)
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_APPROXIMATE = re.compile(r"(?:≈|≃|≅|~|∼|\\approx\b|\\simeq\b|\\sim\b)\s*")
_TIMES_TEN = r"(?:\s*(?:×|·|\*|\\times|\\cdot)\s*10\s*(?:\^|\*\*)?\s*\{?\s*(?P<power>[+-]?\d+|[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺]+)\s*\}?)"
_NUMBER = re.compile(
    rf"(?P<sign>[+-]?)\s*(?P<whole>\d{{1,3}}(?:,\d{{3}})+(?!\d)|\d*)(?P<point>\.?)(?P<places>\d*)"
    rf"(?:[eE](?P<exponent>[+-]?\d+)|{_TIMES_TEN})?\s*(?P<dots>…|\.\.\.|\\ldots|\\dots)?\s*(?P<percent>\\?%)?\Z"
)
_FRACTION = re.compile(r"(?P<sign>[+-]?)\s*(?:\\[dt]?frac\{\s*(\d+)\s*\}\{\s*(\d+)\s*\}|(\d+)\s*[/⁄]\s*(\d+))\Z")
_INFINITE = re.compile(r"(?P<sign>[+-]?)\s*(?:inf|infinity|oo|∞|\\infty)\Z", re.IGNORECASE)


@dataclass(frozen=True)
class Printed:
    r"""A number as printed: the value that its digits have, and the interval that they claim.

    Parameters
    ----------
    text
        ``"10"``, ``"0.1908"``, ``"-1.5e-3"``, ``"6.03 × 10⁻⁶"``, ``"2."``, ``"≈ 0.19"``, ``"1/3"``, ``"0.333…"``, ``"42%"``,
        ``"1,024"``, ``"-inf"``; the minus may be any of Unicode's, and LaTeX's ``\times``, ``\approx``, ``\frac`` are read.

    Raises
    ------
    InputValueError
        When the text is no number of these forms.

    >>> p = Printed("0.1908")
    >>> p.value, p.kind, p.decimals, p.digits, p.unit
    (Fraction(477, 2500), 'decimal', 4, 4, Fraction(1, 10000))
    >>> Printed("10").kind, Printed("2.").kind, Printed("≈ 27").kind, Printed("1/3").kind
    ('integer', 'array', 'approximate', 'fraction')
    >>> [float(end) for end in Printed("6.3e-2").interval()]
    [0.0625, 0.0635]
    """

    text: str
    value: Fraction = field(init=False)
    kind: str = field(init=False)
    """``integer``, ``decimal``, ``approximate``, ``array``, ``fraction``, ``continued`` (dots after it) or ``infinity``."""
    decimals: int = field(init=False)
    """Places after the point of the last printed digit; negative where an exponent puts it before the point."""
    digits: int = field(init=False)
    """Significant digits: without zeros in front, with zeros at the end."""
    unit: Fraction = field(init=False)
    """Of the last printed place; of an array print with a bare point 10^-8."""

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise InputValueError(f"a printed number is text, got {self.text!r}; write it in quotes, as it is printed")
        if len(self.text) > MAX_TEXT:
            raise InputValueError(f"a printed number of {len(self.text)} characters is too long; {MAX_TEXT} are allowed")
        for name, x in _read(self.text).items():
            object.__setattr__(self, name, x)

    def interval(self) -> tuple[Fraction, Fraction]:
        """The values that the digits stand for, ends included: one value for an integer or a fraction.

        >>> Printed("10").interval()
        (Fraction(10, 1), Fraction(10, 1))
        """
        if self.kind in ("integer", "fraction", "infinity"):
            return self.value, self.value
        half = self.unit / 2
        low, high = self.value - half, self.value + half
        if self.kind == "continued":
            return (low, self.value + self.unit) if self.value >= 0 else (self.value - self.unit, high)
        return low, high

    @property
    def half_width(self) -> Fraction:
        """How far a value may be from the printed one, on the wider side."""
        low, high = self.interval()
        return max(high - self.value, self.value - low)

    def __str__(self) -> str:
        return self.text.strip()


def _read(text: str) -> dict[str, Any]:
    s = text.translate(_DASHES).strip().strip("$").strip()
    about = _APPROXIMATE.match(s)
    s = s[about.end() :] if about else s
    if m := _INFINITE.match(s):
        value = Fraction(-1 if m["sign"] == "-" else 1)
        return {"value": value, "kind": "infinity", "decimals": 0, "digits": 0, "unit": Fraction(1)}
    if m := _FRACTION.match(s):
        above, below = int(m[2] or m[4]), int(m[3] or m[5])
        if not below:
            raise InputValueError(f"{text!r} divides by zero")
        value = Fraction(-above if m["sign"] == "-" else above, below)
        return {"value": value, "kind": "fraction", "decimals": 0, "digits": 0, "unit": Fraction(1)}
    m = _NUMBER.match(s)
    if m is None or not (m["whole"] or m["places"]):
        raise InputValueError(
            f"{text!r} is no printed number: '10', '0.19', '2.', '1.5e-3', '≈ 0.2', '1/3', '0.33…', '42%', '-inf' are"
        )
    return _decimal_number(text, m, bool(about))


def _decimal_number(text: str, m: re.Match[str], about: bool) -> dict[str, Any]:
    whole, places = m["whole"].replace(",", ""), m["places"]
    power = (m["exponent"] or m["power"] or "0").translate(_RAISED)
    if len(power) > 6 or abs(int(power)) > MAX_EXPONENT:
        raise InputValueError(f"{text!r} has an exponent beyond {MAX_EXPONENT}")
    shift = int(power) - (2 if m["percent"] else 0)
    decimals = len(places) - shift
    value = int(whole + places) * Fraction(10) ** -decimals
    bare = not (m["point"] or m["exponent"] or m["power"] or m["percent"])
    array = bool(m["point"]) and not places and not m["exponent"] and not m["power"]
    kind = "continued" if m["dots"] else "approximate" if about else "integer" if bare else "array" if array else "decimal"
    return {
        "value": -value if m["sign"] == "-" else value,
        "kind": kind,
        "decimals": decimals,
        "digits": len((whole + places).lstrip("0")),
        "unit": ARRAY_UNIT if kind == "array" else Fraction(10) ** -decimals,
    }


@dataclass(frozen=True)
class Verdict:
    """What an exact value says of a printed number.

    Parameters
    ----------
    printed
        The number.
    status
        One of :data:`STATUSES`.
    value
        The exact value: ``Fraction`` or SymPy number.
    exact
        It to as many digits as were asked for; ``undecided`` where it may be 0 and nothing shows whether it is.
    error
        The distance between them in units of the last printed place: exact where the value is rational, to many digits otherwise;
        None where one of them is infinite.
    allowed
        Whether some value in ``spread`` (the exact value alone, without one) is what the digits claim.
    """

    printed: Printed
    status: str
    value: Value
    exact: str
    error: Fraction | None
    allowed: bool

    @property
    def correct(self) -> bool:
        """Whether the number is what a correct page prints."""
        return self.status in (EXACT, ROUNDED)

    @property
    def wrong(self) -> bool:
        """Whether nothing excuses the number."""
        return self.status == WRONG


def verdict(
    printed: Printed | str, value: Value, *, spread: tuple[Fraction, Fraction] | None = None, digits: int = 40
) -> Verdict:
    """Judge a printed number by the exact value.

    Parameters
    ----------
    printed
        The number, or its text.
    value
        ``int``, ``Fraction`` or a SymPy number; with ``spread`` the value at the printed inputs.
    spread
        An interval that contains the exact values for all inputs that round to the printed ones.
    digits
        Significant digits of the exact value in the answer.

    Raises
    ------
    InputValueError
        When the text is no number, or the value is none that is exact.

    >>> import sympy as sp
    >>> weight = 1 / (1 + sp.exp(sp.Rational(-1)))
    >>> v = verdict("0.731", weight)
    >>> v.status, v.exact[:12], round(float(v.error), 4)
    ('rounded', '0.7310585786', 0.0586)
    >>> [verdict(p, weight).status for p in ("0.7310", "0.73105858", "0.7", "0.732", "0.74", "1")]
    ['truncated', 'rounded', 'rounded', 'last_digit', 'last_digit', 'wrong']
    >>> verdict("0.1908", Fraction(19055, 100000), spread=(Fraction(19, 100), Fraction(191, 1000))).status
    'within_input_rounding'
    """
    p = Printed(printed) if isinstance(printed, str) else printed
    try:
        text = decimal(value, digits)
    except UndecidedError:
        text = UNDECIDED
    if p.kind == "infinity" or value in (sp.oo, -sp.oo):
        same = p.kind == "infinity" and value == (sp.oo if p.value > 0 else -sp.oo)
        return Verdict(p, EXACT if same else WRONG, value, text, None, same)
    error = abs(approximate(value) - p.value) / p.unit
    low, high = p.interval()
    try:
        status = _status(p, value)
        fits = order(value, low) >= 0 and order(value, high) <= 0
    except UndecidedError:
        return Verdict(p, UNDECIDED, value, text, error, True)
    allowed = fits or (spread is not None and spread[0] <= high and spread[1] >= low)
    if status == WRONG and allowed:
        status = WITHIN
    return Verdict(p, status, value, text, error, allowed)


def _status(p: Printed, value: Value) -> str:
    """The first status that holds; the order is part of what they mean."""
    if order(value, p.value) == 0:
        return EXACT
    if p.kind in ("integer", "fraction"):
        return WRONG
    low, high = p.interval()
    if order(value, low) >= 0 and order(value, high) <= 0:
        return ROUNDED
    return next((status for status, holds in _EXCUSES.items() if holds(p, value)), WRONG)


def _noise(p: Printed, value: Value) -> bool:
    return 7 <= p.digits <= 9 and _within(p, value, 8 * binary32_ulp(value))


def _truncated(p: Printed, value: Value) -> bool:
    """Whether the digits are those of the value, the rest cut off; a negative zero is no other zero."""
    side = order(value, 0)
    if p.value and (p.value > 0) != (side > 0):
        return False
    return order(value, p.value) == side and order(value, p.value + side * p.unit) == -side


def _within(p: Printed, value: Value, reach: Fraction) -> bool:
    return order(value, p.value - reach) >= 0 and order(value, p.value + reach) <= 0


_EXCUSES: dict[str, Callable[[Printed, Value], bool]] = {
    NOISE: _noise,
    TRUNCATED: _truncated,
    LAST_DIGIT: lambda p, value: _within(p, value, p.unit * Fraction(3, 2)),
}


def binary32_ulp(value: Value) -> Fraction:
    """The unit in the last place of binary32 at a value: 2^(e - 23) where its size is from 2^e to 2^(e + 1), at least 2^-149.

    >>> binary32_ulp(1) == Fraction(1, 2**23), binary32_ulp(Fraction(-3, 8)) == Fraction(1, 2**25)
    (True, True)
    """
    if order(value, 0) == 0:
        return Fraction(1, 2**149)
    size, near = abs(value), abs(approximate(value))
    e = near.numerator.bit_length() - near.denominator.bit_length()
    while order(size, Fraction(2) ** e) < 0:
        e -= 1
    while order(size, Fraction(2) ** (e + 1)) >= 0:
        e += 1
    return Fraction(2) ** max(e - 23, -149)


def label(start: Verdict, chained: Verdict | None = None) -> str:
    """The verdict in words: what follows from the printed intermediates only is said as that.

    >>> label(verdict("7.0000", Fraction(66831, 10000)), verdict("7.0000", 7))
    'follows from printed inputs only'
    """
    if not start.correct and chained is not None and chained.correct:
        return "follows from printed inputs only"
    if start.wrong and chained is not None and chained.allowed:
        return "wrong, but printed inputs allow it to their rounding"
    return {WITHIN: "not decidable", NOISE: "float32 noise", LAST_DIGIT: "last digit"}.get(start.status, start.status)
