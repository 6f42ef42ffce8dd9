"""The correct kernels of the benchmark, and the arithmetic that each declares.

Kernels that differ in what a declaration leaves open (order of sums and tiles, splits, larger tiles, weights that are not
rounded) share one, and so one bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.rounding import kernels, planted
from benchmarks.rounding.kernels import How
from benchmarks.rounding.laws import HEADS, MASKS, Problem
from symattn import arithmetic
from symattn.arithmetic import Arithmetic

TILE = 64
LAG = 5.5
ACCUMULATORS = 16
"""Products that the truncating accumulator adds at once."""


@dataclass(frozen=True)
class Kernel:
    """A correct kernel.

    Parameters
    ----------
    name
        In words.
    run
        Output and LSE of a problem.
    declares
        The arithmetic, of a problem.
    replays
        Whether tile, order and cast are exactly as declared, so that the cast of P can be replayed.
    fields
        Fields of the definition in whose list the kernel computes, of a problem.
    masks, most
        The masks and the most keys that it is run on.
    """

    name: str
    run: Callable[[Problem], tuple[Any, Any]]
    declares: Callable[[Problem], Arithmetic]
    replays: bool = False
    fields: Callable[[Problem], dict[str, Any]] = lambda problem: {}
    masks: tuple[str, ...] = MASKS
    most: int = 4096

    def takes(self, problem: Problem) -> bool:
        """Whether it is run on a problem."""
        return problem.mask in self.masks and problem.keys <= self.most


def tiled(problem: Problem, *, depth: bool = False, **changes: Any) -> Arithmetic:
    """A tiled kernel that forms exponents as s - m, tiles of 64 keys.

    With ``depth``, no term passes more additions than a tile has, one for each tile, or d - 1 in the scores.
    """
    plain = {"tile": TILE, "folded": False, "shift_roundings": 0, "scalar_roundings": 0, "name": "tiled"}
    how = arithmetic.flash(problem.fmt, **(plain | changes))
    return replace(how, depth=max(problem.d, TILE + -(-problem.keys // TILE))) if depth else how


def replayed(problem: Problem, **changes: Any) -> Arithmetic:
    """:func:`tiled` with depth, order and shift declared."""
    return tiled(problem, depth=True, **({"order": "forward", "shift": "running"} | changes))


def wide(problem: Problem) -> Arithmetic:
    """Float32 inside, weights rounded after they are divided by their sum."""
    low = problem.fmt if problem.fmt != "float32" else None
    name = "whole rows"
    return replace(arithmetic.inside_float32(problem.fmt, name=name), probability=low, flush_to_zero=True)


def of(name: str, declares: Callable[[Problem], Arithmetic], *, most: int = 4096, replays: bool = False, **how: Any) -> Kernel:
    """A tiled kernel of :mod:`.kernels`."""
    made = lambda problem: planted.run(problem, How(problem.fmt, **({"p": problem.fmt} | how)))
    return Kernel(name, made, declares, replays, most=most)


def whole_rows(which: Callable[..., Any], **more: Any) -> Callable[[Problem], tuple[Any, Any]]:
    """A kernel that is not tiled, on a problem."""

    def run(problem):
        a = problem.arrays
        k, v = (kernels.expanded(a[n], HEADS) for n in "KV")
        given = {n: getattr(problem, x) for n, x in more.items()}
        return which(a["Q"], k, v, problem.keep(), problem.scale, problem.fmt, softcap=problem.softcap, **given)

    return run


def split(problem: Problem) -> dict[str, Any]:
    """Two spans of keys that are combined by their LSEs, as whole tiles."""
    tiles = -(-problem.keys // TILE)
    return {"algorithm": "split", "block": -(-tiles // 2) * TILE} if tiles > 1 else {}


REFERENCE = of("tiles of 64", replayed, replays=True)
"""The kernel that faults are planted in, and whose bounds are tabulated."""

SHARED = (
    of("tiles of 128", tiled, tile=128),
    of("tiles from the end", lambda p: replayed(p, order="reverse"), tiles="reverse", replays=True),
    of("tiles in any order", tiled, tiles="permuted"),
    of("sums one by one", replayed, order="sequential", replays=True, most=1024),
    of("sums permuted", replayed, order="permuted", replays=True, most=1024),
    of("four splits", tiled, splits=4),
    of("weights in float32", tiled, p="float32"),
    of("times 1/l", replayed, reciprocal=True, replays=True),
    of("maximum of the row first", lambda p: replayed(p, shift="row"), row_first=True, replays=True),
    of("base 2, scale folded", lambda p: tiled(p, folded=True, scalar_roundings=2, shift_roundings=4), fold=True),
    of("maximum late", lambda p: tiled(p, stale=LAG), stale=LAG),
    Kernel("whole rows", whole_rows(kernels.naive, p="fmt"), wide),
    Kernel("eager", whole_rows(kernels.eager), lambda p: replace(arithmetic.eager(p.fmt), scale_before=2)),
)
NARROW = (
    of("sum of rounded weights", lambda p: tiled(p, sum_from_cast=True), cast_sum=True),
    of("Q scaled before", lambda p: tiled(p, scale_before=1), prescale=True),
    of(
        "accumulators cut off",
        lambda p: tiled(p, truncate=("accumulate",), block=ACCUMULATORS, block_bits=None),
        order="blocks",
        most=1024,
    ),
)
EIGHT = of(
    "weights in float8",
    lambda p: tiled(p, probability="float8_e4m3fn", probability_scale=256.0),
    p="float8_e4m3fn",
    p_scale=256.0,
)
BY_LSE = Kernel(
    "two splits, by LSE",
    lambda p: planted.run(p, How(p.fmt, p.fmt, tile=TILE, splits=2, combine="lse")),
    lambda p: replace(wide(p), tile=TILE, name="split"),
    fields=split,
    masks=("full",),
)


def correct(fmt: str) -> tuple[Kernel, ...]:
    """The kernels of a format."""
    if fmt == "float32":
        return (REFERENCE, *SHARED, BY_LSE)
    return (REFERENCE, *SHARED, BY_LSE, *NARROW, *((EIGHT,) if fmt == "bfloat16" else ()))
