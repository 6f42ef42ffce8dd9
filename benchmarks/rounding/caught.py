"""What each rule catches of the planted faults: the bound on O, on O and LSE, with depth, with replay, and the public rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.rounding import alarms, gradients, kernels, planted, rules
from benchmarks.rounding.declared import REFERENCE, TILE, replayed, tiled
from benchmarks.rounding.gradients import Backward
from benchmarks.rounding.judging import GRADIENTS, Judge, misses, share
from benchmarks.rounding.kernels import How
from benchmarks.rounding.laws import Problem, cast
from benchmarks.rounding.work import Record
from symattn import arithmetic

BOUND_O, BOUND, DEPTH, REPLAY, DEFAULT = "bound on O", "bound on O and LSE", "with depth", "with replay", "default preset"
STAGED, WHOLE = "staged bound", "bound end to end"
MASKED_LAWS = ("normal", "large", "uniform", "meanV")
LAWS = (*MASKED_LAWS, "cancelV", "onehot")


def verdicts(judge: Judge, out: Any, lse: Any) -> dict[str, bool]:
    """True: accepted, by each way of judging that is symattn's own."""
    p = judge.problem
    ways = {BOUND: tiled(p), DEPTH: tiled(p, depth=True), DEFAULT: arithmetic.default_for(p.fmt)}
    found = {}
    for name, how in ways.items():
        bounded = judge.bounds(how)
        of_o, of_l = (not share(x, bounded[t]).outside for x, t in ((out, "O"), (lse, "L")))
        found |= {BOUND_O: of_o} if name == BOUND else {}
        found[name] = of_o and of_l
    interval = judge.interval(replayed(p))
    found[REPLAY] = found[DEPTH] and (interval is None or not misses(out, interval))
    return found


def measure(problem: Problem) -> list[Record]:
    """A record for the kernel itself, and for each fault that changes anything."""
    judge, against, tolerance = Judge(problem), alarms.compared(problem), alarms.scalar(problem)
    how = How(problem.fmt, problem.fmt, TILE)
    right = REFERENCE.run(problem)
    runs = [("correct", right)] + [(f.name, f.run(problem, how)) for f in planted.FAULTS if problem.mask in f.masks]
    found = []
    for name, (out, lse) in runs:
        if name != "correct" and all(np.array_equal(x, y) for x, y in zip((out, lse), right, strict=True)):
            found.append({"fault": name, "same": True})
            continue
        said = verdicts(judge, out, lse) | rules.accepted(out, against, tolerance)
        found.append({"fault": name, "same": False, "rejected": [n for n, yes in said.items() if not yes]})
    return found


def eager_gradients(problem: Problem, fmt: str) -> list[Any]:
    """dQ, dK, dV of eager kernels: every step stored in the format, K scaled before."""
    a = kernels.F32(problem.scale)
    q, do, k, v = (gradients.packed(problem.arrays[n]) if n in ("Q", "dO") else problem.arrays[n] for n in ("Q", "dO", "K", "V"))
    t = lambda x: x.swapaxes(-1, -2)
    scaled, keep = cast(k * a, fmt), np.tile(problem.keep(), (q.shape[1] // problem.rows, 1))
    s = np.where(keep, cast(q @ t(scaled), fmt), kernels.F32(-np.inf))
    e = np.exp(s - kernels.finite(s.max(-1, keepdims=True)))
    p = cast(e / np.maximum(e.sum(-1, keepdims=True), kernels.F32(1e-30)), fmt)
    dp = cast(do @ t(v), fmt)
    ds = cast(p * (dp - (p * dp).sum(-1, keepdims=True)), fmt)
    dq = cast(ds @ scaled, fmt).reshape(problem.arrays["Q"].shape)
    return [dq, cast(cast(t(ds) @ q, fmt) * a, fmt), cast(t(p) @ do, fmt)]


def measure_backward(problem: Problem) -> list[Record]:
    """The same for the backward, started from the correct kernel's O and LSE."""
    judge = Judge(problem)
    out, lse = REFERENCE.run(problem)
    staged, whole = judge.gradients(tiled(problem), out, lse), judge.end_to_end(tiled(problem))
    run = lambda faulty: gradients.gradients(problem, out, lse, Backward(problem.fmt, problem.fmt, TILE, faulty=faulty))
    right = run({})
    against = []
    if problem.mask != "softcap":
        low = eager_gradients(problem, problem.fmt)
        ref = [whole[n].value for n in GRADIENTS] if problem.fmt == "float32" else eager_gradients(problem, "float32")
        against = [
            rules.Compared(np.asarray(r, np.float64).reshape(x.shape), np.asarray(x, np.float64), problem.fmt, fudge=4.0)
            for r, x in zip(ref, low, strict=True)
        ]
    found = []
    for f in (gradients.Fault("correct", lambda p: {}, ("full", "causal", "softcap")), *gradients.FAULTS):
        if problem.mask not in f.masks:
            continue
        grads = run(f.faulty(problem))
        if f.name != "correct" and all(np.array_equal(x, y) for x, y in zip(grads, right, strict=True)):
            found.append({"fault": f.name, "same": True})
            continue
        said = {STAGED: True, WHOLE: True}
        for n, x in zip(GRADIENTS, grads, strict=True):
            for name, bounded in ((STAGED, staged), (WHOLE, whole)):
                said[name] = said[name] and not share(x, bounded[n]).outside
        for x, c in zip(grads, against, strict=bool(against)):
            for name, yes in rules.accepted(x, c).items():
                said[name] = said.get(name, True) and yes
        found.append({"fault": f.name, "same": False, "rejected": [n for n, yes in said.items() if not yes]})
    return found


def problems(fmt: str, seeds: int, sizes: tuple[int, ...] = (128, 512, 2048)) -> list[Problem]:
    """As in the research that the targets come from: six laws on whole rows, four with a window and with a softcap."""
    full = [Problem(law, fmt, n, d, s) for s in range(seeds) for n in sizes for d in (64, 128) for law in LAWS]
    masked = [
        Problem(law, fmt, n, 64, s, mask)
        for s in range(seeds)
        for n in (256, 1024)
        for mask in ("window", "softcap")
        for law in MASKED_LAWS
    ]
    rows = [
        p
        for s in range(seeds)
        for p in (Problem("normal", fmt, 32, 64, s, "causal", 64), Problem("hugelogit", fmt, 256, 64, s, "window"))
    ]
    return full + masked + rows


def backward_problems(fmt: str, seeds: int, sizes: tuple[int, ...] = (64, 256, 512)) -> list[Problem]:
    """Five laws on whole rows, three under a causal mask, two with a softcap."""
    full = [
        Problem(law, fmt, n, d, s)
        for s in range(seeds)
        for n in sizes
        for d in (64, 128)
        for law in ("normal", "large", "uniform", "meanV", "onehot")
    ]
    causal = [
        Problem(law, fmt, n, 64, s, "causal") for s in range(seeds) for n in (128, 256) for law in ("normal", "meanV", "large")
    ]
    capped = [Problem(law, fmt, 256, 64, s, "softcap") for s in range(seeds) for law in ("normal", "large")]
    return full + causal + capped
