"""Fixed-point numbers of the limb engine laid out in the order of their tensor: brought to one unit, put side by side, added.

A number is ``sum over k of words[k] 2^(24 (L-1-k)) 2^unit``. All of it is integer arithmetic on whole arrays and exact; digits
are kept in ``[-2^23, 2^23)``, in which a number of L digits can be written in one way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from symattn.truth.limbs.fixed import Fixed, Piece
from symattn.truth.limbs.products import BITS
from symattn.truth.limbs.values import Limbs

__all__ = ["added", "laid_out", "side_by_side"]

Words = npt.NDArray[np.int64]
HALF = 1 << (BITS - 1)
CHUNK = 1 << 11
"""Numbers that are brought into order at a time."""
SPARE = 2
"""Digits that carries may add: one of 63 bits goes into two of 24."""


def laid_out(v: Limbs) -> Limbs:
    """The same numbers as one piece, in the order of the tensor.

    >>> two = Fixed((Piece(0, np.array([[5, 6]]), -4), Piece(2, np.array([[1]]), 20)), (3,), (0,), Fraction(0), Fraction(1))
    >>> laid_out(Limbs(two, np.array([[2], [0]]))).fixed.pieces[0].digits.tolist(), laid_out(Limbs(two)).exact()[0]
    ([[1, 0], [0, 5]], [Fraction(5, 16), Fraction(3, 8), Fraction(1048576, 1)])
    """
    fixed, places = v.fixed, v.places.ravel()
    whole = len(places) == math.prod(fixed.sizes) and np.array_equal(places, np.arange(len(places)))
    unit = min((p.unit for p in fixed.pieces), default=0)
    if len(fixed.pieces) == 1 and fixed.pieces[0].digits.dtype == np.int32 and fixed.pieces[0].start == 0:
        words = fixed.pieces[0].digits
    else:
        words = united(fixed.pieces, unit, math.prod(fixed.sizes))
    if whole and words.shape[1] == len(places):
        return _made(words, unit, v.shape, fixed, dict(fixed.special))
    special = {int(k): fixed.special[int(places[k])] for k in np.flatnonzero(np.isin(places, list(fixed.special)))}
    return _made(words[:, places], unit, v.shape, fixed, special)


def _made(words: npt.NDArray[Any], unit: int, shape: tuple[int, ...], like: Fixed, special: dict[int, float]) -> Limbs:
    size = words.shape[1]
    piece = Piece(0, words.astype(np.int32, copy=False), unit)
    fixed = replace(like, pieces=(piece,), sizes=(size,), order=(0,), special=special)
    return Limbs(fixed, np.arange(size).reshape(shape))


def united(pieces: Sequence[Piece], unit: int, size: int) -> npt.NDArray[np.int32]:
    """The sums, place by place, of pieces of a row of numbers, over a unit no larger than theirs; 0 where no piece is.

    Digits are in order, with as many more of them as that takes. A few thousand numbers at a time, so that what is in between
    stays in the cache: memory that is asked for anew costs more than the additions.

    >>> united([Piece(1, np.array([[1], [2]]), 0), Piece(0, np.array([[3, 4]]), -25)], -25, 2).tolist()
    [[0, 2], [0, 4], [3, 4]]
    """
    shifts = [divmod(p.unit - unit, BITS) for p in pieces]
    count = SPARE + max((len(p.digits) + limbs for p, (limbs, _) in zip(pieces, shifts, strict=True)), default=1)
    out = np.empty((count, size), dtype=np.int32)
    room = np.empty((count, min(size, CHUNK)), dtype=np.int64)
    for first in range(0, size, CHUNK):
        last = min(first + CHUNK, size)
        words = room[:, : last - first]
        words[...] = 0
        for p, (limbs, bits) in zip(pieces, shifts, strict=True):
            b, e = max(first, p.start), min(last, p.start + p.digits.shape[1])
            if b < e:
                part = p.digits[:, b - p.start : e - p.start].astype(np.int64)
                part <<= bits
                words[count - limbs - len(part) : count - limbs, b - first : e - first] += part
        out[:, first:last] = normal(words)
    needless = next((k for k in range(SPARE) if out[k].any()), SPARE)
    return out[needless:]


def normal(words: Words) -> Words:
    """The same numbers with every digit but the first in ``[-2^23, 2^23)``: what is beyond goes to the one before, in place.

    >>> normal(np.array([[0], [2**23]])).tolist(), normal(np.array([[0], [0], [-(2**24) - 1]])).tolist()
    ([[1], [-8388608]], [[0], [-1], [-1]])
    """
    for k in range(len(words) - 1, 0, -1):
        carry = (words[k] + HALF) >> BITS
        words[k - 1] += carry
        carry <<= BITS
        words[k] -= carry
    return words


def side_by_side(parts: Sequence[tuple[Limbs, tuple[int, ...]]], start: tuple[int, ...], shape: tuple[int, ...]) -> Limbs:
    """Numbers in boxes of a larger one, each with the place where it begins; elsewhere 0. The radius is the largest of theirs.

    >>> one, two = (Limbs(Fixed((Piece(0, np.array([[1]]), u),), (1,), (0,), Fraction(0), Fraction(1))) for u in (0, -1))
    >>> side_by_side([(one, (2,)), (two, (0,))], (0,), (3,)).exact()[0]
    [Fraction(1, 2), Fraction(0, 1), Fraction(1, 1)]
    """
    pieces = [laid_out(v) for v, _ in parts]
    unit = min(v.fixed.pieces[0].unit for v in pieces)
    found = [_over(v.fixed.pieces[0], unit) for v in pieces]
    words = np.zeros((max(map(len, found)), *shape), dtype=np.int32)
    special: dict[int, float] = {}
    places = np.arange(math.prod(shape)).reshape(shape) if any(v.fixed.special for v in pieces) else None
    for v, w, (_, begin) in zip(pieces, found, parts, strict=True):
        at = tuple(slice(b - a, b - a + n) for a, b, n in zip(start, begin, v.shape, strict=True))
        box: Any = (slice(len(words) - len(w), None), *at)
        words[box] = w.reshape(len(w), *v.shape)
        if places is not None:
            inside: Any = (*at, ...)
            there = places[inside].ravel()
            special |= {int(there[k]): x for k, x in v.fixed.special.items()}
    radius, scale = (max(getattr(v.fixed, what) for v in pieces) for what in ("radius", "scale"))
    return _made(words.reshape(len(words), -1), unit, shape, replace(pieces[0].fixed, radius=radius, scale=scale), special)


def _over(p: Piece, unit: int) -> npt.NDArray[np.int32]:
    """The digits of a piece that is laid out, over a unit no larger than its own."""
    return np.asarray(p.digits, dtype=np.int32) if p.unit == unit else united([p], unit, p.digits.shape[1])


def added(a: Limbs, b: Limbs) -> Limbs:
    """The sums of numbers of one shape, none of them special: exact, so the radii add up.

    >>> one, two = (Limbs(Fixed((Piece(0, np.array([[7]]), u),), (1,), (0,), Fraction(1, 9), Fraction(1))) for u in (3, -30))
    >>> added(one, two).exact()
    ([Fraction(60129542151, 1073741824)], [Fraction(2, 9)])
    """
    pieces = [laid_out(v).fixed.pieces[0] for v in (a, b)]
    unit = min(p.unit for p in pieces)
    words = united(pieces, unit, math.prod(a.shape))
    radius: Fraction = a.fixed.radius + b.fixed.radius
    like = replace(a.fixed, radius=radius, scale=max(a.fixed.scale, b.fixed.scale))
    return _made(words, unit, a.shape, like, {})
