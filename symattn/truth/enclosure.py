"""Enclosures: for every element of a tensor a midpoint and a radius that provably hold the exact value, and how it was found."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from symattn import formats
from symattn.errors import UndecidedError
from symattn.numbers import Exact
from symattn.readings.balls import SCALE
from symattn.truth.neighbours import Rounded, rounded
from symattn.truth.questions import Digits, Nothing, Question
from symattn.truth.values import Balls, Each, Objects, Values, object_array

Array = npt.NDArray[Any]
Status = Literal["exact", "enclosed", "bounded", "tiny", "undecided"]

SHOWN, SHOWN_DIGITS = 4, 5
"""How many values, and digits of each, a printed enclosure shows."""


@dataclass(frozen=True)
class How:
    """How an element is known: its status, the tier that it is from, and what is assumed.

    >>> print(How("bounded", "double", "exp within 4 ulp"))
    bounded by double, assuming exp within 4 ulp
    """

    status: Status
    tier: str = ""
    assumption: str | None = None

    def __str__(self) -> str:
        by = f" by {self.tier}" if self.tier else ""
        return f"{self.status}{by}" + (f", assuming {self.assumption}" if self.assumption else "")


class Enclosure:
    """The values of a tensor, each known to lie in ``[mid - rad, mid + rad]``.

    Made by :func:`symattn.truth.truth`, whose tiers leave float64 arrays, scaled integers or balls in it; fractions are made of
    them when ``mid`` or ``rad`` is read, and kept.

    Parameters
    ----------
    mid
        Object array of ``Fraction``, or the floats ``nan``, ``inf``, ``-inf`` where that is the value.
    rad
        Object array of ``Fraction``; the float ``inf`` where nothing is known.
    status
        Array of text: ``exact`` (radius 0), ``enclosed`` (what was asked is guaranteed), ``bounded`` (it is, under the assumption
        that :meth:`how` names), ``tiny`` (it is not, because the value is 0 or below ``10^(-2 digits)`` of the largest one asked
        for), ``undecided`` (it is not). The enclosure holds in each case.

    >>> one = Enclosure(*(np.array([x], dtype=object) for x in (Fraction(1, 3), Fraction(1, 10**9), "enclosed")))
    >>> one.float(), one.round("bfloat16").astype(float)
    (array([0.33333333]), array([0.33398438]))
    """

    def __init__(self, mid: Array, rad: Array, status: Array) -> None:
        names, codes = np.unique(np.asarray(status, dtype=str), return_inverse=True)
        self._set(Objects(mid, rad), codes.reshape(mid.shape), tuple(How(n) for n in names.tolist()))

    def _set(self, values: Values, codes: Array, known: tuple[How, ...]) -> None:
        self.values, self.codes, self.known = values, np.asarray(codes, dtype=np.uint8), known

    @classmethod
    def of(cls, values: Values, codes: Array, known: tuple[How, ...]) -> Enclosure:
        """An enclosure of what a tier left: ``codes`` says by number which of ``known`` an element is."""
        made = cls.__new__(cls)
        made._set(values, codes, known)
        return made

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tensor."""
        return self.values.shape

    @cached_property
    def _exact(self) -> tuple[Array, Array]:
        mids, rads = self.values.exact()
        return object_array(mids, self.shape), object_array(rads, self.shape)

    @property
    def mid(self) -> Array:
        """The midpoints: object array of ``Fraction``, and of floats where the value is special."""
        return self._exact[0]

    @property
    def rad(self) -> Array:
        """The radii: object array of ``Fraction``, and of the float inf where nothing is known."""
        return self._exact[1]

    @cached_property
    def status(self) -> Array:
        """The status of each element, an array of text."""
        return self._named([k.status for k in self.known])

    @property
    def tier(self) -> Array:
        """The tier that each element is from, an array of text."""
        return self._named([k.tier for k in self.known])

    def _named(self, names: list[str]) -> Array:
        width = max([9, *map(len, names)])
        return np.array(names or [""], dtype=f"<U{width}")[self.codes].reshape(self.shape)

    def how(self, *index: int) -> How:
        """How one element is known.

        >>> Enclosure(*(np.array([x], dtype=object) for x in (Fraction(1), Fraction(0), "exact"))).how(0).status
        'exact'
        """
        return self.known[int(self.codes[index])]

    def counts(self) -> dict[How, int]:
        """How many elements are known in which way, the most frequent first."""
        found = np.bincount(self.codes.ravel(), minlength=len(self.known)).tolist()
        merged: dict[How, int] = {}
        for how, count in zip(self.known, found, strict=True):
            if count:
                merged[how] = merged.get(how, 0) + count
        return dict(sorted(merged.items(), key=lambda item: -item[1]))

    def __repr__(self) -> str:
        """Shape, how many elements have which status, and the first few values: an array of fractions fills the screen.

        >>> Enclosure(*(np.array([x] * 9, dtype=object) for x in (Fraction(1, 3), Fraction(1, 10**9), "enclosed")))
        <Enclosure of shape (9,): 9 enclosed; 0.33333, 0.33333, 0.33333, 0.33333, ...>
        """
        found: dict[str, int] = {}
        for how, count in self.counts().items():
            found[how.status] = found.get(how.status, 0) + count
        states = ", ".join(f"{count} {name}" for name, count in sorted(found.items())) or "empty"
        first = self.values.exact(np.arange(min(SHOWN, self.values.size)))[0]
        values = ", ".join([decimal(x, SHOWN_DIGITS) for x in first] + ["..."] * (self.values.size > SHOWN))
        return f"<Enclosure of shape {self.shape}: {states}{'; ' + values if values else ''}>"

    @property
    def undecided(self) -> npt.NDArray[np.bool_]:
        """Where an element is undecided."""
        return np.array([k.status == "undecided" for k in self.known] or [False])[self.codes].reshape(self.shape)

    @property
    def decided(self) -> bool:
        """Whether no element is undecided."""
        return not bool(self.undecided.any())

    def each(self, f: Each) -> Enclosure:
        """The enclosure with its elements moved: ``f`` takes an array of this shape to one of some of the elements in it."""
        return Enclosure.of(self.values.each(f), f(self.codes), self.known)

    def __getitem__(self, index: Any) -> Enclosure:
        """A part of the tensor, or one element as an enclosure of shape ()."""
        return self.each(lambda array: _sub(array, index))

    def lower(self) -> Array:
        """The lower ends: exact numbers, -inf where nothing is known."""
        return _each(lambda m, r: -math.inf if isinstance(r, float) else m - r, self.mid, self.rad)

    def upper(self) -> Array:
        """The upper ends: exact numbers, inf where nothing is known."""
        return _each(lambda m, r: math.inf if isinstance(r, float) else m + r, self.mid, self.rad)

    def float(self) -> npt.NDArray[np.float64]:
        """The midpoints, each rounded once to float64."""
        return formats.to_array(self.mid, "float64")

    def round(self, format: str | formats.Format) -> Array:
        """The exact values correctly rounded to a float format, to nearest, ties to even.

        Raises
        ------
        UndecidedError
            When both ends of an enclosure do not round to the same number: it holds a midpoint between two floats. Ask
            ``truth(..., decide=format)``, which raises the precision until none does; :meth:`neighbours` gives both numbers.
        """
        found = self._rounded(format)
        if found.open.any():
            at = tuple(int(k) for k in np.argwhere(found.open)[0])
            one = self[at]
            raise UndecidedError(
                f"element {at} is {decimal(one.mid[()], 17)} within {decimal(one.rad[()], 3)}, which holds the midpoint of two "
                f"numbers of {formats.get(format)}: it rounds to {found.low[at]!s} or {found.high[at]!s}; more bits may decide it"
            )
        return _cast(found.low, format)

    def neighbours(self, format: str | formats.Format) -> tuple[Array, Array]:
        """What the lower and the upper end of each enclosure round to, as arrays of the dtype: the same where it is decided.

        >>> tie = Enclosure(*(np.array([x], dtype=object) for x in (1 + Fraction(1, 256), Fraction(1, 10**40), "undecided")))
        >>> [end.astype(float).tolist() for end in tie.neighbours("bfloat16")]
        [[1.0], [1.0078125]]
        """
        found = self._rounded(format)
        return _cast(found.low, format), _cast(found.high, format)

    def open(self, format: str | formats.Format) -> npt.NDArray[np.bool_]:
        """Where the enclosure does not tell the correctly rounded value."""
        return self._rounded(format).open

    def _rounded(self, format: str | formats.Format) -> Rounded:
        return rounded(self.values, format)

    def decimal(self, digits: int) -> Array:
        """The midpoints as text of so many significant digits, rounded to nearest; right where that many are guaranteed.

        >>> exact = np.array([Fraction(2, 3)], dtype=object)
        >>> Enclosure(exact, exact - exact, np.array(["exact"])).decimal(4).tolist()
        ['0.6667']
        """
        return _each(lambda m: decimal(m, digits), self.mid)


