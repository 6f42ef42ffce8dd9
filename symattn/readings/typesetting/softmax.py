r"""Softmax found by its structure: which statements together say ``P = softmax(Z)``, so that a derivation shows one step.

The pattern is ``E = exp(Z - m)`` with a range-only m (or none), ``l`` the sum of E over one index, ``P = E/l``. A sink adds terms
``exp(b - m)`` to ``l``; a log-sum-exp is ``L = m + log(l)``. The shift m cancels, and the one-step formulas leave it out. Nothing
here goes by names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import sympy as sp

from symattn.program import Program, Statement, conjuncts, name_of, reads
from symattn.readings.typesetting.conditions import conditions_of
from symattn.readings.typesetting.indexform import with_constants
from symattn.readings.typesetting.letters import script
from symattn.readings.typesetting.matrices import ENTRYWISE
from symattn.readings.typesetting.reduction import NoMatrixForm, Reduction
from symattn.readings.typesetting.scalars import Printer, bracket

LONGEST_BELOW = 32
"""Signs of a condition that stand below a sum; a longer one is said beside the formula."""
SUCH = "such "


@dataclass(frozen=True)
class Softmax:
    """Statements that together are a softmax.

    Parameters
    ----------
    weights, exponential, normaliser
        The statements ``P = E/l``, ``E = exp(Z - m)`` and the one that defines ``l``.
    score
        What the exponential is taken of, without the shift.
    over
        The index that the weights sum to 1 over.
    shift
        The read of the row maximum, None where nothing is subtracted.
    extras
        Further logits in the denominator (a sink), without the shift.
    helpers
        Names of all statements that the one step stands for, the weights not among them, in the program's order.
    lse
        Name of a tensor that is ``m + log(l)``, None where there is none.
    lse_factor
        What it is multiplied by: 1, or 1/log(2) in base 2.
    beside
        Names of the weights of the extras (the sink's share ``P0 = E0/l``), each with its logit.
    """

    weights: Statement
    exponential: Statement
    normaliser: Statement
    score: sp.Expr
    over: sp.Symbol
    shift: sp.Expr | None
    extras: tuple[sp.Expr, ...]
    helpers: tuple[str, ...]
    lse: str | None
    lse_factor: sp.Expr
    beside: tuple[tuple[str, sp.Expr], ...]

    @property
    def name(self) -> str:
        """The name of the weights."""
        return self.weights.name


def find_softmax(program: Program) -> tuple[Softmax, ...]:
    """Every softmax in a program, in order.

    >>> from symattn.program import indices, size, tensor
    >>> i, j = indices("i j")
    >>> p = Program((
    ...     Statement(tensor("m", i), tensor("Z", i, j), (j,), "max", range_only=True),
    ...     Statement(tensor("E", i, j), sp.exp(tensor("Z", i, j) - tensor("m", i))),
    ...     Statement(tensor("l", i), tensor("E", i, j), (j,)),
    ...     Statement(tensor("P", i, j), tensor("E", i, j) / tensor("l", i)),
    ... ), {i: size("n"), j: size("m")}, ("P",))
    >>> find_softmax(p)[0].score, find_softmax(p)[0].helpers
    (Z[i, j], ('m', 'E', 'l'))
    """
    return tuple(found for s in program for found in [_softmax(program, s)] if found is not None)


def _softmax(program: Program, s: Statement) -> Softmax | None:
    factors = sp.Mul.make_args(s.expr)
    if s.over or len(factors) != 2:
        return None
    numerator = next((f for f in factors if isinstance(f, sp.Indexed)), None)
    denominator = next((1 / f for f in factors if isinstance(f, sp.Pow) and f.exp == -1), None)
    if numerator is None or not isinstance(denominator, (sp.Indexed, sp.Symbol)):
        return None
    exponential, normaliser = _unreduced(program, numerator), _definition(program, denominator)
    if exponential is None or normaliser is None or not isinstance(exponential.expr, sp.exp) or exponential.where != s.where:
        return None
    exponent = exponential.expr.args[0]
    shift = next((-t for t in sp.Add.make_args(exponent) if _is_shift(program, -t)), None)
    parts = _denominator(program, normaliser, numerator, shift)
    if parts is None:
        return None
    row, logits, used = parts
    if s.where != row.where or set(row.indices) | set(row.over) != set(s.indices):
        return None
    maxima = _maxima(program, shift) if shift is not None else set()
    names = {exponential.name, normaliser.name, *used, *maxima}
    lse, factor = next(((t.name, f) for t in program for f in _lse_factor(t, denominator, shift)), (None, sp.Integer(1)))
    score = exponent + shift if shift is not None else exponent
    helpers = tuple(t.name for t in program if t.name in names)
    beside = tuple((t.name, x) for t in program for read, x in logits.items() if not t.over and t.expr == read / denominator)
    extras = tuple(logits.values())
    return Softmax(s, exponential, normaliser, score, row.over[0], shift, extras, helpers, lse, factor, beside)


def _definition(program: Program, read: sp.Expr) -> Statement | None:
    """The statement that defines a read, if the read uses the statement's own indices."""
    name = name_of(read)
    return program[name] if name in program and program[name].target == read else None


def _unreduced(program: Program, read: sp.Expr) -> Statement | None:
    s = _definition(program, read)
    return s if s is not None and not s.over else None


def _is_shift(program: Program, t: sp.Expr) -> bool:
    s = _definition(program, t) if isinstance(t, (sp.Indexed, sp.Symbol)) else None
    return s is not None and s.range_only


def _denominator(
    program: Program, s: Statement, weight: sp.Expr, shift: sp.Expr | None
) -> tuple[Statement, dict[sp.Expr, sp.Expr], set[str]] | None:
    """The row sum inside a normaliser, the terms beside it with their logits, and the statements used."""
    if _is_row_sum(s, weight):
        return s, {}, {s.name}
    if s.over or not isinstance(s.expr, sp.Add):
        return None
    row, logits, used = None, {}, set()
    for t in s.expr.args:
        inner = _definition(program, t) if isinstance(t, (sp.Indexed, sp.Symbol)) else None
        if inner is not None and _is_row_sum(inner, weight):
            row = inner
            used.add(inner.name)
            continue
        e = inner.expr if inner is not None and not inner.over and inner.where == sp.true else t
        if not isinstance(e, sp.exp):
            return None
        logit = e.args[0] + (shift if shift is not None else 0)
        if shift is not None and logit.has(shift):
            return None
        used |= {inner.name} if inner is not None else set()
        logits[t] = logit
    return (row, logits, used) if row is not None else None


def _is_row_sum(s: Statement, weight: sp.Expr) -> bool:
    return len(s.over) == 1 and s.reduce == "sum" and s.expr == weight


def _maxima(program: Program, shift: sp.Expr) -> set[str]:
    """The range-only statements that the shift is made of."""
    s = program[name_of(shift)]
    inner = [program[name_of(x)] for x in s.reads if name_of(x) in program]
    return {s.name} | {t.name for t in inner if t.reduce == "max" and t.over}


def _lse_factor(t: Statement, normaliser: sp.Expr, shift: sp.Expr | None) -> tuple[sp.Expr, ...]:
    """The number before ``m + log(l)`` where a statement is a multiple of that, nothing otherwise."""
    factor, rest = t.expr.as_independent(*reads(t.expr), as_Add=False)
    return (factor,) if not t.over and rest == sp.log(normaliser) + (shift if shift is not None else 0) else ()


# --- typesetting


def softmax_index(found: Softmax, program: Program, printer: Printer) -> str:
    r"""``P_{ij} = \frac{\exp(Z_{ij})}{\sum_{j' \le i} \exp(Z_{ij'})}``; a sink stands in the denominator."""
    score = _score(found, program)
    fresh = sp.Symbol(f"{found.over.name}'", integer=True)
    total = _row(found, printer, score, fresh)
    return rf"{printer.tex(found.weights.target)} = \frac{{\exp{bracket(printer.tex(score))}}}{{{total}}}"


def softmax_element(found: Softmax, program: Program, printer: Printer, table: Mapping[sp.Symbol, sp.Symbol]) -> str:
    r"""The right hand side of :func:`softmax_index` for one element: ``table`` puts numbers in the place of its indices."""
    score = _score(found, program)
    rows = {a: b for a, b in table.items() if a != found.over}
    extras = tuple(x.xreplace(rows) for x in found.extras)
    row = replace(found, exponential=found.exponential.xreplace(rows), extras=extras)
    total = _row(row, printer, score.xreplace(rows), sp.Symbol(f"{found.over.name}'", integer=True))
    return rf"\frac{{\exp{bracket(printer.tex(score.xreplace(table)))}}}{{{total}}}"


def beside_index(found: Softmax, program: Program, printer: Printer, name: str) -> str:
    r"""``P_0 = \frac{\exp(b)}{\exp(b) + \sum_j \exp(Z_{ij})}``: the share of a sink."""
    logit = printer.tex(dict(found.beside)[name])
    total = _row(found, printer, _score(found, program), found.over)
    return rf"{printer.tex(program[name].target)} = \frac{{\exp{bracket(logit)}}}{{{total}}}"


def lse_index(found: Softmax, program: Program, printer: Printer) -> str | None:
    r"""``L_i = \log\left(\sum_j \exp(Z_{ij})\right)``; None where the program has no log-sum-exp."""
    if found.lse is None:
        return None
    total = _row(found, printer, _score(found, program), found.over)
    return rf"{printer.tex(program[found.lse].target)} = {_log(found, printer)}\left({total}\right)"


def softmax_matrix(found: Softmax, program: Program, printer: Printer, lhs: str) -> str | None:
    r"""``P = \operatorname{softmax}(Z)``, and ``diag(...)^{-1} \exp(Z)`` with a sink; None where Z is no matrix."""
    form = _reduced(found, program, printer)
    if form is None:
        return None
    if not found.extras:
        below = "" if _by_rows(found, printer) else r"_{\mathrm{col}}"
        return f"{lhs} = {printer.style.function('softmax')}{below}{bracket(form)}"
    row = _matrix_row(found, program, printer, form)
    return rf"{lhs} = {printer.style.function('diag')}{bracket(row)}^{{-1}} \exp{bracket(form)}" if row is not None else None


def beside_matrix(found: Softmax, program: Program, printer: Printer, lhs: str, name: str) -> str | None:
    r"""``P_0 = diag(...)^{-1} \exp(b)\mathbf{1}``."""
    form = _reduced(found, program, printer)
    row = _matrix_row(found, program, printer, form) if form is not None else None
    if row is None:
        return None
    share = _vector(found, printer, program, dict(found.beside)[name])
    return f"{lhs} = {printer.style.function('diag')}{bracket(row)}^{{-1}} {share}"


def lse_matrix(found: Softmax, program: Program, printer: Printer, lhs: str) -> str | None:
    r"""``L = \log(\exp(Z)\mathbf{1})``."""
    form = _reduced(found, program, printer)
    row = _matrix_row(found, program, printer, form) if form is not None else None
    return f"{lhs} = {_log(found, printer)}{bracket(row)}" if row is not None and found.lse is not None else None


def _log(found: Softmax, printer: Printer) -> str:
    if found.lse_factor == 1 / sp.log(2):
        return r"\log_2"
    return r"\log" if found.lse_factor == 1 else rf"{printer.tex(found.lse_factor)} \log"


def _score(found: Softmax, program: Program) -> sp.Expr:
    return with_constants(program, found.exponential).expr.args[0] + (found.shift if found.shift is not None else 0)


def _row(found: Softmax, printer: Printer, score: sp.Expr, bound: sp.Symbol) -> str:
    r"""The denominator: ``\sum_{j \le i} \exp(Z_{ij})``, over the keys that are kept, the extras before it.

    A long condition is not written below the sum: the sum is over "such j", and the formula says which are meant.
    """
    table = {found.over: bound}
    beside = [rf"\exp{bracket(printer.tex(x))}" for x in found.extras]
    kept = [c.xreplace(table) for c in conjuncts(found.exponential.where) if c.has(found.over)]
    below = conditions_of(sp.And(*kept, evaluate=False), printer) if kept else ()
    plain = len(kept) == 1 and isinstance(kept[0], sp.core.relational.Relational) and kept[0].lhs == bound
    under = printer.tex(bound)
    if long_below(below):
        under = rf"\text{{{SUCH}}} {under}"
    elif below:
        under = below[0] if plain else f"{under} :{printer.style.thin}{', '.join(below)}"
    return " + ".join([*beside, rf"\sum{script('_', under)} \exp{bracket(printer.tex(score.xreplace(table)))}"])


def long_below(conditions: Sequence[str]) -> bool:
    """Whether conditions in LaTeX are too long to stand below a sum."""
    return sum(len(re.sub(r"\\[A-Za-z]+|[{}\s]", "", c)) for c in conditions) > LONGEST_BELOW


def _by_rows(found: Softmax, printer: Printer) -> bool:
    """Whether the weights sum to 1 along the rows of their matrix, and not down its columns."""
    return [a for a in found.weights.indices if a not in printer.batch | printer.hidden][-1] == found.over


def _reduced(found: Softmax, program: Program, printer: Printer) -> str | None:
    batch = printer.batch | printer.hidden
    labels = tuple(a for a in found.weights.indices if a not in batch)
    if len(labels) != 2 or found.over not in labels:
        return None
    try:
        form = Reduction(program, printer, batch).element(_score(found, program), labels)
    except NoMatrixForm:
        return None
    return form.tex if form.labels == labels else None


def _matrix_row(found: Softmax, program: Program, printer: Printer, score: str) -> str | None:
    if not _by_rows(found, printer):
        return None
    try:
        beside = [_vector(found, printer, program, x) for x in found.extras]
    except NoMatrixForm:
        return None
    return " + ".join([*beside, rf"\exp{bracket(score)}\mathbf{{1}}"])


def _vector(found: Softmax, printer: Printer, program: Program, logit: sp.Expr) -> str:
    reduction = Reduction(program, printer, printer.batch | printer.hidden)
    labels = tuple(a for a in found.weights.indices if a not in reduction.batch)[:1]
    return reduction.algebra.spread(reduction.element(sp.exp(logit), labels), labels).at(ENTRYWISE)
