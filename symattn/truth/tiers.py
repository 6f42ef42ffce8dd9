"""The tiers: ways to enclose the values of a program, from fast to strong, each a row of one table.

A tier is a name, what it says when it does not take a job (``unfit``), and ``evaluate``. A new engine is one more row of
:data:`TIERS`; who asks for a truth sees in the result which tier took what, and why those before it did not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp
from sympy.core.relational import Relational
from sympy.functions.elementary.piecewise import ExprCondPair

from symattn.errors import LimitError, ProgramError, UndecidedError, UnfitError, UnknownNameError, nearest
from symattn.program import Program
from symattn.readings import balls, exact
from symattn.truth.settled import points_of
from symattn.truth.values import Balls, Floats, Objects, Values, object_array

if TYPE_CHECKING:
    from symattn.truth.work.run import Work

__all__ = ["TIERS", "Found", "Job", "Taken", "Tier", "is_rational", "take", "tier"]

EXACT_POINTS = 4000
"""Numbers in the inputs of a rational program up to which it is evaluated in fractions."""

LARGE = 1 << 22
"""Points of all domains from which on a job is done in blocks."""
SMALL = 300_000
"""Points of all domains up to which balls are as fast as an engine that has tables to build first."""

_RATIONAL = (sp.Add, sp.Mul, sp.Abs, sp.Max, sp.Min, sp.sign, sp.floor, sp.Mod, sp.Piecewise, ExprCondPair)
_LOGICAL = (Relational, sp.And, sp.Or, sp.Not)


@dataclass(frozen=True)
class Job:
    """One evaluation that is asked of a tier.

    Parameters
    ----------
    program
        Only statements that the outputs need.
    inputs
        Arrays of exact numbers: floats are the dyadic rationals that they are.
    sizes
        The number of each size, by name.
    outputs
        Names of the tensors that are wanted.
    bits
        Working precision; what a tier of fixed precision does not reach it does not take.
    digits
        Significant digits that are asked for, where that is the question: balls of so many are written out that far.
    proven
        Whether a result that rests on an assumption is of no use.
    guard
        How many of the bits are there for what is lost on the way: a tier that guarantees its bits needs half of them.
    work
        Where a large job is done, in blocks; None: here, in blocks only where its arrays would be large.
    """

    program: Program
    inputs: Mapping[str, Any]
    sizes: Mapping[str, int]
    outputs: tuple[str, ...]
    bits: int
    digits: int = 0
    proven: bool = True
    guard: int = 0
    work: Work | None = None


@dataclass(frozen=True)
class Found:
    """The values of a tensor as a tier leaves them, and what they rest on: text, or None where they are proved."""

    values: Values
    assumption: str | None = None


@dataclass(frozen=True)
class Tier:
    """A way to enclose values.

    Parameters
    ----------
    name
        What results call it.
    evaluate
        The enclosures that a job asks for, by name; or text that says why it turned out not to give them.
    unfit
        Why a job is not taken, None where it is.
    reach
        The most bits that it gives; None: any number.
    quick
        Whether it has one precision, and is tried first where a question needs no more than that.
    blocked
        Whether it goes through a job in blocks of its own, so that its arrays stay small.
    idle
        Why a job that it could do is left to the next tier.
    """

    name: str
    evaluate: Callable[[Job], dict[str, Found] | str]
    unfit: Callable[[Job], str | None] = lambda job: None
    reach: int | None = None
    quick: bool = False
    blocked: bool = False
    idle: Callable[[Job], str | None] = lambda job: None

    def refusal(self, job: Job, alone: bool = True) -> str | None:
        """Why a job is not taken: the precision, what the engine says, or that the next tier does it as well."""
        if self.reach is not None and job.bits > self.reach:
            return f"gives at most {self.reach} bits, {job.bits} are asked"
        return (None if alone else self.idle(job)) or self.unfit(job)


def is_rational(program: Program) -> bool:
    """Whether every statement is made of rational operations, so that rational inputs give rational values.

    >>> from symattn.program import Statement, tensor
    >>> x, y = tensor("x"), tensor("y")
    >>> is_rational(Program((Statement(y, x**2 / 3),), {}, ("y",))), is_rational(Program((Statement(y, sp.exp(x)),), {}, ("y",)))
    (True, False)
    """
    return all(_rational(e) for s in program for e in (s.expr, *s.conditions))


def _rational(e: sp.Basic) -> bool:
    if isinstance(e, (sp.Indexed, sp.Symbol, sp.Rational)) or e in (sp.true, sp.false, sp.oo, -sp.oo):
        return True
    if isinstance(e, sp.Pow):
        return bool(e.exp.is_Integer) and _rational(e.base)
    if isinstance(e, (*_RATIONAL, *_LOGICAL)):
        return all(_rational(a) for a in e.args)
    return False


def _no_fractions(job: Job) -> str | None:
    if not is_rational(job.program):
        return "the program holds more than rational operations"
    points = sum(np.asarray(v, dtype=object).size for v in job.inputs.values())
    return f"{points} numbers go in, and fractions are taken for up to {EXACT_POINTS}" if points > EXACT_POINTS else None


def _fractions(job: Job) -> dict[str, Found] | str:
    values = exact.evaluate(job.program, job.inputs, sizes=job.sizes)
    found: dict[str, Found] = {}
    for n in job.outputs:
        flat = values[n].ravel().tolist()
        if not all(x.is_Rational or x in (sp.nan, sp.oo, -sp.oo) for x in flat):
            return "an input is not rational"
        mids = object_array([Fraction(int(x.p), int(x.q)) if x.is_Rational else float(x) for x in flat], values[n].shape)
        found[n] = Found(Objects(mids, object_array([Fraction(0)] * len(flat), mids.shape)))
    return found


def _balls(job: Job) -> dict[str, Found]:
    values = balls.evaluate(job.program, job.inputs, sizes=job.sizes, bits=job.bits)
    scale = max(balls.SCALE, 4 * job.digits)
    return {n: Found(Balls(values[n], scale)) for n in job.outputs}


def _double(job: Job) -> dict[str, Found] | str:
    from symattn.truth import double

    try:
        found = double.evaluate(job.program, job.inputs, sizes=job.sizes, outputs=job.outputs, owned_exp=job.proven)
    except ProgramError as why:
        return str(why)
    return {n: Found(Floats(b.mid, b.rad), b.assumption) for n, b in found.items()}


def _no_limbs(job: Job) -> str | None:
    from symattn.truth import limbs

    return limbs.unfit(job.program, job.inputs, job.sizes)


def _limbs(job: Job) -> dict[str, Found] | str:
    from symattn.truth import limbs
    from symattn.truth.limbs.values import Limbs

    try:
        found = limbs.evaluate(job.program, job.inputs, sizes=job.sizes, bits=job.bits - job.guard // 2, outputs=job.outputs)
    except (UnfitError, LimitError) as why:
        return str(why)
    return {n: Found(Limbs(f)) for n, f in found.items()}


def _small(job: Job) -> str | None:
    points = points_of(job.program, job.sizes)
    return f"it is a small job, {points} points of {SMALL}, which balls do as fast" if points < SMALL else None


TIERS: tuple[Tier, ...] = (
    Tier("fractions", _fractions, _no_fractions, quick=True),
    Tier("double", _double, reach=53, quick=True, blocked=True),
    Tier("limbs", _limbs, _no_limbs, reach=900, blocked=True, idle=_small),
    Tier("balls", _balls),
)
"""All tiers, those that cost less first."""


def tier(name: str) -> Tier:
    """The tier of a name.

    Raises
    ------
    UnknownNameError
        When there is none.

    >>> tier("balls").reach is None
    True
    """
    for t in TIERS:
        if t.name == name:
            return t
    raise UnknownNameError(f"there is no tier {name!r}. {nearest(name, [t.name for t in TIERS])}")


def _done(job: Job, t: Tier) -> dict[str, Found] | str:
    """A job done by a tier: as a whole, or in blocks where that is asked or a large job would not be in blocks otherwise."""
    work = job.work
    asked = work is not None and any(x is not None for x in (work.executor, work.cluster, work.checkpoint))
    large = points_of(job.program, job.sizes) >= LARGE
    if t.name == "fractions" or not (asked or (large and (work is not None or not t.blocked))):
        return t.evaluate(job)
    from symattn.truth.work.engines import engine_for
    from symattn.truth.work.run import Work, evaluate

    engine = engine_for(t.name, job.bits - (job.guard // 2 if t.name == "limbs" else 0), job.digits, job.proven)
    return evaluate(engine, job.program, job.inputs, sizes=job.sizes, outputs=job.outputs, work=work or Work(workers=1))


@dataclass(frozen=True)
class Taken:
    """What became of a job: the tier that did it, what it found, and why those before it did not."""

    tier: str
    found: dict[str, Found]
    declined: dict[str, str]


def take(job: Job, tiers: tuple[Tier, ...]) -> Taken:
    """A job done by the first tier that takes it.

    Raises
    ------
    UndecidedError
        When the last one that takes it does not decide a condition at this precision, or none takes it.
    """
    declined: dict[str, str] = {}
    last: UndecidedError | None = None
    for t in tiers:
        why = t.refusal(job, alone=len(tiers) == 1)
        if why is None:
            try:
                found = _done(job, t)
            except UndecidedError as error:
                declined[t.name], last = str(error), error
                continue
            if not isinstance(found, str):
                if not job.proven or not any(f.assumption for f in found.values()):
                    return Taken(t.name, found, declined)
                found = "its result assumes " + next(f.assumption for f in found.values() if f.assumption)
            why = found
        declined[t.name] = why
    raise last or UndecidedError("no tier takes this: " + "; ".join(f"{name}: {why}" for name, why in declined.items()))
