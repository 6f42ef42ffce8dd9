"""A theorem as a row of data, the conditions under which it holds, and what proving it for a definition gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from symattn.definition import Definition
from symattn.indexed import Table
from symattn.theorems.claim import ALL, OPEN, PROVED, REFUTED, TESTED, Claim, Counterexample, Decision
from symattn.theorems.subject import Subject

__all__ = ["NOT_APPLICABLE", "Condition", "Result", "Theorem"]

NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True)
class Condition:
    """A condition on the program, found out from the program.

    Parameters
    ----------
    text
        As a reader says it: "the normaliser does not change under a shift of the row".
    holds
        True, False, or None where it cannot be told.
    """

    text: str
    holds: Callable[[Subject], bool | None]


@dataclass(frozen=True)
class Theorem:
    """A statement about attention, as a row of data.

    Parameters
    ----------
    name
        As on the command line.
    title
        One line of at most 60 characters.
    text, latex
        The statement in plain text and in LaTeX.
    source
        Where it was published.
    claims
        What is to be shown of a definition: the equations, as data. NotStatedError where it says nothing of this definition.
    needs
        Conditions on the program.
    home
        Fields of the definition that is taken when none is asked for; as general as the theorem is.
    outside
        Fields of a definition that does not meet the conditions, for the counterexample.
    general
        Whether it is about a formula or an algorithm and not about a definition: then it holds beside any of them.
    scope
        How far its proof goes: ``"all sizes"``, ``"sizes up to N"`` or ``"tested"``. A result says how far a proof went.
    """

    name: str
    title: str
    text: str
    latex: str
    source: str
    claims: Callable[[Subject], tuple[Claim, ...]]
    needs: tuple[Condition, ...] = ()
    home: Mapping[str, Any] = field(default_factory=Table)
    outside: Mapping[str, Any] | None = None
    general: bool = False
    scope: str = ALL

    @property
    def applies(self) -> str:
        """The conditions, as text."""
        if self.general:
            return "always"
        return "; ".join(c.text for c in self.needs) or "every definition that has these tensors"

    def definition(self) -> Definition:
        """The definition that is taken when none is asked for."""
        return Definition.of(**self.home)


@dataclass(frozen=True)
class Result:
    """What was found of a theorem for a definition.

    Parameters
    ----------
    theorem
        The row.
    definition
        What it was asked of.
    verdict
        ``"proved"``, ``"tested"``, ``"not applicable"``, ``"refuted"`` or ``"open"``.
    decisions
        One for each claim, as far as they were decided.
    reason
        Why it is not applicable, or what is open.
    counterexample
        Exact numbers for which the statement fails: where it is refuted, or does not apply.
    seconds
        How long it took.
    """

    theorem: Theorem
    definition: Definition
    verdict: str
    decisions: tuple[Decision, ...] = ()
    reason: str = ""
    counterexample: Counterexample | None = None
    seconds: float = 0.0

    @property
    def scope(self) -> str:
        """The narrowest scope of its claims; empty where nothing is proved."""
        if self.verdict not in (PROVED, TESTED):
            return ""
        scopes = [d.scope for d in self.decisions]
        return next((s for s in scopes if s != ALL), ALL)

    @property
    def method(self) -> str:
        """How the claims were decided."""
        return "; ".join(dict.fromkeys(d.method for d in self.decisions if d.method))

    @property
    def side(self) -> str:
        """What has to hold besides."""
        return "; ".join(dict.fromkeys(d.side for d in self.decisions if d.side))

    @property
    def failed(self) -> bool:
        """Whether the theorem is refuted."""
        return self.verdict == REFUTED

    @property
    def undecided(self) -> bool:
        """Whether the theorem is open."""
        return self.verdict == OPEN
