"""What a derivation is: steps with formulas, numbers and how they are known; and the forms in which it is given.

The document is plain immutable data. Each writer (:mod:`.latex`, :mod:`.markdown`, :mod:`.html`, :mod:`.text`, :mod:`.jsonform`)
turns all of it into one form; none of them computes anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from symattn.derivation.nodeprint import Style
from symattn.derivation.numbersteps import Item, Node

if TYPE_CHECKING:
    from symattn.derivation.blocks import Section
    from symattn.derivation.pycode import Source
    from symattn.derivation.weightmaps import WeightMap

MAX_MATHJAX = 5000


@dataclass(frozen=True)
class Formula:
    r"""A formula in symbols: LaTeX, and the LaTeX that GitHub's Markdown takes (``\mathrm`` for ``\operatorname``)."""

    latex: str
    markdown: str


@dataclass(frozen=True)
class Cell:
    """One number: the exact value where it is short enough to print, the decimal, and whether the decimal is exact."""

    value: Node | None
    decimal: str
    exact: bool
    masked: bool = False


@dataclass(frozen=True)
class Line:
    """The work of one element: numbers put in, the exact value, the same with decimals, the decimal.

    Parameters
    ----------
    item
        The element.
    work
        The right hand side with the numbers put in; None where it would say the same as the value.
    cell
        Exact value and decimal of the element.
    approximate
        ``work`` with decimals in place of named elements (two guard digits); None where nothing is gained.
    note
        What the element stands for, in words of the example: the query's and the key's. Every writer escapes them.
    row, shown
        On the last line of a row that is cut: how many elements the row has, and how many are shown. 0 elsewhere.
    formula
        The right hand side in symbols with the numbers of this element as its indices; None where it is not asked for.
    """

    item: Item
    work: Node | None
    cell: Cell
    approximate: Node | None = None
    note: tuple[str, ...] = ()
    row: int = 0
    shown: int = 0
    formula: Formula | None = None


@dataclass(frozen=True)
class Grid:
    """A tensor with numbers, as a matrix: for fixed leading indices (heads), perhaps one followed row of it.

    Parameters
    ----------
    tensor, leading, row
        Which one; indices count from 0, ``row`` is None for the whole matrix.
    cells
        Rows of cells; a vector is one row, a scalar one cell.
    skipped_rows, skipped_columns
        Where rows and columns were left out (the position after which), or None.
    shape
        The shape of the whole matrix.
    row_words, column_words
        The words at the rows and columns that are shown, or nothing. Text of the user.
    followed
        Which of the rows that are shown is that of the followed query.
    given
        Whether it is an input.
    block
        The first and the last row and column, where the grid is a part of a large matrix that is shown whole.
    """

    tensor: str
    leading: tuple[int, ...]
    row: int | None
    cells: tuple[tuple[Cell, ...], ...]
    shape: tuple[int, ...]
    skipped_rows: int | None = None
    skipped_columns: int | None = None
    row_words: tuple[str, ...] = ()
    column_words: tuple[str, ...] = ()
    followed: int | None = None
    given: bool = False
    block: tuple[int, int, int, int] | None = None

    def place(self, k: int, axis: int) -> int:
        """The position, from 0, of row (axis 0) or column (axis 1) ``k`` of the cells."""
        if axis == 0 and self.row is not None:
            return self.row
        length, skipped = (1, *self.shape)[axis - 2 :][0], (self.skipped_rows, self.skipped_columns)[axis]
        start = self.block[2 * axis] if self.block is not None else 0
        return length - 1 if skipped is not None and k >= skipped else start + k

    @property
    def displays(self) -> tuple[tuple[str, bool], ...]:
        """How the matrix is shown: relation, and whether by exact values; an input as typed, others in decimals too."""
        if self.given and self.printable:
            return (("=", True),)
        last = ("=" if self.exact else "≈", False)
        return (("=", True), last) if self.printable and not self.exact else (last,)

    @property
    def printable(self) -> bool:
        """Whether every exact value is short enough to stand in a matrix."""
        return all(c.masked or c.value is not None for row in self.cells for c in row)

    @property
    def exact(self) -> bool:
        """Whether every decimal is the exact value."""
        return all(c.masked or c.exact for row in self.cells for c in row)


