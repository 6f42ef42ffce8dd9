"""Scalar algebra on the expressions of statements: one readable shape, substitution of a tensor by its value, signs.

Every read is held as a real symbol of its own, so SymPy sees small rational expressions and never an index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import sympy as sp

from symattn.program import Statement, Tensor, integer_symbols, name_of, reads, subscripts_of

__all__ = ["coefficient", "factors", "matches", "renaming", "replace_reads", "tidy"]


def factors(expr: sp.Expr) -> tuple[sp.Expr, ...]:
    """The factors of a product that are no numbers; powers stay powers.

    >>> x, y = sp.symbols("x y")
    >>> factors(-2 * x * y**2)
    (x, y**2)
    """
    return tuple(f for f in sp.Mul.make_args(expr) if not f.is_Number)


def coefficient(expr: sp.Expr) -> sp.Expr:
    """The number in front of a product."""
    return expr.as_coeff_Mul()[0]


def renaming(pattern: Tensor, read: Tensor) -> dict[sp.Basic, sp.Basic] | None:
    """The table that takes the plain subscripts of ``pattern`` to those of ``read``; None when the tensors differ."""
    a, b = subscripts_of(pattern), subscripts_of(read)
    if name_of(pattern) != name_of(read) or len(a) != len(b):
        return None
    return dict(zip(a, b, strict=True))


def replace_reads(expr: sp.Expr, target: Tensor, value: sp.Expr) -> sp.Expr:
    """``expr`` with every read of the tensor of ``target`` replaced by ``value``, its indices renamed to those of the read.

    >>> from symattn.program import tensor, indices
    >>> i, j = indices("i j")
    >>> replace_reads(tensor("x", j) * 2, tensor("x", i), tensor("y", i) + i)
    2*j + 2*y[j]
    """
    table = {r: value.xreplace(t) for r in reads(expr) if (t := renaming(target, r)) is not None}
    return expr.xreplace(table) if table else expr


def matches(head: sp.Expr, s: Statement, expr: sp.Expr) -> Iterator[tuple[sp.Expr, dict[sp.Basic, sp.Basic]]]:
    """The subexpressions of ``expr`` that are ``head`` with the free indices of ``s`` renamed, each with its renaming."""
    for g in sorted(expr.atoms(head.func), key=str):
        for pattern in reads(head):
            for r in reads(g):
                table = renaming(pattern, r)
                if table is None:
                    continue
                table.update({a: a for a in s.indices if a not in table})
                if head.xreplace(table) == g:
                    yield g, table
                    break
            else:
                continue
            break


def _plain(expr: sp.Expr) -> tuple[sp.Expr, dict[sp.Basic, sp.Basic]]:
    """The expression with a real symbol for every function, read and index, named in a fixed order.

    Functions stay as they are: ``exp(-x)`` is not to become ``1/exp(x)``, which overflows where the other does not.
    """
    held = {f: sp.Symbol(f"f{k:03d}", real=True) for k, f in enumerate(sorted(_outermost(expr), key=str))}
    open_ = expr.xreplace(held)
    atoms = [*(x for x in reads(open_) if x not in held.values()), *sorted(integer_symbols(open_), key=str)]
    table = {x: sp.Symbol(f"x{k:03d}", real=True) for k, x in enumerate(atoms)}
    return open_.xreplace(table), {v: k for k, v in (table | held).items()}


def _outermost(expr: sp.Expr) -> frozenset[sp.Expr]:
    """The applied functions in an expression that are not inside another one."""
    if isinstance(expr, sp.Function):
        return frozenset({expr})
    return frozenset() if isinstance(expr, sp.Indexed) else frozenset(f for a in expr.args for f in _outermost(a))


def _sign_inside(expr: sp.Expr) -> sp.Expr:
    """``-a*(b - c)`` as ``a*(c - b)``, where that is shorter."""
    c = coefficient(expr)
    sums = [f for f in factors(expr) if f.is_Add and f.could_extract_minus_sign()]
    if not (c.is_negative and sums):
        return expr
    return sp.Mul(-c, -sums[0], *[f for f in factors(expr) if f is not sums[0]])


def _cancelled(expr: sp.Expr) -> sp.Expr:
    return sp.factor_terms(sp.cancel(expr))


def _collected(expr: sp.Expr) -> sp.Expr:
    """Each sum cancelled by itself, a factor that all of its terms share taken out; products are never multiplied out."""
    return sp.factor_terms(sp.Mul(*[sp.cancel(f) if f.is_Add else f for f in sp.Mul.make_args(expr)]))


_SHAPES: tuple[Callable[[sp.Expr], sp.Expr], ...] = (
    lambda e: e,
    sp.factor_terms,
    _collected,
    _cancelled,
    sp.factor,
    _sign_inside,
    lambda e: _sign_inside(_cancelled(e)),
    lambda e: _sign_inside(sp.factor(e)),
)
_CHEAP = _SHAPES[:2]
_LONG = 100  # beyond so many operations nothing is cancelled or factored


@lru_cache(maxsize=4096)
def tidy(expr: sp.Expr) -> sp.Expr:
    """The shortest of the shapes that cancelling, factoring and moving a sign give: an equal expression.

    >>> P, l, a, b = sp.symbols("P l a b")
    >>> tidy(P * l * (a / l - b / l))
    P*(a - b)
    """
    if not (expr.is_Add or expr.is_Mul or expr.is_Pow):
        return expr
    plain, back = _plain(expr)
    cheap = plain.count_ops() > _LONG or any(p.exp.is_Integer and abs(p.exp) > _LONG for p in plain.atoms(sp.Pow))
    shapes = [shape(plain).xreplace(back) for shape in (_CHEAP if cheap else _SHAPES)]
    return min(shapes, key=lambda e: (e.count_ops(), len(str(e))))
