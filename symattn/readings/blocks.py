"""Blocks of rows: an index whose values need nothing of each other, so that an evaluation can take them piece by piece.

Arrays of a block fit the processor's cache, and the memory that an evaluation takes does not grow with the square of the length.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import sympy as sp

from symattn.program import Program, Table, all_reads, integer_symbols, name_of, needed, subscripts_of
from symattn.readings.boxes import Array, Box

__all__ = ["Block", "Rows", "pieces", "rows_of"]


@dataclass(frozen=True)
class Rows:
    """An index that no statement sums over, and the axis that it is of each tensor that has it.

    What ``live`` names is all that is evaluated.
    """

    index: sp.Symbol
    axes: Mapping[str, int]
    live: frozenset[str]


@dataclass(frozen=True)
class Block:
    """Some values of an index: from ``start`` to before ``stop``.

    Parameters
    ----------
    rows
        The index.
    shared
        Boxes of tensors that lack it, found with another block.
    """

    rows: Rows
    start: int
    stop: int
    shared: Mapping[str, Box] = field(default_factory=dict)

    def rows_of(self, array: Array, name: str) -> Array:
        """The rows of an array of a tensor that belong to the block."""
        return array[(slice(None),) * self.rows.axes[name] + (slice(self.start, self.stop),)]


@lru_cache(maxsize=256)
def rows_of(program: Program, outputs: tuple[str, ...]) -> tuple[Rows, ...]:
    """The indices of all of the outputs that can be taken piece by piece.

    >>> from symattn.program import Statement, indices, size, tensor
    >>> i, j = indices("i j")
    >>> row = Statement(tensor("l", i), tensor("E", i, j), (j,), where=sp.Le(j, i))
    >>> p = Program((row,), {i: size("n"), j: size("m")}, ("l",))
    >>> rows_of(p, ("l",))
    (Rows(index=i, axes={l: 0, E: 0}, live=frozenset({'l'})),)
    """
    candidates = program[outputs[0]].indices if outputs else ()
    found = (_rows(program, outputs, a) for a in candidates)
    return tuple(r for r in found if r is not None)


def _rows(program: Program, outputs: Sequence[str], a: sp.Symbol) -> Rows | None:
    live = needed(program.groups(), outputs)
    if any(a not in program[n].indices for n in outputs) or any(s.scan is not None or a in s.over for s in live):
        return None
    axes = {s.name: s.indices.index(a) for s in live if a in s.indices}
    whole = {s.name for s in live} - axes.keys()
    for x in {x for s in live for e in (s.expr, s.where) for x in all_reads(e)}:
        n, at = name_of(x), subscripts_of(x)
        if n in program.discrete:  # never cut, and looked up where the block begins
            continue
        if at.count(a) == 1 and sum(a in integer_symbols(sub) for sub in at) == 1:
            if axes.setdefault(n, at.index(a)) != at.index(a):
                return None
        else:
            whole.add(n)
    return None if whole & axes.keys() else Rows(a, Table(axes), frozenset(s.name for s in live))


def pieces(length: int, most: int) -> Iterator[tuple[int, int]]:
    """The bounds of pieces of ``most`` values at most, as equal as they can be.

    >>> list(pieces(10, 4))
    [(0, 3), (3, 6), (6, 10)]
    """
    count = -(-length // most)
    return ((k * length // count, (k + 1) * length // count) for k in range(count))
