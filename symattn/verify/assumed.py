"""A kernel of which nobody says how it computes: what one list of statements alone finds out of bounds proves no fault.

A bound belongs to a list as it is written. A tiled kernel recomputes the weights of its backward from the output and the
log-sum-exp that it saved, both rounded, where an eager one never uses its rounded output; a split kernel puts parts together
through their log-sum-exps; another takes its weights as exponentials of scores less the log-sum-exp. Each is right on its own
list and can be out of the bounds of another's. Where the arithmetic is assumed and not declared, a tensor has to be out of all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from symattn.arithmetic import LOG, Arithmetic
from symattn.intake import Array
from symattn.verify.reference import Reference, Tolerance, judge_backward, judge_forward
from symattn.verify.report import TensorReport

STAGED = "out of the bound from its own output and LSE only: declare how its backward computes (staged or not)"
"""Why a gradient that is within its end-to-end bound is suspect, which fails a run only when strict."""
THROUGH = "within the bound only where weights or parts go through the rounded LSE: declare that (log-* or split-*)"
"""The same of what is within the bound of another list."""


@dataclass(frozen=True)
class Way:
    """Another list that a correct kernel may follow: what it declares otherwise, and what is said of what it allows."""

    changes: Mapping[str, Any]
    suspect: str


WHOLE = (Way({"merged": True}, THROUGH), Way(LOG, THROUGH))
"""Of what is judged from the inputs."""
SAVED = (Way({"staged": False}, STAGED), Way(LOG, THROUGH))
"""Of what is judged from the saved output and LSE, where nothing is left to be merged."""


def judge_outputs(
    ref: Reference, tensors: Mapping[str, Array], arithmetic: Arithmetic | Tolerance, *, assumed: bool
) -> list[TensorReport]:
    """The verdicts on outputs as :func:`symattn.verify.reference.judge_forward` gives them.

    With ``assumed`` (nobody declared the arithmetic) those that fail are judged by the other lists too, and are *suspect* where
    they pass one.
    """
    reports = judge_forward(ref, tensors, arithmetic)
    judge = lambda a, given: judge_forward(ref, given, a)
    return _in_doubt(reports, tensors, arithmetic, WHOLE, judge) if assumed else reports


def judge_gradients(
    ref: Reference,
    tensors: Mapping[str, Array],
    arithmetic: Arithmetic | Tolerance,
    *,
    saved: Mapping[str, Array] | None,
    with_lse: bool,
    assumed: bool,
) -> list[TensorReport]:
    """The verdicts on gradients as :func:`symattn.verify.reference.judge_backward` gives them.

    With ``assumed`` those that fail from the kernel's own output and LSE are judged end to end too, and by the other lists.
    """
    reports = judge_backward(ref, tensors, arithmetic, saved=saved, with_lse=with_lse)
    judge = lambda a, given: judge_backward(ref, given, a, saved=saved, with_lse=with_lse)
    ways = SAVED if any(t.staged for t in reports) else WHOLE
    return _in_doubt(reports, tensors, arithmetic, ways, judge) if assumed else reports


def _in_doubt(
    reports: Sequence[TensorReport],
    tensors: Mapping[str, Array],
    arithmetic: Arithmetic | Tolerance,
    ways: Sequence[Way],
    judge: Callable[[Arithmetic, Mapping[str, Array]], list[TensorReport]],
) -> list[TensorReport]:
    """The reports, those that fail suspect where they pass in one of the ways; the first that does is named."""
    if not isinstance(arithmetic, Arithmetic) or arithmetic.algorithm != "flash":
        return list(reports)
    doubts: dict[str, str] = {}
    failing = [t.name for t in reports if t.verdict == "fail"]
    for way in ways:
        left = [n for n in failing if n not in doubts]
        if left:
            again = judge(replace(arithmetic, **way.changes), {n: tensors[n] for n in left})
            doubts |= {t.name: way.suspect for t in again if t.verdict == "pass"}
    return [replace(t, suspect=doubts[t.name]) if t.name in doubts else t for t in reports]
