"""One tensor of a kernel against an enclosure of the truth and a bound, element by element, in exact arithmetic.

A rational k is *within* when ``|k - mid| + rad <= bound``, *out* when ``|k - mid| - rad > bound``, and *undecided* otherwise:
then the enclosure has to become narrower. Where the bound is infinite the element is *unbounded*: nothing was asked of it, and
nothing is shown, be it NaN. Infinities and NaN are values: where the truth is one, the kernel has to give the same.
"""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

import numpy as np

from symattn.formats import Exact, Format, exact, ulp
from symattn.intake import Array
from symattn.truth.values import Objects, Values
from symattn.verify.screening import to_judge

WITHIN, OUT, UNDECIDED, UNBOUNDED = "within", "out", "undecided", "unbounded"
INFINITE: float = math.inf
SHOWN = 21
"""Digits of an exact value that reports may show."""


class _Shown:
    """Shown with few digits: a rational may have more of them than Python writes out."""

    def __repr__(self) -> str:
        values = ((f.name, getattr(self, f.name)) for f in fields(self))  # type: ignore[arg-type]
        shown = (f"{n}={significant(x, 5) if isinstance(x, (Fraction, float)) else repr(x)}" for n, x in values)
        return f"{type(self).__name__}({', '.join(shown)})"


@dataclass(frozen=True, repr=False)
class Element(_Shown):
    """One element: where it is, what the kernel gave, what is right, and what may differ."""

    index: tuple[int, ...]
    kernel: Exact
    exact: Exact
    bound: Exact
    error: Exact
    ulps: Exact
    share: Exact
    state: str


@dataclass(frozen=True, repr=False)
class Comparison(_Shown):
    """A tensor's elements summed up: how many are out or undecided, the greatest errors, and the worst element.

    ``max_share`` is the greatest error as a share of its element's bound; above 1 the element is out. ``unbounded`` counts the
    elements whose bound is infinite, ``nan`` those of the failing ones that are NaN.
    """

    failing: int
    undecided: int
    unbounded: int
    total: int
    max_error: Exact
    max_ulp: Exact
    max_share: Exact
    worst: Element | None
    nan: int = 0

    @property
    def verdict(self) -> str:
        """``"fail"`` when an element is out, else ``"inconclusive"`` when one is undecided or has no bound, else ``"pass"``."""
        return "fail" if self.failing else "inconclusive" if self.undecided or self.unbounded else "pass"


def compare(kernel: Array, mid: Array, rad: Array, bound: Array, format: Format) -> Comparison:
    """Compare a kernel's tensor with the truth.

    Parameters
    ----------
    kernel
        The tensor in its own dtype; each element is the dyadic rational (or special) that it is.
    mid, rad
        Object arrays of the same shape: midpoint and radius of the enclosure, as ``Fraction`` or special floats.
    bound
        The greatest error that a correct kernel of the declared arithmetic may show, float64, per element.
    format
        The format of the output, which ulps are counted in.

    >>> half = np.array([Fraction(1, 2)], dtype=object)
    >>> from symattn.formats import get
    >>> compare(np.array([0.75]), half, half * 0, np.array([0.2]), get("float64")).verdict
    'fail'
    """
    if not (mid.shape == rad.shape == bound.shape == kernel.shape):
        raise ValueError(f"shapes differ: kernel {kernel.shape}, truth {mid.shape}, radius {rad.shape}, bound {bound.shape}")
    return compare_values(kernel, Objects(mid, rad), bound, format)


def compare_values(kernel: Array, truth: Values, bound: Array, format: Format) -> Comparison:
    """The same, the truth as a tier left it: only what decides is judged in exact arithmetic (:mod:`.screening`)."""
    values = kernel.astype(np.float64).ravel()
    at = to_judge(values, *truth.approx(), bound, format)
    failing = undecided = unbounded = nan = 0
    top = {"error": Fraction(0), "ulps": Fraction(0), "share": Fraction(0)}
    worst: Element | None = None
    radius: Exact = Fraction(0)
    indices = zip(*(x.tolist() for x in np.unravel_index(at, kernel.shape)), strict=True) if kernel.ndim else iter([()])
    rows = zip(indices, values[at].tolist(), *truth.exact(at), bound.ravel()[at].tolist(), strict=True)
    for index, k, t, r, b in rows:
        e = judge_element(index, exact(k), t, r, b, format)
        failing += e.state == OUT
        undecided += e.state == UNDECIDED
        unbounded += e.state == UNBOUNDED
        nan += e.state == OUT and k != k
        for name in top:
            top[name] = max(top[name], getattr(e, name))
        if worst is None or (e.share, e.error) > (worst.share, worst.error):
            worst, radius = e, exact(r)
    if worst is not None:
        worst = replace(worst, exact=as_known(worst.exact, radius))
    return Comparison(failing, undecided, unbounded, kernel.size, top["error"], top["ulps"], top["share"], worst, nan)


