"""Expressions without min and max of what is differentiated: each becomes a sum of statements, one for each argument."""

from __future__ import annotations

import re
from collections.abc import Callable

import sympy as sp

from symattn.building import Builder
from symattn.indexed import Tensor, reads


def without_choices(b: Builder, z: sp.Expr, place: Callable[[str], Tensor], where: sp.Basic) -> sp.Expr:
    """An expression in which each min and max of tensors is a sum of statements, one per argument, where that is the choice.

    So the gradient needs no derivative of a choice: conditions are carried along and never differentiated.

    Parameters
    ----------
    b
        Gets the statements, called ``W0``, ``W1`` ...
    z
        The expression.
    place
        The target of a statement of that name, over the indices of ``z``.
    where
        The condition under which ``z`` is evaluated.
    """
    count = sum(re.fullmatch(r"W\d+", x.name) is not None for x in b.statements)
    while choices := [
        f for f in z.atoms(sp.Max, sp.Min) if reads(f) and not any(reads(g) for a in f.args for g in a.atoms(sp.Max, sp.Min))
    ]:
        f = min(choices, key=str)
        parts: list[Tensor] = []
        args = sorted(f.args, key=str)
        less = sp.Gt if isinstance(f, sp.Max) else sp.Lt
        least = sp.Ge if isinstance(f, sp.Max) else sp.Le
        for k, a in enumerate(args):
            # of equal arguments the first is chosen
            chosen = [less(a, x) for x in args[:k]] + [least(a, x) for x in args[k + 1 :]]
            parts.append(b.add(place(f"W{count}"), a, where=sp.And(where, *chosen)))
            count += 1
        z = z.xreplace({f: sp.Add(*parts)})
    return z
