"""What a presentation gives: the program in the form that people know, and every step with how it is known to be right."""

from __future__ import annotations

from dataclasses import dataclass

from symattn.program import Program, Statement

__all__ = ["CHECKED", "DROPPED", "NOT_APPLICABLE", "PROVED", "Presented", "Step"]

PROVED = "proved for all sizes"
CHECKED = "checked"
DROPPED = "dropped"
NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True)
class Step:
    """One rewriting: what was done, to which statements, and how it is known to be right.

    Parameters
    ----------
    rule
        Name of the rule.
    status
        ``"proved for all sizes"`` (normal form of sums of products), ``"checked"`` (balls of 400 bits at a small size),
        ``"dropped"`` (neither: the rewriting was not made) or ``"not applicable"`` (the reason says why).
    names
        The statements that were changed, made or left out.
    reason
        What the rule does, as a clause.
    """

    rule: str
    status: str
    names: tuple[str, ...]
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.rule}: {', '.join(self.names)} ({self.status})" + (f": {self.reason}" if self.reason else "")


@dataclass(frozen=True)
class Presented:
    """A program whose derived statements are in the form that people know.

    Parameters
    ----------
    program
        Forward statements, then the presented ones.
    steps
        Every rewriting that was made or dropped, in order.
    forward
        The number of forward statements.
    """

    program: Program
    steps: tuple[Step, ...]
    forward: int

    @property
    def derived(self) -> tuple[Statement, ...]:
        """The presented statements, without the forward ones."""
        return self.program.statements[self.forward :]

    @property
    def proved(self) -> bool:
        """Whether every rewriting that was made is proved for all sizes."""
        return all(s.status != CHECKED for s in self.steps)
