"""Scalar functions that SymPy does not have: the logistic sigmoid, as one function that no number overflows."""

from __future__ import annotations

import sympy as sp

__all__ = ["sigmoid"]


class sigmoid(sp.Function):
    r"""The logistic function ``1/(1 + exp(-x))``, from the reals to the numbers between 0 and 1.

    As a quotient of exponentials it would be infinity over infinity in floating point where ``x`` is far below 0; as a function
    it has a value everywhere, and its derivative is made of that value: ``sigmoid(x)*(1 - sigmoid(x))``.

    >>> x = sp.Symbol("x", real=True)
    >>> sigmoid(0), sigmoid(-sp.oo), sigmoid(x).diff(x)
    (1/2, 0, (1 - sigmoid(x))*sigmoid(x))
    """

    nargs = 1
    is_real = True
    is_finite = True
    is_positive = True

    @classmethod
    def eval(cls, x: sp.Expr) -> sp.Expr | None:
        """The value where it is known: at 0 and in the limits."""
        return {sp.S.Zero: sp.S.Half, sp.oo: sp.S.One, -sp.oo: sp.S.Zero, sp.nan: sp.nan}.get(x)

    def fdiff(self, argindex: int = 1) -> sp.Expr:
        """The derivative."""
        return self * (1 - self)

    def _eval_evalf(self, prec: int) -> sp.Expr:
        return (1 / (1 + sp.exp(-self.args[0])))._eval_evalf(prec)
