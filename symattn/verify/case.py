"""One kernel on one input: run, judged, and reported as a case; what it raises there is that case's verdict."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from symattn.arithmetic import Arithmetic
from symattn.errors import KernelError
from symattn.intake import Array
from symattn.verify.assumed import judge_gradients, judge_outputs
from symattn.verify.faults.fault import Situation
from symattn.verify.kernels.base import Kernel, Tensors
from symattn.verify.kernels.call import Call
from symattn.verify.kernels.recorded import Recorded
from symattn.verify.observed import Observed
from symattn.verify.reference import Reference, check_inputs, usable
from symattn.verify.remarks import LEAK
from symattn.verify.report import CaseReport, TensorReport
from symattn.verify.running import gradients_of, outputs_of

__all__ = ["run_case", "tried_case"]

BY_ROW = ("out", "lse", "grad_query")
"""Tensors with a row for every query."""


def run_case(
    kernel: Kernel,
    ref: Reference,
    name: str,
    *,
    backward: bool,
    arithmetic: Arithmetic | None = None,
    seen: list[Observed] | None = None,
) -> CaseReport:
    """One kernel on one input; ``seen`` takes what it returned, for a diagnosis.

    Raises
    ------
    KernelError
        When it raises or returns something else than the convention asks for.
    DefinitionError
        When the declared arithmetic is one of other inputs.
    """
    report, raised = _run(kernel, ref, name, backward, arithmetic, seen)
    if raised is not None:
        raise raised
    return report


def tried_case(
    kernel: Kernel,
    ref: Reference,
    name: str,
    *,
    backward: bool,
    arithmetic: Arithmetic | None = None,
    seen: list[Observed] | None = None,
) -> CaseReport:
    """As :func:`run_case`; what the kernel raises is the error of the report, beside what was judged before it.

    A kernel whose ledger says that it raises there has that reason.

    Raises
    ------
    DefinitionError
        When the declared arithmetic is one of other inputs.
    """
    report, raised = _run(kernel, ref, name, backward, arithmetic, seen)
    if raised is None:
        return report
    known = next((row.reason for row in kernel.known if not row.tensors and row.when(ref.call)), None)
    return replace(report, error=str(raised), known=known)


def _run(
    kernel: Kernel,
    ref: Reference,
    name: str,
    backward: bool,
    arithmetic: Arithmetic | None,
    seen: list[Observed] | None,
) -> tuple[CaseReport, KernelError | None]:
    call = ref.call
    declared = arithmetic or kernel.arithmetic(call)
    recorded = isinstance(kernel, Recorded)
    check_inputs(declared, call, by_value=recorded)
    tensors: list[TensorReport] = []
    judged: Tensors = {}
    saved, with_lse, raised = None, False, None
    try:
        outputs = outputs_of(kernel, call, ref.shapes(), declared)
        judged = {k: a for k, a in outputs.items() if k in ref.shapes()}
        assumed = arithmetic is None and kernel.assumed
        tensors = judge_outputs(ref, judged, declared, assumed=assumed)
        if backward:
            grads, saved, with_lse = gradients_of(kernel, call, outputs, declared, partial=recorded)
            tensors += judge_gradients(ref, grads, declared, saved=saved, with_lse=with_lse, assumed=assumed)
            judged |= grads
    except KernelError as error:
        raised = error
    reports = tuple(_marked(kernel, call, t, name, judged[t.name]) for t in tensors)
    if seen is not None and reports:
        start = saved if saved is not None and declared.staged and usable(saved, ref) else None
        situation = Situation(ref, declared, start, with_lse)
        seen.append(Observed(name, situation, {t.name: judged[t.name] for t in reports}, reports))
    report = CaseReport(
        case=name,
        kernel=kernel.name,
        dtype=str(call.dtype),
        shape=call.shape,
        definition=ref.definition.conventions(),
        arithmetic=declared.to_dict(),
        tensors=reports,
        inputs=dict(call.fields) if ref.keep else None,
    )
    return report, raised


def _marked(kernel: Kernel, call: Call, t: TensorReport, case: str, returned: Array) -> TensorReport:
    """A failing tensor with the reason of a known deviation, where the ledger has one; suspect where only masked NaN leaks."""
    if t.verdict != "fail":
        return t
    only_nan = t.only_nan
    for row in kernel.known:
        if t.name in row.tensors and row.when(call) and (only_nan or not row.nan):
            return replace(t, known=row.reason)
    leaks = case == "poison" and only_nan and not _in_empty_rows(call, t.name, returned)
    return replace(t, suspect=LEAK) if leaks else t


def _in_empty_rows(call: Call, name: str, returned: Array) -> bool:
    """Whether all NaN of a tensor are in rows without keys: what is masked in other rows has no part in them."""
    if name not in BY_ROW or not {"query", "key"} <= set(call.sources):
        return False
    visible = call.keep.any(-1)
    if returned.shape[:3] != visible.shape:
        return False
    return not bool(np.isnan(returned.astype(np.float64))[visible].any())
