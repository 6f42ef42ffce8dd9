"""The conditions of statements on numbers with an error: what they keep, and where the errors do not decide them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Protocol

import numpy as np
import sympy as sp

from symattn.program import Program, Statement, integer_symbols, name_of, subscripts_of
from symattn.readings.decisions import YES
from symattn.readings.domain import Mask
from symattn.truth.double.approx import Array
from symattn.truth.double.kinds import Axes, of_indices
from symattn.truth.double.terms import Known, Terms

__all__ = ["NO_MASKS", "Masks", "is_zero_outside", "masks_of"]


@dataclass(frozen=True)
class Masks:
    """The conditions of a statement: what they keep, mask by mask, and where the errors do not let them be decided."""

    masks: tuple[Mask, ...]
    doubt: Array | None

    def keep(self, axes: Axes) -> Array | None:
        """All masks at once, as an array that broadcasts to the grid of some axes."""
        return reduce(np.logical_and, [m.over(axes) for m in self.masks]) if self.masks else None


NO_MASKS = Masks((), None)


class Grounds(Known, Protocol):
    """What conditions are decided from, and those that given numbers decide, which are found once."""

    settled_masks: dict[tuple[sp.Basic, Axes], tuple[Mask, Mask | None]]


def masks_of(grounds: Grounds, conditions: Sequence[sp.Basic], domain: Axes) -> Masks:
    """The conditions of a statement, on the grids of the indices that they read."""
    pairs = [_mask(grounds, c, tuple(a for a in domain if a in integer_symbols(c))) for c in conditions]
    found, doubts = [p[0] for p in pairs], [p[1] for p in pairs]
    if not any(d is not None for d in doubts):
        return Masks(tuple(found), None)
    maybe = [m.over(domain) | d.over(domain) if d is not None else m.over(domain) for m, d in zip(found, doubts, strict=True)]
    open_ = [d.over(domain) for d in doubts if d is not None]
    doubt = reduce(np.logical_and, maybe) & reduce(np.logical_or, open_)
    return Masks(tuple(found), np.broadcast_to(doubt, grounds.shape(domain)) if doubt.any() else None)


def _mask(grounds: Grounds, c: sp.Basic, axes: Axes) -> tuple[Mask, Mask | None]:
    """Where a condition holds, and where it is not decided, if anywhere."""
    if (c, axes) in grounds.settled_masks:
        return grounds.settled_masks[c, axes]
    shape = grounds.shape(axes)
    if of_indices(c):
        yes, doubt = np.broadcast_to(Terms(grounds, axes).decide(c)[0], shape), None
    elif grounds.subscripts.decidable(c):
        states = grounds.subscripts.states(c, axes, shape)
        yes, doubt = states == YES, states > YES
    else:
        yes, no = Terms(grounds, axes).decide(c)
        yes, doubt = np.broadcast_to(yes, shape), np.broadcast_to(~(yes | no), shape)
    found = Mask(axes, yes), Mask(axes, doubt) if doubt is not None and doubt.any() else None
    if not grounds.subscripts.varies(c) and (of_indices(c) or grounds.subscripts.decidable(c)):
        grounds.settled_masks[c, axes] = found
    return found


def is_zero_outside(program: Program, e: sp.Expr, s: Statement) -> bool:
    """Whether a factor is a tensor whose own ``where``, of its free indices, is that of the statement, indices renamed."""
    if not isinstance(e, sp.Indexed) or name_of(e) not in program:
        return False
    made = program[name_of(e)]
    if made.over and (made.reduce != "sum" or not integer_symbols(made.where).isdisjoint(made.over)):
        return False
    if not all(isinstance(a, sp.Symbol) for a in subscripts_of(e)):
        return False
    return bool(made.where.xreplace(dict(zip(made.indices, subscripts_of(e), strict=True))) == s.where)
