"""Where the tables of an article are, of Markdown, HTML and LaTeX, and what their cells hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from symattn.audit.language import parse
from symattn.audit.language_nodes import Name, Node
from symattn.errors import SymattnError

CELL = "\ue000"
"""What a cell of an HTML table begins with, once its tags are gone."""
MOST_CELLS = 2000

_RULE = re.compile(r"^[ \t>]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$", re.MULTILINE)
_HTML_ROWS = re.compile(rf"^[ \t]*{CELL}[^\n]*(?:\n\s*{CELL}[^\n]*)*", re.MULTILINE)
_TABULAR = re.compile(
    r"\\begin\{(tabular[x*]?|longtable|array)\}(?:\{[^{}]*\}){1,2}(.*?)\\end\{\1\}".replace("|array", ""), re.DOTALL
)
_LINES = re.compile(r"\\(?:hline|toprule|midrule|bottomrule|cline\{[^{}]*\}|cmidrule(?:\([^()]*\))?\{[^{}]*\})")
_PARTS = re.compile(r"(\\\||\\&|\$[^$\n]*\$|`[^`\n]*`|\\\([^\n]*?\\\))|([|&]|" + CELL + r")|(\\\\)")
_DECORATION = "$*`_ \t\n" + CELL
_LATEX_END = (r"\)", r"\(")


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: its text without decoration, where it stands, and the formula that it is, if it is one."""

    text: str
    start: int
    end: int
    node: Node | None


@dataclass(frozen=True, slots=True)
class Table:
    """A table: the head, which may be empty, and the rows below it."""

    start: int
    end: int
    head: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]


@lru_cache(maxsize=4)
def tables(text: str) -> tuple[Table, ...]:
    r"""The tables of a text.

    >>> (t,) = tables("| word | weight |\n|---|---|\n| cat | 0.19 |\n")
    >>> [c.text for c in t.head], [[c.text for c in r] for r in t.rows]
    (['word', 'weight'], [['cat', '0.19']])
    """
    found = [*_markdown(text), *_html(text), *_latex(text)]
    return tuple(sorted((t for t in found if t is not None), key=lambda t: t.start))


def _markdown(text: str) -> Iterator[Table | None]:
    at = 0
    while m := _RULE.search(text, at):
        at = m.end() + 1
        above = text.rfind("\n", 0, max(0, m.start() - 1)) + 1
        head = text[above : m.start()]
        if "|" not in head or "|" not in m[0] or not head.strip():
            continue
        lines, k = [(above, m.start() - 1)], m.end() + 1
        while k < len(text):
            stop = text.find("\n", k)
            stop = len(text) if stop < 0 else stop
            if "|" not in text[k:stop]:
                break
            lines.append((k, stop))
            k = stop + 1
        at = max(at, k)
        yield _table(text, lines, above, min(k, len(text)))


def _html(text: str) -> Iterator[Table | None]:
    for m in _HTML_ROWS.finditer(text):
        lines, at = [], m.start()
        for row in m[0].split("\n"):
            lines.append((at, at + len(row)))
            at += len(row) + 1
        yield _table(text, [x for x in lines if text[x[0] : x[1]].strip()], m.start(), m.end())


def _latex(text: str) -> Iterator[Table | None]:
    for m in _TABULAR.finditer(text):
        inner = _LINES.sub(lambda x: " " * len(x[0]), m[2])
        spans, at = [], m.start(2)
        for part in re.split(r"(\\\\(?:\[[^\[\]]*\])?)", inner):
            if not part.startswith("\\\\") and part.strip():
                spans.append((at, at + len(part)))
            at += len(part)
        blank = text[: m.start(2)] + inner + text[m.end(2) :]
        yield _table(blank, spans, m.start(), m.end())


def _table(text: str, lines: list[tuple[int, int]], start: int, end: int) -> Table | None:
    if len(lines) > MOST_CELLS // 2:
        return None
    rows = [tuple(_cells(text, low, high)) for low, high in lines]
    rows = [r for r in rows if any(c.text for c in r)]
    if len(rows) < 2 or max(map(len, rows)) < 2 or sum(map(len, rows)) > MOST_CELLS:
        return None
    return Table(start, end, rows[0], tuple(rows[1:]))


def _cells(text: str, low: int, high: int) -> Iterator[Cell]:
    row = text[low:high]
    lead = len(row) - len(row.lstrip(" \t>"))
    first = row[lead : lead + 1]
    at = low + lead + (first == "|" or first == CELL)
    for m in _PARTS.finditer(text, at, high):
        if m[2]:
            yield _cell(text, at, m.start())
            at = m.end()
    if text[at:high].strip():
        yield _cell(text, at, high)


def _cell(text: str, start: int, end: int) -> Cell:
    shown = text[start:end]
    kept = shown.strip(_DECORATION)
    start += len(shown) - len(shown.lstrip(_DECORATION))
    for sign in _LATEX_END[::-1]:
        if kept.startswith(sign) and sign == r"\(":
            kept, start = kept[2:], start + 2
    kept = kept.removesuffix(r"\)")
    return Cell(kept, start, start + len(kept), _read(kept, start))


def _read(text: str, start: int) -> Node | None:
    """The formula of a cell; words are a name."""
    if not text or len(text) > 400:
        return None
    try:
        return parse(text, start)
    except SymattnError:
        return None


def name_of(cell: Cell) -> str:
    """The words of a cell, in small letters."""
    if isinstance(cell.node, Name):
        return cell.node.text + (f"_{cell.node.index[0]}" if cell.node.index else "")
    return " ".join(re.findall(r"[^\W_]+", cell.text.partition("(")[0])).lower()
