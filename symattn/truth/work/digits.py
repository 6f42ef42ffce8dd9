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


def laid_out(v: Limbs) -> Limbs:
    """The same numbers as one piece, in the order of the tensor.

    >>> two = Fixed((Piece(0, np.array([[5, 6]]), -4), Piece(2, np.array([[1]]), 20)), (3,), (0,), Fraction(0), Fraction(1))
    >>> laid_out(Limbs(two, np.array([[2], [0]]))).fixed.pieces[0].digits.tolist(), laid_out(Limbs(two)).exact()[0]
    ([[1, 0], [0, 5]], [Fraction(5, 16), Fraction(3, 8), Fraction(1048576, 1)])
    """
    fixed, places = v.fixed, v.places.ravel()
    if (
        len(fixed.pieces) == 1
        and fixed.pieces[0].digits.shape[1] == len(places)
        and np.array_equal(places, np.arange(len(places)))
    ):
        digits = fixed.pieces[0].digits
        words = digits if digits.dtype == np.int32 else normal(digits.astype(np.int64))
        return _made(words, fixed.pieces[0].unit, v.shape, fixed, dict(fixed.special))
    unit = min((p.unit for p in fixed.pieces), default=0)
    found = [(p, normal(to_unit(p.digits.astype(np.int64), p.unit, unit))) for p in fixed.pieces]
    words = np.zeros((max((len(w) for _, w in found), default=1), math.prod(fixed.sizes)), dtype=np.int64)
    for p, w in found:
        words[len(words) - len(w) :, p.start : p.start + w.shape[1]] = w
    special = {int(k): fixed.special[int(places[k])] for k in np.flatnonzero(np.isin(places, list(fixed.special)))}
    return _made(words[:, places], unit, v.shape, fixed, special)


def _made(words: npt.NDArray[Any], unit: int, shape: tuple[int, ...], like: Fixed, special: dict[int, float]) -> Limbs:
    size = words.shape[1]
    piece = Piece(0, words.astype(np.int32), unit)
    fixed = replace(like, pieces=(piece,), sizes=(size,), order=(0,), special=special)
    return Limbs(fixed, np.arange(size).reshape(shape))


def to_unit(words: Words, unit: int, target: int) -> Words:
    """Numbers over a smaller unit: digits not yet in order.

    >>> to_unit(np.array([[1], [2]]), 0, -25).tolist()
    [[2], [4], [0]]
    """
    limbs, bits = divmod(unit - target, BITS)
    return np.concatenate([words << bits, np.zeros((limbs, words.shape[1]), dtype=np.int64)])


def normal(words: Words) -> Words:
    """The same numbers with every digit in ``[-2^23, 2^23)``; there is one more of them where that takes it.

    >>> normal(np.array([[2**23]])).tolist(), normal(np.array([[0], [-(2**24) - 1]])).tolist()
    ([[1], [-8388608]], [[-1], [-1]])
    """
    words = words.copy()
    k = len(words) - 1
    while k > 0 or (words[0] >= HALF).any() or (words[0] < -HALF).any():
        if k == 0:
            words, k = np.concatenate([np.zeros_like(words[:1]), words]), 1
        carry = (words[k] + HALF) >> BITS
        words[k] -= carry << BITS
        words[k - 1] += carry
        k -= 1
    return words


def side_by_side(parts: Sequence[tuple[Limbs, tuple[int, ...]]], start: tuple[int, ...], shape: tuple[int, ...]) -> Limbs:
    """Numbers in boxes of a larger one, each with the place where it begins; elsewhere 0. The radius is the largest of theirs.

    >>> one, two = (Limbs(Fixed((Piece(0, np.array([[1]]), u),), (1,), (0,), Fraction(0), Fraction(1))) for u in (0, -1))
    >>> side_by_side([(one, (2,)), (two, (0,))], (0,), (3,)).exact()[0]
    [Fraction(1, 2), Fraction(0, 1), Fraction(1, 1)]
    """
    pieces = [laid_out(v) for v, _ in parts]
    unit = min(v.fixed.pieces[0].unit for v in pieces)
    found = [normal(to_unit(v.fixed.pieces[0].digits.astype(np.int64), v.fixed.pieces[0].unit, unit)) for v in pieces]
    words = np.zeros((max(map(len, found)), *shape), dtype=np.int64)
    special: dict[int, float] = {}
    places = np.arange(math.prod(shape)).reshape(shape)
    for v, w, (_, begin) in zip(pieces, found, parts, strict=True):
        at = tuple(slice(b - a, b - a + n) for a, b, n in zip(start, begin, v.shape, strict=True))
        box: Any = (slice(len(words) - len(w), None), *at)
        words[box] = w.reshape(len(w), *v.shape)
        inside: Any = (*at, ...)
        there = places[inside].ravel()
        special |= {int(there[k]): x for k, x in v.fixed.special.items()}
    radius, scale = (max(getattr(v.fixed, what) for v in pieces) for what in ("radius", "scale"))
    return _made(words.reshape(len(words), -1), unit, shape, replace(pieces[0].fixed, radius=radius, scale=scale), special)


def added(a: Limbs, b: Limbs) -> Limbs:
    """The sums of numbers of one shape, none of them special: exact, so the radii add up.

    >>> one, two = (Limbs(Fixed((Piece(0, np.array([[7]]), u),), (1,), (0,), Fraction(1, 9), Fraction(1))) for u in (3, -30))
    >>> added(one, two).exact()
    ([Fraction(60129542151, 1073741824)], [Fraction(2, 9)])
    """
    pieces = [laid_out(v).fixed.pieces[0] for v in (a, b)]
    unit = min(p.unit for p in pieces)
    x, y = (to_unit(p.digits.astype(np.int64), p.unit, unit) for p in pieces)
    words = np.zeros((max(len(x), len(y)), x.shape[1]), dtype=np.int64)
    for w in (x, y):
        words[len(words) - len(w) :] += w
    radius: Fraction = a.fixed.radius + b.fixed.radius
    like = replace(a.fixed, radius=radius, scale=max(a.fixed.scale, b.fixed.scale))
    return _made(normal(words), unit, a.shape, like, {})
