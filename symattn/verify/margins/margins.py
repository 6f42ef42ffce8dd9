"""All that is said beside a verdict, worked out when it is asked for and kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from symattn.verify.diagnosis.finding import Finding
from symattn.verify.margins.implied import Implied, implied
from symattn.verify.margins.power import Power, power
from symattn.verify.margins.suspicion import Suspicion
from symattn.verify.margins.terms import Terms, terms
from symattn.verify.observed import Observed

__all__ = ["Margins"]

WORK = 400_000
"""The largest failing input that bounds are evaluated on anew, in pairs of queries and keys times width."""
NAMED = ("convention", "mathematics")
"""Where a fault of these kinds explains a kernel, another arithmetic is not the question."""


@dataclass(frozen=True)
class Margins:
    """What is said beside pass and fail.

    Parameters
    ----------
    seen
        What was judged.
    diagnosis
        What explains a kernel that fails.
    suspicions
        What is unlikely though possible.
    """

    seen: Sequence[Observed] = field(repr=False, compare=False)
    diagnosis: Sequence[Finding] = ()
    suspicions: tuple[Suspicion, ...] = ()

    @cached_property
    def failing(self) -> bool:
        """Whether some tensor fails."""
        return any(o.failing for o in self.seen)

    @cached_property
    def terms(self) -> tuple[Terms, ...]:
        """Of each tensor that fails, the bound of its worst element by its sources."""
        return terms(self.seen, WORK) if self.failing else ()

    @cached_property
    def implied(self) -> tuple[Implied, ...]:
        """The declared constants of which another value would do; none where a fault of another kind explains the kernel."""
        explained = any(f.named and f.kind in NAMED for f in self.diagnosis)
        return implied(self.seen, WORK) if self.failing and not explained else ()

    @cached_property
    def power(self) -> Power | None:
        """What a run in which nothing fails would have shown."""
        return None if self.failing else power(self.seen)

    def lines(self) -> Iterator[str]:
        """What a report says, a sentence a line."""
        yield from (t.line for t in self.terms)
        yield from (f"implied (information, no verdict): {i.line}" for i in self.implied)
        yield from (f"suspect (estimated): {s.line}" for s in self.suspicions)
        if self.power is not None and self.power.line:
            yield self.power.line

    def to_dict(self) -> dict[str, Any]:
        """The entries of the JSON document."""
        return {
            "bound_terms": [t.to_dict() for t in self.terms],
            "implied": [i.to_dict() for i in self.implied],
            "suspicions": [s.to_dict() for s in self.suspicions],
            "power": None if self.power is None else self.power.to_dict(),
        }
