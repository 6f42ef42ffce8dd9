"""Tensors of channels in pairs, taken apart: what a program says of the two channels of any pair, as expressions in scalars.

The width is written ``2 (p + 1 + g)`` with p and g any numbers from 0, so that pair p of every even width is meant; conditions on
the channel (``c < d/2``, ``Mod(c, 2) = 0``) then decide themselves. The two channels of a pair have numbers that the program
gives them; that each channel is in one pair is how they are numbered: c and c + d/2, or 2 p and 2 p + 1.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import sympy as sp

from symattn.indexed import conjuncts, name_of, reads, subscripts_of
from symattn.program import Program

__all__ = ["FIRST", "LATER", "Entries", "same_frequencies"]

FIRST = sp.Symbol("p", integer=True, nonnegative=True)
LATER = sp.Symbol("g", integer=True, nonnegative=True)
"""Which pair it is, and how many come after it."""


class Entries:
    """The entries of a program's tensors at channels that are given.

    Parameters
    ----------
    program
        The statements.
    inside
        The tensors that are written out; every other one is a real symbol, named after it and its channel.
    channel
        The index of channels.
    width
        Size -> its value, such as ``d -> 2 (p + 1 + g)``.

    >>> from symattn.definition import Definition
    >>> from symattn.indexed import index, size
    >>> c, d = index("c"), size("d")
    >>> rope = Entries(Definition(rope="half").program(), {"Qturn", "Qneg", "Qpos"}, c, {d: 2 * (FIRST + 1 + LATER)})
    >>> rope.at("Qturn", FIRST, {FIRST: "1", 2 * FIRST + 1 + LATER: "2"})
    -Q2
    """

    def __init__(self, program: Program, inside: Collection[str], channel: sp.Symbol, width: Mapping[sp.Basic, sp.Expr]) -> None:
        self.program, self.inside, self.channel, self.width = program, frozenset(inside), channel, dict(width)

    def at(self, name: str, channel: sp.Expr, labels: Mapping[sp.Expr, str]) -> sp.Expr:
        """The entry of ``name`` at a channel; ``labels`` says how channels are called in the names of symbols."""
        s = self.program[name]
        here = {**self.width, **({self.channel: channel} if self.channel in s.indices else {})}
        expr = self._opened(s.expr.xreplace(here), labels)
        kept: list[sp.Basic] = []
        for c in conjuncts(s.where):
            if self.channel not in c.free_symbols:
                continue  # a mask of the row, the same for all channels
            decided = c.xreplace(here)
            if decided == sp.false:
                return sp.S.Zero
            if decided != sp.true:
                kept.append(decided)
        return sp.Piecewise((expr, sp.And(*kept)), (0, True)) if kept else expr

    def _opened(self, e: sp.Expr, labels: Mapping[sp.Expr, str]) -> sp.Expr:
        table = {}
        for x in reads(e):
            at = subscripts_of(x)
            own = self.program[name_of(x)].indices if name_of(x) in self.inside else ()
            if name_of(x) in self.inside:
                where = dict(zip(own, at, strict=True)).get(self.channel, sp.S.Zero)
                table[x] = self.at(name_of(x), sp.expand(where), labels)
            elif at:
                end = sp.expand(at[-1])
                table[x] = sp.Symbol(f"{name_of(x)}{labels.get(end, f'[{end}]')}", real=True)
            else:
                table[x] = sp.Symbol(name_of(x), real=True)
        return e.xreplace(table)


def same_frequencies(expressions: tuple[sp.Expr, ...], letter: str = "theta") -> tuple[sp.Expr, ...]:
    """The expressions with every frequency a symbol: equal ones get the same one.

    A frequency is what multiplies a position in a sine or cosine, marked by a function ``freq`` around it.

    >>> f, x = sp.Function("freq"), sp.Symbol("x", positive=True)
    >>> same_frequencies((f(x / 2) + f(x * (2 - 1) / 2), f(x)))
    (2*theta, theta2)
    """
    found: list[tuple[sp.Expr, sp.Symbol]] = []
    table: dict[sp.Basic, sp.Symbol] = {}
    for f in dict.fromkeys(f for e in expressions for f in sorted(e.atoms(sp.Function("freq")), key=str)):
        what = f.args[0]
        same = next((y for x, y in found if x == what or sp.simplify(x - what) == 0), None)
        if same is None:
            same = sp.Symbol(letter + (str(len(found) + 1) if found else ""), real=True)
            found.append((what, same))
        table[f] = same
    return tuple(e.xreplace(table) for e in expressions)
