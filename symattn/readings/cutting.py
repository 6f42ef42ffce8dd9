"""Which indices of a program to cut into blocks: those that leave little to keep between the blocks and little to do twice.

For attention these are the batch, the heads and the query. They are found from the program and its sizes, by two counts:

* what is kept: the elements of the tensors that pass from one part to another. A cut along the keys would have to keep the
  scores.
* what is done again: the points of the local statements that lack a cut index. A cut along the columns of V as well would
  form the scores for each column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod

import sympy as sp

from symattn.program import Program
from symattn.readings.partition import Groups, Partition, groups_of, partition, torn
from symattn.readings.sizes import size_value

__all__ = ["cut_indices", "partition_at"]

KEPT = 2
"""So many times the elements of inputs and outputs may be kept between the parts."""
INSIDE = 7 / 8
"""An index takes at least this part of the elements into its blocks that the best one does."""
AGAIN = 8
"""At most one in so many points of a block may be of a statement that other blocks evaluate as well."""


def partition_at(
    program: Program, outputs: Sequence[str], sizes: Mapping[sp.Symbol, int], passing: bool = True
) -> Partition | None:
    """A program cut along the indices that suit it at some sizes; None where it is better left whole.

    Where the values of one part cannot be passed on to another (``passing``), there is neither ``first`` nor ``rest``: each block
    does the first part again, and indices that make something wait are not cut.

    >>> from symattn.definition import Definition
    >>> p = Definition(heads=4, kv_heads=2).program(batch=True)
    >>> [c.index for c in partition_at(p, p.outputs, {s: 16 for s in p.sizes}).cuts]
    [b, k, g, i]
    """
    lean = program.with_statements(program.statements, tuple(outputs)).live()
    cut = cut_indices(lean, sizes, passing)
    return partition(lean, cut, repeat=not passing) if cut else None


def cut_indices(program: Program, sizes: Mapping[sp.Symbol, int], passing: bool = True) -> tuple[sp.Symbol, ...]:
    """The indices to cut at some sizes, outermost first; the last one says what is local. None may be worth it.

    The last is the longest of the indices that keep at most twice what comes in and goes out, and that take nearly as much into
    their blocks as the best one does. Further ones join it where nothing has to wait for them, nothing more has to be added up,
    and little is done again.
    """
    count = _Count(program, sizes)
    limit = KEPT * count.elements((*program.inputs, *program.outputs))
    scores = {}
    for a in dict.fromkeys(a for s in program for a in s.domain):
        groups = groups_of(program, (a,))
        if passing:
            fits = count.kept(groups) <= limit
        else:
            fits = not waits(program, groups) and count.points(groups.first) * count.length(a) <= count.points(inside_of(groups))
        if groups.local and count.length(a) > 1 and fits and torn(program, groups) is None:
            scores[a] = count.elements(groups.local)
    fit = [a for a, score in scores.items() if score >= INSIDE * max(scores.values())]
    if not fit:
        return ()
    first = program[program.outputs[0]].indices
    last = max(reversed(fit), key=lambda a: (count.length(a), scores[a], a in first))
    cut: tuple[sp.Symbol, ...] = (last,)
    alone = groups_of(program, cut)
    inside = inside_of(alone)
    others = dict.fromkeys(a for s in sorted(program, key=lambda s: -len(s.indices)) if s.name in inside for a in s.indices)
    for a in reversed([a for a in others if a != last and count.length(a) > 1]):
        groups = groups_of(program, (a, *cut))
        same = groups.rest == alone.rest and groups.local == alone.local and groups.partial == alone.partial
        if same and count.points(inside, without=a) * AGAIN <= count.points(inside):
            cut = (a, *cut)
    return cut


def inside_of(groups: Groups) -> frozenset[str]:
    """What is evaluated for the values of one block only."""
    return groups.local | groups.partial


def waits(program: Program, groups: Groups) -> bool:
    """Whether something is evaluated after the blocks that reads what they give."""
    return any(program[n].needs & (groups.local | groups.partial) for n in groups.rest)


class _Count:
    """Elements of tensors and points of statements at some sizes."""

    def __init__(self, program: Program, sizes: Mapping[sp.Symbol, int]) -> None:
        self.program = program
        self.sizes = sizes
        self._lengths = {a: size_value(program.dims[a], sizes) for s in program for a in s.domain}

    def length(self, a: sp.Symbol) -> int:
        return self._lengths[a]

    def elements(self, names: Iterable[str]) -> int:
        return sum(prod(size_value(n, self.sizes) for n in self.program.shapes[name]) for name in names)

    def points(self, names: Iterable[str], without: sp.Symbol | None = None) -> int:
        """The points at which some statements are evaluated, or those of them that lack an index; ``a = I`` leaves one value."""
        domains = []
        for s in (self.program[n] for n in names):
            fixed = {a for c in s.conditions if isinstance(c, sp.Eq) for a in c.args}
            domains.append([a for a in s.domain if a not in fixed])
        return sum(prod(map(self.length, d)) for d in domains if without is None or without not in d)

    def kept(self, groups: Groups) -> int:
        """The elements of what passes from one part to another and is no output."""
        parts = (groups.first, groups.local | groups.partial, groups.rest)
        crossing = {
            n for k, part in enumerate(parts) for later in parts[k + 1 :] for m in later for n in self.program[m].needs & part
        }
        return self.elements(crossing - set(self.program.outputs))
