"""Theorems about kernel algorithms and formulas: online softmax, merged parts, the ring, the sink, softcap, temperature.

Most are about an algorithm and not about a definition: their programs are written here, with free shifts in the place of maxima.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from symattn.derivative import backward, forward
from symattn.errors import NotStatedError
from symattn.indexed import Tensor, indices, name_of, reads, size, subscripts_of, tensor
from symattn.program import Program, Statement
from symattn.theorems.claim import Claim, Equal
from symattn.theorems.conditions import compared
from symattn.theorems.scalar import Scalar
from symattn.theorems.subject import Subject
from symattn.theorems.theorem import Theorem
from symattn.theorems.valued import Valued

__all__ = ["ROWS"]

Q, J, E, R, T, S = indices("i j e r t s")
DIMS = {Q: size("n"), J: size("m"), E: size("dv"), R: size("ranks"), T: size("m"), S: size("m")}


# ---------------------------------------------------------------- online softmax
def _online(_: Subject) -> tuple[Claim, ...]:
    """The closed forms satisfy the step, ``N`` being the shift before it and ``M`` the one after it; before t = 0 is nothing."""
    x, v, shift, before = tensor("x", S), tensor("v", S, E), tensor("M", T), tensor("N", T)
    seen, earlier = sp.Le(S, T), sp.Lt(S, T)
    total, out = tensor("l", T), tensor("a", T, E)
    decay, now = sp.exp(before - shift), sp.exp(tensor("x", T) - shift)
    program = Program(
        (
            Statement(tensor("l0", T), sp.exp(x), (S,), where=seen),
            Statement(tensor("a0", T, E), sp.exp(x) * v, (S,), where=seen),
            Statement(total, sp.exp(x - shift), (S,), where=seen),
            Statement(out, sp.exp(x - shift) * v, (S,), where=seen),
            Statement(tensor("l before", T), sp.exp(x - before), (S,), where=earlier),
            Statement(tensor("a before", T, E), sp.exp(x - before) * v, (S,), where=earlier),
            Statement(tensor("o", T, E), out / total),
        ),
        DIMS,
        ("o",),
    )
    step_l = Statement(tensor("l by the step", T), tensor("l before", T) * decay + now)
    step_a = Statement(tensor("a by the step", T, E), tensor("a before", T, E) * decay + now * tensor("v", T, E))
    softmax = Statement(tensor("o of the softmax", T, E), tensor("a0", T, E) / tensor("l0", T))
    rescaled = Statement(total, sp.exp(-shift) * tensor("l0", T))
    more: dict[str, Any] = {"by": "induction on the step", "opaque": (frozenset(),)}
    sums: tuple[frozenset[str], ...] = (frozenset({"l0"}),)
    return (
        compared(program, program["l"], step_l, "l_t = l_{t-1} exp(M_{t-1} - M_t) + exp(x_t - M_t)", **more),
        compared(program, program["a"], step_a, "a_t = a_{t-1} exp(M_{t-1} - M_t) + exp(x_t - M_t) v_t", **more),
        compared(program, program["o"], softmax, "a_t/l_t does not depend on M", steps=(rescaled,), opaque=sums),
    )


# ---------------------------------------------------------------- merged parts
def _part(k: str, along: sp.Symbol) -> list[Statement]:
    """Attention over one part of the keys: ``l``, ``L`` and ``O`` of the part ``k``, shifted by any ``m``."""
    z, m, v = tensor(f"Z{k}", Q, along), tensor(f"m{k}", Q), tensor(f"V{k}", along, E)
    weight, total = sp.exp(z - m), tensor(f"l{k}", Q)
    return [
        Statement(total, weight, (along,)),
        Statement(tensor(f"L{k}", Q), m + sp.log(total)),
        Statement(tensor(f"O{k}", Q, E), weight / total * v, (along,)),
    ]


def _union() -> tuple[Claim, ...]:
    """Two parts of any sizes, merged by their log-sum-exps, are attention over all keys."""
    m, mu, total = tensor("m", Q), tensor("mu", Q), tensor("l", Q)
    first, second = sp.exp(tensor("Z1", Q, J) - m), sp.exp(tensor("Z2", Q, R) - m)
    w1, w2 = (sp.exp(tensor(f"L{k}", Q) - mu) for k in (1, 2))
    merged = tensor("lm", Q)
    program = Program(
        (
            *_part("1", J),
            *_part("2", R),
            Statement(tensor("s1", Q), first, (J,)),
            Statement(tensor("s2", Q), second, (R,)),
            Statement(total, tensor("s1", Q) + tensor("s2", Q)),
            Statement(tensor("t1", Q, E), first * tensor("V1", J, E), (J,)),
            Statement(tensor("t2", Q, E), second * tensor("V2", R, E), (R,)),
            Statement(tensor("L", Q), m + sp.log(total)),
            Statement(tensor("O", Q, E), (tensor("t1", Q, E) + tensor("t2", Q, E)) / total),
            Statement(merged, w1 + w2),
            Statement(tensor("exp L", Q), sp.exp(tensor("L", Q))),
            Statement(tensor("exp L merged", Q), sp.exp(mu + sp.log(merged))),
            Statement(tensor("O merged", Q, E), (w1 * tensor("O1", Q, E) + w2 * tensor("O2", Q, E)) / merged),
        ),
        DIMS,
        ("O", "L"),
    )
    steps = (Statement(merged, sp.exp(m - mu) * total),)
    names = (frozenset({"l", "l1", "l2"}),)
    return (
        Equal(program, "exp L merged", "exp L", "exp(L) of the merged parts = exp(L) of all keys", steps=steps, opaque=names),
        Equal(program, "O merged", "O", "O of the merged parts = O of all keys", steps=steps, opaque=names),
    )


def merge(a: tuple[sp.Expr, sp.Expr], b: tuple[sp.Expr, sp.Expr]) -> tuple[sp.Expr, sp.Expr]:
    """The merge of two parts given by log-sum-exp and output.

    >>> x, y = sp.symbols("x y", real=True)
    >>> merge((sp.Integer(0), x), (sp.Integer(0), y))
    (log(2), x/2 + y/2)
    """
    wa, wb = sp.exp(a[0]), sp.exp(b[0])
    return sp.log(wa + wb), (wa * a[1] + wb * b[1]) / (wa + wb)


def _merge(_: Subject) -> tuple[Claim, ...]:
    a, b, c = ((sp.Symbol(f"L{k}", real=True), sp.Symbol(f"O{k}", real=True)) for k in "abc")
    claims: list[Claim] = []
    for k, name in ((0, "L"), (1, "O")):
        claims.append(Scalar(merge(merge(a, b), c)[k], merge(a, merge(b, c))[k], f"{name}((a + b) + c) = {name}(a + (b + c))"))
        claims.append(Scalar(merge(a, b)[k], merge(b, a)[k], f"{name}(a + b) = {name}(b + a)"))
    lse, kept = tensor("Lr", R), sp.Gt(tensor("Lr", R), -sp.oo)
    empties = Program(
        (
            Statement(tensor("m"), lse, (R,), "max", range_only=True),
            Statement(tensor("l"), sp.exp(lse - tensor("m")), (R,), where=kept),
            Statement(tensor("L"), tensor("m") + sp.log(tensor("l"))),
        ),
        DIMS,
        ("L",),
    )
    text = "two empty parts merge to -oo"
    return (*claims, *_union(), Valued(empties, "L", -sp.oo, {"Lr": [-sp.oo, -sp.oo]}, {"ranks": 2}, text))


# ---------------------------------------------------------------- ring
def _ring(_: Subject) -> tuple[Claim, ...]:
    """Keys in any number of shards: outputs merged, and gradients taken shard by shard with the global log-sum-exp."""
    z, m, mu = tensor("Z", Q, R, J), tensor("m", Q), tensor("mu", Q)
    v, mr, lr = tensor("V", R, J, E), tensor("mr", R, Q), tensor("lr", R, Q)
    weight, total = sp.exp(z - m), tensor("l", Q)
    whole = Program(
        (
            Statement(total, weight, (R, J)),
            Statement(tensor("L", Q), m + sp.log(total)),
            Statement(tensor("P", Q, R, J), weight / total),
            Statement(tensor("O", Q, E), tensor("P", Q, R, J) * v, (R, J)),
        ),
        DIMS,
        ("O",),
    )
    g = backward(whole, ["Z", "V"]).program
    local = sp.exp(z - mr)
    share = sp.exp(tensor("Lr", R, Q) - mu)
    p, d_p = tensor("P ring", Q, R, J), tensor("dP ring", Q, R, J)
    ring = (
        Statement(lr, local, (J,)),
        Statement(tensor("Lr", R, Q), mr + sp.log(lr)),
        Statement(tensor("Or", R, Q, E), local / lr * v, (J,)),
        Statement(tensor("share", Q), share, (R,)),
        Statement(tensor("L ring", Q), mu + sp.log(tensor("share", Q))),
        Statement(tensor("exp L", Q), sp.exp(tensor("L", Q))),
        Statement(tensor("exp L ring", Q), sp.exp(tensor("L ring", Q))),
        Statement(tensor("O ring", Q, E), sp.exp(tensor("Lr", R, Q) - tensor("L ring", Q)) * tensor("Or", R, Q, E), (R,)),
        Statement(p, sp.exp(z - tensor("L ring", Q))),
        Statement(d_p, tensor("dO", Q, E) * v, (E,)),
        Statement(tensor("D ring", Q), tensor("dO", Q, E) * tensor("O", Q, E), (E,)),
        Statement(tensor("dZ ring", Q, R, J), p * (d_p - tensor("D ring", Q))),
        Statement(tensor("dV ring", R, J, E), p * tensor("dO", Q, E), (Q,)),
    )
    both = g.with_statements((*g, *ring))
    steps = (Statement(tensor("share", Q), sp.exp(m - mu) * total),)
    names = (frozenset({"l", "lr"}),)
    pairs = (("O", "O ring"), ("exp L", "exp L ring"), ("dZ", "dZ ring"), ("dV", "dV ring"))
    return tuple(Equal(both, a, b, f"{a} of the ring = {a} of all keys", steps=steps, opaque=names) for a, b in pairs)


# ---------------------------------------------------------------- sink
def _sink_parts(s: Subject) -> tuple[Tensor, sp.Expr]:
    """The sum over the keys in the denominator, and what else stands there."""
    l = s.statement("l")  # noqa: E741
    sums = [x for x in l.reads if name_of(x) in s.plain and s.plain[name_of(x)].over == (s.key_index,)]
    if l.over or len(sums) != 1:
        raise NotStatedError("the denominator is the sum over the keys and nothing else")
    rest = l.expr - sums[0]
    if rest == 0 or rest.has(sums[0]):
        raise NotStatedError("the denominator is the sum over the keys and nothing else")
    return sums[0], rest


def _sink(s: Subject) -> tuple[Claim, ...]:
    keys, rest = _sink_parts(s)
    w, out = s.weights, s.out
    total = tensor("l", *s.row)
    value = s.read("V")
    bare = Statement(
        tensor("P bare", *subscripts_of(w)), s.statement(name_of(w)).expr * total / keys, where=s.statement("P").where
    )
    out0 = Statement(tensor("O bare", *subscripts_of(out)), bare.target * value, (s.key_index,), where=s.statement("O").where)
    gate = Statement(tensor("gate", *s.row), 1 / (1 + rest / keys))
    right = Statement(tensor("sigma(L - b) O bare", *subscripts_of(out)), gate.target * out0.target)
    program = s.plain.with_statements((*s.plain, bare, out0, gate))
    text = "O = sigma(L - b) O of the keys alone, exp(L) being their sum and exp(b) the rest"
    return (compared(program, program["O"], right, text, forward=s.plain, opaque=(frozenset({name_of(keys)}),)),)


# ---------------------------------------------------------------- softcap
def _softcap(s: Subject) -> tuple[Claim, ...]:
    x, c = sp.Symbol("x", real=True), sp.Symbol("c", positive=True)
    y = c * sp.tanh(x / c)
    formula = Scalar(y.diff(x), 1 - (y / c) ** 2, "dy/dx = 1 - (y/c)^2")
    for t in s.plain:
        for f in t.expr.atoms(sp.tanh):
            cap = sp.cancel(t.expr / f)
            inner = [z for z in reads(f) if sp.cancel(f.args[0] - z / cap) == 0]
            if not inner or cap.has(f) or t.over:
                continue
            z, g = inner[0], s.gradient(name_of(inner[0]), t.name)
            slope = 1 - (t.target / cap) ** 2
            right = Statement(tensor("dA (1 - (A/c)^2)", *subscripts_of(z)), tensor("d" + t.name, *subscripts_of(z)) * slope)
            if subscripts_of(z) == t.indices:
                return (
                    formula,
                    compared(g, g["d" + name_of(z)], right, "dS = dA (1 - (A/c)^2)", forward=s.plain, seeds=s.seeds),
                )
    raise NotStatedError("no score is c tanh(x/c)")


# ---------------------------------------------------------------- temperature
def _temperature(_: Subject) -> tuple[Claim, ...]:
    s, beta, total, p = tensor("s", J), tensor("beta"), tensor("l"), tensor("P", J)
    moving = Program(
        (
            Statement(total, sp.exp(beta * s), (J,)),
            Statement(tensor("logP", J), beta * s - sp.log(total)),
            Statement(p, sp.exp(tensor("logP", J))),
            Statement(tensor("H"), -p * tensor("logP", J), (J,)),
        ),
        DIMS,
        ("P", "H"),
    )
    ahead = forward(moving, ["beta"])
    mean, variance = tensor("mean"), tensor("variance")
    moments = (Statement(mean, p * s, (J,)), Statement(variance, p * (s - mean) ** 2, (J,)))
    program = ahead.with_statements((*ahead, *moments))
    d_p = Statement(tensor("P (s - mean)", J), p * (s - mean) * tensor("beta_t"))
    d_h = Statement(tensor("-beta Var"), -beta * variance * tensor("beta_t"))
    return (
        compared(program, program["P_t"], d_p, "dP_j/dbeta = P_j (s_j - mean of s)", forward=moving),
        compared(program, program["H_t"], d_h, "dH/dbeta = -beta Var_P(s)", forward=moving),
    )


ROWS = (
    Theorem(
        "online-softmax",
        "Online softmax, for any sequence of shifts",
        "With l_t = sum over s <= t of exp(x_s - M_t) and a_t likewise with v_s: "
        "l_t = l_{t-1} exp(M_{t-1} - M_t) + exp(x_t - M_t), the same for a_t, "
        "and a_t/l_t is the softmax mean, whatever the shifts M are; a maximum is there for range only.",
        r"\ell_t = \ell_{t-1}e^{M_{t-1}-M_t} + e^{x_t-M_t}",
        "arXiv 1805.02867, algorithm 3",
        _online,
        general=True,
    ),
    Theorem(
        "lse-merge",
        "Merging parts by their LSE: any order, any split",
        "(L_a, O_a) + (L_b, O_b) = (log(e^L_a + e^L_b), their mean weighted by e^L) is associative and commutative, "
        "gives attention over all keys, and two empty parts merge to L = -oo.",
        r"L = \log(e^{L_a}+e^{L_b}),\qquad O = \frac{e^{L_a}O_a + e^{L_b}O_b}{e^{L_a}+e^{L_b}}",
        "arXiv 2112.05682, section 2; arXiv 2501.01005, section 2.2",
        _merge,
        general=True,
    ),
    Theorem(
        "ring",
        "Ring attention: shards with the global LSE",
        "For any number of shards the merged O and L are those of all keys, and dZ and dV taken shard by shard from "
        "P = exp(Z - L) with the global L and D are those of the whole.",
        r"O = \sum_r e^{L_r - L}O_r,\qquad P^{(r)} = e^{Z^{(r)} - L}",
        "arXiv 2310.01889, section 3",
        _ring,
        general=True,
    ),
    Theorem(
        "sink-gate",
        "A sink gates the output: O = sigma(L - b) O_0",
        "A column of scores b without a value gives O = sigma(L - b) O_0, O_0 and L being those without it.",
        r"O = \sigma(L - b)\,O_0",
        "arXiv 2309.17453, section 3; arXiv 2508.10925, section 2.3",
        _sink,
        (),
        {"heads": 4, "kv_heads": 2, "attn_mask": "boolean", "sink": True},
    ),
    Theorem(
        "softcap-derivative",
        "The derivative of softcap is 1 - (A/c)^2",
        "For A = c tanh(S/c): dA/dS = 1 - (A/c)^2, so dS = dA (1 - (A/c)^2).",
        r"\frac{d}{ds}\,c\tanh\frac sc = 1 - \Bigl(\frac{A}{c}\Bigr)^2",
        "arXiv 2408.00118, section 2",
        _softcap,
        (),
        {"heads": 4, "kv_heads": 2, "attn_mask": "boolean", "softcap": "cap"},
    ),
    Theorem(
        "temperature-derivative",
        "Weights and entropy by the inverse temperature",
        "For P = softmax(beta s): dP_j/dbeta = P_j (s_j - sum_k P_k s_k), and the entropy has dH/dbeta = -beta Var_P(s).",
        r"\frac{dP_j}{d\beta} = P_j\Bigl(s_j - \sum_k P_k s_k\Bigr),\qquad \frac{dH}{d\beta} = -\beta\operatorname{Var}_P(s)",
        "textbook: the exponential family",
        _temperature,
        general=True,
    ),
)
