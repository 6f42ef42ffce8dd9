"""The judge: a kernel's tensors on one input, each against an enclosure of the truth and the bound of a declared arithmetic.

An element passes when ``|k - mid| + rad <= bound`` and fails when ``|k - mid| - rad > bound``; between the two the precision of
the truth is raised, and at the cap the element is inconclusive. Gradients are judged from the kernel's own saved output and
log-sum-exp where the declared arithmetic says that it recomputes the weights from them, end to end otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import sympy as sp

from symattn import formats
from symattn.arithmetic import Arithmetic
from symattn.binding import Bound, bind, unbind
from symattn.defined import refuse_undefined
from symattn.definition import Definition
from symattn.errors import DefinitionError
from symattn.fields import BY_LETTER, field_of
from symattn.intake import Array
from symattn.program import Program
from symattn.readings import slopes
from symattn.readings.units import representable
from symattn.tensors import in_order
from symattn.truth.enclosure import Enclosure
from symattn.truth.fields import back, with_gradient
from symattn.truth.questions import Asked
from symattn.truth.truth import Truth, truth
from symattn.verify import programs
from symattn.verify.compare import Comparison, compare_values
from symattn.verify.deciding import question_of
from symattn.verify.evidence import Evidence
from symattn.verify.kernels.call import Call
from symattn.verify.replay.pieces import in_pieces
from symattn.verify.replay.replayed import replayed
from symattn.verify.report import TensorReport

BITS = 128
"""Precision that the truth is first enclosed at."""
CAP = 8192
"""Precision at which an undecided element is inconclusive."""


@dataclass
class Reference:
    """A definition with its arrays, and the truths of it that were asked for, kept for the next kernel on the same input.

    Parameters
    ----------
    definition
        The attention of given query, key and value.
    fields
        Arrays by field name in the layout ``bhsd``, incoming gradients among them.
    keep
        Whether reports keep every element: see :class:`symattn.verify.evidence.Evidence`.
    """

    definition: Definition
    fields: Mapping[str, Array]
    keep: bool = False
    _kept: dict[tuple[Any, ...], dict[str, Enclosure]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.bound: Bound = bind(self.definition, self.fields)
        whole = with_gradient(self.bound.program) if "grad_out" in self.fields else self.bound.program
        refuse_undefined(whole, self.bound.inputs, self.bound.sizes)
        self.definition = self.bound.definition
        self.call = Call(self.definition, {k: np.asarray(v) for k, v in self.fields.items()})

    def enclosed(
        self, program: Program, inputs: Mapping[str, Any], outputs: tuple[str, ...], bits: int, key: str
    ) -> Mapping[str, Enclosure]:
        """The exact values of some outputs at a precision; ``key`` tells inputs apart that are not the fields alone."""
        at = (program, outputs, bits, key)
        if at not in self._kept or not key:
            given = {n: inputs[n] for n in program.inputs}
            self._kept[at] = truth(program, given, bits=bits, outputs=outputs, sizes=dict(self.bound.sizes))
        return self._kept[at]

    def decided(self, program: Program, inputs: Mapping[str, Any], outputs: tuple[str, ...], asked: Asked, cap: int) -> Truth:
        """The exact values of some outputs as narrow as a question needs them, up to a precision."""
        given = {n: inputs[n] for n in program.inputs}
        return truth(program, given, decide=asked, outputs=outputs, sizes=dict(self.bound.sizes), max_bits=cap)

    def seeds(self, *, with_lse: bool) -> dict[str, Array]:
        """The inputs of the gradient: those of the program and the incoming gradients, 0 for the LSE where it is not used."""
        given = {k: a for k, a in self.bound.inputs.items() if k != "dL" or with_lse}
        for name in self.bound.program.outputs:
            given.setdefault("d" + name, np.zeros(self._shape(name), self.call.dtype))
        return given

    def _shape(self, name: str) -> tuple[int, ...]:
        """The sizes of a tensor in the axes of the program."""
        sizes = {s: sp.Integer(self.bound.sizes[str(s)]) for s in self.bound.program.sizes if str(s) in self.bound.sizes}
        return tuple(int(n.xreplace(sizes)) for n in self.bound.program.shapes[name])

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the outputs by field name."""
        shown = (unbind(self.bound, name, np.zeros(self._shape(name))) for name in self.bound.program.outputs)
        return {field: a.shape for field, a in shown}

    def saved(self, outputs: Mapping[str, Array]) -> dict[str, Array]:
        """A kernel's own output and LSE in the axes of the program."""
        return {n: self._into(outputs[field_of(n)], BY_LETTER[n].axes) for n in self.bound.program.outputs}

    def _into(self, x: Array, axes: str) -> Array:
        return self.bound.axes.into(x, axes) if self.bound.axes.batch else x.reshape(x.shape[-len(axes) + 2 :])


