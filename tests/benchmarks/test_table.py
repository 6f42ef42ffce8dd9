"""The page of measured tables that is published: from enough runs, no correct kernel rejected, and as sharp as it has to be."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "tolerance_table.md").read_text(encoding="utf-8")


def rows(heading):
    """The cells of the first table under a heading."""
    part = PAGE.split(heading + "\n", 1)[1]
    lines = [line for line in part.split("\n#", 1)[0].splitlines() if line.startswith("|")]
    return {c[0].strip("* "): c[1:] for c in ([x.strip() for x in line.strip("|").split("|")] for line in lines)}


def test_no_correct_kernel_is_rejected_in_thousands_of_runs():
    rejected, runs = re.search(r"\*\*(\d+) of ([\d,]+) runs are rejected", PAGE).groups()
    assert int(rejected) == 0 and int(runs.replace(",", "")) >= 5000
    assert re.search(r"elements were compared; 0 lie outside", PAGE)


def test_bounds_of_bfloat16_are_within_the_aims():
    found = rows("### Output, any order of summation")
    column = found["keys"].index("bf16 median")
    assert float(found["16"][column]) <= 4 and float(found["4096"][column]) <= 15.5


def test_faults_in_bfloat16_are_caught_within_the_aims():
    found = rows("## Planted faults, forward")
    column = found["rule"].index("bf16 caught")
    caught = {name: float(cells[column].strip(" %")) for name, cells in found.items() if "%" in cells[column]}
    assert caught["bound on O and LSE"] >= 72 and caught["with replay"] >= 88
    assert all(float(found[name][found["rule"].index("bf16 correct rejected")].strip(" %")) == 0 for name in ("with replay",))
