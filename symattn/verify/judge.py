"""Verify: a kernel run on seeded inputs, or tensors that were recorded, judged by a definition; a report is the answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from symattn import arithmetic as arithmetics
from symattn import formats
from symattn.arithmetic import Arithmetic, declaration
from symattn.definition import Definition
from symattn.errors import DefinitionError, FileFormatError, KernelError, ShapeError, SymattnError, UnknownNameError
from symattn.fields import INPUT_FIELDS
from symattn.grammar import parameters_of
from symattn.intake import Array, to_numpy
from symattn.tensors import implied, laid_out
from symattn.verify.diagnosis.diagnose import diagnose
from symattn.verify.diagnosis.finding import Finding
from symattn.verify.diagnosis.undeclared import with_preset
from symattn.verify.faults.fault import Situation
from symattn.verify.files import read_tensors
from symattn.verify.further import strength
from symattn.verify.guard import Guard
from symattn.verify.inputs import KINDS, Choice, Kind, Shape, cases_for, fields_for
from symattn.verify.kernels.base import Kernel, Tensors
from symattn.verify.kernels.call import Call
from symattn.verify.kernels.registry import resolve
from symattn.verify.kernels.user import OUTPUTS
from symattn.verify.margins import Margins
from symattn.verify.margins.suspicion import suspicions
from symattn.verify.observed import Observed
from symattn.verify.properties.check import properties_of
from symattn.verify.properties.finding import PropertyReport
from symattn.verify.reference import Reference, check_inputs, judge_forward, usable
from symattn.verify.remarks import LEAK, remarks
from symattn.verify.report import CaseReport, Report, TensorReport, worst_of
from symattn.verify.running import gradients_of, outputs_of
from symattn.verify.savefile import cases_in
from symattn.verify.staging import judge_gradients
from symattn.verify.userinputs import own_cases, refuse_other_dtypes

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

    Raises
    ------
    KernelError
        When the kernel raises, or returns a wrong shape or dtype.
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
        cases.append(run_case(subject, ref, name, backward=backward, arithmetic=declared, seen=seen))
    if not cases:
        raise DefinitionError(f"{subject.name} does not compute this definition: {refused[0].partition(': ')[2]}")
    if refused:
        warnings.append(f"not judged on {'; '.join(refused)}")
    again = _again(subject, wanted, format, seed, backward=backward, arithmetic=declared) if inputs is None else None
    found = diagnose(seen, again)
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
    options |= {"inputs": inputs if isinstance(inputs, str) else None}
    replay = f"{definition!r}.verify({subject.name!r}, {', '.join(f'{k}={v!r}' for k, v in options.items() if v)})"
    dtype = str(seen[0].situation.dtype)
    shown = strength(seen, wanted, dtype, seed, progress=progress) if guard else None
    properties = properties_of(subject, seen)
    return _report(subject.name, cases, warnings, replay, started, found, shown, properties, seen)


def _again(
    kernel: Kernel, definition: Definition, dtype: str, seed: int, *, backward: bool, arithmetic: Arithmetic | None
) -> Callable[[str, Shape], bool]:
    """Whether a kernel fails on a kind of input in another shape; where it cannot be run there, it does not."""

    def fails(kind: str, shape: Shape) -> bool:
        rows = [k for k in KINDS if k.name == kind]
        try:
            ref = Reference(definition, fields_for(definition, shape, dtype, seed, rows[0] if rows else KINDS[0]))
            if kernel.unsupported(ref.call) is not None or (backward and not kernel.has_backward(ref.call)):
                return False
            return run_case(kernel, ref, kind, backward=backward, arithmetic=arithmetic).verdict == "fail"
        except SymattnError:
            return False

    return fails


def verify_recorded(
    source: str | Mapping[str, Any],
    definition: Definition,
    *,
    arithmetic: Arithmetic | str | Mapping[str, Any] | None = None,
    layout: str = "bhsd",
    keep: bool = False,
    guard: bool = True,
    progress: Progress | None = None,
) -> Report:
    """Judge tensors that a kernel gave, from a file or under field names, instead of running anything.

    Parameters
    ----------
    source
        A ``.npz`` or ``.safetensors`` file, or arrays by field name: ``query key value out`` and what else there is of ``lse
        grad_out grad_lse grad_query grad_key grad_value attn_mask sinks`` and the other fields of the definition. Tensors
        that a definition reads say by their presence that it has them: ``attn_mask`` (boolean or additive by its dtype),
        ``sinks``, ``alibi_slopes``, ``bias`` ... Names ``CASE/NAME`` are several inputs, see :mod:`symattn.verify.savefile`.
    definition, arithmetic, layout, keep, guard, progress
        As for :func:`verify`. Nothing declared: a tiled kernel of the inputs' dtype.

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
    found = diagnose(seen)
    if declared is None:
        found = with_preset(seen, found)
    warnings += remarks(cases, definition, backward=True)
    replay = f"symattn.verify.judge.verify_recorded({name!r}, {definition!r})"
    shown = strength(seen, wanted, cases[0].dtype, 0, progress=progress) if guard else None
    return _report(name, cases, warnings, replay, started, found, shown, seen=seen)


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
    call = ref.call
    declared = arithmetic or kernel.arithmetic(call)
    check_inputs(declared, call, by_value=isinstance(kernel, Recorded))
    outputs = outputs_of(kernel, call, ref.shapes(), declared)
    judged = {k: a for k, a in outputs.items() if k in ref.shapes()}
    tensors = judge_forward(ref, judged, declared)
    saved, with_lse = None, False
    if backward:
        grads, saved, with_lse = gradients_of(kernel, call, outputs, declared, partial=isinstance(kernel, Recorded))
        assumed = arithmetic is None and kernel.assumed
        tensors += judge_gradients(ref, grads, declared, saved=saved, with_lse=with_lse, assumed=assumed)
        judged |= grads
    reports = tuple(_marked(kernel, call, t, name) for t in tensors)
    if seen is not None:
        start = saved if saved is not None and declared.staged and usable(saved, ref) else None
        situation = Situation(ref, declared, start, with_lse)
        seen.append(Observed(name, situation, {t.name: judged[t.name] for t in reports}, reports))
    return CaseReport(
        case=name,
        kernel=kernel.name,
        dtype=str(call.dtype),
        shape=call.shape,
        definition=ref.definition.conventions(),
        arithmetic=declared.to_dict(),
        tensors=reports,
        inputs=dict(call.fields) if ref.keep else None,
    )


