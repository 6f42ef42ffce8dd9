"""How much a diagnosis may cost, counted in work and not in time: the same run stops at the same place on every machine.

A unit is one element of one statement of a list that is evaluated; a statement costs :data:`STATEMENT` units beside its elements,
which is what it takes to start it. 10^8 units are about a second of one idle core.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from symattn.errors import UnknownNameError, nearest
from symattn.verify.observed import Observed

__all__ = ["CHOICES", "Effort", "derivation", "evaluation", "rerun"]

STATEMENT = 100_000
"""What a statement costs beside its elements."""
DERIVED = 15
"""As many times what evaluating one statement costs its gradient costs to derive."""
SHARP = 8
"""As many times as much as plain propagation cost the bounds that verdicts are made of."""
SEARCH, SHRINK, PART = 4e9, 2e9, 5e8
"""What the search for faults, that for the smallest shape, and that for what explains failing cases alone may cost by default."""
CHOICES = ("bounded", "all")


@dataclass
class Effort:
    """What is left of what may be spent.

    >>> e = Effort(10)
    >>> e.take(8), e.take(8), e.over, e.take(1)
    (True, False, True, False)
    """

    left: float = math.inf
    over: bool = False
    """Whether something was refused; from then on everything is."""

    @classmethod
    def of(cls, choice: str, most: float) -> Effort:
        """``most`` of a bounded search, no end of one that tries ``all``.

        Raises
        ------
        UnknownNameError
            For another choice.
        """
        if choice not in CHOICES:
            raise UnknownNameError(f"a diagnosis is bounded, or tries all; got {choice!r}. {nearest(choice, CHOICES)}")
        return cls(most if choice == "bounded" else math.inf)

    def take(self, cost: float) -> bool:
        """Spend it, if there is so much."""
        self.over = self.over or cost > self.left
        self.left -= 0 if self.over else cost
        return not self.over


def evaluation(o: Observed, gradient: bool, *, sharp: bool = False) -> float:
    """What predicting all outputs (all gradients) of a case costs."""
    s = o.situation
    count = len((s.backward if gradient else s.forward).statements)
    return float(count * (STATEMENT + o.work) * (SHARP if sharp else 1))


def derivation(o: Observed) -> float:
    """What another gradient of the length of that of a case costs to derive."""
    return float(DERIVED * STATEMENT * len(o.situation.backward.statements))


def rerun(o: Observed) -> float:
    """What a kernel costs to be run and judged once more in other sizes."""
    gradient = bool(o.part(True))
    return evaluation(o, False, sharp=True) + (evaluation(o, True, sharp=True) if gradient else 0.0)
