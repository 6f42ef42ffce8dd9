"""From "divide by the sum" to "subtract its logarithm": ``P = exp(S - L)``, the order of kernels that hold log-probabilities."""

from __future__ import annotations

from dataclasses import replace

from symattn.presentation.listing import in_order
from symattn.presentation.presented import DROPPED, NOT_APPLICABLE, Step
from symattn.presentation.proof import changed_names, verdict
from symattn.presentation.saved import with_lse
from symattn.presentation.softmax import softmaxes
from symattn.program import Program

__all__ = ["through_lse"]

_RULE = "through the log-sum-exp"


def through_lse(program: Program, *, steps: list[Step] | None = None) -> Program:
    """The program with the weights ``P = E/l`` of every softmax computed as ``P = exp(S - L)``.

    Parameters
    ----------
    program
        Any program, a gradient from kept weights included.
    steps
        A list that takes what was done, or why nothing was.

    Returns
    -------
    Program
        The same outputs. ``L = m + log(l)`` is the program's own statement, in its base, where it has one. A sink's weight is
        ``exp(sink - L)``. A program without a softmax is returned unchanged.

    Notes
    -----
    Proved for all sizes, or checked in balls; a rewriting that is neither is not made. On paper nothing changes; in floats the
    rounding of ``L`` is one error that all weights of a row share, and grows with the size of ``L``.

    >>> import sympy as sp
    >>> from symattn.program import Statement, indices, size, tensor
    >>> i, j = indices("i j")
    >>> E, l, m = tensor("E", i, j), tensor("l", i), tensor("m", i)
    >>> weights = Program(
    ...     (
    ...         Statement(m, tensor("S", i, j), (j,), reduce="max", range_only=True),
    ...         Statement(E, sp.exp(tensor("S", i, j) - m)),
    ...         Statement(l, E, (j,)),
    ...         Statement(tensor("P", i, j), E / l),
    ...     ),
    ...     {i: size("n"), j: size("m")},
    ...     ("P",),
    ... )
    >>> print(through_lse(weights))
    m[i] = max over j of S[i, j]
    E[i, j] = exp(S[i, j] - m[i])
    l[i] = sum over j of E[i, j]
    L[i] = log(l[i]) + m[i]
    P[i, j] = exp(-L[i] + S[i, j])
    """
    log: list[Step] = [] if steps is None else steps
    found = softmaxes(program)
    if not found:
        log.append(Step(_RULE, NOT_APPLICABLE, (), "no exponential is divided by the sum of its kind"))
        return program
    old, saved = with_lse(program, found)
    new = list(old)
    for x in saved:
        new = [replace(s, expr=x.through(s.expr, old)) for s in new]
    through = old.with_statements(in_order(new), program.outputs)
    status = verdict(old, through, program.outputs)
    names = changed_names(old.statements, through.statements)
    log.append(Step(_RULE, status, names, "the weights are exponentials of the scores less their log-sum-exp"))
    return program if status == DROPPED else through.live()
