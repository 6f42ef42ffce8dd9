"""Escalation: only what is still open goes on to the next precision, cut out of its program; everything else stays as it is.

One evaluation of everything comes first, by the first tier that takes it. After that, open elements are gathered by the rows that
they lie in (:mod:`symattn.truth.restricted`), and the program of those rows alone is evaluated at rising precision. Between the
first evaluation of full precision and the next one, ties and zeros that the program shows are settled exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from symattn.errors import UndecidedError
from symattn.program import Program
from symattn.truth import settled
from symattn.truth.enclosure import Enclosure, How
from symattn.truth.parts import Part, job_of, parts_of, places
from symattn.truth.patched import Joined, Patched
from symattn.truth.questions import Question, floor_of, tiny
from symattn.truth.tiers import Found, Job, Taken, Tier, take
from symattn.truth.values import Values

__all__ = ["Plan", "Step", "escalate"]

Positions: TypeAlias = npt.NDArray[np.intp]
Bools: TypeAlias = npt.NDArray[np.bool_]
BUDGET = 4
"""How many times the points of one settling are spent on all of it."""
SPARE = 12
"""Bits that a tier of one precision has to have beyond what the question needs, to be tried."""
DEEPEST = 4096
"""Bits beyond the cap that are spent to tell a value from the smallest subnormal number."""


@dataclass(frozen=True)
class Plan:
    """How far to go.

    Parameters
    ----------
    question
        What is asked of every element.
    start
        The first full precision, in bits.
    cap
        Up to which it is doubled.
    tiers
        The tiers that may be used, in order.
    digits
        Significant digits that are asked for: elements below ``10^(-2 digits)`` of the largest are tiny. 0: none are.
    patient
        Go on to the cap for elements that may be 0, though nothing but tiny ones is left.
    depth
        Half of the smallest subnormal number of the format that is asked for: an element that may be 0 is followed down to it.
    settles
        Whether ties and zeros are settled exactly.
    """

    question: Question
    start: int
    cap: int
    tiers: tuple[Tier, ...]
    digits: int = 0
    patient: bool = False
    depth: Fraction | None = None
    settles: bool = True


@dataclass(frozen=True)
class Step:
    """One round of an escalation: which tier took how many elements at which precision, and what it left.

    Parameters
    ----------
    tier, bits
        Who, at which working precision.
    asked, left
        Elements that were open before it, and after it.
    rows
        How many parts of the program were evaluated; 0: all of it.
    declined
        Why the tiers before it did not take it, by name.
    """

    tier: str
    bits: int
    asked: int
    left: int
    rows: int = 0
    declined: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        where = f"{self.rows} part{'s' * (self.rows != 1)} of the program" if self.rows else "the whole program"
        at = f" at {self.bits} bits" if self.bits else ""
        text = f"{self.tier}{at}, {where}: {self.asked} elements open before, {self.left} after"
        return text + "".join(f"\n  not by {name}: {why}" for name, why in self.declined.items())


class _Tensor:
    """One output: its values, and how each element is known."""

    def __init__(self, found: Found, tier: str, opened: Bools) -> None:
        self.values, self.open = found.values, opened
        self.known: list[How] = []
        self.codes = np.zeros(found.values.shape, dtype=np.uint8)
        flat = np.arange(found.values.size)
        self.name(flat, found.values, tier, found.assumption, opened.ravel())

    def name(self, at: Positions, values: Values, tier: str, assumption: str | None, opened: Bools) -> None:
        """Say of elements how they are known."""
        points = values.points().ravel() & (assumption is None)
        self.mark(at[points], How("exact", tier))
        self.mark(at[~points & ~opened], How("bounded" if assumption else "enclosed", tier, assumption))
        self.mark(at[~points & opened], How("undecided", tier, assumption))

    def mark(self, at: Positions, how: How) -> None:
        """Set how some elements are known."""
        if at.size:
            if how not in self.known:
                self.known.append(how)
            self.codes.ravel()[at] = self.known.index(how)

    def patch(self, at: Positions, pieces: list[Values], tier: str, assumption: str | None, opened: Bools) -> None:
        """Put other values in place of some elements: those that are decided by them, and those that became narrower."""
        found = pieces[0] if len(pieces) == 1 else Joined(pieces)
        before = self.values.magnitudes()[1].ravel()[at]
        better = ~opened | (found.magnitudes()[1] <= before)
        source = np.full(self.values.shape, -1, dtype=np.int64)
        source.ravel()[at[better]] = np.flatnonzero(better)
        self.values = Patched(self.values, found, source)
        self.open.ravel()[at] = opened
        kept = np.flatnonzero(better)
        piece = found.each(lambda a: a[kept]) if not better.all() else found
        self.name(at[kept], piece, tier, assumption, opened[kept])

    def enclosure(self) -> Enclosure:
        """What is known in the end."""
        return Enclosure.of(self.values, self.codes, tuple(self.known))


def escalate(job: Job, plan: Plan) -> tuple[dict[str, Enclosure], list[Step]]:
    """The enclosures that answer a question, or come as near as the plan allows, and the rounds that it took.

    Parameters
    ----------
    job
        The program, its inputs and what is wanted; its precision is set by the plan.
    plan
        The question, the tiers and how far to go.

    Raises
    ------
    UndecidedError
        When a condition of the program is not decided at the cap.
    """
    steps: list[Step] = []
    bits, tensors = _first(job, plan, steps)
    others = tuple(t for t in plan.tiers if not t.quick)
    settle = plan.settles
    failed: UndecidedError | None = None
    while _open(tensors):
        if settle and (bits >= plan.start or not others):
            settle = False
            _settle(job, tensors, steps)
            continue
        if bits > plan.start and plan.digits and not plan.patient and _only_tiny(tensors, plan.digits):
            break
        following = plan.start if bits < plan.start else 2 * bits
        if not others or (bits and following > plan.cap):
            break
        bits = following
        failed = _round(replace(job, bits=bits), plan, tensors, steps)
    if _open(tensors) and others and plan.depth is not None:
        deeper = bits + _depth(tensors, plan.depth)
        if deeper > bits:
            failed = _round(replace(job, bits=deeper), plan, tensors, steps)
    if failed is not None and any((t.open & np.isinf(t.values.magnitudes()[1])).any() for t in tensors.values()):
        raise failed
    if plan.digits:
        _mark_tiny(tensors, plan.digits)
    return {n: t.enclosure() for n, t in tensors.items()}, steps


def _first(job: Job, plan: Plan, steps: list[Step]) -> tuple[int, dict[str, _Tensor]]:
    """One evaluation of everything; where a condition is not decided, at the next precision."""
    quick = tuple(t for t in plan.tiers if t.quick)
    bits = plan.start
    declined: dict[str, str] = {}
    if quick:
        need = plan.question.bits + SPARE
        try:
            taken = take(replace(job, bits=min(need, plan.start)), quick)
        except UndecidedError:
            if len(quick) == len(plan.tiers):
                raise
            declined = {t.name: _why(t, replace(job, bits=min(need, plan.start))) for t in quick}
        else:
            return 0, _begin(taken, 0, plan, steps)
    others = tuple(t for t in plan.tiers if not t.quick)
    while True:
        try:
            taken = take(replace(job, bits=bits), others)
        except UndecidedError:
            if 2 * bits > plan.cap or not others:
                raise
            bits *= 2
        else:
            return bits, _begin(Taken(taken.tier, taken.found, {**declined, **taken.declined}), bits, plan, steps)


def _why(t: Tier, job: Job) -> str:
    return t.refusal(job) or "its result is not proved, or does not decide a condition"


def _begin(taken: Taken, bits: int, plan: Plan, steps: list[Step]) -> dict[str, _Tensor]:
    opened = {n: plan.question.open(n, f.values) for n, f in taken.found.items()}
    tensors = {n: _Tensor(f, taken.tier, opened[n]) for n, f in taken.found.items()}
    total = sum(f.values.size for f in taken.found.values())
    reach = next((t.reach for t in plan.tiers if t.name == taken.tier and t.quick), None)
    steps.append(Step(taken.tier, bits or reach or 0, total, _open(tensors), 0, taken.declined))
    return tensors


def _open(tensors: Mapping[str, _Tensor]) -> int:
    return sum(int(t.open.sum()) for t in tensors.values())


def _round(job: Job, plan: Plan, tensors: dict[str, _Tensor], steps: list[Step]) -> UndecidedError | None:
    """One precision, for what is open; a condition that it does not decide is given back, and its part stays open."""
    others = tuple(t for t in plan.tiers if not t.quick)
    results: dict[str, list[tuple[Part, Taken]]] = {}
    failed: UndecidedError | None = None
    for part in parts_of(job.program, job.sizes, {n: t.open for n, t in tensors.items()}):
        try:
            taken = take(job_of(job, part), others)
        except UndecidedError as error:
            failed = error
            continue
        results.setdefault(taken.tier, []).append((part, taken))
    for tier, done in results.items():
        before = _open(tensors)
        for n in dict.fromkeys(n for part, _ in done for n in part.at):
            _take_in(job.program, plan, tensors[n], n, tier, [(p, t.found[n]) for p, t in done if n in p.at])
        declined = {name: why for _, taken in done for name, why in taken.declined.items()}
        whole = any(not part.positions for part, _ in done)
        steps.append(Step(tier, job.bits, before, _open(tensors), 0 if whole else len(done), declined))
    if failed is not None and not results:
        steps.append(Step("none", job.bits, _open(tensors), _open(tensors), 0, {t.name: str(failed) for t in others[-1:]}))
    return failed


def _take_in(program: Program, plan: Plan, tensor: _Tensor, name: str, tier: str, done: list[tuple[Part, Found]]) -> None:
    """Put into a tensor what a tier found of some parts of it."""
    for assumption in dict.fromkeys(f.assumption for _, f in done):
        where, pieces, opened = [], [], []
        for part, found in (d for d in done if d[1].assumption == assumption):
            at = part.at[name]
            local = places(at, tensor.values.shape, program[name].indices, part.positions, found.values.shape)
            piece = found.values.each(partial(_picked, local))
            where.append(at)
            pieces.append(piece)
            opened.append(plan.question.open(name, piece, at))
        tensor.patch(np.concatenate(where), pieces, tier, assumption, np.concatenate(opened))


def _picked(at: Positions, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return array.reshape(-1)[at]


def _settle(job: Job, tensors: dict[str, _Tensor], steps: list[Step]) -> None:
    """What the program shows exactly, of the elements that are open."""
    before, done, reasons = _open(tensors), 0, {}
    left = settled.POINTS * BUDGET
    shapes = {n: t.values.shape for n, t in tensors.items()}
    parts = parts_of(job.program, job.sizes, {n: t.open for n, t in tensors.items()})
    for part in (p for whole in parts for p in _smaller(job, whole, shapes)):
        small = job_of(job, part)
        left -= settled.points_of(small.program, small.sizes)
        try:
            if left < 0:
                raise UndecidedError(f"more than {settled.POINTS * BUDGET} points")
            found = settled.settle(small.program, small.inputs, small.sizes, part.outputs)
        except UndecidedError as why:
            reasons["settled"] = str(why)
            continue
        done += 1
        for n, at in part.at.items():
            here = places(at, tensors[n].values.shape, job.program[n].indices, part.positions, found[n].shape)
            exact = [(k, x) for k, x in zip(at.tolist(), found[n].ravel()[here].tolist(), strict=True) if x is not None]
            if exact:
                settled.check(n, tensors[n].values, exact)
                where = np.array([k for k, _ in exact], dtype=np.intp)
                values = settled.values_of([x for _, x in exact])
                tensors[n].patch(where, [values], "settled", None, np.zeros(len(exact), dtype=bool))
    steps.append(Step("settled", 0, before, _open(tensors), done, reasons))


def _smaller(job: Job, part: Part, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[Part]:
    """A part in pieces of so few rows that each can be settled."""
    small = job_of(job, part)
    count = -(-settled.points_of(small.program, small.sizes) // settled.POINTS)
    if count == 1 or not part.positions:
        yield part
        return
    a = max(part.positions, key=lambda a: len(part.positions[a]))
    for rows in np.array_split(np.array(part.positions[a]), min(count, len(part.positions[a]))):
        of = {n: np.unravel_index(x, shapes[n])[job.program[n].indices.index(a)] for n, x in part.at.items()}
        at = {n: part.at[n][np.isin(of[n], rows)] for n in part.outputs}
        kept = {n: x for n, x in at.items() if x.size}
        if kept:
            yield Part(tuple(kept), {**part.positions, a: tuple(rows.tolist())}, kept)


def _only_tiny(tensors: Mapping[str, _Tensor], digits: int) -> bool:
    """Whether all that is open holds 0 and is certainly below the floor of what counts."""
    floor = floor_of({n: t.values for n, t in tensors.items()}, digits)
    return all(all(tiny(t.values, np.flatnonzero(t.open), floor, around_zero=True)) for t in tensors.values())


def _mark_tiny(tensors: Mapping[str, _Tensor], digits: int) -> None:
    """Say ``tiny`` of what is below the floor, of what is open and of what is too small to be written out."""
    short = {n: np.flatnonzero(t.open | t.values.lost()) for n, t in tensors.items()}
    if not any(at.size for at in short.values()):
        return
    floor = floor_of({n: t.values for n, t in tensors.items()}, digits)
    for n, at in short.items():
        t = tensors[n]
        small = np.array(tiny(t.values, at, floor), dtype=bool)
        codes = t.codes.ravel()[at]
        for code in np.unique(codes).tolist():
            known = t.known[code]
            t.mark(at[small & (codes == code)], How("tiny", known.tier, known.assumption))
            t.mark(at[~small & (codes == code)], How("undecided", known.tier, known.assumption))


def _depth(tensors: Mapping[str, _Tensor], eta: Fraction) -> int:
    """How many more bits tell open elements that may be 0 from the smallest subnormal number; 0 where it is far."""
    most = 0
    for t in tensors.values():
        for m, r in zip(*t.values.exact(np.flatnonzero(t.open)), strict=True):
            if isinstance(m, Fraction) and isinstance(r, Fraction) and abs(m) <= r and r >= eta:
                ratio = r / eta
                most = max(most, ratio.numerator.bit_length() - ratio.denominator.bit_length() + 8)
    return most if most <= DEEPEST else 0
