r"""Lines of the LaTeX form: lists, and formulas broken at relations and sums in an ``align*``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from symattn.derivation.layout import RELATIONS, Part, Piece, flow
from symattn.derivation.unicodemath import unicode_math

WIDTH = 76
"""Characters that fit on a line of the document, about."""
TYPES = ((1.3, r"\tiny"), (1.12, r"\scriptsize"), (1.0, r"\footnotesize"))
"""How much wider than a line a formula is, about -> the type that it is set in."""
SMALLEST = 1.6
"""How much wider than a line a formula may be, about, to fit in the smallest of them."""
LONG_LEFT = 8
"""Characters of a left hand side that is long."""
KEPT = 8
"""A display of at most so many lines, those of matrices counted, stays on one page."""


def items(rows: Iterable[str]) -> list[str]:
    """A list; its rows are LaTeX."""
    return [r"\begin{itemize}", *(rf"\item {r}" for r in rows), r"\end{itemize}"]


def display(groups: Iterable[Sequence[str]], gap: str = "", width: int | None = None) -> list[str]:
    """Formulas, each of one or more rows, as a display, aligned at their relations.

    Where a formula is wider than a given width its left hand side, if long, stands on a line of its own, and where that is not
    enough it is set in small type, in a display apart from those that need none.
    """
    found = [list(g) for g in groups if g]
    if width is None:
        return _aligned([r for g in found for r in g], gap)
    out = []
    for small, run in groupby(found, key=lambda g: _type(_hung(g, width, LONG_LEFT), width)):
        rows = _hung([r for g in run for r in g], width, LONG_LEFT)
        rows = _hung(rows, int(width * SMALLEST) if small else width, 0)
        out += _aligned(rows, gap, _type(rows, width))
    return out


def _type(rows: Sequence[str], width: int) -> str:
    over = widest(rows) / width
    return next((size for least, size in TYPES if over > least), "")


def _aligned(rows: Sequence[str], gap: str, small: str = "") -> list[str]:
    if not rows:
        return []
    out = [r"\begin{align*}", *(r + rf" \\{gap}" for r in rows[:-1]), rows[-1], r"\end{align*}"]
    lines = sum(1 + r.count(r" \\") for r in rows)
    torn = r"\allowdisplaybreaks" if len(rows) > 1 and lines > KEPT else ""
    return [rf"\begingroup{torn}{small}", *out, r"\endgroup"] if torn or small else out


def _hung(rows: Sequence[str], width: int, least: int) -> list[str]:
    r"""Rows whose left hand side has more than ``least`` characters, and does not fit beside the widest right hand side, as two.

    >>> _hung([r"\langle dS, \dot{S} \rangle &= A + B + C", "x &= y"], 12, 4)
    ['\\rlap{$\\displaystyle \\langle dS, \\dot{S} \\rangle$} &', ' &\\quad = A + B + C', 'x &= y']
    """
    if widest(rows) <= width:
        return list(rows)
    room = max(least, width - max(_sides(r)[1] for r in rows))
    out: list[str] = []
    for r in rows:
        left, _, right = r.partition("&")
        long = _sides(r)[0] > room
        out += [rf"\rlap{{$\displaystyle {left.strip()}$}} &", rf" &\quad {right}"] if long and right else [r]
    return out


def run_on(lines: Sequence[str]) -> list[str]:
    r"""Lines of a body in which a display belongs to the paragraph that stands before it.

    A paragraph that ends there would make TeX begin an empty one: a blank line, at which a page may end below the words. Before
    small type the paragraph has to end, or its lines would be set too close; the page does not.

    >>> run_on([r"The scores.\par", r"\begin{align*}", r"S &= R", r"\end{align*}", r"How known.\par"])[0]
    'The scores.'
    """
    out = []
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        words = line.removesuffix(r"\par") if not line.startswith(r"\par") else line
        if below in (r"\begin{align*}", r"\begingroup\allowdisplaybreaks"):
            out.append(words)
        else:
            out.append(line + r"\nopagebreak" if words != line and below.startswith(r"\begingroup") else line)
    return out


def widest(rows: Iterable[str]) -> int:
    r"""How many characters the two sides of formulas take, about; a fraction is as wide as the wider of its parts.

    >>> widest([r"x &= \frac{a + b}{c + d + e}"])
    12
    """
    sides = [_sides(r) for r in rows]
    return max((left for left, _ in sides), default=0) + max((right for _, right in sides), default=0)


def _sides(row: str) -> tuple[int, int]:
    """How many characters the left and the right hand side of a row take, about."""
    left, _, right = re.sub(r"\\tag\*?\{.*|\\label\{.*", "", row).partition("&")
    return (0 if left.startswith(r"\rlap") else _signs(left)), _signs(right)


def _signs(tex: str) -> int:
    """How many characters a formula is wide, about."""
    while (at := tex.rfind(r"\frac{")) >= 0:
        middle = _end(tex, at + 5)
        end = _end(tex, middle)
        widest = max(_signs(tex[at + 6 : middle - 1]), _signs(tex[middle + 1 : end - 1]))
        tex = tex[:at] + "x" * widest + tex[end:]
    tex = tex.replace(r"\qquad", "xxxx").replace(r"\quad", "xx")
    return len(unicode_math(tex.strip()))


def _end(tex: str, at: int) -> int:
    """Where the group in braces ends that begins at a place."""
    depth = 0
    for k in range(at, len(tex)):
        depth += (tex[k] == "{") - (tex[k] == "}")
        if not depth:
            return k + 1
    return len(tex)


def broken(parts: Sequence[Part], note: str = "", width: int = WIDTH) -> list[str]:
    """The rows of one formula in an ``align*``."""
    head = parts[0].pieces[0].latex
    rows = []
    for k, (relation, pieces, continued) in enumerate(flow(parts, width)):
        lead = head if not k else ""
        sign = "" if continued else RELATIONS[relation][0] + " "
        rows.append(f"{lead} &{sign}{chr(92) + 'qquad ' if continued else ''}{joined(pieces)}")
    rows = rows or [f"{head} &"]
    return [rows[0] + rf" \tag*{{\small {note}}}", *rows[1:]] if note else rows


def joined(pieces: Iterable[Piece]) -> str:
    """Pieces side by side; a sign at the start of a line keeps the space of a sign between two terms."""
    out = ""
    for p in pieces:
        tex = p.latex
        if not out and tex[:2] in ("+ ", "- "):
            tex = "{} " + tex
        gap = r" \quad" if tex.startswith(r"\text{where }") else r" \ " if tex.startswith(r"\text{and }") else " "
        out += (gap if out else "") + tex
    return out