@dataclass(frozen=True)
class _Question:
    """What a set of tensors is judged by: the program and inputs of the truth, and those of the bound."""

    program: Program
    inputs: Mapping[str, Any]
    list_: Program
    list_inputs: Mapping[str, Any]
    key: str
    staged: bool = False


@dataclass(frozen=True)
class Tolerance:
    """A tolerance given instead of a derived one: ``atol + rtol |exact|``."""

    rtol: Fraction
    atol: Fraction

    def bound(self, mid: Array) -> Array:
        """The bound per element, rounded up to float64; 0 where the exact value is infinite or NaN."""
        values = [self.atol + self.rtol * abs(m) if isinstance(m, Fraction) else Fraction(0) for m in mid.ravel()]
        return np.array([formats.above(v) for v in values], dtype=np.float64).reshape(mid.shape)


def check_inputs(arithmetic: Arithmetic, call: Call, *, by_value: bool = False) -> None:
    """Refuse an arithmetic that is declared for other inputs than there are.

    ``by_value`` allows arrays of another dtype whose numbers the declared format has: copies of what a kernel was given.

    Raises
    ------
    DefinitionError
        Naming both formats.
    """
    declared = formats.get(arithmetic.input)
    if declared.storage == str(call.dtype):
        return
    given = tuple(a for a in (call.fields[n] for n in call.sources) if a.dtype.kind not in "biu")
    if by_value and all(representable(a.astype(np.float64), declared.name).all() for a in given):
        return
    raise DefinitionError(
        f"the arithmetic {arithmetic.name} is one of {declared.name} inputs, and the inputs here are {call.dtype}"
    )


def judge_forward(
    ref: Reference, tensors: Mapping[str, Array], arithmetic: Arithmetic | Tolerance, *, cap: int = CAP
) -> list[TensorReport]:
    """The verdicts on ``out`` and, where given, ``lse``.

    Parameters
    ----------
    ref
        The input.
    tensors
        What the kernel returned, by field name, shapes already checked.
    arithmetic
        How the kernel computes, or a tolerance to use in place of the bound that follows from it.
    cap
        Bits at which an undecided element is inconclusive.
    """
    program, inputs = ref.bound.program, ref.bound.inputs
    followed = programs.followed(program, arithmetic, gradient=False) if isinstance(arithmetic, Arithmetic) else program
    found = _judge(ref, tensors, arithmetic, _Question(program, inputs, followed, inputs, "forward"), cap)
    return found if isinstance(arithmetic, Tolerance) else _with_replay(ref, tensors, arithmetic, followed, found)


def _with_replay(
    ref: Reference, tensors: Mapping[str, Array], arithmetic: Arithmetic, followed: Program, reports: list[TensorReport]
) -> list[TensorReport]:
    """The reports with what a replay of the cast of the weights says, where there is one."""
    if arithmetic.probability is None:
        return reports
    own, given = ref.definition.parameters, {n: ref.bound.inputs[n] for n in followed.inputs}
    replay = in_pieces(followed, given, arithmetic, dict(ref.bound.sizes))
    names = {f: n for n in followed.outputs if (f := field_of(n, own)) in tensors}
    found = replayed(replay, names, tensors, lambda name, x: unbind(ref.bound, name, x)[1])
    return [replace(t, replayed=found.get(t.name)) for t in reports]


