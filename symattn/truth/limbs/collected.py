"""The outputs as they come in, block by block, with their errors: coefficients times exact sums, rounded to limbs once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import sympy as sp

from symattn.errors import UnfitError
from symattn.program import Tensor, subscripts_of
from symattn.readings.specials import Ball, Special
from symattn.truth.limbs.data import Bools, Data
from symattn.truth.limbs.fixed import Fixed, Piece
from symattn.truth.limbs.materials import column
from symattn.truth.limbs.products import BITS, CHUNK, Multiplier, from_integers, product_error, scales, to_integers
from symattn.truth.limbs.rows import Rows, radii, upper
from symattn.truth.limbs.slices import Floats
from symattn.truth.limbs.sums import Words

ABOVE = 1 + 2.0**-20
"""What small things are worth in a bound: roundings of float64, the error of a sum beside its size."""
KEYS = 512
"""Keys whose sums are turned into limbs at once."""
KEPT = 1
"""Limbs of an output beyond those of the computation."""


class Output:
    """What all kinds share: pieces, the worst error in units of ``2^-F``, the scale."""

    def __init__(self, target: Tensor, data: Data, limbs: int) -> None:
        self.target, self.data, self.limbs = target, data, limbs
        self.pieces: list[Piece] = []
        self.error = 0.0
        self.scale = 0.0
        self.special: dict[int, float] = {}
        sub = subscripts_of(target)
        self.channels = data.axes.channels(target) if sub else ()
        self.columns = math.prod(data.extents.shape(self.channels))

    def axes(self) -> tuple[sp.Symbol, ...]:
        """The indices in the order of the engine."""
        return (*self.data.axes.batch, *self.data.axes.rows, *self.channels)

    def fixed(self) -> Fixed:
        """The tensor."""
        own = self.axes()
        order = tuple(own.index(a) for a in subscripts_of(self.target))
        if len(order) != len(own):
            raise UnfitError(f"`{self.target}` lacks an index of its pairs")
        radius = Fraction(self.error * (1 + 2.0**-20)) / 2 ** (BITS * self.limbs)
        sizes = self.data.extents.shape(own)
        return Fixed(tuple(self.pieces), sizes, order, radius, Fraction(self.scale), self.special)

    def put(self, start: int, limbs: Floats, exponent: int) -> float:
        """Keep the first limbs of numbers relative to ``2^exponent``; what is cut off, in units of ``2^-F``."""
        kept, cut = limbs[: self.limbs + KEPT], limbs[self.limbs + KEPT :]
        whole = kept * scales(len(kept)).reshape(-1, 1)
        self.pieces.append(Piece(start, whole.astype(np.int32), exponent - BITS * len(kept)))
        return 2.0 ** (exponent - BITS * KEPT) if cut.any() else 0.0

    def product(self, coefficients: Sequence[Ball], words: Words) -> tuple[Floats, int]:
        """Coefficients (one a number of the first axis) times sums, relative to a power of two."""
        found = words.limbs()
        wide = len(found)
        first = column(coefficients, wide)
        exponent = words.top + first.exponent
        rows, columns = found.shape[1], math.prod(found.shape[2:])
        x = found.reshape(wide, rows * columns)
        out = np.empty_like(x)
        multiplier = Multiplier(wide)
        step = max(1, CHUNK // columns)
        for a in range(0, rows, step):
            b = min(rows, a + step)
            t = np.repeat(first.limbs[:, a:b], columns, axis=1)
            self._multiplied(multiplier, x[:, a * columns : b * columns], t, out[:, a * columns : b * columns])
        return out, exponent

    @staticmethod
    def _multiplied(multiplier: Multiplier, x: Floats, t: Floats, out: Floats) -> None:
        for a in range(0, x.shape[1], CHUNK):
            b = min(x.shape[1], a + CHUNK)
            low = multiplier.multiply(x[:, a:b], 0, t[:, a:b], 0, out[:, a:b])
            out[:low, a:b] = 0.0

    def total(self, parts: Sequence[tuple[Floats, int]]) -> tuple[Floats, int]:
        """The sum of numbers that are relative to different powers of two."""
        if len(parts) == 1:
            return parts[0]
        wide = parts[0][0].shape[0]
        exponent = max(e for _, e in parts) + len(parts).bit_length()
        lists = [[v >> (exponent - e) for v in to_integers(x)] for x, e in parts]
        return from_integers([sum(v) for v in zip(*lists, strict=True)], wide), exponent


RowPart = tuple[Sequence[Ball], Words, Floats, Floats]


class RowOutput(Output):
    """A tensor on rows, with or without channels."""

    def __init__(self, target: Tensor, data: Data, limbs: int, expr: sp.Expr | None = None) -> None:
        super().__init__(target, data, limbs)
        self.least = 1.0 if expr is not None and expr.has(sp.log) else 0.0

    def add(self, batch: int, rows: slice, parts: Sequence[RowPart]) -> None:
        """A block: ``sum of coefficient times sums``, with the errors and the sizes of the sums."""
        found = []
        error = np.zeros(rows.stop - rows.start)
        scale = np.zeros(rows.stop - rows.start)
        for coefficients, words, errors, sizes in parts:
            found.append(self.product(coefficients, words))
            most = upper(coefficients)
            wide = BITS * (len(words.words) - self.limbs)
            slack = found[-1][1] + math.log2(2 + product_error(len(words.words))) - wide
            error += most * errors + radii(coefficients, BITS * self.limbs) * sizes * ABOVE + 2.0 ** (slack + 2)
            error += most * 4 * (words.added + 1) * 2.0 ** (words.unit + BITS * self.limbs)
            scale += most * sizes
        limbs, exponent = self.total(found)
        cut = self.put((batch * self.data.rows + rows.start) * self.columns, limbs, exponent)
        if any(sizes.any() for *_, sizes in parts):
            self.error = max(self.error, float(error.max(initial=0.0)) * ABOVE + cut)
            self.scale = max(self.scale, float(scale.max(initial=0.0)))

    def add_balls(self, batch: int, rows: slice, values: Sequence[Any]) -> None:
        """A block of a tensor without channels, as balls or special values."""
        start = batch * self.data.rows + rows.start
        for k, v in enumerate(values):
            if isinstance(v, Special):
                self.special[start + k] = v.value
            elif not Ball(v).is_finite():
                raise UnfitError(f"nothing is known of `{self.target}` in some row")
        finite = [Ball(0) if isinstance(v, Special) else Ball(v) for v in values]
        found = column(finite, self.limbs + KEPT)
        exact = radii(finite, BITS * self.limbs)
        self.scale = max(self.scale, self.least, float(found.upper.max(initial=0.0)))
        error = float(exact.max(initial=0.0)) + 2.0 ** (found.exponent - BITS * KEPT)
        self.put(start, found.limbs, found.exponent)
        self.error = max(self.error, error)


KeyPart = tuple[Any, Words, float, float, float]


class KeyOutput(Output):
    """A tensor on keys and channels."""

    def axes(self) -> tuple[sp.Symbol, ...]:
        """The indices in the order of the engine."""
        return (*self.data.axes.batch, self.data.axes.key, *self.channels)

    def add(self, batch: int, parts: Sequence[KeyPart]) -> None:
        """A batch: ``sum of coefficient times sums``, each with its error, its scale, and a bound of its values."""
        for ball, *_ in parts:
            if isinstance(ball, Special) or not Ball(ball).is_finite():
                raise UnfitError(f"a coefficient of `{self.target}` has no value")
        for a in range(0, self.data.keys, KEYS):
            self._some(batch, slice(a, min(self.data.keys, a + KEYS)), parts)

    def _some(self, batch: int, keys: slice, parts: Sequence[KeyPart]) -> None:
        """Some keys of a batch."""
        found, error = [], 0.0
        for ball, sums, own, _, bound in parts:
            words = sums.part(keys)
            limbs, exponent = self.product([Ball(ball)] * (keys.stop - keys.start), words)
            found.append((limbs, exponent))
            most, radius = float(upper([ball])[0]), float(radii([ball], BITS * self.limbs)[0])
            wide = BITS * (len(words.words) - self.limbs)
            error += most * own + radius * bound * ABOVE + 2.0 ** (exponent - wide + 2) * (2 + product_error(len(words.words)))
            error += most * 4 * (words.added + 1) * 2.0 ** (words.unit + BITS * self.limbs)
        limbs, exponent = self.total(found)
        cut = self.put((batch * self.data.keys + keys.start) * self.columns, limbs, exponent)
        if any(bound for *_, bound in parts):
            scale = sum(float(upper([ball])[0]) * term for ball, _, _, term, _ in parts)
            self.scale = max(self.scale, scale)
            self.error = max(self.error, error * ABOVE + cut)


class PairOutput(Output):
    """A tensor on pairs."""

    def axes(self) -> tuple[sp.Symbol, ...]:
        """The indices in the order of the engine."""
        return (*self.data.axes.batch, *self.data.axes.rows, self.data.axes.key)

    def add(
        self, batch: int, rows: slice, keys: slice, tile: Floats, exponent: int, ball: Ball, worst: float, size: float
    ) -> None:
        """Some keys of a block: a coefficient times limbs (rows, limbs, keys)."""
        limbs = self.limbs
        first = column([ball], limbs)
        multiplier = Multiplier(limbs, tile.shape[2])
        t = np.repeat(first.limbs, tile.shape[2], axis=1)
        most = float(first.upper[0])
        error = most * worst + float(first.error[0]) * size + (2 + product_error(limbs)) * 2.0 ** (exponent + first.exponent)
        for k in range(tile.shape[0]):
            start = ((batch * self.data.rows) + rows.start + k) * self.data.keys + keys.start
            x = np.ascontiguousarray(tile[k])
            out = x
            if not (ball.is_exact() and ball == 1):
                out = np.zeros_like(x)
                low = multiplier.multiply(x, 0, t, 0, out)
                out[:low] = 0.0
            at = exponent if out is x else exponent + first.exponent
            self.put(start, out, at)
        self.error = max(self.error, error * (1 + 2.0**-20))
        self.scale = max(self.scale, most * size)


class TotalOutput(Output):
    """A tensor that is a sum over rows: balls are added."""

    def __init__(self, target: Tensor, data: Data, limbs: int) -> None:
        super().__init__(target, data, limbs)
        self.sums: dict[tuple[int, ...], Any] = {}
        self.sizes: dict[tuple[int, ...], float] = {}

    def add(self, rows: Rows, empty: Bools, expr: sp.Expr) -> None:
        """A block of rows."""
        values = rows.evaluate(expr)
        places = [rows.whole(a) for a in subscripts_of(self.target)]
        for k, v in enumerate(values):
            if isinstance(v, Special) or not Ball(v).is_finite():
                if not empty[k]:
                    raise UnfitError(f"a term of `{self.target}` has no finite value")
                v = Ball(0)
            at = tuple(int(p[k]) for p in places)
            self.sums[at] = self.sums.get(at, Ball(0)) + v
            self.sizes[at] = self.sizes.get(at, 0.0) + float(abs(Ball(v)).upper())

    def axes(self) -> tuple[sp.Symbol, ...]:
        """The indices in the order of the tensor itself."""
        return subscripts_of(self.target)

    def fixed(self) -> Fixed:
        """The tensor."""
        sizes = self.data.extents.shape(self.axes())
        values = [self.sums.get(at, Ball(0)) for at in np.ndindex(*sizes)]
        found = column(values, self.limbs + KEPT)
        self.error = float(radii(values, BITS * self.limbs).max(initial=0.0)) + 2.0 ** (found.exponent - BITS * KEPT)
        self.put(0, found.limbs, found.exponent)
        self.scale = max(self.sizes.values(), default=0.0)
        return super().fixed()
