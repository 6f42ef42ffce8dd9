"""Theorems about the gradient: the formulas of the backward pass.

All are claims about the derived adjoint, for any incoming gradient of the output; the log-sum-exp has none here.
"""

from __future__ import annotations

import sympy as sp

from symattn.derivative import backward
from symattn.errors import NotStatedError
from symattn.indexed import name_of, subscripts_of, tensor
from symattn.program import Statement
from symattn.theorems.claim import Claim, Equal
from symattn.theorems.conditions import (
    EXPONENTIAL_WEIGHTS,
    NATURAL_LOGARITHM,
    OUTPUT_IS_WEIGHTED_SUM,
    compared,
    of_gradient,
)
from symattn.theorems.duality import side_by_side
from symattn.theorems.subject import ANY_MASK, Subject, gradient_of
from symattn.theorems.theorem import Theorem

__all__ = ["ROWS"]


def _product(s: Subject) -> Statement:
    """The statement of the raw scores ``R = Q K^T``; NotStatedError where the raw scores are something else."""
    r, q, k = s.statement("R"), s.read("Q"), s.read("K")
    if sp.expand(r.expr - q * k) != 0 or any(n in ("Q", "K") for t in s.plain if t.name != "R" for n in t.needs):
        raise NotStatedError("the raw scores are not Q K^T")
    return r


def _backward(s: Subject) -> tuple[Claim, ...]:
    w, z, d_out, v = s.multiplying, s.score, gradient_of(s.out), s.read("V")
    e, j = subscripts_of(v)[-1], s.key_index
    g = s.gradient("V", name_of(w), name_of(s.weights), name_of(z))
    gone = tuple(a for a in s.row if a not in subscripts_of(v))
    seen = s.statement("O").where
    p, d_p = s.weights, gradient_of(s.weights)
    rows = Statement(tensor("rowsum(P o dP)", *s.row), p * d_p, (j,))
    with_rows = g.with_statements((*g, rows))
    claims = [
        of_gradient(s, g, g["dV"], Statement(tensor("P^T dO", *subscripts_of(v)), w * d_out, gone), "dV = P^T dO"),
        of_gradient(
            s, g, g["d" + name_of(w)], Statement(tensor("dO V^T", *subscripts_of(w)), d_out * v, (e,), where=seen), "dP = dO V^T"
        ),
        of_gradient(
            s,
            with_rows,
            g["d" + name_of(z)],
            Statement(tensor("P o (dP - D)", *subscripts_of(z)), p * (d_p - rows.target)),
            "dS = P o (dP - D 1^T), D = rowsum(P o dP)",
        ),
    ]
    return tuple(claims)


def _projections(s: Subject) -> tuple[Claim, ...]:
    """The gradients of Q and K from that of the scaled scores, ``scale * R`` where the program has such a statement."""
    r, q, k = _product(s), s.read("Q"), s.read("K")
    scaled = s.plain["S"] if "S" in s.plain and sp.expand(s.plain["S"].expr - tensor("scale") * r.target) == 0 else r
    factor, sign = (tensor("scale"), "scale ") if scaled is not r else (sp.S.One, "")
    g = s.gradient("Q", "K", scaled.name)
    d_s = gradient_of(scaled.target)
    gone = tuple(a for a in s.row if a not in subscripts_of(k))
    return (
        of_gradient(
            s,
            g,
            g["dQ"],
            Statement(tensor(f"{sign}dS K", *subscripts_of(q)), factor * d_s * k, (s.key_index,), where=scaled.where),
            f"dQ = {sign}dS K",
        ),
        of_gradient(
            s,
            g,
            g["dK"],
            Statement(tensor(f"{sign}dS^T Q", *subscripts_of(k)), factor * d_s * q, gone, where=scaled.where),
            f"dK = {sign}dS^T Q",
        ),
    )


def _presented(s: Subject) -> tuple[Claim, ...]:
    """Every gradient of the presented list equals that of the raw adjoint."""
    from symattn.presentation import present

    names = [n for n in ("Q", "K", "V") if s.has(n)]
    raw = s.gradient(*names)
    shown = present(s.plain, raw).program
    own, apart = side_by_side(raw, shown)
    shapes = {n: shown.shapes[n] for t in own for n in t.needs if n in shown.shapes}
    sides = [
        Statement(tensor(f"{o} presented", *raw[o].indices), tensor(apart.get(p, p), *raw[o].indices))
        for o, p in zip(raw.outputs, shown.outputs, strict=True)
    ]
    both = raw.with_statements((*raw, *own, *sides), dims=shown.dims, shapes=shapes)
    return tuple(
        Equal(both, o, side.name, f"{o} as derived = {o} as presented", s.plain, s.seeds)
        for o, side in zip(raw.outputs, sides, strict=True)
    )


def _lse_gradient(s: Subject) -> tuple[Claim, ...]:
    s.need("L")
    z = s.score
    program = s.program.with_statements(s.program.statements, ["L"])
    g = backward(program, [name_of(z)]).program
    right = Statement(tensor("P o dL", *subscripts_of(z)), s.weights * tensor("dL", *s.row))
    both = compared(g, g["d" + name_of(z)], right, "dL_i/dZ_ij = P_ij", forward=program, seeds={"L": "dL"})
    return (both,)


ROWS = (
    Theorem(
        "lse-gradient",
        "The gradient of the log-sum-exp is the weights",
        "dL_i/dZ_ij = P_ij; with a sink too, where the weights of the keys sum to less than one.",
        r"\frac{\partial L_i}{\partial Z_{ij}} = P_{ij}",
        "textbook; arXiv 1704.00805, proposition 1",
        _lse_gradient,
        (NATURAL_LOGARITHM,),
        {**ANY_MASK, "sink": True},
        {"lse_base": 2},
    ),
    Theorem(
        "backward-weights",
        "dV, dP and dS of the backward pass",
        "dV = P^T dO, dP = dO V^T, dS = P o (dP - D 1^T) with D = rowsum(P o dP); dV is summed over the group.",
        r"dV = P^\top dO,\quad dP = dO\,V^\top,\quad dS = P\circ(dP - D\mathbf 1^\top),\ D_i = \sum_j P_{ij}\,dP_{ij}",
        "arXiv 2205.14135, appendix B; 2307.08691, algorithm 2",
        _backward,
        (OUTPUT_IS_WEIGHTED_SUM, EXPONENTIAL_WEIGHTS),
        ANY_MASK,
        {"attn_mask": "boolean", "empty_row": "uniform"},
    ),
    Theorem(
        "backward-projections",
        "dQ and dK of the backward pass",
        "dQ = scale dS K and dK = scale dS^T Q, dK summed over the group; dS is the gradient of the scaled scores.",
        r"dQ = c\,dS\,K,\qquad dK = c\,dS^\top Q",
        "arXiv 2205.14135, appendix B",
        _projections,
        (),
        {**ANY_MASK, "softcap": 20},
    ),
    Theorem(
        "presented-gradient",
        "The presented gradient equals the derived one",
        "Every gradient in the form that is shown equals the raw adjoint of the same definition.",
        r"dX_{\text{presented}} = dX_{\text{derived}}",
        "this toolkit: both lists are derived from the definition",
        _presented,
        (),
        {**ANY_MASK, "softcap": 20, "sink": True},
    ),
)
