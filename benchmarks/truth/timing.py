"""Times and memory taken so that they can be compared: processor time, several things in turn, medians over rounds."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping

__all__ = ["peak_memory", "printed", "side_by_side"]


def side_by_side(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The median processor time in seconds of each call; each runs once before, and then in turn in every round."""
    for call in calls.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.process_time()
            call()
            times[name].append(time.process_time() - start)
    return {name: statistics.median(x) for name, x in times.items()}


def printed(code: str) -> str:
    """The last word that Python code prints, in a process of its own with one BLAS thread."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()[-1]


def peak_memory(code: str) -> float:
    """The peak memory in bytes that Python code takes in a process of its own, above that after its first line.

    The first line is the imports; the process has one BLAS thread.
    """
    first, _, rest = code.partition("\n")
    peak = "1024 * int(open('/proc/self/status').read().partition('VmHWM:')[2].split()[0])"  # of this process, not its parent's
    whole = f"{first}\nbefore = {peak}\n{rest}\nprint({peak} - before)"
    return float(printed(whole))
