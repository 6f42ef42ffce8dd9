"""Binary floating-point formats, and the one routine that rounds an exact rational into them.

A format of precision p is the set of numbers ``k * 2^(e - p + 1)`` with ``|k| < 2^p`` and ``emin <= e <= emax``, up to ``max``.
Below ``2^emin`` the spacing no longer shrinks (subnormal numbers). Everything here is exact: values are ``Fraction``, and the
specials are the floats ``inf``, ``-inf`` and ``nan`` (a zero has no sign).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np

from symattn.errors import UnknownNameError, nearest

Exact = Fraction | float
"""A rational number, or one of the specials ``inf``, ``-inf``, ``nan`` as a float."""


@dataclass(frozen=True)
class Format:
    """A binary floating-point format.

    Parameters
    ----------
    name
        Its name, that of the NumPy (or ml_dtypes) dtype where there is one.
    precision
        Number of significant bits, the hidden one included.
    emin, emax
        Exponents of the smallest and the largest normal numbers, ``2^emin <= |x| < 2^(emax+1)``.
    max
        The largest finite number.
    infinities
        Whether overflow gives an infinity; in a format without infinities it gives NaN.
    storage
        Name of the dtype that its values are kept in (``tf32`` lives in float32).

    >>> get("bf16").unit_roundoff, get("float16").max, get("float8_e4m3fn").infinities
    (Fraction(1, 256), Fraction(65504, 1), False)
    """

    name: str
    precision: int
    emin: int
    emax: int
    max: Fraction
    infinities: bool
    storage: str

    @property
    def unit_roundoff(self) -> Fraction:
        """The greatest relative error u of rounding to nearest where no subnormal number is met: ``2^-precision``."""
        return _power(-self.precision)

    @property
    def smallest_normal(self) -> Fraction:
        """``2^emin``."""
        return _power(self.emin)

    @property
    def smallest_subnormal(self) -> Fraction:
        """The spacing of the subnormal numbers, ``2^(emin - precision + 1)``."""
        return _power(self.emin - self.precision + 1)

    @property
    def eta(self) -> Fraction:
        """The greatest absolute error of rounding a subnormal number: half of the smallest one."""
        return self.smallest_subnormal / 2

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype that holds it; ml_dtypes is imported for the 8-bit formats and bfloat16 only."""
        try:
            return np.dtype(self.storage)
        except TypeError:
            import ml_dtypes

            return np.dtype(getattr(ml_dtypes, self.storage))

    def __str__(self) -> str:
        return self.name


def _power(e: int) -> Fraction:
    return Fraction(1 << e) if e >= 0 else Fraction(1, 1 << -e)


def _ieee(name: str, precision: int, emax: int, storage: str | None = None) -> Format:
    top = (2 - _power(1 - precision)) * _power(emax)
    return Format(name, precision, 1 - emax, emax, top, True, storage or name)


FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        f.name: f
        for f in (
            _ieee("float64", 53, 1023),
            _ieee("float32", 24, 127),
            _ieee("tf32", 11, 127, "float32"),
            _ieee("float16", 11, 15),
            _ieee("bfloat16", 8, 127),
            Format("float8_e4m3fn", 4, -6, 8, Fraction(448), False, "float8_e4m3fn"),
            _ieee("float8_e5m2", 3, 15),
        )
    }
)
"""The formats by name, widest first."""

ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "fp64": "float64",
        "f64": "float64",
        "double": "float64",
        "fp32": "float32",
        "f32": "float32",
        "float": "float32",
        "single": "float32",
        "tensorfloat32": "tf32",
        "fp16": "float16",
        "f16": "float16",
        "half": "float16",
        "bf16": "bfloat16",
        "e4m3": "float8_e4m3fn",
        "e4m3fn": "float8_e4m3fn",
        "fp8_e4m3": "float8_e4m3fn",
        "float8_e4m3": "float8_e4m3fn",
        "e5m2": "float8_e5m2",
        "fp8_e5m2": "float8_e5m2",
    }
)
"""Other names in use, by the name that they stand for."""


