"""Theorems about positions: rotations are relative and keep lengths, sinusoidal positions shift by a rotation, ALiBi's sign.

Each is an identity of sines and cosines in the two channels of a pair, which are read from the statements of the definition: it
holds for every pair, and so for any number of channels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import sympy as sp

from symattn.errors import NotStatedError
from symattn.indexed import name_of, reads, subscripts_of
from symattn.program import Program
from symattn.theorems.claim import PROVED, Claim
from symattn.theorems.scalar import Scalar
from symattn.theorems.subject import Subject
from symattn.theorems.theorem import Condition, Theorem
from symattn.theorems.turns import FIRST, LATER, Entries, same_frequencies

__all__ = ["ROWS"]

AT_Q, AT_K, T = sp.symbols("i j t", real=True)
"""Positions of a query and a key, and a shift of both."""
FREQUENCY = sp.Function("freq")


@dataclass(frozen=True)
class Pair:
    """The two channels of a pair of a rotated tensor, after and before the rotation, or one channel that is not turned.

    ``amplitude`` and ``angle`` are those of the table of cosines.
    """

    after: tuple[sp.Expr, ...]
    before: tuple[sp.Expr, ...]
    amplitude: sp.Expr = sp.S.One
    angle: sp.Expr = sp.S.Zero


# ---------------------------------------------------------------- the parts of a program
def _rotated(s: Subject) -> dict[str, str]:
    """The rotated tensors: name -> Q or K, whose tables turn it."""
    found = {t.name: n[1] for t in s.plain for x in t.reads if (n := name_of(x)) in ("CQ", "CK")}
    if not found:
        raise NotStatedError("nothing is rotated in this definition")
    return found


def _products(s: Subject) -> list[tuple[str, str]]:
    """The names of rotated queries and keys that a score multiplies."""
    turned, out = _rotated(s), []
    for t in s.plain:
        queries, keys = ([x for x in t.reads if turned.get(name_of(x)) == side] for side in "QK")
        if len(queries) == len(keys) == 1 and sp.expand(t.expr - queries[0] * keys[0]) == 0 and len(t.over) == 1:
            out.append((name_of(queries[0]), name_of(keys[0])))
    if not out:
        raise NotStatedError("no score is the product of rotated queries and keys")
    return out


def _channels(s: Subject, name: str) -> Iterator[tuple[tuple[sp.Expr, ...], dict[sp.Basic, sp.Expr]]]:
    """The channels of every pair, with the width that is meant; then one that is not turned."""
    c = s.plain[name].indices[-1]
    d, r = s.plain.dims[c], s.definition.rope_dim
    half = s.definition.rope == "half"
    if r is None:
        first = FIRST if half else 2 * FIRST
        yield (first, first + (FIRST + 1 + LATER if half else 1)), {d: 2 * (FIRST + 1 + LATER)}
        return
    step = r // 2 if half else 1
    for p in range(r // 2):
        first = sp.Integer(p if half else 2 * p)
        yield (first, first + step), {d: r + LATER}
    yield (r + FIRST,), {d: r + FIRST + 1 + LATER}


def _pairs(s: Subject, name: str, side: str) -> list[Pair]:
    """Every pair of a rotated tensor; ``side`` is Q or K, whose tables turn it."""
    program, (base, _, end) = s.plain, name.rpartition("rot")
    c = program[name].indices[-1]
    parts = {name, "C" + side, "S" + side, *(base + part + end for part in ("turn", "neg", "pos", "rest"))}
    rotation = {n for n in parts if n in program}
    out = []
    for channels, width in _channels(s, name):
        labels = {x: side + str(k + 1) for k, x in enumerate(map(sp.expand, channels))}
        marked = Entries(_marked(program), rotation | _frequencies(program), c, width)
        after = [_named(marked.at(name, x, labels), side) for x in channels]
        before = tuple(sp.Symbol(labels[sp.expand(x)], real=True) for x in channels)
        table = marked.at("C" + side, channels[0], labels) if len(channels) == 2 else sp.S.Zero
        *found, table = same_frequencies((*after, table), "theta")
        cosine = next(iter(table.atoms(sp.cos)), None)
        amplitude = sp.S.One if cosine is None else table / cosine
        out.append(Pair(tuple(found), before, amplitude, sp.S.Zero if cosine is None else cosine.args[0]))
    return list(dict.fromkeys(out))


def _named(e: sp.Expr, side: str) -> sp.Expr:
    """Symbols of entries of what is turned, called Q1 or K2 whatever the tensor is called; positions are real."""
    table: dict[sp.Basic, sp.Expr] = {}
    for x in e.free_symbols:
        for k in ("1", "2"):
            if x.name.endswith(side + k):
                table[x] = sp.Symbol(side + k, real=True)
    return e.xreplace(table)


def _marked(program: Program) -> Program:
    """The program with what multiplies a position in a cosine or sine marked as a frequency."""
    frequencies = [x for t in program if t.name in ("CQ", "CK", "SQ", "SK") for x in reads(t.expr) if name_of(x) == "Th"]
    table = {x: FREQUENCY(x) for x in frequencies}
    return program.with_statements(
        [t.xreplace(table) if t.name in ("CQ", "CK", "SQ", "SK") else t for t in program],
    )


def _frequencies(program: Program) -> set[str]:
    """The table of frequencies and what it is made of."""
    found, todo = set(), ["Th"]
    while todo:
        n = todo.pop()
        if n in program and n not in found:
            found.add(n)
            todo += [name_of(x) for x in program[n].reads]
    return found


def _at(e: sp.Expr, i: sp.Expr, j: sp.Expr) -> sp.Expr:
    """The expression at the positions ``i`` of the query and ``j`` of the key."""
    table = {x: {"i": i, "j": j}[x.name] for x in e.free_symbols if x.name in ("i", "j")}
    return e.xreplace(table)


# ---------------------------------------------------------------- rotations
def _relative(s: Subject) -> tuple[Claim, ...]:
    claims: list[Claim] = []
    for query, key in _products(s):
        for q, k in zip(_pairs(s, query, "Q"), _pairs(s, key, "K"), strict=True):
            dot = sp.Add(*[a * b for a, b in zip(q.after, k.after, strict=True)])
            claims.append(
                Scalar(
                    _at(dot, AT_Q + T, AT_K + T),
                    _at(dot, AT_Q, AT_K),
                    f"{_where(q)}: at (i+t, j+t) as at (i, j)",
                )
            )
            if len(q.after) == 2:
                (q1, q2), (k1, k2) = q.before, k.before
                angle = q.angle - k.angle
                turned = (q1 * k1 + q2 * k2) * sp.cos(angle) + (q1 * k2 - q2 * k1) * sp.sin(angle)
                text = "of a pair: a^2 ((q1 k1 + q2 k2) cos((i-j) theta) + (q1 k2 - q2 k1) sin((i-j) theta))"
                claims.append(Scalar(_at(dot, AT_Q, AT_K), q.amplitude * k.amplitude * _at(turned, AT_Q, AT_K), text))
    return tuple(dict.fromkeys(claims))


def _where(pair: Pair) -> str:
    return "any pair of channels" if len(pair.after) == 2 else "a channel that is not turned"


def _orthogonal(s: Subject) -> tuple[Claim, ...]:
    """Lengths are kept, up to the amplitude, for every vector: so are the products of two vectors at one position."""
    claims: list[Claim] = []
    for name, side in _rotated(s).items():
        for pair in _pairs(s, name, side):
            left = sp.Add(*[_at(x, AT_Q, AT_K) ** 2 for x in pair.after])
            right = pair.amplitude**2 * sp.Add(*[x**2 for x in pair.before])
            claims.append(Scalar(left, right, f"{_where(pair)} of {side} keeps its length, times a^2"))
    return tuple(dict.fromkeys(claims))


# ---------------------------------------------------------------- sinusoidal positions
def _sinusoidal(s: Subject) -> tuple[Claim, ...]:
    """The encoding of a position t later is a rotation of every pair, by t times its frequency."""
    if "PE" not in s.plain:
        raise NotStatedError("no sinusoidal encoding is added to X")
    p, a = s.plain["PE"].indices
    inside = [n for n in ("PE", "PEsin", "PEcos") if n in s.plain]
    entries = Entries(s.plain, inside, a, {s.plain.dims[a]: 2 * (FIRST + 1 + LATER)})
    position = sp.Symbol("x", real=True)
    even, odd = (_waves(entries.at("PE", 2 * FIRST + k, {}), p, position) for k in (0, 1))
    first, second = same_frequencies((even, odd), "omega")
    omega = sp.Symbol("omega", real=True)
    shifted = [e.xreplace({position: position + T}) for e in (first, second)]
    cosine, sine = sp.cos(T * omega), sp.sin(T * omega)
    return (
        Scalar(shifted[0], cosine * first + sine * second, "PE(x+t, 2r) = cos(t omega) PE(x, 2r) + sin(t omega) PE(x, 2r+1)"),
        Scalar(shifted[1], cosine * second - sine * first, "PE(x+t, 2r+1) = cos(t omega) PE(x, 2r+1) - sin(t omega) PE(x, 2r)"),
    )


def _waves(e: sp.Expr, p: sp.Symbol, position: sp.Symbol) -> sp.Expr:
    """The expression with every sine and cosine of ``p`` times a frequency, the frequency marked."""
    table = {f: f.func(position * FREQUENCY(sp.cancel(f.args[0] / p))) for f in e.atoms(sp.sin, sp.cos)}
    return e.xreplace(table)


# ---------------------------------------------------------------- linear biases
def _linear_bias(s: Subject) -> tuple[Claim, ...]:
    """What is added to the score of a key t steps before its query, read from the statement of the scores."""
    z = s.plain[name_of(s.score)]
    bias = z.expr.xreplace({x: sp.S.Zero for x in reads(z.expr) if s.key_index in subscripts_of(x)})
    slopes = reads(bias)
    if len(slopes) != 1 or z.over or s.key_index not in bias.xreplace({slopes[0]: sp.S.One}).free_symbols:
        raise NotStatedError("no bias of a slope and a distance is added to the scores")
    (slope,) = slopes
    symbol, back = sp.Symbol("slope", real=True), sp.Symbol("t", nonnegative=True)
    own, far = (bias.xreplace({slope: symbol, s.key_index: AT_Q - x, s.query_index: AT_Q}) for x in (sp.S.Zero, back))
    return (
        Scalar(own, sp.S.Zero, "the query's own key gets no bias"),
        Scalar(far, -symbol * back, "a key t steps back gets -slope t: the opposite sign would favour what is far"),
    )


FALLING = Condition(
    "the bias falls by the slope with every step", lambda s: all(c.decide().verdict == PROVED for c in _linear_bias(s))
)

_SCALED = {"rope_frequencies": "10000**(-2*p/r)/factor", "rope_amplitude": "log(4)/10 + 1"}

ROWS = (
    Theorem(
        "rope-relative",
        "Rotated scores depend on i - j only",
        "A shift of the positions of queries and keys by the same t changes no score: of each pair it is a^2 ((q1 k1 + q2 k2) "
        "cos((i-j) theta) + (q1 k2 - q2 k1) sin((i-j) theta)), a the amplitude.",
        r"\langle R_i q, R_j k\rangle = \langle R_{i+t}\,q, R_{j+t}\,k\rangle = a^2\,\langle q, R_{j-i}\,k\rangle",
        "arXiv 2104.09864, equation 16",
        _relative,
        (),
        {"rope": "half", "heads": 4, "kv_heads": 2, **_SCALED},
    ),
    Theorem(
        "rope-orthogonal",
        "A rotation keeps lengths, up to its amplitude",
        "|R_i q|^2 = a^2 |q|^2 in every pair of channels, so R_i/a is orthogonal; channels that are not turned are as they were.",
        r"R_i^\top R_i = a^2 I",
        "arXiv 2104.09864, section 3.2.2",
        _orthogonal,
        (),
        {"rope": "half", "heads": 4, "kv_heads": 2, **_SCALED},
    ),
    Theorem(
        "sinusoidal-shift",
        "A shift of sinusoidal positions is a linear map",
        "PE(x + t) is PE(x) with every pair of channels turned by t omega: a matrix that does not depend on x; dmodel is even.",
        r"PE_{x+t} = \begin{pmatrix}\cos t\omega & \sin t\omega\\ -\sin t\omega & \cos t\omega\end{pmatrix} PE_x",
        "arXiv 1706.03762, section 3.5",
        _sinusoidal,
        (),
        {"start": "tokens", "positions": "sinusoidal"},
    ),
    Theorem(
        "alibi-sign",
        "ALiBi: a key t steps back loses slope times t",
        "The bias is -slope (i - j) for the keys j <= i: with a slope above 0 farther keys get less, the own one nothing.",
        r"Z_{ij} = S_{ij} - m\,(i-j),\qquad j \le i",
        "arXiv 2108.12409, section 3",
        _linear_bias,
        (FALLING,),
        {"heads": 4, "causal": "top-left", "alibi": True},
    ),
)
