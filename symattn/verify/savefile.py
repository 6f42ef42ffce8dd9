"""A judged run as a ``.npz`` file: inputs, outputs, exact values and bounds of every case, and the report itself.

Names are ``CASE/FIELD`` for inputs and outputs, and for an output ``CASE/FIELD.exact`` (midpoint of the enclosure rounded to
float64), ``CASE/FIELD.radius`` (the exact value lies within it around that) and ``CASE/FIELD.bound`` (the greatest error that is
allowed); ``report`` is the JSON document as text. NumPy reads the file alone; :func:`cases_in` takes it apart again, so that
recorded tensors are judged from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from symattn.intake import Array
from symattn.verify.files import write_npz
from symattn.verify.report import CaseReport, Report

BESIDE = (".exact", ".radius", ".bound")
"""What the names of arrays that belong to an output end in."""


def save(report: Report, path: str | Path) -> None:
    """Write a report whose run kept its elements.

    Parameters
    ----------
    report
        Of a run with ``keep=True``; cases without elements (the kernel raised) are not in the file.
    path
        Ends in ``.npz``.

    Raises
    ------
    FileFormatError
        When the file cannot be written.
    """
    entries: dict[str, Array] = {"report": np.array(report.to_json())}
    for name, case in named(report).items():
        for field, a in (case.inputs or {}).items():
            entries[f"{name}/{field}"] = a
        for t in case.tensors:
            if t.evidence is not None:
                exact, radius = t.evidence.rounded()
                beside = {"": t.evidence.kernel, ".exact": exact, ".radius": radius, ".bound": t.evidence.bound}
                entries |= {f"{name}/{t.name}{end}": a for end, a in beside.items()}
    write_npz(path, entries)


def named(report: Report) -> dict[str, CaseReport]:
    """The cases by a name of their own: with the kernel and the dtype in front where a run has several."""
    several = len({c.kernel for c in report.cases}) > 1 or len({c.dtype for c in report.cases}) > 1
    found: dict[str, CaseReport] = {}
    for c in report.cases:
        name = f"{c.kernel}/{c.dtype}/{c.case}" if several else c.case
        found[name] = c
    return found


def cases_in(tensors: Mapping[str, Array]) -> dict[str, dict[str, Array]]:
    """The tensors of a file by case, in the order of the file; those of a plain file are the case ``recorded``.

    >>> x = np.zeros(1)
    >>> list(cases_in({"query": x})), cases_in({"tall/out": x, "tall/out.bound": x, "deep/out": x}).keys()
    (['recorded'], dict_keys(['tall', 'deep']))
    """
    if not any("/" in name for name in tensors):
        return {"recorded": dict(tensors)}
    found: dict[str, dict[str, Array]] = {}
    for name, a in tensors.items():
        case, _, field = name.rpartition("/")
        if not field.endswith(BESIDE):
            found.setdefault(case or "recorded", {})[field] = a
    return found
