r"""A derivation as a LaTeX document: the article class, amsmath, and nothing else.

Lines are broken at relations and sums, so that nothing sticks out; words of the user stand in text, escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from symattn.derivation.document import Derivation, Grid, Step, conventions
from symattn.derivation.escaping import arrow, latex_text, shortened, visible
from symattn.derivation.latexblocks import sections, words
from symattn.derivation.latexlines import WIDTH, broken, display, items, run_on
from symattn.derivation.layout import (
    MARGIN,
    RELATIONS,
    Part,
    Piece,
    cell_piece,
    decimal_pieces,
    formula_parts,
    line_parts,
    widest,
)
from symattn.derivation.nodeprint import Style
from symattn.derivation.paper import paper

Escape = Callable[[str], str]
INTERCAL = r"\providecommand{\intercal}{\mathsf{T}}% that of amssymb where it is loaded"
LABEL = "symattn:"
"""What the labels of the document begin with."""


def document(d: Derivation, page: str = "a4") -> str:
    r"""The whole document on one of the pages of :mod:`.paper`; its labels all begin with ``symattn:``."""
    found = paper(page)
    labelled = frozenset(s.number for s in d.steps if s.formulas)
    return "\n".join([found.preamble, *body(d, found.characters, labelled), r"\end{document}"]) + "\n"


def body(d: Derivation, width: int = WIDTH, labelled: Collection[int] = ()) -> list[str]:
    """What stands between the preamble and the end, its lines broken for so many characters, with labels at some steps."""
    d = replace(d, style=replace(d.style, width=width))
    out = [rf"\section*{{{latex_text(shortened(d.title, 200))}}}"]
    out += _sentences([d.about, *_words(d), f"Definition: {d.definition}" if d.definition else ""])
    if d.inputs:
        out += [r"\subsection*{Given}", *grids(d.inputs, d.style)]
    for s in d.steps:
        out += [*sections(d.sections, s.number, width), *step(s, d.style, labelled, d.detail == "brief")]
    out += sections(d.sections, None, width)
    for title, said in (("Notes", d.notes), (d.rewritten, d.rewritings)):
        if said:
            out += [rf"\subsection*{{{title}}}", *items(map(latex_text, said))]
    rows = [f"{latex_text(name)}: {latex_text(value)}" for name, value in conventions(d)]
    out += [r"\subsection*{Conventions}", *items(rows)]
    return [*([INTERCAL] if any(r"\intercal" in line for line in out) else []), *run_on(out)]


def _sentences(texts: Iterable[str]) -> list[str]:
    return [words(t) + r"\par" for t in texts if t]


def _words(d: Derivation) -> list[str]:
    """Sentences on the words and the followed query."""
    out = []
    same = d.words.get("i") == d.words.get("j")
    for key, label in (("i", "Words" if same else "Queries"), ("j", "Keys")):
        if key in d.words and not (key == "j" and same):
            out.append(f"{label}: " + ", ".join(f"{k} {shortened(w)}" for k, w in enumerate(d.words[key], d.style.origin)) + ".")
    if d.follow is not None:
        word = d.words.get("i", ())
        out.append(f"Followed: query {d.style.counted([d.follow])}" + (f", {shortened(word[d.follow])}." if word else "."))
    return out


def step(s: Step, style: Style, labelled: Collection[int] = (), brief: bool = False) -> list[str]:
    r"""One step: heading, reason, formulas, work, values.

    Formulas carry the number of the step, those of the steps in ``labelled`` a label too, to which ``\eqref`` leads.
    """
    name = latex_text(s.name)
    out = [rf"\textbf{{{name}}}\par" if brief else rf"\subsection*{{{s.number}. {name}}}"]
    out += _sentences([s.reason])
    if s.formulas:
        shown = [broken(formula_parts(f.latex, style.width - MARGIN), width=style.width) for f in s.formulas]
        shown[0][0] += rf" \tag{{{s.number}}}" + (_label(s.number) if s.number in labelled else "")
        out += display(shown, width=style.width)
    if s.shapes and not any(r"\underset" in f.latex for f in s.formulas):
        out.append("Shapes: " + ", ".join(rf"${letter}$: ${shape}$" for letter, shape in s.shapes) + r".\par")
    if s.known:
        out.append(s.how_known(lambda k: rf"\eqref{{{LABEL}{k}}}" if k in labelled else f"({k})", latex_text) + r"\par")
    out += _sentences([s.remark])
    if s.lines:
        groups: list[list[str]] = []
        for x in s.lines:
            groups.append(broken(line_parts(x, style), latex_text(arrow(x.note)), style.width))
            groups += [[rf"&\;\vdots \quad \text{{{s.cut(x)}}}"]] if x.row else []
        out += display(groups, width=style.width)
    return out + grids(s.grids, style)


def _label(number: int) -> str:
    return rf"\label{{{LABEL}{number}}}"


def grid_name(g: Grid, style: Style) -> str:
    r"""The letter of a matrix, of a row or of a block of it: ``R_{5,:}``, ``R_{:,9 \dots 16}``."""
    return style.name(g.tensor, block_of(g, style, r" \dots "), style.above(g.tensor, g.leading))


def block_of(g: Grid, style: Style, to: str) -> str:
    """The subscript of a row or of a block; empty for a whole matrix."""
    if g.row is None and g.block is None:
        return ""
    found = []
    for axis in range(2 - min(2, len(g.shape)), 2):
        ends = (0, (1, *g.shape)[axis - 2 :][0] - 1)
        shown = g.block[2 * axis : 2 * axis + 2] if g.block is not None else ends
        shown = (g.row, g.row) if axis == 0 and g.row is not None else shown
        whole = shown == ends and (axis == 1 or g.row is None)
        found.append(":" if whole else to.join(style.counted([k]) for k in dict.fromkeys(shown)))
    return ",".join(found)


def grids(found: Sequence[Grid], style: Style) -> list[str]:
    """Matrices, exact where that is short, and in decimals."""
    out = []
    for g in found:
        name = grid_name(g, style)
        if skipped(g, found, matrix(g, style, exact=False) is not None):
            continue
        bodies = [(RELATIONS[sign][0], matrix(g, style, exact)) for sign, exact in g.displays]
        fitting = [f"{sign} {body}" for sign, body in bodies if body is not None]
        if bodies[-1][1] is None:
            out += _listed(g, style)
        else:
            out += display([[f"{name if not k else ''} &{b}" for k, b in enumerate(fitting)]], "[6pt]")
    return out


def skipped(g: Grid, found: Sequence[Grid], fits: bool) -> bool:
    """Whether a matrix is left out: too wide for a line, and its followed row is shown."""
    return not fits and g.row is None and g.block is None and any(h.row is not None and h.tensor == g.tensor for h in found)


def matrix(g: Grid, style: Style, exact: bool, newline: str = r"\\", escape: Escape = latex_text) -> str | None:
    """A matrix in brackets, or a table with the words at its rows and columns; None where it is too wide for a line.

    Words are left out where only they make it too wide.
    """
    cells = [[cell_piece(c, style, exact) for c in row] for row in g.cells]
    side = [_word(w, 12, escape) for w in g.row_words] if len(g.cells) > 1 else []
    top = [_word(w, 9, escape) for w in g.column_words]
    if g.skipped_columns is not None:
        for row in [*cells, *([top] if top else [])]:
            row.insert(g.skipped_columns, Piece(r"\cdots", "..."))
    if g.skipped_rows is not None:
        cells.insert(g.skipped_rows, [Piece(r"\vdots", "...")] * len(cells[0]))
        if side:
            side.insert(g.skipped_rows, Piece("", ""))
    if widest_row(cells, side, top) > style.width:
        side, top = [], []
    if widest_row(cells, side, top) > style.width:
        return None
    tall = newline == r"\\" and any(r"\frac" in p.latex for row in cells for p in row)
    end = f" {newline}{'[6pt]' if tall else ''} "
    rows = [" & ".join(p.latex for p in row) for row in cells]
    columns = "r" * len(cells[0])
    if not side and not top:
        return rf"\left[ \begin{{array}}{{{columns}}} {end.join(rows)} \end{{array}} \right]"
    head = " & ".join(p.latex for p in top) + f" {newline} \\hline " if top else ""
    if top and newline == r"\\":  # in braces, so that the sign of the first number is not that of a difference
        first, *others = (p.latex for p in cells[0])
        rows[0] = " & ".join([rf"\rule{{0pt}}{{{14 if tall else 11}pt}}{{{first}}}", *others])
    if side:
        rows = [f"{p.latex} & {row}" for p, row in zip(side, rows, strict=True)]
        head, columns = f" & {head}" if head else "", "r|" + columns
    return rf"\begin{{array}}{{{columns}}} {head}{end.join(rows)} \end{{array}}"


def widest_row(cells: Sequence[Sequence[Piece]], side: Sequence[Piece], top: Sequence[Piece]) -> int:
    """How many characters a matrix is wide, about."""
    columns = zip(*cells, *([top] if top else []), strict=True)
    return sum(max(p.width for p in column) + 2 for column in columns) + widest(side) + (3 if side else 0)


def _word(word: str, longest: int, escape: Escape) -> Piece:
    said = shortened(visible(word), longest)
    return Piece(rf"\text{{{escape(said)}}}", said)


def listed_parts(g: Grid, style: Style) -> list[tuple[Part, ...]]:
    """A matrix too wide for a line, as one formula for each number."""
    out: list[tuple[Part, ...]] = []
    for r, row in enumerate(g.cells):
        for c, cell in enumerate(row):
            if (r, c) == (g.skipped_rows, 0) or c == g.skipped_columns:
                out.append((Part("", (Piece(r"\vdots", "⋮"),)),))
            if cell.masked:
                continue
            at = [g.place(r, 0), g.place(c, 1)][2 - min(2, len(g.shape)) :]
            above, below = style.above(g.tensor, g.leading), style.counted(at)
            head = Piece(style.name(g.tensor, below, above), f"{g.tensor}[{below}]")
            out.append(
                (Part("", (head,)), Part("=" if cell.exact else "≈", decimal_pieces(cell.decimal, style.width, style.mark)))
            )
    return out


def _listed(g: Grid, style: Style) -> list[str]:
    return display([broken(parts, width=style.width) for parts in listed_parts(g, style)])