def judge_backward(
    ref: Reference,
    tensors: Mapping[str, Array],
    arithmetic: Arithmetic | Tolerance,
    *,
    saved: Mapping[str, Array] | None = None,
    with_lse: bool = False,
    cap: int = CAP,
) -> list[TensorReport]:
    """The verdicts on gradients.

    Parameters
    ----------
    ref, tensors, arithmetic, cap
        As for :func:`judge_forward`; ``tensors`` holds ``grad_query``, ``grad_key``, ``grad_value`` and others by field name.
    saved
        The output and LSE that the backward started from; with a staged arithmetic the truth starts from them too.
    with_lse
        Whether the kernel took the gradient of the LSE; it is 0 otherwise.
    """
    program, inputs = ref.bound.program, ref.seeds(with_lse=with_lse)
    if isinstance(arithmetic, Tolerance):
        exact = with_gradient(program)
        return _judge(ref, tensors, arithmetic, _Question(exact, inputs, exact, inputs, f"backward {with_lse}"), cap)
    whole = programs.followed(program, arithmetic, gradient=True)
    if arithmetic.staged and saved is not None and usable(saved, ref):
        part = programs.staged(whole, program.outputs)
        given = {**inputs, **ref.saved(saved)}
        question = _Question(part, given, part, given, "", staged=True)
    else:
        question = _Question(with_gradient(program), inputs, whole, inputs, f"backward {with_lse}")
    return _judge(ref, tensors, arithmetic, question, cap)


def usable(saved: Mapping[str, Array], ref: Reference) -> bool:
    """Whether the truth can start from what was saved: finite, but for the LSE of rows without keys."""
    out, lse = saved.get("out"), saved.get("lse")
    if out is None or lse is None or set(ref.bound.program.outputs) != {"O", "L"}:
        return False
    return bool(np.isfinite(out.astype(np.float64)).all() and (np.isfinite(lse) | np.isneginf(lse)).all())


def _judge(
    ref: Reference, tensors: Mapping[str, Array], arithmetic: Arithmetic | Tolerance, q: _Question, cap: int
) -> list[TensorReport]:
    own = ref.definition.parameters
    names = {f: n for n in q.program.outputs if (f := field_of(n, own)) in tensors}
    bounds: dict[str, Array] = {}
    if isinstance(arithmetic, Arithmetic):
        given = {n: q.list_inputs[n] for n in q.list_.inputs}
        bounded = slopes.bounds(q.list_, given, arithmetic, tuple(names.values()), sizes=dict(ref.bound.sizes), own=False)
        bounds = {f: unbind(ref.bound, n, bounded[n].bound)[1] for f, n in names.items()}
    found: dict[str, Comparison] = {}
    kept: dict[str, Evidence] = {}
    bits, todo = BITS, tuple(names)
    asked = question_of(ref.bound, q.program, names, tensors, bounds) if bounds else None
    while todo:
        wanted = tuple(names[f] for f in todo)
        if asked is None:
            values = ref.enclosed(q.program, q.inputs, wanted, bits, q.key)
        else:
            values, bits = ref.decided(q.program, q.inputs, wanted, asked, cap), cap
        for f in todo:
            exact = back(ref.bound, names[f], values[names[f]])[1]
            bound = arithmetic.bound(exact.mid) if isinstance(arithmetic, Tolerance) else bounds[f]
            found[f] = compare_values(tensors[f], exact.values, bound, formats.get(tensors[f].dtype))
            if ref.keep:
                kept[f] = Evidence(tensors[f], exact.mid, exact.rad, bound)
        todo = tuple(f for f in todo if found[f].undecided and not found[f].failing)
        bits *= 2
        if bits > cap:
            break
    return [TensorReport(f, found[f], staged=q.staged, evidence=kept.get(f)) for f in in_order(names)]
