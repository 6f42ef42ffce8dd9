"""Gradients of a kernel of which nobody says how it computes: what only the staged bound finds out of bounds proves no fault.

A tiled kernel recomputes the weights from the output and the log-sum-exp that it saved, both rounded; an eager one keeps them and
never uses its rounded output. The two are judged from different places (*staged*, and end to end), and a kernel that is right by
one of them can be out of bounds by the other. Where the arithmetic is assumed and not declared, an element has to be out of both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from symattn.arithmetic import Arithmetic
from symattn.intake import Array
from symattn.verify.reference import Reference, Tolerance, judge_backward
from symattn.verify.report import TensorReport

STAGED = "out of the bound from its own output and LSE only: declare how its backward computes (staged or not)"
"""Why a gradient that is within its end-to-end bound is suspect, which fails a run only when strict."""


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

    With ``assumed`` (nobody declared the arithmetic) those that fail from the kernel's own output and LSE are judged end to end
    too, and are *suspect* where they pass that.
    """
    reports = judge_backward(ref, tensors, arithmetic, saved=saved, with_lse=with_lse)
    failing = [t.name for t in reports if t.staged and t.verdict == "fail"]
    if not (assumed and failing and isinstance(arithmetic, Arithmetic)):
        return reports
    whole = replace(arithmetic, staged=False)
    again = judge_backward(ref, {n: tensors[n] for n in failing}, whole, with_lse=with_lse)
    allowed = {t.name for t in again if t.verdict == "pass"}
    return [replace(t, suspect=STAGED) if t.name in allowed else t for t in reports]
