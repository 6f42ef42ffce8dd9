"""Exact intake of numbers: text, fractions, integers, floats of any dtype, SymPy numbers. Nothing passes through a float.

An *exact number* of symattn is one of

- ``Fraction``: every integer, fraction, decimal text and finite float, those of mpmath, python-flint and gmpy2 too (a float is
  the dyadic rational that it is);
- the Python float ``nan``, ``inf`` or ``-inf``: the special values, which no fraction can hold;
- a SymPy expression: an irrational number that was given as one, such as ``sqrt(3)``.

Every reading turns these into its own number type, rounding once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import sympy as sp

from symattn.errors import InputValueError

Exact: TypeAlias = Fraction | float | Any
"""An exact number: ``Fraction``, one of the floats ``nan``, ``inf``, ``-inf``, or a SymPy expression (untyped)."""

MAX_TEXT = 4000
MAX_EXPONENT = 20_000

_DECIMAL = r"(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_NUMBER = re.compile(rf"([+-]?)({_DECIMAL})(?:/({_DECIMAL}))?\Z", re.ASCII)
_POWER = re.compile(rf"([+-]?)({_DECIMAL})(?:\^|\*\*)([+-]?\d+)\Z", re.ASCII)
_HEX = re.compile(r"[+-]?0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*[pP][+-]?\d+\Z", re.ASCII)
_SPECIAL = {"nan": math.nan, "inf": math.inf, "+inf": math.inf, "-inf": -math.inf}
_SPECIAL |= {k.replace("inf", "infinity"): v for k, v in _SPECIAL.items() if "inf" in k}
_SPECIAL |= {"oo": math.inf, "+oo": math.inf, "-oo": -math.inf}


def exact_number(x: object) -> Exact:
    """The exact value of one number.

    Parameters
    ----------
    x
        ``int``, ``Fraction``, ``float`` or NumPy scalar of any float dtype (the dyadic rational that it is), ``Decimal``,
        a SymPy number, ``mpf`` of any context of mpmath, ``mpz``, ``mpq`` and ``mpfr`` of gmpy2, ``fmpz``, ``fmpq`` and an
        ``arb`` of radius 0 of python-flint, or text: ``"0.1"``, ``"1/3"``, ``"-1.5e-3"``, ``"2^-3"``, ``"0x1.8p-4"``,
        ``"-inf"``, ``"nan"``.

    Raises
    ------
    InputValueError
        When it is no real number (a ball with a radius is many), or text outside this grammar, or a number with an exponent
        that is absurdly large.

    >>> exact_number("0.1"), exact_number("2^-3"), exact_number("1.5/3")
    (Fraction(1, 10), Fraction(1, 8), Fraction(1, 2))
    >>> exact_number(0.5), exact_number("-inf")
    (Fraction(1, 2), -inf)
    """
    if isinstance(x, (bool, np.bool_, int, np.integer)):
        return Fraction(int(x))
    if isinstance(x, Fraction):
        return x
    if isinstance(x, (str, np.str_)):
        return _from_text(str(x))
    if isinstance(x, sp.Basic):
        return _from_sympy(x)
    if isinstance(x, (complex, np.complexfloating)):
        raise InputValueError(f"{x!r} is complex; a real number is needed")
    found = _of_library(x)
    if found is not None:
        return found
    if hasattr(x, "as_integer_ratio"):
        try:
            return Fraction(*map(int, x.as_integer_ratio()))
        except (ValueError, OverflowError):
            return float(x)  # type: ignore[arg-type]  # NaN and infinities are what has no ratio
    try:
        wide = np.asarray(x)
        if wide.shape == () and _is_float(wide.dtype):
            return exact_number(float(wide.astype(np.float64)))
    except (TypeError, ValueError):
        pass
    raise InputValueError(f"{_shown(x)} is no number: give an integer, a fraction, a float or text such as '0.1', '1/3', '2^-3'")


def _of_library(x: Any) -> Exact | None:
    """A number of mpmath, python-flint or gmpy2, known by what it offers: none of them is imported; None for anything else."""
    if hasattr(x, "man_exp") and hasattr(x, "rad"):  # a ball; it offers its midpoint as `_mpf_` too
        if not x.is_exact():
            raise InputValueError(
                f"{_shown(x)} is a ball with a radius and no number; take its midpoint, `.mid()`, where that is meant"
            )
        if not x.is_finite():
            return math.inf if x > 0 else -math.inf
        mantissa, exponent = map(int, x.man_exp())
        return _dyadic(mantissa, exponent, x)
    if hasattr(x, "_mpf_"):
        if hasattr(x, "func"):
            raise InputValueError(
                f"{_shown(x)} is a constant of mpmath at whatever precision is set; give SymPy's, or round it: +x"
            )
        sign, mantissa, exponent, _ = x._mpf_
        if not mantissa and exponent:
            return float(x)
        return _dyadic(-int(mantissa) if sign else int(mantissa), int(exponent), x)
    above, below = getattr(x, "numerator", None), getattr(x, "denominator", None)
    return None if above is None or callable(above) or below is None else Fraction(int(above), int(below))


def _dyadic(mantissa: int, exponent: int, shown: object) -> Fraction:
    if mantissa and abs(exponent + mantissa.bit_length()) > 4 * MAX_EXPONENT:
        raise InputValueError(
            f"a {type(shown).__name__} of about 2^{exponent + mantissa.bit_length()} is too large or too small a number"
        )
    return Fraction(mantissa) * Fraction(2) ** exponent if mantissa else Fraction(0)


def exact_array(x: object) -> npt.NDArray[Any]:
    """The exact values of an array, as an object array of exact numbers.

    Parameters
    ----------
    x
        A number as in :func:`exact_number`, an array of any float, integer or boolean dtype (``float16``, ``longdouble`` and the
        types of ``ml_dtypes`` included), an object array, or nested lists of numbers.

    Returns
    -------
    numpy.ndarray
        Object array of the same shape; a scalar gives a 0-d array.

    Raises
    ------
    InputValueError
        On an entry that is no number, and on lists of unequal lengths.

    >>> exact_array([["0.1", 1], [0.25, "1/3"]]).tolist()
    [[Fraction(1, 10), Fraction(1, 1)], [Fraction(1, 4), Fraction(1, 3)]]
    """
    array = _as_array(x)
    kind = array.dtype
    flat: Iterable[object]
    if kind.kind in "biu":
        flat = map(Fraction, array.ravel().astype(object))
    elif kind == np.longdouble and kind != np.float64:
        flat = map(exact_number, array.ravel())
    elif _is_float(kind):
        with np.errstate(all="ignore"):
            wide = array.ravel().astype(np.float64)
        finite = np.isfinite(wide)
        flat = [Fraction(v) if ok else v for v, ok in zip(wide.tolist(), finite.tolist(), strict=True)]
    elif kind.kind in "OUS":
        flat = [exact_number(v.decode("ascii", "replace") if isinstance(v, bytes) else v) for v in array.ravel().tolist()]
    else:
        raise InputValueError(f"an array of dtype {kind} holds no real numbers")
    out = np.empty(array.size, dtype=object)
    out[:] = list(flat)
    return out.reshape(array.shape)


def is_special(x: object) -> bool:
    """Whether an exact number is NaN or an infinity.

    >>> is_special(exact_number("nan")), is_special(exact_number("1/3"))
    (True, False)
    """
    return isinstance(x, float)


def _as_array(x: object) -> npt.NDArray[Any]:
    if isinstance(x, (np.ndarray, np.generic)):
        return np.asarray(x)
    if not isinstance(x, (list, tuple)):
        try:
            array = np.asarray(x) if hasattr(x, "__array__") else None
        except (TypeError, ValueError) as why:
            raise InputValueError(f"an object of type {type(x).__name__} gives no array: {why}") from why
        if array is None:
            array = np.empty((), dtype=object)
            array[()] = x
        return array
    if not any(isinstance(v, (list, tuple, np.ndarray)) or hasattr(v, "__array__") for v in x):
        out = np.empty(len(x), dtype=object)
        out[:] = x
        return out
    parts = [_as_array(v) for v in x]
    if len({p.shape for p in parts}) > 1:
        raise InputValueError(f"lists of unequal lengths give no array: the parts have shapes {sorted({p.shape for p in parts})}")
    out = np.empty((len(parts), *parts[0].shape), dtype=object)
    for k, p in enumerate(parts):
        out[k] = (p if p.dtype == object else exact_array(p)) if p.shape else exact_array(p)[()]
    return out


def _is_float(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is a float, those of ml_dtypes (which NumPy calls void or other) included."""
    return dtype.kind == "f" or (dtype.kind in "V" and dtype.names is None and np.can_cast(dtype, np.float64))


