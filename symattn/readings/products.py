"""Sums of products of float arrays that carry index symbols, by batched matrix products, the cheapest pair first.

An :data:`Operand` is an array and the tuple of indices of its axes. There is no rounding analysis here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import sympy as sp

Array: TypeAlias = "np.ndarray[Any, Any]"
Operand: TypeAlias = tuple[Array, tuple[sp.Symbol, ...]]
Sizes: TypeAlias = Mapping[sp.Symbol, int]


def contract(operands: Sequence[Operand], out: Sequence[sp.Symbol], over: Sequence[sp.Symbol], sizes: Sizes) -> Array:
    """The sum over the indices ``over`` of the product of the operands, with axes ``out``.

    An index of ``over`` that no operand carries multiplies by its size; an index of ``out`` that none carries is broadcast.

    >>> i, j = sp.symbols("i j", integer=True)
    >>> a = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> contract([(a, (i, j)), (np.array([10.0, 1.0]), (j,))], (i,), (j,), {i: 2, j: 2})
    array([12., 34.])
    """
    todo = [(np.asarray(a, dtype=np.float64), tuple(ix)) for a, ix in operands] or [(np.ones(()), ())]
    order = tuple(dict.fromkeys(x for _, ix in sorted(todo, key=lambda t: -t[0].size) for x in ix))
    while len(todo) > 1:
        p, q, keep = _cheapest([ix for _, ix in todo], out, sizes)
        pair = _pair(todo[p], todo[q], keep, order if len(todo) > 2 else out, sizes)
        todo = [t for k, t in enumerate(todo) if k not in (p, q)] + [pair]
    a, ix = todo[0]
    free = math.prod(sizes[x] for x in over if not any(x in jx for _, jx in operands))
    gone = tuple(k for k, x in enumerate(ix) if x not in out)
    a, ix = (a.sum(axis=gone) if gone else a), tuple(x for x in ix if x in out)
    if free != 1:
        a = a * free
    a = np.asarray(align(a, ix, tuple(out), sizes), order="C")  # passes over arrays of other orders of axes are slow
    return np.broadcast_to(a, [sizes[x] for x in out])


def largest_space(ixs: Sequence[tuple[sp.Symbol, ...]], out: Sequence[sp.Symbol], sizes: Sizes) -> int:
    """The most points that one step of :func:`contract` runs over, for operands with the given indices.

    >>> i, j, k = sp.symbols("i j k", integer=True)
    >>> largest_space([(i, j), (j, k)], (i, k), {i: 2, j: 3, k: 5})
    30
    """
    todo, most = list(ixs), max([_count(ix, sizes) for ix in (*ixs, tuple(out))])
    while len(todo) > 1:
        p, q, keep = _cheapest(todo, out, sizes)
        most = max(most, _count(tuple({*todo[p], *todo[q]}), sizes))
        todo = [ix for k, ix in enumerate(todo) if k not in (p, q)] + [keep]
    return most


def align(a: Array, ix: tuple[sp.Symbol, ...], axes: tuple[sp.Symbol, ...], sizes: Sizes) -> Array:
    """The array with its axes in the order of ``axes`` and an axis of length 1 for each index that it lacks."""
    if not ix:
        return np.reshape(a, (1,) * len(axes))
    order = [x for x in axes if x in ix]
    return a.transpose([ix.index(x) for x in order]).reshape([sizes[x] if x in ix else 1 for x in axes])


def _cheapest(ixs: list[tuple[sp.Symbol, ...]], out: Sequence[sp.Symbol], sizes: Sizes) -> tuple[int, int, tuple[sp.Symbol, ...]]:
    """The pair whose product shrinks the list most, and the indices that its product keeps."""
    if len(ixs) == 2:
        return 0, 1, tuple(x for x in dict.fromkeys(ixs[0] + ixs[1]) if x in out)
    lengths = tuple((x, sizes[x]) for x in dict.fromkeys(y for ix in ixs for y in ix))
    return _cheapest_of(tuple(ixs), tuple(out), lengths)


@lru_cache(maxsize=4096)
def _cheapest_of(
    ixs: tuple[tuple[sp.Symbol, ...], ...], out: tuple[sp.Symbol, ...], lengths: tuple[tuple[sp.Symbol, int], ...]
) -> tuple[int, int, tuple[sp.Symbol, ...]]:
    sizes = dict(lengths)
    best: tuple[tuple[int, int], int, int, tuple[sp.Symbol, ...]] | None = None
    for p in range(len(ixs)):
        for q in range(p + 1, len(ixs)):
            wanted = set(out).union(*[set(ix) for k, ix in enumerate(ixs) if k not in (p, q)])
            union = tuple(dict.fromkeys(ixs[p] + ixs[q]))
            keep = tuple(x for x in union if x in wanted)
            cost = (_count(keep, sizes) - _count(ixs[p], sizes) - _count(ixs[q], sizes), _count(union, sizes))
            if best is None or cost < best[0]:
                best = (cost, p, q, keep)
    assert best is not None
    return best[1:]


def _pair(first: Operand, second: Operand, keep: tuple[sp.Symbol, ...], order: Sequence[sp.Symbol], sizes: Sizes) -> Operand:
    """The product of two operands, summed over what is not kept, as one batched matrix product; its axes in a given order."""
    (a, ia), (b, ib) = first, second
    a, ia = _sum_out(a, ia, keep, ib)
    b, ib = _sum_out(b, ib, keep, ia)
    place = {x: k for k, x in enumerate(order)}
    batch, rows, columns = (
        sorted(found, key=lambda x: place.get(x, len(place)))
        for found in ([x for x in ia if x in ib and x in keep], [x for x in ia if x not in ib], [x for x in ib if x not in ia])
    )
    if rows and columns and place.get(rows[0], len(place)) > place.get(columns[0], len(place)):
        a, ia, rows, b, ib, columns = b, ib, columns, a, ia, rows
    bound = [x for x in ia if x in ib and x not in keep]
    at = a.transpose([ia.index(x) for x in batch + rows + bound])
    bt = b.transpose([ib.index(x) for x in batch + bound + columns])
    kept = (*batch, *rows, *columns)
    if not bound:
        lead, end = at.shape, bt.shape[len(batch) :]
        return at.reshape(lead + (1,) * len(end)) * bt.reshape(bt.shape[: len(batch)] + (1,) * len(rows) + end), kept
    nb, nr, ns, nc = (_count(ix, sizes) for ix in (batch, rows, bound, columns))
    out = np.matmul(at.reshape((nb, nr, ns)), bt.reshape((nb, ns, nc)))
    return out.reshape(tuple(sizes[x] for x in kept)), kept


def _count(ix: Sequence[sp.Symbol], sizes: Sizes) -> int:
    return math.prod([sizes[x] for x in ix])


def _sum_out(a: Array, ix: tuple[sp.Symbol, ...], keep: Sequence[sp.Symbol], other: Sequence[sp.Symbol]) -> Operand:
    gone = tuple(k for k, x in enumerate(ix) if x not in keep and x not in other)
    return (a.sum(axis=gone), tuple(x for x in ix if x in keep or x in other)) if gone else (a, ix)
