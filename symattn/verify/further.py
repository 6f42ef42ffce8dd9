"""Inputs of the default pack that a run did not take: what the vacuity guard compares it with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from symattn.definition import Definition
from symattn.errors import SymattnError
from symattn.verify.faults.fault import Situation
from symattn.verify.guard import Guard, guard
from symattn.verify.inputs import Choice, cases_for
from symattn.verify.observed import Observed
from symattn.verify.reference import Reference

__all__ = ["strength"]

KINDS = "normal,tall,deep,long,square,capped,sinks"
"""The inputs that are taken: between them every fault moves something that it can."""


def strength(
    seen: Sequence[Observed],
    definition: Definition,
    dtype: str,
    seed: int,
    *,
    progress: Callable[[str], None] | None = None,
) -> Callable[[], Guard] | None:
    """The guard of a run, worked out when it is asked for and kept.

    Parameters
    ----------
    seen
        What was judged; None comes back where it is nothing.
    definition, dtype, seed
        Of the run.
    progress
        Called with a line of text before it is worked out.
    """
    if not seen:
        return None
    first, taken = seen[0].situation, {o.case for o in seen}

    @cache
    def further() -> tuple[Situation, ...]:
        return tuple(_others(definition, dtype, seed, first, taken))

    @cache
    def worked_out() -> Guard:
        if progress is not None:
            progress("guard: which known faults could show")
        return guard(seen, further=further)

    return worked_out


def _others(definition: Definition, dtype: str, seed: int, like: Situation, taken: set[str]) -> list[Situation]:
    try:
        packed = cases_for(definition, dtype, seed, Choice.of(only=KINDS))
    except SymattnError:
        return []
    found = []
    for name, fields in packed.items():
        if name in taken:
            continue
        try:
            found.append(Situation(Reference(definition, fields), like.arithmetic, None, like.with_lse))
        except SymattnError:
            continue
    return found
