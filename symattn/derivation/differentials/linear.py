"""The gradient by differentials, as statements: how everything moves, and what stands with each movement.

The tangent of a program is linear in the movements. Its own adjoint says what a pairing with the movement of an output is a
pairing of with the movements of the inputs: that is the gradient, before anything is rearranged. It is another way to the
gradient than the one that made the steps of the page, and the two are compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

import sympy as sp

from symattn.derivation.columns import by_columns, matrices
from symattn.derivation.columns import statement_by_columns as turn
from symattn.derivation.derived import derived
from symattn.derivation.shaping import with_constants_in_place, without_maxima
from symattn.derivative import backward
from symattn.errors import LimitError
from symattn.indexed import name_of, reads, subscripts_of, tensor
from symattn.presentation import Step, present
from symattn.presentation.proof import verdict
from symattn.program import Program, Statement

__all__ = ["Differentials", "Pairing", "differentials"]


@dataclass(frozen=True)
class Pairing:
    """``<dT, T_t>`` as a sum of pairings with what T is made of.

    Parameters
    ----------
    moving
        The statement of the movement of T.
    shares
        What each movement is paired with, by its name (``X_t``); none for a step of a recurrence, which is walked backwards.
    """

    moving: Statement
    shares: tuple[tuple[str, Statement], ...]

    @property
    def name(self) -> str:
        """The name of what moves."""
        return self.moving.name.removesuffix("_t")


@dataclass(frozen=True)
class Differentials:
    """What the derivation by differentials is made of.

    Parameters
    ----------
    program
        Forward statements, movements, and what stands with each movement (``dT``): names and sizes for printing.
    outputs
        The outputs of the definition that have an incoming gradient.
    moving, pairings, collected
        The movements, in order; from the last to the first what a pairing becomes; the gradients as they are collected.
    steps
        The rewritings that brought the movements to this form.
    status
        How it is known that what is collected is the gradient of the page: proved for all sizes, checked, or neither.
    """

    program: Program
    outputs: tuple[str, ...]
    moving: tuple[Statement, ...]
    pairings: tuple[Pairing, ...]
    collected: tuple[Statement, ...]
    steps: tuple[Step, ...]
    status: str

    def by_columns(self) -> Differentials:
        """The same with every matrix transposed: a position is a column."""
        flat = matrices(self.program)
        pairings = (Pairing(turn(p.moving, flat), tuple((n, turn(s, flat)) for n, s in p.shares)) for p in self.pairings)
        return replace(
            self,
            program=by_columns(self.program, flat),
            moving=tuple(turn(s, flat) for s in self.moving),
            pairings=tuple(pairings),
            collected=tuple(turn(s, flat) for s in self.collected),
        )


@lru_cache(maxsize=16)
def differentials(program: Program, presented: Program | None = None) -> Differentials:
    r"""The gradient of a program by differentials.

    Parameters
    ----------
    program
        The forward program.
    presented
        The program and its gradient in the form that people know, to be compared with; None: it is made.

    Raises
    ------
    NotDifferentiableError, ProofError
        As :func:`symattn.adjoint.adjoint`.

    Notes
    -----
    Exact. Source: Magnus and Neudecker, *Matrix Differential Calculus*, 1988, chapter 5: identify the derivative in the
    differential.

    >>> from symattn.definition import Definition
    >>> found = differentials(Definition(lse=False).program())
    >>> print(*found.collected[:3], sep="\n")
    dP[i, j] = sum over e of V[j, e]*dO[i, e]
    dL[i] = sum over j of -P[i, j]*dP[i, j]
    dS[i, j] = P[i, j]*dL[i] + P[i, j]*dP[i, j]
    >>> found.status
    'proved for all sizes'
    """
    made = derived(program, jvp=True)
    whole = with_constants_in_place(without_maxima(made.program))
    moving = [s for s in whole if s.name in made.tangent]
    linear = _alone(whole, moving)
    transposed = backward(linear, [n for n in linear.inputs if n.endswith("_t")]).program
    raw = [s for s in transposed if s.name not in linear]
    names = {n: _without_dot(n) for n in (*(s.name for s in raw), *transposed.inputs) if _without_dot(n) != n}
    collected = tuple(_called(s, names) for s in raw)
    helpers = [s for s in moving if not s.name.endswith("_t")]  # products without one factor
    pairings = tuple(_pairing(linear, s) for s in reversed(moving) if s.name.endswith("_t"))
    shown = whole.with_statements(
        [*whole, *collected], _gradients(linear.inputs, collected), transposed.dims, _seeds(whole, linear.outputs)
    )
    outputs = tuple(o for o in program.outputs if o + "_t" in linear.outputs)
    return Differentials(
        shown,
        outputs,
        tuple(moving),
        pairings,
        collected,
        made.rewritings,
        _status(program, (*helpers, *collected), transposed, presented),
    )


def _alone(whole: Program, moving: list[Statement]) -> Program:
    """The movements as a program of their own: what they read of the forward is given."""
    own = {s.name for s in moving}
    shapes = {**whole.shapes, **{s.name: whole.shape_of(s) for s in whole if s.name not in own}}
    return whole.with_statements(moving, [o for o in whole.outputs if o in own], shapes=shapes)


def _without_dot(name: str) -> str:
    """``dS_t`` as ``dS``: what stands with the movement of S is the gradient by S.

    >>> _without_dot("dS_t"), _without_dot("dL_t'"), _without_dot("dQ_t_Qf_t"), _without_dot("S_t")
    ('dS', "dL'", 'dQ_Qf', 'S_t')
    """
    return re.sub(r"_t(?=$|_|')", "", name) if name.startswith("d") and "_t" in name[1:] else name


def _called(s: Statement, names: dict[str, str]) -> Statement:
    def read(e: sp.Basic) -> sp.Basic:
        table = {x: tensor(names.get(name_of(x), name_of(x)), *subscripts_of(x)) for x in reads(e)}
        return e.xreplace({x: y for x, y in table.items() if x != y})

    return replace(s, target=read(s.target), expr=read(s.expr), where=read(s.where))


def _gradients(inputs: Iterable[str], collected: tuple[Statement, ...]) -> list[str]:
    own = {s.name for s in collected}
    return [g for n in inputs if n.endswith("_t") and (g := "d" + n[:-2]) in own]


def _seeds(whole: Program, outputs: Iterable[str]) -> dict[str, tuple[sp.Expr, ...]]:
    return {"d" + o[:-2]: whole.shape_of(whole[o]) for o in outputs}


def _pairing(linear: Program, s: Statement) -> Pairing:
    """What ``<dT, T_t>`` is a sum of: the adjoint of one statement."""
    dotted = [name_of(x) for x in reads(s.expr) if name_of(x).endswith("_t")]
    if s.scan is not None or not dotted:
        return Pairing(s, ())
    others = {x.name: linear.shape_of(x) for x in linear if x.name != s.name}
    one = linear.with_statements([s], [s.name], shapes={**linear.shapes, **others})
    found = backward(one, dict.fromkeys(dotted)).program
    names = {n: _without_dot(n) for n in (*(x.name for x in found), *found.inputs) if _without_dot(n) != n}
    shares = [(n, _called(found[f"d{n}"], names)) for n in dict.fromkeys(dotted) if f"d{n}" in found]
    parts = {x.name for x in found} - {s.name, *(f"d{n}" for n in dotted)}
    return Pairing(s, () if parts else tuple(shares))  # a share in several statements has no line of its own


def _status(program: Program, collected: tuple[Statement, ...], transposed: Program, presented: Program | None) -> str:
    """Whether what is collected is the gradient that the rule makes: two lists, judged like any rewriting."""
    from symattn.adjoint import adjoint

    presented = present(program, adjoint(program)).program if presented is None else presented
    both = {s.name for s in collected} & set(presented.outputs)
    old = presented.with_statements([*program, *collected], [o for o in presented.outputs if o in both], transposed.dims)
    new = presented.with_statements(presented.statements, old.outputs)
    try:
        return verdict(new, old, old.outputs)
    except LimitError:
        return "not proved"
