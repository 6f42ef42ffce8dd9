"""Which subscripts are certain to be in range: what the signs of indices and a few conditions show."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import sympy as sp

__all__ = ["between"]


def between(
    y: sp.Expr, size: sp.Expr, dims: Mapping[sp.Symbol, sp.Expr], holds: Callable[[sp.Basic], bool] = lambda c: False
) -> bool:
    """Whether ``0 <= y < size`` is shown for a sum of indices: none is negative, and each is below its size.

    Parameters
    ----------
    y
        A sum of multiples of indices and a number; of anything else nothing is shown.
    size, dims
        The bound, and the size of each index.
    holds
        Whether a comparison is known.

    >>> i, r = sp.symbols("i r", integer=True)
    >>> n = sp.Symbol("n", integer=True, positive=True)
    >>> dims = {i: n, r: sp.Integer(3)}
    >>> between(i - r, n, dims), between(i - r, n, dims, lambda c: c == sp.Ge(i - r, 0))
    (False, True)
    """
    terms = [a.as_coeff_Mul() for a in sp.Add.make_args(sp.expand(y))]
    if not all(x == 1 or x in dims for _, x in terms):
        return False
    tops = [k for k, (c, x) in enumerate(terms) if c == 1 and x != 1 and dims[x] == size]
    below = any(all(c <= 0 for c, _ in terms[:k] + terms[k + 1 :]) for k in tops)
    return (all(c >= 0 for c, _ in terms) or holds(sp.Ge(y, 0))) and (below or holds(sp.Lt(y, size)))
