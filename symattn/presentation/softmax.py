"""Where a program normalises: the weights ``P = E/l`` whose normaliser ``l`` sums their own numerator ``E``, found by structure.

Nothing here goes by name. A sink makes ``l`` a sum of sums; the log-sum-exp is the statement that reads ``log(l)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import sympy as sp

from symattn.presentation.scalars import factors, renaming
from symattn.program import Program, Statement, Tensor, integer_symbols, name_of, reads, subscripts_of

__all__ = ["Normalisation", "exponent", "log_sum_exp", "normalisations", "shift", "sign_of"]


@dataclass(frozen=True)
class Normalisation:
    """Weights ``weight = numerator / divisor`` where ``divisor`` is the sum of ``numerator`` over ``over``, and what a sink adds.

    Parameters
    ----------
    weight
        The statement of the weights, for example ``P[i, j] = E[i, j]/l[i]``.
    numerator, divisor
        The tensors that it reads, with the indices of ``weight``.
    over
        The summed indices.
    total
        The statement that sums the numerator.
    """

    weight: Statement
    numerator: Tensor
    divisor: Tensor
    over: tuple[sp.Symbol, ...]
    total: Statement


def normalisations(program: Program) -> tuple[Normalisation, ...]:
    """Every place where a program divides a tensor by a sum of it, in order."""
    return tuple(n for s in program if not s.over and s.expr.is_Mul for n in _of(s, program))


def softmaxes(program: Program) -> tuple[Normalisation, ...]:
    """The normalisations of exponentials."""
    return tuple(n for n in normalisations(program) if exponent(n.numerator, program) is not None)


def _of(s: Statement, program: Program) -> Iterator[Normalisation]:
    below = [f.base for f in sp.Mul.make_args(s.expr) if f.is_Pow and f.exp == -1]
    above = [f for f in factors(s.expr) if isinstance(f, (sp.Indexed, sp.Symbol))]
    if len(below) != 1 or len(above) != 1 or s.expr != above[0] / below[0] or not isinstance(below[0], (sp.Indexed, sp.Symbol)):
        return
    numerator, divisor = above[0], below[0]
    for total in _totals(divisor, program):
        if name_of(total.expr) == name_of(numerator) and subscripts_of(total.expr) == subscripts_of(numerator):
            yield Normalisation(s, numerator, divisor, total.over, total)
            return


def _totals(divisor: Tensor, program: Program) -> Iterator[Statement]:
    """The sums of one tensor that a divisor is, or is the sum of, in the indices of the divisor."""
    if name_of(divisor) not in program:
        return
    s = program[name_of(divisor)]
    table = renaming(s.target, divisor)
    if table is None or any(a in table.values() and a not in s.indices for a in s.over):
        return
    s = s.renamed({a: b for a, b in table.items() if isinstance(b, sp.Symbol)})
    if s.over and s.reduce == "sum" and isinstance(s.expr, sp.Indexed):
        yield s
    elif not s.over and (s.expr.is_Add or isinstance(s.expr, sp.Indexed)):
        for x in s.expr.args if s.expr.is_Add else (s.expr,):
            if isinstance(x, (sp.Indexed, sp.Symbol)):
                yield from _totals(x, program)


def sign_of(x: sp.Expr, program: Program, assumed: frozenset[str] = frozenset()) -> str:
    """``"positive"``, ``"nonnegative"`` or ``"unknown"``: what structure shows about an expression in the tensors of a program.

    A value outside a ``where``, and a sum over nothing, is 0; that is all that keeps a sum of exponentials from being positive.
    In a scan the value before the first step is 0 and earlier steps are taken as nonnegative (``assumed``): induction.
    """
    if x.is_Number:
        return "positive" if x > 0 else "nonnegative" if x == 0 else "unknown"
    if isinstance(x, sp.exp):
        return "positive"
    if isinstance(x, (sp.Indexed, sp.Symbol)) and name_of(x) in program:
        s = program[name_of(x)]
        if s.name in assumed:
            return "nonnegative"
        inside = sign_of(s.expr, program, assumed | {s.name} if s.scan is not None else assumed)
        whole = s.reduce == "sum" or not s.over
        if inside == "unknown" or not whole:
            return "unknown"
        return inside if s.where == sp.true and s.scan is None else "nonnegative"
    parts = [sign_of(a, program, assumed) for a in x.args]
    if x.is_Add and parts and "unknown" not in parts:
        return "positive" if "positive" in parts else "nonnegative"
    if x.is_Mul and parts and "unknown" not in parts:
        return "positive" if set(parts) == {"positive"} else "nonnegative"
    if x.is_Pow and parts[0] == "positive" and x.exp.is_Integer:
        return "positive"
    return "unknown"


def exponent(numerator: Tensor, program: Program) -> sp.Expr | None:
    """What the numerator is the exponential of; None when it is no exponential."""
    if name_of(numerator) not in program:
        return None
    s = program[name_of(numerator)]
    if s.over or not isinstance(s.expr, sp.exp):
        return None
    table = renaming(s.target, numerator)
    return None if table is None else s.expr.args[0].xreplace(table)


def shift(exponent_: sp.Expr, program: Program) -> sp.Expr:
    """The range-only part of an exponent with its sign turned: ``m`` of ``Z - m``."""
    terms = [t for t in sp.Add.make_args(exponent_) if any(_range_only(x, program) for x in reads(t))]
    return -sp.Add(*terms)


def _range_only(x: Tensor, program: Program) -> bool:
    return name_of(x) in program and program[name_of(x)].range_only


def log_sum_exp(n: Normalisation, program: Program) -> tuple[Statement, sp.Expr] | None:
    """The statement ``L = k*(m + log(l))`` and its ``k`` (1, or 1/log(2) in base 2); None when the program has none.

    The statement is given in the indices of the divisor.
    """
    e = exponent(n.numerator, program)
    if e is None:
        return None
    whole = shift(e, program) + sp.log(n.divisor)
    for s in program:
        if s.over or s.where != sp.true or set(s.indices) != set(subscripts_of(n.divisor)) or not s.expr.has(sp.log(n.divisor)):
            continue
        k = sp.expand(s.expr).coeff(sp.log(n.divisor))
        if not reads(k) and not integer_symbols(k) and sp.expand(s.expr - k * whole) == 0:
            return s, k
    return None
