r"""Lines of the LaTeX form: lists, and formulas broken at relations and sums in an ``align*``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from symattn.derivation.layout import RELATIONS, Part, Piece, flow

WIDTH = 76
"""Characters that fit on a line of the document, about."""


def items(rows: Iterable[str]) -> list[str]:
    """A list; its rows are LaTeX."""
    return [r"\begin{itemize}", *(rf"\item {r}" for r in rows), r"\end{itemize}"]


def display(groups: Iterable[Sequence[str]], gap: str = "") -> list[str]:
    """Rows of formulas as one display, aligned at their relations."""
    rows = [r for g in groups for r in g]
    return [r"\begin{align*}", *(r + rf" \\{gap}" for r in rows[:-1]), rows[-1], r"\end{align*}"]


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
