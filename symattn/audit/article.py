"""Where the formulas of an article are: display and inline mathematics of LaTeX and Markdown, code blocks, and lines of text.

Places are offsets into the text as it was read. What is no formula (tags of HTML, links, comments of LaTeX) is blanked out at its
place, so that offsets and lines stay what they are.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from symattn.audit.grids import Grid, grids
from symattn.audit.language_symbols import ROWS
from symattn.audit.normal import with_decimal_points, without_html
from symattn.audit.phrases import with_phrases
from symattn.audit.sessions import with_sessions
from symattn.audit.tables import Table, tables
from symattn.errors import LimitError

LARGEST = 400_000
"""Characters of an article."""
MOST_LINES = 80
"""Lines that an open bracket of plain text joins."""

_ENVIRONMENT = re.compile(r"\\begin\{([a-zA-Z]+\*?)\}")
_MATH = re.compile(
    r"^ {0,3}(?P<fence>```|~~~)(?P<language>[^\n]*)\n|(?P<begin>\\begin\{(?:"
    + "|".join(map(re.escape, sorted(ROWS, reverse=True)))
    + r")\})|(?P<dollars>(?<!\\)\$\$)|(?P<square>\\\[)|(?P<round>\\\()|(?P<dollar>(?<![\\$\w])\$(?=[^\s$]))",
    re.MULTILINE,
)
_BLANKED = (
    re.compile(r"<!--.*?-->", re.DOTALL),
    re.compile(r"</?[a-zA-Z][a-zA-Z0-9-]*(?:\s[^<>\n]{0,300})?/?>"),
    re.compile(r"(?<=\])\([^()\s]*(?:\s+\"[^\"\n]*\")?\)(?=\W|$)(?<=[a-z/#)])(?=.)"),
    re.compile(r"\b(?:https?|ftp)://\S+"),
    re.compile(r"!?\[[^\[\]\n]*\]\((?:https?:|[./#\w-]*[/#.][\w/#.-]*)[^()\n]*\)"),
)
_HASH = re.compile(r"(?:^|(?<=\s))#(?=\s|$)")
_COMMENT = re.compile(r"(?<!\\)%[^\n]*")
_RELATION = re.compile(
    r"=|≈|≃|≅|↦|⟼|\\approx|\\mapsto|\\simeq|:\s*\[|->|→|\b(?:is|are|equals)\s*\[|≔|:\s*-?\d"
    r"|[\d)\]]\s*[<>≤≥≠]=?\s*[-−√(\[]?\d"
)
_SENTENCE = re.compile(r"[.!?](?=\s|$)|;(?=\s)|[“”\"«»]|\s[—–-]\s(?=[A-Za-z]{2})|—")
_WAITING = re.compile(r"[=:≈]\s*\Z")
_MATRIX = re.compile(r"\s*\[")
_GOES_ON = re.compile(r"\n[ \t]*(?:=(?!=)|≈|\\approx|[+×·/](?=\s))")
"""A line that begins with a relation or an operator goes on with the one before it."""
_EMPHASIS = re.compile(r"(?<![\w)\]*])\*\*(?=[^\s*])([^*\n]{1,200})(?<=\S)\*\*(?![\w(\[*])")
_MARKER = re.compile(r"\s*(?:>\s*)*(?:[-*+•]\s+|#{1,6}\s+|\d{1,3}[.)]\s+)?")


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of an article that holds a formula: ``kind`` is ``display``, ``inline``, ``text``, ``table`` or ``grid``."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True)
class Article:
    """An article: its text, the same with everything blanked that is no formula, and where its lines begin."""

    source: str
    text: str
    starts: tuple[int, ...] = field(repr=False)

    def line(self, place: int) -> int:
        """The line of a place, counted from 1."""
        return bisect_right(self.starts, place)

    def column(self, place: int) -> int:
        """The column of a place in its line, counted from 1."""
        return place - self.starts[self.line(place) - 1] + 1


def article(source: str) -> Article:
    r"""An article from its text.

    Raises
    ------
    LimitError
        When it is longer than 400000 characters.

    >>> a = article("one\ntwo")
    >>> a.line(5), a.column(5)
    (2, 2)
    """
    if len(source) > LARGEST:
        raise LimitError(f"the article has {len(source)} characters; {LARGEST} are read, give a part of it")
    text = without_html(with_sessions(source))
    for pattern in _BLANKED:
        text = pattern.sub(_blank, text)
    text = _EMPHASIS.sub(r"  \1  ", text)
    if "\\documentclass" in text or "\\begin{document}" in text:
        text = _COMMENT.sub(_blank, text)
    text = with_phrases(with_decimal_points(text))
    starts = (0, *(m.end() for m in re.finditer("\n", source)))
    return Article(source, text, starts)


def _blank(m: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", m[0])


def passages(a: Article) -> list[Passage]:
    r"""The parts that may hold formulas, in order.

    >>> text = "The score $q$ is\n$$1 + 1 = 2$$\nso x = [1, 2]. Done."
    >>> [(p.kind, text[p.start : p.end]) for p in passages(article(text))]
    [('inline', 'q'), ('display', '1 + 1 = 2'), ('text', 'so x = [1, 2]')]
    """
    known: list[Table | Grid] = [*tables(a.text)]
    found = [Passage("table", t.start, t.end) for t in known]
    drawn = (
        grids(a.text)
        if not known
        else tuple(g for g in grids(a.text) if not any(t.start < g.end and g.start < t.end for t in known))
    )
    found += [Passage("grid", g.start, g.end) for g in drawn]
    known += drawn
    cursor = 0
    position = 0
    text = _outside(a.text, known)
    inline: list[tuple[int, int]] = []
    while m := _MATH.search(text, position):
        inner = _inner(text, m)
        if inner is None:
            position = m.end()
            continue
        start, end, after, kind = inner
        if kind == "inline":
            inline.append((start, end))
            position = after
            continue
        found += _prose(text, cursor, m.start(), inline)
        inline = []
        found += list(_code(text, start, end)) if kind == "code" else [Passage("display", start, end)]
        cursor = position = after
    found += _prose(text, cursor, len(text), inline)
    return sorted(found, key=lambda p: p.start)


def _outside(text: str, known: Sequence[Table | Grid]) -> str:
    """The text with its tables blanked."""
    out, at = [], 0
    for t in sorted(known, key=lambda t: t.start):
        out += [text[at : max(at, t.start)], re.sub(r"[^\n]", " ", text[max(at, t.start) : t.end])]
        at = max(at, t.end)
    return "".join([*out, text[at:]])


def _inner(text: str, m: re.Match[str]) -> tuple[int, int, int, str] | None:
    """Where the formula of an opening sign begins and ends, where the text goes on, and its kind; None where it is no formula."""
    if m["fence"]:
        end = text.find("\n" + m["fence"], m.end() - 1)
        kind = "display" if m["language"].strip() in ("math", "latex", "tex") else "code"
        return None if end < 0 else (m.end(), end, end + 4, kind)
    if m["begin"]:
        return _environment(text, m)
    if m["dollar"]:
        stop = re.compile(r"(?<!\\)\$|\n\s*\n").search(text, m.end())
        closes = stop is not None and stop[0] == "$" and re.match(r"\S\$(?!\d)", text[stop.start() - 1 :])
        return (m.end(), stop.start(), stop.end(), "inline") if stop and closes else None
    closing, kind = {"dollars": ("$$", "display"), "square": (r"\]", "display"), "round": (r"\)", "inline")}[m.lastgroup or ""]
    end = text.find(closing, m.end())
    return None if end < 0 else (m.end(), end, end + 2, kind)


def _environment(text: str, m: re.Match[str]) -> tuple[int, int, int, str] | None:
    """A whole environment, others inside of it included."""
    depth = 0
    for step in re.compile(r"\\(begin|end)\{[a-zA-Z]+\*?\}").finditer(text, m.start()):
        depth += 1 if step[1] == "begin" else -1
        if depth == 0:
            return m.end(), step.start(), step.end(), "display"
    return None


def _prose(text: str, start: int, end: int, inline: list[tuple[int, int]]) -> list[Passage]:
    """Sentences of text that state an equality, and the inline formulas of the others."""
    sentences = [p for p in _sentences(text, start, end) if _RELATION.search(_without(text, p, inline))]
    inside = [Passage("inline", i, j) for i, j in inline if not any(p.start <= i < p.end for p in sentences)]
    return sentences + inside


def _without(text: str, p: Passage, inline: list[tuple[int, int]]) -> str:
    """The text of a sentence, its inline formulas left out: whether it states something outside of them."""
    out, at = [], p.start
    for i, j in inline:
        if p.start <= i and j <= p.end:
            out.append(text[at:i])
            at = j
    return "".join([*out, text[at : p.end]])


def _sentences(text: str, start: int, end: int) -> Iterator[Passage]:
    for low, high in _logical_lines(text, start, end):
        marker = _MARKER.match(text, low, high)
        at = marker.end() if marker else low
        depth = 0
        opened = {m.start(): 1 if m[0] == "[" else -1 for m in re.compile(r"[\[\]]").finditer(text, at, high)}
        begin = at
        for m in _SENTENCE.finditer(text, at, high):
            depth = sum(d for k, d in opened.items() if k < m.start())
            if depth <= 0:
                yield from _trimmed(text, begin, m.start())
                begin = m.end()
        yield from _trimmed(text, begin, high)


def _trimmed(text: str, start: int, end: int) -> Iterator[Passage]:
    part = text[start:end]
    if part.strip():
        yield Passage("text", start + len(part) - len(part.lstrip()), end - len(part) + len(part.rstrip()))


def _code(text: str, start: int, end: int) -> Iterator[Passage]:
    for low, high in _logical_lines(text, start, end):
        comment = _HASH.search(text, low, high)
        high = comment.start() if comment and text.count("\n", low, high) == 0 else high
        if _RELATION.search(text, low, high):
            yield from _trimmed(text, low, high)


def _logical_lines(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Lines, joined while a square bracket is open or a name waits for the matrix in the next line."""
    low, depth, count = start, 0, 0
    at = start
    while at < end:
        stop = text.find("\n", at, end)
        stop = end if stop < 0 else stop
        line = text[at:stop]
        depth = max(0, depth + line.count("[") - line.count("]"))
        count += 1
        waits = bool(_WAITING.search(line) and _MATRIX.match(text, stop, end)) or bool(_GOES_ON.match(text, stop, end))
        blank = not line.strip()
        if blank or count >= MOST_LINES or (depth == 0 and not waits):
            yield low, stop
            low, depth, count = stop + 1, 0, 0
        at = stop + 1
    if low < end:
        yield low, end
