r"""The blocks of sections (:mod:`.blocks`) in LaTeX that needs amsmath and nothing else: ``tabular``, numbered lines, frames.

A short box is a ``\fbox``; a long one stands between rules, so that it can be broken at the end of a page. A picture is left out
and said in words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from symattn.derivation.blocks import Algorithm, Block, Box, Display, Part, Picture, Prose, Section, Table
from symattn.derivation.escaping import LONGEST, latex_text, visible
from symattn.derivation.latexlines import WIDTH, broken, display
from symattn.derivation.layout import MARGIN, fitted, formula_parts
from symattn.derivation.paper import WIDTH_OF_CHARACTER
from symattn.derivation.unicodemath import unicode_math

PAGE = 30
"""Rows of a table, and lines of a box, that are kept together on a page."""
RULE = r"\par\noindent\rule{\linewidth}{0.4pt}\par"
OPENING, CLOSING = RULE + r"\nopagebreak", r"\par\nopagebreak" + RULE
"""A rule stays on the page of what it opens or closes."""
STRUT = r"\rule{0pt}{2.6ex}"
"""Room between a line of a table and the letters below it."""


def sections(found: Iterable[Section], before: int | None = None, width: int = WIDTH) -> list[str]:
    """The sections that stand above a step; those below the last one for None."""
    return [line for s in found if s.before == before for line in section(s, width)]


def section(s: Section, width: int = WIDTH) -> list[str]:
    r"""A heading, the blocks, and how what they say is known.

    >>> from symattn.derivation.document import Formula
    >>> print(*section(Section("50%", (Prose(("Let ", Formula("P_{ij}", "P_{ij}"), " be a weight.")),))), sep="\n")
    \subsection*{50\%}
    Let $P_{ij}$ be a weight.\par
    """
    out = [rf"\subsection*{{{words(s.title)}}}", *(line for b in s.blocks for line in block(b, width))]
    return [*out, rf"How known: {words(s.known)}.\par"] if s.known else out


def block(b: Block, width: int = WIDTH) -> list[str]:
    """One block of any kind; ``width`` is how many characters fit on a line."""
    kinds: dict[type, Callable[..., list[str]]] = {
        Prose: lambda p, _: [said(p.parts) + r"\par"],
        Display: displayed,
        Table: table,
        Algorithm: algorithm,
        Picture: picture,
        Box: boxed,
    }
    return kinds[type(b)](b, width)


def said(parts: Iterable[Part]) -> str:
    """Words and formulas in one line."""
    return "".join(words(p) if isinstance(p, str) else f"${p.latex}$" for p in parts)


def words(text: str) -> str:
    r"""Words as LaTeX; a very long one may be broken after every few letters.

    >>> print(words("a b"), words("w" * 30))
    a b wwwwwwwwwwww\hspace{0pt}wwwwwwwwwwww\hspace{0pt}wwwwww
    """
    out = ""
    for word in re.split(r"(\s+)", visible(text)):
        pieces = re.findall(rf".{{1,{LONGEST // 2}}}", word) if len(word) > LONGEST - 4 else [word]
        out += r"\hspace{0pt}".join(map(latex_text, pieces))
    return out


def displayed(d: Display, width: int) -> list[str]:
    """Formulas below each other, aligned at their relations, with what stands beside each at the margin."""
    notes = [latex_text(b) for b in d.beside] or [""] * len(d.formulas)
    longest = max((len(visible(b)) for b in d.beside), default=0)
    rows = [broken(formula_parts(f.latex, width - MARGIN), n, width - longest) for f, n in zip(d.formulas, notes, strict=True)]
    return display(rows, width=width)


def picture(p: Picture, width: int) -> list[str]:
    """A picture with what it shows below it; only that where it has no LaTeX."""
    if p.latex is None:
        return [rf"\textit{{[Picture: {words(p.says)}]}}\par"]
    return [r"\smallskip", p.latex(width * WIDTH_OF_CHARACTER), rf"\textit{{{words(p.says)}}}\par"]


def table(t: Table, width: int) -> list[str]:
    """Tables of at most a page, one below the other; columns of paragraphs where single lines are too wide."""
    columns = list(zip(t.head, *t.rows, strict=True))
    natural = [max(map(_width, c)) for c in columns]
    widths = fitted(natural, width)
    plain = widths == natural
    kinds = ["l" if plain else rf"p{{{(w + 0.8) / width:.3f}\linewidth}}" for w in widths]
    ragged = "" if plain else r"\raggedright\hspace{0pt}"
    out = [r"\smallskip", *([rf"\textit{{{words(t.caption)}}}\par"] if t.caption else [])]
    for start in range(0, max(len(t.rows), 1), PAGE):
        out += [rf"\noindent\begin{{tabular}}{{{''.join(kinds)}}}", r"\hline"]
        rows = [t.head, *t.rows[start : start + PAGE]]
        for k, row in enumerate(rows):
            below_a_line = STRUT if k < 2 else ""
            out.append(below_a_line + " & ".join(ragged + said([c]) for c in row) + r" \tabularnewline")
            out += [r"\hline"] if k in (0, len(rows) - 1) else []
        out += [r"\end{tabular}\par\smallskip"]
    return out


def _width(part: Part) -> int:
    return len(visible(part)) if isinstance(part, str) else len(unicode_math(part.latex))


def algorithm(a: Algorithm, width: int) -> list[str]:
    """Pseudo-code between rules; a line that is too long goes on below its own beginning."""
    out = [OPENING, rf"\textbf{{Algorithm:}} {words(a.title)}\par\nopagebreak"]
    for word, parts in (("takes", a.takes), ("gives", a.gives)):
        row = rf"\noindent\hangindent=3.5em\makebox[3.5em][l]{{\textit{{{word}}}}}{said(parts)}\par\nopagebreak"
        out += [row] if parts else []
    for k, line in enumerate(a.lines, 1):
        deep = 2.5 + 1.5 * line.depth
        number = rf"\makebox[{deep:g}em][l]{{\makebox[1.5em][r]{{\small {k}}}}}"
        out.append(rf"\noindent\hangindent={deep + 1:g}em {number}{said(line.parts)}\par")
    return [*out, CLOSING]


def boxed(b: Box, width: int) -> list[str]:
    """Blocks in a frame with a title, or between rules where they are long."""
    inside = [rf"\textbf{{{words(b.title)}}}\par"] if b.title else []
    inside += [line for x in b.blocks for line in block(x, width - 4)]
    if len(inside) > PAGE:
        return [OPENING, *inside, CLOSING]
    frame = r"\par\smallskip\noindent\fbox{\begin{minipage}{\dimexpr\linewidth-2\fboxsep-2\fboxrule\relax}"
    return [frame, *_spaced(inside), r"\end{minipage}}\par\smallskip"]


def _spaced(lines: Sequence[str]) -> list[str]:
    """The inside of a frame: paragraphs apart as on the page, and no blank line below a last formula."""
    return [r"\setlength{\parskip}{4pt}\setlength{\parindent}{0pt}", *lines]
