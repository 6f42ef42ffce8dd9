"""The blocks of sections (:mod:`.blocks`) as lines of text: paragraphs, displays, tables, pseudo-code, frames.

Words are made visible and wrapped; a formula in a line is torn only where it is too long to stand on one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from symattn.derivation.blocks import Algorithm, Block, Box, Display, Part, Picture, Prose, Section, Table
from symattn.derivation.escaping import display_width, visible
from symattn.derivation.layout import fitted, formula_parts
from symattn.derivation.textlines import WIDTH, fits, formula, heading, left, noted
from symattn.derivation.unicodemath import unicode_math

TIED = "\N{NO-BREAK SPACE}"
LONGEST_TIED = 48
"""A formula up to this width is not torn inside a paragraph."""


def sections(found: Iterable[Section], before: int | None = None) -> list[str]:
    """The sections that stand above a step; those below the last one for None."""
    return [line for s in found if s.before == before for line in ["", *section(s)]]


def section(s: Section, width: int = WIDTH) -> list[str]:
    r"""A heading, the blocks, and how what they say is known.

    >>> from symattn.derivation.document import Formula
    >>> print(*section(Section("Title", (Prose(("Let ", Formula("P_{ij}", "P_{ij}"), " be a weight.")),))), sep="\n")
    Title
    -----
    Let P[i,j] be a weight.
    """
    out = heading(s.title, "-", width)
    out += stacked(s.blocks, width)
    return [*out, "", *paragraph([f"How known: {s.known}."], width)] if s.known else out


def stacked(blocks: Sequence[Block], width: int) -> list[str]:
    """Blocks below each other with a blank line between them."""
    out: list[str] = []
    for b in blocks:
        out += ["", *block(b, width)] if out else block(b, width)
    return out


def block(b: Block, width: int = WIDTH) -> list[str]:
    """One block of any kind."""
    kinds: dict[type, Callable[..., list[str]]] = {
        Prose: lambda p, w: paragraph(p.parts, w),
        Display: displayed,
        Table: table,
        Algorithm: algorithm,
        Picture: lambda p, w: paragraph([f"[Picture: {p.says}]"], w),
        Box: boxed,
    }
    return kinds[type(b)](b, width)


def said(parts: Iterable[Part]) -> str:
    """Words and formulas in one line; the blanks inside short formulas are tied."""
    return "".join(visible(p) if isinstance(p, str) else _tied(unicode_math(p.latex)) for p in parts)


def _tied(text: str) -> str:
    return text.replace(" ", TIED) if display_width(text) <= LONGEST_TIED else text


def paragraph(parts: Iterable[Part], width: int, first: str = "", indent: str = "") -> list[str]:
    """Words and formulas on lines; ``first`` stands before the first, ``indent`` before all others."""
    lines, line = [], first
    begun = False
    for word in said(parts).split(" "):
        for piece in _chunks(word, width - display_width(indent)):
            if begun and display_width(line) + 1 + display_width(piece) > width:
                lines.append(line)
                line, begun = indent, False
            line += (" " if begun else "") + piece
            begun = begun or bool(piece)
    return [x.replace(TIED, " ").rstrip() for x in [*lines, line]]


def _chunks(word: str, width: int) -> list[str]:
    """A word that is wider than a line, in pieces."""
    out = [""]
    for c in word:
        if display_width(out[-1]) + display_width(c) > width:
            out.append("")
        out[-1] += c
    return out


def displayed(d: Display, width: int) -> list[str]:
    """Formulas below each other, what stands beside each at the right margin, or above where there is no room for all."""
    lines = [formula(formula_parts(f.latex), "    ", width) for f in d.formulas]
    notes = [visible(b) for b in d.beside] or [""] * len(lines)
    beside = all(fits(x, n, width) for x, n in zip(lines, notes, strict=True) if n)
    return [row for x, n in zip(lines, notes, strict=True) for row in noted(x, n, beside, width)]


def table(t: Table, width: int) -> list[str]:
    """Columns below their headings; cells of a table that is too wide are wrapped."""
    rows = [t.head, *t.rows]
    cells = [[[said([c]).replace(TIED, " ")] for c in row] for row in rows]
    widths = fitted([max(display_width(row[k][0]) for row in cells) for k in range(len(t.head))], width + 3)
    cells = [[paragraph([c], w) for c, w in zip(row, widths, strict=True)] for row in rows]
    out: list[str] = []
    for k, row in enumerate(cells):
        for line in range(max(map(len, row))):
            shown = (c[line] if line < len(c) else "" for c in row)
            out.append("   ".join(left(x, w) for x, w in zip(shown, widths, strict=True)).rstrip())
        if not k:
            out.append("   ".join("─" * w for w in widths))
    return [*paragraph([t.caption], width), *out] if t.caption else out


def algorithm(a: Algorithm, width: int) -> list[str]:
    """Pseudo-code: a title, what goes in and what comes out, and numbered lines, each as deep as it stands."""
    out = paragraph([f"Algorithm: {a.title}"], width)
    for word, parts in (("takes", a.takes), ("gives", a.gives)):
        out += paragraph(parts, width, f"  {word}  ", " " * 9) if parts else []
    digits = len(str(len(a.lines)))
    for k, line in enumerate(a.lines, 1):
        lead = f"  {k:>{digits}}  " + "    " * line.depth
        out += paragraph(line.parts, width, lead, " " * (len(lead) + 2))
    return out


def boxed(b: Box, width: int) -> list[str]:
    """Blocks in a frame with a title."""
    inside = stacked(b.blocks, width - 4)
    title = f" {visible(b.title)} " if b.title else ""
    if display_width(title) > width - 5:
        inside, title = [*paragraph([b.title], width - 4), "", *inside], ""
    top = f"┌─{title}" + "─" * (width - 3 - display_width(title)) + "┐"
    return [top, *(f"│ {left(x, width - 4)} │" for x in inside), "└" + "─" * (width - 2) + "┘"]
