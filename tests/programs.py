"""Programs written out by hand, for tests of the engine: attention in several variants, and programs that are no attention."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import sympy as sp

from symattn.program import Program, Statement, indices, size
from symattn.program import tensor as T

b, k, g, h, i, j, c, e, a, f, p, w, t = indices("b k g h i j c e a f p w t")
B, Hkv, G, H, n, m, d, dv, dmodel, width, vocab = (
    size(x) for x in ("B", "Hkv", "G", "H", "n", "m", "d", "dv", "dmodel", "width", "vocab")
)
DIMS = {b: B, k: Hkv, g: G, h: H, i: n, j: m, c: d, e: dv, a: dmodel, f: width}
SIZES = {"B": 1, "Hkv": 2, "G": 2, "H": 2, "n": 3, "m": 4, "d": 2, "dv": 2, "dmodel": 2, "width": 2, "vocab": 4}
CAUSAL = sp.Le(j, i)


def softmax(s: Any, where: Any = sp.true, q: tuple = (), sink: bool = False, lse: Any = None, tag: str = "") -> list[Statement]:
    """Row maximum, exponentials, their sum, weights; with a sink, and with the log-sum-exp in base e or 2."""
    mx, E, total, P = T("m" + tag, *q, i), T("E" + tag, *q, i, j), T("l" + tag, *q, i), T("P" + tag, *q, i, j)
    top = T("m0" + tag, *q, i) if sink else mx
    out = [Statement(top, s, (j,), "max", where, range_only=True, aux=True)]
    if sink:
        out.append(Statement(mx, sp.Max(top, T("sink", *q)), range_only=True, aux=True))
    out.append(Statement(E, sp.exp(s - mx), where=where, aux=True))
    if sink:
        out += [
            Statement(T("r", *q, i), E, (j,), where=where, aux=True),
            Statement(total, T("r", *q, i) + sp.exp(T("sink", *q) - mx), aux=True),
        ]
    else:
        out.append(Statement(total, E, (j,), where=where, aux=True))
    out.append(Statement(P, E / total, where=where))
    if lse is not None:
        out.append(Statement(T("L" + tag, *q, i), (mx + sp.log(total)) / (sp.log(2) if lse == 2 else 1)))
    return out


def attention(
    where: Any = sp.true,
    score: Any = None,
    sink: bool = False,
    grouped: bool = False,
    lse: Any = None,
    before: tuple = (),
    after: tuple = (),
    outputs: Any = None,
    dims: Any = None,
) -> Program:
    """Attention for Q K V; ``score`` maps the scaled score to the final one."""
    q, kv = ((k, g), (k,)) if grouped else ((), ())
    S, Z = T("S", *q, i, j), T("Z", *q, i, j)
    out = [*before, Statement(S, T("Q", *q, i, c) * T("K", *kv, j, c) * T("scale"), (c,), where=where)]
    if score is not None:
        out.append(Statement(Z, score(S, q), where=where))
    out += softmax(S if score is None else Z, where, q, sink, lse)
    out += [Statement(T("O", *q, i, e), T("P", *q, i, j) * T("V", *kv, j, e), (j,), where=where), *after]
    names = outputs or (("O", "L") if lse is not None else ("O",))
    return Program(out, DIMS | (dims or {}), names)


@dataclass(frozen=True)
class Case:
    """A program, and values of its discrete inputs for runs at the small sizes."""

    program: Program
    discrete: dict[str, Any] = field(default_factory=dict)


_cap = T("cap")
_self = (
    Statement(T("Q", i, c), T("X", i, a) * T("WQ", a, c), (a,)),
    Statement(T("K", j, c), T("X", j, a) * T("WK", a, c), (a,)),
    Statement(T("V", j, e), T("X", j, a) * T("WV", a, e), (a,)),
)
_scale = Statement(T("scale"), 1 / sp.sqrt(d))
ATTENTION: dict[str, Case] = {
    "plain": Case(attention()),
    "causal": Case(attention(CAUSAL)),
    "bottom right window": Case(attention(sp.And(sp.Le(j, i + m - n), sp.Lt(i + m - n - j, 2)))),
    "lse": Case(attention(CAUSAL, lse="e")),
    "lse base 2": Case(attention(lse=2)),
    "softcap": Case(attention(CAUSAL, lambda s, q: _cap * sp.tanh(s / _cap))),
    "additive bias": Case(attention(CAUSAL, lambda s, q: s + T("bias", i, j))),
    "additive mask": Case(attention(sp.Ne(T("M", i, j), -sp.oo), lambda s, q: s + T("M", i, j))),
    "boolean mask": Case(attention(sp.Ne(T("M", i, j), 0)), {"M": [[1, 0, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1]]}),
    "alibi": Case(attention(CAUSAL, lambda s, q: s - T("slope", *q) * (i - j), grouped=True)),
    "sink": Case(attention(sink=True)),
    "grouped causal softcap alibi sink lse": Case(
        attention(CAUSAL, lambda s, q: _cap * sp.tanh(s / _cap) - T("slope", *q) * (i - j), sink=True, grouped=True, lse="e")
    ),
    "self from X": Case(
        attention(
            CAUSAL,
            before=(_scale, *_self),
            after=(Statement(T("Y", i, f), T("O", i, e) * T("WO", e, f), (e,)),),
            outputs=("Y",),
            dims={j: n},
        )
    ),
    "output read downstream": Case(
        attention(after=(Statement(T("Y", i, f), T("O", i, e) * T("WO", e, f), (e,)),), outputs=("O", "Y"))
    ),
}


def _program(statements: list[Statement], dims: dict, outputs: tuple, shapes: dict | None = None) -> Program:
    return Program(statements, dims, outputs, shapes or {})


x, y = T("x", t), T("y", t)
OTHER: dict[str, Case] = {
    "embedding look-up": Case(
        _program([Statement(T("x", p, c), T("Emb", T("tok", p), c) ** 2)], {p: n, c: d}, ("x",), {"Emb": (vocab, d)}),
        {"tok": [2, 0, 2]},
    ),
    "paged keys": Case(
        _program(
            [Statement(T("x", i, j), T("q", i, c) * T("Kp", T("page", sp.floor(j / 2)), sp.Mod(j, 2), c), (c,))],
            {i: n, j: m, c: d},
            ("x",),
            {"Kp": (vocab, sp.Integer(2), d), "page": (sp.Integer(2),)},
        ),
        {"page": [2, 0]},
    ),
    "token shift": Case(
        _program(
            [Statement(T("x", t, c), T("u", t, c) * T("mu", c) + T("u", t - 1, c) * (1 - T("mu", c)), where=sp.Ge(t, 1))],
            {t: n, c: d},
            ("x",),
            {"u": (n, d)},
        )
    ),
    "diagonal": Case(_program([Statement(T("x", i), T("A", i, i) ** 2 * T("z", i))], {i: n}, ("x",), {"A": (n, n)})),
    "one row": Case(_program([Statement(T("x", c), T("A", 0, c) ** 3)], {c: d}, ("x",), {"A": (n, d)})),
    "product": Case(
        _program([Statement(T("x", i), T("A", i, j) * T("z", j) + 1, (j,), "prod", sp.Le(j, i + 1))], {i: n, j: m}, ("x",))
    ),
    "sums that lose an index": Case(_program([Statement(T("x", i), T("u", i) ** 2 + T("z", j), (j,))], {i: n, j: m}, ("x",))),
    "broadcast": Case(_program([Statement(T("x", i, j), T("u", i) * T("s"))], {i: n, j: m}, ("x",))),
    "gram": Case(_program([Statement(T("x", i, j), T("u", i, c) * T("u", j, c), (c,))], {i: n, j: n, c: d}, ("x",))),
    "absolute value": Case(
        _program([Statement(T("x", i), sp.Abs(T("u", i)) * T("u", i) ** 2 + sp.sign(T("u", i)))], {i: n}, ("x",))
    ),
    "merged axis": Case(
        _program([Statement(T("x", i, h, c), T("u", i, h * d + c) ** 2)], {i: n, h: H, c: d}, ("x",), {"u": (n, H * d)}),
    ),
    "RMS norm": Case(
        _program(
            [
                Statement(T("nq", i), T("u", i, c) ** 2, (c,)),
                Statement(T("x", i, c), T("u", i, c) * T("gain", c) / sp.sqrt(T("nq", i) / d + T("eps") ** 2 + 1)),
            ],
            {i: n, c: d},
            ("x",),
        )
    ),
    "sigmoid weights": Case(
        _program(
            [
                Statement(T("S", i, j), T("Q", i, c) * T("K", j, c), (c,), where=CAUSAL),
                Statement(T("P", i, j), 1 / (1 + sp.exp(-T("S", i, j) - T("beta"))), where=CAUSAL),
                Statement(T("O", i, e), T("P", i, j) * T("V", j, e), (j,), where=CAUSAL),
            ],
            DIMS,
            ("O",),
        )
    ),
    "linear with normaliser": Case(
        _program(
            [
                Statement(T("S", i, j), T("Q", i, c) * T("K", j, c), (c,), where=CAUSAL),
                Statement(T("l", i), T("S", i, j), (j,), where=CAUSAL),
                Statement(T("P", i, j), T("S", i, j) / T("l", i), where=CAUSAL),
                Statement(T("O", i, e), T("P", i, j) * T("V", j, e), (j,), where=CAUSAL),
            ],
            DIMS,
            ("O",),
        )
    ),
    "sparsemax": Case(
        _program(
            [
                Statement(T("r", i), sp.S.One, (j,), where=sp.Ge(T("z", j), T("z", i))),
                Statement(T("cum", i), T("z", j), (j,), where=sp.Ge(T("z", j), T("z", i))),
                Statement(T("cnt"), sp.S.One, (i,), where=sp.Gt(1 + T("r", i) * T("z", i), T("cum", i))),
                Statement(T("tot"), T("z", i), (i,), where=sp.Gt(1 + T("r", i) * T("z", i), T("cum", i))),
                Statement(T("tau"), (T("tot") - 1) / T("cnt")),
                Statement(T("pr", i), T("z", i) - T("tau"), where=sp.Gt(T("z", i), T("tau"))),
            ],
            {i: n, j: n},
            ("pr",),
        )
    ),
}
CASES: dict[str, Case] = ATTENTION | OTHER
