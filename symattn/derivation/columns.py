"""A program with every matrix transposed, for readers who write positions as columns: ``O = V P`` for ``O = P V``.

The statements say the same; only the order of two subscripts changes, in targets and reads alike. So formulas, numbers and
matrices of the page follow without a word of their own; in sentences rows are columns.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import sympy as sp

from symattn.indexed import all_reads, name_of, subscripts_of
from symattn.program import Program, Statement
from symattn.readings.latex import batch_indices


def matrices(program: Program) -> frozenset[str]:
    """The tensors that are matrices for each batch index: exactly two of their subscripts are no batch indices.

    >>> from symattn.definition import Definition
    >>> sorted(matrices(Definition(lse=False, heads=2).program()))
    ['E', 'K', 'O', 'P', 'Q', 'R', 'S', 'V']
    """
    batch = batch_indices(program)
    reads = [x for s in program for e in (s.target, s.expr, s.where) for x in all_reads(e)]
    inner = {name_of(x): [a for a in subscripts_of(x) if not (a.free_symbols & batch)] for x in reads}
    return frozenset(n for n, found in inner.items() if len(found) == 2)


def by_columns(program: Program, flipped: Collection[str] | None = None) -> Program:
    """The program with the last two subscripts of every matrix exchanged; ``flipped`` are the matrices, where they are known.

    >>> from symattn.definition import Definition
    >>> print(by_columns(Definition(lse=False).program())["O"])
    O[e, i] = sum over j of P[j, i]*V[e, j]
    """
    flipped = matrices(program) if flipped is None else flipped
    shapes = {n: (*x[:-2], x[-1], x[-2]) if n in flipped else x for n, x in program.shapes.items()}
    return Program(tuple(statement_by_columns(s, flipped) for s in program), program.dims, program.outputs, shapes)


def statement_by_columns(s: Statement, flipped: Collection[str]) -> Statement:
    """A statement with the last two subscripts of the given matrices exchanged."""

    def turn(e: sp.Basic) -> Any:
        if not e.args:
            return e
        if isinstance(e, sp.Indexed):
            own = tuple(map(turn, e.indices))
            return sp.Indexed(e.base, *(*own[:-2], own[-1], own[-2]) if name_of(e) in flipped else own)
        return e.func(*map(turn, e.args)) if any(isinstance(x, sp.Indexed) for x in sp.preorder_traversal(e)) else e

    return replace(s, target=turn(s.target), expr=turn(s.expr), where=turn(s.where))


def turned(arrays: Mapping[str, Any], flipped: Collection[str]) -> dict[str, Any]:
    """Arrays with the last two axes of every matrix exchanged."""
    return {n: a.swapaxes(-1, -2) if n in flipped else a for n, a in arrays.items()}


_SIDES = {"row": "column", "Row": "Column", "column": "row", "Column": "Row"}


def worded(text: str) -> str:
    """A sentence on rows of matrices as one on columns of the transposed ones, and the other way round.

    >>> worded("Row sums: what a row shares; the columns do not.")
    'Column sums: what a column shares; the rows do not.'
    """
    return re.sub(r"\b([Rr]ow|[Cc]olumn)(?=s?\b)", lambda m: _SIDES[m[1]], text)
