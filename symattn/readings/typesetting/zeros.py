r"""Which sums need their condition written: those whose summand is not already 0 outside it.

``O = P V`` holds for a causal P although the statement says "where j <= i", because P is 0 elsewhere. A matrix form leaves the
condition out where this is so and writes the 0/1 matrix ``[j \le i]_{ij}`` where it is not.
"""

from __future__ import annotations

import sympy as sp

from symattn.program import Program, Statement, integer_symbols, name_of, subscripts_of


def vanishes_outside(program: Program, e: sp.Expr, condition: sp.Basic) -> bool:
    """Whether an expression is 0, by the structure of the program, wherever a condition fails.

    >>> from symattn.program import indices, size, tensor
    >>> i, j = indices("i j")
    >>> s = Statement(tensor("P", i, j), tensor("E", i, j), where=sp.Le(j, i))
    >>> p = Program((s,), {i: size("n"), j: size("m")}, ("P",))
    >>> vanishes_outside(p, tensor("P", i, j) * 2, sp.Le(j, i)), vanishes_outside(p, tensor("E", i, j), sp.Le(j, i))
    (True, False)
    """
    if isinstance(e, sp.Add):
        return all(vanishes_outside(program, t, condition) for t in e.args)
    if isinstance(e, sp.Mul):
        return any(vanishes_outside(program, f, condition) for f in e.args)
    if isinstance(e, sp.Pow):
        return bool(e.exp.is_Rational and e.exp.is_positive) and vanishes_outside(program, e.base, condition)
    if not isinstance(e, (sp.Indexed, sp.Symbol)) or name_of(e) not in program:
        return False
    return _defined_zero(program, program[name_of(e)], e, condition)


def _defined_zero(program: Program, s: Statement, read: sp.Expr, condition: sp.Basic) -> bool:
    if s.over and s.reduce != "sum":
        return False
    subscripts = subscripts_of(read)
    if set(s.over) & integer_symbols(condition) or not all(isinstance(x, sp.Symbol) for x in subscripts):
        return False
    back = dict(zip(subscripts, s.indices, strict=True))
    if len(back) != len(subscripts) or set(s.domain) & (integer_symbols(condition) - set(back)):
        return False
    inside = condition.xreplace(back)
    if integer_symbols(inside) & set(s.over):
        return False
    return inside in s.conditions or vanishes_outside(program, s.expr, inside)
