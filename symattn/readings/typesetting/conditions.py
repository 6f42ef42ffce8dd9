r"""Conditions in LaTeX: ``j \le i + m - n``, ``M_{ij} = 1``, windows, documents, and / or / not."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import sympy as sp

from symattn.program import Program, all_reads, conjuncts, name_of
from symattn.readings.typesetting.scalars import Printer, bracket


@lru_cache(maxsize=64)
def flags(program: Program) -> frozenset[str]:
    """Names of the boolean inputs of a program: only conditions read them, and only to compare them with 0."""
    candidates = set(program.discrete)
    for s in program:
        for c in s.where.atoms(sp.core.relational.Relational):
            compared = c.lhs if isinstance(c, (sp.Eq, sp.Ne)) and c.rhs == 0 and isinstance(c.lhs, sp.Indexed) else None
            inside = compared.indices if compared is not None else (c,)
            candidates -= {name_of(x) for e in inside for x in all_reads(e)}
        candidates -= {name_of(y) for x in all_reads(s.expr) for e in getattr(x, "indices", ()) for y in all_reads(e)}
    return frozenset(candidates)


def condition(where: sp.Basic, printer: Printer, *, inner: bool = False) -> str:
    r"""The LaTeX of a condition; ``inner`` brackets a conjunction.

    >>> i, j = sp.symbols("i j", integer=True)
    >>> condition(sp.And(sp.Le(j, i), sp.Lt(i - j, 128)), Printer())
    'j \\le i \\text{ and } i - j < 128'
    """
    if isinstance(where, (sp.And, sp.Or)):
        word = r" \text{ and } " if isinstance(where, sp.And) else r" \text{ or } "
        tex = word.join(condition(a, printer, inner=True) for a in ordered(where.args, printer))
        return bracket(tex) if inner else tex
    if isinstance(where, sp.Not):
        return r"\text{not } " + condition(where.args[0], printer, inner=True)
    if isinstance(where, sp.core.relational.Relational):
        return _relation(where, printer)
    return {sp.true: r"\text{always}", sp.false: r"\text{never}"}.get(where) or printer.tex(where)


def where_clause(where: sp.Basic, printer: Printer) -> str:
    r"""What follows a formula: ``\quad\text{where } j \le i``; nothing for a condition that always holds."""
    return "" if where == sp.true else rf" \quad\text{{where }} {condition(where, printer)}"


def ordered(conditions: Iterable[sp.Basic], printer: Printer) -> list[sp.Basic]:
    """Conditions on indices first, then those that read tensors."""
    return sorted(conditions, key=lambda c: (len(all_reads(c)), isinstance(c, (sp.Or, sp.And, sp.Not)), _weight(c), str(c)))


def _weight(c: sp.Basic) -> int:
    """A causal condition ``j <= i`` is said before a window ``i - j < w``."""
    return int(not (isinstance(c, sp.core.relational.Relational) and isinstance(c.lhs, sp.Symbol)))


def _relation(c: sp.core.relational.Relational, printer: Printer) -> str:
    style = printer.style
    if isinstance(c.lhs, sp.Indexed) and c.rhs == 0 and name_of(c.lhs) in printer.flags and isinstance(c, (sp.Eq, sp.Ne)):
        return f"{printer.tex(c.lhs)} = {1 if isinstance(c, sp.Ne) else 0}"
    sign = {
        sp.Eq: "=",
        sp.Ne: r"\ne",
        sp.Le: r"\le",
        sp.Ge: r"\ge",
        sp.Lt: style.less,
        sp.Gt: style.greater,
    }[type(c)]
    return f"{printer.tex(c.lhs)} {sign} {printer.tex(c.rhs)}"


def conditions_of(where: sp.Basic, printer: Printer) -> tuple[str, ...]:
    """The conjuncts of a condition, each in LaTeX, in the order of writing."""
    return tuple(condition(c, printer) for c in ordered(conjuncts(where), printer))
