"""Tensors that were recorded, judged by a definition instead of running anything."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from symattn.arithmetic import Arithmetic, declaration
from symattn.definition import Definition
from symattn.errors import FileFormatError, KernelError, ShapeError
from symattn.fields import INPUT_FIELDS
from symattn.intake import to_numpy
from symattn.tensors import implied, laid_out
from symattn.verify.case import run_case
from symattn.verify.diagnosis.diagnose import diagnose
from symattn.verify.diagnosis.undeclared import with_preset
from symattn.verify.files import read_tensors
from symattn.verify.further import strength
from symattn.verify.kernels.base import Tensors
from symattn.verify.kernels.call import Call
from symattn.verify.kernels.recorded import Recorded
from symattn.verify.kernels.user import OUTPUTS
from symattn.verify.observed import Observed
from symattn.verify.reference import Reference
from symattn.verify.remarks import remarks
from symattn.verify.report import CaseReport, Report
from symattn.verify.savefile import cases_in
from symattn.verify.userinputs import refuse_other_dtypes
from symattn.verify.whole import report_of

__all__ = ["verify_recorded"]


def verify_recorded(
    source: str | Mapping[str, Any],
    definition: Definition,
    *,
    arithmetic: Arithmetic | str | Mapping[str, Any] | None = None,
    layout: str = "bhsd",
    keep: bool = False,
    guard: bool = True,
    progress: Callable[[str], None] | None = None,
    diagnosis: str = "bounded",
) -> Report:
    """Judge tensors that a kernel gave, from a file or under field names, instead of running anything.

    Parameters
    ----------
    source
        A ``.npz`` or ``.safetensors`` file, or arrays by field name: ``query key value out`` and what else there is of ``lse
        grad_out grad_lse grad_query grad_key grad_value attn_mask sinks`` and the other fields of the definition. Tensors
        that a definition reads say by their presence that it has them: ``attn_mask`` (boolean or additive by its dtype),
        ``sinks``, ``alibi_slopes``, ``bias`` ... Names ``CASE/NAME`` are several inputs, see :mod:`symattn.verify.savefile`.
    definition, arithmetic, layout, keep, guard, progress, diagnosis
        As for :func:`symattn.verify.judge.verify`. Nothing declared: a tiled kernel of the inputs' dtype.

    Raises
    ------
    FileFormatError
        When the file cannot be read, lacks a tensor, or holds tensors that fit neither each other nor the definition.
    """
    started = time.perf_counter()
    name = source if isinstance(source, str) else "arrays"
    declared = declaration(arithmetic)
    tensors = read_tensors(source) if isinstance(source, str) else {k: to_numpy(v, k) for k, v in source.items() if v is not None}
    seen: list[Observed] = []
    cases: list[CaseReport] = []
    warnings: list[str] = []
    for case, part in cases_in(tensors).items():
        wanted, inputs, outputs = _recorded(laid_out(part, layout), definition.core, name)
        try:
            cases.append(
                run_case(
                    Recorded(name, outputs),
                    Reference(wanted, inputs, keep=keep),
                    case,
                    backward=any(k.startswith("grad_") for k in outputs),
                    arithmetic=declared,
                    seen=seen,
                )
            )
        except (ShapeError, KernelError) as error:
            raise FileFormatError(f"{name}: {error}") from error
        warnings += [f"{name} holds {k!r}, which is not judged" for k in sorted(set(part) - set(inputs) - set(outputs))]
    found = diagnose(seen, choice=diagnosis)
    if declared is None:
        found = with_preset(seen, found)
    warnings += remarks(cases, definition, backward=True)
    replay = f"symattn.verify.judge.verify_recorded({name!r}, {definition!r})"
    shown = strength(seen, wanted, cases[0].dtype, 0, progress=progress) if guard else None
    return report_of(name, cases, warnings, replay, started, found, shown, seen=seen)


def _recorded(tensors: Tensors, definition: Definition, name: str) -> tuple[Definition, Tensors, Tensors]:
    """The definition that recorded tensors imply, the inputs among them, and the outputs."""
    missing = [n for n in (*Call(definition, {}).sources, "out") if n not in tensors]
    if missing:
        raise FileFormatError(f"{name}: lacks {', '.join(missing)}; it holds {', '.join(sorted(tensors)) or 'nothing'}")
    wanted = implied(definition, tensors)
    known = INPUT_FIELDS | set(wanted.unbound)
    inputs = {k: a for k, a in tensors.items() if k in known and k not in OUTPUTS}
    refuse_other_dtypes(name, wanted, inputs)
    outputs = {k: a for k, a in tensors.items() if k in OUTPUTS or (k.startswith("grad_") and k not in INPUT_FIELDS)}
    return wanted, inputs, outputs
