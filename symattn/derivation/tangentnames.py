"""The names and letters of the steps of a tangent, and a sentence of reason for each, read off the form of the statement.

``P_t`` is the tangent of ``P``; ``dQ_t``, the tangent of a gradient, is a Hessian-vector product where ``Q`` is an input.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import sympy as sp

from symattn.derivation.naming import naming_of_gradient, words_for
from symattn.program import Statement, name_of, reads
from symattn.readings.typesetting.letters import Letters

__all__ = ["dotted_for", "naming_of_tangent"]

_GRADIENT = "Gradient of the "


def dotted_for(names: Iterable[str], parameters: Collection[str] = ()) -> dict[str, str]:
    r"""Letters for the tangents of gradients: the dot stands on the whole name.

    >>> dotted_for(["dQ_t", "Q_t", "dWQ_t"])
    {'dQ_t': '\\dot{dQ}', 'dWQ_t': '\\dot{dW}_{Q}'}
    """
    names = set(names)
    letters = Letters.of(words_for(parameters), names)
    found = {}
    for n in sorted(names):
        inner = n.removesuffix("_t")
        if inner != n and inner.startswith("d") and not {n, inner} & set(parameters):
            letter = letters.tensor(inner)
            if letter.prefix:
                found[n] = rf"\dot{{{letter.prefix}{letter.base}}}" + (f"_{{{letter.sub}}}" if letter.sub else "")
    return found


def naming_of_tangent(s: Statement, parameters: Collection[str] = (), outputs: Collection[str] = ()) -> tuple[str, str]:
    """Name and reason of the step of a tangent; of those of gradients, the ``outputs`` are Hessian-vector products.

    >>> from symattn.program import index, tensor
    >>> i = index("i")
    >>> s = Statement(tensor("dV_t", i), tensor("P_t", i) * tensor("dO", i))
    >>> naming_of_tangent(s)[0], naming_of_tangent(s, outputs=["dV_t"])[0]
    ('Tangent of the gradient of the values', 'Hessian-vector product of the values')
    """
    inner = s.name.removesuffix("_t")
    if inner == "Lk":
        name = "Share of the keys in the tangent of the log-sum-exp"
    elif inner.startswith("d") and inner not in parameters and len(inner) > 1:
        base, _, through = inner[1:].partition("_")
        title = naming_of_gradient(base.rstrip("'"), parameters)
        product = s.name in outputs and title.startswith(_GRADIENT)
        title = f"Hessian-vector product of the {title.removeprefix(_GRADIENT)}" if product else _tangent_of(title)
        name = title + (f": the share through {through}" if through else "")
    else:
        name = _tangent_of(naming_of_gradient(inner, parameters).removeprefix(_GRADIENT))
    return name, _reason(s)


def _tangent_of(title: str) -> str:
    return f"Tangent of the {title[0].lower() + title[1:] if title.startswith('Gradient ') else title}"


def _reason(s: Statement) -> str:
    """A sentence on which rule a statement is an instance of."""
    sources = {name_of(x) for x in reads(s.expr)}
    if s.expr == 0:
        return "Nothing that it depends on moves."
    if {"P", "L_t"} <= sources and not s.over:
        return "A weight grows where its score grows faster than what all scores of the row share."
    if s.name in ("L_t", "Lk_t"):
        return "The log-sum-exp moves by the average of the tangents of the scores, each counted by its weight."
    terms = sp.Add.make_args(sp.expand(s.expr))
    if all(len(reads(t)) <= 1 for t in terms) and all(x.endswith("_t") for x in sources):
        return "A linear step: the tangent goes the way of the value."
    if len(terms) > 1 and not s.expr.has(sp.Function):
        return "The product rule: each factor moves in turn while the others are held."
    if s.over:
        return "What moves, times what is held, added up."
    return "The chain rule: the slope, times the tangent of what moves."
