"""One block of rows: its exponentials, the sums that its rows ask for, and its materials tile by tile.

What a block needs is made when it is asked for: the exponentials of a score once for all keys of the block, the sums over keys,
the balls of the rows; then, pass by pass, the materials, each handed to every sum that takes it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp

from symattn.errors import UnfitError
from symattn.program import name_of
from symattn.readings.specials import Ball, Special
from symattn.truth.limbs.data import Bools
from symattn.truth.limbs.forms import Conditions, Score
from symattn.truth.limbs.gathered import KeySums, Matrix, RowSums, inner_products
from symattn.truth.limbs.materials import Errors, Scaled, Shifted, column
from symattn.truth.limbs.products import BITS, scales
from symattn.truth.limbs.rows import Column, Rows, dyadic
from symattn.truth.limbs.scores import Scores
from symattn.truth.limbs.slices import EXACT, Floats
from symattn.truth.limbs.steps import Count, KeyMatrix, Material, Pairs, RowMatrix, RowStep, RowTotal, Step, Sum, Weighed
from symattn.truth.limbs.sums import Words
from symattn.truth.limbs.tables import exponential_error

if TYPE_CHECKING:
    from symattn.truth.limbs.engine import InBatch

TILE = 256
"""Keys of a tile of materials."""


class Block:
    """One block of rows."""

    def __init__(self, batch: InBatch, rows: slice) -> None:
        self.batch, self.here = batch, rows
        self.data, self.limbs = batch.data, batch.limbs
        self.count = rows.stop - rows.start
        self.rows = Rows(self.data, batch.batch, rows, self.make)
        self.where, self.keys, self.keep = self._kept()
        self.length = self.keys.stop - self.keys.start
        self.kept_keys = np.full(self.count, self.length) if self.keep is None else self.keep.sum(axis=1)
        self.empty = self.kept_keys == 0
        self.exponentials: dict[Score, Floats] = {}
        self.mass: dict[Score, Floats] = {}
        self.sums: dict[tuple[Any, Any], RowSums] = {}
        self.formed: dict[Material, tuple[Scaled, Shifted | None]] = {}
        self.weighed: dict[Weighed, Words] = {}

    def _kept(self) -> tuple[Conditions, slice, Bools | None]:
        """The points that the scores keep, and the range of keys that has some."""
        found = {s.where for s in self.batch.engine.plan.shifts}
        if len(found) != 1:
            raise UnfitError("two scores are kept at different points")
        (where,) = found
        keys = slice(0, self.data.keys)
        keep = self.data.keep(where, self.batch.batch, self.here, keys) if where else None
        if keep is not None:
            some = np.flatnonzero(keep.any(axis=0))
            keys = slice(int(some[0]), int(some[-1]) + 1) if some.size else slice(0, 1)
            keep = keep[:, keys]
            keep = None if keep.all() else keep
        return where, keys, keep

    def close(self) -> None:
        """Let go of the arrays: rows and block know each other, and would wait for the collector."""
        for kept in (self.exponentials, self.sums, self.weighed, self.formed):
            kept.clear()

    # what rows ask for

    def make(self, name: str) -> Column:
        """A tensor on rows, the first time it is asked for."""
        engine = self.batch.engine
        if name in engine.score_of:
            self.exponential(engine.score_of[name])
            return self.rows.known[name]
        step = engine.makers[name]
        if isinstance(step, RowStep):
            values = self.rows.evaluate(step.expr, step.where)
            if step.summed:
                values = [Ball(0) if e else v for v, e in zip(values, self.empty.tolist(), strict=True)]
            return values
        if isinstance(step, Count):
            return [Ball(int(v)) for v in self._counts(step.where).tolist()]
        if isinstance(step, Sum):
            return self._sum(step)
        assert isinstance(step, Weighed)
        return self._weighed_column(step)

    def _counts(self, where: Conditions) -> Any:
        if where == self.where:
            return self.kept_keys
        keep = self.data.keep(where, self.batch.batch, self.here, slice(0, self.data.keys))
        return np.full(self.count, self.data.keys) if keep is None else keep.sum(axis=1)

    def exponential(self, score: Score) -> Floats:
        """``exp(-c x)/2`` of the pairs of the block: (rows, limbs, keys). Makes the shifts of its rows too."""
        if score not in self.exponentials:
            batch = self.batch
            if score not in batch.scores:
                batch.scores[score] = Scores(score, self.data, batch.batch, self.rows, batch.multiplier)
            scores = batch.scores[score]
            words, shifts = scores.block(self.rows, self.here, self.keys, self.keep)
            self.rows.known[name_of(batch.engine.plan.shifts[score])] = shifts
            out = np.empty((self.count, self.limbs, self.length))
            scores.exponentials_into(words, self.keep, out)
            self.exponentials[score] = out
            top = out[:, :2].sum(axis=(1, 2)) * 2
            self.mass[score] = np.asarray((top + self.length * 2.0**-40) * (1 + 2.0**-30))
        return self.exponentials[score]

    def base(self, score: Score) -> Errors:
        """The bounds of an exponential."""
        self.exponential(score)
        error = 2 * exponential_error(self.batch.scores[score].digits, self.limbs)
        one = np.ones(self.count)
        return Errors(one, error * one, 0 * one)

    def _sum(self, step: Sum) -> Column:
        block = self.exponential(step.score)
        flat = self.base(step.score).flat
        if step.dot is None:
            whole = (block.sum(axis=2) * scales(self.limbs)).astype(np.int64)
            words = Words((self.count,), 1 + self.length.bit_length(), self.limbs + 3)
            for k in range(self.limbs):
                words.add(whole[:, k], 1 - BITS * (k + 1))
            return self._balls(words, self.kept_keys * flat)
        gathered = self.gathered(step.score, step.dot.right)
        left = self.batch.matrix(step.dot.left, False)
        words = inner_products(gathered, left.slices, self.here)
        dots = self.batch.dots(step.dot)
        return self._balls(words, self.kept_keys * flat * dots.bound[self.here])

    def _balls(self, words: Words, errors: Floats) -> Column:
        """Exact sums with their errors, in units of ``2^-F``, as balls."""
        errors = errors * (1 + 2.0**-30) + 2.0 ** (words.unit + BITS * self.limbs) * 4 * (words.added + 1)
        unit = dyadic(words.unit)
        small = dyadic(-BITS * self.limbs)
        out = []
        for v, e, empty in zip(words.integers(), errors.tolist(), self.empty.tolist(), strict=True):
            out.append(Ball(0) if empty else Ball(v) * unit + Ball(0, 1) * (Ball(e) * small))
        return out

    def gathered(self, score: Score, right: Any) -> RowSums:
        """``sum over keys of exponential times given matrix``, made once."""
        if (score, right) not in self.sums:
            matrix = self.batch.matrix(right, True)
            sums = RowSums(self.count, self.limbs, matrix, 1, self.length)
            sums.add(self.exponential(score), self.keys.start)
            sums.flush()
            self.sums[score, right] = sums
        return self.sums[score, right]

    # passes

    def stage(self, stage: int, steps: Iterable[Step]) -> None:
        """One pass: the tiles of the materials that its steps take, and then the tensors with channels that they define."""
        steps = list(steps)
        takers = [s for s in steps if isinstance(s, (KeyMatrix, RowMatrix, Weighed, Pairs))]
        materials = list(dict.fromkeys(m for s in takers for m in materials_of(s)))
        if materials:
            self._tiles(materials, takers)
        for s in steps:
            if isinstance(s, RowMatrix):
                self._row_matrix(s)
            elif isinstance(s, RowTotal):
                self.batch.engine.outputs[s.statement.name].add(self.rows, self.empty, s.expr)

    def form(self, material: Material) -> tuple[Scaled, Shifted | None]:
        """The coefficients of the rows of a material, in limbs; its exponents never fall from block to block."""
        if material not in self.formed:
            exponents = self.batch.exponents
            key = (material.score, material.factor)
            factor = column(self._finite(material.factor), self.limbs, exponents.get(key))
            exponents[key] = factor.exponent
            scaled = Scaled(factor, self.base(material.score), 1, self.batch.multiplier)
            shifted = None
            if material.inner:
                rest = column(self._finite(material.rest), self.limbs)
                dots = [(self.batch.dots(d), self._own(w)) for d, w in material.inner]
                shifted = Shifted(scaled, dots, rest, self.here, exponents.get(material))
                exponents[material] = shifted.inner
            self.formed[material] = scaled, shifted
        return self.formed[material]

    def _own(self, where: Conditions) -> Bools | None:
        return self.data.keep(where, self.batch.batch, self.here, slice(0, self.data.keys)) if where else None

    def _finite(self, e: sp.Expr) -> Column:
        """Balls of rows; a row without keys, where they may have no value, has 0."""
        values = [Ball(0) if z else v for v, z in zip(self.rows.evaluate(e), self.empty.tolist(), strict=True)]
        if any(isinstance(v, Special) or not Ball(v).is_finite() for v in values):
            raise UnfitError(f"`{e}` has no finite value in some row")
        return [Ball(v) for v in values]

    def errors(self, material: Material) -> Errors:
        """The bounds of a material."""
        scaled, shifted = self.form(material)
        return scaled.errors if shifted is None else shifted.errors

    def exponent(self, material: Material) -> int:
        """The exponent that its limbs are relative to."""
        scaled, shifted = self.form(material)
        return scaled.exponent if shifted is None else shifted.exponent

    def _tiles(self, materials: list[Material], takers: list[Any]) -> None:
        for m in materials:
            self.form(m)
        sinks = [sink for s in takers for sink in self._sinks(s)]
        size = max(1, min(TILE, self.length))
        for a in range(0, self.length, size):
            b = min(self.length, a + size)
            keys = slice(self.keys.start + a, self.keys.start + b)
            made: dict[Any, Floats] = {}
            for m in materials:
                scaled, shifted = self.form(m)
                key = (m.score, m.factor, m.where)
                if key not in made:
                    keep = self.data.keep(m.where, self.batch.batch, self.here, keys) if m.where else None
                    made[key] = scaled.tile(self.exponential(m.score)[:, :, a:b], keep)
                made[m] = made[key] if shifted is None else shifted.tile(made[key], keys)
            for material, take in sinks:
                take(made[material], keys)

    def _sinks(self, s: Any) -> list[tuple[Material, Callable[[Floats, slice], None]]]:
        """What a step takes of the tiles of its materials."""
        if isinstance(s, KeyMatrix):
            return [(m, self._key_sink(m, x)) for _, m, x in s.parts]
        if isinstance(s, RowMatrix):
            return [(m, self._row_sink(m, x)) for _, m, x in s.parts if isinstance(m, Material)]
        if isinstance(s, Weighed):
            return [(s.material, self._weight_sink(s))]
        return [(m, self._pair_sink(s, k, m)) for k, (_, m) in enumerate(s.parts)]

    def _key_sink(self, material: Material, x: Any) -> Callable[[Floats, slice], None]:
        batch = self.batch
        matrix = batch.matrix(x, False)
        if (material, x) not in batch.sums:
            batch.sums[material, x] = KeySums(self.data.keys, self.limbs, matrix, self.data.rows)
            batch.key_errors[material, x] = [0.0, 0.0, 0.0]
        sums = batch.sums[material, x]
        sums.begin(self.exponent(material), self.count)
        errors, largest = self.errors(material), self._largest(matrix)
        known = batch.key_errors[material, x]
        known[0] += float((largest * (errors.flat + errors.steep) * (1 + 2.0**-20)).sum())
        terms = errors.size * self.mass[material.score] * largest
        known[1] = max(known[1], float(terms.max(initial=0.0)))
        known[2] += float((errors.size * largest).sum()) * (1 + 2.0**-20)
        return lambda tile, keys: sums.add(tile, self.here, keys.start)

    def _largest(self, matrix: Matrix) -> Floats:
        """The largest absolute value in each row of a given matrix on rows."""
        s = matrix.slices
        total = sum(np.ldexp(np.abs(d[self.here]), s.unit(b)) for b, d in enumerate(s.digits))
        return np.asarray(np.asarray(total).max(axis=1))

    def _row_sink(self, material: Material, x: Any) -> Callable[[Floats, slice], None]:
        matrix = self.batch.matrix(x, True)
        sums = RowSums(self.count, self.limbs, matrix, self.exponent(material), self.length)
        self.sums[material, x] = sums
        return lambda tile, keys: sums.add(tile, keys.start)

    def _weight_sink(self, s: Weighed) -> Callable[[Floats, slice], None]:
        exponent = self.exponent(s.material)
        words = Words((self.count,), exponent + 40 + self.length.bit_length(), self.limbs + 6)
        self.weighed[s] = words
        whole = scales(self.limbs)

        def take(tile: Floats, keys: slice) -> None:
            if s.weight is None:
                found = tile.sum(axis=2)
            else:
                weight = self.data.plain(s.weight, self.batch.batch, self.here, keys, None)
                if float(np.abs(weight).max(initial=0.0)) * tile.shape[2] > 2.0 ** (EXACT - BITS):
                    raise UnfitError(f"`{s.weight.expr}` is too large a weight")
                found = np.einsum("rlj,rj->rl", tile, weight)
            digits = (found * whole).astype(np.int64)
            for k in range(self.limbs):
                words.add(digits[:, k], exponent - BITS * (k + 1))

        return take

    def _weighed_column(self, s: Weighed) -> Column:
        errors = self.errors(s.material).of_row_sum(self.length, self.mass[s.material.score])
        if s.weight is not None:
            weight = self.data.plain(s.weight, self.batch.batch, self.here, self.keys, None)
            errors = errors * np.abs(weight).max(axis=1)
        return self._balls(self.weighed[s], errors)

    def _pair_sink(self, s: Pairs, part: int, material: Material) -> Callable[[Floats, slice], None]:
        if len(s.parts) != 1:
            raise UnfitError(f"{s.statement.name} is a sum of several tensors on pairs")
        ball = self.rows.evaluate(s.parts[part][0])[0]
        errors, exponent = self.errors(material), self.exponent(material)
        output = self.batch.engine.outputs[s.statement.name]
        worst = float((errors.flat + errors.steep).max(initial=0.0))
        size = float(errors.size.max(initial=0.0))
        return lambda tile, keys: output.add(self.batch.number, self.here, keys, tile, exponent, ball, worst, size)

    def _row_matrix(self, s: RowMatrix) -> None:
        parts = []
        for coefficient, source, x in s.parts:
            if isinstance(source, Material):
                sums = self.sums[source, x]
                sums.flush()
                errors, mass = self.errors(source), self.mass[source.score]
            else:
                sums = self.gathered(source, x)
                errors, mass = self.base(source), self.mass[source]
            largest = math.ldexp(1.0, sums.matrix.slices.exponent - 1)
            parts.append(
                (
                    self._finite(coefficient),
                    sums.words,
                    errors.of_row_sum(self.length, mass) * largest,
                    errors.size * mass * largest,
                )
            )
        self.batch.engine.outputs[s.statement.name].add(self.batch.number, self.here, parts)


def materials_of(step: Any) -> list[Material]:
    """The materials that a step takes."""
    if isinstance(step, KeyMatrix):
        return [m for _, m, _ in step.parts]
    if isinstance(step, RowMatrix):
        return [m for _, m, _ in step.parts if isinstance(m, Material)]
    if isinstance(step, Weighed):
        return [step.material]
    return [m for _, m in step.parts]
