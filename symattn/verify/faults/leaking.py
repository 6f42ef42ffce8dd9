"""Faults of masks that come at the wrong place, and of keys that should not be there or should: leaks, padding, tails."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import sympy as sp

from symattn.indexed import all_reads, conjuncts, name_of, tensor
from symattn.intake import Array
from symattn.program import Program, Statement
from symattn.verify.faults.fault import Alternative, Fault, Situation
from symattn.verify.faults.heads import places, starts_from_qkv
from symattn.verify.faults.results import in_empty_rows
from symattn.verify.faults.structure import (
    I,
    J,
    Softmax,
    also,
    causal_like,
    fresh,
    outer,
    pairs_condition,
    reading,
    softmax_of,
)
from symattn.verify.pack.laws import unread

Rewrite = Callable[[Situation], Iterator[Alternative]]
SMALL = (8, 4, 24, 48, 80, 96, 112)
"""Tiles that are tried after them."""
TILES = (16, 32, 64, 128, 256, 512)
"""Tiles of keys that kernels use."""


def tiles_of(s: Situation) -> tuple[int, ...]:
    """Tiles of keys that are tried: the declared one first, so that its name is the one that is told."""
    own = () if s.arithmetic.tile is None else (s.arithmetic.tile,)
    return tuple(dict.fromkeys((*own, *TILES, *SMALL)))


def leaked(program: Program) -> tuple[sp.Basic, ...]:
    """The conditions of the weights, but for those that leave out the -inf of an additive mask."""
    return tuple(c for c in conjuncts(pairs_condition(program)) if not c.has(sp.oo, -sp.oo) and c != sp.true)


def unmasked(program: Program, name: str, value: Callable[[sp.Expr], sp.Expr]) -> Program:
    """A program whose mask is no condition but a value: masked entries of one tensor are ``value`` of it, and all are summed.

    Parameters
    ----------
    program
        A forward program.
    name
        The tensor over (i, j), for example the score.
    value
        What stands at a masked entry; a constant, or an expression in the entry.
    """
    conditions = leaked(program)
    s = program[name]
    masked = sp.Not(sp.And(*conditions))
    inside, outside, all_ = (fresh(program, name + x) for x in ("in", "out", "all"))
    entry = value(s.target)
    reads_it = bool(all_reads(entry))

    def free(x: Statement) -> Statement:
        return replace(x, where=sp.And(*[c for c in x.conditions if c not in conditions]))

    down = downstream(program, name)
    kept = [free(x) if x.name in down or (reads_it and {I, J} <= set(x.domain)) else x for x in program]
    at = s.indices
    new = [
        Statement(tensor(inside, *at), s.target, where=outer(s)),
        Statement(tensor(outside, *at), entry, where=masked),
        Statement(tensor(all_, *at), tensor(inside, *at) + tensor(outside, *at)),
    ]
    base = program.with_statements(kept)
    return base.with_statements(reading(base, name, all_, new)).live()


def downstream(program: Program, name: str) -> set[str]:
    """The tensors that depend on one."""
    found = {name}
    for s in program:
        if s.needs & found:
            found.add(s.name)
    return found - {name}


def _scored(s: Situation) -> tuple[Softmax, str] | None:
    """The softmax and the name of the score, where there is a mask to leak."""
    found = softmax_of(s.program)
    if found is None or not isinstance(found.score, sp.Indexed) or not leaked(s.program):
        return None
    return found, name_of(found.score)


def _no_effect(s: Situation) -> Iterator[Alternative]:
    if (found := _scored(s)) is not None:
        small = sp.Rational(1, 10**9)
        yield Alternative(program=unmasked(s.program, found[1], lambda z: z - small))
        yield Alternative("in place of the score", program=unmasked(s.program, found[1], lambda _: -small))


def _after_softmax(s: Situation) -> Iterator[Alternative]:
    """Weights over all keys, the masked ones set to 0 afterwards: rows sum to less than 1."""
    if (found := _scored(s)) is None:
        return
    softmax, conditions = found[0], leaked(s.program)
    late = {softmax.weight.name, *downstream(s.program, softmax.weight.name)}

    def free(x: Statement) -> Statement:
        if x.name in late or not {I, J} <= set(x.domain):
            return x
        return replace(x, where=sp.And(*[c for c in x.conditions if c not in conditions]))

    yield Alternative(program=s.program.with_statements([free(x) for x in s.program]))


def _softcap_after_mask(s: Situation) -> Iterator[Alternative]:
    """Tanh maps the -inf of masked scores to -cap."""
    capped = [x for x in s.program if x.expr.has(sp.tanh)]
    if len(capped) != 1 or s.definition.softcap is None or _scored(s) is None:
        return
    cap = sp.simplify(capped[0].expr / next(iter(capped[0].expr.atoms(sp.tanh))))
    yield Alternative(program=unmasked(s.program, capped[0].name, lambda _: -cap))


def _zero_scores(s: Situation) -> Iterator[Alternative]:
    """Masked scores are multiplied by 0: they keep the weight exp(0 - m)."""
    if (found := _scored(s)) is not None:
        yield Alternative(program=unmasked(s.program, found[1], lambda _: sp.Integer(0)))


def _padding(s: Situation) -> Iterator[Alternative]:
    """Keys of zeros behind the last one: each adds exp(0 - m) to the normaliser of every row."""
    found = softmax_of(s.program)
    if found is None or not isinstance(found.shift, (sp.Indexed, sp.Symbol)) or s.definition.key_lengths:
        return
    m, divisor = s.sizes.get("M", 0), s.program[found.divisor]
    masked = any(causal_like(c) for c in conjuncts(pairs_condition(s.program)))
    few = ((f"{k} key{'s' * (k > 1)}", k) for k in (1, 2, 3))
    for label, count in (*few, *((f"tile {t}", -m % t) for t in tiles_of(s))):
        if count:
            level = np.asarray(math.log(count))
            after = in_empty_rows(partial(_always, level))
            said = label + ", appended behind the mask" * masked
            yield Alternative(said, program=_padded(s.program, divisor, found, count), after=after)


def _always(level: Array, _: Situation) -> Array:
    return level


def _constant(x: float) -> Callable[[Situation], Array]:
    return lambda _: np.asarray(x)


def _padded(program: Program, divisor: Statement, found: Softmax, count: int) -> Program:
    if not divisor.over:
        changed = [replace(x, expr=x.expr + count * sp.exp(-found.shift)) if x.name == divisor.name else x for x in program]
        return program.with_statements(changed)
    name = fresh(program, divisor.name + "k")
    keys = replace(divisor, target=tensor(name, *divisor.indices))
    pads = Statement(tensor(fresh(program, divisor.name + "pad"), *divisor.indices), count * sp.exp(-found.shift))
    whole = replace(divisor, expr=keys.target + pads.target, over=(), where=sp.true)
    out = [y for x in program for y in ((keys, pads, whole) if x.name == divisor.name else (x,))]
    return program.with_statements(out)


def limited(condition: Callable[[Situation], Iterator[tuple[str, sp.Basic]]]) -> Callable[[Situation], Iterator[Alternative]]:
    """The keys limited by one more condition, in all statements over queries and keys."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        if softmax_of(s.program) is None or s.sizes.get("M", 0) < 2:
            return
        for label, c in condition(s):
            yield Alternative(label, edit=also(c))

    return rewrite


