"""The log-sum-exp of every softmax of a program, and weights read through it: ``E/l = exp(S - L)``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sympy as sp

from symattn.presentation.listing import free_name
from symattn.presentation.softmax import Normalisation, exponent, log_sum_exp, shift
from symattn.program import Program, Statement, Tensor, subscripts_of, tensor

__all__ = ["Saved", "with_lse"]


@dataclass(frozen=True)
class Saved:
    """A normalisation and its saved log-sum-exp ``L = k*(m + log(l))``."""

    base: Normalisation
    lse: Tensor
    scale: sp.Expr

    def through(self, expr: sp.Expr, program: Program) -> sp.Expr:
        """``expr`` with ``exp(a)/l`` read as ``exp(a + m - L/k)``, exponentials that have a name included."""
        parts = sp.Mul.make_args(expr)
        if 1 / self.base.divisor not in parts:
            return expr
        for f in parts:
            e = f.args[0] if isinstance(f, sp.exp) else exponent(f, program) if isinstance(f, (sp.Indexed, sp.Symbol)) else None
            if e is not None:
                own = exponent(self.base.numerator, program)
                assert own is not None, "a saved log-sum-exp belongs to a sum of exponentials"
                rest = [g for g in parts if g not in (f, 1 / self.base.divisor)]
                return sp.Mul(*rest, sp.exp(e + shift(own, program) - self.lse / self.scale))
        return expr


def with_lse(program: Program, found: Sequence[Normalisation]) -> tuple[Program, tuple[Saved, ...]]:
    """The program with a log-sum-exp for each normalisation: its own where it has one, else ``L`` at the end."""
    saved: list[Saved] = []
    for n in found:
        known = log_sum_exp(n, program)
        if known is None:
            own = exponent(n.numerator, program)
            assert own is not None, "only normalisations of exponentials come here"
            target = tensor(free_name("L", program), *subscripts_of(n.divisor))
            made = Statement(target, shift(own, program) + sp.log(n.divisor))
            program, known = program.with_statements((*program, made)), (made, sp.S.One)
        saved.append(Saved(n, known[0].target, known[1]))
    return program, tuple(saved)
