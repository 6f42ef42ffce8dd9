"""What the rounding bounds cost, as ratios to a float64 evaluation of the same list, all taken side by side in one run.

``python benchmarks/bound_cost.py [N ...] [-d D ...]``: two heads of N queries and keys with D columns (256 and 1024, of 64 and of
128), the lists of a tiled kernel: forward (O and LSE), backward staged on the saved O and LSE, and backward end to end. The first
call, which compiles, is not counted. Processor time, so that other work on the machine does not show.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from symattn import arithmetic
from symattn.definition import Definition
from symattn.program import Program
from symattn.readings import numpy as floats
from symattn.readings import rounding, slopes
from symattn.verify import programs

REPEATS = 3


def best(call: Callable[[], object]) -> float:
    """The least time of a few runs, after one that compiles."""
    call()
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def row(what: str, program: Program, inputs: Mapping[str, Any], how: arithmetic.Arithmetic) -> None:
    """One line of the table."""
    n, d = inputs["Q"].shape[1:]
    given = {name: inputs[name] for name in program.inputs}
    double = {name: x.astype(np.float64) for name, x in given.items()}
    base = best(lambda: floats.evaluate(program, double, dtype="float64"))
    plain = best(lambda: rounding.evaluate(program, given, how))
    both = best(lambda: slopes.bounds(program, given, how, own=False))
    print(f"{n:6} {d:5} {what:22} {base:9.3f} s {plain / base:8.1f} {both / base:8.1f}", flush=True)


def lists(n: int, d: int, how: arithmetic.Arithmetic) -> None:
    """The lines of one size."""
    definition, rng = Definition(heads=2), np.random.default_rng(0)
    inputs = {x: rng.standard_normal((2, n, d)).astype(np.float32) for x in ("Q", "K", "V", "dO")}
    inputs["dL"] = np.zeros((2, n), np.float32)
    forward = programs.followed(definition.program(), how, gradient=False)
    whole = programs.followed(definition.program(), how, gradient=True)
    saved = floats.evaluate(forward, {x: inputs[x] for x in forward.inputs}, dtype="float32")
    saved = {x: np.asarray(saved[x]) for x in ("O", "L")}
    row("forward", forward, inputs, how)
    row("backward, staged", programs.staged(whole, ("O", "L")), {**inputs, **saved}, how)
    row("backward, end to end", whole, inputs, how)


def main() -> None:
    """Print the table."""
    say = argparse.ArgumentParser(description="What the rounding bounds cost, as ratios to a float64 evaluation.")
    say.add_argument("n", nargs="*", type=int, default=[256, 1024], help="queries and keys")
    say.add_argument("-d", nargs="+", type=int, default=[64, 128], help="columns")
    asked = say.parse_args()
    print(f"{'n':>6} {'d':>5} {'list':22} {'float64':>11} {'plain':>8} {'slopes':>8}")
    for d in asked.d:
        for n in asked.n:
            lists(n, d, arithmetic.get("flash-fp32"))


if __name__ == "__main__":
    main()
