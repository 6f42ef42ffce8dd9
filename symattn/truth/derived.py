"""The programs that values are taken from: a forward program with its gradient, with its tangent, with the tangent of both."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import sympy as sp

from symattn.adjoint import adjoint
from symattn.claims import prove_range_only
from symattn.derivative import forward, tangent_name
from symattn.indexed import tensor
from symattn.presentation.softmax import sign_of
from symattn.program import Program, Statement

__all__ = ["with_gradient", "with_tangent"]


@lru_cache(maxsize=256)
def with_gradient(program: Program) -> Program:
    """A forward program followed by its gradient as the rule gives it; its outputs are those of both.

    >>> from symattn.definition import Definition
    >>> with_gradient(Definition(lse=False).program()).outputs
    ('O', 'dK', 'dQ', 'dV')
    """
    raw = adjoint(program)
    return raw.with_statements(raw.statements, dict.fromkeys((*program.outputs, *raw.outputs)))


@lru_cache(maxsize=256)
def with_tangent(program: Program, moved: tuple[str, ...], gradient: bool = False) -> Program:
    """A forward program, perhaps with its gradient, followed by the tangent of all of it along some inputs.

    Parameters
    ----------
    program
        The forward program.
    moved
        The tensors that move: real inputs, and gradients of outputs (``dO``) where there is a gradient.
    gradient
        Whether the gradient is there, whose tangents are the Hessian-vector products.

    Returns
    -------
    Program
        Every tensor that is not ``range_only`` has a tangent, which is 0 where nothing that it depends on moves. The log-sum-exp
        of a row that keeps no key, -oo whatever moves, has the tangent 0.

    Raises
    ------
    NotDifferentiableError, ProofError
        As :func:`symattn.adjoint.tangent`.

    Notes
    -----
    A row maximum is held constant in the tangent of a gradient too: the outputs are proved not to depend on its value, so their
    derivatives, at any value of it, do not either.

    >>> from symattn.definition import Definition
    >>> print(with_tangent(Definition(lse=False).program(), ("V",), True)["dP_t"])
    dP_t[i, j] = sum over e of V_t[j, e]*dO[i, e]
    """
    prove_range_only(program)
    base = with_gradient(program) if gradient else program
    raw = forward(base, [n for n in moved if n in base.inputs])
    made = [_where_defined(s, raw) if s.name not in base else s for s in raw]
    names = {s.name for s in made}
    still = [s for s in base if not s.range_only and tangent_name(s.name) not in names]
    made += [Statement(tensor(tangent_name(s.name), *s.indices), sp.S.Zero) for s in still]
    outputs = (*base.outputs, *(tangent_name(n) for n in base.outputs))
    return raw.with_statements(made, outputs)


def _where_defined(s: Statement, program: Program) -> Statement:
    """A quotient by a sum that may be over nothing (a row that keeps no key) is taken where there is something."""
    if s.over or s.where != sp.true:
        return s
    below = {p.base for p in s.expr.atoms(sp.Pow) if p.exp.could_extract_minus_sign()}
    empty = [b for b in below if isinstance(b, sp.Indexed) and sign_of(b, program) == "nonnegative"]
    return replace(s, where=sp.And(*[sp.Ne(b, 0) for b in sorted(empty, key=str)])) if empty else s
