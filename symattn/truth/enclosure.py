"""Enclosures: for every element of a tensor an exact midpoint and radius that provably hold the exact value between them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import flint
import numpy as np
import numpy.typing as npt

from symattn import formats
from symattn.errors import UndecidedError
from symattn.numbers import Exact
from symattn.readings.balls import SCALE, parts
from symattn.readings.specials import Special

Array = npt.NDArray[Any]
Status = Literal["exact", "enclosed", "tiny", "undecided"]

SHOWN, SHOWN_DIGITS = 4, 5
"""How many values, and digits of each, a printed enclosure shows."""


@dataclass(frozen=True, eq=False, repr=False)
class Enclosure:
    """The values of a tensor, each known to lie in ``[mid - rad, mid + rad]``.

    Parameters
    ----------
    mid
        Object array of ``Fraction``, or the floats ``nan``, ``inf``, ``-inf`` where that is the value.
    rad
        Object array of ``Fraction``; the float ``inf`` where nothing is known.
    status
        Array of text: ``exact`` (radius 0), ``enclosed`` (the digits asked for are guaranteed), ``tiny`` (they are not, because
        the value is 0 or below ``10^(-2 digits)`` of the largest one asked for), ``undecided`` (they are not). The enclosure
        holds in each case.

    >>> one = Enclosure(*(np.array([x], dtype=object) for x in (Fraction(1, 3), Fraction(1, 10**9), "enclosed")))
    >>> one.float(), one.round("bfloat16")
    (array([0.33333333]), array([0.333984], dtype=bfloat16))
    """

    mid: Array
    rad: Array
    status: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tensor."""
        return self.mid.shape

    def __repr__(self) -> str:
        """Shape, how many elements have which status, and the first few values: an array of fractions fills the screen.

        >>> Enclosure(*(np.array([x] * 9, dtype=object) for x in (Fraction(1, 3), Fraction(1, 10**9), "enclosed")))
        <Enclosure of shape (9,): 9 enclosed; 0.33333, 0.33333, 0.33333, 0.33333, ...>
        """
        names, counts = np.unique(np.asarray(self.status, dtype=str), return_counts=True)
        states = ", ".join(f"{n} {name}" for name, n in zip(names.tolist(), counts.tolist(), strict=True)) or "empty"
        first = list(itertools.islice(self.mid.flat, SHOWN))
        values = ", ".join([decimal(x, SHOWN_DIGITS) for x in first] + ["..."] * (self.mid.size > SHOWN))
        return f"<Enclosure of shape {self.shape}: {states}{'; ' + values if values else ''}>"

    @property
    def decided(self) -> bool:
        """Whether no element is undecided."""
        return not bool(np.any(self.status == "undecided"))

    def __getitem__(self, index: Any) -> Enclosure:
        """A part of the tensor, or one element as an enclosure of shape ()."""
        return Enclosure(*(_sub(v, index) for v in (self.mid, self.rad, self.status)))

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
            ``truth(..., decide=format)``, which raises the precision until none does.
        """
        open_at = straddling(self, format)
        if open_at is not None:
            raise UndecidedError(
                f"element {open_at} is {float(self.mid[open_at])!r} within {float(self.rad[open_at]):.3g}, which holds the "
                f"midpoint of two numbers of {formats.get(format)}; more bits may decide it"
            )
        return formats.to_array(self.mid, format)

    def decimal(self, digits: int) -> Array:
        """The midpoints as text of so many significant digits, rounded to nearest; right where that many are guaranteed.

        >>> exact = np.array([Fraction(2, 3)], dtype=object)
        >>> Enclosure(exact, exact - exact, np.array(["exact"])).decimal(4).tolist()
        ['0.6667']
        """
        return _each(lambda m: decimal(m, digits), self.mid)


def straddling(e: Enclosure, format: str | formats.Format) -> tuple[int, ...] | None:
    """The index of an element whose enclosure does not round to one number of a format; None where there is none."""
    f = formats.get(format)
    for at in np.ndindex(*e.shape):
        m: Any = e.mid[at]
        r: Any = e.rad[at]
        if isinstance(r, float) or (r and formats.round_exact(m - r, f) != formats.round_exact(m + r, f)):
            return at
    return None


def of_balls(balls: Array, digits: int | None = None) -> Enclosure:
    """The enclosure of an array of balls; without ``digits`` every finite ball counts as enclosed."""
    scale = max(SCALE, 4 * (digits or 0))
    found = [parts(x, scale) for x in balls.ravel().tolist()]
    return Enclosure(
        _array([m for m, _ in found], balls.shape),
        _array([r for _, r in found], balls.shape),
        np.array([status(m, r, digits) for m, r in found], dtype="<U9").reshape(balls.shape),
    )


def open_balls(balls: Array, digits: int) -> list[Any]:
    """The balls that do not guarantee so many digits yet, told without a fraction; one that is just good enough may be there.

    >>> third = flint.arb(1) / 3
    >>> [len(open_balls(np.array([third, flint.arb(2), flint.arb(0, 1)]), d)) for d in (12, 18)]
    [1, 2]
    """
    bits = math.ceil(digits * math.log2(10)) + 3  # rad <= |mid| 2^-bits, hence 2 rad 10^digits <= |mid| / 4
    values = (x for x in balls.ravel().tolist() if not isinstance(x, Special))
    return [x for x in values if x.rel_accuracy_bits() < bits and not x.is_exact()]


def only_tiny(undecided: Iterable[Any], all_values: Iterable[Array], digits: int) -> bool:
    """Whether balls all contain 0 and are certainly below ``10^(-2 digits)`` of the largest of all values.

    >>> one = np.array([flint.arb(1)])
    >>> [only_tiny([flint.arb(0, r)], [one], 5) for r in (1e-11, 1e-9)], only_tiny([flint.arb(1e-12, 1e-13)], [one], 5)
    ([True, False], False)
    """
    sizes = (x.abs_lower() for v in all_values for x in v.ravel().tolist() if not isinstance(x, Special) and x.is_finite())
    floor = max(sizes, default=flint.arb(0)) / flint.arb(10) ** (2 * digits)
    return all(x.contains(0) and x.abs_upper() <= floor for x in undecided)


def of_exact(values: Array) -> Enclosure:
    """The enclosure of exact numbers."""
    zero = _array([Fraction(0)] * values.size, values.shape)
    return Enclosure(values, zero, np.full(values.shape, "exact", dtype="<U9"))


def status(mid: Exact, rad: Exact, digits: int | None) -> Status:
    """Whether a radius guarantees so many significant digits: it is at most half a unit of the last one.

    >>> status(Fraction(1, 3), Fraction(1, 10**6), 5), status(Fraction(1, 3), Fraction(1, 10**6), 8)
    ('enclosed', 'undecided')
    """
    if rad == 0:
        return "exact"
    if isinstance(rad, float):
        return "undecided"
    if digits is None:
        return "enclosed"
    m: Any = mid
    above = rad.numerator * (2 * 10**digits + 1) * m.denominator  # 2 rad 10^digits <= |mid| - rad, in integers
    return "enclosed" if above <= abs(m.numerator) * rad.denominator else "undecided"


def with_tiny(found: Mapping[str, Enclosure], digits: int) -> dict[str, Enclosure]:
    """Undecided elements that are certainly below ``10^(-2 digits)`` of the largest value of all tensors become ``tiny``.

    >>> mid, rad = (np.array(x, dtype=object) for x in ([Fraction(1), Fraction(0)], [Fraction(0), Fraction(1, 10**50)]))
    >>> a = Enclosure(mid, rad, np.array(["exact", "undecided"]))
    >>> with_tiny({"x": a}, 20)["x"].status.tolist(), with_tiny({"x": a}, 40)["x"].status.tolist()
    (['exact', 'tiny'], ['exact', 'undecided'])
    """
    if all(e.decided for e in found.values()):
        return dict(found)
    known = (
        (m, r)
        for e in found.values()
        for m, r in zip(e.mid.flat, e.rad.flat, strict=True)
        if isinstance(m, Fraction) and isinstance(r, Fraction)
    )
    floor = max((abs(m) - r for m, r in known), default=Fraction(0)) / 10 ** (2 * digits)
    out = {}
    for name, e in found.items():
        state = e.status.copy()
        for at in map(tuple, np.argwhere(e.status == "undecided")):
            m, r = e.mid[at], e.rad[at]
            if isinstance(m, Fraction) and isinstance(r, Fraction) and abs(m) + r <= floor:
                state[at] = "tiny"
        out[name] = Enclosure(e.mid, e.rad, state)
    return out


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


def _array(values: list[Any], shape: tuple[int, ...]) -> Array:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out.reshape(shape)


def _each(f: Any, *arrays: Array) -> Array:
    return _array([f(*v) for v in zip(*(a.ravel().tolist() for a in arrays), strict=True)], arrays[0].shape)


def _sub(values: Array, index: Any) -> Array:
    got = values[index]
    if isinstance(got, np.ndarray):
        return got
    out = np.empty((), dtype=values.dtype)
    out[()] = got
    return out
