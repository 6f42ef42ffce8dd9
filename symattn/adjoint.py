"""Gradients and tangents of programs, each given as a program: the door to the derivative rule of :mod:`symattn.derivative`.

Every statement that claims ``range_only`` (its value cancels, as a row maximum does) is proved to do so first.
"""

from __future__ import annotations

from collections.abc import Iterable

from symattn.claims import prove_range_only
from symattn.derivative import backward, forward
from symattn.program import Program

__all__ = ["adjoint", "tangent"]


def adjoint(program: Program, wrt: Iterable[str] | None = None) -> Program:
    """The gradient of <seeds, outputs> with respect to ``wrt``: the statements of ``program``, followed by the backward ones.

    Parameters
    ----------
    program
        Any program. Statements with ``reduce="max"`` must be ``range_only`` where ``wrt`` reaches them.
    wrt
        Names of inputs (scalar parameters included) or defined tensors; all inputs that have a gradient by default.

    Returns
    -------
    Program
        Its outputs are the gradients, in the order of ``wrt``, named ``"d" + name`` and shaped like the tensor. Its new inputs
        are the seeds, ``"d" + output``. Where an output is read by later statements too, its whole gradient is named ``"dO'"``
        and the seed ``"dO"``; in general a name that is taken gets primes. Contributions that cannot share a statement are
        named ``"dX_Y"``: what ``dX`` receives from the statement of ``Y``. The gradient by an input that no output depends on
        is 0.

    Raises
    ------
    NotDifferentiableError
        At a maximum that is not ``range_only``, a ``Max`` inside an expression, or a ``wrt`` that only conditions and subscripts
        read.
    ProofError
        When a ``range_only`` claim is not proved.
    UnknownNameError
        When ``wrt`` names no tensor of the program.

    Notes
    -----
    Exact: no rounding and no approximation is involved. The rule is reverse accumulation (Griewank and Walther, *Evaluating
    Derivatives*, 2008) on statements. Derivatives are those almost everywhere: ``sign`` and conditions are constant.

    >>> from symattn.program import Statement, index, size, tensor
    >>> i, j = index("i"), index("j")
    >>> y = Statement(tensor("y", i), tensor("A", i, j) * tensor("x", j), (j,))
    >>> print(adjoint(Program((y,), {i: size("n"), j: size("m")}, ("y",))))
    y[i] = sum over j of A[i, j]*x[j]
    dA[i, j] = dy[i]*x[j]
    dx[j] = sum over i of A[i, j]*dy[i]
    """
    prove_range_only(program)
    return backward(program, wrt).program


def tangent(program: Program, wrt: Iterable[str] | None = None) -> Program:
    """The derivative of the outputs along a direction: the statements of ``program``, followed by the tangent ones.

    Parameters
    ----------
    program
        Any program, as for :func:`adjoint`.
    wrt
        Names of the tensors that move; all inputs that have a gradient by default.

    Returns
    -------
    Program
        The direction of a tensor ``X`` is the new input ``"X_t"``; the outputs are ``"O_t"`` for every output ``O``.

    Raises
    ------
    NotDifferentiableError, ProofError, UnknownNameError
        As for :func:`adjoint`.

    >>> from symattn.program import Statement, index, size, tensor
    >>> i, j = index("i"), index("j")
    >>> y = Statement(tensor("y", i), tensor("A", i, j) * tensor("x", j), (j,))
    >>> print(tangent(Program((y,), {i: size("n"), j: size("m")}, ("y",)), ["x"]))
    y[i] = sum over j of A[i, j]*x[j]
    y_t[i] = sum over j of A[i, j]*x_t[j]
    """
    prove_range_only(program)
    return forward(program, wrt)
