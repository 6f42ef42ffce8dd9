"""The statements that follow those of a definition: its gradient, its tangent, and the tangent of its gradient.

Each is derived by the one rule and brought to the form that people know, with how every rewriting is known to be right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from symattn.adjoint import adjoint
from symattn.claims import prove_range_only
from symattn.derivation.backorder import in_field_order
from symattn.derivative import forward, real_inputs
from symattn.presentation import Presented, Step, present, present_tangent
from symattn.program import Program, Statement
from symattn.truth.derived import with_gradient, with_tangent

__all__ = ["Derived", "derived"]


@dataclass(frozen=True)
class Derived:
    """A forward program and what was derived from it.

    Parameters
    ----------
    program
        Forward statements, then those of the gradient, then those of the tangent, in the order in which they are read.
    raw
        The same quantities as the rule gives them, before anything was rewritten.
    base
        The number of statements before the tangent.
    forward
        The number of forward statements.
    rewritings
        Every rewriting, with how it is known to be right.
    """

    program: Program
    raw: Program
    base: int
    forward: int
    rewritings: tuple[Step, ...] = ()

    @property
    def gradient(self) -> frozenset[str]:
        """The names of the statements of the gradient."""
        return frozenset(s.name for s in self._statements[self.forward : self.base])

    @property
    def tangent(self) -> frozenset[str]:
        """The names of the statements of the tangent, that of the gradient included."""
        return frozenset(s.name for s in self._statements[self.base :])

    @property
    def _statements(self) -> tuple[Statement, ...]:
        return self.program.statements


def derived(
    program: Program,
    *,
    gradient: bool = False,
    jvp: bool = False,
    hvp: bool = False,
    moved: Sequence[str] = (),
    known: Presented | None = None,
) -> Derived:
    r"""A program with its gradient, its tangent along some inputs, and the tangent of its gradient, as asked.

    Parameters
    ----------
    program
        The forward program.
    gradient, jvp, hvp
        What is derived; ``hvp``, the tangent of the gradient, brings the gradient with it.
    moved
        The tensors that move, gradients of outputs (``dO``) among them; all inputs that have a gradient where it is empty.
    known
        The gradient as an algorithm runs it, behind ``program``; the derived gradient in the form that people know by default.

    Raises
    ------
    NotDifferentiableError, ProofError
        As :func:`symattn.adjoint.adjoint` and :func:`symattn.adjoint.tangent`.

    >>> from symattn.definition import Definition
    >>> found = derived(Definition(lse=False).program(), hvp=True, moved=["V"])
    >>> print(*found.program.statements[found.base :], sep="\n")
    dP_t[i, j] = sum over e of V_t[j, e]*dO[i, e]
    D_t[i] = sum over j of P[i, j]*dP_t[i, j]
    dS_t[i, j] = (-D_t[i] + dP_t[i, j])*P[i, j]
    dQ_t[i, c] = sum over j of scale*K[j, c]*dS_t[i, j]
    dK_t[j, c] = sum over i of scale*Q[i, c]*dS_t[i, j]
    dV_t[j, e] = 0
    """
    base, raw = program, program
    steps: tuple[Step, ...] = ()
    if gradient or hvp:
        first = known or present(program, adjoint(program))
        base, raw, steps = in_field_order(first.program, program), with_gradient(program), first.steps
    if not (jvp or hvp):
        return Derived(base, raw, len(base), len(program), steps)
    moves = tuple(moved) or real_inputs(program)
    outputs = ((*program.outputs,) if jvp else ()) + (tuple(dict.fromkeys(base.outputs)) if hvp else ())
    prove_range_only(program)  # what holds for any value of a row maximum holds for the gradient too
    start = base.with_statements(base.statements, outputs)
    second = present_tangent(start, forward(start, [n for n in moves if n in base.inputs]))
    shown = second.program.with_statements(second.program.statements, dict.fromkeys((*base.outputs, *second.program.outputs)))
    return Derived(shown, with_tangent(program, moves, gradient or hvp), len(base), len(program), (*steps, *second.steps))
