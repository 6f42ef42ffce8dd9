"""Faults of rotations, and of the norms of queries and keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import sympy as sp

from symattn.indexed import name_of
from symattn.program import Program
from symattn.verify.faults.fault import Alternative, Fault, Predictions, Situation
from symattn.verify.faults.heads import places
from symattn.verify.faults.positions import defined
from symattn.verify.faults.results import labelled

Rewrite = Callable[[Situation], Iterator[Alternative]]


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
            yield from s.changed(f"{base}", rope_frequencies=f"{base}**(-2*p/r)")


def _exponents(s: Situation) -> Iterator[Alternative]:
    if s.definition.rope is not None and s.definition.rope_frequencies is None:
        for label, text in (
            ("p/r for 2p/r", "10000**(-p/r)"),
            ("2(p + 1)/r", "10000**(-2*(p + 1)/r)"),
            ("of the width d", f"10000**(-2*p/{s.sizes.get('D', 1)})"),
        ):
            if label != "of the width d" or s.definition.rope_dim is not None:
                yield from s.changed(label, rope_frequencies=text)


def _offsets(s: Situation) -> Iterator[Alternative]:
    d = s.definition
    if d.rope is None:
        return
    if d.rope_offset == "bottom-right":
        yield from s.changed("queries start at 0", rope_offset=None)
        for word, by in (("later", 1), ("earlier", -1)):
            yield from s.changed(f"queries start one {word}", rope_offset=s.sizes["M"] - s.sizes["N"] + by)
    else:
        yield from s.changed("queries start at m - n", rope_offset="bottom-right")
    own = d.rope_offset if isinstance(d.rope_offset, int) else 0
    if d.rope_offset != "bottom-right":
        for word, by in (("queries start one later", 1), ("queries start one earlier, or keys one later", -1)):
            yield from s.changed(word, rope_offset=own + by)
        if own != 0:
            yield from s.changed("queries start at 0", rope_offset=None)


def _other_channels(s: Situation) -> Iterator[Alternative]:
    """Of a partial rotation the last channels are turned."""
    d, r = s.sizes.get("D", 0), s.definition.rope_dim
    if s.definition.rope is None or r is None or r >= d:
        return
    order = np.concatenate([np.arange(d - r, d), np.arange(d - r)])
    yield Alternative("the last channels", reads={n: places(s.fields[n])[..., order] for n in ("query", "key")})
    yield from s.changed("all channels", rope_dim=None)


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


_ROPE = "pairing, angles and positions of the rotation"
_NORM = "the norms of queries and keys"
ROWS = (
    Fault(
        "F50", "the other pairing of channels in the rotation", "convention", "(2c, 2c + 1)", "(c, c + d/2)", labelled(
            ("neighbours", defined(lambda d: d.rope == "half", rope="interleaved")),
            ("halves", defined(lambda d: d.rope == "interleaved", rope="half")),
        ), threads=("shainet#111", "lattice#96"), look=_ROPE, shows="d >= 4", blind="d = 2; position 0", convention="rope",
    ),
    Fault(
        "F51", "positions of the queries in the rotation are off", "mathematics", "R(i)", "R(i + offset)", _offsets,
        threads=("mlx-vlm#1983",), look=_ROPE, shows="n != m, a decode step", convention="rope",
    ),
    Fault(
        "F131", "no rotation", "mathematics", "q.k", "R(i)q.R(j)k", labelled(
            ("neither", defined(_rope, rope=None, rope_dim=None, rope_frequencies=None, rope_amplitude=None,
            rope_offset=None)),
            ("queries are not rotated", _one_side("Q")), ("keys are not rotated", _one_side("K")),
        ), look=_ROPE, convention="rope",
    ),
    Fault(
        "F132", "the rotation turns the other way", "mathematics", "R(-i)", "R(i)", labelled(
            ("queries and keys", _backwards("QK")), ("queries", _backwards("Q")), ("keys", _backwards("K")),
        ), look="the sign of the sine", convention="rope",
    ),
    Fault(
        "F133", "another base of the frequencies", "convention", "base**(-2p/r)", "10000**(-2p/r)", _bases,
        look=_ROPE, convention="rope",
    ),
    Fault(
        "F134", "exponent of the frequencies", "mathematics", "10000**(-p/r)", "10000**(-2p/r)", _exponents,
        look=_ROPE, convention="rope",
    ),
    Fault(
        "F135", "the wrong channels are rotated", "mathematics", "the last r channels", "the first r channels",
        _other_channels, look=_ROPE,
        shows="a partial rotation", convention="rope",
    ),
    Fault(
        "F52", "the weighted norm of queries and keys comes on the other side of the rotation", "convention", "g*R(x/|x|)",
        "R(g*x/|x|)",
        labelled(
            ("after the rotation", defined(lambda d: _rope(d) and _norm(d), qk_norm_order="after-rope")),
            ("before the rotation", defined(lambda d: _rope(d) and _norm(d), qk_norm_order="before-rope")),
        ), threads=("vllm-metal#659",), look=_NORM, shows="weights that differ within a pair of channels",
        blind="weights constant per rotated pair (C2)", convention="qk_norm",
    ),
    Fault(
        "F136", "queries and keys are not normed", "mathematics", "q.k", "q.k/(|q||k|)", labelled(
            ("neither", defined(_norm, qk_norm=None, qk_norm_weight=False, qk_norm_eps=None, qk_norm_order="before-rope")),
            ("queries", _norm_of_one("Q")), ("keys", _norm_of_one("K")),
        ), look=_NORM, convention="qk_norm",
    ),
    Fault(
        "F137", "the other norm of queries and keys", "convention", "x/|x|", "x/rms(x)", labelled(
            ("l2", defined(lambda d: d.qk_norm == "rms", qk_norm="l2")), ("rms", defined(lambda d: d.qk_norm == "l2",
            qk_norm="rms")),
        ), look=_NORM, blind="d = 1", convention="qk_norm",
    ),
    Fault(
        "F138", "weights of the norms", "convention", "1 + g, or 1", "g", labelled(
            ("1 + g", _weight(lambda g: 1 + g)), ("left out", _weight(lambda g: sp.Integer(1))), ("squared",
            _weight(lambda g: g**2)),
            ("those of queries and keys exchanged", _weights_exchanged),
        ), look=_NORM, convention="qk_norm",
    ),
    Fault(
        "F139", "what is added under the root of the norms", "mathematics", "sqrt(|x|**2/d)", "sqrt(|x|**2/d + eps)",
        defined(lambda d: d.qk_norm_eps is not None, qk_norm_eps=None), look=_NORM, shows="small queries and keys",
        convention="qk_norm",
    ),
)  # fmt: skip
