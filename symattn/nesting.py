"""Scores of nested functions taken apart: inner functions become values with a name, so that every expression stays small.

The gradient of ``f(g(h(..)))`` in one expression repeats every inner function at every level. With a name for each of them it is
one short statement per function, as the chain rule is used by hand.
"""

from __future__ import annotations

from collections.abc import Callable

import sympy as sp

__all__ = ["split", "weight"]

MOST = 6
"""The weight up to which an expression stays whole: three nested functions, or two quotients of them."""
PIECE = 3
"""The weight of a piece of what is heavier: one function, or one quotient of it."""


def _own(e: sp.Basic) -> int:
    """What one node adds: 2 for a function, 1 to 3 for a power of a sum, nothing for arithmetic."""
    if isinstance(e, sp.Function):
        return 2
    if isinstance(e, sp.Pow) and (e.base.is_Add or e.exp.free_symbols):
        return 3 if not e.exp.is_Number or abs(e.exp) > 4 else 1
    return 0


def weight(expr: sp.Basic) -> int:
    """How deeply functions are nested in an expression, each counting 2, and powers of sums.

    >>> s = sp.Symbol("s", real=True)
    >>> weight(s + 1), weight(sp.tanh(s)), weight(1 / (1 + sp.exp(-s))), weight(sp.tanh(sp.tanh(s)))
    (0, 2, 3, 4)
    """
    return _own(expr) + max((weight(a) for a in expr.args), default=0) if expr.free_symbols else 0


def split(expr: sp.Expr, name: Callable[[sp.Expr], sp.Expr]) -> sp.Expr:
    """The expression with its inner functions named where they are nested too deeply; as it is otherwise.

    Parameters
    ----------
    expr
        A scalar expression.
    name
        Takes a piece, in earlier names, and gives what stands for it. Equal pieces are named once; inner ones come first.

    >>> s, names = sp.Symbol("s", real=True), {}
    >>> def name(piece):
    ...     return names.setdefault(piece, sp.Symbol(f"F{len(names)}", real=True))
    >>> e = s
    >>> for _ in range(4):
    ...     e = sp.tanh(e)
    >>> split(e, name), names
    (tanh(F2), {tanh(s): F0, tanh(F0): F1, tanh(F1): F2})
    """
    if weight(expr) <= MOST:
        return expr
    named: dict[sp.Expr, sp.Expr] = {}

    def call(piece: sp.Expr) -> sp.Expr:
        if piece not in named:
            named[piece] = name(piece)
        return named[piece]

    def outermost(e: sp.Expr) -> sp.Expr:
        """``e`` with its outermost functions and powers named."""
        if not e.free_symbols or not e.args:
            return e
        return call(e) if _own(e) else e.func(*[outermost(a) for a in e.args])

    def apart(e: sp.Expr) -> sp.Expr:
        if not e.free_symbols or not e.args:
            return e
        args = [apart(a) for a in e.args]
        if _own(e) and _own(e) + max(weight(a) for a in args) > PIECE:
            args = [outermost(a) for a in args]
        return e.func(*args)

    return apart(expr)
