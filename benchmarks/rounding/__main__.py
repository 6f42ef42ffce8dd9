"""``python -m benchmarks.rounding``: carry out what is not done yet, then write the page from all records there are."""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.rounding import alarms, caught, page, tightness, work
from benchmarks.rounding.laws import FORMATS, LAWS
from benchmarks.rounding.work import Task

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tolerance_table.md"


@dataclass(frozen=True)
class Setting:
    """How much is run: formats, laws, sizes, and the number of seeds of each part."""

    formats: tuple[str, ...] = FORMATS
    laws: tuple[str, ...] = LAWS
    tight_sizes: tuple[int, ...] = (16, 64, 256, 1024, 4096)
    alarm_sizes: tuple[int, ...] = (16, 64, 256, 1024)
    caught_sizes: tuple[int, ...] = (128, 512, 2048)
    backward_sizes: tuple[int, ...] = (64, 256, 512)
    tight_seeds: int = 2
    alarm_seeds: int = 2
    caught_seeds: int = 2


PARTS = ("alarms", "alarms-backward", "caught", "tight", "caught-backward")
FULL = Setting()
QUICK = Setting(("bfloat16",), ("normal", "large"), (16, 64), (16, 64), (128,), (64,), 1, 1, 1)


def tasks(s: Setting) -> list[Task]:
    """All that a setting asks for: the first seed of every part, then the second."""
    found: list[Task] = []
    for fmt in s.formats:
        found += [Task("caught", caught.measure, p) for p in caught.problems(fmt, s.caught_seeds, s.caught_sizes)]
        found += [Task("tight", tightness.measure, p) for p in tightness.problems(fmt, s.tight_sizes, s.laws, s.tight_seeds)]
        some = alarms.problems(fmt, s.alarm_seeds, s.laws, s.alarm_sizes)
        found += [Task("alarms", alarms.measure, p) for p in some]
        found += [Task("alarms-backward", alarms.measure_backward, p) for p in some]
        known = caught.backward_problems(fmt, s.caught_seeds, s.backward_sizes)
        found += [Task("caught-backward", caught.measure_backward, p) for p in known]
    return sorted(found, key=order)


def order(task: Task) -> tuple[int, bool, int, bool]:
    """Seed by seed, and of a seed what is long last."""
    p = task.problem
    return p.seed % alarms.FIRST_SEED, p.keys > 2048, PARTS.index(task.part), p.keys > 512


def main(arguments: list[str] | None = None) -> None:
    """Run, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rounding", description=__doc__)
    parser.add_argument("--file", type=Path, default=Path(tempfile.gettempdir()) / "rounding.jsonl", help="records, JSON lines")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page that is written")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--quick", action="store_true", help="a small part, for a first look")
    parser.add_argument("--page-only", action="store_true", help="run nothing")
    given = parser.parse_args(arguments)
    setting = QUICK if given.quick else FULL
    wanted, started = tasks(setting), time.monotonic()
    if not given.page_only:
        for done, of in work.carry_out(wanted, given.file, given.workers):
            if done % 20 == 0 or done == of:
                print(f"{done}/{of} tasks, {time.monotonic() - started:.0f} s", flush=True)
    done, records = work.read(given.file)
    keys = {t.key for t in wanted}
    command = "python -m benchmarks.rounding" + (" --quick" if given.quick else "")
    given.page.write_text(page.written(records, setting, command, len(done & keys), len(keys)), encoding="utf-8")
    print(f"{given.page} from {len(records)} records of {len(done & keys)}/{len(keys)} tasks")


if __name__ == "__main__":
    main()
