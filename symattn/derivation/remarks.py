"""Sentences on the numbers of a step, read off its formula: a factor is an identity matrix, so the result is the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import sympy as sp

from symattn.derivation.examples import Array
from symattn.indexed import name_of, subscripts_of
from symattn.numbers import exact_array
from symattn.program import Statement


class Identity(NamedTuple):
    """An identity matrix that a step multiplies by, and the sentence that says so."""

    name: str
    sentence: str


def identity_factor(s: Statement, arrays: Mapping[str, Array]) -> Identity | None:
    """The factor of a matrix product that is an identity matrix, with what the product then is; None where there is none.

    Only a sum over one index of exactly two factors, without a condition, is such a product. Which of the result's subscripts
    the other factor has, and in which order, says whether the result is the other factor or its transpose.

    >>> from symattn.program import indices, tensor
    >>> i, j, c = indices("i j c")
    >>> eye = {"Q": exact_array([[1, 0], [0, 1]])}
    >>> identity_factor(Statement(tensor("R", i, j), tensor("Q", i, c) * tensor("K", j, c), (c,)), eye).sentence
    'The matrix Q is the identity here, so R is K transposed.'
    """
    if not isinstance(s.expr, sp.Mul) or len(s.expr.args) != 2 or len(s.over) != 1 or s.reduce != "sum" or s.where != sp.true:
        return None
    if not all(isinstance(x, sp.Indexed) and len(x.indices) > 1 for x in s.expr.args) or len(s.indices) < 2:
        return None
    for x, other in (s.expr.args, s.expr.args[::-1]):
        name = name_of(x)
        if name in arrays and is_identity(arrays[name]):
            said = _result(s, x, other)
            if said:
                return Identity(name, f"The matrix {_plain(name)} is the identity here, so {said}.")
    return None


def _result(s: Statement, x: sp.Expr, other: sp.Expr) -> str:
    """What a product is where its factor ``x`` is the identity; empty where it is no matrix of the other factor."""
    (bound,) = s.over
    *lead, row, column = subscripts_of(x)
    free = column if row == bound else row
    if bound not in (row, column) or free == bound or free not in s.indices or bound in lead:
        return ""
    *above, a, b = (e.xreplace({bound: free}) for e in subscripts_of(other))
    *leading, p, q = s.indices
    if free in above or not set(above) | set(lead) <= set(leading) or above != [e for e in leading if e in above]:
        return ""
    heads = " in every head" if above != leading else ""
    if (a, b) == (p, q):
        sign = "is" if s.name.endswith("_t") else "="
        return f"{_plain(s.name)} {sign} {_plain(name_of(other))}{heads}"
    return f"{_plain(s.name)} is {_plain(name_of(other))} transposed{heads}" if (a, b) == (q, p) else ""


def is_identity(array: Array) -> bool:
    """Whether the last two axes of an array hold identity matrices.

    >>> is_identity(exact_array([[1, 0], [0, 1]])), is_identity(exact_array([[1, 0], [1, 1]]))
    (True, False)
    """
    if array.ndim < 2 or array.shape[-1] != array.shape[-2]:
        return False
    return bool((array == exact_array(np.eye(array.shape[-1], dtype=int))).all())


def _plain(name: str) -> str:
    if name.endswith("_t") and len(name) > 2:
        return f"the tangent of {_plain(name[:-2])}"
    return f"{name[0]}_{name[1:]}" if len(name) == 2 and name[0] in "FW" else name
