"""What each reading of one program costs, as ratios to the NumPy reading, all taken side by side in one run.

``python benchmarks/readings.py [N [D]]``: causal attention with its presented gradient, one head, N queries and keys.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

from symattn import arithmetic
from symattn.adjoint import adjoint
from symattn.definition import Definition
from symattn.presentation import present
from symattn.readings import balls, mpmath, rounding
from symattn.readings import numpy as floats
from symattn.truth.truth import truth

REPEATS = 5


def best(call: Callable[[], object]) -> float:
    """The least time of a few runs, after one that compiles."""
    call()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Print the table."""
    n, d = (int(x) for x in [*sys.argv[1:], "64", "16"][:2])
    forward = Definition(causal="top-left", lse=False).program()
    whole = present(forward, adjoint(forward)).program
    rng = np.random.default_rng(0)
    inputs = {name: rng.normal(size=(n, d)) for name in ("Q", "K", "V", "dO")}

    def by_hand() -> None:
        q, k, v, g = (inputs[x] for x in ("Q", "K", "V", "dO"))
        s = np.where(np.tri(n, dtype=bool), q @ k.T / np.sqrt(d), -np.inf)
        e = np.exp(s - s.max(1, keepdims=True))
        p = e / e.sum(1, keepdims=True)
        dp = g @ v.T
        ds = p * (dp - (p * dp).sum(1, keepdims=True)) / np.sqrt(d)
        p @ v, ds @ k, ds.T @ q, p.T @ g

    rows = {
        "NumPy by hand": by_hand,
        "numpy, float64": lambda: floats.evaluate(whole, inputs),
        "rounding (bounds), fp32": lambda: rounding.evaluate(whole, inputs, arithmetic.get("eager-fp32")),
        "balls, 128 bits": lambda: balls.evaluate(whole, inputs, bits=128),
        "balls, 400 bits": lambda: balls.evaluate(whole, inputs, bits=400),
        "truth, 50 digits": lambda: truth(whole, inputs, digits=50),
        "mpmath, 50 digits": lambda: mpmath.evaluate(whole, inputs, digits=50),
    }
    unit = best(rows["numpy, float64"])
    print(f"causal attention and its gradient, n = m = {n}, d = {d}; ratio to the numpy reading ({unit * 1e3:.2f} ms here)")
    for name, call in rows.items():
        print(f"  {name:<26}{best(call) / unit:>10.2f}")


if __name__ == "__main__":
    main()
