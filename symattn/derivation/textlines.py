"""Lines of the text form: sentences that are wrapped, headings, formulas broken at relations and sums, notes at the margin.

Everything takes the width that there is, because a box is narrower than the page.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

from symattn.derivation.escaping import display_width, shortened, visible
from symattn.derivation.layout import Part, Piece, flow

WIDTH = 80


def wrapped(text: str, indent: str = "", first: str = "") -> list[str]:
    """A sentence of the user's or ours, on lines of the page."""
    return textwrap.wrap(visible(text), WIDTH, initial_indent=first, subsequent_indent=indent) if text else []


def heading(text: str, line: str, width: int = WIDTH) -> list[str]:
    """A heading with a line of signs below it."""
    title = shortened(visible(text), width)
    return [title, line * display_width(title)]


def formula(parts: Sequence[Part], indent: str, width: int = WIDTH) -> list[str]:
    """A formula on as many lines as it needs, relations below each other."""
    head = parts[0].pieces[0].text
    lines = flow(parts, width - len(indent))
    out = []
    for k, (relation, pieces, continued) in enumerate(lines):
        lead = head if not k else " " * display_width(head)
        out.append(f"{indent}{lead} {relation if not continued else ' '} {'  ' if continued else ''}{joined(pieces)}")
    if not lines:
        out.append(indent + head)
    return [piece for line in out for piece in hard(line, indent + " " * (display_width(head) + 5), width)]


def joined(pieces: Iterable[Piece]) -> str:
    """Pieces side by side; a decimal that was torn is whole again."""
    out = ""
    for p in pieces:
        digits = out[-1:].isdigit() and p.text[:1].isdigit()
        out += ("" if digits or not out else "   " if p.text.startswith("where ") else " ") + p.text
    return out


def hard(line: str, indent: str, width: int = WIDTH) -> list[str]:
    """A line that is still too long, torn where it must be."""
    if display_width(line) <= width:
        return [line]
    torn = textwrap.wrap(
        line, width, subsequent_indent=indent, break_on_hyphens=False, drop_whitespace=False, replace_whitespace=False
    )
    out = torn[:1]
    for rest in torn[1:]:  # a sign goes with what it adds
        sign = re.search(r" ([+-]) *$", out[-1])
        if sign and display_width(rest) + 2 <= width:
            out[-1] = out[-1][: sign.start()]
            rest = f"{indent}{sign[1]} {rest[len(indent) :]}"
        out.append(rest)
    return out


def fits(lines: Sequence[str], note: str, width: int = WIDTH) -> bool:
    """Whether there is room for a note beside a formula."""
    return len(lines) == 1 and display_width(lines[0]) + display_width(note) + 3 <= width


def noted(lines: list[str], note: str, beside: bool, width: int = WIDTH) -> list[str]:
    """A formula with its note: at the right margin, or above where that has no room for all notes of the step."""
    if not note:
        return lines
    if beside:
        return [lines[0] + " " * (width - display_width(lines[0]) - display_width(note)) + note]
    return [f"    {note}:", *lines]


def numbered(lines: list[str], number: int, width: int = WIDTH) -> list[str]:
    """A formula with the number of its step at the right margin: on its last line, or below where that has no room.

    >>> numbered(["    P = softmax(S)"], 7, 24)
    ['    P = softmax(S)   (7)']
    """
    said = f"({number})"
    *most, last = lines
    room = width - display_width(last) - len(said)
    return [*most, last + " " * room + said] if room >= 2 else [*lines, " " * (width - len(said)) + said]


def right(text: str, width: int) -> str:
    """A text at the right of a column."""
    return " " * (width - display_width(text)) + text


def left(text: str, width: int) -> str:
    """A text at the left of a column."""
    return text + " " * (width - display_width(text))
