"""Which numbers a program reads at all: a NaN or an infinity is allowed exactly where nothing does.

A masked key may hold anything, because no statement is evaluated outside its condition; every element that some statement reads
must be finite. An additive mask may hold -inf anywhere: it drops the key.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sp

from symattn.building import start
from symattn.condition_values import holds
from symattn.definition import Definition
from symattn.errors import InputValueError
from symattn.indexed import all_reads, integer_symbols, name_of, reads, subscripts_of
from symattn.program import Program, Statement
from symattn.readings.subscripts import Subscripts

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


def affine_in(s: Statement, names: Collection[str]) -> bool:
    """Whether a statement takes some tensors along as they are, scaled and added up: neither it nor its gradient looks at values.

    >>> from symattn.indexed import indices, tensor
    >>> i, j = indices("i j")
    >>> x, c = tensor("x", i), tensor("c", i)
    >>> [affine_in(Statement(tensor("y", i), e), {"x"}) for e in (c * x + tensor("x", i - 1), x**2, sp.exp(x) * c)]
    [True, False, False]
    """
    table = {x: sp.Dummy(real=True) for x in all_reads(s.expr) if name_of(x) in names}
    plain, seen = s.expr.xreplace(table), set(table.values())
    return all(plain.diff(a).free_symbols.isdisjoint(seen) for a in seen)


def _read(program: Program, name: str, inputs: Mapping[str, Array], sizes: Mapping[str, int]) -> Bools:
    """The elements of an input that something reads."""
    return _wanted(program, name, inputs[name].shape, inputs, sizes, frozenset({name}))


def _wanted(
    program: Program,
    name: str,
    shape: tuple[int, ...],
    inputs: Mapping[str, Array],
    sizes: Mapping[str, int],
    along: frozenset[str],
) -> Bools:
    """The elements of a tensor that something reads; a statement that takes it along reads what is read of its target.

    ``along`` are the tensor and those that it was taken along by.
    """
    found = np.zeros(shape, dtype=bool)
    users = program.users(name)
    if not users or name in program.outputs:
        return ~found
    for s in users:
        if name != "B" and any(name_of(x) == name for x in all_reads(s.where)):
            return ~np.zeros(shape, dtype=bool)
        for x in (x for x in all_reads(s.expr) if name_of(x) == name):
            sub = subscripts_of(x)
            plain = [k for k, a in enumerate(sub) if a in s.domain and sub.index(a) == k]
            own = tuple(sub[k] for k in plain)
            lost = tuple(a for a in s.domain if a not in own)
            domain = _domain(program, s, (*own, *lost), inputs, sizes)
            if s.scan is None and not s.over and affine_in(s, along):
                length = dict(zip(s.indices, program.shape_of(s), strict=True))
                size = {a: sp.Integer(n) for a, n in ((a, sizes[str(a)]) for a in program.sizes)}
                target = tuple(int(length[a].xreplace(size)) for a in s.indices)
                needed = _wanted(program, s.name, target, inputs, sizes, along | {s.name})
                domain = domain & needed.transpose([s.indices.index(a) for a in (*own, *lost)])
            if len(plain) < len(sub) and {name_of(y) for a in sub for y in all_reads(a)} <= inputs.keys():
                found |= _hit(program, sub, (*own, *lost), domain, shape, inputs, sizes)
                continue
            at = domain.any(axis=tuple(range(len(own), domain.ndim)))
            found |= at.reshape([at.shape[plain.index(k)] if k in plain else 1 for k in range(len(sub))])
    return found


def _hit(
    program: Program,
    sub: tuple[sp.Expr, ...],
    axes: tuple[sp.Symbol, ...],
    domain: Bools,
    shape: tuple[int, ...],
    inputs: Mapping[str, Array],
    sizes: Mapping[str, int],
) -> Bools:
    """The elements that subscripts made of expressions look at, from the points of a domain over ``axes``."""
    numbers = {a: sizes[str(a)] for a in program.sizes}
    lengths = [int(program.dims[a].xreplace({k: sp.Integer(v) for k, v in numbers.items()})) for a in axes]
    used = [k for k, a in enumerate(axes) if any(a in integer_symbols(u) for u in sub)]
    domain = np.broadcast_to(domain, lengths)
    kept = domain.any(axis=tuple(k for k in range(len(axes)) if k not in used))
    at = dict(zip((axes[k] for k in used), np.nonzero(kept), strict=True))
    whole = Subscripts(lambda n: np.asarray(inputs[n]).astype(np.int64) if n in inputs else None, numbers)
    place = np.broadcast_arrays(*(np.clip(whole.value(u, at)[0], 0, n - 1) for u, n in zip(sub, shape, strict=True)))
    found = np.zeros(shape, dtype=bool)
    found[tuple(p.astype(np.int64) for p in place)] = True
    return found


def _known(program: Program, name: str, given: Collection[str]) -> bool:
    """Whether the numbers that a condition reads are given, or a count of pairs; where not, it is taken to hold."""
    return name in given or (name in program and not reads(program[name].expr) and bool(program[name].over))


def _domain(
    program: Program, s: Statement, axes: tuple[sp.Symbol, ...], inputs: Mapping[str, Array], sizes: Mapping[str, int]
) -> Bools:
    """Where a statement is evaluated, over ``axes``; a count of keys that its condition reads is counted."""
    numbers = {a: sizes[str(a)] for a in program.sizes}
    table = {**numbers, **{a: int(n.xreplace({k: sp.Integer(v) for k, v in numbers.items()})) for a, n in program.dims.items()}}
    tensors = dict(inputs)
    given = {name for name in tensors if name in program.inputs}
    kept_conditions = [c for c in s.conditions if all(_known(program, name_of(x), given) for x in all_reads(c))]
    s = replace(s, where=sp.And(*kept_conditions))
    for x in all_reads(s.where):
        name = name_of(x)
        if name not in tensors:
            counted = program[name]
            kept = _domain(program, counted, counted.domain, inputs, sizes)
            full = np.broadcast_to(kept, [table[a] for a in counted.domain])
            tensors[name] = full.sum(axis=tuple(range(len(counted.indices), full.ndim)))
    return holds(s, axes, table, tensors)
