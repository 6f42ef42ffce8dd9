"""Formulas as MathML, made while the site is built by what makes those of a derivation: no script, no network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from symattn.derivation.mathml import math

if TYPE_CHECKING:
    from docutils.nodes import Element
    from sphinx.application import Sphinx
    from sphinx.writers.html5 import HTML5Translator


def inline(writer: HTML5Translator, node: Element) -> None:
    """A formula in a sentence."""
    from docutils.nodes import SkipNode

    writer.body.append(math(node.astext()).replace(' displaystyle="true"', "", 1))
    raise SkipNode


def display(writer: HTML5Translator, node: Element) -> None:
    """A formula on a line of its own, in a box that scrolls where a window is narrower."""
    from docutils.nodes import SkipNode

    made = math(node.astext()).replace("<math ", '<math display="block" ', 1)
    writer.body.append(f'<div class="math">{made}</div>\n')
    raise SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Name the renderer."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