@dataclass(frozen=True)
class Step:
    """One step of a derivation.

    Parameters
    ----------
    number, tensors, name
        Its number, the tensors that it defines (the last one gives it its name), its name in the field.
    reason
        One sentence.
    index, matrix
        Formulas in index and matrix form; empty where the form was not asked for or does not exist.
    lines, grids
        The work of single elements, and the values.
    known, numbers
        How the statement is known to be right, and how its numbers are: ``"exact"`` where every one is shown by its exact value,
        ``"enclosed"`` where the decimals of some were decided by an enclosure, and are right in every digit; "" without numbers.
    uses
        The numbers of the earlier steps whose tensors the statements read.
    shapes
        The tensors of the matrix formula (or of the index formula), the one that is defined first, each with its shape: LaTeX.
        Empty where shapes are not asked for.
    remark
        A sentence about the numbers, for example that a weight matrix is the identity.
    backward, tangent
        Whether the step belongs to the gradient, or to a tangent (of the outputs, or of the gradient).
    """

    number: int
    tensors: tuple[str, ...]
    name: str
    reason: str
    index: tuple[Formula, ...] = ()
    matrix: tuple[Formula, ...] = ()
    lines: tuple[Line, ...] = ()
    grids: tuple[Grid, ...] = ()
    known: str = ""
    remark: str = ""
    backward: bool = False
    tangent: bool = False
    numbers: str = ""
    uses: tuple[int, ...] = ()
    shapes: tuple[tuple[str, str], ...] = ()

    @property
    def derived(self) -> bool:
        """Whether a rule of differentiation made the step."""
        return self.backward or self.tangent

    def cut(self, line: Line) -> str:
        """What is said after the last line of a row that is cut; empty after every other line."""
        return f"{line.shown} of {line.row} elements are worked out." if line.row else ""

    def how_known(self, refer: Callable[[int], str] = lambda number: f"({number})", escape: Callable[[str], str] = str) -> str:
        """One sentence: how the step is known, from which earlier ones, and how its numbers are; "" where nothing is said.

        ``refer`` writes a reference to a step, ``escape`` words in the form of the page.

        >>> Step(6, ("S",), "", "", known="by definition", uses=(3, 5), numbers="exact").how_known()
        'How known: by definition, from (3) and (5); the numbers are exact.'
        """
        *most, last = map(refer, self.uses) if self.uses else ("",)
        used = f", from {', '.join(most)}{' and ' if most else ''}{last}" if last else ""
        numbers = f"; the numbers are {self.numbers}" if self.numbers else ""
        return f"{escape(f'How known: {self.known}')}{used}{numbers}." if self.known else ""

    @property
    def formulas(self) -> tuple[Formula, ...]:
        """All formulas: matrix form first."""
        return self.matrix + self.index


