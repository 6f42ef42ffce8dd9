"""``python -m benchmarks [N] [--rounds R] [--only K,K] [--write]``: what exact values cost, side by side.

``--write`` writes ``docs/performance.md``; with ``--only`` the other rows stay as they are there.

Times are processor times with one BLAS thread, in interleaved rounds, medians; ratios of one run can be compared, seconds of two
runs cannot. N (1024) is the number of queries and keys.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import sys
from pathlib import Path

from benchmarks.truth.page import page, versions
from benchmarks.truth.rows import ROWS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"


def main() -> int:
    """Measure and print, and write the page where asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("n", nargs="?", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="numbers of rows, joined by commas")
    parser.add_argument("--write", action="store_true", help="write docs/performance.md")
    asked = parser.parse_args()
    wanted = {int(x) for x in asked.only.split(",") if x} or set(range(1, len(ROWS) + 1))
    print(versions(), flush=True)
    found = []
    for k, row in enumerate(ROWS, start=1):
        if k in wanted:
            print(f"\n{k}. {row.what} ({row.asked})", flush=True)
            for what, ratio in row.measure(asked.n, asked.rounds):
                print(f"   {what:40} {ratio:10.3g}", flush=True)
                found.append((row, what, ratio))
    if asked.write:
        before = PAGE.read_text(encoding="utf-8") if asked.only else ""
        PAGE.write_text(page(found, asked.n, asked.rounds, before), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
