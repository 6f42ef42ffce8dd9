"""Which numbers a program reads at all: a NaN or an infinity is allowed exactly where nothing does.

A masked key may hold anything, because no statement is evaluated outside its condition; every element that some statement reads
must be finite. An additive mask may hold -inf anywhere: it drops the key.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sp

from symattn.building import start
from symattn.condition_values import holds
from symattn.definition import Definition
from symattn.errors import InputValueError
from symattn.indexed import all_reads, name_of, subscripts_of
from symattn.program import Program, Statement

Array = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]


def keep_of(definition: Definition, batch: bool, inputs: Mapping[str, Array], sizes: Mapping[str, int]) -> Bools:
    """Where query i attends to key j, over batch, heads, i and j (size 1 where the condition does not depend on one)."""
    b = start(definition, batch)
    pairs = Statement(b.at.score("keep"), sp.S.One, where=b.where)
    known = {"m": sizes["n"], **sizes}
    program = Program((pairs,), b.at.dims, ("keep",))
    return _domain(program, pairs, pairs.indices, inputs, known)


def refuse_unusable(program: Program, inputs: Mapping[str, Array], sizes: Mapping[str, int], fields: Mapping[str, str]) -> None:
    """Refuse a NaN or an infinity that something reads; ``fields`` has the field name of each input.

    Raises
    ------
    InputValueError
        With field, index and value of the first one.
    """
    bad = {name: unusable for name, x in inputs.items() if (unusable := ~_finite(x)).any()}
    if "B" in bad:
        bad["B"] = bad["B"] & ~np.asarray(inputs["B"] == -math.inf, dtype=bool)
    for name, unusable in bad.items():
        if unusable.any():
            _refuse(name, inputs[name], unusable & _read(program, name, inputs, sizes), fields)


def refuse_unusable_directions(
    program: Program,
    inputs: Mapping[str, Array],
    directions: Mapping[str, Array],
    sizes: Mapping[str, int],
    fields: Mapping[str, str],
) -> None:
    """Refuse a NaN or an infinity in a direction of an input, at an element that something reads of that input.

    Raises
    ------
    InputValueError
        With field, index and value of the first one.
    """
    for name, x in directions.items():
        unusable = ~_finite(x)
        if unusable.any():
            _refuse(name, x, unusable & _read(program, name, {**directions, **inputs}, sizes), fields)


def _refuse(name: str, x: Array, found: Bools, fields: Mapping[str, str]) -> None:
    if found.any():
        where = tuple(int(k) for k in np.argwhere(found)[0])
        place = f" at {list(where)} in the axes of {name}" if where else ""
        raise InputValueError(
            f"{fields[name]} is {x[where]}{place}, and something reads it; only what is masked out may be NaN or infinite"
        )


def _finite(x: Array) -> Bools:
    if x.dtype == object:
        return np.asarray(np.frompyfunc(lambda v: not isinstance(v, float) or math.isfinite(v), 1, 1)(x), dtype=bool)
    if x.dtype.kind in "biu":
        return np.ones(x.shape, dtype=bool)
    return np.asarray(np.isfinite(x), dtype=bool)


def _read(program: Program, name: str, inputs: Mapping[str, Array], sizes: Mapping[str, int]) -> Bools:
    """The elements of an input that some statement reads."""
    shape = inputs[name].shape
    found = np.zeros(shape, dtype=bool)
    users = program.users(name)
    if not users:
        return ~found
    for s in users:
        in_condition = {x for x in all_reads(s.where) if name_of(x) == name}
        if in_condition and name != "B":
            return np.ones(shape, dtype=bool)
        for x in all_reads(s.expr):
            if name_of(x) != name:
                continue
            sub = subscripts_of(x)
            if not all(a in s.domain for a in sub) or len(set(sub)) != len(sub):
                return np.ones(shape, dtype=bool)
            lost = tuple(a for a in s.domain if a not in sub)
            domain = _domain(program, s, (*sub, *lost), inputs, sizes)
            found |= domain.any(axis=tuple(range(len(sub), domain.ndim)))
    return found


def _domain(
    program: Program, s: Statement, axes: tuple[sp.Symbol, ...], inputs: Mapping[str, Array], sizes: Mapping[str, int]
) -> Bools:
    """Where a statement is evaluated, over ``axes``; a count of keys that its condition reads is counted."""
    numbers = {a: sizes[str(a)] for a in program.sizes}
    table = {**numbers, **{a: int(n.xreplace({k: sp.Integer(v) for k, v in numbers.items()})) for a, n in program.dims.items()}}
    tensors = dict(inputs)
    for x in all_reads(s.where):
        name = name_of(x)
        if name not in tensors:
            counted = program[name]
            kept = _domain(program, counted, counted.domain, inputs, sizes)
            full = np.broadcast_to(kept, [table[a] for a in counted.domain])
            tensors[name] = full.sum(axis=tuple(range(len(counted.indices), full.ndim)))
    return holds(s, axes, table, tensors)
