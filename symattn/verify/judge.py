"""Verify: a kernel run on seeded inputs, or on a user's own tensors, judged by a definition; a report is the answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from symattn import formats
from symattn.arithmetic import Arithmetic, declaration
from symattn.definition import Definition
from symattn.errors import DefinitionError, SymattnError, UnknownNameError
from symattn.grammar import parameters_of
from symattn.verify.case import run_case, tried_case
from symattn.verify.diagnosis.diagnose import diagnose
from symattn.verify.diagnosis.undeclared import with_preset
from symattn.verify.further import strength
from symattn.verify.inputs import KINDS, Choice, Kind, Shape, cases_for, fields_for
from symattn.verify.kernels.base import Kernel
from symattn.verify.kernels.call import Call
from symattn.verify.kernels.registry import resolve
from symattn.verify.observed import Observed
from symattn.verify.pack.kinds import SHAPE
from symattn.verify.properties.check import properties_of, rerun
from symattn.verify.raising import excused, hints, refuse_all
from symattn.verify.recorded import verify_recorded
from symattn.verify.reference import Reference
from symattn.verify.remarks import remarks
from symattn.verify.report import CaseReport, Report, worst_of
from symattn.verify.userinputs import own_cases
from symattn.verify.whole import report_of

__all__ = ["require_values", "run_case", "verify", "verify_recorded"]

Progress = Callable[[str], None]


def verify(
    kernel: str | Callable[..., Any] | Kernel,
    definition: Definition,
    *,
    dtype: str = "float32",
    backward: bool = False,
    shape: str | Shape | None = None,
    only: str | Sequence[str] | None = None,
    skip: str | Sequence[str] | None = None,
    max_len: int | None = None,
    require: str | None = None,
    inputs: str | Mapping[str, Any] | None = None,
    arithmetic: Arithmetic | str | Mapping[str, Any] | None = None,
    seed: int = 0,
    layout: str = "bhsd",
    backward_kernel: str | Callable[..., Any] | None = None,
    progress: Progress | None = None,
    keep: bool = False,
    guard: bool = True,
    diagnosis: str = "bounded",
) -> Report:
    """Judge a kernel on the default pack of inputs, on some of it, or on a user's own tensors.

    Parameters
    ----------
    kernel
        A function of the calling convention, a built-in name, ``"FILE.py:FUNCTION"`` or ``"MODULE:FUNCTION"``.
    definition
        What it should compute; of one that starts from X or tokens, the attention in it.
    dtype
        Format of the inputs that are made.
    backward
        Judge gradients too.
    shape
        ``"B,H,HKV,N,M,D[,DV]"``: sizes of one further input, named ``shape``, of standard normal numbers.
    only, skip
        The inputs of the pack that are taken, and those that are not: names joined by commas, or a list.
    max_len
        The greatest number of queries and of keys in the pack.
    require
        What the sizes have to fulfil, such as ``"d % 8 == 0, n == m"``: each input takes the nearest that do.
    inputs
        A ``.npz`` or ``.safetensors`` file, or arrays by field name, to run the kernel on in place of the pack. Names
        ``CASE/NAME`` are several inputs.
    arithmetic
        How the kernel computes: a declaration, the name of a preset, or a mapping; by default what the kernel declares.
    seed
        The same seed gives the same inputs.
    layout
        In which a function takes and returns arrays, ``"bhsd"`` or ``"bshd"``.
    backward_kernel
        Where the gradients of a function come from.
    progress
        Called with a line of text before each case, and before the guard is worked out.
    keep
        Keep inputs, outputs, exact values and bounds of every element in the report, for pictures and files.
    guard
        Whether the report can say which known faults the run could not have shown.
    diagnosis
        ``"bounded"``: the search for the fault of a kernel that fails stops after so much work, about a minute, and the report
        says so; ``"all"``: it goes on.

    Raises
    ------
    KernelError
        When the kernel raises on every input, or returns a wrong shape or dtype on every one. What it does on some of them is
        their verdict.
    UnknownNameError, MissingDependencyError, DefinitionError, ShapeError
        When there is no such kernel, it cannot run here, or does not compute this definition; when a parameter of the definition
        has no value, or the arithmetic is one of other inputs.

    >>> verify("numpy:flash", Definition(causal="top-left"), shape="1,2,1,2,3,4", only="shape,decode").verdict
    'pass'
    """
    started = time.perf_counter()
    subject = resolve(kernel, backward=backward_kernel, layout=layout)
    wanted = definition.core
    require_values(wanted)
    format = formats.get(dtype).name
    if formats.get(dtype).storage != format:
        raise UnknownNameError(f"{format} is no dtype of arrays; its numbers are kept in {formats.get(dtype).storage}")
    declared = declaration(arithmetic)
    choice = Choice.of(shape, only, skip, max_len, require)
    cases: list[CaseReport] = []
    warnings: list[str] = []
    refused: list[str] = []
    seen: list[Observed] = []
    implying: dict[str, Definition] = {}
    if inputs is not None:
        own = own_cases(inputs, wanted, layout=layout, backward=backward, seed=seed)
        packed, implying = ({name: x.fields for name, x in own.items()}, {name: x.definition for name, x in own.items()})
        wanted = next(iter(implying.values()))
        warnings += [line for x in own.values() for line in x.remarks]
    else:
        idle: list[str] = []
        judged = lambda kind, call: choice.only is not None or _promised(kind, call, subject, declared, idle)
        packed = cases_for(wanted, format, seed, choice, judged=judged)
        if idle:
            warnings.append(f"not judged on {', '.join(idle)}: the arithmetic promises nothing for scores of this size")
    for name, fields in packed.items():
        ref = Reference(implying.get(name, wanted), fields, keep=keep)
        reason = subject.unsupported(ref.call)
        if reason is not None:
            refused.append(f"{name}: {reason}")
            continue
        if backward and not subject.has_backward(ref.call):
            raise DefinitionError(f"{subject.name} has no backward: give it one (--backward-kernel), or judge the forward alone")
        if progress is not None:
            progress(f"{subject.name} {format} {name}")
        cases.append(tried_case(subject, ref, name, backward=backward, arithmetic=declared, seen=seen))
    if not cases:
        raise DefinitionError(f"{subject.name} does not compute this definition: {refused[0].partition(': ')[2]}")
    if refused:
        warnings.append(f"not judged on {'; '.join(refused)}")
    cases = excused(cases) if inputs is None else cases
    told = hints(cases, require) if inputs is None else []
    refuse_all(cases, told[0] if told else None)
    warnings += told
    again = _again(subject, wanted, format, seed, backward=backward, arithmetic=declared) if inputs is None else None
    properties = properties_of(subject, seen)
    found = diagnose(seen, again, choice=diagnosis, run=partial(rerun, subject), properties=properties)
    if declared is None and subject.assumed:
        found = with_preset(seen, found)
    warnings += remarks(cases, definition, backward=backward)
    if declared is None and subject.assumed and worst_of(c.verdict for c in cases) == "fail":
        name = cases[0].arithmetic["name"]
        warnings.append(
            f"the kernel does not say how it computes and was judged as {name}; --arithmetic or its attribute says otherwise"
        )
    options = {"dtype": format, "backward": backward, "shape": str(choice.shape) if choice.shape else None, "only": choice.only}
    options |= {"skip": choice.skip, "max_len": max_len, "require": require, "seed": seed, "layout": layout}
    options |= {"diagnosis": diagnosis if diagnosis != "bounded" else None}
    options |= {"inputs": inputs if isinstance(inputs, str) else None}
    replay = f"{definition!r}.verify({subject.name!r}, {', '.join(f'{k}={v!r}' for k, v in options.items() if v)})"
    dtype = cases[0].dtype
    shown = strength(seen, wanted, dtype, seed, progress=progress) if guard else None
    return report_of(subject.name, cases, warnings, replay, started, found, shown, properties, seen)


def _again(
    kernel: Kernel, definition: Definition, dtype: str, seed: int, *, backward: bool, arithmetic: Arithmetic | None
) -> Callable[[str, Shape], bool]:
    """Whether a kernel fails on a kind of input in another shape; where it cannot be run there, it does not."""

    def fails(kind: str, shape: Shape) -> bool:
        rows = [k for k in (SHAPE, *KINDS) if k.name == kind]
        try:
            ref = Reference(definition, fields_for(definition, shape, dtype, seed, rows[0] if rows else KINDS[0]))
            if kernel.unsupported(ref.call) is not None or (backward and not kernel.has_backward(ref.call)):
                return False
            return run_case(kernel, ref, kind, backward=backward, arithmetic=arithmetic).verdict == "fail"
        except SymattnError:
            return False

    return fails


def _promised(kind: Kind, call: Call, kernel: Kernel, declared: Arithmetic | None, idle: list[str]) -> bool:
    """Whether anything is asked of a kernel on a kind of input; ``idle`` takes the names of those where nothing is."""
    if not kind.height or kind.promised(declared or kernel.arithmetic(call)):
        return True
    idle.append(kind.name)
    return False


def require_values(definition: Definition) -> None:
    """Refuse a definition with a parameter that has no value: a number that is drawn in silence is nobody's definition.

    Raises
    ------
    DefinitionError
        Naming the parameter and how it is bound.
    """
    for name in (n for n in definition.unbound if n not in definition.arrays):
        shown = "a number, or a list with one per head" if name in _per_head(definition) else "a number"
        how = f"--param {name}=... (in Python params={{{name!r}: ...}}), {shown}"
        raise DefinitionError(f"the parameter {name} has no value: bind it with {how}")


def _per_head(d: Definition) -> set[str]:
    """The parameters that may have a value per head: those of texts."""
    return {p for text in (d.score, d.mask) if text is not None for p in parameters_of(text)}