def get(name: str | Format | np.dtype[Any] | type) -> Format:
    """The format of a name, an alias, or a NumPy dtype.

    Raises
    ------
    UnknownNameError
        When there is none; the message names the nearest.

    >>> get("fp32").name, get(np.dtype("float16")).name
    ('float32', 'float16')
    """
    if isinstance(name, Format):
        return name
    text = name if isinstance(name, str) else str(np.dtype(name))
    key = text.lower().removeprefix("torch.")
    found = FORMATS.get(ALIASES.get(key, key))
    if found is None:
        raise UnknownNameError(f"no float format {text!r}. {nearest(text, [*FORMATS, *ALIASES])}")
    return found


def floor_log2(x: Fraction) -> int:
    """The e with ``2^e <= |x| < 2^(e+1)``, of a number that is not 0.

    >>> floor_log2(Fraction(1, 3)), floor_log2(Fraction(8)), floor_log2(Fraction(-7))
    (-2, 3, 2)
    """
    n, d = abs(x.numerator), x.denominator
    e = n.bit_length() - d.bit_length()
    below = n < (d << e) if e >= 0 else (n << -e) < d
    return e - 1 if below else e


def ulp(x: Exact, format: Format | str) -> Fraction:
    """The spacing of a format's numbers at the value x: ``2^(e - precision + 1)``, e that of x, at least emin.

    From a power of two it is the spacing above. Beyond the largest number and at infinity it is the spacing there.

    Raises
    ------
    ValueError
        For NaN, which is nowhere.

    >>> ulp(Fraction(1), "float32") == Fraction(1, 2**23), ulp(Fraction(0), "float16") == Fraction(1, 2**24)
    (True, True)
    """
    f = get(format)
    if isinstance(x, float):
        if math.isnan(x):
            raise ValueError("NaN has no place among the numbers of a format, so no ulp")
        if math.isinf(x):
            return _power(f.emax - f.precision + 1)
        x = Fraction(x)
    e = f.emin if x == 0 else min(max(floor_log2(x), f.emin), f.emax)
    return _power(e - f.precision + 1)


def round_exact(x: Exact, format: Format | str, *, saturate: bool = False, towards: int = 0) -> Exact:
    """The number of a format nearest to an exact rational, ties to the even one; rounded once.

    Parameters
    ----------
    x
        A ``Fraction`` (or a float: it is taken as the dyadic that it is, specials included).
    format
        A format or its name.
    saturate
        What overflows becomes the largest finite number with its sign; otherwise an infinity, or NaN in a format without.
    towards
        0: to nearest. 1: the smallest number that is not below; -1: the largest that is not above.

    Returns
    -------
    Fraction or float
        Exact; a float only for ``inf``, ``-inf`` and ``nan``. A zero has no sign.

    >>> round_exact(Fraction(1, 3), "bfloat16"), round_exact(Fraction(1, 3), "bfloat16", towards=-1)
    (Fraction(171, 512), Fraction(85, 256))
    >>> round_exact(Fraction(10**6), "float16"), round_exact(Fraction(10**6), "float16", saturate=True)
    (inf, Fraction(65504, 1))
    """
    f = get(format)
    if isinstance(x, float):
        if math.isnan(x):
            return x
        if math.isinf(x):
            return _overflow(x > 0, f, saturate)
        x = Fraction(x)
    if x == 0:
        return Fraction(0)
    e = max(floor_log2(x), f.emin) - f.precision + 1
    n, d = x.numerator, x.denominator
    whole, rest = divmod(n, d << e) if e >= 0 else divmod(n << -e, d)  # rounded down, whatever the sign
    d = d << e if e >= 0 else d
    if rest and (towards > 0 or (not towards and (2 * rest, whole & 1) > (d, 0))):
        whole += 1
    rounded = Fraction(whole << e) if e >= 0 else Fraction(whole, 1 << -e)
    if abs(rounded) <= f.max:
        return rounded
    inwards = towards and (towards < 0) == (x > 0)
    return _overflow(x > 0, f, saturate or bool(inwards))


