"""A replay of a large job in pieces: ranges of queries, so that memory does not grow with the square of their number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp

from symattn.arithmetic import Arithmetic
from symattn.intake import Array
from symattn.program import Program
from symattn.readings.blocks import pieces, rows_of
from symattn.readings.sizes import Extents
from symattn.truth.restricted import at_positions
from symattn.verify.replay.bounds import Interval, Replay

__all__ = ["InPieces", "in_pieces"]

POINTS = 1 << 20
"""Of the largest tensor, so many are taken at once."""


@dataclass(frozen=True)
class _Rows:
    """The index that is cut, how many values it takes, and how many are taken at once."""

    index: sp.Symbol
    length: int
    most: int


def in_pieces(program: Program, inputs: Mapping[str, Any], arithmetic: Arithmetic, sizes: Mapping[str, int]) -> Replay:
    """The replay of a list, in pieces where it is large and its rows can be taken apart; parameters as for :class:`Replay`."""
    extents = Extents(program, {s: sizes[str(s)] for s in program.sizes if str(s) in sizes})
    largest = max((s.indices for s in program), key=lambda axes: math.prod(extents.size(a) for a in axes))
    points = math.prod(extents.size(a) for a in largest)
    candidates = [r.index for r in rows_of(program, program.outputs) if r.index in largest] if points > POINTS else []
    if not candidates:
        return Replay(program, inputs, arithmetic, sizes)
    a = max(candidates, key=extents.size)
    length = extents.size(a)
    return InPieces(program, inputs, arithmetic, sizes, _Rows(a, length, max(1, POINTS * length // points)))


class InPieces(Replay):
    """A replay whose rows are taken a piece at a time, each from its inputs; only outputs are kept."""

    def __init__(
        self, program: Program, inputs: Mapping[str, Any], arithmetic: Arithmetic, sizes: Mapping[str, int], rows: _Rows
    ) -> None:
        super().__init__(program, inputs, arithmetic, sizes)
        self._cut = rows
        self._known: dict[tuple[Arithmetic, str], dict[str, Array]] = {}

    def _piece(self, start: int, stop: int) -> Replay:
        made = at_positions(self.program, self.inputs, self.sizes, {self._cut.index: range(start, stop)})
        assert made is not None, "rows that no output shares can be cut"
        program, inputs, sizes = made
        return Replay(program, inputs, self.arithmetic, sizes)

    def intervals(self, arithmetic: Arithmetic | None = None, start: str = "row") -> dict[str, Interval]:
        """See :class:`Replay`; the values are found on the way."""
        a = arithmetic or self.arithmetic
        found: list[dict[str, Interval]] = []
        values: list[dict[str, Array]] = []
        for part in pieces(self._cut.length, self._cut.most):
            replay = self._piece(*part)
            found.append(replay.intervals(a, start))
            values.append(replay.values(a, start))
        self._known[a, start] = self._joined(values)
        ends = {x: self._joined([{n: getattr(i, x) for n, i in f.items()} for f in found]) for x in ("value", "low", "high")}
        return {n: Interval(ends["value"][n], ends["low"][n], ends["high"][n]) for n in found[0]}

    def values(self, arithmetic: Arithmetic, start: str = "row") -> dict[str, Array]:
        """See :class:`Replay`."""
        if (arithmetic, start) not in self._known:
            parts = pieces(self._cut.length, self._cut.most)
            self._known[arithmetic, start] = self._joined([self._piece(*p).values(arithmetic, start) for p in parts])
        return self._known[arithmetic, start]

    def keys(self) -> list[int]:
        """See :class:`Replay`."""
        return self._piece(0, 1).keys()

    def _joined(self, found: list[dict[str, Array]]) -> dict[str, Array]:
        axis = {n: self.program[n].indices.index(self._cut.index) for n in found[0]}
        return {n: np.concatenate([f[n] for f in found], axis[n]) for n in found[0]}
