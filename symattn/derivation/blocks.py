r"""What a page says beside its steps: prose with formulas, displays, tables, pseudo-code, boxes and pictures, in sections.

Plain immutable data, like :mod:`.document`: who derives something (the gradient in words, a kernel algorithm, a cost) builds
blocks, and each writer knows how every kind of block looks in its form. A new kind of page is new blocks and no new writer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from symattn.derivation.document import Formula

Part: TypeAlias = str | Formula
"""Words, or a formula among them. Writers escape the words."""


@dataclass(frozen=True)
class Prose:
    r"""A paragraph: words and formulas in a line, as they follow each other.

    >>> from symattn.derivation.document import Formula
    >>> Prose(("Let ", Formula("P", "P"), " be the weights.")).parts[0]
    'Let '
    """

    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Display:
    """Formulas set apart, one below the other, aligned at their first relation; a reason or a step number beside each, or ''."""

    formulas: tuple[Formula, ...]
    beside: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """A table: a row of headings, and rows of words or formulas; every row is as long as the headings."""

    head: tuple[Part, ...]
    rows: tuple[tuple[Part, ...], ...]
    caption: str = ""


@dataclass(frozen=True)
class CodeLine:
    """A line of pseudo-code: how deep it stands, and what it says; words and formulas."""

    depth: int
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Algorithm:
    """Pseudo-code: a title, what goes in and what comes out, and numbered lines."""

    title: str
    takes: tuple[Part, ...]
    gives: tuple[Part, ...]
    lines: tuple[CodeLine, ...]


@dataclass(frozen=True)
class Picture:
    """A picture as SVG text, and what it shows in words (for readers who do not see it, and for forms without pictures).

    ``latex`` is the same for LaTeX, from a page's width in millimetres; None: there it is said in words.
    """

    svg: str
    says: str
    latex: Callable[[float], str] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Box:
    """Blocks in a frame: a summary that a reader finds again."""

    title: str
    blocks: tuple[Block, ...]


Block: TypeAlias = Prose | Display | Table | Algorithm | Picture | Box


@dataclass(frozen=True)
class Section:
    """A part of a page with a heading.

    Parameters
    ----------
    title, blocks
        Heading and content.
    known
        How what it says is known to be right; '' where it asserts nothing.
    before
        The number of the step above which it stands; None: below the last step.
    """

    title: str
    blocks: tuple[Block, ...]
    known: str = ""
    before: int | None = None
