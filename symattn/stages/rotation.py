"""Rotary positions: pairs of channels of queries and keys are turned by angles that grow with the position.

Pair p of a vector at position t is turned by ``t * f(p)``. A quarter turn puts the other channel of the pair in the place of
each, the second one negated; the turn by any angle is ``Qrot = Q cos(angle) + Qturn sin(angle)``, channel by channel.

The frequencies ``Th`` have an entry per channel (both of a pair have the same one), so that the tables ``CQ SQ CK SK`` of cosines
and sines multiply the vectors entry by entry, as implementations do it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import sympy as sp

from symattn.building import Builder
from symattn.grammar import FREQUENCY_NAMES, parse_frequency
from symattn.indexed import Tensor, reads, size, tensor
from symattn.keep import exists
from symattn.stages.choices import without_choices
from symattn.stages.norms import key_count

STANDARD = "10000**(-2*p/r)"
"""The frequencies of the publication (arXiv 2104.09864, equation 15): p from 0 to r/2 - 1."""


@dataclass(frozen=True)
class Pairs:
    """Which channels are turned together.

    ``first`` and ``second`` are the conditions on c, ``step`` is how far apart the two channels are, ``number`` the pair of a
    first channel; None in ``rest`` where all channels are turned, else the condition on those that are not.
    """

    first: sp.Basic
    second: sp.Basic
    step: sp.Expr
    number: sp.Expr
    rest: sp.Basic | None


def pairs(pairing: str, width: int | None, c: sp.Symbol) -> Pairs:
    """The pairs of channels ``c`` of a definition's ``rope`` and ``rope_dim``.

    >>> from symattn.indexed import index
    >>> pairs("interleaved", None, index("c")).number
    c/2
    >>> pairs("half", 4, index("c")).second
    (c >= 2) & (c < 4)
    """
    r = size("d") if width is None else sp.Integer(width)
    inside = sp.true if width is None else sp.Lt(c, r)
    rest = None if width is None else sp.Ge(c, r)
    if pairing == "half":
        return Pairs(sp.Lt(c, r / 2), sp.And(sp.Ge(c, r / 2), inside), r / 2, c, rest)
    even, odd = sp.Eq(sp.Mod(c, 2), 0), sp.Eq(sp.Mod(c, 2), 1)
    return Pairs(sp.And(even, inside), sp.And(odd, inside), sp.Integer(1), c / 2, rest)


def rotated(b: Builder, base: tuple[str, str]) -> None:
    """Rotate what stands for the queries (named after ``base[0]``) and the keys (``base[1]``)."""
    d, at = b.d, b.at
    if d.rope is None:
        return
    by = pairs(d.rope, d.rope_dim, at["c"])
    if "Th" not in {s.name for s in b.statements}:
        _tables(b, by)
    b.query = _turned(b, by, base[0], lambda name, c: at.query(name, c), b.query, ("CQ", "SQ"), sp.true)
    b.key = _turned(b, by, base[1], lambda name, c: at.key(name, c), b.key, ("CK", "SK"), exists(d, at))


def _tables(b: Builder, by: Pairs) -> None:
    """Frequencies, and cosines and sines of the angles at the positions of queries and keys."""
    d, at = b.d, b.at
    c = at["c"]
    width = size("d") if d.rope_dim is None else sp.Integer(d.rope_dim)
    text = parse_frequency(STANDARD) if d.rope_frequencies is None else d.rope_frequencies
    formula = b.parameters.bind(at.read(text.xreplace({FREQUENCY_NAMES["r"]: width})))
    parts = []
    for name, first, where in (("Tha", c, by.first), ("Thb", c - by.step, by.second)):
        here = formula.xreplace({FREQUENCY_NAMES["p"]: by.number.xreplace({c: first})})
        here = without_choices(b, here, lambda w: tensor(w, c), where)
        parts.append(b.add(tensor(name, c), here, where=where, aux=True))
    frequency = b.add(tensor("Th", c), sp.Add(*parts))
    amplitude = sp.S.One if d.rope_amplitude is None else b.parameters.bind(at.read(d.rope_amplitude))
    turned = sp.true if by.rest is None else sp.Lt(c, width)
    for letter, position in (("Q", at["i"] + _start(b)), ("K", at["j"])):
        axes = (*(at.batch_axes if reads(position) else ()), at["i" if letter == "Q" else "j"], c)
        for name, function in (("C", sp.cos), ("S", sp.sin)):
            b.add(tensor(name + letter, *axes), amplitude * function(position * frequency), where=turned)


def _start(b: Builder) -> sp.Expr:
    """The position of the first query."""
    if b.d.rope_offset == "bottom-right":
        return key_count(b) - b.at.size_of("i")
    return sp.Integer(b.d.rope_offset) if isinstance(b.d.rope_offset, int) else sp.S.Zero


def _turned(
    b: Builder,
    by: Pairs,
    base: str,
    read: Callable[[str, sp.Expr], Tensor],
    name: str,
    tables: tuple[str, str],
    where: sp.Basic,
) -> str:
    """Add the rotation of the tensor ``name``; the name of the rotated one."""
    c = b.at["c"]
    row = "i" if tables[0] == "CQ" else "j"
    batch = b.at.batch_axes if row == "i" and b.d.rope_offset == "bottom-right" and b.d.key_lengths else ()
    cosine, sine = (tensor(t, *batch, b.at[row], c) for t in tables)
    minus = b.add(read(base + "neg", c), -read(name, c + by.step), where=sp.And(by.first, where), aux=True)
    plus = b.add(read(base + "pos", c), read(name, c - by.step), where=sp.And(by.second, where), aux=True)
    quarter = b.add(read(base + "turn", c), minus + plus, where=where, aux=True)
    turned = read(name, c) * cosine + quarter * sine
    if by.rest is not None:
        turned += b.add(read(base + "rest", c), read(name, c), where=sp.And(by.rest, where), aux=True)
    b.add(read(base + "rot", c), turned, where=where)
    return base + "rot"
