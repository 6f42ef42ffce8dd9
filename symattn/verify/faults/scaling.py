"""Faults of the scale and of the softcap: forgotten, doubled, inverted, of another width, at another place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import sympy as sp

from symattn.indexed import name_of, tensor
from symattn.program import Program, Statement
from symattn.verify.faults.fault import SIZES, Alternative, Fault, Situation
from symattn.verify.faults.results import under
from symattn.verify.faults.structure import fresh, outer, reading, softmax_of, with_expr

Rewrite = Callable[[Situation], Iterator[Alternative]]
FITTED = "F166"
"""The row whose factor a diagnosis fits: it has no alternative of its own."""


def rescaled(s: Situation, scale: sp.Expr, label: str = "") -> Iterator[Alternative]:
    """The scale replaced: in the lists where they have one, in the definition where it has none because it is 1."""
    if "scale" in s.program:
        if not same_number(s.program["scale"].expr, scale):
            yield Alternative(label, edit=with_expr({"scale"}, lambda _: scale))
    elif "R" in s.program and s.definition.form == "softmax" and scale != 1:
        yield from s.changed(label, scale=scale)


def same_number(a: sp.Expr, b: sp.Expr) -> bool:
    """Whether two expressions in sizes and parameters have the same value; tried at numbers, which is much faster than proved."""
    names = sorted(a.free_symbols | b.free_symbols, key=str)
    at = {x: sp.Float(k + 3) + sp.Float("0.17") * k for k, x in enumerate(names)}
    difference = (a - b).xreplace(at)
    return not difference.free_symbols and bool(abs(difference.evalf(20)) < sp.Float("1e-12"))


def scale_of(s: Situation) -> sp.Expr:
    """The scale of the definition; 1 where it has none."""
    return s.program["scale"].expr if "scale" in s.program else sp.Integer(1)


def scale_number(s: Situation) -> float | None:
    """The scale of the definition on an input; None where it has none, or one that is not the same for all scores."""
    own = scale_of(s).subs({x: s.sizes[SIZES[x.name]] for x in s.program.sizes if x.name in SIZES})
    return float(own) if "scale" in s.program and own.is_number else None


def _to(scale: Callable[[Situation], sp.Expr]) -> Rewrite:
    return lambda s: rescaled(s, scale(s))


def _usual(s: Situation) -> Iterator[Alternative]:
    """1/sqrt(d) where the definition says something else."""
    yield from rescaled(s, 1 / sp.sqrt(s.size("d")))


def _padded(s: Situation) -> Iterator[Alternative]:
    d = s.sizes.get("D", 0)
    for multiple in (8, 16, 32, 64, 128):
        if d % multiple:
            yield from rescaled(s, 1 / sp.sqrt(sp.Integer(-(-d // multiple) * multiple)), f"a multiple of {multiple}")
    for more in (1, -1):
        if d + more > 0:
            yield from rescaled(s, 1 / sp.sqrt(sp.Integer(d + more)), f"d {'+' if more > 0 else '-'} 1")
    if "DV" in s.sizes:
        yield from rescaled(s, 1 / sp.sqrt(sp.Integer(s.sizes["DV"])), "the width of the values")


def _factors(factors: dict[str, sp.Expr]) -> Rewrite:
    def rewrite(s: Situation) -> Iterator[Alternative]:
        for label, f in factors.items():
            yield from rescaled(s, scale_of(s) * f, label)

    return rewrite


def _after_softmax(s: Situation) -> Iterator[Alternative]:
    """The scores as they are, the weights multiplied by the scale."""
    found = softmax_of(s.program)
    if found is None or "scale" not in s.program:
        return
    own = s.program["scale"].expr
    statements = []
    for st in s.program:
        if st.name == "scale":
            continue
        st = replace(st, expr=st.expr.xreplace({tensor("scale"): sp.Integer(1)}))
        statements.append(replace(st, expr=st.expr * own) if st.over and found.weight.name in st.needs else st)
    yield Alternative(program=s.program.with_statements(statements).live())


def _base_two(factor: sp.Expr) -> Rewrite:
    """The exponent multiplied by a factor: exp2 without log2(e), or log2(e) with exp."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        found = softmax_of(s.program)
        if found is not None and isinstance(found.score, sp.Indexed):
            changed = scored(s.program, found.score, lambda x: x * factor)
            yield Alternative(program=changed)
            other = softmax_of(changed)
            if other is not None and other.lse is not None and isinstance(other.shift, sp.Indexed):
                lse = with_expr({other.lse.name}, lambda x: x.expr.xreplace({other.shift: other.shift / factor}))
                yield Alternative("the LSE with the maximum of the scores as they are", program=changed, edit=lse)

    return rewrite


