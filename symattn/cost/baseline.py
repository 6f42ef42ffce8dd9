"""A simple recurrent layer as a program: what attention is compared with."""

from __future__ import annotations

import sympy as sp

from symattn.indexed import indices, size, tensor
from symattn.program import Program, Scan, Statement

__all__ = ["recurrent_layer"]


def recurrent_layer() -> Program:
    """``h[i] = tanh(W x[i] + U h[i-1] + b)``, with d channels in and out: one position after the other.

    Source: Elman, *Finding structure in time*, 1990; the comparison is that of Vaswani et al., 2017, table 1.

    >>> [s.name for s in recurrent_layer()]
    ['a', 'u', 'h']
    """
    i, c, p, q = indices("i c p q")
    n, d = size("n"), size("d")
    walk = Scan(i)
    state = tensor("h", i, c)
    return Program(
        (
            Statement(tensor("a", i, c), tensor("W", c, p) * tensor("X", i, p), (p,)),
            Statement(tensor("u", i, c), tensor("U", c, q) * tensor("h", i - 1, q), (q,), scan=walk),
            Statement(state, sp.tanh(tensor("a", i, c) + tensor("u", i, c) + tensor("b", c)), scan=walk),
        ),
        {i: n, c: d, p: d, q: d},
        ("h",),
    )
