"""Faults of what is added to scores: ALiBi and given biases."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import sympy as sp

from symattn.indexed import name_of, tensor
from symattn.intake import Array
from symattn.verify.faults.fault import Alternative, Fault, Predictions, Situation
from symattn.verify.faults.givenmasks import looked_at, transposed
from symattn.verify.faults.heads import other_heads
from symattn.verify.faults.results import labelled, under
from symattn.verify.faults.structure import I, J, softmax_of
from symattn.verify.kernels.call import published_slopes

Rewrite = Callable[[Situation], Iterator[Alternative]]


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


def _slopes_of(s: Situation) -> Iterator[Alternative]:
    """The slopes of other heads."""
    if not s.definition.alibi:
        return
    for label, at in other_heads(s):
        if s.definition.alibi_slopes == "given" and s.fields["alibi_slopes"].ndim == 1:
            yield Alternative(label, reads={"alibi_slopes": at})
        else:
            yield from under(label, _with_slopes(_taken(at))(s))


def _taken(at: Array) -> Callable[[Array, int], Array]:
    return lambda a, _: np.asarray(a[at])


def _unslope(_: Situation, p: Predictions) -> Predictions:
    return {n: x for n, x in p.items() if n != "grad_alibi_slopes"}


def defined(when: Callable[[Any], bool], **changes: Any) -> Rewrite:
    """Fields of the definition changed, where it has something to change."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        d = s.definition
        if when(d):
            yield from s.changed("", **{k: v(d) if callable(v) else v for k, v in changes.items()})

    return rewrite


def added(s: Situation, letters: Collection[str], change: Callable[[sp.Expr], sp.Expr]) -> Iterator[Alternative]:
    """What is added to the score and reads one of some tensors, changed: in the forward program, whose gradient follows."""
    for st in s.program:
        terms = [t for t in sp.Add.make_args(st.expr) if any(name_of(r) in letters for r in t.atoms(sp.Indexed))]
        if {I, J} <= set(st.indices) and not st.over and terms:
            rest = st.expr - sp.Add(*terms)
            new = replace(st, expr=rest + change(sp.Add(*terms)))
            yield Alternative(program=s.program.with_statements([new if x.name == st.name else x for x in s.program]).live())
            return


def _added(letter: str, factor: Callable[[Situation], sp.Expr | None]) -> Rewrite:
    def rewrite(s: Situation) -> Iterator[Alternative]:
        f = factor(s)
        if f is not None:
            yield from added(s, (letter,), lambda t: f * t)

    return rewrite


def _scale(s: Situation) -> sp.Expr | None:
    return tensor("scale") if "scale" in s.program else None


def _of_other_base(s: Situation) -> Iterator[Alternative]:
    """Exponentials to base 2 of scores that were multiplied by log2(e), and of what is added that was not; and the other way."""
    given = {"bias": "bias", "B": "mask", "slope": "ALiBi", "Bkt": "bias by buckets"}
    read = [n for n in given if any(name_of(r) == n for st in s.program for r in st.expr.atoms(sp.Indexed))]
    groups = [((n,), given[n]) for n in read] + ([(tuple(read), "all")] if len(read) > 1 else [])
    for letters, what in groups:
        for label, f in (("ln 2", sp.log(2)), ("log2(e)", 1 / sp.log(2))):
            yield from under(f"{what} times {label}", added(s, letters, partial(sp.Mul, f)))


def _row_shift(s: Situation) -> Iterator[Alternative]:
    """ALiBi by the key alone, or from another diagonal: a constant of the row, which the softmax does not see."""
    if not s.definition.alibi or s.definition.alibi_distance != "signed" or softmax_of(s.program) is None:
        return
    n, m = s.size("n"), s.size("m")
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


def _power(heads: int) -> int:
    """The least power of two from a number of heads on."""
    return 1 << (heads - 1).bit_length()


def _below(heads: int) -> Array:
    """The geometric slopes of the power of two below, gone on with for the other heads."""
    return np.asarray(2.0 ** (-8 * (np.arange(heads) + 1) / (1 << (heads.bit_length() - 1))))


