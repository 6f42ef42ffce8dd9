"""What was found of one property: a verdict of its own, with the reason where it says nothing or fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["NOT_APPLICABLE", "PropertyReport"]

NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True)
class PropertyReport:
    """The verdict on one property.

    Parameters
    ----------
    name, title
        As in JSON, and as a line for readers.
    verdict
        ``"pass"``, ``"suspect"``, ``"fail"`` or ``"not applicable"``.
    reason
        Why it is not applicable, or where it fails and by how much.
    case
        The input that it was tried on.
    share
        The greatest deviation as a share of what is allowed; None where nothing is measured.
    counts
        Whether a failure is one of the run.
    """

    name: str
    title: str
    verdict: str
    reason: str = ""
    case: str = ""
    share: float | None = None
    counts: bool = True

    @property
    def counted(self) -> str:
        """The verdict as it counts: what is not applicable, or reported only, passes."""
        return self.verdict if self.counts and self.verdict != NOT_APPLICABLE else "pass"

    def to_dict(self) -> dict[str, Any]:
        """The entry of the JSON document; numbers are text."""
        entry: dict[str, Any] = {"property": self.name, "title": self.title, "verdict": self.verdict, "counts": self.counts}
        entry |= {k: v for k, v in (("case", self.case), ("reason", self.reason)) if v}
        return entry if self.share is None else {**entry, "share": f"{self.share:.3g}"}