def _marked(kernel: Kernel, call: Call, t: TensorReport, case: str) -> TensorReport:
    """A failing tensor with the reason of a known deviation, where the ledger has one; suspect where only masked NaN leaks."""
    if t.verdict != "fail":
        return t
    only_nan = t.only_nan
    for row in kernel.known:
        if t.name in row.tensors and row.when(call) and (only_nan or not row.nan):
            return replace(t, known=row.reason)
    return replace(t, suspect=LEAK) if case == "poison" and only_nan else t


def _report(
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


class Recorded(Kernel):
    """Tensors that were computed elsewhere, as a kernel that returns them."""

    assumed = True

    def __init__(self, name: str, outputs: Mapping[str, Array]) -> None:
        self.name, self.outputs = name, outputs

    def arithmetic(self, call: Call) -> Arithmetic:
        """A tiled kernel of the inputs' dtype."""
        return arithmetics.default_for(call.dtype)

    def forward(self, call: Call) -> Tensors:
        """What was recorded."""
        return {k: a for k, a in self.outputs.items() if k in OUTPUTS}

    def takes(self, call: Call, outputs: Mapping[str, Array]) -> frozenset[str]:
        """Whatever there is."""
        return frozenset({k for k in ("out", "lse") if k in outputs} | ({"grad_lse"} & set(call.fields)))

    def backward(self, call: Call, given: Mapping[str, Array]) -> Tensors:
        """What was recorded."""
        return {k: a for k, a in self.outputs.items() if k.startswith("grad_")}
