"""The sections of a kernel that walks along tiles: its state, what holds of it after every tile, and the induction that shows it.

Every equation is an expression that the normal form is asked about before it is printed, and the page says what the answer was.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise

import sympy as sp

from symattn.derivation.blocks import Block, Display, Part, Prose, Section
from symattn.derivation.document import Formula
from symattn.derivation.script import Script, both
from symattn.indexed import Tensor, name_of, reads
from symattn.program import Statement
from symattn.sums import SumOver
from symattn.theorems.walks import Walk

__all__ = ["NOT_SHOWN", "SHOWN", "Walking", "score_of", "tiles_section"]

SHOWN, NOT_SHOWN = "normal form", "not shown here"
STATES = ("ls", "Os")


def tiles_section(walk: Walk, script: Script) -> Section:
    """How keys are cut."""
    tiles = walk.tiles
    if not tiles.places:
        return Section("The keys", (Prose(("The keys come one after the other; a tile is one key.",)),))
    count = walk.ranges[tiles.tile]
    cut = walk.program["E"]
    key = both(lambda style: f"{script.tex(tiles.index, style)} = {script.tex(tiles.position, style, cut)}")
    number = both(lambda style: f"T = {script.tex(count, style)}")
    place, width = script.expression(tiles.places[0]), script.expression(tiles.block)
    parts: tuple[Part, ...] = ("The keys are cut into ", number, " tiles of ", width, " keys, the last one perhaps shorter. Key ")
    parts += (script.expression(tiles.index), " is at place ", place, " of its tile. Division with remainder:")
    blocks: list[Block] = [Prose(parts), Display((key,))]
    for s in walk.order:
        blocks += [Prose(("The tiles are visited in an order of their own, every one once:",)), Display((script.statement(s),))]
    return Section("The tiles", tuple(blocks))


def score_of(e: Statement) -> tuple[sp.Expr, Tensor]:
    """The score in ``E = exp(score - shift)``, and the shift."""
    inside = e.expr.args[0]
    shift = next(x for x in reads(inside) if name_of(x) in ("ms", "mt", "m"))
    return inside + shift, shift


class Walking:
    """A forward list with a running maximum, denominator and output, beside its definition.

    Parameters
    ----------
    walk
        The list, with the number of tiles as a size of its own.
    script
        How formulas are written.
    """

    def __init__(self, walk: Walk, script: Script) -> None:
        self.walk, self.script, self.program = walk, script, walk.program
        self.t, self.before = walk.t, walk.before
        _ = walk.statements

    @cached_property
    def last(self) -> sp.Expr:
        """The last tile."""
        return self.walk.count - 1

    def sections(self) -> Iterator[Section]:
        """State, invariant, base, step, conclusion."""
        yield tiles_section(self.walk, self.script)
        yield self.state()
        yield self.invariant()
        yield self.base()
        yield self.step()
        yield self.conclusion()

    # ---------------------------------------------------------------- what is shown
    def state(self) -> Section:
        """The statements of one step."""
        names = ("seen", "ms0", "ms", "E", "rs", "lt", "Ot", *STATES)
        shown = [
            self.script.statement(self.program[n], where=n in ("seen", "ms0", "ms", "rs")) for n in names if n in self.program
        ]
        lead = Prose(
            (
                "After every tile a row is known by three things: the largest score so far, a sum of exponentials, and a sum of "
                "values, both relative to that maximum. When the maximum grows, what was summed is multiplied by ",
                self.script.expression(self.program["rs"].target),
                ". Before the first tile the sums are 0.",
            )
        )
        return Section("The state of a row", (lead, Display(tuple(shown))), "by definition of the algorithm")

    def invariant(self) -> Section:
        """What holds after every tile."""
        formulas, beside = [], []
        for n in STATES:
            left = self.program[n].target
            closed, whole = self._closed(n), self._whole(n, self.t)
            formulas.append(self.script.chain((left, closed, whole), self.program[n]))
            beside.append(self._known(self.walk.with_closed(left), whole))
        lead = Prose(
            (
                "Claim: after tile ",
                self.script.expression(self.t),
                " both sums are what they would be if every key so far had been shifted by the maximum of now:",
            )
        )
        tail = Prose(
            (
                "Nothing is used of the running maximum but its name: the claim holds for any shifts, "
                "and a maximum keeps exp in range.",
            )
        )
        return Section("The invariant", (lead, Display(tuple(formulas), tuple(beside)), tail))

    def base(self) -> Section:
        """The first tile."""
        formulas, beside = [], []
        for n in STATES:
            s = self.program[n]
            at: dict[sp.Basic, sp.Basic] = {self.t: sp.S.Zero}
            nothing = s.target.xreplace({self.t: self.t - 1})
            left, first = s.target.xreplace(at), s.expr.xreplace({nothing: sp.S.Zero}).xreplace(at)
            closed = self.walk.closed[n]
            one_term = closed.expr.xreplace({closed.over[0]: sp.S.Zero}).xreplace(at)
            formulas.append(self.script.chain((left, first), s))
            beside.append("one term, with factor exp(0) = 1" if sp.expand(one_term - first) == 0 else NOT_SHOWN)
        lead = Prose(
            ("Before the first tile both sums are 0, so there is nothing to rescale. The sum of the claim has one term:",)
        )
        return Section("Base: the first tile", (lead, Display(tuple(formulas), tuple(beside))))

    def step(self) -> Section:
        """From one tile to the next."""
        blocks: list[Block] = [
            Prose(
                (
                    "Let the claim hold after tile ",
                    self.script.expression(self.t - 1),
                    ". The step of the algorithm, with the claim put in:",
                )
            )
        ]
        for n in STATES:
            lines, beside = self._step_lines(n)
            blocks.append(Display(lines, beside))
        return Section("Step: one more tile", tuple(blocks))

    def _step_lines(self, n: str) -> tuple[tuple[Formula, ...], tuple[str, ...]]:
        s, closed = self.program[n], self.walk.closed[n]
        past = s.target.xreplace({self.t: self.t - 1})
        older = sp.Le(self.before, self.t - 1)
        gain, new = self.program["rs"], s.expr.coeff(past, 0)
        held = SumOver(closed.expr.xreplace({self.t: self.t - 1}), self.before, where=older)
        joined = SumOver(closed.expr, self.before, where=older)
        lines = [s.expr, gain.target * held + new, joined + new, self._closed(n)]
        reasons = [
            "the step",
            "the claim for the tile before",
            "exponents add up, and the older maximum drops out",
            "one sum: the new tile is its last term",
        ]
        formulas = [self.script.chain((s.target, e), s) for e in lines]
        known = [True]
        known += [self.walk.holds(self._spelled(a), self._spelled(b)) for a, b in pairwise(lines)]
        beside = tuple(r if k else f"{r} ({NOT_SHOWN})" for r, k in zip(reasons, known, strict=True))
        return tuple(formulas), beside

    def conclusion(self) -> Section:
        """The output after the last tile, and why no shift is left in it."""
        at: dict[sp.Basic, sp.Basic] = {self.t: self.last}
        formulas, beside = [], []
        for n in STATES:
            left = self.program[n].target.xreplace(at)
            whole = self._over_keys(n)
            formulas.append(self.script.chain((left, whole), self.program[n]))
            beside.append(self._known(self.walk.with_closed(left), whole))
        output = next(n for n in ("O0", "Og", "O") if n in self.program)
        lead = Prose(("After the last tile the sums are over all keys, every key once:",))
        tail: tuple[Part, ...] = ("Their quotient is ", self.script.expression(self.program[output].target))
        tail += (" of the definition: the factor exp of the last maximum stands above and below. And ",)
        if "L" in self.program:
            tail += (self.script.statement(self.program["L"], where=False), " is its log-sum-exp, for the same reason.")
        else:
            tail += ("it cancels, whatever it is.",)
        return Section("After the last tile", (lead, Display(tuple(formulas), tuple(beside)), Prose(tail)))

    # ---------------------------------------------------------------- expressions
    def _closed(self, n: str) -> SumOver:
        closed = self.walk.closed[n]
        return SumOver(closed.expr, *closed.over, where=closed.where)

    def _term(self, n: str, shift: sp.Expr, at: sp.Expr) -> tuple[sp.Expr, sp.Basic]:
        """What one key of tile ``at`` gives, relative to a shift."""
        e = self.program["E"]
        score, _ = score_of(e)
        factor = self._value() if n == "Os" else sp.S.One
        where = self.program["Ot"].where if n == "Os" else e.where
        move = {self.t: at}
        return sp.exp(score.xreplace(move) - shift) * factor.xreplace(move), where.xreplace(move)

    def _value(self) -> sp.Expr:
        return self.program["Ot"].expr / self.program["E"].target

    def _whole(self, n: str, at: sp.Expr) -> SumOver:
        """The sum over all places of the tiles up to ``at``."""
        shift = self.program["ms"].target.xreplace({self.t: at})
        term, where = self._term(n, shift, self.before)
        return SumOver(term, self.before, *self.walk.tiles.places, where=sp.And(sp.Le(self.before, at), where))

    def _over_keys(self, n: str) -> SumOver:
        """The sum over all places of all tiles, with the last maximum as shift."""
        term, where = self._term(n, self.program["ms"].target.xreplace({self.t: self.last}), self.t)
        return SumOver(term, *self.walk.tiles.axes, where=where)

    def _spelled(self, e: sp.Expr) -> sp.Expr:
        return self.walk.with_closed(e)

    def _known(self, left: sp.Expr, right: sp.Expr) -> str:
        return SHOWN if self.walk.holds(left, right) else NOT_SHOWN
