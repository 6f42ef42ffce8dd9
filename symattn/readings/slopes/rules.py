"""Divided differences: by how much the expression of a statement moves with each tensor that it reads, exactly.

For operands moved one at a time, ``f(k) - f(t) = sum over x of d_x (k_x - t_x)`` holds with factors ``d_x`` that are expressions
in the *true* values ``x`` and in ``x^``, which stands for any value between the true and the computed one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import sympy as sp

from symattn.derivative import derivative
from symattn.errors import NotDifferentiableError
from symattn.program import Statement, Tensor, name_of, reads, subscripts_of, tensor
from symattn.readings.boxterms import FUNCTIONS

__all__ = ["BETWEEN", "WHOLE", "Slopes", "between", "slopes_of"]

BETWEEN = "^"
"""Ends the name of what stands for any value between the true and the computed one of a tensor."""
WHOLE = "~"
"""Ends the name of what stands for any value of a statement's expression between the true and the computed operands."""
_STEPS = (sp.Max, sp.Min, sp.floor, sp.ceiling, sp.sign, sp.Piecewise, sp.Mod, sp.Heaviside)


@dataclass(frozen=True)
class Slopes:
    """The divided differences of a statement.

    Parameters
    ----------
    by
        A read and the factor that its error is multiplied by, in the order in which the operands move.
    cut
        Names of operands without such a factor: a look-up (``E[tok[p]]``), a step, a function without a rule.
    """

    by: tuple[tuple[Tensor, sp.Expr], ...]
    cut: frozenset[str]


def between(x: Tensor) -> Tensor:
    """The tensor anywhere between its true and its computed value.

    >>> from symattn.program import indices
    >>> between(tensor("l", *indices("h i")))
    l^[h, i]
    """
    return tensor(name_of(x) + BETWEEN, *subscripts_of(x))


@lru_cache(maxsize=4096)
def slopes_of(s: Statement, moving: frozenset[str]) -> Slopes:
    """The divided differences of a statement in what it reads of the tensors ``moving``.

    >>> from symattn.program import indices
    >>> h, i, e = indices("h i e")
    >>> o = Statement(tensor("O", i, e), tensor("N", i, e) / tensor("l", i))
    >>> slopes_of(o, frozenset("Nl")).by
    ((l[i], -O[i, e]/l^[i]), (N[i, e], 1/l^[i]))
    """
    found: dict[Tensor, sp.Expr] = {}
    cut = {name_of(x) for x in s.reads if name_of(x) in moving and not (_plain(x, s) and _differentiable(s.expr, x))}
    live = [x for x in s.reads if name_of(x) in moving - cut]
    partial = {x: derivative(s.expr, x) for x in live}
    joint = _exponential(s, live)
    if joint is not None:
        found = joint
    else:
        moved: dict[Tensor, Tensor] = {}
        for x in sorted(live, key=lambda x: x not in reads(partial[x])):
            found[x] = _alone(s, x, partial[x], moved)
            moved[x] = between(x)
    bad = {name_of(x) for x, d in found.items() if not _readable(d)}
    return Slopes(tuple((x, d) for x, d in found.items() if name_of(x) not in bad), frozenset(cut | bad))


def _alone(s: Statement, x: Tensor, partial: sp.Expr, moved: dict[Tensor, Tensor]) -> sp.Expr:
    """The factor of an operand that moves after some others."""
    if x not in reads(partial):
        return partial.xreplace(moved)
    rest = s.expr * x
    if x not in reads(rest):  # c/x
        whole = s.target if not moved else s.expr.xreplace(moved)
        return -whole / between(x)
    return partial.xreplace({**moved, x: between(x)})


def _exponential(s: Statement, live: list[Tensor]) -> dict[Tensor, sp.Expr] | None:
    """``c exp(a)`` with ``a`` of first degree: all operands move together, and the exponential stays between its two values."""
    _, rest = s.expr.as_independent(*live, as_Add=False) if live else (s.expr, sp.S.One)
    if s.over or not isinstance(rest, sp.exp):
        return None
    inside = {x: derivative(rest.args[0], x) for x in live}
    if any(y in live for d in inside.values() for y in reads(d)):
        return None
    whole = tensor(s.name + WHOLE, *s.indices)
    return {x: d * whole for x, d in inside.items()}


def _plain(x: Tensor, s: Statement) -> bool:
    at = subscripts_of(x)
    return all(a in s.domain for a in at) and len(set(at)) == len(at)


def _differentiable(e: sp.Expr, x: Tensor) -> bool:
    if any(x in reads(a) for a in e.atoms(*_STEPS)):
        return False
    try:
        derivative(e, x)
    except NotDifferentiableError:
        return False
    return True


def _readable(e: sp.Expr) -> bool:
    """Whether the rounding reading can enclose the expression."""
    if isinstance(e, (sp.Indexed, sp.Symbol)) or e.is_number:
        return True
    known = isinstance(e, (sp.Add, sp.Mul, sp.Pow)) or e.func.__name__ in FUNCTIONS
    return known and all(_readable(a) for a in e.args)