def _whole_tiles(s: Situation) -> Iterator[tuple[str, sp.Basic]]:
    m = s.sizes["M"]
    for tile in tiles_of(s):
        if 0 < m // tile * tile < m:
            yield f"tile {tile}", sp.Lt(J, m // tile * tile)


def _first_tile(s: Situation) -> Iterator[tuple[str, sp.Basic]]:
    for tile in tiles_of(s):
        if tile < s.sizes["M"]:
            yield f"tile {tile}, the first left out", sp.Ge(J, tile)
    for tile in tiles_of(s):
        if tile < s.sizes["M"]:
            yield f"tile {tile}, the first alone", sp.Lt(J, tile)


def _boundary(s: Situation) -> Iterator[tuple[str, sp.Basic]]:
    """The last key of each tile left out."""
    for tile in tiles_of(s):
        if tile <= s.sizes["M"]:
            yield f"tile {tile}", sp.Ne(sp.Mod(J, tile), tile - 1)


def _last_maximum(s: Situation) -> Iterator[Alternative]:
    """The log-sum-exp with the maximum of the last tile in the place of that of all keys."""
    found = softmax_of(s.program)
    if found is None or found.lse is None or not isinstance(found.shift, sp.Indexed) or not isinstance(found.score, sp.Indexed):
        return
    own, where = found.lse, found.weight.where
    for tile in tiles_of(s):
        start = (s.sizes.get("M", 0) - 1) // tile * tile
        if start > 0:
            top = tensor(fresh(s.program, "mlast"), *found.shift.indices)
            last = Statement(top, found.score, (J,), "max", where=sp.And(where, sp.Ge(J, start)))
            new = replace(own, expr=own.expr.xreplace({found.shift: top}))
            yield Alternative(f"tile {tile}", edit=partial(_with_lse, own.name, last, new))


def _with_lse(name: str, before: Statement, new: Statement, p: Program) -> Program:
    return p.with_statements([y for x in p for y in ((before, new) if x.name == name else (x,))]) if name in p else p


def _normaliser_alone(s: Situation) -> Iterator[Alternative]:
    """A key that counts in the normaliser and not in the average, and the other way round."""
    found = softmax_of(s.program)
    if found is None or s.sizes.get("M", 0) < 2:
        return
    for label, c in (("the last key", sp.Lt(J, s.size("m") - 1)), ("the first key", sp.Ge(J, 1))):
        total = found.normalisation.total.name
        changed = [replace(x, where=sp.And(x.where, c)) if x.name == total else x for x in s.program]
        yield Alternative(f"{label} is missing in the sum of exponentials", program=s.program.with_statements(changed))
        changed = [replace(x, where=sp.And(x.where, c)) if J in x.over and found.weight.name in x.needs else x for x in s.program]
        yield Alternative(f"{label} is missing in the average", program=s.program.with_statements(changed))


def loaded(rewrite: Rewrite) -> Rewrite:
    """The same, and the same in a kernel that never loads keys which no query sees: they are read as 0."""

    def both(s: Situation) -> Iterator[Alternative]:
        for a in rewrite(s):
            yield a
            if starts_from_qkv(s):
                gone = unread(s.reference.call)[..., None]
                reads = {n: np.where(gone, -1, places(s.fields[n])) for n in ("key", "value")}
                label = " ".join(x for x in (a.label, "(keys that no query sees read as 0)") if x)
                yield replace(a, label=label, reads=reads)

    return both


_LEAK = "where the mask is applied: before the softmax, as -inf"
ROWS = (
    Fault(
        "F21", "softcap after the mask: masked keys keep the score -cap", "mathematics", "cap*tanh((s + mask)/cap)",
        "cap*tanh(s/cap) + mask", loaded(_softcap_after_mask), threads=("onnx#7865", "flash-attention#1025",
        "emx-onnx-cgen#731"),
        look="the order of softcap and mask", shows="a mask, and a cap that exp(-cap) is not lost for",
        blind="cap >= 17 in float32",
        convention="softcap",
    ),
    Fault(
        "F26", "mask after the softmax: rows sum to less than 1", "mathematics", "softmax(s) where keep", "softmax(s + mask)",
        loaded(_after_softmax), threads=("pytorch-image-models#2236",), look=_LEAK, shows="a mask", blind="no mask",
    ),
    Fault(
        "F28", "mask without effect (-1e-9 for -1e9)", "mathematics", "s - 1e-9", "s - infinity", loaded(_no_effect),
        threads=("RibonanzaNet#5",), look="the constant that stands for -infinity", shows="a mask",
    ),
    Fault(
        "F29", "masked scores become 0 instead of -infinity", "mathematics", "s*keep", "s where keep", loaded(_zero_scores),
        look=_LEAK,
        shows="a mask",
    ),
    Fault(
        "F33", "zero-padded keys are not masked: each adds exp(0 - m) to the normaliser", "mathematics",
        "sum_j exp(s - m) + n_pad*exp(-m)", "sum_j exp(s - m)", _padding, threads=("flashinfer#5090", "tt-metal#38004"),
        look="the mask of the last tile of keys",
        shows="m no multiple of the tile; under a causal mask where they are appended behind it",
        blind="scores far above 0",
    ),
    Fault(
        "F174", "LSE with the maximum of the last tile", "mathematics", "m_last + ln(l)", "m + ln(l)", _last_maximum,
        look="which maximum is added back at the end", shows="the LSE of rows whose maximum is not in the last tile",
        blind="one tile",
    ),
    Fault(
        "F87", "the last key is left out", "mathematics", "j < m - 1", "j < m",
        limited(lambda s: iter([("", sp.Lt(J, s.size("m") - 1))])), look="the end of the loop over the keys",
    ),
    Fault(
        "F88", "the first key is left out", "mathematics", "j >= 1", "j >= 0", limited(lambda s: iter([("", sp.Ge(J, 1))])),
        look="the start of the loop over the keys",
    ),
    Fault(
        "F89", "the last, partial tile of keys is left out", "mathematics", "j < floor(m/T)*T", "j < m",
        limited(_whole_tiles),
        look="the number of tiles: floor for ceil", shows="m no multiple of the tile", blind="m a multiple of the tile",
    ),
    Fault(
        "F90", "a tile of keys is left out", "mathematics", "j >= T, or j < T", "all keys", limited(_first_tile),
        look="the bounds of the loop over tiles", shows="more keys than a tile",
    ),
    Fault(
        "F91", "the last key of every tile is left out", "mathematics", "j mod T < T - 1", "all keys", limited(_boundary),
        look="the bound of the mask in a tile", shows="more keys than a tile",
    ),
    Fault(
        "F92", "a key counts in the normaliser or in the average, and not in both", "mathematics", "sum over j < m - 1",
        "sum over j < m", _normaliser_alone, look="the two loops over the keys, or the masks of the two products",
    ),
)  # fmt: skip

__all__ = ["ROWS", "TILES", "downstream", "leaked", "limited", "unmasked"]
