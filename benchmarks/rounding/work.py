"""Tasks in a pool of processes, their records in a file of JSON lines: what an interruption leaves is taken up again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
Record = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """A part of the benchmark on one problem; ``make`` gives its records."""

    part: str
    make: Callable[[Any], list[Record]]
    problem: Any

    @property
    def key(self) -> str:
        """What the file knows it by."""
        return f"{self.part} {self.problem.name}"

    def records(self) -> list[Record]:
        """What was measured, each with what it belongs to."""
        p = self.problem
        common = {"part": self.part, "law": p.law, "fmt": p.fmt, "mask": p.mask, "keys": p.keys, "d": p.d, "seed": p.seed}
        return [common | r for r in self.make(p)]


def read(file: Path) -> tuple[set[str], list[Record]]:
    """The tasks that are done, and all records; a line that was cut off counts for nothing."""
    done: set[str] = set()
    found: list[Record] = []
    for line in file.read_text().splitlines() if file.exists() else ():
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            continue
        if entry["task"] not in done:
            done.add(entry["task"])
            found += entry["records"]
    return done, found


def carry_out(tasks: Sequence[Task], file: Path, workers: int = 2) -> Iterator[tuple[int, int]]:
    """Carry out what is not done yet, and append it to the file; yields how many are done, of how many."""
    done, _ = read(file)
    todo = [t for t in tasks if t.key not in done]
    with file.open("a") as out:
        for number, (task, records) in enumerate(_results(todo, workers), 1):
            out.write(json.dumps({"task": task.key, "records": records}) + "\n")
            out.flush()
            yield number, len(todo)


def _results(tasks: Iterable[Task], workers: int) -> Iterator[tuple[Task, list[Record]]]:
    if workers == 1:
        yield from ((t, t.records()) for t in tasks)
        return
    os.environ.update(dict.fromkeys(THREADS, "1"))
    with ProcessPoolExecutor(workers) as pool:
        running = {pool.submit(t.records): t for t in tasks}
        for future in as_completed(running):
            yield running[future], future.result()
