"""Formulas of a section: statements, expressions and sums in them, in the letters of one program, heads written above."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import sympy as sp

from symattn.derivation.document import Formula
from symattn.indexed import conjuncts
from symattn.program import Program, Statement
from symattn.readings.latex import LATEX, MARKDOWN, Letters, Style
from symattn.readings.typesetting.conditions import conditions_of, where_clause
from symattn.readings.typesetting.indexform import BIG, right_hand_side, with_constants
from symattn.readings.typesetting.letters import script
from symattn.readings.typesetting.scalars import PRODUCT, Printer, at, printer_for
from symattn.readings.typesetting.softmax import SUCH, long_below
from symattn.sums import SumOver

__all__ = ["Script", "both"]


def both(write: Callable[[Style], str]) -> Formula:
    """A formula in both kinds of LaTeX."""
    return Formula(write(LATEX), write(MARKDOWN))


class Script:
    """How the formulas of one page are written.

    Parameters
    ----------
    program
        Its tensors; formulas are ordered as in its statements.
    letters
        Name -> letter.
    lifted
        The indices of heads.
    """

    def __init__(self, program: Program, letters: Letters, lifted: frozenset[sp.Symbol]) -> None:
        self.program, self.letters, self.lifted = program, letters, lifted

    def printer(self, style: Style, s: Statement | None = None) -> Printer:
        """The printer for a statement."""
        return printer_for(self.program, s or self.program.statements[0], self.letters, style, self.lifted)

    def statement(self, s: Statement, where: bool = True) -> Formula:
        """A whole statement, constants in place."""
        shown = with_constants(self.program, s)

        def write(style: Style) -> str:
            p = self.printer(style, shown)
            tail = where_clause(shown.where, p) if where else ""
            return f"{p.tex(s.target)} = {right_hand_side(shown, p)}{tail}"

        return both(write)

    def expression(self, e: sp.Expr, s: Statement | None = None) -> Formula:
        """An expression, sums in it spelled out."""
        return both(lambda style: self.tex(e, style, s))

    def chain(self, parts: Sequence[sp.Expr], s: Statement | None = None) -> Formula:
        """Expressions that are equal, one after the other; a condition too long to stand below a sum stands behind them."""
        found = {x.where for e in parts for x in e.atoms(SumOver)}

        def write(style: Style) -> str:
            p = self.printer(style, s)
            behind = [w for w in found if w != sp.true and long_below(conditions_of(w, p))]
            return " = ".join(self.tex(e, style, s) for e in parts) + (where_clause(sp.And(*behind), p) if behind else "")

        return both(write)

    def tex(self, e: sp.Expr, style: Style, s: Statement | None = None) -> str:
        """An expression with sums in it: terms and factors that are sums come last."""
        p = self.printer(style, s)
        if not e.has(SumOver):
            return p.tex(e)
        terms = [self._product(t, style, p, s) for t in sp.Add.make_args(e)]
        with_sums = [t for t, x in zip(terms, sp.Add.make_args(e), strict=True) if x.has(SumOver)]
        without = [t for t, x in zip(terms, sp.Add.make_args(e), strict=True) if not x.has(SumOver)]
        return " + ".join((*with_sums, *without))

    def _product(self, e: sp.Expr, style: Style, p: Printer, s: Statement | None) -> str:
        if isinstance(e, SumOver):
            return self._sum(e, style, s)
        if not e.has(SumOver):
            return at(p.piece(e), PRODUCT)
        sums = [f for f in sp.Mul.make_args(e) if f.has(SumOver)]
        rest = sp.Mul(*[f for f in sp.Mul.make_args(e) if not f.has(SumOver)])
        head = "" if rest == 1 else at(p.piece(rest), PRODUCT) + " "
        return head + " ".join(self._product(f, style, p, s) for f in sums)

    def _sum(self, e: SumOver, style: Style, s: Statement | None) -> str:
        p = self.printer(style, s)
        below = self._bounds(e, p)
        body = self.tex(e.body, style, s) if e.body.has(SumOver) else at(p.piece(e.body), PRODUCT)
        return f"{BIG['sum']}{script('_', below)} {body}"

    def _bounds(self, e: SumOver, p: Printer) -> str:
        r"""What stands below the sum: ``s \le t`` where that is the whole condition; other conditions stand below the indices."""
        conditions = conjuncts(e.where)
        if len(e.over) == 1 and len(conditions) == 1 and getattr(conditions[0], "lhs", None) == e.over[0]:
            return conditions_of(e.where, p)[0]
        indices = ",".join(p.tex(a) for a in e.over)
        if e.where == sp.true:
            return indices
        below = conditions_of(e.where, p)
        return rf"\text{{{SUCH}}} {indices}" if long_below(below) else f"{indices} :{p.style.thin}" + ", ".join(below)
