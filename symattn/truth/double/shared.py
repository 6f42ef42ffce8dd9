"""Work that a program does twice, done once: what an earlier tensor is defined as is read from that tensor.

Gradients repeat parts of what they are derived from: ``exp(S[i, j] - m[i])`` where ``E[i, j]`` is there.
"""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from symattn.program import Program, Statement

__all__ = ["shared"]


def shared(program: Program) -> Program:
    """The program with expressions that define an earlier tensor replaced by reads of it.

    Let t be an earlier statement without a reduction whose expression has all of its indices, under no condition or under
    that of a later statement s. Wherever s is evaluated, t holds the value of its expression at the same values of the indices,
    which are the same symbols with the same ranges: reading t there gives what the expression gives.
    Tensors of scans, and those that are ``range_only``, stay as they are.

    >>> from symattn.program import indices, size, tensor
    >>> i, = indices("i")
    >>> x, e, y = tensor("x", i), tensor("e", i), tensor("y", i)
    >>> p = Program((Statement(e, sp.exp(x)), Statement(y, 2 * sp.exp(x) + 1)), {i: size("n")}, ("e", "y"))
    >>> print(shared(p))
    e[i] = exp(x[i])
    y[i] = 2*e[i] + 1
    """
    made: list[Statement] = []
    for s in program:
        earlier = {t.expr: t.target for t in made if _readable(t, s)} if s.scan is None and not s.range_only else {}
        made.append(replace(s, expr=s.expr.xreplace(earlier)) if earlier else s)
    return program if tuple(made) == program.statements else program.with_statements(made)


def _readable(t: Statement, s: Statement) -> bool:
    """Whether a statement may read an earlier one in place of what defines that."""
    plain = not t.over and t.scan is None and not t.range_only and t.where in (sp.true, s.where)
    return plain and isinstance(t.expr, (sp.exp, sp.log, sp.Pow)) and bool(t.indices) and t.expr.free_symbols >= set(t.indices)
