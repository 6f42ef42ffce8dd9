"""The pictures of ``symattn plot`` in a document: a section with SVG for HTML and notebooks, squares for LaTeX, and words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from symattn.derivation.blocks import Picture, Section
from symattn.derivation.document import Derivation
from symattn.pictures.chart import Chart
from symattn.pictures.drawing import draw
from symattn.pictures.squares import squares

LARGEST = 48
"""Rows and columns of a panel in a document: few enough that every cell is a shape, and no picture has to be loaded."""


def pictured(derivation: Derivation, charts: Iterable[Chart], title: str = "Pictures") -> Derivation:
    """A derivation with a section of pictures below its last step.

    Parameters
    ----------
    derivation
        Any derivation.
    charts
        What is drawn, in order: see :mod:`.weights`, :mod:`.jacobian` and :mod:`.errors`.
    title
        The heading of the section.

    Raises
    ------
    LimitError, MissingDependencyError
        As :func:`symattn.pictures.drawing.draw`.

    >>> from symattn.derivation import derive
    >>> from symattn.pictures.examplevalues import bind
    >>> from symattn.pictures.weights import weights
    >>> page = pictured(derive(example="two-words"), [weights(bind("two-words"))])
    >>> page.sections[-1].blocks[0].says
    'Attention weights of each query (row) over the keys (columns).'
    """
    blocks = tuple(Picture(draw(c, ".svg", largest=LARGEST).decode("utf-8"), c.says, partial(squares, c)) for c in charts)
    return replace(derivation, sections=(*derivation.sections, Section(title, blocks)))
