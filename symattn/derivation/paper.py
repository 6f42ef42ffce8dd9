r"""Sizes of pages for the LaTeX document, and the preamble that sets one: amsmath, lengths, and nothing else.

How many characters fit on a line follows from the width of the text, so that formulas are broken where the page ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from symattn.errors import UnknownNameError, nearest

WIDTH_OF_CHARACTER = 2.23
"""Millimetres that a character of a formula takes, about, in the type of 10 points."""
PREAMBLE = r"""\documentclass[10pt,fleqn]{{article}}
\usepackage{{amsmath}}
\setlength{{\paperwidth}}{{{width:g}mm}}
\setlength{{\paperheight}}{{{height:g}mm}}
\ifdefined\pdfpagewidth \pdfpagewidth=\paperwidth \pdfpageheight=\paperheight \fi
\ifdefined\pagewidth \pagewidth=\paperwidth \pageheight=\paperheight \fi
\setlength{{\textwidth}}{{{text:g}mm}}
\setlength{{\textheight}}{{{tall:g}mm}}
\setlength{{\oddsidemargin}}{{{side:.3f}mm}}
\setlength{{\topmargin}}{{{side:.3f}mm}}
\setlength{{\headheight}}{{0pt}}
\setlength{{\headsep}}{{0pt}}
\setlength{{\footskip}}{{{foot:g}mm}}
\setlength{{\parindent}}{{0pt}}
\setlength{{\mathindent}}{{12pt}}
\setlength{{\parskip}}{{4pt plus 2pt}}
\sloppy
\begin{{document}}
"""


@dataclass(frozen=True)
class Paper:
    """A page: width, height and margin in millimetres.

    >>> PAPERS["a4"].characters, PAPERS["narrow"].characters
    (76, 39)
    """

    width: float
    height: float
    margin: float

    @property
    def characters(self) -> int:
        """How many characters of a formula fit on a line, about."""
        return int((self.width - 2 * self.margin) / WIDTH_OF_CHARACTER)

    @property
    def preamble(self) -> str:
        r"""Everything up to ``\begin{document}``."""
        return PREAMBLE.format(
            width=self.width,
            height=self.height,
            text=self.width - 2 * self.margin,
            tall=self.height - 2 * self.margin,
            side=self.margin - 25.4,
            foot=0.6 * self.margin,
        )


PAPERS: Mapping[str, Paper] = {
    "a4": Paper(210, 297, 20),
    "letter": Paper(215.9, 279.4, 20),
    "a5": Paper(148, 210, 13),
    "narrow": Paper(100, 240, 6),
}
"""Name -> page. ``narrow`` is as wide as a column of a paper in two columns, or a telephone."""


def paper(name: str) -> Paper:
    """The page of a name.

    Raises
    ------
    UnknownNameError
        When no page is called so.
    """
    if name not in PAPERS:
        raise UnknownNameError(f"no page is called {name!r}. {nearest(name, PAPERS)}")
    return PAPERS[name]
