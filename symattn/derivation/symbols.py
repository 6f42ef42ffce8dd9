"""The formulas of a step in symbols, in index and in matrix form, in both kinds of LaTeX."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal

import sympy as sp

from symattn.derivation.document import Formula
from symattn.derivation.numbersteps import Item
from symattn.indexed import all_reads, integer_symbols, name_of, subscripts_of
from symattn.program import Program, Statement
from symattn.readings.latex import (
    LATEX,
    MARKDOWN,
    SUCH,
    Letters,
    Softmax,
    Style,
    batch_indices,
    condition_form,
    index_form,
    matrix_form,
    scalar_form,
    softmax_form,
    softmax_steps,
)
from symattn.readings.typesetting.elements import element_form
from symattn.readings.typesetting.ordering import Order

SAID: Mapping[str, str] = {"tok": "the number of the word at position"}
"""What an element of a tensor is that subscripts read, before the letter of its own subscript."""
Writer = Callable[[Style], str | None]
Formulas = tuple[Formula, ...]
Shape = tuple[str, str]
Styles = tuple[Style, Style]
STYLES: Styles = (LATEX, MARKDOWN)


def step_formulas(
    program: Program, group: Sequence[Statement], form: str, hidden: frozenset[str], letters: Letters, styles: Styles = STYLES
) -> tuple[Formulas, Formulas]:
    """Index and matrix formulas of one step, in both kinds of LaTeX; an empty tuple for a form that was not asked for.

    Statements that together are a softmax are one formula; where their helpers are ``hidden``, so are its log-sum-exp and the
    share of a sink. A step without matrix form is shown in index form.
    """
    target = group[-1].name
    softmax = _softmax_of(program, group, hidden)
    if softmax is not None:
        index, matrix = (_formula(_softmax(program, softmax, kind, target, letters), styles) for kind in ("index", "matrix"))
        indices: Formulas = (index,) if index else ()
        matrices: Formulas = (matrix,) if matrix else ()
    else:
        matrices = tuple(f for s in group if (f := _formula(_matrix(program, s, letters), styles)) is not None)
        matrices = matrices if len(matrices) == len(group) else ()
        indices = tuple(f for s in group if (f := _formula(_index(program, s, letters), styles)) is not None)
    if indices == matrices:
        matrices = ()  # a vector of heads, a scalar: there is nothing of matrices in it
    if form == "index":
        return indices, ()
    return (() if form == "matrix" and matrices else indices), matrices


def element_formula(
    program: Program,
    group: Sequence[Statement],
    item: Item,
    origin: int,
    hidden: frozenset[str],
    letters: Letters,
    styles: Styles = STYLES,
) -> Formula | None:
    """The right hand side of the statement of one element in symbols, its positions counted from ``origin``.

    None where the page has another formula for it: a log-sum-exp without its helpers.
    """
    s = next(x for x in group if x.name == item.tensor)
    softmax = _softmax_of(program, group, hidden) if s is group[-1] else None
    if softmax is not None and softmax.name != s.name:
        return None
    at = {a: k + origin for a, k in zip(s.indices, item.index, strict=True)}
    batch = batch_indices(program)
    return _formula(lambda style: element_form(program, s, at, letters, style=style, batch=batch, softmax=softmax), styles)


def shapes_of(program: Program, group: Sequence[Statement], hidden: frozenset[str], letters: Letters) -> tuple[Shape, ...]:
    """The letters of the tensors that a step defines and reads, each with its shape, where ``letters`` have shapes."""
    own, batch = {s.name for s in group}, batch_indices(program)
    reads = [x for s in group for x in sorted(s.reads, key=Order.of(s, program).positions) if name_of(x) not in own | hidden]
    found: dict[str, str] = {}
    for x in (group[-1].target, *reads):
        labels = [a for a in subscripts_of(x) if not a.free_symbols & batch]
        sizes = [letters.extents.get(str(a), "") for a in labels]
        if len(labels) in (1, 2) and all(sizes):
            found.setdefault(letters.tensor(name_of(x)).tex(), r" \times ".join((*sizes, "1")[:2]))
    return tuple(found.items())


def extents(program: Program, letters: Letters) -> dict[str, str]:
    """The sizes of all indices in LaTeX, a sum in brackets."""
    first = program.statements[0]
    tex = {a.name: scalar_form(program, first, size, letters) for a, size in program.dims.items()}
    return {a.name: f"({tex[a.name]})" if isinstance(size, sp.Add) else tex[a.name] for a, size in program.dims.items()}


def _softmax_of(program: Program, group: Sequence[Statement], hidden: frozenset[str]) -> Softmax | None:
    """The softmax that the statements of a step are a part of, where that is one formula."""
    target, names = group[-1].name, {s.name for s in group[:-1]}
    return next((f for f in softmax_steps(program) if _gives(f, target, program, hidden) and names <= {*f.helpers}), None)


def _gives(found: Softmax, target: str, program: Program, hidden: frozenset[str]) -> bool:
    """Whether a softmax has a formula of its own for a tensor, and all that the formula stands for is hidden."""
    helpers = {n for n in found.helpers if n in program}
    return target in {found.name, found.lse, *dict(found.beside)} and bool(helpers) and helpers <= hidden


def _formula(write: Writer, styles: Styles) -> Formula | None:
    first, second = map(write, styles)
    return Formula(first, second) if first is not None and second is not None else None


def _where(program: Program, s: Statement, style: Style, letters: Letters) -> str:
    where = condition_form(program, s, letters, style=style, batch=batch_indices(program))
    return rf" \quad\text{{where }} {where}" if where else ""


def _index(program: Program, s: Statement, letters: Letters) -> Writer:
    batch = batch_indices(program)
    return lambda style: index_form(program, s, letters, style=style, batch=batch) + _said(s, letters, batch)


def _said(s: Statement, letters: Letters, batch: Collection[sp.Symbol]) -> str:
    """What the elements are that a statement without a condition has in its subscripts: the numbers of the words."""
    found = {x for x in all_reads(s.expr) if name_of(x) in SAID} if s.where == sp.true else set()
    parts = []
    for x in sorted(found, key=str):
        below = ",".join(letters.symbol(str(a)) for a in subscripts_of(x) if a not in batch)
        parts.append(rf"{letters.tensor(name_of(x)).tex('', below)} \text{{ is {SAID[name_of(x)]} }} {below}")
    return rf" \quad\text{{where }} {', '.join(parts)}" if parts else ""


def _matrix(program: Program, s: Statement, letters: Letters) -> Writer:
    """The matrix form, with the condition where it is one on the entries of the target; other entries are 0 in what is read.

    A matrix of a condition or of positions, ``[i - j]``, reads worse than the index form and is left out, and so is one of a
    constant.
    """
    hidden = any(integer_symbols(c) & set(s.over) for c in s.conditions)

    def write(style: Style) -> str | None:
        m = matrix_form(program, s, letters=letters, style=style)
        if m is None or "[" in m.latex or (not s.reads and len(s.indices) > 1):
            return None
        apart = m.latex.replace(r"} \underset", r"} \enspace \underset")  # shapes of neighbours would touch
        return apart + ("" if hidden else _where(program, s, style, letters))

    return write


def _softmax(program: Program, found: Softmax, kind: str, target: str, letters: Letters) -> Writer:
    shape: Literal["matrix", "index"] = "matrix" if kind == "matrix" else "index"

    def write(style: Style) -> str | None:
        line = softmax_form(program, found, shape, letters, style=style, batch=batch_indices(program), of=target)
        if line is None:
            return None
        below = kind == "index" and target != found.name and SUCH not in line  # the sum itself says which keys it is over
        return line + ("" if below else _where(program, found.weights, style, letters))

    return write
