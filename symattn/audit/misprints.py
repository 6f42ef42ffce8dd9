"""A misprint among the inputs of a page: one digit that, changed, makes everything right that is computed from it.

Wrong results far apart may have one cause, a number that is printed wrong where it is given. The equations that fail first say
which inputs they read; each is tried with one digit changed, and what makes those equations right is tried on the whole page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from symattn.audit.comparing import near
from symattn.audit.language_nodes import Name, Node, is_literal, names_in
from symattn.audit.outcome import Mark, changed_number
from symattn.audit.reading import ReadArticle
from symattn.audit.repair import changes
from symattn.audit.said import Entry, Literal, Page, evaluated, known_as, literal_value, literals
from symattn.audit.statements import Chain
from symattn.errors import SymattnError

MOST_TRIED = 700
MOST_CHAINS = 3
MOST_READ = 5
"""Changes for which the whole page is read again."""


@dataclass(frozen=True)
class Change:
    """One digit of a number that is changed: the number, and how it reads then."""

    literal: Literal
    text: str

    def applied(self, source: str) -> str:
        """The text of the page with the change."""
        n = self.literal.node
        return source[: n.start] + self.text + source[n.start + len(self.text) :]


def input_misprint(found: ReadArticle, again: Callable[[str], ReadArticle]) -> tuple[Change, ReadArticle] | None:
    """The change of one input that explains what is wrong on a page, and the page read with it; None where there is none.

    Parameters
    ----------
    found
        The page as it stands.
    again
        Reads a changed page.
    """
    bad = [m for m in found.marks if not m.finding.verdict.correct]
    own = [m for m in bad if not m.finding.carries and not m.finding.note]
    if len(bad) < 2 or not own:
        return None
    failing = [c for c in found.chains if any(c.start <= m.start < c.end for m in own)][:MOST_CHAINS]
    if not failing:
        return None
    source = found.article.source
    candidates: list[tuple[Change, ReadArticle]] = []
    for k, change in enumerate(_changes(found, failing)):
        if k >= MOST_READ:
            return None
        read = again(change.applied(source))
        if _is_better(bad, read):
            candidates.append((change, read))
    return candidates[0] if len(candidates) == 1 else None


def _is_better(bad: list[Mark], read: ReadArticle) -> bool:
    """Whether nothing is wrong any more, or at least two of three errors are gone."""
    left = sum(not m.finding.verdict.correct for m in read.marks)
    return left == 0 or 3 * left <= len(bad) - 2


def _changes(found: ReadArticle, failing: list[Chain]) -> Iterator[Change]:
    """The changes of inputs that make the failing chains right."""
    read = [{known_as(n) for s in c.sides if s.node is not None for n in names_in(s.node)} for c in failing]
    tried = 0
    for name, node in _given(found, failing[0]):
        if name not in read[0]:
            continue
        judged = [c for c, names in zip(failing, read, strict=True) if name in names]
        for x in literals(node):
            if x is None or found.article.source[x.node.start : x.node.start + len(x.node.text)] != x.node.text:
                continue
            for text in changes(x.node.text):
                tried += 1
                if tried > MOST_TRIED:
                    return
                if all(_makes_right(found.page, c, name, node, x, text) for c in judged):
                    yield Change(x, text)


def _given(found: ReadArticle, before: Chain) -> list[tuple[str, Node]]:
    """The inputs that are given before a chain: the last literal of each name."""
    out: dict[str, Node] = {}
    for c in found.chains:
        first, last = c.sides[0].node, c.sides[-1].node
        if c.start < before.start and len(c.sides) == 2 and isinstance(first, Name) and last is not None and is_literal(last):
            out[known_as(first)] = last
    return list(out.items())


def _makes_right(page: Page, chain: Chain, name: str, node: Node, x: Literal, text: str) -> bool:
    """Whether the printed numbers of a chain are near its value when an input is changed."""
    changed = changed_number(node, x.node.start, text)
    try:
        value = literal_value(changed)
        names = {**page.names, name: Entry(value, value, value)}
        trial = replace(page, names=names)
        sides = [s.node for s in chain.sides if s.node is not None]
        formula = next(n for n in sides if not is_literal(n) and not (isinstance(n, Name) and n is sides[0]))
        result = evaluated(trial, formula, {})
    except (SymattnError, StopIteration):
        return False
    printed = [n for n in sides if is_literal(n)]
    return bool(printed) and all(near(n, result) for n in printed)
