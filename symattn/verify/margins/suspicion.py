"""What is unlikely of a correct kernel though possible: *estimated*, and so suspect and never a failure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from symattn.verify.observed import Observed
from symattn.verify.report import DISPLAY, short

__all__ = ["Suspicion", "suspicions"]


@dataclass(frozen=True)
class Suspicion:
    """One statistic that a correct kernel hardly has.

    Parameters
    ----------
    kind
        ``chance``, ``noise``, ``gain``, ``scale``, or ``fault`` for a matched filter.
    tensor, case
        Where; "" for all cases of the run together.
    size
        What was found, and ``limit``, what a correct kernel has at most.
    text
        What that is, as a clause.
    """

    kind: str
    tensor: str
    case: str
    size: float
    limit: float
    text: str

    @property
    def line(self) -> str:
        """``O: a scale that is off by 1.02e-3 (t = 9.1) fits the errors``."""
        where = f" in {self.case}" if self.case else ""
        return f"{DISPLAY.get(self.tensor, self.tensor)}{where}: {self.text}"

    def to_dict(self) -> dict[str, Any]:
        """The entry of the JSON document; numbers are text."""
        return {"kind": self.kind, "tensor": self.tensor, "case": self.case, "size": short(self.size),
                "limit": short(self.limit), "estimated": True, "text": self.line}  # fmt: skip


def suspicions(seen: Sequence[Observed]) -> tuple[Suspicion, ...]:
    """What is suspect in a run."""
    return ()
