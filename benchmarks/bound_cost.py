"""What the rounding bounds cost, as ratios to a float64 evaluation of the same list, all taken side by side in one run.

``python benchmarks/bound_cost.py [N ...]``: two heads of N queries and keys, 64 columns, the lists of a tiled kernel: forward
(O and LSE), backward staged on the saved O and LSE, and backward end to end. The first call, which compiles, is not counted.
Processor time, so that other work on the machine does not show.
"""

from __future__ import annotations

import sys
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

REPEATS = 2
COLUMNS = 64


def best(call: Callable[[], object]) -> float:
    """The least time of a few runs, after one that compiles."""
    call()
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def row(what: str, n: int, program: Program, inputs: Mapping[str, Any], how: arithmetic.Arithmetic) -> None:
    """One line of the table."""
    given = {name: inputs[name] for name in program.inputs}
    double = {name: x.astype(np.float64) for name, x in given.items()}
    base = best(lambda: floats.evaluate(program, double, dtype="float64"))
    plain = best(lambda: rounding.evaluate(program, given, how))
    both = best(lambda: slopes.bounds(program, given, how, own=False))
    print(f"{n:6} {what:22} {base:9.3f} s {plain / base:8.1f} {both / base:8.1f}", flush=True)


def main() -> None:
    """Print the table."""
    definition, how = Definition(heads=2), arithmetic.get("flash-fp32")
    print(f"{'n':>6} {'list':22} {'float64':>11} {'plain':>8} {'slopes':>8}")
    for n in [int(x) for x in sys.argv[1:]] or [256, 1024]:
        rng = np.random.default_rng(0)
        inputs = {x: rng.standard_normal((2, n, COLUMNS)).astype(np.float32) for x in ("Q", "K", "V", "dO")}
        inputs["dL"] = np.zeros((2, n), np.float32)
        forward = programs.followed(definition.program(), how, gradient=False)
        whole = programs.followed(definition.program(), how, gradient=True)
        saved = floats.evaluate(forward, {x: inputs[x] for x in forward.inputs}, dtype="float32")
        saved = {x: np.asarray(saved[x]) for x in ("O", "L")}
        row("forward", n, forward, inputs, how)
        row("backward, staged", n, programs.staged(whole, ("O", "L")), {**inputs, **saved}, how)
        row("backward, end to end", n, whole, inputs, how)


if __name__ == "__main__":
    main()