def scored(program: Program, score: sp.Indexed, change: Callable[[sp.Expr], sp.Expr]) -> Program:
    """The program with another expression in place of the score that is exponentiated."""
    made = program[name_of(score)]
    name = fresh(program, made.name + "x")
    other = replace(made, target=tensor(name, *made.indices), expr=change(made.target), over=(), reduce="sum", where=outer(made))
    return program.with_statements(reading(program, made.name, name, (other,)))


def _capped(s: Situation) -> Statement | None:
    """The statement ``cap*tanh(x/cap)``."""
    found = [st for st in s.program if st.expr.has(sp.tanh)]
    return found[0] if len(found) == 1 and s.definition.softcap is not None else None


def _no_cap(s: Situation) -> Iterator[Alternative]:
    if _capped(s) is not None:
        yield from s.changed("", softcap=None)


def _cap(change: Callable[[sp.Expr, sp.Expr, sp.Expr], sp.Expr]) -> Rewrite:
    """Another expression in place of ``cap*tanh(x/cap)``: a function of cap, x and the raw score."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        st = _capped(s)
        if st is None:
            return
        inner = next(iter(st.expr.atoms(sp.tanh))).args[0]
        cap = sp.simplify(st.expr / sp.tanh(inner))
        x = sp.simplify(inner * cap)
        raw = x.xreplace({r: _unscaled(s, r) for r in x.atoms(sp.Indexed)})
        new = replace(st, expr=change(cap, x, raw))
        yield Alternative(program=s.program.with_statements([new if y.name == st.name else y for y in s.program]).live())

    return rewrite


def _unscaled(s: Situation, r: sp.Indexed) -> sp.Expr:
    return s.program[name_of(r)].expr / tensor("scale") if name_of(r) == "S" and "scale" in s.program else r


def _cap_unscaled(s: Situation) -> Iterator[Alternative]:
    """The cap applied to q.k, which is scaled afterwards or never."""
    if "scale" in s.program:
        yield from under("scaled after", _cap(lambda cap, x, raw: tensor("scale") * cap * sp.tanh(raw / cap))(s))
        yield from under("never scaled", _cap(lambda cap, x, raw: cap * sp.tanh(raw / cap))(s))


def _cap_of_other_base(s: Situation) -> Iterator[Alternative]:
    """The cap applied to scores that are multiplied by log2(e) already."""
    two = sp.log(2)
    yield from under("exponentials to base 2", _cap(lambda cap, x, raw: two * cap * sp.tanh(x / (two * cap)))(s))
    yield from under("exponentials to base e", _cap(lambda cap, x, raw: cap * sp.tanh(x / (two * cap)))(s))


def _bias_inside(s: Situation) -> Iterator[Alternative]:
    """The cap applied to the score with what is added to it: bias, ALiBi, additive mask."""
    st = _capped(s)
    if st is None:
        return
    found = softmax_of(s.program)
    if found is None or not isinstance(found.score, sp.Indexed) or name_of(found.score) == st.name:
        return
    outer = s.program[name_of(found.score)]
    inner = next(iter(st.expr.atoms(sp.tanh))).args[0]
    cap = sp.simplify(st.expr / sp.tanh(inner))
    added = sp.expand(outer.expr - st.target)
    if added.has(st.target):
        return
    new = replace(outer, expr=cap * sp.tanh(inner + added / cap))
    yield Alternative(program=s.program.with_statements([new if y.name == outer.name else y for y in s.program]).live())


_SCALE = "the factor of the scores, and where it is applied"
ROWS = (
    Fault(
        "F05", "scores are not scaled", "convention", "q.k", "q.k/sqrt(d)", _to(lambda s: sp.Integer(1)),
        threads=("mlc-llm#3426", "cntkx#10"), look=_SCALE, blind="d = 1 or m = 1", convention="scale",
    ),
    Fault(
        "F06", "scale 1/d", "convention", "q.k/d", "q.k/sqrt(d)", _to(lambda s: 1 / s.size("d")),
        look="d**-1 for d**-0.5", blind="d = 1", convention="scale",
    ),
    Fault(
        "F07", "scale of the model width, 1/sqrt(H d)", "convention", "q.k/sqrt(H d)", "q.k/sqrt(d)",
        _to(lambda s: 1 / sp.sqrt(s.size("d") * s.sizes["H"])), threads=("DL4Proteins#12", "set_transformer#18"),
        look="sqrt(d_model) where sqrt(d_head) is meant", blind="H = 1; H = d cannot be told from 1/d", convention="scale",
    ),
    Fault(
        "F08", "scale of another width: padded, off by one, or that of the values", "convention", "q.k/sqrt(another width)",
        "q.k/sqrt(d)", _padded,
        threads=("ipex-llm#12619",), look="the width after padding where the given one is meant",
        blind="d is a multiple of the tile",
        convention="scale",
    ),
    Fault(
        "F60", "scale 1/sqrt(d) where another one is given", "convention", "q.k/sqrt(d)", "q.k times the given scale", _usual,
        threads=("tt-metal#33304",), look="whether the argument scale is used", blind="the given scale is 1/sqrt(d)",
        convention="scale",
    ),
    Fault(
        "F09", "scores are multiplied by sqrt(d) instead of divided", "mathematics", "q.k*sqrt(d)", "q.k/sqrt(d)",
        _to(lambda s: sp.sqrt(s.size("d"))), threads=("maxtext#1370",),
        look="the sign of the exponent of the scale", blind="d = 1",
        convention="scale",
    ),
    Fault(
        "F61", "the scale is applied twice", "mathematics", "q.k*scale**2", "q.k*scale", _to(lambda s: scale_of(s) ** 2),
        look="a scale folded into q and applied to the scores again", blind="scale = 1",
    ),
    Fault(
        "F62", "the root of the scale is applied (to one of q and k only)", "mathematics", "q.k*sqrt(scale)", "q.k*scale",
        _to(lambda s: sp.sqrt(scale_of(s))), look="d**-0.25 on one operand", blind="scale = 1",
    ),
    Fault(
        "F10", "the scale is applied after the softmax", "mathematics", "softmax(q.k)*scale", "softmax(q.k*scale)",
        _after_softmax,
        threads=("ViT#2",), look="the order of scaling and softmax", blind="scale = 1",
    ),
    Fault(
        "F11", "scale of the latent width, 1/sqrt(576) for 1/sqrt(256)", "convention", "q.k/sqrt(latent + rope)",
        "q.k/sqrt(d_nope + d_rope)", _factors({"1/24 for 1/16": sp.Rational(2, 3),
        "1/24 for 1/sqrt(192)": sp.sqrt(192) / 24}),
        threads=("ollama#13893",), look="the scale of absorbed MLA: that of the expanded form", convention="scale",
    ),
    Fault(
        "F12", "the factor mscale**2 of YaRN is missing", "convention", "c", "c*(0.1*mscale*ln(f) + 1)**2",
        _factors({f"1/{x}": 1 / sp.Rational(x) for x in ("1.5896", "1.8739")}), threads=("mobius#548",),
        look="the scale of a model with extended context", blind="f = 1", convention="scale",
    ),
    Fault(
        FITTED, "the scores are multiplied by a constant, which is fitted to the outputs", "mathematics", "f*scale*q.k",
        "scale*q.k", lambda s: iter(()), look="constants that are folded into the scale: log2(e), a temperature, a width",
        shows="where no other row explains the outputs", blind="f = 1 within the bounds",
    ),
    Fault(
        "F63", "exponentials to base 2 without log2(e)", "mathematics", "2**(s - m)", "exp(s - m)", _base_two(sp.log(2)),
        look="exp2 of scores that are not multiplied by log2(e)", blind="all scores of a row equal",
    ),
    Fault(
        "F64", "log2(e) is folded into the scale and exp is natural", "mathematics", "exp((s - m)*log2(e))", "exp(s - m)",
        _base_two(1 / sp.log(2)), look="exp where exp2 belongs", blind="all scores of a row equal",
    ),
    Fault(
        "F20", "the softcap is dropped", "convention", "s", "cap*tanh(s/cap)", _no_cap, threads=("sgl-kernel-xpu#491",),
        look="whether softcap reaches the kernel", shows="scores comparable with the cap", blind="cap much larger than |s|",
        convention="softcap",
    ),
    Fault(
        "F65", "softcap without the division by the cap", "mathematics", "cap*tanh(s)", "cap*tanh(s/cap)",
        _cap(lambda cap, x, raw: cap * sp.tanh(x)), look="the argument of tanh", blind="cap = 1",
    ),
    Fault(
        "F66", "softcap without the multiplication by the cap", "mathematics", "tanh(s/cap)", "cap*tanh(s/cap)",
        _cap(lambda cap, x, raw: sp.tanh(x / cap)), look="the factor of tanh", blind="cap = 1",
    ),
    Fault(
        "F67", "softcap of the unscaled score", "convention", "scale*cap*tanh(q.k/cap), or cap*tanh(q.k/cap)",
        "cap*tanh(scale*q.k/cap)", _cap_unscaled, look="the order of scale and softcap", blind="scale = 1", convention="softcap",
    ),
    Fault(
        "F177", "log2(e) is folded into the scores before the softcap", "mathematics", "2**(cap*tanh(log2(e)*s/cap))",
        "exp(cap*tanh(s/cap))", _cap_of_other_base, look="the order of softcap and log2(e)",
        shows="kernels with exp2, scores comparable with the cap", blind="cap much larger than |s|",
    ),
    Fault(
        "F68", "the softcap is applied after bias and ALiBi", "convention", "cap*tanh((s + bias)/cap)",
        "cap*tanh(s/cap) + bias",
        _bias_inside, threads=("onnx#7865",), look="the order of softcap and bias", blind="no bias", convention="softcap",
    ),
)  # fmt: skip
