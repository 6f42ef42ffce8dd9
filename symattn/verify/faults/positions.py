"""Faults of positions, biases and norms: ALiBi, given biases, rotations, and the norms of queries and keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import sympy as sp

from symattn.indexed import name_of, size, tensor
from symattn.intake import Array
from symattn.program import Program
from symattn.verify.faults.fault import Alternative, Fault, Predictions, Situation
from symattn.verify.faults.heads import places
from symattn.verify.faults.masking import looked_at, transposed
from symattn.verify.faults.structure import I, J, softmax_of
from symattn.verify.kernels.call import published_slopes

Rewrite = Callable[[Situation], Iterator[Alternative]]
_C = size("d")


def _slopes(s: Situation) -> Array | None:
    """The slopes per head, as numbers."""
    return None if not s.definition.alibi else np.asarray(s.reference.call.slopes, dtype=np.float64)


def _with_slopes(change: Callable[[Array, int], Array | None]) -> Rewrite:
    """Other slopes: a function of the right ones and the number of heads."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        a = _slopes(s)
        new = None if a is None else change(a, len(a))
        if a is None or new is None or np.array_equal(new, a):
            return
        given = s.definition.alibi_slopes == "given"
        d = None if given else s.definition.replace(alibi_slopes="given")
        dtype = s.fields["alibi_slopes"].dtype if given else s.dtype
        wide = np.asarray(new, np.float64)
        yield Alternative(
            definition=d, fields={"alibi_slopes": wide.astype(dtype if given else np.float64)}, after=None if given else _unslope
        )

    return rewrite


def _unslope(_: Situation, p: Predictions) -> Predictions:
    return {n: x for n, x in p.items() if n != "grad_alibi_slopes"}


def _labelled(*parts: tuple[str, Rewrite]) -> Rewrite:
    def rewrite(s: Situation) -> Iterator[Alternative]:
        for label, part in parts:
            for a in part(s):
                yield replace(a, label=" ".join(x for x in (label, a.label) if x))

    return rewrite


def _defined(when: Callable[[Any], bool], **changes: Any) -> Rewrite:
    """Fields of the definition changed, where it has something to change."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        d = s.definition
        if when(d):
            new = d.replace(**{k: v(d) if callable(v) else v for k, v in changes.items()})
            if new != d:
                yield Alternative(definition=new)

    return rewrite


def added(s: Situation, letter: str, change: Callable[[sp.Expr], sp.Expr]) -> Iterator[Alternative]:
    """What is added to the score and reads a tensor, changed: in the forward program, whose gradient follows."""
    for st in s.program:
        terms = [t for t in sp.Add.make_args(st.expr) if any(name_of(r) == letter for r in t.atoms(sp.Indexed))]
        if {I, J} <= set(st.indices) and not st.over and terms:
            rest = st.expr - sp.Add(*terms)
            new = replace(st, expr=rest + change(sp.Add(*terms)))
            yield Alternative(program=s.program.with_statements([new if x.name == st.name else x for x in s.program]).live())
            return


def _added(letter: str, factor: Callable[[Situation], sp.Expr | None]) -> Rewrite:
    def rewrite(s: Situation) -> Iterator[Alternative]:
        f = factor(s)
        if f is not None:
            yield from added(s, letter, lambda t: f * t)

    return rewrite


def _scale(s: Situation) -> sp.Expr | None:
    return tensor("scale") if "scale" in s.program else None


def _row_shift(s: Situation) -> Iterator[Alternative]:
    """ALiBi by the key alone, or from another diagonal: a constant of the row, which the softmax does not see."""
    if not s.definition.alibi or s.definition.alibi_distance != "signed" or softmax_of(s.program) is None:
        return
    n, m = size("n"), size("m")
    for label, distance in (
        ("-slope*(-j)", -J),
        ("-slope*(i - j)", I - J),
        ("-slope*(i + m - n - j)", I + m - n - J),
        ("-slope*(m - 1 - j)", m - 1 - J),
    ):
        for st in s.program:
            slopes = [r for r in st.expr.atoms(sp.Indexed) if name_of(r) == "slope"]
            if {I, J} <= set(st.indices) and slopes:
                own = [t for t in sp.Add.make_args(st.expr) if slopes[0] in t.free_symbols or t.has(slopes[0])]
                new = st.expr - sp.Add(*own) - slopes[0] * distance
                if sp.expand(new - st.expr) != 0:
                    changed = [replace(x, expr=new) if x.name == st.name else x for x in s.program]
                    yield Alternative(label, program=s.program.with_statements(changed).live())


def _rope(d: Any) -> bool:
    return d.rope is not None


def _one_side(letter: str) -> Rewrite:
    """The rotation of the queries, or of the keys, left out."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        tables = {"C" + letter: sp.Integer(1), "S" + letter: sp.Integer(0)}
        if s.definition.rope is not None and tables.keys() <= {x.name for x in s.program}:
            yield Alternative(program=_tables(s.program, tables))

    return rewrite


