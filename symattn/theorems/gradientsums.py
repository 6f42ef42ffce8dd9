"""Theorems about the gradient: what sums of gradients must be, and that the gradient is the transpose of the tangent.

As in :mod:`.gradients` they are claims about the derived adjoint, for any incoming gradient of the output.
"""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from symattn.derivative import backward, forward, real_inputs
from symattn.errors import NotStatedError
from symattn.indexed import Tensor, index, name_of, subscripts_of, tensor
from symattn.program import Statement
from symattn.theorems.claim import Claim, Equal
from symattn.theorems.conditions import (
    AFFINE_IN_KEYS,
    ONE_FACTOR_PER_PAIR,
    OUTPUT_IS_WEIGHTED_SUM,
    SHIFT_INVARIANT,
    THROUGH_THE_PRODUCT,
    WEIGHTS_SUM_TO_ONE,
    compared,
    of_gradient,
)
from symattn.theorems.copies import beside
from symattn.theorems.subject import ANY_MASK, GROUPED, Subject, gradient_of, starred
from symattn.theorems.theorem import Condition, Theorem

__all__ = ["ROWS"]


def _row_dot(s: Subject) -> tuple[Claim, ...]:
    """For the weights that multiply V; and for P, where those are P times a factor that is no weight."""
    w, p = s.multiplying, s.weights
    if not _scaled(s, w, p):
        raise NotStatedError(f"what multiplies V is {name_of(w)}, which is made of several weights P")
    g = s.gradient(name_of(w), name_of(p))
    e = subscripts_of(s.out)[-1]
    right = Statement(tensor("rowsum(dO o O)", *s.row), gradient_of(s.out) * s.out, (e,))
    claims = []
    for x in dict.fromkeys((w, p)):
        name = f"rowsum({name_of(x)} o d{name_of(x)})"
        left = Statement(tensor(name, *s.row), x * gradient_of(x), (s.key_index,))
        claims.append(of_gradient(s, g, left, right, f"D = {name} = rowsum(dO o O)"))
    return tuple(claims)


def _scaled(s: Subject, w: Tensor, p: Tensor) -> bool:
    """Whether the weights ``w`` are ``p`` times what has no indices: what dropout keeps."""
    return w == p or (name_of(w) in s.plain and not sp.cancel(s.plain[name_of(w)].expr / p).has(sp.Indexed))


def _score_rows(s: Subject) -> tuple[Claim, ...]:
    g = s.gradient(name_of(s.score))
    left = Statement(tensor("rowsum(dS)", *s.row), gradient_of(s.score), (s.key_index,))
    return (of_gradient(s, g, left, Statement(tensor("zero", *s.row), sp.S.Zero), "sum_j dS_ij = 0"),)


def _key_columns(s: Subject) -> tuple[Claim, ...]:
    g = s.gradient("K")
    k = s.read("K")
    at = [a for a in subscripts_of(k) if a != s.key_index]
    left = Statement(tensor("colsum(dK)", *at), gradient_of(k), (s.key_index,))
    return (of_gradient(s, g, left, Statement(tensor("zero", *at), sp.S.Zero), "sum_j dK_jc = 0"),)


def _gauge_gradient(s: Subject) -> tuple[Claim, ...]:
    g = s.gradient("Q", "K")
    q, k = s.read("Q"), s.read("K")
    c = subscripts_of(k)[-1]
    b = index(c.name + "2")
    heads = [a for a in subscripts_of(k)[:-1] if a != s.key_index]
    rows = tuple(a for a in subscripts_of(q)[:-1] if a not in heads)
    g = g.with_statements(g.statements, dims={b: g.dims[c]})
    left = Statement(tensor("dQ^T Q", *heads, c, b), gradient_of(q) * q.xreplace({c: b}), rows)
    right = Statement(tensor("K^T dK", *heads, c, b), k * gradient_of(k).xreplace({c: b}), (s.key_index,))
    return (of_gradient(s, g, left, right, "dQ^T Q = K^T dK, summed over the group"),)


