"""Products without one of their factors: read as the whole product over that factor, where it is never 0.

The derivative rule writes ``X_others``, the product over all points but one, so that it needs no division. Where the factors are
known to be positive, the quotient says the same and is what people write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import sympy as sp

from symattn.functions import sigmoid
from symattn.indexed import Tensor, name_of, reads, subscripts_of
from symattn.presentation.listing import Listing
from symattn.presentation.scalars import renaming, replace_reads, tidy
from symattn.program import Statement

__all__ = ["complements", "divide_products"]


def complements(statements: Sequence[Statement]) -> tuple[tuple[Tensor, sp.Expr], ...]:
    """Pairs (tensor, value): a product over all points but one, and the whole product over that one's factor.

    A pair is given where every statement that reads the tensor does so at a point of the product, and no factor is 0.

    >>> from symattn.indexed import indices, tensor
    >>> i, j, k = indices("i j k")
    >>> x = lambda a: sp.exp(tensor("x", a))
    >>> whole = Statement(tensor("p"), x(j), (j,), "prod")
    >>> others = Statement(tensor("p_others", i), x(k), (k,), "prod", sp.Ne(k, i))
    >>> complements([whole, others])
    ((p_others[i], p*exp(-x[i])),)
    """
    products = [s for s in statements if s.over and s.reduce == "prod" and len(s.over) == 1]
    found = []
    for s in products:
        (bound,) = s.over
        for c in s.conditions:
            missing = [a for a in c.args if a != bound] if isinstance(c, sp.Ne) and bound in c.args else []
            if len(missing) != 1 or missing[0] not in s.indices:
                continue
            kept = {q for q in s.conditions if q is not c}
            for whole in products:
                value = _over(whole, s, bound, missing[0], kept)
                if value is not None and _inside(s, {q.xreplace({bound: missing[0]}) for q in kept}, statements):
                    found.append((s.target, value))
    return tuple(found) if all(_positive(s.expr, statements) for s in products) else ()


def _over(whole: Statement, s: Statement, bound: sp.Symbol, a: sp.Symbol, kept: set[sp.Basic]) -> sp.Expr | None:
    """The whole product over the factor at ``a``; None where ``whole`` is not that product."""
    rest = [x for x in s.indices if x != a]
    if whole is s or len(whole.indices) != len(rest):
        return None
    table = dict(zip(whole.indices, rest, strict=True)) | {whole.over[0]: bound}
    if whole.expr.xreplace(table) != s.expr or {c.xreplace(table) for c in whole.conditions} != kept:
        return None
    return whole.target.xreplace(table) / s.expr.xreplace({bound: a})


def _inside(s: Statement, conditions: set[sp.Basic], statements: Iterable[Statement]) -> bool:
    """Whether the product without a factor is read only where that factor is one of the product's."""
    for u in statements:
        for x in u.reads:
            if name_of(x) == s.name:
                table = renaming(s.target, x)
                if table is None or not {c.xreplace(table) for c in conditions} - {sp.true} <= set(u.conditions):
                    return False
    return True


def _positive(factor: sp.Expr, statements: Iterable[Statement]) -> bool:
    """Whether an expression is positive wherever its tensors have values: helpers spelled out, a sigmoid being a fraction."""
    made = {s.name: s for s in statements if not s.over}
    for _ in range(4):
        for x in reads(factor):
            if name_of(x) in made:
                factor = replace_reads(factor, made[name_of(x)].target, made[name_of(x)].expr)
    plain = factor.xreplace({x: sp.Dummy(real=True) for x in reads(factor)})
    plain = plain.replace(sigmoid, lambda x: 1 / (1 + sp.exp(-x)))
    plain = plain.xreplace({f: sp.Dummy(positive=True) for f in plain.atoms(sp.exp)})
    return bool(sp.together(plain).is_positive)


def divide_products(listing: Listing) -> Iterator[Listing]:
    """Read a product without one factor as the whole product over that factor."""
    for target, value in complements([*listing.program, *listing.derived]):
        for u in listing.derived:
            if any(name_of(x) == name_of(target) and len(set(subscripts_of(x))) == len(x.indices) for x in u.reads):
                yield listing.replaced({u.name: (replace(u, expr=tidy(replace_reads(u.expr, target, value))),)})
