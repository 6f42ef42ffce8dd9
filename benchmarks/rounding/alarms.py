"""All correct kernels against the bounds that they declare, and against public rules: none may be rejected by the former."""

from __future__ import annotations

from benchmarks.rounding import gradients, kernels, rules
from benchmarks.rounding.declared import REFERENCE, TILE, correct, tiled, whole_rows
from benchmarks.rounding.gradients import Backward
from benchmarks.rounding.judging import GRADIENTS, Judge, misses, share
from benchmarks.rounding.laws import Problem
from benchmarks.rounding.work import Record

FIRST_SEED = 100
"""Other inputs than those that faults are planted on."""
BACKWARD = (
    ("backward, tiles of 64", {}),
    ("backward, tiles of 128", {"tile": 128}),
    ("backward, float32 P and dS", {"low": "float32"}),
    ("backward, sums one by one", {"order": "sequential"}),
)


def compared(problem: Problem) -> rules.Compared:
    """What a public suite compares an output with: float32 (double for float32 inputs), and eager in the input format."""
    if problem.fmt == "float32":
        ref = Judge(problem).bounds(tiled(problem))["O"].value.reshape(problem.arrays["Q"].shape)
    else:
        a = problem.arrays
        k, v = (kernels.expanded(a[n], len(a["Q"])) for n in "KV")
        ref, _ = kernels.naive(a["Q"], k, v, problem.keep(), problem.scale, "float32", "float32", softcap=problem.softcap)
    low, _ = whole_rows(kernels.eager)(problem)
    return rules.Compared(ref.astype("float64"), low.astype("float64"), problem.fmt)


def scalar(problem: Problem) -> float:
    """The scalar a-priori tolerance."""
    a = problem.arrays
    return float(rules.scalar_tolerance(a["Q"], a["K"], a["V"], problem.scale, problem.fmt))


def measure(problem: Problem) -> list[Record]:
    """A record for each correct kernel that takes the problem."""
    judge, against, tolerance, found = Judge(problem), compared(problem), scalar(problem), []
    for kernel in correct(problem.fmt):
        if not kernel.takes(problem):
            continue
        out, lse = kernel.run(problem)
        how = kernel.declares(problem)
        bounded = judge.bounds(how, kernel.fields(problem))
        both = share(out, bounded["O"]), share(lse, bounded["L"])
        interval = judge.interval(how) if kernel.replays else None
        accepted = rules.accepted(out, against, tolerance)
        found.append(
            {
                "kernel": kernel.name,
                "outside": sum(s.outside for s in both),
                "missed": None if interval is None else misses(out, interval),
                "shares": [s.share for s in both],
                "unbounded": sum(s.unbounded for s in both),
                "total": sum(s.total for s in both),
                "rejected": [name for name, yes in accepted.items() if not yes],
            }
        )
    return found


def measure_backward(problem: Problem) -> list[Record]:
    """A record for each correct backward, staged on the tiled kernel's O and LSE."""
    judge = Judge(problem)
    out, lse = REFERENCE.run(problem)
    bounded = judge.gradients(tiled(problem), out, lse)
    found = []
    for name, ways in BACKWARD:
        grads = gradients.gradients(problem, out, lse, Backward(**({"io": problem.fmt, "low": problem.fmt, "tile": TILE} | ways)))
        shares = [share(x, bounded[t]) for t, x in zip(GRADIENTS, grads, strict=True)]
        found.append(
            {
                "kernel": name,
                "outside": sum(s.outside for s in shares),
                "missed": None,
                "shares": [s.share for s in shares],
                "unbounded": sum(s.unbounded for s in shares),
                "total": sum(s.total for s in shares),
                "rejected": [],
            }
        )
    return found


def problems(fmt: str, seeds: int, laws: tuple[str, ...], sizes: tuple[int, ...] = (16, 64, 256)) -> list[Problem]:
    """Every law, size and mask; the causal one has 64 rows on 32 keys, so that some see none."""
    full = [Problem(law, fmt, n, d, FIRST_SEED + s) for s in range(seeds) for n in sizes for d in (64, 128) for law in laws]
    masked = [
        Problem(law, fmt, *size, FIRST_SEED + s, mask, *rows)
        for s in range(seeds)
        for law in laws
        for mask, size, rows in (("window", (128, 64), ()), ("causal", (32, 64), (64,)), ("softcap", (96, 128), ()))
    ]
    return full + masked
