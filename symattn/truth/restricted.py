"""A program at some positions of an index only: what a few elements of an output need, and nothing else.

The index gets a new size. Statements that carry it from those elements back to the inputs are evaluated at the positions that are
asked for; where they read the index as a number, or look something up with it, they read its position. What reduces over the
index, or reads a tensor at other positions of it, keeps it whole, and so does all that it needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp

from symattn.indexed import all_reads, index, name_of, size, subscripts_of, tensor
from symattn.numbers import exact_array
from symattn.program import Program, Statement, Table

__all__ = ["Cut", "at_positions", "cut", "indices_of"]


@dataclass(frozen=True)
class Cut:
    """A program with one index cut down to some positions.

    Parameters
    ----------
    program
        The program, whose outputs have as many values of the index as there are positions.
    axes
        Which axis of an input is that of the index: the input is given at the positions only.
    positions
        Name of the input that holds the positions, where one is read.
    carried
        How many statements are evaluated at the positions only.
    """

    program: Program
    axes: Mapping[str, int]
    positions: str | None
    length: str
    carried: int

    def inputs(self, given: Mapping[str, Any], positions: Sequence[int]) -> dict[str, Any]:
        """The inputs of the program from those of the whole one."""
        names = [n for n in self.program.inputs if n in given]
        found = {n: _at(given[n], self.axes[n], positions) if n in self.axes else given[n] for n in names}
        if self.positions is not None:
            found[self.positions] = np.asarray(positions, dtype=np.int64)
        return found


def _at(array: Any, axis: int, positions: Sequence[int]) -> Any:
    a = array if isinstance(array, np.ndarray) else exact_array(array)
    return np.take(a, np.asarray(positions, dtype=np.int64), axis=axis)


@lru_cache(maxsize=256)
def cut(program: Program, a: sp.Symbol) -> Cut | None:
    """A program whose outputs all have the index ``a``, at some positions of it; None where an output needs all of them.

    >>> from symattn.program import indices
    >>> i, j = indices("i j")
    >>> row = Statement(tensor("l", i), tensor("E", i, j), (j,), where=sp.Le(j, i))
    >>> found = cut(Program((row,), {i: size("n"), j: size("m")}, ("l",)), i)
    >>> print(found.program, found.axes, found.positions)
    l[i_] = sum over j of E[i_, j]   where j <= at_i[i_] {E: 0} at_i
    """
    lean = program.live()
    carried = _carried(lean, a)
    if not set(lean.outputs) <= carried.keys():
        return None
    names = {str(x) for x in (*lean.dims, *lean.sizes)} | {s.name for s in lean} | set(lean.inputs)
    row, length, at = index(_fresh(f"{a}_", names)), size(_fresh(f"{a}_count", names)), _fresh(f"at_{a}", names)
    axes = _sliced(lean, a, carried)
    moved = {**carried, **axes}
    place = tensor(at, row)
    made = [_moved(s, a, row, place, moved) if s.name in carried else s for s in lean]
    shapes = {n: tuple(length if axes.get(n) == k else x for k, x in enumerate(lean.shapes[n])) for n in lean.inputs}
    reads_place = any(name_of(x) == at for s in made for e in (s.expr, s.where) for x in all_reads(e))
    dims = {**lean.dims, row: length}
    if reads_place:
        shapes[at] = (length,)
    out = Program(tuple(made), dims, lean.outputs, shapes)
    return Cut(out, Table(axes), at if reads_place else None, str(length), len(carried))


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _carried(program: Program, a: sp.Symbol) -> dict[str, int]:
    """The largest set of statements that can be evaluated at some positions of ``a``, each with its axis.

    A statement is in it when every other one reads it at the ``a`` of its own place; whether that one is in it counts, so the
    rule is applied until nothing changes.
    """
    carried = {s.name: s.indices.index(a) for s in program if a in s.indices and s.scan is None}
    while True:
        lost = {
            name_of(x)
            for s in program
            for e in (s.expr, s.where)
            for x in all_reads(e)
            if name_of(x) in carried and not (s.name in carried and subscripts_of(x)[carried[name_of(x)]] == a)
        }
        if not lost:
            return carried
        carried = {n: k for n, k in carried.items() if n not in lost}


def _sliced(program: Program, a: sp.Symbol, carried: Mapping[str, int]) -> dict[str, int]:
    """The inputs that only carried statements read, always with ``a`` on the same axis, with that axis."""
    axes: dict[str, int | None] = {}
    for s in program:
        for x in (x for e in (s.expr, s.where) for x in all_reads(e) if name_of(x) not in program):
            here = [k for k, sub in enumerate(subscripts_of(x)) if sub == a] if s.name in carried else []
            k = here[0] if len(here) == 1 else None
            axes[name_of(x)] = k if axes.get(name_of(x), k) == k else None
    return {n: k for n, k in axes.items() if k is not None}


def _moved(s: Statement, a: sp.Symbol, row: sp.Symbol, place: Any, axes: Mapping[str, int]) -> Statement:
    """A statement at the positions: its target and what is cut carry the new index, everything else the position."""

    def move(e: sp.Basic) -> sp.Basic:
        if e == a:
            return place
        if isinstance(e, sp.Indexed):
            own = axes.get(name_of(e))
            subscripts = [row if k == own else move(x) for k, x in enumerate(subscripts_of(e))]
            return tensor(name_of(e), *subscripts)
        return e.func(*(move(x) for x in e.args)) if e.args and e.has(a) else e

    target = tensor(s.name, *(row if x == a else x for x in s.indices))
    return Statement(target, move(s.expr), s.over, s.reduce, move(s.where), s.range_only, s.aux)


@lru_cache(maxsize=256)
def indices_of(program: Program, name: str) -> tuple[sp.Symbol, ...]:
    """The indices of an output along which most of its program can be cut, in the order of its axes.

    >>> from symattn.definition import Definition
    >>> program = Definition(lse=False).program(batch=True)
    >>> indices_of(program, "O")
    (b, i)
    """
    lean = program.with_statements(program.statements, (name,)).live()
    candidates = ((a, _carried(lean, a)) for a in lean[name].indices)
    return tuple(a for a, carried in candidates if name in carried and 2 * len(carried) >= len(lean))


def at_positions(
    program: Program, inputs: Mapping[str, Any], sizes: Mapping[str, int], positions: Mapping[sp.Symbol, Sequence[int]]
) -> tuple[Program, dict[str, Any], dict[str, int]] | None:
    """A program, its inputs and its sizes at some positions of several indices, one after another.

    Returns
    -------
    tuple or None
        None where the outputs cannot be cut along one of them.
    """
    given, known = dict(inputs), dict(sizes)
    for a, at in positions.items():
        found = cut(program, a)
        if found is None:
            return None
        given, known = found.inputs(given, at), {**known, found.length: len(at)}
        program = found.program
    names = {str(x) for x in program.sizes}
    return program, {n: given[n] for n in program.inputs}, {k: v for k, v in known.items() if k in names}