@dataclass(frozen=True)
class Derivation:
    """The derivation of a definition, step by step, with the numbers of an example where one is given.

    >>> from symattn.definition import Definition
    >>> from symattn.derivation import derive
    >>> derive(Definition(), example="the-cat-sat")
    <Derivation of 'the cat sat on the': 8 steps>
    """

    title: str
    about: str
    definition: str
    conventions: Mapping[str, str]
    steps: tuple[Step, ...]
    inputs: tuple[Grid, ...] = ()
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    follow: int | None = None
    digits: int = 4
    notes: tuple[str, ...] = ()
    rewritings: tuple[str, ...] = ()
    style: Style = field(default_factory=Style)
    sections: tuple[Section, ...] = ()
    maps: tuple[WeightMap, ...] = ()
    detail: str = "steps"
    source: Source | None = field(default=None, repr=False, compare=False)

    def __getitem__(self, tensor: str) -> Step:
        """The step that defines a tensor.

        Raises
        ------
        KeyError
            When no step defines it.
        """
        for s in self.steps:
            if tensor in s.tensors:
                return s
        raise KeyError(tensor)

    def __repr__(self) -> str:
        return f"<Derivation of {self.title!r}: {len(self.steps)} steps>"

    @property
    def rewritten(self) -> str:
        """The heading of the list of rewritings."""
        what = [
            word
            for word in ("gradient", "tangent")
            if any(getattr(s, {"gradient": "backward"}.get(word, word)) for s in self.steps)
        ]
        return f"How the {' and the '.join(what)} {'were' if len(what) > 1 else 'was'} brought to this form"

    def to_latex(self, page: str = "a4") -> str:
        """A whole LaTeX document that needs amsmath and nothing else, for a page ``a4``, ``letter``, ``a5`` or ``narrow``."""
        from symattn.derivation.latex import document

        return document(self, page)

    def to_latex_fragment(self, page: str = "a4", prefix: str | None = None) -> str:
        r"""LaTeX to be included by ``\input``, without preamble; labels begin with ``prefix``."""
        from symattn.derivation.fragment import fragment

        return fragment(self, page, prefix)

    def to_pdf(self, page: str = "a4", engine: str | None = None) -> bytes:
        """The LaTeX document as PDF, by the TeX that is installed: see :func:`symattn.derivation.pdf.pdf`."""
        from symattn.derivation.pdf import pdf

        return pdf(self.to_latex(page), engine)

    def to_markdown(self) -> str:
        """Markdown with formulas in dollars, as GitHub shows them."""
        from symattn.derivation.markdown import document

        return document(self)

    def to_myst(self) -> str:
        """MyST, for Sphinx: formulas with labels, references by ``{eq}``, boxes as admonitions."""
        from symattn.derivation.myst import document

        return document(self)

    def to_ipynb(self) -> str:
        """A Jupyter notebook whose cells recompute every number; it needs the extra ``notebook``."""
        from symattn.derivation.notebook import document

        return document(self)

    def to_html(self) -> str:
        """One HTML file with MathML; it loads nothing from anywhere."""
        from symattn.derivation.html import document

        return document(self)

    def to_html_fragment(self, prefix: str | None = None) -> str:
        """The same without the frame of a page: a style sheet and an article, to stand in a page of one's own.

        The names of places in it begin with ``prefix``, or with one that title and content make.
        """
        from symattn.derivation.html import fragment

        return fragment(self, prefix)

    def to_text(self) -> str:
        """Unicode text of at most 80 columns."""
        from symattn.derivation.text import document

        return document(self)

    def to_json(self) -> str:
        """One JSON document; every number is a string. The schema is in :mod:`symattn.derivation.jsonform`."""
        from symattn.derivation.jsonform import document

        return document(self)

    def _repr_latex_(self) -> str:
        """The formulas for a notebook, within what MathJax takes at once."""
        rows: list[str] = []
        for s in self.steps:
            for f in s.formulas:
                row = f.latex.replace("=", "&=", 1)
                if sum(map(len, rows)) + len(row) > MAX_MATHJAX - 200:
                    rows.append(r"&\;\;\vdots")
                    return _aligned(rows)
                rows.append(row)
        return _aligned(rows)

    def _repr_html_(self) -> str:
        from symattn.derivation.html import fragment

        return fragment(self)


def conventions(d: Derivation) -> list[tuple[str, str]]:
    """The conventions in words, those that say "none" in one row at the end."""
    absent = [name for name, value in d.conventions.items() if value == "none"]
    said = [(name, value) for name, value in d.conventions.items() if value != "none"]
    return [*said, ("none of these", ", ".join(absent))] if absent else said


def _aligned(rows: list[str]) -> str:
    return "$$\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}$$"