def _tables(program: Program, new: dict[str, sp.Expr]) -> Program:
    changed = [replace(x, expr=new[x.name]) if x.name in new else x for x in program]
    return program.with_statements(changed)


def _backwards(letters: str) -> Rewrite:
    """The rotation in the other direction."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        names = {"S" + x for x in letters}
        if s.definition.rope is not None and names <= {x.name for x in s.program}:
            yield Alternative(program=_tables(s.program, {n: -s.program[n].expr for n in names}))

    return rewrite


def _bases(s: Situation) -> Iterator[Alternative]:
    if s.definition.rope is not None and s.definition.rope_frequencies is None:
        for base in (500000, 1000000, 100000, 1000):
            yield Alternative(f"{base}", definition=s.definition.replace(rope_frequencies=f"{base}**(-2*p/r)"))


def _exponents(s: Situation) -> Iterator[Alternative]:
    if s.definition.rope is not None and s.definition.rope_frequencies is None:
        for label, text in (
            ("p/r for 2p/r", "10000**(-p/r)"),
            ("2(p + 1)/r", "10000**(-2*(p + 1)/r)"),
            ("of the width d", f"10000**(-2*p/{s.sizes.get('D', 1)})"),
        ):
            new = s.definition.replace(rope_frequencies=text)
            if new != s.definition and not (label == "of the width d" and s.definition.rope_dim is None):
                yield Alternative(label, definition=new)


def _offsets(s: Situation) -> Iterator[Alternative]:
    d = s.definition
    if d.rope is None:
        return
    if d.rope_offset == "bottom-right":
        yield Alternative("queries start at 0", definition=d.replace(rope_offset=None))
    else:
        yield Alternative("queries start at m - n", definition=d.replace(rope_offset="bottom-right"))
    own = d.rope_offset if isinstance(d.rope_offset, int) else 0
    if d.rope_offset != "bottom-right":
        yield Alternative("queries start one later", definition=d.replace(rope_offset=own + 1))
        if own > 0:
            yield Alternative("queries start at 0", definition=d.replace(rope_offset=None))


def _other_channels(s: Situation) -> Iterator[Alternative]:
    """Of a partial rotation the last channels are turned."""
    d, r = s.sizes.get("D", 0), s.definition.rope_dim
    if s.definition.rope is None or r is None or r >= d:
        return
    order = np.concatenate([np.arange(d - r, d), np.arange(d - r)])
    yield Alternative("the last channels", reads={n: places(s.fields[n])[..., order] for n in ("query", "key")})
    yield Alternative("all channels", definition=s.definition.replace(rope_dim=None))


def _norm(d: Any) -> bool:
    return d.qk_norm is not None


def _norm_of_one(base: str) -> Rewrite:
    """The norm of the queries, or of the keys, left out; the weights stay."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        if s.definition.qk_norm is not None and base + "norm" in s.program:
            yield Alternative(program=_tables(s.program, {base + "norm": sp.Integer(1)}).live())

    return rewrite


