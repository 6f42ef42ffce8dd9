"""Warnings of a report: what a reader should know about the strength of a run."""

from __future__ import annotations

from symattn.definition import Definition
from symattn.verify.report import CaseReport

__all__ = ["LEAK", "remarks"]

LEAK = "NaN in masked keys or values reaches it: masked entries are multiplied by 0 and not left out"
"""Why a tensor whose only wrong elements are NaN on poisoned masked keys is suspect, which fails a run only when strict."""


def remarks(cases: list[CaseReport], definition: Definition, *, backward: bool) -> list[str]:
    """What a reader should know about the strength of a run."""
    found = []
    if definition.start != definition.core.start:
        found.append("judged on given query, key and value: projections and embeddings of the definition are not the kernel's")
    if definition.lse and not any(t.name == "lse" for c in cases for t in c.tensors):
        found.append("the kernel gives no log-sum-exp: an error that a whole row shares shows less in the output alone")
    vacuous = dict.fromkeys(c.case for c in cases for t in c.tensors if t.comparison.unbounded)
    if vacuous:
        found.append(
            f"the declared arithmetic promises nothing for some elements of {', '.join(vacuous)}: their bound is infinite, and "
            "whatever they are proves nothing"
        )
    if any(t.suspect == LEAK for c in cases for t in c.tensors):
        found.append("NaN in masked keys or values reaches the results; --strict fails on it")
    return found
