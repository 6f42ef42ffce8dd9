"""From "divide, then average" to "average, then divide": ``N = sum_j E V``, ``O = N/l``, the order of tiled kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace

import sympy as sp

from symattn.presentation.listing import free_name, in_order
from symattn.presentation.presented import NOT_APPLICABLE, PROVED, Step
from symattn.presentation.proof import changed_names, proved
from symattn.presentation.scalars import renaming
from symattn.presentation.softmax import Normalisation, normalisations, sign_of
from symattn.program import Program, Statement, Tensor, name_of, reads, subscripts_of, tensor

__all__ = ["normalise_last"]

_RULE = "normalise last"


@dataclass(frozen=True)
class _Weights:
    """A tensor that is ``numerator / divisor``: the weights themselves, or a multiple of them (what dropout keeps)."""

    statement: Statement
    numerator: Tensor
    base: Normalisation
    made: tuple[Statement, ...]


def normalise_last(program: Program, *, steps: list[Step] | None = None) -> Program:
    """The program with every average by weights ``P = E/l`` computed unnormalised and divided at the end, for all sizes.

    Parameters
    ----------
    program
        Any program. Weights are found by structure: a tensor over a sum of that tensor. Multiples of weights (dropout) count.
    steps
        A list that takes what was done, or why nothing was.

    Returns
    -------
    Program
        The same outputs. ``O[..] = sum over j of P V`` becomes ``N[..] = sum over j of E V`` and ``O = N/l``; where a row
        may be empty, ``O = N/l where l != 0``, so that an empty row gives 0 as before. Weights that nothing else reads are left
        out. New names: ``N`` (numbered when taken) and, for multiples of weights such as ``Pd``, the name of the numerator with
        the same ending, ``Ed``. A program without such an average is returned unchanged.

    Notes
    -----
    Each rewriting is proved by the normal form; one that is not is not made. Side condition: where ``l`` is not 0.

    >>> from symattn.program import indices, size
    >>> j, = indices("j")
    >>> E, l, P = tensor("E", j), tensor("l"), tensor("P", j)
    >>> weights = Program(
    ...     (
    ...         Statement(E, sp.exp(tensor("z", j))),
    ...         Statement(l, E, (j,)),
    ...         Statement(P, E / l),
    ...         Statement(tensor("o"), P * tensor("v", j), (j,)),
    ...     ),
    ...     {j: size("m")},
    ...     ("o",),
    ... )
    >>> print(normalise_last(weights))
    E[j] = exp(z[j])
    l = sum over j of E[j]
    N = sum over j of E[j]*v[j]
    o = N/l
    """
    log: list[Step] = [] if steps is None else steps
    found = normalisations(program)
    if not found:
        log.append(Step(_RULE, NOT_APPLICABLE, (), "no tensor is divided by a sum of itself"))
        return program
    for name in [s.name for s in program if s.over and s.reduce == "sum" and s.expr.is_Mul]:
        program = _divided_last(program, program[name], found, log)
    return program.live()


def _weights(program: Program, n: Normalisation) -> dict[str, _Weights]:
    """The weights of a normalisation and every multiple of them, each with its unnormalised counterpart."""
    out = {n.weight.name: _Weights(n.weight, n.numerator, n, ())}
    for s in program:
        if s.over or not s.expr.is_Mul:
            continue
        inside = [x for x in s.expr.args if isinstance(x, (sp.Indexed, sp.Symbol)) and name_of(x) in out]
        if len(inside) == 1 and name_of(inside[0]) != s.name and inside[0] == out[name_of(inside[0])].statement.target:
            w = out[name_of(inside[0])]
            if sum(name_of(x) in out for x in reads(s.expr)) > 1:
                continue
            wish = name_of(n.numerator) + s.name.removeprefix(n.weight.name)
            counterpart = tensor(free_name(wish, program), *s.indices)
            statement = replace(s, target=counterpart, expr=s.expr / inside[0] * w.numerator, aux=True)
            out[s.name] = _Weights(s, counterpart, n, (*w.made, statement))
    return out


def _divided_last(program: Program, s: Statement, found: tuple[Normalisation, ...], log: list[Step]) -> Program:
    """The program with the sum ``s`` divided last, if it reads weights once, summed over what they are normalised over."""
    for n in found:
        table = _weights(program, n)
        hits = [x for x in s.expr.args if isinstance(x, sp.Indexed) and name_of(x) in table]
        if len(hits) != 1 or sum(name_of(x) in table for x in reads(s.expr)) != 1:
            continue
        w = table[name_of(hits[0])]
        to = renaming(w.statement.target, hits[0])
        if to is None or hits[0].xreplace({v: k for k, v in to.items()}) != w.statement.target:
            continue
        divisor, numerator = n.divisor.xreplace(to), w.numerator.xreplace(to)
        if set(subscripts_of(divisor)) & set(s.over) or not set(subscripts_of(divisor)) <= set(s.indices):
            continue
        return _rewritten(program, s, w, hits[0], (numerator, divisor), log)
    return program


def _rewritten(
    program: Program, s: Statement, w: _Weights, read: Tensor, parts: tuple[Tensor, Tensor], log: list[Step]
) -> Program:
    numerator, divisor = parts
    sign = sign_of(divisor, program)
    covered = set(w.base.total.conditions) <= set(w.base.weight.conditions)
    if sign == "unknown" or (sign == "nonnegative" and not covered):
        log.append(Step(_RULE, NOT_APPLICABLE, (s.name,), f"{name_of(divisor)} is not known to be 0 only where the row is empty"))
        return program
    total = tensor(free_name("N", program), *s.indices)
    quotient = Statement(s.target, total / divisor)
    made = [t for t in w.made if t.name not in program]
    new = [
        *made,
        *(q for t in program for q in ((replace(t, target=total, expr=t.expr / read * numerator), quotient) if t is s else (t,))),
    ]
    names = changed_names(program.statements, new)
    if not proved(program.statements, in_order(new), program):
        log.append(Step(_RULE, NOT_APPLICABLE, names, "not proved"))
        return program
    log.append(Step(_RULE, PROVED, names, "the division leaves the sum"))
    last = quotient if sign == "positive" else replace(quotient, where=sp.Ne(divisor, 0))
    return program.with_statements(in_order(last if t is quotient else t for t in new))