def _scale_gradient(s: Subject) -> tuple[Claim, ...]:
    g = s.gradient("Q", "K")
    q, k = s.read("Q"), s.read("K")
    left = Statement(tensor("<dQ,Q>"), gradient_of(q) * q, subscripts_of(q))
    right = Statement(tensor("<dK,K>"), gradient_of(k) * k, subscripts_of(k))
    return (of_gradient(s, g, left, right, "<dQ, Q> = <dK, K>"),)


def _value_total(s: Subject) -> tuple[Claim, ...]:
    g = s.gradient("V")
    v = s.read("V")
    at = [a for a in subscripts_of(v) if a != s.key_index]
    left = Statement(tensor("sum_j dV", *at), gradient_of(v), (s.key_index,))
    right = Statement(tensor("sum_i dO", *at), gradient_of(s.out), tuple(a for a in s.row if a not in at))
    return (of_gradient(s, g, left, right, "sum_j dV_j = sum_i dO_i"),)


def _duality(s: Subject) -> tuple[Claim, ...]:
    names = real_inputs(s.plain)
    back, ahead = backward(s.plain, names), forward(s.plain, names)
    derived = [x for x in ahead if x.name not in s.plain and not (x.name in back.program and back.program[x.name] == x)]
    out = s.plain[s.plain.outputs[0]].target
    parts = []
    for n in names:
        x = next((y for t in back.program for y in [t.target] if t.name == back.gradients[n]), None)
        assert x is not None
        parts.append(Statement(tensor(f"<d{n},{n}_t>"), x * tensor(n + "_t", *subscripts_of(x)), subscripts_of(x)))
    right = Statement(tensor("sum <dX, X_t>"), sp.Add(*[t.target for t in parts]))
    tangent_out = tensor(ahead.outputs[0], *subscripts_of(out))
    left = Statement(tensor("<dO, O_t>"), tensor(back.seeds[name_of(out)], *subscripts_of(out)) * tangent_out, subscripts_of(out))
    shapes = {n + "_t": s.plain.shapes[n] for n in names}
    whole = back.program.with_statements((*back.program, *derived, *parts), dims=ahead.dims, shapes=shapes)
    every = frozenset(t.name for t in s.plain)
    claim = compared(whole, left, right, "<dO, JVP> = sum over X of <dX, X_t>", forward=s.plain, seeds=back.seeds)
    return (Equal(claim.program, claim.left, claim.right, claim.text, s.plain, back.seeds, opaque=(every, None)),)


def _group_sum(s: Subject) -> tuple[Claim, ...]:
    """The same attention with a key of its own for every query head: its gradients, summed over the group."""
    if not s.group:
        raise NotStatedError("every query head has a key head of its own")
    claims: list[Claim] = []
    for name in ("K", "V"):
        x = s.read(name)
        own = s.gradient(name)
        many = tensor(name + "*", *s.row[:-1], *[a for a in subscripts_of(x) if a not in s.row[:-1]])
        users = [t for t in s.plain if x in t.reads]
        if not all(set(s.group) <= set(t.domain) for t in users) or any(name in t.needs and t not in users for t in s.plain):
            raise NotStatedError(f"{name} is changed before the query heads read it")
        readers = [replace(t, target=starred(t.target), expr=t.expr.xreplace({x: many})) for t in users]
        copy = beside(s.plain, [Statement(many, x), *readers])
        apart = copy.program.with_statements(copy.program.statements, [copy.program.outputs[-1]]).live()
        theirs = backward(apart, [name + "*"]).program
        seed = tensor(s.incoming, *subscripts_of(s.plain[s.plain.outputs[0]].target))
        star = theirs.outputs[0]
        incoming = Statement(tensor(s.incoming + "*", *subscripts_of(seed)), seed)
        statements = [*own, incoming, *(t for t in theirs if t.name not in own)]
        statements.append(Statement(tensor(f"sum_g {star}", *subscripts_of(x)), theirs[star].target, s.group))
        whole = own.with_statements(statements, dims=theirs.dims)
        pairs = tuple((a, b) for a, b in copy.pairs if a in whole)
        grads = tuple((t.name, t.name.replace("*", "")) for t in theirs if t.name not in apart and t.name != star)
        claims.append(
            Equal(
                whole,
                "d" + name,
                f"sum_g {star}",
                f"d{name} = sum over the group of the gradients of its heads",
                s.plain,
                s.seeds,
                pairs=(*pairs, *((a, b) for a, b in grads if b in whole)),
            )
        )
    return tuple(claims)


