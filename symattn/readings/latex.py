r"""The LaTeX reading: statements of any program as formulas, in index form and in matrix form.

    index_form(program, statement, letters=None, *, style="latex", batch=(), hidden=(), where=True, constants=True, walk=False)
    matrix_form(program, statement, batch=None, letters=None, *, style="latex", hidden=(), constants=True) -> MatrixForm | None
    softmax_steps(program) -> tuple[Softmax, ...]
    softmax_form(program, found, form="matrix", letters=None, *, style="latex", batch=None, hidden=(), of=None) -> str | None
    condition_form(program, statement, letters=None, *, style="latex", batch=(), hidden=()) -> str
    scan_form(program, statement, letters=None, *, style="latex") -> str
    scalar_form(program, statement, expr, letters=None, *, style="latex") -> str
    letter(name, letters=None, *, known=()) -> str

A :class:`MatrixForm` has ``.latex``, ``.lhs``, ``.rhs`` and ``.value(arrays)``, what the printed formula gives in numbers; it is
None where a statement does not reduce to matrices, and index form is then the thing to print. It leaves conditions out: entries
outside them are 0. A document says that once, with :func:`condition_form`. A :class:`Softmax` names the statements that one line
``P = softmax(Z)`` stands for; :func:`softmax_form` writes that line, and those of the log-sum-exp (``of=found.lse``) and of a
sink's share (``of`` one of ``found.beside``) without the helpers.

``statement`` is a statement of the program or its name. ``letters`` is a table from names of tensors to LaTeX, laid over the
default one, or :class:`Letters`. ``style`` is ``"latex"``, ``"markdown"`` or a :class:`Style`. Indices in ``batch`` are written
above (``S^{(h)}_{ij}``), those in ``hidden`` not at all. ``where=False`` leaves the condition out (for a document that says it
once). ``constants=False`` keeps the letter of a constant such as the scale instead of ``1/\sqrt{d_k}``.

How the index of a scan runs is said once for a group: by :func:`scan_form`, or behind its first statement with ``walk=True``. In
matrix form that index is a batch index: ``W^{(t)} = W^{(t - 1)} + k^{(t)} v^{(t)\top}``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import sympy as sp

from symattn.errors import UnknownNameError, nearest
from symattn.program import Program, Statement
from symattn.readings.typesetting import indexform, matrixform, softmax
from symattn.readings.typesetting.conditions import condition
from symattn.readings.typesetting.letters import LATEX, MARKDOWN, Letters, Style, style_of
from symattn.readings.typesetting.matrixform import MatrixForm
from symattn.readings.typesetting.ordering import batch_indices
from symattn.readings.typesetting.scalars import printer_for
from symattn.readings.typesetting.softmax import SUCH, Softmax, find_softmax

Table = Letters | Mapping[str, str] | None
Indices = Iterable[sp.Symbol | str]

__all__ = [
    "LATEX",
    "MARKDOWN",
    "SUCH",
    "Letters",
    "MatrixForm",
    "Softmax",
    "Style",
    "batch_indices",
    "condition_form",
    "index_form",
    "letter",
    "matrix_form",
    "scalar_form",
    "scan_form",
    "softmax_form",
    "softmax_steps",
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
    walk: bool = False,
) -> str:
    r"""A whole statement in indices, condition included; with ``walk``, the first one of a scan group says how its index runs.

    >>> from symattn.program import indices, size, tensor
    >>> i, j, c = indices("i j c")
    >>> s = Statement(tensor("S", i, j), tensor("Q", i, c) * tensor("K", j, c) * tensor("scale"), (c,), where=sp.Le(j, i))
    >>> p = Program((Statement(tensor("scale"), 1 / sp.sqrt(size("d"))), s), {i: size("n"), j: size("m"), c: size("d")}, ("S",))
    >>> print(index_form(p, "S"))
    S_{ij} = \frac{1}{\sqrt{d_k}} \sum_c Q_{ic} K_{jc} \quad\text{where } j \le i
    """
    s = _statement(program, statement)
    printer = printer_for(program, s, letters, style_of(style), _indices(batch), _indices(hidden))
    out = indexform.index_form(indexform.with_constants(program, s) if constants else s, printer, where=where)
    first = walk and s.scan is not None and any(group[0] == s for group in program.groups())
    return out + (rf" \quad\text{{for }} {indexform.walk(s, program, printer)}" if first else "")


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


def softmax_steps(program: Program) -> tuple[Softmax, ...]:
    """Every softmax of a program, found by structure: which statements one line ``P = softmax(Z)`` stands for."""
    return find_softmax(program)


def softmax_form(
    program: Program,
    found: Softmax,
    form: Literal["matrix", "index"] = "matrix",
    letters: Table = None,
    *,
    style: Style | str = LATEX,
    batch: Indices | None = None,
    hidden: Indices = (),
    of: str | None = None,
    lse: bool = False,
) -> str | None:
    r"""The line ``P = \operatorname{softmax}(Z)``; None where the form does not exist.

    ``of`` asks for another tensor that the softmax gives: ``found.lse`` (``lse=True`` says the same) or the share of a sink, one
    of the names in ``found.beside``.
    ``batch`` None means :func:`batch_indices` in matrix form and no index in index form.

    >>> from symattn.program import indices, size, tensor
    >>> i, j = indices("i j")
    >>> p = Program((
    ...     Statement(tensor("E", i, j), sp.exp(tensor("Z", i, j))),
    ...     Statement(tensor("l", i), tensor("E", i, j), (j,)),
    ...     Statement(tensor("P", i, j), tensor("E", i, j) / tensor("l", i)),
    ... ), {i: size("n"), j: size("m")}, ("P",))
    >>> (found,) = softmax_steps(p)
    >>> print(softmax_form(p, found))
    P = \operatorname{softmax}(Z)
    >>> print(softmax_form(p, found, "index", style="markdown"))
    P_{ij} = \frac{\exp(Z_{ij})}{\sum_{j'} \exp(Z_{ij'})}
    """
    of = found.lse if lse else of or found.name
    if of is None:
        return None
    if of not in {found.name, found.lse, *dict(found.beside)}:
        raise UnknownNameError(f"{of!r} is no part of this softmax. {nearest(of, [found.name, *dict(found.beside)])}")
    lifted = _indices(batch) if batch is not None else batch_indices(program) if form == "matrix" else frozenset()
    printer = printer_for(program, found.weights, letters, style_of(style), lifted, _indices(hidden))
    if form == "index":
        if of == found.name:
            return softmax.softmax_index(found, program, printer)
        return (
            softmax.lse_index(found, program, printer) if of == found.lse else softmax.beside_index(found, program, printer, of)
        )
    lhs = matrixform.left_hand_side(program[of], printer)
    if of == found.name:
        return softmax.softmax_matrix(found, program, printer, lhs)
    if of == found.lse:
        return softmax.lse_matrix(found, program, printer, lhs)
    return softmax.beside_matrix(found, program, printer, lhs, of)


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


def scan_form(program: Program, statement: Statement | str, letters: Table = None, *, style: Style | str = LATEX) -> str:
    r"""How the index of a statement's scan runs; empty without a scan.

    >>> from symattn.program import Scan, index, size, tensor
    >>> t = index("t")
    >>> h = Statement(tensor("h", t), tensor("g", t) * tensor("h", t - 1) + tensor("x", t), scan=Scan(t))
    >>> p = Program((h,), {t: size("n")}, ("h",))
    >>> print(index_form(p, h, where=False), "for", scan_form(p, h))
    h_t = g_t h_{t - 1} + x_t for t = 0, 1, \dots, n - 1
    """
    s = _statement(program, statement)
    return indexform.walk(s, program, printer_for(program, s, letters, style_of(style)))


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
