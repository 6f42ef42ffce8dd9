"""Open elements gathered into parts of a program: which outputs are evaluated together, at which rows, where they lie there."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import sympy as sp

from symattn.program import Program
from symattn.readings.sizes import Extents
from symattn.truth.restricted import at_positions, cut, indices_of
from symattn.truth.tiers import Job

__all__ = ["Part", "job_of", "parts_of", "places"]

Positions: TypeAlias = npt.NDArray[np.intp]
Bools: TypeAlias = npt.NDArray[np.bool_]
Key: TypeAlias = "tuple[tuple[tuple[sp.Symbol, int], ...], sp.Symbol | None]"
"""One position of each of some indices, and the index of the rows; no such index for all of the program."""

PARTS = 512
"""Parts that the open elements of one output are at most cut into; more are evaluated as a whole."""
WHOLE: Key = ((), None)


@dataclass(frozen=True)
class Part:
    """Open elements that are found together.

    Parameters
    ----------
    outputs
        The outputs that they are of.
    positions
        Where the program is cut, by index; of all other indices there is all.
    at
        For each output the flat positions of its elements.
    """

    outputs: tuple[str, ...]
    positions: Mapping[sp.Symbol, tuple[int, ...]]
    at: Mapping[str, Positions]


def parts_of(program: Program, sizes: Mapping[str, int], opened: Mapping[str, Bools]) -> Iterator[Part]:
    """Open elements gathered into parts: by one position of every index that rows share, and by rows.

    Outputs with the same rows are evaluated together. What cannot be cut, and what is open nearly everywhere, is evaluated whole;
    where that is done, outputs with half of their rows open join it.
    """
    extents = Extents(program, {s: sizes[str(s)] for s in program.sizes if str(s) in sizes})
    groups: dict[Key, dict[str, Positions]] = {}
    for name, mask in opened.items():
        at = np.flatnonzero(mask)
        for key, here in _keys(program, extents, name, mask.shape, at) if at.size else ():
            _put(groups, key, name, here)

    def rows(key: Key) -> Positions:
        return np.unique(np.concatenate([_along(program, key[1], n, opened[n].shape, at) for n, at in groups[key].items()]))

    for key in [k for k in groups if k != WHOLE and not k[0] and len(rows(k)) == extents.size(k[1])]:
        for name, at in groups.pop(key).items():
            _put(groups, WHOLE, name, at)
    for key in [k for k in groups if k != WHOLE and 2 * len(rows(k)) >= extents.size(k[1])]:
        target = _coarser(key, groups, rows)
        if target is not None:
            for name, at in groups.pop(key).items():
                _put(groups, target, name, at)
    for key, found in groups.items():
        yield from _part(program, key, found, {} if key == WHOLE else {key[1]: tuple(rows(key).tolist())})


def _put(groups: dict[Key, dict[str, Positions]], key: Key, name: str, at: Positions) -> None:
    found = groups.setdefault(key, {})
    found[name] = np.concatenate([found[name], at]) if name in found else at


def _coarser(key: Key, groups: Mapping[Key, Any], rows: Any) -> Key | None:
    """A part that is evaluated anyway and holds all of the program that another one needs."""
    if WHOLE in groups:
        return WHOLE
    if len(key[0]) == 1 and ((), key[0][0][0]) in groups:
        above: Key = ((), key[0][0][0])
        return above if key[0][0][1] in rows(above) else None
    return None


def _part(
    program: Program, key: Key, found: Mapping[str, Positions], rows: Mapping[sp.Symbol, tuple[int, ...]]
) -> Iterator[Part]:
    """The part of a key; where its outputs cannot be cut together, a part for each."""
    outputs = tuple(found)
    if rows and len(outputs) > 1:
        lean = program.with_statements(program.statements, outputs).live()
        if any(cut(lean, a) is None for a in (key[1], *(a for a, _ in key[0]))):
            for name, at in found.items():
                yield from _part(program, key, {name: at}, rows)
            return
    yield Part(outputs, {**{a: (k,) for a, k in key[0]}, **rows}, found)


def _along(program: Program, a: sp.Symbol | None, name: str, shape: tuple[int, ...], at: Positions) -> Positions:
    return np.unravel_index(at, shape)[program[name].indices.index(a)]


def _keys(
    program: Program, extents: Extents, name: str, shape: tuple[int, ...], at: Positions
) -> Iterator[tuple[Key, Positions]]:
    """The parts that the open elements of one output belong to."""
    along = indices_of(program, name)
    if not along or 2 * at.size > math.prod(shape):
        yield WHOLE, at
        return
    row = max(along, key=extents.size)
    outer = [a for a in along if a != row and extents.size(a) > 1]
    if not outer:
        yield ((), row), at
        return
    where = np.stack([_along(program, a, name, shape, at) for a in outer])
    distinct, of = np.unique(where, axis=1, return_inverse=True)
    if distinct.shape[1] > PARTS:
        yield WHOLE, at
        return
    for k in range(distinct.shape[1]):
        yield (tuple(zip(outer, distinct[:, k].tolist(), strict=True)), row), at[of.ravel() == k]


def job_of(job: Job, part: Part) -> Job:
    """The job that finds a part and nothing else; a few rows are found faster than they are saved, so without a checkpoint."""
    lean = job.program.with_statements(job.program.statements, part.outputs).live()
    made = at_positions(lean, job.inputs, job.sizes, part.positions)
    assert made is not None, "outputs are gathered only where they can be cut together"
    program, inputs, sizes = made
    work = job.work if job.work is None or not part.positions else replace(job.work, checkpoint=None)
    return replace(job, program=program, inputs=inputs, sizes=sizes, outputs=part.outputs, work=work)


def places(
    at: Positions,
    shape: tuple[int, ...],
    indices: tuple[sp.Symbol, ...],
    positions: Mapping[sp.Symbol, tuple[int, ...]],
    small: tuple[int, ...],
) -> Positions:
    """Where elements of a tensor lie, flat, in the same tensor cut down to some positions.

    >>> i, e = sp.symbols("i e", integer=True)
    >>> places(np.array([5, 7]), (4, 2), (i, e), {i: (2, 3)}, (2, 2)).tolist()
    [1, 3]
    """
    if not shape:
        return np.zeros(len(at), dtype=np.intp)
    where = list(np.unravel_index(at, shape))
    for k, a in enumerate(indices):
        if a in positions:
            where[k] = np.searchsorted(np.asarray(positions[a]), where[k])
    return np.ravel_multi_index(where, small)
