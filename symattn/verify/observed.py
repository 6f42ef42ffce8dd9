"""One run of a kernel as a diagnosis sees it: what it was given, what it returned, and which tensors are out of bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from symattn.intake import Array
from symattn.verify.faults.fault import SAME, Predictions, Situation
from symattn.verify.faults.predict import predictions
from symattn.verify.report import TensorReport


@dataclass(frozen=True)
class Observed:
    """One case.

    Parameters
    ----------
    case
        Its name.
    situation
        Definition, arrays and arithmetic.
    tensors
        What the kernel returned and was judged, by field name.
    reports
        The verdicts on them.
    """

    case: str
    situation: Situation
    tensors: Mapping[str, Array]
    reports: tuple[TensorReport, ...]

    @property
    def judged(self) -> dict[str, Array]:
        """The tensors that a diagnosis explains: those whose deviation is not known already."""
        set_aside = {t.name for t in self.reports if t.known or t.suspect}
        return {n: a for n, a in self.tensors.items() if n not in set_aside}

    def part(self, gradient: bool) -> dict[str, Array]:
        """The outputs, or the gradients, of :attr:`judged`."""
        return {n: a for n, a in self.judged.items() if n.startswith("grad_") == gradient}

    @property
    def failing(self) -> tuple[str, ...]:
        """The names of the tensors that fail."""
        return tuple(t.name for t in self.reports if t.counted == "fail" and t.name in self.judged)

    def fails(self, gradient: bool) -> bool:
        """Whether an output, or a gradient, fails."""
        return any(n.startswith("grad_") == gradient for n in self.failing)

    @property
    def work(self) -> int:
        """How large it is: pairs of queries and keys."""
        s = self.situation.sizes
        return s.get("B", 1) * s.get("H", 1) * s.get("N", 1) * s.get("M", s.get("N", 1)) * s.get("D", 1)

    @cached_property
    def base(self) -> Predictions:
        """What the definition says of all tensors that were judged."""
        gradient = bool(self.part(True))
        return predictions(self.situation, SAME, forward=bool(self.part(False)), backward=gradient, sharp=True)
