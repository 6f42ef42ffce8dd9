"""A proof in steps, as data: what each says, how it is known, and whether it holds."""

from __future__ import annotations

from dataclasses import dataclass

from symattn.definition import Definition
from symattn.theorems.claim import ALL

__all__ = ["DIVISION", "EMPTY", "NORMAL_FORM", "WORD_FOR_WORD", "Part", "Proof"]

NORMAL_FORM = "normal form"
WORD_FOR_WORD = "word for word"
DIVISION = "division with remainder"
EMPTY = "a query without keys: every part is empty, O = 0 and L = -oo"


@dataclass(frozen=True)
class Part:
    """One step of a proof: what it says, how it is known, and whether it holds."""

    text: str
    method: str
    proved: bool


@dataclass(frozen=True)
class Proof:
    """What is known of an algorithm.

    Parameters
    ----------
    definition
        What the algorithm computes, and how.
    parts
        The steps, in order.
    side
        What is settled apart from the equations.
    """

    definition: Definition
    parts: tuple[Part, ...]
    side: str = EMPTY

    @property
    def proved(self) -> bool:
        """Whether every step holds."""
        return bool(self.parts) and all(p.proved for p in self.parts)

    @property
    def method(self) -> str:
        """How the steps are known."""
        return "; ".join(dict.fromkeys(p.method for p in self.parts))

    @property
    def scope(self) -> str:
        """For what it holds; empty where it is not proved."""
        return ALL if self.proved else ""

    @property
    def failed(self) -> tuple[Part, ...]:
        """The steps that do not hold, or are not proved."""
        return tuple(p for p in self.parts if not p.proved)

    def __str__(self) -> str:
        return "\n".join(f"{p.text} ({p.method if p.proved else 'not proved'})" for p in self.parts)