NO_GROUP = Condition("several query heads share a key head", lambda s: bool(s.group))

ROWS = (
    Theorem(
        "row-dot",
        "D is the row sum of P o dP and of dO o O",
        "D_i = sum_j P_ij dP_ij = sum_e dO_ie O_ie.",
        r"D_i = \sum_j P_{ij}\,dP_{ij} = \sum_e dO_{ie}\,O_{ie}",
        "arXiv 2205.14135, appendix B",
        _row_dot,
        (OUTPUT_IS_WEIGHTED_SUM,),
        {**ANY_MASK, "dropout": True},
        {"attn_mask": "boolean", "empty_row": "uniform"},
    ),
    Theorem(
        "score-rows",
        "The rows of dS sum to zero",
        "sum_j dS_ij = 0, dS being the gradient of the scores that the normaliser sees, where the log-sum-exp has no gradient.",
        r"\sum_j dS_{ij} = 0",
        "by the shift invariance; arXiv 1704.00805, proposition 2",
        _score_rows,
        (SHIFT_INVARIANT,),
        {**ANY_MASK, "softcap": 20},
        {"sink": True},
    ),
    Theorem(
        "key-columns",
        "The columns of dK sum to zero",
        "sum_j dK_jc = 0: one vector added to all keys changes nothing.",
        r"\sum_j dK_{jc} = 0",
        "by the shift invariance of the rows",
        _key_columns,
        (SHIFT_INVARIANT, AFFINE_IN_KEYS),
        ANY_MASK,
        {"softcap": 2},
    ),
    Theorem(
        "gauge-gradient",
        "dQ^T Q = K^T dK, summed over the group",
        "sum_i dQ_ic Q_ib = sum_j K_jc dK_jb for every pair of channels; the left side is summed over the group.",
        r"dQ^\top Q = K^\top dK",
        "by the gauge (Q A, K A^-T)",
        _gauge_gradient,
        (THROUGH_THE_PRODUCT,),
        {**ANY_MASK, "softcap": 20, "sink": True},
    ),
    Theorem(
        "scale-gradient",
        "<dQ, Q> = <dK, K>",
        "The inner products of Q and K with their gradients agree.",
        r"\langle dQ, Q\rangle = \langle dK, K\rangle",
        "by the gauge (a Q, K/a)",
        _scale_gradient,
        (ONE_FACTOR_PER_PAIR,),
        {**ANY_MASK, "softcap": 20, "sink": True},
    ),
    Theorem(
        "value-total",
        "The sum of dV is the sum of dO",
        "sum_j dV_j = sum_i dO_i, over the query heads of a key head.",
        r"\sum_j dV_j = \sum_i dO_i",
        "by the rows of P",
        _value_total,
        (OUTPUT_IS_WEIGHTED_SUM, WEIGHTS_SUM_TO_ONE),
        ANY_MASK,
        {"sink": True},
    ),
    Theorem(
        "duality",
        "The gradient is the transpose of the tangent",
        "<dO, JVP> = sum over the inputs X of <dX, X_t>, for every incoming gradient and every direction.",
        r"\langle dO, \dot O\rangle = \sum_X \langle dX, \dot X\rangle",
        "Griewank and Walther, Evaluating Derivatives, 2008, section 3.2",
        _duality,
        (),
        {**GROUPED, "causal": "bottom-right", "softcap": 20, "sink": True},
    ),
    Theorem(
        "group-sum",
        "Grouped heads: dK and dV are sums over the group",
        "With a key head of its own for every query head, dK and dV of the shared head are the sums of theirs.",
        r"dK_k = \sum_g dK_{kg},\qquad dV_k = \sum_g dV_{kg}",
        "arXiv 2305.13245, section 2",
        _group_sum,
        (),
        ANY_MASK,
    ),
)
