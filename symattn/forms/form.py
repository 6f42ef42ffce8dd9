"""A form: one list of statements for a family of attentions, which the fields of a definition fill in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from symattn.building import Builder


@dataclass(frozen=True)
class Form:
    """A form.

    Parameters
    ----------
    name
        The value of the field ``form``.
    build
        Adds the statements to a builder and returns the names of the outputs, the main one first.
    sources
        Letters of the tensors that it starts from in place of Q, K, V (or X and its weights); empty: as ``start`` says.
    from_x
        The same where it starts from X; empty: no other ones.
    uses
        The fields of the definition that it reads beside ``heads``, ``kv_heads``, ``form`` and ``params``; None: all of them.
        Others that are not at their default are refused.
    implies
        Values of fields in place of their default.
    memory
        Whether it reads a memory beside its sources, whatever ``cross`` says.
    """

    name: str
    build: Callable[[Builder], tuple[str, ...]]
    sources: tuple[str, ...] = ()
    from_x: tuple[str, ...] = ()
    uses: frozenset[str] | None = None
    implies: Mapping[str, Any] = field(default_factory=dict)
    memory: bool = False