_ALIBI = "the slopes, and the distance that they multiply"
ROWS = (
    Fault(
        "F22a", "ALiBi exponent off by one", "convention", "2**(-8*h/H)", "2**(-8*(h + 1)/H)", labelled(
            ("", _with_slopes(lambda a, h: a * 2 ** (8 / h))), ("a factor 2", _with_slopes(lambda a, h: a * 2)),
            ("one too many", _with_slopes(lambda a, h: a * 2 ** (-8 / h))), ("a factor 1/2", _with_slopes(lambda a,
            h: a / 2)),
            ("the slope of the head before", _with_slopes(lambda a, h: np.concatenate([[a[0] * a[0] / a[1] if h > 1 else 1.0],
            a[:-1]]))),
        ), threads=("aprender#2143",), look=_ALIBI, convention="alibi",
    ),
    Fault(
        "F22b", "the other published set of ALiBi slopes", "convention", "2**(-8*(h + 1)/H)",
        "closest power of two, then every other one",
        labelled(
            ("plain geometric", _with_slopes(lambda a, h: np.array(published_slopes(h, interleaved=False)))),
            ("interleaved", _with_slopes(lambda a, h: np.array(published_slopes(h, interleaved=True)))),
            ("of the next power of two", _with_slopes(lambda a, h: np.array(published_slopes(_power(h), interleaved=False)[:h]))),
            ("of the power of two below", _with_slopes(lambda a, h: _below(h))),
        ), threads=("mlx#343", "mlx#3071"), look=_ALIBI, shows="H no power of two", blind="H a power of two",
        convention="alibi",
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
        "F123", "ALiBi slopes of the wrong heads", "mathematics", "slope[h']", "slope[h]", _slopes_of,
        threads=("flashinfer#1606",), look=_ALIBI, convention="alibi",
    ),
    Fault(
        "F124", "ALiBi is multiplied by the scale", "mathematics", "scale*(q.k - slope*(i - j))", "scale*q.k - slope*(i - j)",
        _added("slope", _scale), look="the order of scale and ALiBi", blind="scale = 1", convention="alibi",
    ),
    Fault(
        "F125", "ALiBi by the other kind of distance", "convention", "-slope*|i - j|", "-slope*(i - j)", labelled(
            ("absolute", defined(lambda d: d.alibi and d.alibi_distance == "signed", alibi_distance="absolute")),
            ("signed", defined(lambda d: d.alibi and d.alibi_distance == "absolute", alibi_distance="signed")),
        ), look=_ALIBI, shows="future keys that may be seen", blind="a causal mask", convention="alibi",
    ),
    Fault(
        "C1", "ALiBi from another origin: without a sink or softcap the same output and a shifted LSE", "convention",
        "slope*j", "-slope*(i - j)",
        _row_shift,
        threads=("vllm#945", "vllm#1009", "Baichuan-13B#172"), look="no fault: a constant of the row cancels in the softmax",
        shows="the LSE alone, unless a sink or softcap follows", convention="alibi",
    ),
    Fault(
        "F126", "the bias is ignored", "mathematics", "s", "s + bias", defined(lambda d: d.bias, bias=False, bias_axes=None),
        look="whether the bias reaches the kernel", convention="bias",
    ),
    Fault(
        "F127", "the bias is multiplied by the scale", "mathematics", "scale*(q.k + bias)", "scale*q.k + bias", labelled(
            ("bias", _added("bias", _scale)), ("mask", _added("B", _scale)),
        ), look="the order of scale and bias", blind="scale = 1", convention="bias",
    ),
    Fault(
        "F176", "what is added to the scores is not brought to the base of the exponentials", "mathematics",
        "2**(s*log2(e) + bias)", "exp(s + bias)", _of_other_base,
        look="whether log2(e) multiplies bias, mask and ALiBi too", shows="kernels with exp2",
        blind="nothing added but 0 and -inf",
    ),
    Fault(
        "F128", "sign of the bias", "mathematics", "s - bias", "s + bias", _added("bias", lambda s: sp.Integer(-1)),
        look="the bias",
        convention="bias",
    ),
    Fault(
        "F129", "the bias is added twice", "mathematics", "s + 2*bias", "s + bias", _added("bias", lambda s: sp.Integer(2)),
        look="a bias that is part of the score and added again", convention="bias",
    ),
    Fault(
        "F130", "the bias is read at the wrong place", "mathematics", "bias[h', i', j']", "bias[h, i, j]", labelled(
            ("transposed", transposed("bias")), ("the first batch entry for all", looked_at("bias", -4, lambda n: np.zeros(n,
            int))),
            ("the first head for all", looked_at("bias", -3, lambda n: np.zeros(n, int))),
            ("the first query for all", looked_at("bias", -2, lambda n: np.zeros(n, int))),
            ("the next head", looked_at("bias", -3, lambda n: np.roll(np.arange(n), -1))),
            ("one key before", looked_at("bias", -1, lambda n: np.maximum(np.arange(n) - 1, 0))),
            ("one key after", looked_at("bias", -1, lambda n: np.minimum(np.arange(n) + 1, n - 1))),
        ), look="the strides of the bias", convention="bias",
    ),
)  # fmt: skip
