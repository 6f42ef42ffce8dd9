"""What a diagnosis says: one finding per fault that explains a kernel, or one that describes what is left unexplained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

PARTIAL = "part"
"""The kind of what explains the failing cases alone."""


@dataclass(frozen=True)
class Finding:
    """One answer of a diagnosis.

    Parameters
    ----------
    fault
        Ids of the catalogue, several of a pair; empty where nothing in it explains the kernel. Of the kind ``part`` it is what
        explains some cases alone.
    title
        What the kernel computes, as a clause, or the pattern of what differs.
    kind
        ``convention``, ``mathematics``, ``arithmetic``, ``range``; ``pattern`` where nothing explains the run, and ``part`` of a
        fault that explains only the cases that fail, and is refuted by others.
    explains
        What it explains: tensors and cases, in words.
    where
        Rows, heads and tiles in which the kernel differs from the definition, in words.
    text
        The lines of a report.
    """

    fault: tuple[str, ...]
    title: str
    kind: str
    explains: str
    where: str
    text: tuple[str, ...]

    @property
    def named(self) -> bool:
        """Whether it names a fault that explains the run as a whole.

        >>> Finding(("F18",), "in decode alone: ...", "part", "", "", ()).named
        False
        """
        return bool(self.fault) and self.kind != PARTIAL

    def to_dict(self) -> dict[str, Any]:
        """The entry of the JSON document.

        >>> Finding(("F05",), "scores are not scaled", "convention", "all", "every row", ("F05 ...",)).to_dict()["fault"]
        'F05'
        """
        return {
            "fault": "+".join(self.fault) or None,
            "title": self.title,
            "kind": self.kind,
            "explains": self.explains,
            "where": self.where,
            "text": list(self.text),
        }

    def __str__(self) -> str:
        return "\n".join(self.text)
