"""The two questions that the engine answers: does it take a program, and what are its values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import lru_cache

import sympy as sp

from symattn.errors import LimitError, ProgramError, UnfitError, nearest
from symattn.program import Program
from symattn.readings.balls import precision
from symattn.readings.sizes import Extents
from symattn.truth.limbs.data import Data
from symattn.truth.limbs.engine import Engine
from symattn.truth.limbs.fixed import Fixed
from symattn.truth.limbs.plan import plan_of
from symattn.truth.limbs.products import BITS, MOST
from symattn.truth.limbs.steps import Plan

LEAST = 3
"""Limbs at least: 72 bits."""
GUARD = 8
"""Bits beyond what sums over the keys can lose at first; what is missing after all is found out and added."""
ATTEMPTS = 3
HOPE = 96
"""Bits that a further attempt adds at most: a radius that lacks more is that of a tensor whose terms cancel to nothing."""


@lru_cache(maxsize=64)
def _planned(program: Program) -> Plan | str:
    try:
        return plan_of(program)
    except UnfitError as why:
        return str(why)


def unfit(program: Program, inputs: Mapping[str, object], sizes: Mapping[sp.Symbol | str, int] | None = None) -> str | None:
    """Why the engine does not take a program with these inputs, or None where it does.

    Numbers that turn out not to fit on the way (exponents too far apart) make :func:`evaluate` raise
    :class:`symattn.errors.UnfitError`.

    >>> from symattn.definition import Definition
    >>> rows = {n: [[1.0, 0.5]] for n in "QKV"}
    >>> unfit(Definition().program(), rows)
    >>> unfit(Definition(softcap=20).program(), rows)
    '`tanh(S[i, j]/20)` is no sum of products of exact scores and their exponentials'
    """
    plan = _planned(program.live())
    if isinstance(plan, str):
        return plan
    try:
        Data(plan.program, {n: v for n, v in inputs.items() if n in plan.program.inputs}, sizes, plan.axes).check()
    except UnfitError as why:
        return str(why)
    return None


def pairs(program: Program, sizes: Mapping[str, int]) -> tuple[int, int, int]:
    """The numbers of batches, of rows and of keys of a program that the engine takes; zeros for another.

    >>> from symattn.definition import Definition
    >>> pairs(Definition(heads=4, kv_heads=2).program(), {"n": 5, "m": 7, "Hkv": 2, "G": 2})
    (2, 10, 7)
    """
    plan = _planned(program.live())
    if isinstance(plan, str):
        return 0, 0, 0
    found = {s: int(sizes[str(s)]) for s in program.sizes if str(s) in sizes}
    extents = Extents(program, found)
    counts = (extents.shape(axes) for axes in (plan.axes.batch, plan.axes.rows, (plan.axes.key,)))
    batches, rows, keys = map(math.prod, counts)
    return batches, rows, keys


def evaluate(
    program: Program,
    inputs: Mapping[str, object],
    *,
    sizes: Mapping[sp.Symbol | str, int] | None = None,
    bits: int = 180,
    outputs: Iterable[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Fixed]:
    """Some tensors of a program as fixed-point numbers, each within a proved radius.

    Parameters
    ----------
    program
        Dot-product attention whose scores are affine in exact products, perhaps with its gradient; see :func:`unfit`.
    inputs
        Arrays of float32, bfloat16, float16, float64 (the dyadic rationals that they are), integers, booleans.
    sizes
        Sizes that no input shows.
    bits
        What is guaranteed: ``radius <= scale 2^-bits`` for every tensor, except where the terms that ``scale`` is the largest of
        cancel to nothing (the gradient of a score where dO is 0). The number of limbs follows from it.
    outputs
        Names of tensors; by default the outputs of the program.
    progress
        Called with the blocks that are done and their number after each block.

    Returns
    -------
    dict
        Name -> :class:`Fixed`.

    Raises
    ------
    UnfitError
        When the engine does not take the program or the numbers.
    LimitError
        For more bits than 40 limbs hold.

    >>> from symattn.definition import Definition
    >>> rows = {"Q": [[1.0]], "K": [[0.0], [0.0]], "V": [[1.0], [4.0]]}
    >>> found = evaluate(Definition(lse=False).program(), rows, bits=100)["O"]
    >>> float(found.midpoints()[0, 0]), found.radius <= found.scale / 2**100
    (2.5, True)
    """
    wanted = program.outputs if outputs is None else tuple(outputs)
    for name in wanted:
        if name not in program:
            raise ProgramError(f"the program defines no tensor {name!r}. {nearest(name, [s.name for s in program])}")
    lean = program.with_statements(program.statements, wanted).live()
    plan = _planned(lean)
    if isinstance(plan, str):
        raise UnfitError(plan)
    data = Data(lean, {n: v for n, v in inputs.items() if n in lean.inputs or n not in program.inputs}, sizes, plan.axes)
    data.check()
    limbs = max(LEAST, -(-(bits + _lost(data)) // BITS))
    for attempt in range(ATTEMPTS):
        if limbs > MOST:
            raise LimitError(f"{bits} bits need more than {MOST} limbs of {BITS} bits; balls have no such limit")
        with precision(BITS * limbs + 96):
            found = Engine(plan, data, limbs, progress).run()
        missing = max((_missing(f, bits) for f in found.values()), default=0)
        if missing <= 0 or attempt == ATTEMPTS - 1:
            return found
        limbs += -(-missing // BITS)
    raise AssertionError("unreachable")


def _lost(data: Data) -> int:
    """Bits that the sums over the keys can lose: the error of an exponential, times the keys."""
    return math.ceil(math.log2(max(2, data.keys))) + GUARD


def _missing(found: Fixed, bits: int) -> int:
    """How many bits the radius lacks."""
    if found.radius <= found.scale / 2**bits or found.scale == 0:
        return 0
    ratio = Fraction(found.radius * 2**bits) / found.scale
    missing = ratio.numerator.bit_length() - ratio.denominator.bit_length() + 1
    return missing if missing <= HOPE else 0
