r"""Materials of a block of rows: exponentials times a row's coefficient times an exact number and a row's own, in limbs.

Every material ``X`` of a pair is held with three numbers a row: ``|X_ij| <= size_i E_ij`` and
``|error of X_ij| <= flat_i + steep_i E_ij`` with the exponential ``0 <= E_ij <= 1``, the errors in units of ``2^-F``. With
the sum ``mass_i`` of ``E_ij`` over the keys, sums over keys of ``X_ij A_je`` are right within
``max |A| (keys flat_i + steep_i mass_i)``.

- ``E`` itself: size 1, flat twice the error of the exponential (its half is what the tables give), steep 0.
- ``P = E a`` for a row's ``a``, a ball of radius ``r``, rounded to limbs: size ``|a|``, flat ``|a| flat + product``,
  steep ``r + rounding``.
- ``S = P (x + b)`` for an exact ``x``, a row's ``b`` of radius ``r`` and ``|x + b| <= t``: size ``|a| t``,
  flat ``t flat + product``, steep ``t steep + |a| (r + roundings)``; ``t`` is taken with its own error included.

``product`` is :func:`symattn.truth.limbs.products.product_error` times the power of two that the limbs are relative to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symattn.errors import UnfitError
from symattn.truth.limbs.data import Bools
from symattn.truth.limbs.products import BITS, CHUNK, Multiplier, from_integers, product_error, rounded
from symattn.truth.limbs.rows import radii, upper
from symattn.truth.limbs.scores import Dots
from symattn.truth.limbs.slices import Floats

MOST = 2.0**400
"""Coefficients of rows beyond this are not taken: bounds are float64 numbers."""
ABOVE = 1 + 2.0**-30
"""What a few roundings of float64 in a bound are worth."""


@dataclass(frozen=True)
class Errors:
    """``size``, ``flat``, ``steep`` of a material, one number a row."""

    size: Floats
    flat: Floats
    steep: Floats

    def of_row_sum(self, keys: int, mass: Floats) -> Floats:
        """The error of ``sum_j X_ij A_je`` for ``|A| <= 1``."""
        return np.asarray((keys * self.flat + self.steep * mass) * ABOVE)


@dataclass(frozen=True)
class Column:
    """Balls of the rows of a block as limbs relative to ``2^exponent``, with bounds."""

    limbs: Floats
    exponent: int
    upper: Floats
    error: Floats

    @property
    def is_zero(self) -> bool:
        """Whether all of them are exactly 0."""
        return not self.limbs.any() and not self.error.any()


def column(values: Sequence[Any], limbs: int, least: int | None = None) -> Column:
    """Balls as limbs: the error is the radius and half a unit of rounding, in units of ``2^-F``.

    Parameters
    ----------
    values
        Finite balls.
    limbs
        How many.
    least
        Exponent at least.
    """
    bound = upper(values)
    if not (bound <= MOST).all():
        raise UnfitError("a coefficient of a row is too large")
    exponent = exponent_for(float(bound.max(initial=0.0)))
    exponent = exponent if least is None else max(exponent, least)
    unit = exponent - BITS * limbs
    found = from_integers([rounded(v, unit) for v in values], limbs)
    error = radii(values, BITS * limbs) + np.array([0.0 if v.is_exact() and not v else 2.0 ** (exponent - 1) for v in values])
    return Column(found, exponent, bound, np.asarray(error * ABOVE))


def exponent_for(bound: float) -> int:
    """The least exponent with ``bound <= 2^(exponent-1)``.

    >>> exponent_for(1.0), exponent_for(0.75), exponent_for(3.0)
    (2, 1, 3)
    """
    return math.frexp(bound)[1] + 1 if bound > 0 else 0


class Scaled:
    """``P = E a`` on the pairs of a block."""

    def __init__(self, factor: Column, base: Errors, exponent: int, multiplier: Multiplier) -> None:
        self.factor, self.multiplier = factor, multiplier
        self.exponent = exponent + factor.exponent
        product = product_error(multiplier.limbs) * 2.0**self.exponent
        self.errors = Errors(
            base.size * factor.upper * ABOVE,
            np.asarray((base.flat * factor.upper * ABOVE + product) * ABOVE),
            np.asarray((base.steep * factor.upper + base.size * factor.error) * ABOVE),
        )

    def tile(self, exponential: Floats, keep: Bools | None) -> Floats:
        """``P`` of some keys, from the exponentials (rows, limbs, keys) of these."""
        out = np.empty(exponential.shape)
        limbs, size = exponential.shape[1], exponential.shape[2]
        buffer = np.empty((limbs, _chunk(exponential)))
        for a, b in _groups(exponential):
            x = np.ascontiguousarray(exponential[a:b].transpose(1, 0, 2)).reshape(limbs, -1)
            t = np.repeat(self.factor.limbs[:, a:b], size, axis=1)
            _product(self.multiplier, x, t, buffer[:, : x.shape[1]], out[a:b])
            if keep is not None:
                np.multiply(out[a:b], keep[a:b, None, :], out=out[a:b])
        return out


class Shifted:
    """``S = P (x + b)`` on the pairs of a block."""

    def __init__(
        self, scaled: Scaled, dots: Sequence[tuple[Dots, Bools | None]], rest: Column, rows: slice, least: int | None
    ) -> None:
        self.scaled, self.dots, self.rest, self.rows = scaled, dots, rest, rows
        self.multiplier = scaled.multiplier
        limbs = self.multiplier.limbs
        reach = sum((d.bound[rows] for d, _ in dots), rest.upper) * ABOVE
        exponent = max(exponent_for(float(reach.max(initial=0.0))), rest.exponent)
        self.inner = exponent if least is None else max(exponent, least)
        self.exponent = scaled.exponent + self.inner
        count = 1 + sum(d.left.count * d.right.count for d, _ in dots)
        self.rest_limbs = lowered(rest.limbs, self.inner - rest.exponent)
        error = rest.error + count * 2.0**self.inner
        wide = reach + error * 2.0 ** (-BITS * limbs)
        product = product_error(limbs) * 2.0**self.exponent
        e = scaled.errors
        self.errors = Errors(
            np.asarray(e.size * reach * ABOVE),
            np.asarray((e.flat * wide + product) * ABOVE),
            np.asarray((e.steep * wide + e.size * error) * ABOVE),
        )

    def tile(self, scaled: Floats, keys: slice) -> Floats:
        """``S`` of some keys, from ``P`` (rows, limbs, keys) of these."""
        out = np.empty(scaled.shape)
        limbs, size = scaled.shape[1], scaled.shape[2]
        parts = [(d, keep, d.products(self.rows, keys)) for d, keep in self.dots]
        chunk = _chunk(scaled)
        buffer, sums, work = np.empty((limbs, chunk)), np.empty((limbs, chunk)), np.empty((2, chunk))
        for a, b in _groups(scaled):
            count = (b - a) * size
            x = np.ascontiguousarray(scaled[a:b].transpose(1, 0, 2)).reshape(limbs, -1)
            u = sums[:, :count]
            np.copyto(u.reshape(limbs, b - a, size), self.rest_limbs[:, a:b, None])
            depth = 1
            for dots, keep, products in parts:
                for k, g in products:
                    values = g[a:b] if keep is None else np.where(keep[a:b, keys], g[a:b], 0.0)
                    unit = dots.top - dots.width * k - self.inner
                    depth = max(depth, _spread(values.reshape(-1), unit, u, work[:, :count]))
            self.multiplier.settle(u, depth)
            _product(self.multiplier, x, u, buffer[:, :count], out[a:b])
        return out


def _spread(values: Floats, unit: int, limbs: Floats, work: Floats) -> int:
    """Add integers below ``2^53`` in units of ``2^unit`` to limbs, off by a unit of the last limb at most; the limbs touched."""
    count = limbs.shape[0]
    last = math.ceil(-unit / BITS) - 1
    first = max(0, (-unit - 53) // BITS)
    rest, part = work
    np.multiply(values, math.ldexp(1.0, max(unit, -1000)), out=rest)
    for k in range(first, min(last, count - 1) + 1):
        if k == last:
            np.add(limbs[k], rest, out=limbs[k])
            break
        magic = math.ldexp(1.5, 52 - BITS * (k + 1))
        np.add(rest, magic, out=part)
        np.subtract(part, magic, out=part)
        np.add(limbs[k], part, out=limbs[k])
        np.subtract(rest, part, out=rest)
    return max(1, min(last, count - 1) + 1)


def lowered(limbs: Floats, bits: int) -> Floats:
    """Limbs times ``2^-bits``, rounded to the last limb.

    >>> lowered(from_integers([2**40], 2), 3)[:, 0].tolist() == from_integers([2**37], 2)[:, 0].tolist()
    True
    """
    if bits == 0:
        return limbs
    out, rest = np.zeros_like(limbs), np.zeros(limbs.shape[1:])
    pieces = np.ldexp(limbs, -bits)
    for k in range(limbs.shape[0]):
        magic = math.ldexp(1.5, 52 - BITS * (k + 1))
        for source in range(max(0, k - bits // BITS - 1), k + 1):
            part = (pieces[source] + magic) - magic
            out[k] += part
            pieces[source] -= part
    rest = pieces.sum(axis=0)
    magic = math.ldexp(1.5, 52 - BITS * limbs.shape[0])
    out[-1] += (rest + magic) - magic
    for k in range(limbs.shape[0] - 1, 0, -1):
        magic = math.ldexp(1.5, 52 - BITS * k)
        carry = (out[k] + magic) - magic
        out[k] -= carry
        out[k - 1] += carry
    return out


def _product(multiplier: Multiplier, x: Floats, t: Floats, buffer: Floats, out: Floats) -> None:
    low = multiplier.multiply(x, 0, t, 0, buffer)
    buffer[:low] = 0.0
    rows, limbs, size = out.shape
    np.copyto(out.transpose(1, 0, 2), buffer.reshape(limbs, rows, size))


def _chunk(block: Floats) -> int:
    rows, _, size = block.shape
    return min(rows, max(1, CHUNK // size)) * size


def _groups(block: Floats) -> list[tuple[int, int]]:
    rows, _, size = block.shape
    step = max(1, CHUNK // size)
    return [(a, min(rows, a + step)) for a in range(0, rows, step)]
