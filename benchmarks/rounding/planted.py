"""The 28 planted faults of the forward, each one place of the tiled kernel changed.

Conventions (scale, mask, window, softcap, head map), indices (a key lost, one too many, a tile of V shifted), the online softmax
(a rescaling forgotten, splits unweighted), and arithmetic below what is declared (scores, sums, accumulators, exponentials, Q).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.rounding.kernels import RIGHT, How, Points, forward, matmul
from benchmarks.rounding.laws import F32, GROUPS, HEADS, WINDOW, Problem, cast

ALL = ("full",)


@dataclass(frozen=True)
class Fault:
    """A kind: its name, where it sits for a problem, on which masks it is tried, and what else the kernel does then."""

    name: str
    points: Callable[[Problem], Points]
    masks: tuple[str, ...] = ALL
    how: dict[str, object] | None = None

    def run(self, problem: Problem, how: How):
        """Output and LSE of the wrong kernel."""
        return run(problem, replace(how, **(self.how or {})), self.points(problem))


def run(problem: Problem, how: How, at: Points = RIGHT):
    """Output and LSE of a tiled kernel on a problem."""
    a = problem.arrays
    k, v = (np.repeat(a[n], HEADS // GROUPS, axis=0) for n in "KV")
    return forward(a["Q"], k, v, problem.keep(), problem.scale, how, at, softcap=problem.softcap)


def scaled(by):
    return lambda problem: Points(scale=lambda a: a * by)


def hides(where):
    """Keys dropped for all rows."""

    def points(problem):
        gone = np.arange(problem.keys) == where % problem.keys
        return Points(inputs=lambda k, v, keep: (k, v, keep & ~gone))

    return points


def padded(problem):
    """A key of zeros behind the last is not masked."""

    def inputs(k, v, keep):
        more = lambda x: np.concatenate([x, np.zeros_like(x[:, :1])], 1)
        return more(k), more(v), np.concatenate([keep, np.ones_like(keep[:, :1])], 1)

    return Points(inputs=inputs)


def shifted(problem):
    """One tile reads the values of the next keys."""
    start = min(64, problem.keys // 2)

    def inputs(k, v, keep):
        v = v.copy()
        v[:, start : start + 64] = np.roll(v[:, start : start + 64], 1, axis=1)
        return k, v, keep

    return Points(inputs=inputs)


def wrong_heads(problem):
    """Query head h reads key head h mod 2 in place of h // 2."""
    read = np.arange(HEADS) % GROUPS * (HEADS // GROUPS)
    return Points(inputs=lambda k, v, keep: (k[read], v[read], keep))


def kept(change):
    """Another mask."""
    return lambda problem: Points(inputs=lambda k, v, keep: (k, v, change(problem)))


def without_diagonal(problem):
    i = np.arange(problem.rows)[:, None] + problem.keys - problem.rows
    return problem.keep() & (np.arange(problem.keys) != i)


def forgets(shrink, before, number):
    """The rescaling of the second tile (the only one, where there is one)."""
    return np.where(before, F32(1), F32(0)) if number == 1 else shrink


def summed_low(fmt):
    """Row sums that grow key by key in a format."""

    def sum_tile(p):
        total = np.zeros((*p.shape[:-1], 1), F32)
        for t in range(p.shape[-1]):
            total = cast(total + p[..., t : t + 1], fmt)
        return total

    return lambda problem: Points(sum_tile=sum_tile, total=lambda x: cast(x, fmt))


def grows(fmt, *, by_key):
    """The accumulated output grows in a format, key by key or tile by tile."""

    def add(out, shrink, p, v, how):
        out = cast(out * shrink, fmt)
        if not by_key:
            return cast(out + cast(matmul(p, v), fmt), fmt)
        part = np.zeros_like(out)
        for t in range(p.shape[-1]):
            part = cast(part + p[..., t : t + 1] * v[:, t : t + 1], fmt)
        return cast(out + part, fmt)

    return lambda problem: Points(add_tile=add)


def flipped(problem):
    """One element is off by 2^-5."""

    def out(o):
        o = o.copy()
        o[0, problem.rows // 2, 3] *= F32(1 + 2.0**-5)
        return o

    return Points(out=out)


FAULTS: tuple[Fault, ...] = (
    Fault("scale 1 % off", scaled(1.01)),
    Fault("scale 0.1 % off", scaled(1.001)),
    Fault("scale 0.01 % off", scaled(1.0001)),
    Fault("scale 1/sqrt(d + 1)", lambda problem: Points(scale=lambda a: 1 / np.sqrt(problem.d + 1))),
    Fault("last key lost", hides(-1)),
    Fault("first key lost", hides(0)),
    Fault("a padding key counts", padded),
    Fault("a tile of V shifted by a row", shifted),
    Fault("wrong head of K and V", wrong_heads),
    Fault("output not rescaled once", lambda problem: Points(shrink_out=forgets)),
    Fault("row sum not rescaled once", lambda problem: Points(shrink_sum=forgets)),
    Fault("scores in bfloat16", lambda problem: Points(scores=lambda s: cast(s, "bfloat16"))),
    Fault("row sum in bfloat16", summed_low("bfloat16")),
    Fault("output accumulated in bfloat16", grows("bfloat16", by_key=True)),
    Fault("output in bfloat16 between tiles", grows("bfloat16", by_key=False)),
    Fault("output in float16 between tiles", grows("float16", by_key=False)),
    Fault("exp rounded to bfloat16", lambda problem: Points(weights=lambda p, s: cast(p, "bfloat16"))),
    Fault("exp off by 9e-5", lambda problem: Points(weights=lambda p, s: p * (1 + F32(9e-5) * np.sin(37 * finite_only(s))))),
    Fault("one element off by 2^-5", flipped),
    Fault("LSE off by a thousandth of the maximum", lambda problem: Points(lse=lambda x, top: x + F32(1e-3) * top)),
    Fault("splits added without weights", lambda problem: Points(combine=unweighted), how={"splits": 2, "combine": "lse"}),
    Fault("Q scaled and rounded before", lambda problem: Points(), how={"prescale": True}),
    Fault("diagonal masked", kept(without_diagonal), ("window",)),
    Fault("window one key longer", kept(lambda problem: problem.keep(WINDOW + 1)), ("window",)),
    Fault("window one key shorter", kept(lambda problem: problem.keep(WINDOW - 1)), ("window",)),
    Fault("masked by -1e4", lambda problem: Points(hidden=lambda s, keep: np.where(keep, s, s - F32(1e4))), ("window", "causal")),
    Fault("softcap left out", lambda problem: Points(cap=lambda c: 0.0), ("softcap",)),
    Fault("softcap 1 % off", lambda problem: Points(cap=lambda c: c * 1.01), ("softcap",)),
)
"""As in the research that the targets come from: each with the masks on which it can show."""


def finite_only(s):
    """Scores, 0 where masked."""
    return np.where(np.isfinite(s), s, F32(0))


def unweighted(weights):
    """Every split counts the same."""
    return [np.ones_like(w) for w in weights]
