"""What a theorem says of a program, as data: two tensors of one program are equal. And what is found about it.

A claim holds its two sides as statements, so that every reading of programs is a reading of the claim: the normal form proves it,
the exact reading evaluates both sides, and a false claim is made from a true one by changing a statement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import sympy as sp

from symattn.indexed import Table
from symattn.program import Program, Statement

__all__ = ["ALL", "OPEN", "PROVED", "REFUTED", "TESTED", "Claim", "Counterexample", "Decision", "Equal", "upto"]

PROVED, REFUTED, OPEN = "proved", "refuted", "open"
ALL, TESTED = "all sizes", "tested"


def upto(n: int) -> str:
    """The scope of a proof entry by entry: every size up to ``n``."""
    return f"sizes up to {n}"


@dataclass(frozen=True)
class Counterexample:
    """Exact numbers for which a claim fails.

    Parameters
    ----------
    inputs
        What was put in: name -> nested lists of exact numbers.
    sizes
        Name of a size -> number.
    what
        The entry that differs, such as ``O[0, 1]``.
    left, right
        The two sides there.
    claim
        The equation, as text.
    """

    inputs: Mapping[str, Any]
    sizes: Mapping[str, int]
    what: str
    left: sp.Expr
    right: sp.Expr
    claim: str = ""

    @property
    def difference(self) -> sp.Expr:
        """Left side minus right side; not 0."""
        return self.left - self.right


@dataclass(frozen=True)
class Decision:
    """What is known of a claim.

    Parameters
    ----------
    verdict
        ``"proved"``, ``"tested"`` (cited, and no counterexample found), ``"refuted"`` or ``"open"``; open is never false.
    method
        How: the normal form, induction, entry by entry ...
    scope
        ``"all sizes"``, ``"sizes up to N"`` or ``"tested"``.
    side
        What has to hold besides, such as ``"no query is without keys"``.
    counterexample
        Where the verdict is ``"refuted"``.
    """

    verdict: str
    method: str = ""
    scope: str = ALL
    side: str = ""
    counterexample: Counterexample | None = None


class Claim(Protocol):
    """Anything that can be decided: :class:`Equal`, :class:`symattn.theorems.scalar.Scalar` ..."""

    @property
    def text(self) -> str:
        """The claim in one line."""

    def decide(self) -> Decision:
        """Prove it, or find exact numbers for which it fails."""

    def counterexample(self) -> Counterexample | None:
        """Exact numbers for which it fails, if a search among small ones finds some."""


@dataclass(frozen=True)
class Equal:
    """``left = right``, entry by entry, for all sizes and all inputs.

    Parameters
    ----------
    program
        All statements: what the tensors are, and the two sides.
    left, right
        Names of two tensors of the program with equally many indices.
    text
        The equation as people write it.
    forward
        The statements from which facts are taken (known sums, supports); the program itself by default.
    seeds
        Output of ``forward`` -> name of its incoming gradient.
    steps
        Statements that take the place of those of the same name in the proof: each is proved equal to the one it replaces, or
        gives another value to a tensor that is ``range_only``, on whose value nothing depends.
    pairs
        Names that are shown to be equal, in order, before the claim itself: (tensor, tensor that it equals).
    opaque
        The names that a proof does not open; several sets to be tried. None: what :func:`symattn.facts.opaque_names` says.
    by
        What the proof is called where it is more than the normal form: an induction on a step.
    bijections
        Inputs with one index that are permutations of its range.

    >>> from symattn.indexed import indices, size, tensor
    >>> i, j = indices("i j")
    >>> E, l, P = tensor("E", i, j), tensor("l", i), tensor("P", i, j)
    >>> rows = Program(
    ...     (
    ...         Statement(E, sp.exp(tensor("z", i, j))),
    ...         Statement(l, E, (j,)),
    ...         Statement(P, E / l),
    ...         Statement(tensor("a", i), P, (j,)),
    ...         Statement(tensor("b", i), sp.S.One),
    ...     ),
    ...     {i: size("n"), j: size("m")},
    ...     ("P",),
    ... )
    >>> claim = Equal(rows, "a", "b", "sum_j P_ij = 1")
    >>> claim.decide().verdict, claim.planted(sp.Integer(2)).decide().counterexample.difference
    ('proved', -1)
    """

    program: Program
    left: str
    right: str
    text: str = ""
    forward: Program | None = None
    seeds: Mapping[str, str] = field(default_factory=Table)
    steps: tuple[Statement, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    opaque: tuple[frozenset[str] | None, ...] = (None,)
    by: str = ""
    bijections: frozenset[str] = frozenset()

    def decide(self) -> Decision:
        """Prove it for all sizes; else find a counterexample; else prove it entry by entry at small sizes."""
        from symattn.theorems.deciding import decide

        return decide(self)

    def counterexample(self) -> Counterexample | None:
        """Exact numbers for which the two sides differ; queries without keys are tried last."""
        from symattn.theorems.examples import find_counterexample

        return find_counterexample(self) or find_counterexample(self, full_rows=False)

    def planted(self, factor: sp.Expr = sp.S.NegativeOne) -> Equal:
        """The claim with its right side multiplied by ``factor``: false, unless both sides are 0."""
        return self.with_right(self.program[self.right].expr * factor)

    def with_right(self, expr: sp.Expr) -> Equal:
        """The claim with another expression on its right side."""
        statements = [replace(s, expr=expr) if s.name == self.right else s for s in self.program]
        return replace(self, program=self.program.with_statements(statements))
