"""Running a planted kernel on inputs of the default pack, with the truth of each input kept for the next kernel."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

from symattn.definition import Definition
from symattn.verify.inputs import KINDS, cases_for, fields_for, fitted
from symattn.verify.judge import run_case
from symattn.verify.kernels.registry import resolve
from symattn.verify.observed import Observed
from symattn.verify.reference import Reference
from symattn.verify.report import CaseReport
from tests.quality.kernels.correct import CORRECT
from tests.quality.row import Row

BY_NAME = {k.name: k for k in KINDS}


@functools.lru_cache(maxsize=256)  # the whole pack in every dtype
def _reference(fields: tuple[tuple[str, Any], ...], kind: str, dtype: str) -> Reference:
    d = Definition.of(**dict(fields))
    return Reference(d, fields_for(d, fitted(d, BY_NAME[kind].shape), dtype, 0, BY_NAME[kind]))


def reference(definition: Mapping[str, Any], kind: str, dtype: str) -> Reference:
    """One input of the pack."""
    return _reference(tuple(sorted(definition.items())), kind, dtype)


def pack(definition: Mapping[str, Any], dtype: str, *, without: Iterable[str] = ()) -> list[str]:
    """The kinds of the default pack that apply to a definition."""
    return [name for name in cases_for(Definition.of(**definition), dtype, 0) if name not in without]


def run(
    definition: Mapping[str, Any], plan: str, kind: str, dtype: str, wrong: Mapping[str, Any], *, backward: bool
) -> CaseReport:
    """One kernel on one input."""
    ref = reference(definition, kind, dtype)
    return run_case(resolve(CORRECT[plan].kernel(dtype, wrong)), ref, kind, backward=backward)


def judged(row: Row, plan: str, dtype: str) -> tuple[str, list[str]]:
    """The worst verdict on the kinds that a row names, the first that shows it ending the search; the tensors that fail there."""
    for kind in row.kinds:
        case = run(row.definition, plan, kind, dtype, row.planted(dtype), backward=row.backward)
        shown = [t.name for t in case.tensors if t.verdict == row.expected]
        if case.verdict == row.expected:
            return kind, shown
    return "", []


def judges(plan: str, kind: str, dtype: str) -> bool:
    """Whether a kernel's declaration promises anything for an input of a kind."""
    return BY_NAME[kind].promised(CORRECT[plan].declares(dtype))


def observed(row: Row, plan: str, dtype: str, kinds: Iterable[str]) -> list[Observed]:
    """What a diagnosis sees of a planted kernel on some inputs."""
    seen: list[Observed] = []
    for kind in kinds:
        ref = reference(row.definition, kind, dtype)
        kernel = resolve(CORRECT[plan].kernel(dtype, row.planted(dtype)))
        run_case(kernel, ref, kind, backward=row.backward, seen=seen)
    return seen
