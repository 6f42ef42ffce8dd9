"""How far the bounds of the tiled kernel lie above its actual errors: O, LSE, and gradients staged and end to end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.rounding.declared import REFERENCE, TILE, tiled
from benchmarks.rounding.gradients import Backward, gradients
from benchmarks.rounding.judging import GRADIENTS, Judge, Share, share
from benchmarks.rounding.laws import Problem
from benchmarks.rounding.work import Record

END_TO_END = 1024
"""Most keys for which the backward is bounded end to end too."""


def record(tensor: str, bound: str, found: Share) -> Record:
    """One tensor on one problem; the ratio is of the greatest bound to the greatest error, and None where that is 0."""
    return {
        "tensor": tensor,
        "bound": bound,
        "ratio": found.bound / found.error if found.error else None,
        "share": found.share,
        "outside": found.outside,
        "total": found.total,
        "unbounded": found.unbounded,
    }


def measure(problem: Problem) -> list[Record]:
    """The kernel with tiles of 64, any order of sums, then with its depth declared, then replayed; and its backward."""
    judge, how = Judge(problem), tiled(problem)
    out, lse = REFERENCE.run(problem)
    found = []
    for name, declared in (("any order", how), ("depth", tiled(problem, depth=True))):
        bounded = judge.bounds(declared)
        found += [record(t, name, share(x, bounded[t])) for t, x in (("O", out), ("L", lse))]
    found += replay(problem, judge, out)
    grads = dict(zip(GRADIENTS, gradients(problem, out, lse, Backward(problem.fmt, problem.fmt, TILE)), strict=True))
    staged = judge.gradients(replace(how, tile=TILE), out, lse)
    found += [record(t, "staged", share(x, staged[t])) for t, x in grads.items()]
    if problem.keys <= END_TO_END:
        whole = judge.end_to_end(how)
        found += [record(t, "end to end", share(x, whole[t])) for t, x in grads.items()]
    return found


def replay(problem: Problem, judge: Judge, out: Any) -> list[Record]:
    """Half the width of the replay's interval, and how much of it the output uses."""
    interval = judge.interval(REFERENCE.declares(problem))
    if interval is None:
        return []
    bounded = judge.bounds(tiled(problem))["O"]
    k = np.asarray(out, np.float64).reshape(interval.value.shape)
    error = np.abs(k - bounded.value).max()
    reach = np.maximum(interval.high - bounded.value, bounded.value - interval.low)
    finite = np.isfinite(reach)
    most = float(reach[finite].max(initial=0.0))
    return [
        {
            "tensor": "O",
            "bound": "replay",
            "ratio": most / float(error) if error else None,
            "share": None,
            "outside": int((~interval.inside(k)).sum()),
            "total": k.size,
            "unbounded": int((~finite).sum()),
        }
    ]


def problems(fmt: str, sizes: tuple[int, ...], laws: tuple[str, ...], seeds: int) -> list[Problem]:
    """Every law and size with 64 and 128 columns."""
    return [Problem(law, fmt, n, d, s) for s in range(seeds) for n in sizes for d in (64, 128) for law in laws]
