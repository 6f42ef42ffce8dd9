"""The page of figures, written by the run that measured them."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import version

from benchmarks.truth.rows import Row

__all__ = ["page", "versions"]

HEAD = """# Performance of the exact values

Written by `python -m benchmarks --write` ({command}); ratios are taken side by side in one run: processor time, one BLAS thread,
the things compared in turn in each round, medians. d = 128, float32 inputs of standard normal numbers, one head, no mask. *Of the
scale*: every element is proved to be within 10^-50 of the largest value that its sum can have (`bits=167`). *Of each element*:
within half a unit of its own 50th digit (`digits=50`), which takes 32 bits more. What slow rivals cost per score was measured
with 128 queries and keys: it does not depend on their number. Two processes are timed on the clock, their start included; each
run is one of a Python of its own, so that nothing is loaded before.

{versions}

| what | | measured | asked | aim |
|---|---|---|---|---|
"""


def versions() -> str:
    """Interpreter, libraries and machine in a line."""
    names = ("symattn", "numpy", "python-flint", "mpmath", "sympy")
    known = ", ".join(f"{n} {version(n)}" for n in names)
    return f"Python {platform.python_version()}, {known}; {platform.machine()}, {platform.system()}"


def page(found: Sequence[tuple[Row, str, float]], n: int, rounds: int, before: str = "") -> str:
    """The Markdown of a run; rows that it did not measure stay as they are on the page ``before``."""
    new = {_key(line := f"| {row.what} | {what} | {ratio:.3g} | {row.asked} | {row.aim} |"): line for row, what, ratio in found}
    kept = {_key(line): line for line in before.splitlines() if line.startswith("| ") and not line.startswith("| what |")}
    lines = {**kept, **new} if kept else new
    return HEAD.format(command=f"n = {n}, {rounds} rounds", versions=versions()) + "\n".join(lines.values()) + "\n"


def _key(line: str) -> tuple[str, ...]:
    return tuple(line.split("|")[1:3])