def straddling(e: Enclosure, format: str | formats.Format) -> tuple[int, ...] | None:
    """The index of an element whose enclosure does not round to one number of a format; None where there is none."""
    at = np.argwhere(e.open(format))
    return tuple(int(k) for k in at[0]) if len(at) else None


def classified(name: str, values: Values, question: Question, tier: str = "", assumption: str | None = None) -> Enclosure:
    """An enclosure of what a tier left, each element with the status that a question gives it.

    >>> import flint
    >>> classified("x", Balls(np.array([flint.arb(1) / 3, flint.arb(2)], dtype=object)), Digits(10), "balls").status.tolist()
    ['enclosed', 'exact']
    """
    decided: Status = "bounded" if assumption else "enclosed"
    known = (How("exact", tier), How(decided, tier, assumption), How("undecided", tier, assumption))
    codes = np.where(values.points() & (assumption is None), 0, np.where(question.open(name, values), 2, 1))
    return Enclosure.of(values, codes.reshape(values.shape), known)


def of_balls(balls: Array, digits: int | None = None) -> Enclosure:
    """The enclosure of an array of balls; without ``digits`` every finite ball counts as enclosed."""
    question: Question = Digits(digits) if digits else Nothing()
    return classified("", Balls(balls, max(SCALE, 4 * (digits or 0))), question, "balls")


