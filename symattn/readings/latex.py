r"""The LaTeX reading: statements of any program as formulas, in index form and in matrix form.

    index_form(program, statement, letters=None, *, style="latex", batch=(), hidden=(), where=True, constants=True) -> str
    matrix_form(program, statement, batch=None, letters=None, *, style="latex", hidden=(), constants=True) -> MatrixForm | None
    condition_form(program, statement, letters=None, *, style="latex", batch=(), hidden=()) -> str
    scalar_form(program, statement, expr, letters=None, *, style="latex") -> str
    letter(name, letters=None, *, known=()) -> str

A :class:`MatrixForm` has ``.latex``, ``.lhs``, ``.rhs`` and ``.value(arrays)``, what the printed formula gives in numbers; it is
None where a statement does not reduce to matrices, and index form is then the thing to print. It leaves conditions out: entries
outside them are 0. A document says that once, with :func:`condition_form`.

``statement`` is a statement of the program or its name. ``letters`` is a table from names of tensors to LaTeX, laid over the
default one, or :class:`Letters`. ``style`` is ``"latex"``, ``"markdown"`` or a :class:`Style`. Indices in ``batch`` are written
above (``S^{(h)}_{ij}``), those in ``hidden`` not at all. ``where=False`` leaves the condition out (for a document that says it
once); ``constants=False`` keeps the letter of a constant such as the scale instead of ``1/\sqrt{d_k}``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import sympy as sp

from symattn.program import Program, Statement
from symattn.readings.typesetting import indexform, matrixform
from symattn.readings.typesetting.conditions import condition
from symattn.readings.typesetting.letters import LATEX, MARKDOWN, Letters, Style, style_of
from symattn.readings.typesetting.matrixform import MatrixForm, batch_indices
from symattn.readings.typesetting.scalars import printer_for

Table = Letters | Mapping[str, str] | None
Indices = Iterable[sp.Symbol | str]

__all__ = [
    "LATEX",
    "MARKDOWN",
    "Letters",
    "MatrixForm",
    "Style",
    "batch_indices",
    "condition_form",
    "index_form",
    "letter",
    "matrix_form",
    "scalar_form",
]


def index_form(
    program: Program,
    statement: Statement | str,
    letters: Table = None,
    *,
    style: Style | str = LATEX,
    batch: Indices = (),
    hidden: Indices = (),
    where: bool = True,
    constants: bool = True,
) -> str:
    r"""A whole statement in indices, condition included.

    >>> from symattn.program import indices, size, tensor
    >>> i, j, c = indices("i j c")
    >>> s = Statement(tensor("S", i, j), tensor("Q", i, c) * tensor("K", j, c) * tensor("scale"), (c,), where=sp.Le(j, i))
    >>> p = Program((Statement(tensor("scale"), 1 / sp.sqrt(size("d"))), s), {i: size("n"), j: size("m"), c: size("d")}, ("S",))
    >>> print(index_form(p, "S"))
    S_{ij} = \frac{1}{\sqrt{d_k}} \sum_c Q_{ic} K_{jc} \quad\text{where } j \le i
    """
    s = _statement(program, statement)
    printer = printer_for(program, s, letters, style_of(style), _indices(batch), _indices(hidden))
    return indexform.index_form(indexform.with_constants(program, s) if constants else s, printer, where=where)


def matrix_form(
    program: Program,
    statement: Statement | str,
    batch: Indices | None = None,
    letters: Table = None,
    *,
    style: Style | str = LATEX,
    hidden: Indices = (),
    constants: bool = True,
) -> MatrixForm | None:
    r"""A statement as a matrix formula, or None where it does not reduce to matrices.

    ``batch`` are the indices that are no axes of the matrices (None: :func:`batch_indices`), written above unless ``hidden``.

    >>> from symattn.program import indices, size, tensor
    >>> i, j, c, k, g = indices("i j c k g")
    >>> dims = {i: size("n"), j: size("m"), c: size("d"), k: size("Hkv"), g: size("G")}
    >>> s = Statement(tensor("dK", k, j, c), tensor("dS", k, g, i, j) * tensor("Q", k, g, i, c), (g, i))
    >>> print(matrix_form(Program((s,), dims, ("dK",)), s, batch=(k, g)).latex)
    dK^{(k)} = \sum_g dS^{(k,g)\top} Q^{(k,g)}
    """
    s = _statement(program, statement)
    lifted = batch_indices(program) if batch is None else _indices(batch)
    unseen = _indices(hidden) - set(s.over)
    printer = printer_for(program, s, letters, style_of(style), lifted | (_indices(hidden) - unseen), unseen)
    return matrixform.matrix_form(program, s, printer, constants=constants)


def scalar_form(
    program: Program, statement: Statement | str, expr: sp.Expr, letters: Table = None, *, style: Style | str = LATEX
) -> str:
    """A scalar expression, written in the order that a statement gives."""
    return printer_for(program, _statement(program, statement), letters, style_of(style)).tex(expr)


def condition_form(
    program: Program,
    statement: Statement | str,
    letters: Table = None,
    *,
    style: Style | str = LATEX,
    batch: Indices = (),
    hidden: Indices = (),
) -> str:
    r"""The condition of a statement in LaTeX, ``j \le i``; empty where it always holds."""
    s = _statement(program, statement)
    printer = printer_for(program, s, letters, style_of(style), _indices(batch), _indices(hidden))
    return "" if s.where == sp.true else condition(s.where, printer)


def letter(name: str, letters: Table = None, *, known: Iterable[str] = ()) -> str:
    r"""The letter of a tensor.

    >>> letter("dWQ"), letter("l")
    ('dW_Q', '\\ell')
    """
    return Letters.of(letters, known).tensor(name).tex()


def _statement(program: Program, statement: Statement | str) -> Statement:
    return program[statement] if isinstance(statement, str) else statement


def _indices(names: Indices) -> frozenset[sp.Symbol]:
    return frozenset(sp.Symbol(a, integer=True) if isinstance(a, str) else a for a in names)
