"""The report of a run, put together from its cases and what was found of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from symattn.verify.diagnosis.finding import Finding
from symattn.verify.guard import Guard
from symattn.verify.margins import Margins
from symattn.verify.margins.suspicion import suspicions
from symattn.verify.observed import Observed
from symattn.verify.properties.finding import PropertyReport
from symattn.verify.report import CaseReport, Report

__all__ = ["report_of"]


def report_of(
    name: str,
    cases: list[CaseReport],
    warnings: list[str],
    replay: str,
    started: float,
    diagnosis: tuple[Finding, ...] = (),
    shown: Callable[[], Guard] | None = None,
    properties: tuple[PropertyReport, ...] = (),
    seen: Sequence[Observed] = (),
) -> Report:
    """The report of cases of one kernel.

    Parameters
    ----------
    name, cases, warnings, replay
        As in the report.
    started
        When the run began, by :func:`time.perf_counter`.
    diagnosis, properties
        What was found.
    shown
        What works out the guard; None where it is left out.
    seen
        What the kernel returned, for the margins.
    """
    return Report(
        kernel=name,
        definition=cases[0].definition,
        arithmetic=cases[0].arithmetic,
        cases=tuple(cases),
        warnings=tuple(warnings),
        diagnosis=diagnosis,
        strength=shown,
        unguarded=shown is None,
        margins=Margins(tuple(seen), diagnosis, suspicions(seen)),
        properties=properties,
        replay=replay,
        seconds=time.perf_counter() - started,
    )
