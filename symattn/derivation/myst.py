r"""A derivation as MyST, for Sphinx: formulas as directives with labels, references by ``{eq}``, boxes as admonitions.

It needs no extension of MyST. Labels begin with a prefix made of title and content, so that many pages live in one project.
"""

from __future__ import annotations

from collections.abc import Sequence

from symattn.derivation import blocks
from symattn.derivation.document import Derivation
from symattn.derivation.fragment import prefix_of
from symattn.derivation.markup import Markup
from symattn.derivation.svgparts import inline_svg


def document(d: Derivation, prefix: str | None = None) -> str:
    """The whole page; ``prefix`` is put before every label."""
    return Myst(d, prefix).document()


class Myst(Markup):
    """What MyST marks in its own way."""

    def __init__(self, d: Derivation, prefix: str | None = None) -> None:
        super().__init__(d)
        self.prefix = prefix or prefix_of(d.title, Markup(d).document())
        self.pictures = 0

    def inline(self, latex: str) -> str:
        """A formula in a line."""
        return f"{{math}}`{latex}`"

    def display(self, latex: str, number: int | None = None) -> list[str]:
        """A formula of its own, with a label where it is the first of a step."""
        return ["```{math}", *([f":label: {self.prefix}-{number}"] if number is not None else []), latex, "```", ""]

    def reference(self, number: int) -> str:
        """A reference to the formula of a step."""
        return f"{{eq}}`{self.prefix}-{number}`" if number in self.numbered else f"({number})"

    def box(self, title: str, inside: Sequence[str], depth: int) -> list[str]:
        """An admonition; the mark of an outer one is longer than that of what stands in it."""
        fence = "`" * max(4, max((len(x) - len(x.lstrip("`")) for x in inside), default=0) + 1)
        return [f"{fence}{{admonition}} {title or 'Summary'}", *inside[: len(inside) - (inside[-1:] == [""])], fence, ""]

    def picture(self, p: blocks.Picture) -> list[str]:
        """The picture in pages of HTML, and what it shows in words everywhere."""
        self.pictures += 1
        svg = inline_svg(p.svg, p.says, f"{self.prefix}-{self.pictures}-")
        return ["```{raw} html", " ".join(svg.split()), "```", "", *super().picture(p)]