def _from_text(text: str) -> Exact:
    s = text.strip()
    if len(s) > MAX_TEXT:
        raise InputValueError(f"a number of {len(s)} characters is too long; {MAX_TEXT} are allowed")
    if s.lower() in _SPECIAL:
        return _SPECIAL[s.lower()]
    if m := _NUMBER.match(s):
        below = _decimal(m[3], text) if m[3] else Fraction(1)
        if below == 0:
            raise InputValueError(f"{_shown(text)} divides by zero")
        return (-1 if m[1] == "-" else 1) * _decimal(m[2], text) / below
    if m := _POWER.match(s):
        base, exponent = _decimal(m[2], text), _exponent(m[3], text)
        if base == 0 and exponent < 0:
            raise InputValueError(f"{_shown(text)} divides by zero")
        if abs(exponent) * max(base.numerator.bit_length(), base.denominator.bit_length()) > 4 * MAX_EXPONENT:
            raise InputValueError(f"{_shown(text)} is too large or too small a number")
        return (-1 if m[1] == "-" else 1) * base**exponent
    if _HEX.match(s):
        _exponent(re.split("[pP]", s)[1], text)
        try:
            return Fraction(float.fromhex(s))
        except (ValueError, OverflowError) as why:
            raise InputValueError(f"{_shown(text)} is no float in hexadecimal") from why
    raise InputValueError(f"{_shown(text)} is no number: allowed are '0.1', '1e-3', '1/3', '2^-3', '0x1.8p-4', 'inf', 'nan'")


def _decimal(s: str, text: str) -> Fraction:
    mantissa, _, exponent = s.lower().partition("e")
    if exponent:
        _exponent(exponent, text)
    return Fraction(mantissa.strip("_").replace("_", "") + ("e" + exponent if exponent else ""))


def _exponent(s: str, text: str) -> int:
    if len(s) > 9 or abs(int(s)) > MAX_EXPONENT:
        raise InputValueError(f"{_shown(text)} has an exponent beyond {MAX_EXPONENT}")
    return int(s)


def _from_sympy(x: sp.Basic) -> Exact:
    if x is sp.nan or x is sp.zoo:
        return math.nan
    if x is sp.oo or x is -sp.oo:
        return math.inf if x is sp.oo else -math.inf
    if isinstance(x, (sp.Rational, sp.Float)):
        q = sp.Rational(x)
        return Fraction(int(q.p), int(q.q))
    if isinstance(x, sp.Expr) and x.is_number and x.is_real:
        return x
    raise InputValueError(f"{_shown(x)} is no real number")


def _shown(x: object) -> str:
    """What was given, shortened for a message."""
    s = repr(x)
    return s if len(s) <= 60 else s[:57] + "..."
