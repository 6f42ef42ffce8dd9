"""The exact values of a program, enclosed: the fastest tier first, and only what is undecided goes on to the next precision."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import sympy as sp

from symattn import formats
from symattn.errors import LimitError, ProgramError, UnknownNameError, nearest
from symattn.numbers import exact_array
from symattn.program import Program
from symattn.readings.sizes import check_names, find_sizes
from symattn.truth.enclosure import Enclosure
from symattn.truth.escalation import Plan, Step, escalate
from symattn.truth.questions import All, Asked, Digits, Nothing, Question, Rounding
from symattn.truth.settled import points_of
from symattn.truth.tiers import LARGE, TIERS, Job, Tier, is_rational
from symattn.truth.tiers import tier as tier_of
from symattn.truth.values import Values
from symattn.truth.work.run import Work

__all__ = ["DIGITS", "MAX_DIGITS", "Rule", "Truth", "format_of", "is_rational", "truth"]

DIGITS = 50
"""Significant digits that are guaranteed when nothing else is asked."""
MAX_DIGITS = 100_000
GUARD = 64
"""Bits beyond those that the question needs, at which it is first asked in full."""
ROUNDS = 3
"""How often the precision is doubled beyond what digits need, before what is left is called undecided."""
ROUNDINGS = 2
"""How often it is doubled for a correctly rounded value: an element that is still open then is nearly always a tie."""

Rule = Callable[[str, Values, npt.NDArray[np.intp]], npt.ArrayLike]
"""A question of the user: of the elements of a tensor at some flat positions, which are open."""


class Truth(dict[str, Enclosure]):
    """Enclosures by name, and how they were found.

    Attributes
    ----------
    steps
        Each round: the tier, its precision, how many elements were open before and after, why other tiers did not take it.
    """

    def __init__(self, found: Mapping[str, Enclosure], steps: Iterable[Step] = ()) -> None:
        super().__init__(found)
        self.steps = tuple(steps)

    @property
    def decided(self) -> bool:
        """Whether no element is undecided."""
        return all(e.decided for e in self.values())

    def report(self) -> str:
        """The rounds, a line each, and how the elements of each tensor are known."""
        lines = [str(s) for s in self.steps]
        for name, e in self.items():
            lines += [f"{name}: {count} {how}" for how, count in e.counts().items()]
        return "\n".join(lines)


@dataclass(frozen=True)
class _Asked:
    """What a caller asks, checked."""

    question: Question
    digits: int
    start: int
    cap: int
    patient: bool
    format: formats.Format | None


def truth(
    program: Program,
    inputs: Mapping[str, object],
    *,
    digits: int | None = None,
    bits: int | None = None,
    until: Literal["decided"] | None = None,
    decide: str | formats.Format | Rule | Asked | None = None,
    outputs: Iterable[str] | None = None,
    tier: str | None = None,
    assume: bool = False,
    max_bits: int | None = None,
    sizes: Mapping[sp.Symbol | str, int] | None = None,
    work: Work | None = None,
) -> Truth:
    """The exact values of some tensors of a program, enclosed.

    Parameters
    ----------
    program
        Any program.
    inputs
        Arrays; floats are the dyadic rationals that they are, text is read exactly.
    digits
        Significant digits to guarantee on every element (50 where nothing is asked): the radius is at most half a unit of the
        last of them.
    bits
        Instead: one evaluation at this precision, nothing guaranteed but the enclosure.
    until
        ``"decided"``: until every element rounds to one number of the format of the inputs (float64 where they have none).
    decide
        The same for another float format; or a rule ``rule(name, values, at)`` that says which of the elements at the flat
        positions ``at`` are open, also as ``Asked(rule, bits)``: with so many bits at least, instead of 24.
    outputs
        Names of tensors; by default the outputs of the program.
    tier
        The only tier to use, by name; by default the fastest that takes it, and stronger ones for what it leaves.
    assume
        Whether values may rest on what is tested and not proved (the accuracy of a library's exp); they are ``bounded`` then.
    max_bits
        Cap of the precision, and the wish that it be reached if need be; by default eight times what digits need, and four times
        what a rounding needs.
    sizes
        Sizes that no input shows.
    work
        Where large jobs are done, in blocks: processes, a cluster, a checkpoint that a stopped run goes on from. By default they
        are done here.

    Returns
    -------
    Truth
        An :class:`Enclosure` for each name, and the rounds that it took. Only rows with open elements go on from one precision
        to the next; the others keep the enclosure that decided them. Ties and zeros are settled exactly where the program shows
        them (equal scores, a constant column of V). Of digits, an element that is not guaranteed is ``tiny`` where it is
        certainly below ``10^(-2 digits)`` of the largest value of all outputs. What is left is ``undecided``; its enclosure holds
        all the same, and ``neighbours`` gives both numbers of a format that it may be.

        Where at twice the precision that the digits need or more the only elements left are tiny and still contain 0, that is the
        answer; a number that small which is not 0 gets its digits when ``max_bits`` is given. Where a rounding is asked, such an
        element is followed to below the smallest subnormal number.

    Raises
    ------
    UndecidedError
        When a condition of the program is not decided at the cap, or no tier takes the program.
    ProgramError
        For an output that the program does not define.
    UnknownNameError
        For a tier or a format that does not exist.
    LimitError
        For digits or bits beyond 100000 digits, and for questions that exclude each other.

    >>> from symattn.program import Statement, indices, size, tensor
    >>> i, = indices("i")
    >>> p = Program((Statement(tensor("y", i), sp.exp(tensor("x", i))),), {i: size("n")}, ("y",))
    >>> y = truth(p, {"x": ["0.1", 0]}, digits=30)["y"]
    >>> y.decimal(30).tolist(), y.status.tolist()
    (['1.10517091807564762481170782649', '1.00000000000000000000000000000'], ['enclosed', 'exact'])
    """
    wanted = program.outputs if outputs is None else tuple(outputs)
    for name in wanted:
        if name not in program:
            raise ProgramError(f"the program defines no tensor {name!r}. {nearest(name, [s.name for s in program])}")
    asked = _asked(digits, bits, _rounding(until, decide, inputs), max_bits)
    lean = program.with_statements(program.statements, wanted).live()
    given = {n: v for n, v in inputs.items() if n in lean.inputs or n not in program.inputs}
    check_names(lean, given)
    arrays = {n: v if isinstance(v, np.ndarray) else exact_array(v) for n, v in given.items()}
    known = {str(s): k for s, k in find_sizes(lean, {n: v.shape for n, v in arrays.items()}, sizes).items()}
    if work is not None and points_of(lean, known) >= LARGE:
        work.begin()
    job = Job(lean, arrays, known, wanted, asked.start, asked.digits, not assume, 0 if bits is not None else GUARD, work)
    plan = Plan(
        asked.question,
        asked.start,
        asked.cap,
        _tiers(tier, lean, plain=bits is not None),
        asked.digits,
        asked.patient,
        asked.format.eta if asked.format is not None and max_bits is None else None,
        settles=bits is None,
    )
    found, steps = escalate(job, plan)
    return Truth({n: found[n] for n in wanted}, steps)


def _tiers(name: str | None, program: Program, plain: bool) -> tuple[Tier, ...]:
    """The tiers that may be used; for one evaluation at a precision, none of those that have another one."""
    if name is not None:
        return (tier_of(name),)
    return tuple(t for t in TIERS if not (plain and t.quick))


def _rounding(until: str | None, decide: Any, inputs: Mapping[str, object]) -> Question | None:
    """The question of a correctly rounded value, or the caller's own."""
    if until is not None and until != "decided":
        raise UnknownNameError(f"until is 'decided' or None, got {until!r}")
    if decide is None:
        return Rounding(format_of(inputs)) if until else None
    if isinstance(decide, str | formats.Format):
        return Rounding(formats.get(decide))
    return decide if isinstance(decide, Asked) else Asked(decide)


def format_of(inputs: Mapping[str, object]) -> formats.Format:
    """The widest format of the float arrays among some inputs, float64 where there is none.

    >>> format_of({"x": np.ones(2, np.float16), "y": np.ones(2, np.float32), "keep": np.ones(2, bool)}).name
    'float32'
    """
    found = []
    for v in inputs.values():
        try:
            found.append(formats.get(getattr(v, "dtype", None) or "none"))
        except (UnknownNameError, TypeError):
            continue
    return max(found, key=lambda f: f.precision, default=formats.get("float64"))


def _asked(digits: int | None, bits: int | None, rounding: Question | None, max_bits: int | None) -> _Asked:
    if bits is not None and (digits is not None or rounding is not None):
        raise LimitError("give digits or bits, not both" if digits is not None else "bits is one evaluation and decides nothing")
    count = digits if digits is not None else DIGITS if bits is None and rounding is None else 0
    if not 1 <= (bits if bits is not None else 1) <= MAX_DIGITS * 4 or not (0 <= count <= MAX_DIGITS) or digits == 0:
        raise LimitError(f"{digits if digits is not None else bits} is beyond what is answered: 1 to {MAX_DIGITS} digits")
    questions = [q for q in (Digits(count) if count else None, rounding) if q is not None]
    question: Question = Nothing() if not questions else questions[0] if len(questions) == 1 else All(tuple(questions))
    start = bits if bits is not None else math.ceil(count * math.log2(10)) + GUARD if count else question.bits + GUARD
    rounds = 0 if bits is not None else ROUNDS if count else ROUNDINGS
    cap = (max_bits or start << rounds) if bits is None else start
    return _Asked(question, count, start, cap, max_bits is not None, rounding.format if isinstance(rounding, Rounding) else None)
