r"""Lines of the LaTeX form: lists, and formulas broken at relations and sums in an ``align*``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from symattn.derivation.layout import RELATIONS, Part, Piece, flow
from symattn.derivation.unicodemath import unicode_math

WIDTH = 76
"""Characters that fit on a line of the document, about."""
TYPES = ((1.3, r"\tiny"), (1.12, r"\scriptsize"), (1.0, r"\footnotesize"))
"""How much wider than a line a formula is, about -> the type that it is set in."""
KEPT = 8
"""A display of at most so many lines, those of matrices counted, stays on one page."""


def items(rows: Iterable[str]) -> list[str]:
    """A list; its rows are LaTeX."""
    return [r"\begin{itemize}", *(rf"\item {r}" for r in rows), r"\end{itemize}"]


def display(groups: Iterable[Sequence[str]], gap: str = "", width: int | None = None) -> list[str]:
    """Rows of formulas as one display, aligned at their relations; in small type where one is wider than a given width."""
    rows = [r for g in groups for r in g]
    if not rows:
        return []
    out = [r"\begin{align*}", *(r + rf" \\{gap}" for r in rows[:-1]), rows[-1], r"\end{align*}"]
    over = widest(rows) / width if width is not None else 0
    small = next((size for least, size in TYPES if over > least), "")
    lines = sum(1 + r.count(r" \\") for r in rows)
    torn = r"\allowdisplaybreaks" if len(rows) > 1 and lines > KEPT else ""
    return [rf"\begingroup{torn}{small}", *out, r"\endgroup"] if torn or small else out


# those in small type are not among them: the lines of the words would be set too close
_DISPLAYS = (r"\begin{align*}", r"\begingroup\allowdisplaybreaks")


def run_on(lines: Sequence[str]) -> list[str]:
    r"""Lines of a body in which a display belongs to the paragraph that stands before it.

    A paragraph that ends there would make TeX begin an empty one: a blank line, at which a page may end below the words.

    >>> run_on([r"The scores.\par", r"\begin{align*}", r"S &= R", r"\end{align*}", r"How known.\par"])[0]
    'The scores.'
    """
    followed = [*lines[1:], ""]
    return [
        line.removesuffix(r"\par") if below in _DISPLAYS and not line.startswith(r"\par") else line
        for line, below in zip(lines, followed, strict=True)
    ]


def widest(rows: Iterable[str]) -> int:
    r"""How many characters the two sides of formulas take, about; a fraction is as wide as the wider of its parts.

    >>> widest([r"x &= \frac{a + b}{c + d + e}"])
    12
    """
    sides = [re.sub(r"\\tag\*?\{.*|\\label\{.*", "", r).partition("&") for r in rows]
    return max((_signs(left) for left, _, _ in sides), default=0) + max((_signs(right) for *_, right in sides), default=0)


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
