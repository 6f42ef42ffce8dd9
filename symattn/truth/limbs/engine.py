"""The walk over a program: batch by batch, block of rows by block of rows, pass by pass over the keys.

Memory is what the outputs take, a block of exponentials (rows, limbs, keys), and the sums over rows (limbs, keys, channels).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symattn.program import name_of
from symattn.truth.limbs.block import Block
from symattn.truth.limbs.collected import KeyOutput, PairOutput, RowOutput, TotalOutput
from symattn.truth.limbs.data import Batch, Data
from symattn.truth.limbs.fixed import Fixed
from symattn.truth.limbs.forms import Dot, Score
from symattn.truth.limbs.gathered import KeySums, Matrix
from symattn.truth.limbs.products import Multiplier
from symattn.truth.limbs.rows import Rows
from symattn.truth.limbs.scores import Dots, Scores
from symattn.truth.limbs.slices import bits_of, sliced, width_for
from symattn.truth.limbs.steps import Count, KeyMatrix, Material, Pairs, Plan, RowMatrix, RowStep, RowTotal, Step, Sum, Weighed

BLOCK_BYTES = 1 << 25
"""Exponentials that are kept for a block of rows."""
LEAST_ROWS = 16
"""Rows of a block at least, however many keys there are: products of fewer are no faster than their overhead."""
ROWS = 128
"""Rows of a block at most."""


class Engine:
    """One evaluation at one number of limbs.

    Parameters
    ----------
    plan, data
        What, of which inputs.
    limbs
        Limbs of 24 bits.
    progress
        Called with the blocks done and their number after each.
    """

    def __init__(self, plan: Plan, data: Data, limbs: int, progress: Callable[[int, int], None] | None = None) -> None:
        self.plan, self.data, self.limbs, self.progress = plan, data, limbs, progress
        self.multiplier = Multiplier(limbs)
        self.makers: dict[str, Step] = {}
        for _, step in plan.steps:
            if isinstance(step, (RowStep, Sum, Count, Weighed)):
                self.makers[name_of(step.target)] = step
        self.score_of = {name_of(shift): score for score, shift in plan.shifts.items()}
        self.outputs = self._outputs()

    def _outputs(self) -> dict[str, Any]:
        wanted = set(self.plan.program.outputs)
        out: dict[str, Any] = {}
        for _, step in self.plan.steps:
            if isinstance(step, RowStep) and name_of(step.target) in wanted:
                out[name_of(step.target)] = RowOutput(step.target, self.data, self.limbs, step.expr)
            elif isinstance(step, RowMatrix):
                out[step.statement.name] = RowOutput(step.statement.target, self.data, self.limbs)
            elif isinstance(step, KeyMatrix):
                out[step.statement.name] = KeyOutput(step.statement.target, self.data, self.limbs)
            elif isinstance(step, RowTotal):
                out[step.statement.name] = TotalOutput(step.statement.target, self.data, self.limbs)
            elif isinstance(step, Pairs):
                out[step.statement.name] = PairOutput(step.statement.target, self.data, self.limbs)
        return out

    def run(self) -> dict[str, Fixed]:
        """Every output."""
        step = self.rows_of_a_block()
        starts = range(0, self.data.rows, step)
        done, total = 0, len(self.data.batches) * len(starts)
        for number, batch in enumerate(self.data.batches):
            walk = InBatch(self, batch, number)
            for start in starts:
                walk.block(slice(start, min(start + step, self.data.rows)))
                done += 1
                if self.progress is not None:
                    self.progress(done, total)
            walk.finish()
        return {n: self.outputs[n].fixed() for n in self.plan.program.outputs}

    def rows_of_a_block(self) -> int:
        """How many rows are taken at once: few enough for the exponentials of all keys, enough for the products."""
        most = BLOCK_BYTES // (8 * self.limbs * self.data.keys)
        return min(self.data.rows, ROWS, max(LEAST_ROWS, most))


class InBatch:
    """The blocks of one batch, and what they share: sliced matrices, digit tables, sums over rows."""

    def __init__(self, engine: Engine, batch: Batch, number: int) -> None:
        self.engine, self.batch, self.number = engine, batch, number
        self.data, self.limbs, self.multiplier = engine.data, engine.limbs, engine.multiplier
        self.scores: dict[Score, Scores] = {}
        self.kept_dots: dict[Dot, Dots] = {}
        self.matrices: dict[tuple[Any, bool], Matrix] = {}
        self.sums: dict[tuple[Material, Any], KeySums] = {}
        self.key_errors: dict[tuple[Material, Any], list[float]] = {}
        self.exponents: dict[Any, int] = {}
        self.last: Rows | None = None

    def dots(self, dot: Dot) -> Dots:
        """A dot product that materials take."""
        if dot not in self.kept_dots:
            self.kept_dots[dot] = Dots(dot, self.data, self.batch)
        return self.kept_dots[dot]

    def matrix(self, x: Any, on_keys: bool) -> Matrix:
        """A given matrix that limbs are multiplied with."""
        if (x, on_keys) not in self.matrices:
            channels = self.data.axes.channels(x)
            get = self.data.key_matrix if on_keys else self.data.row_matrix
            values = get(x, self.batch, channels)
            width = width_for(bits_of(values), 23)
            self.matrices[x, on_keys] = Matrix(sliced(values, width))
        return self.matrices[x, on_keys]

    def block(self, rows: slice) -> None:
        """All passes over one block of rows."""
        block = Block(self, rows)
        if self.last is not None:
            self.last.forget()
        self.last = block.rows
        for stage in range(self.engine.plan.stages):
            block.stage(stage, [s for at, s in self.engine.plan.steps if at == stage])
        for name, output in self.engine.outputs.items():
            step = self.engine.makers.get(name)
            if isinstance(step, RowStep):
                output.add_balls(self.number, rows, block.rows.column(step.target))
        block.close()

    def finish(self) -> None:
        """What was summed over all rows; each sum is let go of when the last output that takes it is done."""
        assert self.last is not None
        steps = [s for _, s in self.engine.plan.steps if isinstance(s, KeyMatrix)]
        for k, step in enumerate(steps):
            parts = []
            for coefficient, material, x in step.parts:
                sums = self.sums[material, x]
                ball = self.last.evaluate(coefficient)[0]
                parts.append((ball, sums.finished(), *self.key_errors[material, x]))
            self.engine.outputs[step.statement.name].add(self.number, parts)
            later = {(m, x) for s in steps[k + 1 :] for _, m, x in s.parts}
            for _, material, x in step.parts:
                if (material, x) not in later:
                    del self.sums[material, x]
        self.last.forget()
