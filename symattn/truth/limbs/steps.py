"""The steps of a plan: what the engine computes for rows, for keys and for pairs, each with what it is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import sympy as sp

from symattn.program import Program, Statement, Tensor
from symattn.truth.limbs.forms import Axes, Conditions, Dot, Plain, Score

Coefficient: TypeAlias = sp.Expr


@dataclass(frozen=True)
class Material:
    """``exp(score) factor (sum of products + rest)`` where a condition holds; without ``inner``, ``exp(score) factor``."""

    score: Score
    factor: Coefficient
    inner: tuple[tuple[Dot, Conditions], ...] = ()
    rest: Coefficient = sp.S.Zero
    where: Conditions = frozenset()

    @property
    def coefficients(self) -> tuple[Coefficient, ...]:
        """What a row has to know first."""
        return (self.factor, self.rest)


@dataclass(frozen=True)
class RowStep:
    """A tensor on rows or batches, as an expression in others; one that is a sum over keys is 0 in a row without keys."""

    target: Tensor
    expr: sp.Expr
    where: sp.Basic
    summed: bool = False


@dataclass(frozen=True)
class Sum:
    """A tensor on rows: the sum over keys of an exponential, times a product where there is one (``right`` is summed first)."""

    target: Tensor
    score: Score
    dot: Dot | None = None


@dataclass(frozen=True)
class Count:
    """A tensor on rows: the number of keys at which conditions hold."""

    target: Tensor
    where: Conditions


@dataclass(frozen=True)
class Weighed:
    """A tensor on rows: the sum over keys of a material, times a position where there is one."""

    target: Tensor
    material: Material
    weight: Plain | None


@dataclass(frozen=True)
class RowMatrix:
    """A tensor on rows and channels: ``sum of coefficient (sum over keys of exponential or material times given matrix)``."""

    statement: Statement
    parts: tuple[tuple[Coefficient, Score | Material, Tensor], ...]


@dataclass(frozen=True)
class KeyMatrix:
    """A tensor on keys and channels: ``sum of coefficient (sum over rows of material times given matrix)``."""

    statement: Statement
    parts: tuple[tuple[Coefficient, Material, Tensor], ...]


@dataclass(frozen=True)
class RowTotal:
    """A tensor that is a sum over rows, and perhaps batches, of what each has."""

    statement: Statement
    expr: sp.Expr


@dataclass(frozen=True)
class Pairs:
    """An output on pairs: ``sum of coefficient times material``."""

    statement: Statement
    parts: tuple[tuple[Coefficient, Material], ...]


Step: TypeAlias = RowStep | Sum | Count | Weighed | RowMatrix | KeyMatrix | RowTotal | Pairs


@dataclass
class Plan:
    """The steps of a program in order, each with its stage.

    Parameters
    ----------
    axes
        The indices of a pair.
    steps
        ``(stage, step)``; what a step needs of others is in steps before it or of an earlier stage.
    shifts
        Score -> the tensor on rows that is the maximum of the score.
    outputs
        Name of an output -> the tensor on rows that it is, where it is one.
    """

    program: Program
    axes: Axes
    steps: list[tuple[int, Step]] = field(default_factory=list)
    shifts: dict[Score, Tensor] = field(default_factory=dict)

    @property
    def stages(self) -> int:
        """Number of passes over the keys of a block of rows."""
        return 1 + max((s for s, _ in self.steps), default=0)
