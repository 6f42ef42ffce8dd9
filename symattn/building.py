"""From a definition to its program: the statements of attention, written once.

Statements that would be copies are left out (no ``S`` where the scale is 1), and every statement over (i, j) carries the
condition of :mod:`symattn.keep`, so that nothing is ever evaluated for a key that is masked out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import sympy as sp

from symattn.indexed import Tensor, reads, size, tensor
from symattn.keep import keep, measured_from
from symattn.letters import Letters
from symattn.nesting import split
from symattn.program import Program, Statement
from symattn.symbols import s as score_symbol

if TYPE_CHECKING:
    from symattn.definition import Definition


@dataclass(frozen=True)
class Parameters:
    """What stands for each parameter in the statements: its number, a scalar input, or an input with a value per head."""

    d: Definition
    at: Letters

    def scalar(self, name: str, per_batch: bool = False) -> sp.Expr:
        """The number or the scalar input (one per batch entry where ``per_batch``) of a parameter."""
        value = self.d.params.get(name)
        if isinstance(value, Fraction):
            return sp.Rational(value.numerator, value.denominator)
        return self.at.per_batch(name) if per_batch else tensor(name)

    def number(self, value: Fraction | str) -> sp.Expr:
        """A field that holds a number or the name of a parameter."""
        return self.scalar(value) if isinstance(value, str) else sp.Rational(value.numerator, value.denominator)

    def bind(self, expr: sp.Basic) -> sp.Basic:
        """An expression with every parameter replaced by what stands for it."""
        table: dict[sp.Basic, sp.Basic] = {}
        for name in self.d.parameters:
            value = self.d.params.get(name)
            per_head = value == "head" or isinstance(value, tuple)
            if name == self.d.prefix:
                table[tensor(name)] = self.scalar(name, per_batch=True)
            else:
                table[tensor(name)] = self.at.per_head(name) if per_head else self.scalar(name)
        return expr.xreplace(table)


@dataclass
class _Builder:
    d: Definition
    at: Letters
    parameters: Parameters
    where: sp.Basic
    statements: list[Statement] = field(default_factory=list)

    def add(
        self, target: Tensor, expr: sp.Expr, *over: sp.Symbol, where: sp.Basic = sp.true, reduce: str = "sum", **marks: bool
    ) -> Tensor:
        self.statements.append(Statement(target, expr, over, reduce, where, **marks))  # type: ignore[arg-type]
        return target

    def masked(self, target: Tensor, expr: sp.Expr, *over: sp.Symbol, reduce: str = "sum", **marks: bool) -> Tensor:
        """A statement over (i, j)."""
        return self.add(target, expr, *over, where=self.where, reduce=reduce, **marks)


@lru_cache(maxsize=256)
def build(d: Definition, batch: bool = False) -> Program:
    """The program of a definition; see :meth:`symattn.definition.Definition.program`."""
    at = Letters(
        *d.head_counts, batch, d.start != "qkv" and not d.cross, d.grouping == "tiled", frozenset(d.parameters)
    )  # fmt: skip
    parameters = Parameters(d, at)
    b = _Builder(d, at, parameters, keep(d, at, parameters))
    _sources(b)
    score = _scores(b)
    outputs = [_outputs(b, score)]
    if d.lse:
        outputs.append("L")
    shapes = {"Emb": (size("vocab"), size("dmodel"))} if d.start == "tokens" else {}
    return Program(tuple(b.statements), at.dims, tuple(outputs), shapes)


def _sources(b: _Builder) -> None:
    """Q, K and V from the tokens or from X, where they are not given."""
    d, at = b.d, b.at
    if d.start == "tokens":
        p, a = at["p"], at["a"]
        b.add(tensor("X", *at.batch_axes, p, a), tensor("Emb", tensor("tok", *at.batch_axes, p), a))
    if d.start != "qkv":
        i, j, c, e = at["i"], at["j"], at["c"], at["e"]
        source, width = ("C", at["u"]) if d.cross else ("X", at["a"])
        x, y = tensor("X", *at.batch_axes, i, at["a"]), tensor(source, *at.batch_axes, j, width)
        b.add(at.query("Q", c), x * tensor("WQ", *at.query_heads, at["a"], c), at["a"])
        b.add(at.key("K", c), y * tensor("WK", *at.key_heads, width, c), width)
        b.add(at.key("V", e), y * tensor("WV", *at.key_heads, width, e), width)


def _scores(b: _Builder) -> Tensor:
    """From Q and K to the score that the softmax sees: raw, scaled, capped, with biases."""
    d, at = b.d, b.at
    s = b.masked(at.score("R"), at.query("Q", at["c"]) * at.key("K", at["c"]), at["c"])
    scale = 1 / sp.sqrt(size("d")) if d.scale is None else b.parameters.bind(at.read(d.scale))
    if scale != 1:
        s = b.masked(at.score("S"), s * b.add(tensor("scale"), scale))
    if d.softcap is not None:
        cap = b.parameters.number(d.softcap)
        s = b.masked(at.score("A"), cap * sp.tanh(s / cap))
    z: sp.Expr = s
    if d.score is not None:
        z = _own_score(b, b.parameters.bind(at.read(d.score)), s)
    if d.alibi:
        distance = at["i"] + measured_from(d, at) - at["j"]
        z -= _slope(b) * (sp.Abs(distance) if d.alibi_distance == "absolute" else distance)
    if d.bias:
        z += at.given("bias", d.bias_axes or "bhij")
    if d.attn_mask == "additive":
        z += at.given("B", d.mask_axes or "bhij")
    return s if z == s else b.masked(at.score("Z"), z)


def _own_score(b: _Builder, score: sp.Expr, s: Tensor) -> sp.Expr:
    """A definition's own score of ``s``; functions that are nested deeply become statements, one inside the other."""
    read: dict[sp.Basic, sp.Basic] = {score_symbol: s}

    def name(piece: sp.Expr) -> sp.Expr:
        short = sp.Dummy(real=True)  # SymPy takes long to build functions of functions of what is not known to be real
        expr = _without_choices(b, piece.xreplace(read))
        read[short] = b.masked(b.at.score(f"F{len(read) - 1}"), expr)
        return short

    rest = split(score, name)
    return _without_choices(b, rest.xreplace(read))


