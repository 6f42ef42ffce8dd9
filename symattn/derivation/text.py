"""A derivation as Unicode text of at most 80 columns."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

from symattn.derivation.document import Derivation, Grid, Step, conventions
from symattn.derivation.escaping import arrow, display_width, shortened, visible
from symattn.derivation.latex import skipped
from symattn.derivation.layout import Part, Piece, cell_piece, flow, formula_parts, line_parts
from symattn.derivation.nodeprint import Style
from symattn.derivation.unicodemath import unicode_math

WIDTH = 80


def document(d: Derivation) -> str:
    """The whole derivation."""
    out: list[str] = []
    out += _heading(d.title, "=")
    out += _wrapped(d.about)
    out += _words(d)
    out += _wrapped(f"Definition: {d.definition}", "  ") if d.definition else []
    if d.inputs:
        out += ["", "Given"]
        for g in d.inputs:
            out += ["", *_grid(g, d.style)]
    for s in d.steps:
        out += ["", *_step(s, d.style)]
    if d.notes:
        out += ["", *_heading("Notes", "-")]
        for n in d.notes:
            out += _wrapped(n, "  ", "- ")
    if d.rewritings:
        out += ["", *_heading(d.rewritten, "-")]
        for n in d.rewritings:
            out += _wrapped(n, "  ", "- ")
    out += ["", *_heading("Conventions", "-")]
    for name, value in conventions(d):
        out += _wrapped(f"{name}: {value}", "    ", "  ")
    return "\n".join(line.rstrip() for line in out) + "\n"


def _wrapped(text: str, indent: str = "", first: str = "") -> list[str]:
    return textwrap.wrap(visible(text), WIDTH, initial_indent=first, subsequent_indent=indent) if text else []


def _heading(text: str, line: str) -> list[str]:
    title = shortened(visible(text), WIDTH)
    return [title, line * display_width(title)]


def _words(d: Derivation) -> list[str]:
    out = []
    for label, key in (("Queries", "i"), ("Keys", "j")):
        if key in d.words and not (key == "j" and d.words["j"] == d.words.get("i")):
            said = "  ".join(f"{k} {shortened(visible(w))}" for k, w in enumerate(d.words[key], d.style.origin))
            out += _wrapped(f"{'Words' if d.words.get('j') == d.words.get('i') else label}: {said}", "  ")
    if d.follow is not None:
        word = d.words.get("i", ())
        out.append(f"Followed: query {d.style.counted([d.follow])}" + (f", {shortened(visible(word[d.follow]))}" if word else ""))
    return out


def _step(s: Step, style: Style) -> list[str]:
    out = [*_heading(f"{s.number}. {s.name}", "-"), *_wrapped(s.reason)]
    if s.formulas:
        out.append("")
    for f in s.formulas:
        out += _formula(formula_parts(f.latex), "    ")
    if s.derived:
        out += ["", *_wrapped(f"How known: {s.known}.")]
    if s.remark:
        out += ["", *_wrapped(s.remark)]
    if s.lines:
        out.append("")
    beside = all(_fits(_formula(line_parts(x, style), "    "), visible(arrow(x.note))) for x in s.lines if x.note)
    for line in s.lines:
        out += _noted(_formula(line_parts(line, style), "    "), visible(arrow(line.note)), beside)
        out += [f"    ⋮   {s.cut(line)}"] if line.row else []
    for g in s.grids:
        if not skipped(g, s.grids, _table(g, style, False, f"  {grid_title(g, style)} =") is not None):
            out += ["", *_grid(g, style)]
    return out


def _fits(lines: Sequence[str], note: str) -> bool:
    """Whether there is room for a note beside a formula."""
    return len(lines) == 1 and display_width(lines[0]) + display_width(note) + 3 <= WIDTH


def _noted(lines: list[str], note: str, beside: bool) -> list[str]:
    """A formula with its note: at the right margin, or above where that has no room for all notes of the step."""
    if not note:
        return lines
    if beside:
        return [lines[0] + " " * (WIDTH - display_width(lines[0]) - display_width(note)) + note]
    return [f"    {note}:", *lines]


def _formula(parts: Sequence[Part], indent: str) -> list[str]:
    head = parts[0].pieces[0].text
    lines = flow(parts, WIDTH - len(indent))
    out = []
    for k, (relation, pieces, continued) in enumerate(lines):
        body = _joined(pieces)
        lead = head if not k else " " * display_width(head)
        out.append(f"{indent}{lead} {relation if not continued else ' '} {'  ' if continued else ''}{body}")
    if not lines:
        out.append(indent + head)
    return [piece for line in out for piece in _hard(line, indent + " " * (display_width(head) + 5))]


def _joined(pieces: Iterable[Piece]) -> str:
    out = ""
    for p in pieces:
        digits = out[-1:].isdigit() and p.text[:1].isdigit()
        out += ("" if digits or not out else "   " if p.text.startswith("where ") else " ") + p.text
    return out


def _hard(line: str, indent: str) -> list[str]:
    """A line that is still too long, torn where it must be."""
    if display_width(line) <= WIDTH:
        return [line]
    torn = textwrap.wrap(
        line, WIDTH, subsequent_indent=indent, break_on_hyphens=False, drop_whitespace=False, replace_whitespace=False
    )
    out = torn[:1]
    for rest in torn[1:]:  # a sign goes with what it adds
        sign = re.search(r" ([+-]) *$", out[-1])
        if sign and display_width(rest) + 2 <= WIDTH:
            out[-1] = out[-1][: sign.start()]
            rest = f"{indent}{sign[1]} {rest[len(indent) :]}"
        out.append(rest)
    return out


def grid_title(g: Grid, style: Style) -> str:
    """The name of a matrix or of a row of it: ``R[5,:]``, ``S^(1)``."""
    letter = unicode_math(style.name(g.tensor, "", style.counted(g.leading)), labels=True)
    return letter if g.row is None else f"{letter}[{style.counted([g.row])},:]"


def _grid(g: Grid, style: Style) -> list[str]:
    title = grid_title(g, style)
    out: list[str] = []
    for sign, exact in g.displays:
        lead = title if not out else " " * display_width(title)
        table = _table(g, style, exact, f"  {lead} {sign}")
        if table is None and (sign, exact) == g.displays[-1]:
            return [*out, *_listed(g, style, title)]
        out += table or []
    return out


def _table(g: Grid, style: Style, exact: bool, lead: str) -> list[str] | None:
    """A matrix with the words at its rows and columns; None where it is too wide."""
    cells = [[cell_piece(c, style, exact).text for c in row] for row in g.cells]
    columns = [shortened(visible(w), 9) for w in g.column_words] if g.column_words else []
    rows = [shortened(visible(w), 12) for w in g.row_words] if g.row_words and len(g.cells) > 1 else []
    if g.skipped_columns is not None:
        for r in cells:
            r.insert(g.skipped_columns, "⋯")
        if columns:
            columns.insert(g.skipped_columns, "")
    if g.skipped_rows is not None:
        cells.insert(g.skipped_rows, ["⋮"] * len(cells[0]))
        if rows:
            rows.insert(g.skipped_rows, "")
    widths = [max(map(display_width, column)) for column in zip(*cells, *([columns] if columns else []), strict=True)]
    side = max(map(display_width, rows)) + 2 if rows else 0
    total = display_width(lead) + 3 + side + sum(widths) + 3 * len(widths)
    if total > WIDTH:
        return None
    pad = " " * display_width(lead)
    out = []
    if columns:
        out.append(f"{pad}  {' ' * side}" + "   ".join(_right(w, n) for w, n in zip(columns, widths, strict=True)))
    for k, row in enumerate(cells):
        body = "   ".join(_right(c, n) for c, n in zip(row, widths, strict=True))
        name = (rows[k] + " " * (side - display_width(rows[k]))) if rows else ""
        out.append(f"{lead if k == len(cells) // 2 else pad} {name}[{body}]")
    return out


def _right(text: str, width: int) -> str:
    return " " * (width - display_width(text)) + text


def _listed(g: Grid, style: Style, title: str) -> list[str]:
    """A matrix too wide for a table, number by number."""
    out = []
    letter = title.split("[")[0]
    for r, row in enumerate(g.cells):
        for c, cell in enumerate(row):
            if (r, c) in ((g.skipped_rows, 0), (r, g.skipped_columns)):
                out.append("  ⋮")
            if cell.masked:
                continue
            at = [
                g.row if g.row is not None else _position(r, g.skipped_rows, g.shape[-2:-1] or (1,)),
                _position(c, g.skipped_columns, g.shape[-1:] or (1,)),
            ]
            index = style.counted(at[2 - min(2, len(g.shape)) :])
            piece = cell_piece(cell, style, False)
            sign = "=" if cell.exact else "≈"
            lead = f"  {letter}[{index}] {sign} " if index else f"  {letter} {sign} "
            room = WIDTH - len(lead)
            chunks = [piece.text[k : k + room] for k in range(0, len(piece.text), room)]
            out += [lead + chunks[0], *(" " * len(lead) + x for x in chunks[1:])]
    return out


def _position(k: int, skipped: int | None, shape: tuple[int, ...]) -> int:
    return shape[0] - 1 if skipped is not None and k >= skipped else k