def _weight(change: Callable[[sp.Expr], sp.Expr]) -> Rewrite:
    """The weights of the norms changed."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        if not s.definition.qk_norm_weight:
            return

        def other(e: sp.Expr) -> sp.Expr:
            return e.xreplace({r: change(r) for r in e.atoms(sp.Indexed) if name_of(r) in ("gQ", "gK")})

        yield Alternative(program=s.program.with_statements([replace(x, expr=other(x.expr)) for x in s.program]))

    return rewrite


def _weights_exchanged(s: Situation) -> Iterator[Alternative]:
    a, b = "q_norm_weight", "k_norm_weight"
    if s.definition.qk_norm_weight and a in s.fields and b in s.fields:

        def after(_: Situation, p: Predictions) -> Predictions:
            return {**p, "grad_" + a: p["grad_" + b], "grad_" + b: p["grad_" + a]} if "grad_" + a in p else p

        yield Alternative(fields={a: s.fields[b], b: s.fields[a]}, after=after)


_ALIBI = "the slopes, and the distance that they multiply"
_ROPE = "pairing, angles and positions of the rotation"
_NORM = "the norms of queries and keys"
ROWS = (
    Fault(
        "F22a", "ALiBi exponent off by one", "convention", "2**(-8*h/H)", "2**(-8*(h + 1)/H)", _labelled(
            ("", _with_slopes(lambda a, h: a * 2 ** (8 / h))), ("a factor 2", _with_slopes(lambda a, h: a * 2)),
            ("one too many", _with_slopes(lambda a, h: a * 2 ** (-8 / h))), ("a factor 1/2", _with_slopes(lambda a, h: a / 2)),
            ("the slope of the head before", _with_slopes(lambda a, h: np.concatenate([[a[0] * a[0] / a[1] if h > 1 else 1.0], a[:-1]]))),
        ), threads=("aprender#2143",), look=_ALIBI, convention="alibi",
    ),
    Fault(
        "F22b", "the other published set of ALiBi slopes", "convention", "2**(-8*(h + 1)/H)", "closest power of two, then every other one",
        _labelled(
            ("plain geometric", _with_slopes(lambda a, h: np.array(published_slopes(h, interleaved=False)))),
            ("interleaved", _with_slopes(lambda a, h: np.array(published_slopes(h, interleaved=True)))),
        ), threads=("mlx#343", "mlx#3071"), look=_ALIBI, shows="H no power of two", blind="H a power of two", convention="alibi",
    ),
    Fault(
        "F22c", "sign of ALiBi", "mathematics", "+slope*(i - j)", "-slope*(i - j)", _with_slopes(lambda a, h: -a),
        threads=("attention-gym#86",), look=_ALIBI, blind="m = 1", convention="alibi",
    ),
    Fault(
        "F122", "ALiBi is not applied", "mathematics", "s", "s - slope*(i - j)", _with_slopes(lambda a, h: 0 * a),
        look="whether slopes reach the kernel", convention="alibi",
    ),
    Fault(
        "F123", "ALiBi slopes of the wrong heads", "mathematics", "slope[h']", "slope[h]", _labelled(
            ("in reverse order", _with_slopes(lambda a, h: a[::-1])), ("the first for all", _with_slopes(lambda a, h: 0 * a + a[0])),
            ("the next one", _with_slopes(lambda a, h: np.roll(a, -1))), ("the one before", _with_slopes(lambda a, h: np.roll(a, 1))),
        ), threads=("flashinfer#1606",), look=_ALIBI, convention="alibi",
    ),
    Fault(
        "F124", "ALiBi is multiplied by the scale", "mathematics", "scale*(q.k - slope*(i - j))", "scale*q.k - slope*(i - j)",
        _added("slope", _scale), look="the order of scale and ALiBi", blind="scale = 1", convention="alibi",
    ),
    Fault(
        "F125", "ALiBi by the other kind of distance", "convention", "-slope*|i - j|", "-slope*(i - j)", _labelled(
            ("absolute", _defined(lambda d: d.alibi and d.alibi_distance == "signed", alibi_distance="absolute")),
            ("signed", _defined(lambda d: d.alibi and d.alibi_distance == "absolute", alibi_distance="signed")),
        ), look=_ALIBI, shows="future keys that may be seen", blind="a causal mask", convention="alibi",
    ),
    Fault(
        "C1", "ALiBi from another origin: the same output, a shifted LSE", "convention", "slope*j", "-slope*(i - j)", _row_shift,
        threads=("vllm#945", "vllm#1009", "Baichuan-13B#172"), look="no fault: a constant of the row cancels in the softmax",
        shows="the LSE alone, unless a sink or softcap follows", convention="alibi",
    ),
    Fault(
        "F126", "the bias is ignored", "mathematics", "s", "s + bias", _defined(lambda d: d.bias, bias=False, bias_axes=None),
        look="whether the bias reaches the kernel", convention="bias",
    ),
    Fault(
        "F127", "the bias is multiplied by the scale", "mathematics", "scale*(q.k + bias)", "scale*q.k + bias", _labelled(
            ("bias", _added("bias", _scale)), ("mask", _added("B", _scale)),
        ), look="the order of scale and bias", blind="scale = 1", convention="bias",
    ),
    Fault(
        "F128", "sign of the bias", "mathematics", "s - bias", "s + bias", _added("bias", lambda s: sp.Integer(-1)), look="the bias",
        convention="bias",
    ),
    Fault(
        "F129", "the bias is added twice", "mathematics", "s + 2*bias", "s + bias", _added("bias", lambda s: sp.Integer(2)),
        look="a bias that is part of the score and added again", convention="bias",
    ),
    Fault(
        "F130", "the bias is read at the wrong place", "mathematics", "bias[h', i', j']", "bias[h, i, j]", _labelled(
            ("transposed", transposed("bias")), ("the first batch entry for all", looked_at("bias", -4, lambda n: np.zeros(n, int))),
            ("the first head for all", looked_at("bias", -3, lambda n: np.zeros(n, int))),
            ("the first query for all", looked_at("bias", -2, lambda n: np.zeros(n, int))),
            ("the next head", looked_at("bias", -3, lambda n: np.roll(np.arange(n), -1))),
            ("one key before", looked_at("bias", -1, lambda n: np.maximum(np.arange(n) - 1, 0))),
            ("one key after", looked_at("bias", -1, lambda n: np.minimum(np.arange(n) + 1, n - 1))),
        ), look="the strides of the bias", convention="bias",
    ),
    Fault(
        "F50", "the other pairing of channels in the rotation", "convention", "(2c, 2c + 1)", "(c, c + d/2)", _labelled(
            ("neighbours", _defined(lambda d: d.rope == "half", rope="interleaved")),
            ("halves", _defined(lambda d: d.rope == "interleaved", rope="half")),
        ), threads=("shainet#111", "lattice#96"), look=_ROPE, shows="d >= 4", blind="d = 2; position 0", convention="rope",
    ),
    Fault(
        "F51", "positions of the queries in the rotation are off", "mathematics", "R(i)", "R(i + offset)", _offsets,
        threads=("mlx-vlm#1983",), look=_ROPE, shows="n != m, a decode step", convention="rope",
    ),
    Fault(
        "F131", "no rotation", "mathematics", "q.k", "R(i)q.R(j)k", _labelled(
            ("neither", _defined(_rope, rope=None, rope_dim=None, rope_frequencies=None, rope_amplitude=None, rope_offset=None)),
            ("queries are not rotated", _one_side("Q")), ("keys are not rotated", _one_side("K")),
        ), look=_ROPE, convention="rope",
    ),
    Fault(
        "F132", "the rotation turns the other way", "mathematics", "R(-i)", "R(i)", _labelled(
            ("queries and keys", _backwards("QK")), ("queries", _backwards("Q")), ("keys", _backwards("K")),
        ), look="the sign of the sine", convention="rope",
    ),
    Fault("F133", "another base of the frequencies", "convention", "base**(-2p/r)", "10000**(-2p/r)", _bases, look=_ROPE, convention="rope"),
    Fault("F134", "exponent of the frequencies", "mathematics", "10000**(-p/r)", "10000**(-2p/r)", _exponents, look=_ROPE, convention="rope"),
    Fault(
        "F135", "the wrong channels are rotated", "mathematics", "the last r channels", "the first r channels", _other_channels, look=_ROPE,
        shows="a partial rotation", convention="rope",
    ),
    Fault(
        "F52", "the weighted norm of queries and keys comes on the other side of the rotation", "convention", "g*R(x/|x|)", "R(g*x/|x|)",
        _labelled(
            ("after the rotation", _defined(lambda d: _rope(d) and _norm(d), qk_norm_order="after-rope")),
            ("before the rotation", _defined(lambda d: _rope(d) and _norm(d), qk_norm_order="before-rope")),
        ), threads=("vllm-metal#659",), look=_NORM, shows="weights that differ within a pair of channels",
        blind="weights constant per rotated pair (C2)", convention="qk_norm",
    ),
    Fault(
        "F136", "queries and keys are not normed", "mathematics", "q.k", "q.k/(|q||k|)", _labelled(
            ("neither", _defined(_norm, qk_norm=None, qk_norm_weight=False, qk_norm_eps=None, qk_norm_order="before-rope")),
            ("queries", _norm_of_one("Q")), ("keys", _norm_of_one("K")),
        ), look=_NORM, convention="qk_norm",
    ),
    Fault(
        "F137", "the other norm of queries and keys", "convention", "x/|x|", "x/rms(x)", _labelled(
            ("l2", _defined(lambda d: d.qk_norm == "rms", qk_norm="l2")), ("rms", _defined(lambda d: d.qk_norm == "l2", qk_norm="rms")),
        ), look=_NORM, blind="d = 1", convention="qk_norm",
    ),
    Fault(
        "F138", "weights of the norms", "convention", "1 + g, or 1", "g", _labelled(
            ("1 + g", _weight(lambda g: 1 + g)), ("left out", _weight(lambda g: sp.Integer(1))), ("squared", _weight(lambda g: g**2)),
            ("those of queries and keys exchanged", _weights_exchanged),
        ), look=_NORM, convention="qk_norm",
    ),
    Fault(
        "F139", "what is added under the root of the norms", "mathematics", "sqrt(|x|**2/d)", "sqrt(|x|**2/d + eps)",
        _defined(lambda d: d.qk_norm_eps is not None, qk_norm_eps=None), look=_NORM, shows="small queries and keys", convention="qk_norm",
    ),
)  # fmt: skip