def as_known(mid: Exact, rad: Exact) -> Exact:
    """The midpoint of an enclosure with no more decimal digits than are known: what a report shows of the exact value.

    >>> float(as_known(Fraction(1, 3), Fraction(1, 10**6))), as_known(Fraction(1, 3), Fraction(0))
    (0.3333, Fraction(1, 3))
    """
    if isinstance(mid, float) or isinstance(rad, float) or rad * 10**SHOWN <= abs(mid):
        return mid
    unit = Fraction(10) ** (math.floor((rad.numerator.bit_length() - rad.denominator.bit_length()) * math.log10(2)) + 2)
    return round(mid / unit) * unit or mid


def judge_element(index: tuple[int, ...], k: Exact, t: Any, r: Any, b: float, format: Format) -> Element:
    """One element judged; see :func:`compare`.

    >>> from symattn.formats import get
    >>> judge_element((0,), Fraction(1), Fraction(1, 2), Fraction(0), 0.5, get("float32")).state
    'within'
    """
    t, r = exact(t), exact(r)
    bound: Exact = exact(b)
    if isinstance(bound, float) and math.isnan(bound):
        bound = INFINITE
    same = Element(index, k, t, bound, Fraction(0), Fraction(0), Fraction(0), WITHIN)
    off = Element(index, k, t, bound, INFINITE, INFINITE, INFINITE, OUT)
    if isinstance(r, float):  # nothing is known of the truth yet
        return Element(index, k, t, bound, Fraction(0), Fraction(0), Fraction(0), UNDECIDED)
    if isinstance(t, float):
        return same if k == t or (math.isnan(t) and k != k) else off
    if isinstance(k, float):
        if math.isnan(k):  # where nothing is promised, what overflows may meet its opposite or a 0
            return off if isinstance(bound, Fraction) else Element(index, k, t, bound, INFINITE, INFINITE, Fraction(0), UNBOUNDED)
        k_finite = _where_overflow_starts(k, format)
        error: Exact = max(Fraction(0), (k_finite - t) if k > 0 else (t - k_finite))
        if not format.infinities:
            return off
    else:
        error = abs(k - t)
    state = UNBOUNDED
    if isinstance(bound, Fraction):
        state = WITHIN if error + r <= bound else OUT if error - r > bound else UNDECIDED
    if state != UNDECIDED and error <= r:
        error = Fraction(0)  # no difference from the truth is known: what is left is the width of its enclosure
    if isinstance(k, float) and error and state in (OUT, UNBOUNDED):
        return Element(index, k, t, bound, INFINITE, INFINITE, Fraction(0) if state == UNBOUNDED else INFINITE, state)
    share: Exact = Fraction(0)
    if isinstance(bound, Fraction):
        share = Fraction(error) / bound if bound else (INFINITE if error else Fraction(0))
    return Element(index, k, t, bound, error, Fraction(error) / ulp(t, format), share, state)


def _where_overflow_starts(k: float, format: Format) -> Fraction:
    """The number from which on a correctly rounded result is infinite; an infinity stands for anything beyond it."""
    edge = format.max + ulp(format.max, format) / 2
    return edge if k > 0 else -edge


def significant(x: Exact, digits: int) -> str:
    """A rational as a decimal of that many significant digits, rounded to nearest; specials as ``inf``, ``-inf``, ``nan``.

    >>> significant(Fraction(1, 3), 20), significant(Fraction(1, 2), 20), significant(math.inf, 3), significant(Fraction(0), 3)
    ('0.33333333333333333333', '0.5', 'inf', '0')
    """
    if isinstance(x, float) and not math.isfinite(x):
        return str(x)
    x = Fraction(x)
    context = decimal.Context(prec=digits, rounding=decimal.ROUND_HALF_EVEN, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
    return str(context.divide(decimal.Decimal(x.numerator), decimal.Decimal(x.denominator)))
