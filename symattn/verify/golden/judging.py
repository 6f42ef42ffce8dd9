"""What came back from another language, judged: a folder of outputs against a folder of golden files."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from symattn.arithmetic import Arithmetic
from symattn.arithmetic.reading import declaration
from symattn.errors import FileFormatError, KernelError
from symattn.intake import Array
from symattn.verify.case import run_case
from symattn.verify.diagnosis.diagnose import diagnose
from symattn.verify.files import read_tensors
from symattn.verify.golden import manifest
from symattn.verify.golden.arrays import in_format, read_npy
from symattn.verify.golden.manifest import Case, Manifest
from symattn.verify.kernels.recorded import Recorded
from symattn.verify.observed import Observed
from symattn.verify.reference import Reference
from symattn.verify.remarks import remarks
from symattn.verify.report import CaseReport, Report
from symattn.verify.userinputs import refuse_other_dtypes


def verify_golden(
    golden: str | Path,
    outputs: str | Path,
    *,
    arithmetic: Arithmetic | str | Mapping[str, Any] | None = None,
    keep: bool = False,
    progress: Callable[[str], None] | None = None,
    diagnosis: str = "bounded",
) -> Report:
    """Judge what a kernel elsewhere computed from golden files.

    Parameters
    ----------
    golden
        A folder that ``symattn golden`` wrote; its inputs are checked against its checksums.
    outputs
        A folder that holds for each case ``DTYPE/INPUT/FIELD.npy``, or ``DTYPE/INPUT.safetensors`` with tensors by field name:
        ``out``, with gradients all ``grad_...``, and ``lse`` where there is one.
    arithmetic
        How the kernel computed; by default as the manifest says, and then gradients are judged end to end, by the bounds that
        are in the files. A declaration that says that the backward starts from the kernel's own output is judged by that.
    keep
        As for :func:`symattn.verify.judge.verify`.
    progress
        Called with a line of text before each case.
    diagnosis
        As for :func:`symattn.verify.judge.verify`.

    Raises
    ------
    FileFormatError
        When a file is missing, truncated or of another kind, in either folder.
    KernelError
        When an output has a wrong shape or dtype.
    """
    started = time.perf_counter()
    whole, base = manifest.read(golden), Path(outputs)
    if not base.is_dir():
        raise FileFormatError(f"{base}: no such folder")
    declared, cases, seen = declaration(arithmetic), [], list[Observed]()
    for case in whole.cases:
        if progress is not None:
            progress(case.name)
        cases.append(_judged(whole, case, _outputs(case, base), str(base), declared, keep, seen))
    return Report(
        kernel=str(base),
        definition=cases[0].definition,
        arithmetic=cases[0].arithmetic,
        cases=tuple(cases),
        warnings=tuple(remarks(cases, whole.definition, backward=whole.backward)),
        diagnosis=diagnose(seen, choice=diagnosis),
        replay=f"symattn.verify.golden.judging.verify_golden({str(golden)!r}, {str(outputs)!r})",
        seconds=time.perf_counter() - started,
    )


def _judged(
    whole: Manifest,
    case: Case,
    outputs: Mapping[str, Array],
    name: str,
    declared: Arithmetic | None,
    keep: bool,
    seen: list[Observed],
) -> CaseReport:
    inputs, where = whole.inputs(case), whole.folder / manifest.NAME
    refuse_other_dtypes(str(where), whole.definition, inputs)
    ref = Reference(whole.definition, inputs, keep=keep)
    if case.sizes != ref.call.shape:
        raise FileFormatError(f"{where}: the case {case.name} has the sizes {dict(case.sizes)}, its files {ref.call.shape}")
    kernel = Recorded(name, outputs)
    return run_case(kernel, ref, case.input, backward=whole.backward, arithmetic=declared or case.arithmetic, seen=seen)


def _outputs(case: Case, base: Path) -> dict[str, Array]:
    """The outputs of a case, shapes and dtypes checked; ``lse`` may be missing."""
    packed, folder = base / f"{case.name}.safetensors", base / case.name
    if packed.is_file():
        given = {n: (a, f"{packed}: {n}") for n, a in read_tensors(packed).items() if n in case.results}
    else:
        paths = {n: folder / f"{n}.npy" for n in case.results}
        given = {n: (read_npy(p), str(p)) for n, p in paths.items() if p.is_file()}
    missing = [n for n in case.results if n not in given and n != "lse"]
    if missing:
        where = f"{packed}: lacks {', '.join(missing)}" if packed.is_file() else f"{folder / missing[0]}.npy: no such file"
        raise FileFormatError(f"{where}; the case {case.name} needs {', '.join(n for n in case.results if n != 'lse')}")
    found = {}
    for n, (a, where) in given.items():
        want = case.results[n]
        if list(a.shape) != want["shape"]:
            axes = ", ".join(want["axes"])
            raise KernelError(f"{where} has shape {tuple(a.shape)}; it should be {tuple(want['shape'])} ({axes})")
        free = n == "lse" and str(a.dtype) in ("float64", "float32", "float16")
        found[n] = a if free else in_format(a, want["dtype"], where)
    return found
