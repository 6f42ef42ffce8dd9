"""What the check of one chain comes to: findings with their places, and what the page has said by it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from symattn.audit.article import Article
from symattn.audit.findings import Finding
from symattn.audit.language_nodes import Apply, Array, Node, Number
from symattn.audit.language_text import plain_text
from symattn.audit.said import Entry, Result
from symattn.audit.statements import Chain, Side

MOST_SHOWN = 70
"""Characters of a formula that stand in a finding."""


@dataclass(frozen=True)
class Mark:
    """A finding, where its number stands in the text, and the printed intermediates behind it."""

    start: int
    end: int
    finding: Finding
    used: tuple[Entry, ...] = ()


@dataclass
class Outcome:
    """What a chain came to."""

    marks: list[Mark] = field(default_factory=list)
    holds: list[tuple[int, int]] = field(default_factory=list)
    """Sides that have the value of the side before them, as formulas."""
    open: list[tuple[int, int, str]] = field(default_factory=list)
    """Sides that have no value, with the reason."""
    results: list[Result] = field(default_factory=list)
    targets: list[Node] = field(default_factory=list)
    """Names, and formulas without a value, that stand for the value of the chain from then on."""
    entry: Entry | None = None
    places: dict[int, Entry] = field(default_factory=dict)
    """What single numbers stand for, by where they stand."""
    literal: Node | None = None
    """The printed numbers that define the target and follow from nothing."""


def said_of(article: Article, side: Side) -> str:
    """A side in a short text: its formula, or as it is written where that was not read."""
    if side.node is not None:
        return cut(plain_text(side.node))
    return cut(" ".join(article.source[side.start : side.end].replace("&", " ").split()).strip("$ "))


def cut(text: str) -> str:
    """The beginning of a long text."""
    return text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 1] + "…"


def with_number(chain: Chain, start: int, text: str) -> Chain:
    """The chain with another number at a place.

    >>> from symattn.audit.language import parse
    >>> from symattn.audit.language_nodes import key
    >>> chain = Chain((Side(0, 5, parse("2 × 3")), Side(8, 9, parse("6", 8))), ("EQ",), "display")
    >>> [key(s.node) for s in with_number(chain, 4, "4").sides]
    ['times(2,4)', '6']
    """
    sides = (s if s.node is None else replace(s, node=changed_number(s.node, start, text)) for s in chain.sides)
    return replace(chain, sides=tuple(sides))


def changed_number(node: Node, start: int, text: str) -> Node:
    """The formula with another number at a place."""
    if isinstance(node, Number):
        return replace(node, text=text) if node.start == start else node
    if isinstance(node, Array) and node.start <= start < node.end:
        return replace(node, items=tuple(changed_number(x, start, text) for x in node.items))
    if isinstance(node, Apply) and node.start <= start < node.end:
        return replace(node, args=tuple(changed_number(x, start, text) for x in node.args))
    return node
