"""Faults of the scale: forgotten, doubled, inverted, of another width."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import sympy as sp

from symattn.indexed import size
from symattn.verify.faults.fault import Alternative, Fault, Situation
from symattn.verify.faults.structure import with_expr

D = size("d")


def rescaled(s: Situation, scale: sp.Expr, label: str = "") -> Iterator[Alternative]:
    """The scale replaced, in the lists where they have one, in the definition where it has none because it is 1."""
    if "scale" in s.program:
        if sp.simplify(s.program["scale"].expr - scale) != 0:
            yield Alternative(label, edit=with_expr({"scale"}, lambda _: scale))
    elif "R" in s.program and s.definition.form == "softmax" and scale != 1:
        yield Alternative(label, definition=s.definition.replace(scale=scale))


def _own(s: Situation) -> sp.Expr:
    return s.program["scale"].expr if "scale" in s.program else sp.Integer(1)


def _to(scale: Callable[[Situation], sp.Expr]) -> Callable[[Situation], Iterator[Alternative]]:
    return lambda s: rescaled(s, scale(s))


ROWS = (
    Fault(
        "F05",
        "scores are not scaled",
        "convention",
        wrong="q.k",
        right="q.k/sqrt(d)",
        threads=("mlc-llm#3426", "cntkx#10"),
        look="the factor before the softmax",
        blind="d = 1 or m = 1",
        rewrite=_to(lambda s: sp.Integer(1)),
    ),
    Fault(
        "F06",
        "scale 1/d",
        "convention",
        wrong="q.k/d",
        right="q.k/sqrt(d)",
        look="d**-1 for d**-0.5",
        blind="d = 1",
        rewrite=_to(lambda s: 1 / D),
    ),
    Fault(
        "F07",
        "scale of the model width, 1/sqrt(H d)",
        "convention",
        wrong="q.k/sqrt(H d)",
        right="q.k/sqrt(d)",
        threads=("DL4Proteins#12", "set_transformer#18"),
        look="sqrt(d_model) where sqrt(d_head) is meant",
        blind="H = 1",
        rewrite=_to(lambda s: 1 / sp.sqrt(D * s.sizes["H"])),
    ),
    Fault(
        "F09",
        "scores are multiplied by sqrt(d) instead of divided",
        "mathematics",
        wrong="q.k*sqrt(d)",
        right="q.k/sqrt(d)",
        threads=("maxtext#1370",),
        look="the sign of the exponent of the scale",
        blind="d = 1",
        rewrite=_to(lambda s: sp.sqrt(D)),
    ),
)
