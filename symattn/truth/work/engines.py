"""What evaluates a block: functions that a worker finds by name, with plain arguments.

An engine is ``f(program, inputs, *, known, sizes, outputs, **arguments)``, which gives values by name and what they rest on. A
block of it is asked for by the name of the function, so that nothing but names, numbers and arrays goes to a worker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from symattn.errors import ProgramError
from symattn.program import Program
from symattn.readings import balls
from symattn.truth.tiers import Found, Job, tier
from symattn.truth.values import Balls, Values

__all__ = ["Engine", "by_balls", "by_tier", "engine_for"]

Evaluate = Callable[..., "dict[str, Found] | str"]


@dataclass(frozen=True)
class Engine:
    """How blocks are evaluated.

    Parameters
    ----------
    function
        ``"package.module:function"``.
    arguments
        Its further arguments: numbers, text, booleans.
    points
        Elements of the largest tensor of a block, about.
    passes
        Whether it takes values that another program gave; where not, only indices are cut that leave nothing to pass on.
    bits
        Precision at which parts are added up.
    rows
        Values of the innermost cut index that a block has at least: an engine that takes them in blocks of its own needs no small
        ones, and what a block gives to sums costs as much however few they are.
    """

    function: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    points: int = 1 << 16
    passes: bool = True
    bits: int = 53
    rows: int = 1

    @property
    def text(self) -> str:
        """All of it in words."""
        said = ", ".join(f"{k}={v!r}" for k, v in sorted(self.arguments.items()))
        return f"{self.function}({said}) in blocks of {self.points} elements or {self.rows} rows, sums of {self.bits} bits"

    def load(self) -> Evaluate:
        """The function."""
        module, _, name = self.function.partition(":")
        found: Evaluate = getattr(import_module(module), name)
        return found


def by_balls(
    program: Program,
    inputs: Mapping[str, Any],
    *,
    known: Mapping[str, Values],
    sizes: Mapping[str, int],
    outputs: tuple[str, ...],
    bits: int,
    scale: int = balls.SCALE,
) -> dict[str, Found]:
    """Balls of so many bits."""
    given = {n: v.balls for n, v in known.items() if isinstance(v, Balls)}
    values = balls.evaluate(program, inputs, known=given, sizes=sizes, bits=bits)
    return {n: Found(Balls(values[n], scale)) for n in outputs}


def by_tier(
    program: Program,
    inputs: Mapping[str, Any],
    *,
    known: Mapping[str, Values],
    sizes: Mapping[str, int],
    outputs: tuple[str, ...],
    name: str,
    bits: int,
    digits: int = 0,
    proven: bool = True,
) -> dict[str, Found] | str:
    """A tier of :data:`symattn.truth.tiers.TIERS` by its name; text where it does not take the block."""
    if known:
        raise ProgramError(f"the tier {name} takes no values of another program: {', '.join(known)}")
    job = Job(program, inputs, sizes, outputs, bits, digits, proven)
    chosen = tier(name)
    why = chosen.refusal(job)
    return chosen.evaluate(job) if why is None else why


BLOCKS = {"balls": (1 << 13, 1), "fractions": (1 << 13, 1), "limbs": (1 << 19, 512), "double": (1 << 21, 512)}
"""Elements of a block of each tier, and rows at least: a tenth of a second or more. Measured in steps of 2."""


def engine_for(name: str, bits: int, digits: int = 0, proven: bool = True) -> Engine:
    """The engine of a tier.

    >>> engine_for("balls", 200).load().__name__
    'by_balls'
    """
    if name == "balls":
        wide = {"bits": bits, "scale": max(balls.SCALE, 4 * digits)}
        return Engine(f"{__name__}:by_balls", wide, BLOCKS[name][0], True, bits)
    arguments = {"name": tier(name).name, "bits": bits, "digits": digits, "proven": proven}
    points, rows = BLOCKS.get(name, (1 << 16, 1))
    return Engine(f"{__name__}:by_tier", arguments, points, False, bits, rows)
