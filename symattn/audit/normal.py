"""Other ways to write the same, put into signs that the language of formulas reads: entities and tags of HTML, decimal commas.

Every change keeps the length of the text, so that a place in it is a place in the article.
"""

from __future__ import annotations

import re
from html import unescape

from symattn.audit.tables import CELL

_ENTITY = re.compile(r"&(?:[a-zA-Z][a-zA-Z0-9]{1,24}|#\d{1,7}|#[xX][0-9a-fA-F]{1,6});")
_SCRIPT = re.compile(r"<(su[bp])>([^<>\n]{1,40})</\1>", re.IGNORECASE)
_BLOCK = re.compile(
    r"</?(?:p|div|li|ul|ol|tr|table|h[1-6]|br|pre|dt|dd|section|blockquote)(?:\s[^<>\n]{0,300})?/?>", re.IGNORECASE
)
_TABLE = re.compile(r"<table\b[^<>]{0,300}>.*?</table\s*>", re.DOTALL | re.IGNORECASE)
_ROW_END = re.compile(r"</tr\s*>", re.IGNORECASE)
_CELL_BEGIN = re.compile(r"<t[dh](?:\s[^<>]{0,300})?>", re.IGNORECASE)
_LISTED = re.compile(r"(?<![\w.,{_])(\d+)(?:,|\{,\})(\d+)(?![\w,]|\.\d|\{,\})", re.ASCII)
_TELLING = re.compile(r"(?<![\w.,{_])\d+(?:,|\{,\})(?:\d{2}|\d{4,})(?![\w,]|\.\d|\{,\})", re.ASCII)
"""A decimal comma and no other: thousands have three digits, and lists a blank."""
_STATED = re.compile(r"(?:[=≈<>+×·*/]|\\approx)\s*\$?\s*[-−]?\s*\Z")
_POINT = re.compile(r"\d\.\d", re.ASCII)


def without_html(text: str) -> str:
    r"""The text with entities as the characters that they are, raised and lowered text as scripts, and blocks as lines.

    >>> without_html("e<sup>2</sup> &asymp; 7.4"), without_html("a<br>b")
    ('e^{   2}      ≈       7.4', 'a   \nb')
    """
    text = _SCRIPT.sub(lambda m: ("_{" if m[1].lower() == "sub" else "^{") + "   " + m[2] + "}     ", text)
    text = _TABLE.sub(_table, text)
    text = _BLOCK.sub(lambda m: " " * (len(m[0]) - 1) + "\n", text)
    return _ENTITY.sub(_character, text)


def _table(m: re.Match[str]) -> str:
    """A table of HTML with one line for each row, each cell begun by a sign of its own."""
    text = m[0].replace("\n", " ")
    text = _CELL_BEGIN.sub(lambda c: CELL.ljust(len(c[0])), text)
    text = _ROW_END.sub(lambda r: "\n".rjust(len(r[0])), text)
    return re.sub(r"<[^<>\n]{1,300}>", lambda t: " " * len(t[0]), text)


def _character(m: re.Match[str]) -> str:
    found = unescape(m[0])
    shown = found if len(found) == 1 and (found.isprintable() or found == "\u00a0") else " "
    return ("\\&" if shown == "&" and len(m[0]) > 1 else shown.replace("\u00a0", " ")).ljust(len(m[0]))


def with_decimal_points(text: str) -> str:
    """The text with decimal commas as points, if it has such commas.

    A comma between digits is one where no bracket makes a list of it, or where semicolons part the elements of that bracket, in a
    text with commas that are nothing else: `5,77` after a relation. Three digits after it are thousands where the text has
    decimal points too.

    >>> with_decimal_points("x = 5,77; [1,5; 2] and [1,2]"), with_decimal_points("i = 1,2"), with_decimal_points("f = 1,024")
    ('x = 5.77; [1.5; 2] and [1,2]', 'i = 1,2', 'f = 1,024')
    """
    points = bool(_POINT.search(text))
    found = list(_LISTED.finditer(text))
    levels = _levels(text, [m.start() for m in found])
    told = [m for m, level in zip(found, levels, strict=True) if level == "" and _stated(text, m.start())]
    if not any(_TELLING.match(text, m.start()) for m in told) and (points or len(told) < 2):
        return text
    out, at = [], 0
    for m, level in zip(found, levels, strict=True):
        group = len(m[2]) == 3 and len(m[1]) <= 3 and m[1] != "0"
        if (group and points) or level not in ("", ";"):
            continue
        out += [text[at : m.start()], f"{m[1]}.{m[2]}".ljust(m.end() - m.start())]
        at = m.end()
    return "".join([*out, text[at:]])


def _stated(text: str, start: int) -> bool:
    return bool(_STATED.search(text, max(0, start - 20), start))


def _levels(text: str, places: list[int]) -> list[str]:
    """What parts the elements of the bracket around each place: `;`, `,`, or nothing where its paragraph has no bracket open."""
    wanted, out = iter(places), []
    place = next(wanted, None)
    opened: list[int] = []
    for m in re.compile(r"[(\[)\];]|\n\n|\d").finditer(text):
        if m[0] in "([":
            opened.append(m.start())
        elif m[0] in ")]" and opened:
            opened.pop()
        elif m[0] == "\n\n":
            opened = []
        elif place == m.start():
            end = re.compile(r"[)\]]|\Z").search(text, place, place + 400) if opened else None
            out.append(
                "" if not opened else ";" if ";" in text[max(opened[-1], place - 400) : end.start() if end else place] else ","
            )
            place = next(wanted, None)
    return out
