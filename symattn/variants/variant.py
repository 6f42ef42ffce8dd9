"""A row of the catalogue: the name of a variant, its idea in a line, what it says, and where it was published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from symattn.definition import Definition


@dataclass(frozen=True)
class Reduction:
    """What a variant becomes at special values: an identity that is tested.

    Parameters
    ----------
    to
        The name of another row; its outputs are the same.
    at
        The condition in words or symbols, for readers: ``slope = 0``.
    fields
        Fields of the variant to change.
    inputs
        Letters of inputs, or parameters, that hold this number everywhere: text in the sizes n, m, d, exact.
    sizes
        Sizes that have to be equal: ``{"m": "n"}``.
    outputs
        The outputs that are the same; empty: all that both have.
    limit
        Whether the identity holds in the limit as the inputs grow without bound: tested with values times powers of ten.
    """

    to: str
    at: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, str] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    limit: bool = False


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
    reduces
        What it becomes at special values of its parameters.
    """

    name: str
    idea: str
    fields: Mapping[str, Any]
    source: str
    reduces: tuple[Reduction, ...] = ()

    @property
    def definition(self) -> Definition:
        """The definition; ``causal=True`` is top-left here."""
        from symattn.definition import Definition

        return Definition.of(**self.fields)
