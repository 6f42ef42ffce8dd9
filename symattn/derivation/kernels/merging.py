"""The sections of a kernel whose parts are merged: what each part gives, how they are merged, and why that is one softmax."""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from symattn.derivation.blocks import Display, Part, Prose, Section
from symattn.derivation.kernels.induction import NOT_SHOWN, SHOWN, score_of, tiles_section
from symattn.derivation.script import Script
from symattn.sums import SumOver
from symattn.theorems.walks import Walk

__all__ = ["merging_sections"]


def merging_sections(walk: Walk, script: Script) -> Iterator[Section]:
    """Parts, merge, and the equations that make them one sum over all keys."""
    p = walk.program
    _ = walk.statements
    yield tiles_section(walk, script)
    parts = [script.statement(p[n], where=False) for n in ("mt", "E", "lt", "Ot", "Lt") if n in p]
    lead = Prose(("Every part is attention over its own keys: an output, and the log-sum-exp of its scores.",))
    yield Section("The parts", (lead, Display(tuple(parts))), "by definition of the algorithm")
    merged = [script.statement(p[n], where=False) for n in ("m0", "m", "wt", "E0", "lk", "l", _output(walk), "L") if n in p]
    text: tuple[Part, ...] = ("The outputs are averaged; the share of a part is the exponential of its log-sum-exp, shifted by ",)
    text += (script.expression(p["m"].target), " for range only.")
    yield Section("The merge", (Prose(text), Display(tuple(merged))), "by definition of the algorithm")
    yield _one_sum(walk, script)


def _output(walk: Walk) -> str:
    return next(n for n in ("O0", "Og", "O") if n in walk.program)


def _one_sum(walk: Walk, script: Script) -> Section:
    p, t, places = walk.program, walk.t, walk.tiles.places
    score, _ = score_of(p["E"])
    m = p["m"].target
    value = p["Ot"].expr / (p["E"].target / p["lt"].target)
    some = walk.witnessed(p["wt"]).where
    share, total = p["wt"].target, p["lk" if "lk" in p else "l"].target
    sums = SumOver(share * p["Ot"].target, t, where=some), SumOver(sp.exp(score - m) * value, t, *places, where=p["Ot"].where)
    below = SumOver(share, t, where=some), SumOver(sp.exp(score - m), t, *places, where=p["E"].where)
    out = p[_output(walk)]
    rows = (
        (out.target * p["l"].target, sums, ("l",), ("lt", "l"), out),
        (total, below, (), (), p["l"]),
    )
    formulas, beside = [], []
    for left, (first, second), one, two, s in rows:
        formulas.append(script.chain((left, _shown(first), second), s))
        fine = walk.form(*one).equal(left, first) and walk.form(*two).equal(first, second)
        beside.append(SHOWN if fine else NOT_SHOWN)
    lead = Prose(
        (
            "The share of a part times its normalised weights is the exponential of a score, shifted: "
            "the maximum of the part is gone.",
        )
    )
    tail = Prose(("Both are sums over all keys with one shift, so their quotient is the softmax mean of the definition.",))
    return Section("Why it is one softmax", (lead, Display(tuple(formulas), tuple(beside)), tail))


def _shown(e: SumOver) -> SumOver:
    """The sum without the condition that a part has keys: a part without any has the share 0."""
    return SumOver(e.body, *e.over)
