r"""Numbers as float64 limbs, their products and sums: fixed-point arithmetic that NumPy does for thousands of numbers at once.

A number ``x`` with ``|x| <= 1/2`` is held in ``L`` limbs, ``x = sum over k of X[k]`` where ``X[k]`` is a multiple of
``2^(-24 (k+1))`` with ``|X[k]| <= 2^(-24 k - 1)``; the first axis of an array is that of the limbs. One *unit* is
``2^(-F)``, ``F = 24 L``.

*Products.* ``D[k] = sum over a + b = k - 1 of X[a] T[b]`` is a sum of at most ``L`` multiples of ``2^(-24 (k+1))``, each at most
``2^(46)`` of them: exact in float64 for ``L < 100``, also after an addend and a carry (each below ``2^25`` multiples). Rounding
``D[k]`` to a multiple of ``2^(-24 k)`` by adding and subtracting ``1.5 2^(52 - 24 k)`` is exact too, since ``D[k]`` is far below
``2^(51 - 24 k)``, and leaves a remainder of at most ``2^(-24 k - 1)``, which is limb ``k``; what was rounded off is carried.

*Error.* Products with ``a + b >= L`` are left out. There are ``2 L - 1 - s`` with ``a + b = s``, each at most ``2^(-24 s - 2)``;
their sum is below ``(L - 1)/4 (1 + 2^-20)`` units. The limb ``D[L]`` is rounded to a unit: half a unit more. So a product is
right within :func:`product_error` ``= (L - 1)/4 + 1`` units.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import flint
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Addend = tuple[Floats, int]

BITS = 24
"""Bits of a limb."""
MOST = 40
"""Limbs that a number may have: 960 bits."""
CHUNK = 8192
"""Numbers that are multiplied at once: their limbs fit the second cache."""


def product_error(limbs: int) -> float:
    """A bound on the error of one product, in units."""
    return (limbs - 1) / 4 + 1


class Multiplier:
    """Products of arrays of ``limbs`` limbs, at most ``most`` numbers at once, in memory that is kept.

    >>> m = Multiplier(2, 1)
    >>> third, out = from_integers([2**48 // 3], 2), np.empty((2, 1))
    >>> m.multiply(third, 0, third, 0, out)
    0
    >>> abs(to_integers(out)[0] - (2**48 // 3) ** 2 // 2**48) <= product_error(2)
    True
    """

    def __init__(self, limbs: int, most: int = CHUNK) -> None:
        self.limbs, self.most = limbs, most
        self._sums = np.empty((limbs + 1, most))
        self._carry = np.empty(most)
        self._magic = [math.ldexp(1.5, 52 - BITS * k) for k in range(limbs + 2)]

    def multiply(self, x: Floats, zx: int, t: Floats, zt: int, out: Floats, add: Sequence[Addend] = ()) -> int:
        """``out = x t + sum of add``, within :func:`product_error`.

        Parameters
        ----------
        x, t
            Arrays (limbs, numbers) whose first ``zx`` and ``zt`` limbs are 0 (and are not read).
        out
            Where the limbs go; the first ones, as many as the result says, are not written.
        add
            Arrays to add, each with its number of limbs that are 0. The sum fits the limbs of the widest operand but for a
            hundredth, which the caller knows; without addends nothing needs to be known.

        Returns
        -------
        int
            How many limbs of the product are 0.
        """
        limbs, size = self.limbs, x.shape[1]
        sums, carry = self._sums[:, :size], self._carry[:size]
        first = zx + zt + 1
        for k in range(first, limbs + 1):
            np.einsum("in,in->n", x[zx : k - zt], t[zt : k - zx][::-1], out=sums[k])
        low = min(first, limbs + 1)
        if low > limbs:
            sums[limbs], low = 0.0, limbs
        for a, z in add:
            if z < low:
                sums[z:low] = a[z:low]
                if low < limbs:
                    np.add(sums[low:limbs], a[low:limbs], out=sums[low:limbs])
                low = z
            else:
                np.add(sums[z:limbs], a[z:limbs], out=sums[z:limbs])
        if low > 0 and not add:
            sums[low - 1], low = 0.0, low - 1
        for k in range(limbs, low, -1):
            np.add(sums[k], self._magic[k], out=carry)
            np.subtract(carry, self._magic[k], out=carry)
            if k < limbs:
                np.subtract(sums[k], carry, out=out[k])
            np.add(sums[k - 1], carry, out=sums[k - 1])
        if low < limbs:
            out[low] = sums[low]
        return low

    def settle(self, x: Floats, depth: int | None = None) -> None:
        """Bring limbs that are sums of a few to the range of limbs, in place, exactly; from ``depth`` on they are."""
        carry = self._carry[: x.shape[1]]
        for k in range((self.limbs if depth is None else depth) - 1, 0, -1):
            np.add(x[k], self._magic[k], out=carry)
            np.subtract(carry, self._magic[k], out=carry)
            np.subtract(x[k], carry, out=x[k])
            np.add(x[k - 1], carry, out=x[k - 1])


def scales(limbs: int) -> Floats:
    """``2^(24 (k+1))`` for each limb: what makes limbs integers."""
    return np.array([math.ldexp(1.0, BITS * (k + 1)) for k in range(limbs)])


def from_integers(values: Sequence[int], limbs: int) -> Floats:
    """Integers, in units, as limbs: exact for ``|v| <= 2^(F-1)``.

    >>> from_integers([5, -(2**24)], 2)[:, 0].tolist() == [0.0, 5 * 2.0**-48]
    True
    """
    half = 1 << (BITS - 1)
    raised = sum(half << (BITS * k) for k in range(limbs - 1))  # then every digit below the first is balanced by taking half off
    width = 8 + 3 * (limbs - 1)
    raw = b"".join((int(v) + raised).to_bytes(width, "big", signed=True) for v in values)
    octets = np.frombuffer(raw, dtype=np.uint8).reshape(len(values), width)
    out = np.empty((limbs, len(values)))
    out[0] = np.ldexp(np.ascontiguousarray(octets[:, :8]).view(">i8").reshape(-1).astype(np.float64), -BITS)
    for k in range(1, limbs):
        three = octets[:, 5 + 3 * k : 8 + 3 * k].astype(np.int64)
        digit = (three[:, 0] << 16) + (three[:, 1] << 8) + three[:, 2] - half
        out[k] = np.ldexp(digit.astype(np.float64), -BITS * (k + 1))
    return out


def to_integers(x: Floats) -> list[int]:
    """Limbs (limbs, numbers) as integers, in units: exact.

    >>> to_integers(from_integers([2**47 - 1, -7], 2)) == [2**47 - 1, -7]
    True
    """
    limbs = x.shape[0]
    return joined((x * scales(limbs).reshape(-1, 1)).astype(np.int64))


def joined(digits: npt.NDArray[np.int64]) -> list[int]:
    """``sum over k of digits[k] 2^(24 (L-1-k))`` of integers (limbs, numbers) as large integers."""
    parts = digits.astype(np.int64, copy=True)
    for k in range(parts.shape[0] - 1, 0, -1):
        parts[k - 1] += parts[k] >> BITS
        parts[k] &= (1 << BITS) - 1
    size = parts.shape[1]
    octets = np.empty((size, 8 + 3 * (parts.shape[0] - 1)), dtype=np.uint8)
    octets[:, :8] = np.ascontiguousarray(parts[0].astype(">i8")).view(np.uint8).reshape(size, 8)
    for k in range(1, parts.shape[0]):
        octets[:, 5 + 3 * k : 8 + 3 * k] = np.ascontiguousarray(parts[k].astype(">i4")).view(np.uint8).reshape(size, 4)[:, 1:]
    step, raw = octets.shape[1], octets.tobytes()
    return [int.from_bytes(raw[a : a + step], "big", signed=True) for a in range(0, len(raw), step)]


def rounded(x: flint.arb, unit: int) -> int:
    """The midpoint of a ball as an integer multiple of ``2^unit``, to nearest: off by at most half a unit and its radius.

    >>> rounded(flint.arb(5) / 4, 0), rounded(flint.arb(3), -2), rounded(flint.arb(-3) / 2, 0)
    (1, 12, -1)
    """
    mantissa, exponent = (int(v) for v in x.mid().man_exp())
    shift = exponent - unit
    return mantissa << shift if shift >= 0 else ((mantissa >> (-shift - 1)) + 1) >> 1
