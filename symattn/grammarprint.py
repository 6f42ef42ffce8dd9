"""SymPy back to text of the small grammar, so that a score, mask or scale can be shown, stored and read again."""

from __future__ import annotations

from typing import Any

import sympy as sp
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.str import StrPrinter


class _GrammarPrinter(StrPrinter):
    """SymPy's printer with the names and operators of the grammar."""

    def _print_Abs(self, expr: sp.Basic) -> str:
        return f"abs({self._print(expr.args[0])})"

    def _print_Max(self, expr: sp.Basic) -> str:
        return f"max({', '.join(sorted(map(self._print, expr.args)))})"

    def _print_Min(self, expr: sp.Basic) -> str:
        return f"min({', '.join(sorted(map(self._print, expr.args)))})"

    def _print_Relational(self, expr: sp.Basic) -> str:
        level = PRECEDENCE["Relational"]
        return f"{self.parenthesize(expr.lhs, level)} {expr.rel_op} {self.parenthesize(expr.rhs, level)}"

    def _join(self, expr: sp.Basic, word: str) -> str:
        parts = sorted(
            self._print(a) if isinstance(a, sp.core.relational.Relational) else f"({self._print(a)})" for a in expr.args
        )
        return f" {word} ".join(parts)

    def _print_And(self, expr: sp.Basic) -> str:
        return self._join(expr, "and")

    def _print_Or(self, expr: sp.Basic) -> str:
        return self._join(expr, "or")

    def _print_Not(self, expr: sp.Basic) -> str:
        return f"not ({self._print(expr.args[0])})"

    def _print_Indexed(self, expr: sp.Basic) -> str:
        return f"{expr.base.label}[{', '.join(map(self._print, expr.indices))}]"

    def _print_Exp1(self, expr: sp.Basic) -> str:
        return "exp(1)"


def write(expr: sp.Basic) -> str:
    """The text of a parsed score, mask or scale; parsing it gives the expression again.

    >>> from symattn.grammar import parse_mask, parse_score
    >>> write(parse_mask("(j <= i) & (i - j < 4) | (doc == 0)")), write(parse_score("abs(s)*0.1"))
    ('(i - j < 4 and j <= i) or doc == 0', 'abs(s)/10')
    """
    return str(_GrammarPrinter().doprint(expr))


def write_value(value: Any) -> str:
    """The text of a field's value, as a command line or a file takes it.

    >>> from fractions import Fraction
    >>> write_value((4, None)), write_value(Fraction(1, 10)), write_value(None), write_value(True)
    ('4,-1', '1/10', 'none', 'true')
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join("-1" if v is None else str(v) for v in value)
    if isinstance(value, sp.Basic):
        return write(value)
    return str(value)
