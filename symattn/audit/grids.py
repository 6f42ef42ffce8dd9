"""Matrices of plain text that are drawn over several lines, one row below the other, put into one line of tokens.

A block of lines in which lists of numbers stand below each other is a row of matrices; the one line with words and signs between
the lists says what they are. Rows below a title are the matrix that it names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from symattn.audit.language_scan import Piece
from symattn.audit.language_tokens import tokens

_NUMBER = r"[-−+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?%?"
_ROW = re.compile(rf"[\[|│⎡⎢⎣]\s*({_NUMBER}(?:(?:\s*,\s*|\s+){_NUMBER})*)\s*[\]|│⎤⎥⎦]")
_TITLE = re.compile(r"[^\n=|]*[A-Za-z][^\n=|]*[:=]\s*\Z")
_ANOTHER = re.compile(r"\s*[,;]?\s{2,}\w+\s*=")
_SAYS = re.compile(r"[=:≈]")
MOST_ROWS = 64


@dataclass(frozen=True, slots=True)
class Grid:
    """A block: the lines of its rows, its line of words, and where they are."""

    start: int
    end: int
    words: tuple[int, int]
    rows: tuple[tuple[tuple[int, int], ...], ...]
    """Of each line the lists, as places."""


@lru_cache(maxsize=4)
def grids(text: str) -> tuple[Grid, ...]:
    r"""The blocks of a text.

    >>> [g.rows for g in grids("Q = [1 0]\n    [0 1]\n")]
    [(((4, 9),), ((14, 19),))]
    """
    return tuple(_found(text))


def _found(text: str) -> Iterator[Grid]:
    lines, at = [], 0
    for line in text.split("\n"):
        lines.append((at, at + len(line)))
        at += len(line) + 1
    k = 0
    while k < len(lines):
        rows = _rows(text, lines, k)
        grid = _grid(text, lines, k, rows) if len(rows) > 1 else None
        if grid is not None:
            yield grid
        k += max(1, len(rows)) if grid is not None or len(rows) < 2 else _skipped(text, lines, k, rows)


def _rows(text: str, lines: list[tuple[int, int]], k: int) -> list[tuple[tuple[int, int], ...]]:
    """The lines from one on with as many lists at about the same columns."""
    out: list[tuple[tuple[int, int], ...]] = []
    first: list[int] = []
    for low, high in lines[k : k + MOST_ROWS]:
        if text[low:high].count("[[") or text[low:high].rstrip().endswith(","):
            break
        found = tuple((m.start(), m.end()) for m in _ROW.finditer(text, low, high))
        columns = [a - low for a, _ in found]
        if not found or (
            out and (len(columns) != len(first) or any(abs(a - b) > 3 for a, b in zip(columns, first, strict=True)))
        ):
            break
        first = first or columns
        out.append(found)
    return out


def _skipped(text: str, lines: list[tuple[int, int]], k: int, rows: list[tuple[tuple[int, int], ...]]) -> int:
    """How many lines of a block that is no drawing begin none either: those up to the last line of words but one."""
    said = [n for n, row in enumerate(rows) if _between(text, lines[k + n], row).strip()]
    return len(rows) if not said else said[-2] + 1 if len(said) > 1 else max(1, len(rows) - 1)


def _grid(text: str, lines: list[tuple[int, int]], k: int, rows: list[tuple[tuple[int, int], ...]]) -> Grid | None:
    said = [n for n, row in enumerate(rows) if _between(text, lines[k + n], row).strip()]
    start, end = lines[k][0], lines[k + len(rows) - 1][1]
    if len(said) == 1 and _SAYS.search(_between(text, lines[k + said[0]], rows[said[0]])):
        return Grid(start, end, lines[k + said[0]], tuple(rows))
    if not said and k and len(rows[0]) == 1 and _TITLE.fullmatch(text[slice(*lines[k - 1])]):
        return Grid(lines[k - 1][0], end, lines[k - 1], tuple(rows))
    return None


def _between(text: str, line: tuple[int, int], row: tuple[tuple[int, int], ...]) -> str:
    out, at = [], line[0]
    for a, b in row:
        out.append(text[at:a])
        at = b
    return "".join([*out, text[at : line[1]]])


def grid_tokens(text: str, grid: Grid) -> list[Piece]:
    """The block as tokens: its words, with each matrix where its rows stand.

    Raises
    ------
    GrammarError
        When its words are none.
    """
    low, high = grid.words
    title = all(not low <= row[0][0] < high for row in grid.rows)
    row = ((high, high),) if title else next(r for r in grid.rows if low <= r[0][0] < high)
    out: list[Piece] = []
    at = low
    for j, (a, b) in enumerate(row):
        words = text[at:a]
        if title:
            words = re.sub(r":\s*\Z", "=", words)
        if out and _ANOTHER.match(words):
            out.append(Piece("QUAD", "", at, at))
        out += [*tokens(words, at), _sign("LSQ", a)]
        for r in grid.rows:
            start, end = r[j]
            inner = text[start + 1 : end - 1]
            out += [_sign("COMMA", start)] if r is not grid.rows[0] else []
            out += tokens(f"[{inner}]", start)
        out.append(_sign("RSQ", b))
        at = b
    return out + tokens(text[at:high], at)


def _sign(kind: str, place: int) -> Piece:
    return Piece(kind, {"LSQ": "[", "RSQ": "]", "COMMA": ","}[kind], place, place)