def _without_choices(b: _Builder, z: sp.Expr) -> sp.Expr:
    """A score without min and max of numbers: each becomes a sum of statements, one for each argument, where that is the choice.

    So the gradient needs no derivative of a choice: conditions are carried along and never differentiated.
    """
    count = sum(x.name[0] == "W" for x in b.statements)
    while choices := [
        f for f in z.atoms(sp.Max, sp.Min) if reads(f) and not any(reads(g) for a in f.args for g in a.atoms(sp.Max, sp.Min))
    ]:
        f = min(choices, key=str)
        parts: list[Tensor] = []
        args = sorted(f.args, key=str)
        less = sp.Gt if isinstance(f, sp.Max) else sp.Lt
        least = sp.Ge if isinstance(f, sp.Max) else sp.Le
        for k, a in enumerate(args):
            # of equal arguments the first is chosen
            chosen = [less(a, x) for x in args[:k]] + [least(a, x) for x in args[k + 1 :]]
            parts.append(b.add(b.at.score(f"W{count}"), a, where=sp.And(b.where, *chosen)))
            count += 1
        z = z.xreplace({f: sp.Add(*parts)})
    return z


def _slope(b: _Builder) -> Tensor:
    """The ALiBi slope of each head: given, or one of the two published sets."""
    d, at = b.d, b.at
    slope = at.per_head("slope")
    if d.alibi_slopes == "given":
        return slope
    heads, _ = d.head_counts
    full = 2 ** (heads.bit_length() - 1)
    if d.alibi_slopes == "power" or full == heads:
        return b.add(slope, 2 ** (-8 * (at.head + 1) / at.head_count))
    # the slopes of the largest power of two below H, then every other one of the next power
    first = b.add(at.per_head("slope_a"), 2 ** (-8 * (at.head + 1) / sp.Integer(full)), where=sp.Lt(at.head, full))
    rest = b.add(at.per_head("slope_b"), 2 ** (-4 * (2 * (at.head - full) + 1) / sp.Integer(full)), where=sp.Ge(at.head, full))
    return b.add(slope, first + rest)


def _outputs(b: _Builder, z: Tensor) -> str:
    """The softmax over the keys, its log-sum-exp, and the weighted sum of the values."""
    d, at = b.d, b.at
    j, e = at["j"], at["e"]
    maximum, total = at.query("m"), at.query("l")
    if d.sink:
        sink = at.per_head("sink")
        m0 = b.masked(at.query("m0"), z, j, reduce="max", range_only=True, aux=True)
        b.add(maximum, sp.Max(m0, sink, evaluate=False), range_only=True, aux=True)
        weight = b.masked(at.score("E"), sp.exp(z - maximum), aux=True)
        of_sink = b.add(at.query("E0"), sp.exp(sink - maximum), aux=True)
        keys = b.masked(at.query("lk"), weight, j, aux=True)
        b.add(total, keys + of_sink, aux=True)
    else:
        b.masked(maximum, z, j, reduce="max", range_only=True, aux=True)
        weight = b.masked(at.score("E"), sp.exp(z - maximum), aux=True)
        b.masked(total, weight, j, aux=True)
    p = b.masked(at.score("P"), weight / total)
    if d.sink:
        b.add(at.query("P0"), at.query("E0") / total)
    if d.dropout:
        rate = tensor("p") if d.dropout_p is None else b.parameters.number(d.dropout_p)
        kept = sp.And(b.where, sp.Ne(at.score("drop"), 0))
        p = b.add(at.score("Pd"), p / (1 - rate), where=kept)
        b.where = kept
    out = _values(b, p)
    if d.lse:
        lse = maximum + sp.log(total)
        b.add(at.query("L"), lse if d.lse_base == "e" else lse / sp.log(2))
    if not d.output_projection:
        return "O"
    f = at["f"]
    b.add(tensor("Y", *at.batch_axes, at["i"], f), out * tensor("WO", *at.query_heads, e, f), *at.query_heads, e)
    return "Y"


def _values(b: _Builder, p: Tensor) -> Tensor:
    """``O = P V``, and what stands there for a query without keys."""
    d, at = b.d, b.at
    j, e = at["j"], at["e"]
    empty = d.empty_row in ("nan", "uniform") and b.where != sp.true
    out = b.masked(at.query("O0" if empty else "O", e), p * at.key("V", e), j)
    if not empty:
        return out
    count = b.add(at.query("cnt"), sp.Integer(1), j, where=keep(d, at, b.parameters))
    if d.empty_row == "nan":
        other = b.add(at.query("N"), sp.nan, where=sp.Eq(count, 0))
    else:
        other = b.add(at.query("U", e), at.key("V", e) / at.size_of("j"), j, where=sp.Eq(count, 0))
    return b.add(at.query("O", e), out + other)