def above(x: Exact) -> float:
    """The smallest float64 that is not below a number, infinity included.

    >>> above(Fraction(1, 3)) > Fraction(1, 3), above(Fraction(1, 4)), above(Fraction(10) ** 400)
    (True, 0.25, inf)
    """
    return float(round_exact(x, "float64", towards=1))


def round_array(x: Any, format: Format | str, *, rule: str = "even", saturate: bool = False) -> np.ndarray[Any, Any]:
    """Float64 numbers, each rounded once into a format of at most 24 bits; the result is float64.

    Parameters
    ----------
    x
        Array of float64.
    rule
        To nearest with ties to ``"even"``, ``"down"`` (towards minus infinity) or ``"up"``; or ``"zero"``: cut off.
    saturate
        As for :func:`round_exact`.

    Raises
    ------
    ValueError
        For a format of more than 24 bits.

    >>> round_array(np.array([1 / 3, 1e6]), "float16").tolist()
    [0.333251953125, inf]
    >>> [round_array(np.array([257.0]), "bfloat16", rule=r).item() for r in ("down", "up", "even", "zero")]
    [256.0, 258.0, 256.0, 256.0]
    """
    f = get(format)
    if f.precision > 24:
        raise ValueError(f"{f.name} has more than 24 bits")
    v = np.asarray(x, dtype=np.float64)
    with np.errstate(all="ignore"):
        shift = np.maximum(np.frexp(v)[1] - 1, f.emin) - f.precision + 1
        scaled = np.ldexp(v, -shift)
        rules: dict[str, Callable[[Any], Any]] = {
            "even": np.rint,
            "down": lambda q: np.ceil(q - 0.5),
            "up": lambda q: np.floor(q + 0.5),
            "zero": np.trunc,
        }
        whole = rules[rule](scaled)
        out = np.where(np.isfinite(v), np.ldexp(whole, shift), v)
        top = float(f.max)
        cut = saturate or rule == "zero"
        beyond = top if cut else np.inf if f.infinities else np.nan
        infinite = np.isinf(v) & (not saturate)
        out = np.where((np.abs(out) > top) & ~infinite, np.copysign(beyond, v), out)
        return np.where(infinite, v if f.infinities else np.nan, out)


def _overflow(positive: bool, f: Format, saturate: bool) -> Exact:
    if saturate:
        return f.max if positive else -f.max
    if not f.infinities:
        return math.nan
    return math.inf if positive else -math.inf


def exact(x: object) -> Exact:
    """A float of any dtype as what it is: a ``Fraction``, or a special.

    >>> exact(np.float32(0.1))
    Fraction(13421773, 134217728)
    """
    if isinstance(x, (Fraction, int)):
        return Fraction(x)
    v = float(x)  # type: ignore[arg-type]  # float64 holds every shorter format
    return Fraction(v) if math.isfinite(v) else v


def to_array(values: object, format: Format | str, *, saturate: bool = False) -> np.ndarray[Any, Any]:
    """Exact values, each rounded once into a format, as an array of its dtype.

    Parameters
    ----------
    values
        An array-like of ``Fraction``, int or float; its shape is kept.

    >>> to_array([[Fraction(1, 3), 2]], "float32")
    array([[0.33333334, 2.        ]], dtype=float32)
    """
    f = get(format)
    a = np.asarray(values, dtype=object)
    flat: Iterable[object] = a.ravel()
    doubles = [float(round_exact(exact(v), f, saturate=saturate)) for v in flat]
    with np.errstate(invalid="ignore", over="ignore"):
        return np.array(doubles, dtype=np.float64).reshape(a.shape).astype(f.dtype)
