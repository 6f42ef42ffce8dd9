"""A derivation as Unicode text of at most 80 columns."""

from __future__ import annotations

from symattn.derivation.document import Derivation, Grid, Step, conventions
from symattn.derivation.escaping import arrow, display_width, shortened, visible
from symattn.derivation.latex import block_of, skipped
from symattn.derivation.layout import cell_piece, formula_parts, line_parts
from symattn.derivation.nodeprint import Style
from symattn.derivation.textblocks import sections
from symattn.derivation.textlines import WIDTH, fits, formula, heading, noted, numbered, right, wrapped
from symattn.derivation.unicodemath import unicode_math


def document(d: Derivation) -> str:
    """The whole derivation."""
    out: list[str] = []
    out += heading(d.title, "=")
    out += wrapped(d.about)
    out += _words(d)
    out += wrapped(f"Definition: {d.definition}", "  ") if d.definition else []
    if d.inputs:
        out += ["", "Given"]
        for g in d.inputs:
            out += ["", *_grid(g, d.style)]
    for s in d.steps:
        out += [*sections(d.sections, s.number), "", *_step(s, d.style, d.detail == "brief")]
    out += sections(d.sections)
    if d.notes:
        out += ["", *heading("Notes", "-")]
        for n in d.notes:
            out += wrapped(n, "  ", "- ")
    if d.rewritings:
        out += ["", *heading(d.rewritten, "-")]
        for n in d.rewritings:
            out += wrapped(n, "  ", "- ")
    out += ["", *heading("Conventions", "-")]
    for name, value in conventions(d):
        out += wrapped(f"{name}: {value}", "    ", "  ")
    return "\n".join(line.rstrip() for line in out) + "\n"


def _words(d: Derivation) -> list[str]:
    out = []
    for label, key in (("Queries", "i"), ("Keys", "j")):
        if key in d.words and not (key == "j" and d.words["j"] == d.words.get("i")):
            said = "  ".join(f"{k} {shortened(visible(w))}" for k, w in enumerate(d.words[key], d.style.origin))
            out += wrapped(f"{'Words' if d.words.get('j') == d.words.get('i') else label}: {said}", "  ")
    if d.follow is not None:
        word = d.words.get("i", ())
        out.append(f"Followed: query {d.style.counted([d.follow])}" + (f", {shortened(visible(word[d.follow]))}" if word else ""))
    return out


def _step(s: Step, style: Style, brief: bool = False) -> list[str]:
    out = wrapped(s.name) if brief else [*heading(f"{s.number}. {s.name}", "-"), *wrapped(s.reason)]
    for k, f in enumerate(s.formulas):
        lines = formula(formula_parts(f.latex), "    ")
        out += [*([] if k or brief else [""]), *(lines if k else numbered(lines, s.number))]
    if s.shapes:
        sizes = ", ".join(f"{unicode_math(letter, labels=True)}: {unicode_math(shape)}" for letter, shape in s.shapes)
        out += ["", *wrapped(f"Shapes: {sizes}.", "  ")]
    if s.known:
        out += ["", *wrapped(s.how_known(), "  ")]
    if s.remark:
        out += ["", *wrapped(s.remark)]
    if s.lines:
        out.append("")
    beside = all(fits(formula(line_parts(x, style), "    "), visible(arrow(x.note))) for x in s.lines if x.note)
    for line in s.lines:
        out += noted(formula(line_parts(line, style), "    "), visible(arrow(line.note)), beside)
        out += [f"    ⋮   {s.cut(line)}"] if line.row else []
    for g in s.grids:
        if not skipped(g, s.grids, _table(g, style, False, f"  {grid_title(g, style)} =") is not None):
            out += ["", *_grid(g, style)]
    return out


def grid_title(g: Grid, style: Style) -> str:
    """The name of a matrix, of a row or of a block of it: ``R[5,:]``, ``S^(1)``, ``P[:,9…16]``."""
    letter = unicode_math(style.name(g.tensor, "", style.above(g.tensor, g.leading)), labels=True)
    block = block_of(g, style, "…")
    return f"{letter}[{block}]" if block else letter


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
        out.append(f"{pad}  {' ' * side}" + "   ".join(right(w, n) for w, n in zip(columns, widths, strict=True)))
    for k, row in enumerate(cells):
        body = "   ".join(right(c, n) for c, n in zip(row, widths, strict=True))
        name = (rows[k] + " " * (side - display_width(rows[k]))) if rows else ""
        out.append(f"{lead if k == len(cells) // 2 else pad} {name}[{body}]")
    return out


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
            index = style.counted([g.place(r, 0), g.place(c, 1)][2 - min(2, len(g.shape)) :])
            piece = cell_piece(cell, style, False)
            sign = "=" if cell.exact else "≈"
            lead = f"  {letter}[{index}] {sign} " if index else f"  {letter} {sign} "
            room = WIDTH - len(lead)
            chunks = [piece.text[k : k + room] for k in range(0, len(piece.text), room)]
            out += [lead + chunks[0], *(" " * len(lead) + x for x in chunks[1:])]
    return out
