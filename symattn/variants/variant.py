"""A row of the catalogue: the name of a variant, its idea in a line, what it says, and where it was published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from symattn.definition import Definition


@dataclass(frozen=True)
class Variant:
    """A named definition.

    Parameters
    ----------
    name
        As on the command line.
    idea
        One line.
    fields
        The fields of its definition that are not at their default. ``causal=True`` leaves the alignment to a convention.
    source
        Where it was published (arXiv number and place, or the thread that settled it).
    """

    name: str
    idea: str
    fields: Mapping[str, Any]
    source: str

    @property
    def definition(self) -> Definition:
        """The definition; ``causal=True`` is top-left here."""
        from symattn.definition import Definition

        return Definition.of(**self.fields)
