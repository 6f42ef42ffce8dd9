"""Sections of a page as HTML: prose, displays, tables, pseudo-code, pictures and boxes.

Whatever may be wider than a telephone stands in a box of its own that scrolls. Words are escaped; where they name a step of the
page ("step 3", "(3)"), they lead there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from symattn.derivation.blocks import Algorithm, Block, Box, Display, Part, Picture, Prose, Section, Table
from symattn.derivation.escaping import html_text
from symattn.derivation.layout import formula_parts
from symattn.derivation.mathml import in_line, math, pieces
from symattn.derivation.svgparts import inline_svg

_NAMED = re.compile(r"\b([Ss]teps?) (\d+)((?:, \d+)*(?:,? and \d+)?)")
_MARKS = frozenset(".,;:)?!")
_NUMBER = re.compile(r"(?<![\w)\]])\((\d+)\)")


class Blocks:
    """The writer of the blocks of one page: it knows which steps the page has, and counts the pictures.

    ``prefix`` is put before the name of every place.
    """

    def __init__(self, steps: Iterable[int] = (), prefix: str = "") -> None:
        self.steps = frozenset(steps)
        self.prefix = prefix
        self.pictures = 0

    def words(self, text: str) -> str:
        """Words, escaped, with links where they name a step of the page.

        >>> Blocks([3]).words("by step 3 & step 9")
        'by <a href="#step-3">step 3</a> &amp; step 9'
        >>> Blocks([3]).words("from (3), f(3) and (9)")
        'from <a href="#step-3">(3)</a>, f(3) and (9)'
        """
        said = _NAMED.sub(self._links, html_text(text))
        return _NUMBER.sub(lambda m: self.reference(int(m[1])), said)

    def _links(self, m: re.Match[str]) -> str:
        if not m[3]:
            return self.link(int(m[2]), m[0])
        return f"{m[1]} " + re.sub(r"\d+", lambda n: self.link(int(n[0])), m[2] + m[3])

    def link(self, number: int, said: str = "") -> str:
        """A link to a step, or its number where the page does not have it."""
        said = said or str(number)
        return f'<a href="#{self.anchor(number)}">{said}</a>' if number in self.steps else said

    def anchor(self, number: int) -> str:
        """The name of the place of a step."""
        return f"{self.prefix}step-{number}"

    def reference(self, number: int) -> str:
        """A reference to a step as its number in brackets."""
        return self.link(number, f"({number})")

    def section(self, s: Section, anchor: str) -> list[str]:
        """A section with its heading."""
        out = [f'<section id="{anchor}">', f"<h2>{html_text(s.title)}</h2>"]
        for b in s.blocks:
            out += self.block(b)
        out += [f'<p class="say">How known: {self.words(s.known.rstrip("."))}.</p>'] if s.known else []
        return [*out, "</section>"]

    def block(self, b: Block) -> list[str]:
        """A block of any kind."""
        return _WRITERS[type(b)](self, b)

    def parts(self, found: Sequence[Part]) -> str:
        """Words and formulas in a line; a mark that follows a formula stays on its line.

        >>> from symattn.derivation.document import Formula
        >>> Blocks().parts(["the loss by ", Formula("T", "T"), ", held fixed"])
        'the loss by <span class="k"><math><mrow><mi>T</mi></mrow></math>,</span> held fixed'
        """
        out = ""
        for p in found:
            if not isinstance(p, str):
                out += in_line(p.latex)
            elif out.endswith("</math>") and p[:1] in _MARKS:
                before, sign, formula = out.rpartition("<math")
                out = f'{before}<span class="k">{sign}{formula}{html_text(p[0])}</span>{self.words(p[1:])}'
            else:
                out += self.words(p)
        return out

    def prose(self, b: Prose) -> list[str]:
        """A paragraph."""
        return [f"<p>{self.parts(b.parts)}</p>"]

    def display(self, b: Display) -> list[str]:
        """Formulas aligned at their first relation, what is said beside each at the right, or above it on a telephone."""
        out = ['<div class="d">']
        for k, f in enumerate(b.formulas):
            head, *rest = formula_parts("{} " + f.latex if f.latex.startswith(("= ", r"\approx ")) else f.latex)
            note = b.beside[k] if k < len(b.beside) else ""
            if rest:
                left = pieces([head]) if head.pieces[0].latex != "{}" else ""
                out.append(f'<div class="l">{left}</div><div class="r">{pieces(rest)}</div>')
            else:
                out.append(f'<div class="b">{pieces([head])}</div>')
            out.append(f'<div class="n">{self.words(note)}</div>')
        return [*out, "</div>"]

    def table(self, b: Table) -> list[str]:
        """A table with a caption, in a box that scrolls."""
        out = ['<div class="scroll"><table class="t">']
        out += [f"<caption>{self.words(b.caption)}</caption>"] if b.caption else []
        out.append("<thead><tr>" + "".join(f'<th scope="col">{self._cell(p)}</th>' for p in b.head) + "</tr></thead><tbody>")
        out += ["<tr>" + "".join(f"<td>{self._cell(p)}</td>" for p in row) + "</tr>" for row in b.rows]
        return [*out, "</tbody></table></div>"]

    def _cell(self, p: Part) -> str:
        return self.words(p) if isinstance(p, str) else math(p.latex)

    def algorithm(self, b: Algorithm) -> list[str]:
        """Pseudo-code with numbered lines."""
        out = ['<figure class="a">', f"<figcaption>{html_text(b.title)}</figcaption>"]
        out += [f"<p><b>{label}:</b> {self.parts(said)}</p>" for label, said in (("Input", b.takes), ("Output", b.gives)) if said]
        out += ["<ol>", *(f'<li><div class="e{min(x.depth, 6)}">{self.parts(x.parts)}</div></li>' for x in b.lines)]
        return [*out, "</ol></figure>"]

    def picture(self, b: Picture) -> list[str]:
        """A picture with what it shows in words."""
        self.pictures += 1
        svg = inline_svg(b.svg, b.says, f"{self.prefix}p{self.pictures}-")
        return [f'<figure class="pic"><div class="scroll">{svg}</div><figcaption>{self.words(b.says)}</figcaption></figure>']

    def box(self, b: Box) -> list[str]:
        """Blocks in a frame."""
        inner = [x for block in b.blocks for x in self.block(block)]
        return ['<div class="box">', f"<h3>{html_text(b.title)}</h3>", *inner, "</div>"]


_WRITERS: dict[type, Callable[[Blocks, Any], list[str]]] = {
    Prose: Blocks.prose,
    Display: Blocks.display,
    Table: Blocks.table,
    Algorithm: Blocks.algorithm,
    Picture: Blocks.picture,
    Box: Blocks.box,
}
