"""Values as plain arrays, so that they travel between processes and lie in a file without pickle, and come back bit for bit.

Large integers (mantissas, numerators) lie one after another in an array of bytes, each with its length.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import numpy.typing as npt

from symattn.errors import FileFormatError
from symattn.numbers import Exact
from symattn.readings.specials import NAN, NEGATIVE, POSITIVE, Ball, Special
from symattn.truth.limbs.fixed import Fixed, Piece
from symattn.truth.limbs.values import Limbs
from symattn.truth.values import Balls, Floats, Objects, Scaled, Values, object_array
from symattn.truth.work.digits import laid_out

__all__ = ["Packed", "packed", "settled", "unpacked"]

Array = npt.NDArray[Any]
Packed = dict[str, Array]
"""Arrays by name: no objects in them."""

ORDINARY, NOT_A_NUMBER, PLUS, MINUS, UNKNOWN = range(5)
RADIUS = 30
"""Bits of the radius of a ball."""


def packed(values: Values) -> Packed:
    """Values as plain arrays; their shape and kind are among them.

    >>> third = packed(Objects(np.array([Fraction(1, 3)], dtype=object), np.array([Fraction(0)], dtype=object)))
    >>> all(a.dtype != object for a in third.values()), unpacked(third).exact()
    (True, ([Fraction(1, 3)], [Fraction(0, 1)]))
    """
    shape = np.array(values.shape, dtype=np.int64)
    if isinstance(values, Floats):
        return {"kind": np.array("floats"), "shape": shape, "mid": values.mid, "rad": np.ascontiguousarray(values.rad)}
    if isinstance(values, Balls):
        return {
            "kind": np.array("balls"),
            "shape": shape,
            "scale": np.array(values.scale),
            **_balls(values.balls.ravel().tolist()),
        }
    if isinstance(values, Scaled):
        whole = _integers("integer", [int(k) for k in values.integers.ravel().tolist()])
        rads = _fractions("rad", [r if isinstance(r, float) else Fraction(r) for r in values.radius.ravel().tolist()])
        return {"kind": np.array("scaled"), "shape": shape, "exponent": np.array(values.exponent), **whole, **rads}
    if isinstance(values, Limbs):
        return {"kind": np.array("limbs"), "shape": shape, **_limbs(laid_out(values).fixed)}
    mids, rads_ = values.exact()
    return {"kind": np.array("objects"), "shape": shape, **_fractions("mid", mids), **_fractions("rad", rads_)}


def unpacked(arrays: Mapping[str, Array]) -> Values:
    """The values that :func:`packed` made arrays of.

    Raises
    ------
    FileFormatError
        When the arrays are not such ones.
    """
    try:
        kind, shape = str(arrays["kind"]), tuple(int(n) for n in arrays["shape"])
        if kind == "floats":
            return Floats(arrays["mid"].reshape(shape), arrays["rad"].reshape(shape))
        if kind == "balls":
            return Balls(object_array(_to_balls(arrays), shape), int(arrays["scale"]))
        if kind == "scaled":
            whole = object_array(_to_integers("integer", arrays), shape)
            return Scaled(whole, int(arrays["exponent"]), object_array(_to_fractions("rad", arrays), shape))
        if kind == "limbs":
            return Limbs(_to_limbs(arrays), np.arange(math.prod(shape)).reshape(shape))
        if kind == "objects":
            return Objects(*(object_array(_to_fractions(name, arrays), shape) for name in ("mid", "rad")))
    except (KeyError, ValueError, TypeError) as error:
        raise FileFormatError(f"these are not values that were put away: {error}") from error
    raise FileFormatError(f"these are values of an unknown kind {kind!r}")


def settled(values: Values) -> Values:
    """Values as they come back from :func:`packed`, number by number: most are what they are.

    A ball whose radius is a power of two comes back a little larger.

    >>> import flint
    >>> half = settled(Balls(np.array([flint.arb(1, 0.5)], dtype=object)))
    >>> again = unpacked(packed(half))
    >>> half.balls[0].rad() > 0.5, bool(again.balls[0].rad() == half.balls[0].rad())
    (True, True)
    """
    if not isinstance(values, Balls):
        return values
    flat = [_settled(x) for x in values.balls.ravel().tolist()]
    return Balls(object_array(flat, values.shape), values.scale)


def _settled(x: Any) -> Any:
    if isinstance(x, Special):
        return x
    x = Ball(x)
    if x.is_exact() or not x.is_finite():
        return x
    (mantissa, exponent), (radius, unit) = (tuple(map(int, v.man_exp())) for v in (x.mid(), x.rad()))
    return _ball(mantissa, exponent, radius, unit) if radius == 1 else x


def _integers(name: str, numbers: Sequence[int]) -> Packed:
    parts = [k.to_bytes((k.bit_length() + 8) // 8, "little", signed=True) for k in numbers]
    return {
        f"{name}.bytes": np.frombuffer(b"".join(parts), dtype=np.uint8),
        f"{name}.lengths": np.array([len(p) for p in parts], dtype=np.int32),
    }


def _to_integers(name: str, arrays: Mapping[str, Array]) -> list[int]:
    data, ends = arrays[f"{name}.bytes"].tobytes(), np.cumsum(arrays[f"{name}.lengths"], dtype=np.int64).tolist()
    if (ends[-1] if ends else 0) != len(data):
        raise ValueError(f"{name} has {len(data)} bytes, and {ends[-1] if ends else 0} are announced")
    return [int.from_bytes(data[b:e], "little", signed=True) for b, e in zip([0, *ends[:-1]], ends, strict=True)] if ends else []


def _code(x: float) -> int:
    return NOT_A_NUMBER if math.isnan(x) else PLUS if x > 0 else MINUS


_FLOATS = {NOT_A_NUMBER: math.nan, PLUS: math.inf, MINUS: -math.inf}


def _fractions(name: str, numbers: Sequence[Exact]) -> Packed:
    """Fractions, and the floats that stand for special values."""
    codes = [_code(x) if isinstance(x, float) else ORDINARY for x in numbers]
    plain = [Fraction(0) if isinstance(x, float) else Fraction(x) for x in numbers]
    return {
        f"{name}.codes": np.array(codes, dtype=np.int8),
        **_integers(f"{name}.above", [x.numerator for x in plain]),
        **_integers(f"{name}.below", [x.denominator for x in plain]),
    }


def _to_fractions(name: str, arrays: Mapping[str, Array]) -> list[Exact]:
    above, below = (_to_integers(f"{name}.{part}", arrays) for part in ("above", "below"))
    codes = arrays[f"{name}.codes"].tolist()
    return [_FLOATS[c] if c else Fraction(a, b) for c, a, b in zip(codes, above, below, strict=True)]


def _limbs(fixed: Fixed) -> Packed:
    (piece,) = fixed.pieces
    return {
        "words": np.asarray(piece.digits, dtype=np.int32),
        "unit": np.array(piece.unit),
        "places": np.array(list(fixed.special), dtype=np.int64),
        "special": np.array(list(fixed.special.values()), dtype=np.float64),
        **_fractions("bounds", [fixed.radius, fixed.scale]),
    }


def _to_limbs(arrays: Mapping[str, Array]) -> Fixed:
    words = arrays["words"]
    radius, scale = (Fraction(x) for x in _to_fractions("bounds", arrays))
    special = dict(zip(arrays["places"].tolist(), arrays["special"].tolist(), strict=True))
    return Fixed((Piece(0, words, int(arrays["unit"])),), (words.shape[1],), (0,), radius, scale, special)


def _balls(numbers: Sequence[Any]) -> Packed:
    codes: list[int] = []
    columns: tuple[list[int], ...] = ([], [], [], [])
    for x in numbers:
        found: tuple[int, ...] = (0, 0, 0, 0)
        if isinstance(x, Special):
            codes.append(_code(x.value))
        elif Ball(x).is_finite():
            codes.append(ORDINARY)
            found = (*map(int, Ball(x).mid().man_exp()), *map(int, Ball(x).rad().man_exp()))
        else:
            codes.append(UNKNOWN)
        for column, k in zip(columns, found, strict=True):
            column.append(k)
    names = ("mid", "mid.exponent", "rad", "rad.exponent")
    out: Packed = {"codes": np.array(codes, dtype=np.int8)}
    for name, column in zip(names, columns, strict=True):
        out |= _integers(name, column)
    return out


_SPECIAL = {NOT_A_NUMBER: NAN, PLUS: POSITIVE, MINUS: NEGATIVE}


def _to_balls(arrays: Mapping[str, Array]) -> list[Any]:
    columns = (_to_integers(name, arrays) for name in ("mid", "mid.exponent", "rad", "rad.exponent"))
    codes = arrays["codes"].tolist()
    return [
        _ball(*found) if c == ORDINARY else Ball.nan() if c == UNKNOWN else _SPECIAL[c]
        for c, *found in zip(codes, *columns, strict=True)
    ]


def _ball(mantissa: int, exponent: int, radius: int, radius_exponent: int) -> Any:
    """A ball of this midpoint and radius: python-flint rounds a radius that it is given up by a unit, which is taken off before.

    Only a radius that is a power of two comes back larger, by that unit; from then on it is none.
    """
    mid = Ball(flint.arf((mantissa, exponent)))
    if radius == 0:
        return mid
    shift = RADIUS - radius.bit_length()
    exact = flint.arf((radius, radius_exponent))
    if shift >= 0 and radius & (radius - 1):
        found = Ball(mid, Ball(flint.arf(((radius << shift) - 1, radius_exponent - shift))))
        if found.rad() >= Ball(exact):
            return found
    return Ball(mid, Ball(exact))