def of_exact(values: Array) -> Enclosure:
    """The enclosure of exact numbers."""
    zero = object_array([Fraction(0)] * values.size, values.shape)
    return Enclosure.of(Objects(values, zero), np.zeros(values.shape), (How("exact"),))


def decimal(x: Exact, digits: int) -> str:
    """An exact number as text of so many significant digits, rounded to nearest.

    >>> decimal(Fraction(-1, 8), 2), decimal(Fraction(10**20, 3), 5), decimal(Fraction(0), 5)
    ('-0.12', '3.3333e+19', '0')
    """
    if isinstance(x, float):
        return repr(x)
    if x == 0:
        return "0"
    e = len(str(abs(x.numerator))) - len(str(x.denominator)) if max(x.numerator, x.denominator) < 10**4000 else _magnitude(x)
    e -= abs(x) < Fraction(10) ** e
    scaled = round(abs(x) * Fraction(10) ** (digits - 1 - e))
    if scaled >= 10**digits:
        scaled, e = scaled // 10, e + 1
    text = str(scaled)
    sign = "-" if x < 0 else ""
    if -5 <= e < digits:
        body = text[: e + 1] + "." + text[e + 1 :] if e >= 0 else "0." + "0" * (-e - 1) + text
        return sign + body.rstrip(".")
    return f"{sign}{text[0]}{'.' + text[1:] if digits > 1 else ''}e{e:+03d}"


def _magnitude(x: Fraction) -> int:
    """The decimal exponent of a very large or small fraction, or one more."""
    return math.floor(formats.floor_log2(x) * math.log10(2)) + 1


def _cast(values: Array, format: str | formats.Format) -> Array:
    """Numbers of a format, as float64, in its dtype."""
    with np.errstate(invalid="ignore", over="ignore"):
        return values.astype(formats.get(format).dtype)


def _each(f: Any, *arrays: Array) -> Array:
    return object_array([f(*v) for v in zip(*(a.ravel().tolist() for a in arrays), strict=True)], arrays[0].shape)


def _sub(values: Array, index: Any) -> Array:
    got = values[index]
    if isinstance(got, np.ndarray):
        return got
    out = np.empty((), dtype=values.dtype)
    out[()] = got
    return out
