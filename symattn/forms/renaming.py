"""Statements of one attention under other names, so that two of them can stand in one program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import sympy as sp

from symattn.indexed import name_of, tensor
from symattn.program import Statement


def called(s: Statement, names: Mapping[str, str], symbols: Mapping[sp.Symbol, sp.Symbol]) -> Statement:
    """The statement with tensors under other names, and with other indices and sizes.

    >>> from symattn.indexed import indices
    >>> i, j, t = indices("i j t")
    >>> row = Statement(tensor("l", i), tensor("E", i, j), (j,), where=sp.Gt(tensor("E", i, j), 0))
    >>> print(called(row, {"l": "lx", "E": "Ex"}, {j: t}))
    lx[i] = sum over t of Ex[i, t]   where Ex[i, t] > 0
    """

    def other(e: sp.Basic) -> sp.Basic:
        return e.replace(
            lambda x: isinstance(x, sp.Indexed) and name_of(x) in names, lambda x: tensor(names[name_of(x)], *x.indices)
        )

    s = s.renamed(symbols)
    return replace(s, target=other(s.target), expr=other(s.expr), where=other(s.where))
