"""What a kernel with a fault returns: the rewritten lists under the rounding reading, brought back to fields."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import sympy as sp

from symattn.arithmetic import Arithmetic
from symattn.binding import OUTPUT_FIELDS, Bound, bind, unbind
from symattn.definition import Definition
from symattn.errors import ProgramError, SymattnError
from symattn.fields import BY_LETTER, field_of
from symattn.intake import Array
from symattn.program import Program
from symattn.readings import rounding, slopes
from symattn.verify import programs
from symattn.verify.faults.fault import SAME, Alternative, Prediction, Predictions, Situation

GRADIENTS_IN = ("grad_out", "grad_lse")


def predictions(
    situation: Situation, alternative: Alternative = SAME, *, forward: bool = True, backward: bool = False, sharp: bool = False
) -> Predictions:
    """Every output of a kernel that computes the alternative, by field name.

    Parameters
    ----------
    situation
        The input.
    alternative
        What is computed on it; :data:`SAME`: what the definition says.
    forward, backward
        Which outputs: ``out`` and ``lse``; the gradients.
    sharp
        Reach by the bounds that verdicts are made of, which know what errors have in common; else by plain propagation, which is
        faster and never less.

    Returns
    -------
    dict
        Field name -> :class:`Prediction` in the layout and shape of the field.

    Raises
    ------
    SymattnError
        Where the alternative makes no sense on these arrays.

    >>> import numpy as np
    >>> from symattn.arithmetic import get
    >>> from symattn.verify.reference import Reference
    >>> q, k, v = (np.ones((1, 1, s, 4), np.float32) for s in (1, 2, 2))
    >>> here = Situation(Reference(Definition(), {"query": q, "key": k, "value": v}), get("eager-fp32"))
    >>> predictions(here, Alternative(definition=Definition(scale=1)))["lse"].value.round(4)
    array([[[4.6931]]])
    """
    if alternative.values is not None:
        wanted = {k: p for k, p in alternative.values.items() if (backward if k.startswith("grad_") else forward)}
        return dict(wanted)
    if alternative.compute is not None:
        return alternative.compute(forward, backward)
    bound = _bound(situation, alternative)
    arithmetic = alternative.arithmetic or situation.arithmetic
    found: Predictions = {}
    if forward:
        list_ = _forward_list(situation, alternative, bound, arithmetic)
        found |= _evaluated(list_, bound.inputs, bound, arithmetic, sharp)
    if backward:
        list_ = _backward_list(situation, alternative, bound)
        found |= _evaluated(list_, _seeded(situation, alternative, bound), bound, arithmetic, sharp)
    if alternative.writes:
        found |= {k: _looked_up(found[k], at) for k, at in alternative.writes.items() if k in found}
    if alternative.reads:
        for name, at in alternative.reads.items():
            if (grad := "grad_" + name) in found:
                at = (alternative.scatters or {}).get(name, at)
                found[grad] = _scattered(found[grad], at, situation.fields[name].shape)
    return alternative.after(situation, found) if alternative.after is not None else found


def _bound(situation: Situation, a: Alternative) -> Bound:
    """The program of the alternative with its inputs."""
    if a.definition is None and not a.reads and not a.fields and not a.writes:
        base = situation.bound
    else:
        definition = a.definition or situation.definition
        fields = {**situation.fields, **(a.fields or {})}
        fields |= {n: looked_up(fields[n], at) for n, at in (a.reads or {}).items() if n in fields}
        if a.writes and "out" in a.writes and "grad_out" in fields:  # the gradient comes in where the output went out
            fields["grad_out"] = _transposed(fields["grad_out"], a.writes["out"])
        base = bind(definition, used(definition, fields, situation))
    return replace(base, program=a.program) if a.program is not None else base


def used(definition: Definition, fields: Mapping[str, Array], situation: Situation) -> dict[str, Array]:
    """The arrays that a definition reads, of those that are given for another one."""
    program = definition.program(batch=situation.bound.axes.batch)
    names = {field_of(n, definition.parameters) for n in program.inputs}
    if definition.document:
        names |= {"doc", "doc_q", "doc_k"}
    names |= {n for n in GRADIENTS_IN if n != "grad_lse" or definition.lse}
    return {n: x for n, x in fields.items() if n in names and n not in OUTPUT_FIELDS}


def _forward_list(situation: Situation, a: Alternative, bound: Bound, arithmetic: Arithmetic) -> Program:
    same = bound.program == situation.program and a.arithmetic is None
    list_ = situation.forward if same else programs.followed(bound.program, arithmetic, gradient=False)
    return a.edit(list_) if a.edit is not None else list_


def _backward_list(situation: Situation, a: Alternative, bound: Bound) -> Program:
    list_ = situation.backward if bound.program == situation.program else situation.gradient_of(bound.program)
    for edit in (a.edit, a.gradient):
        list_ = edit(list_) if edit is not None else list_
    return list_


def _evaluated(list_: Program, inputs: Mapping[str, Any], bound: Bound, arithmetic: Arithmetic, sharp: bool) -> Predictions:
    if unknown := [n for n in list_.inputs if n not in inputs]:  # one fault drops what another one reads
        raise ProgramError(f"the list reads {', '.join(unknown)}, which there is not in its definition")
    given = {n: inputs[n] for n in list_.inputs}
    boxes: Mapping[str, Any] = {}
    if sharp:
        with suppress(SymattnError):  # a list of a shape that slopes are not known for: plain propagation covers every list
            boxes = slopes.bounds(list_, given, arithmetic, sizes=dict(bound.sizes))
    boxes = boxes or rounding.evaluate(list_, given, arithmetic, sizes=dict(bound.sizes))
    found: Predictions = {}
    for name in list_.outputs:
        field, value = unbind(bound, name, boxes[name].value)
        reach = unbind(bound, name, np.asarray(boxes[name].bound + boxes[name].own))[1]
        found[field] = Prediction(np.asarray(value), np.asarray(reach))
    return found


def _seeded(situation: Situation, a: Alternative, bound: Bound) -> dict[str, Any]:
    """The inputs of a gradient's list: incoming gradients, 0 where one is not used, and what was saved."""
    given = {k: x for k, x in bound.inputs.items() if k != "dL" or situation.with_lse}
    sizes = {s: sp.Integer(bound.sizes[str(s)]) for s in bound.program.sizes if str(s) in bound.sizes}
    for name in bound.program.outputs:
        shape = tuple(int(n.xreplace(sizes)) for n in bound.program.shapes[name])
        given.setdefault("d" + name, np.zeros(shape, situation.dtype))
    if situation.saved is not None:
        saved = dict(situation.saved)
        if a.writes and "out" in a.writes:
            saved["out"] = _transposed(saved["out"], a.writes["out"])
        given |= {n: _into(bound, saved[field_of(n)], BY_LETTER[n].axes) for n in bound.program.outputs}
    return given


def _into(bound: Bound, x: Array, axes: str) -> Array:
    return bound.axes.into(x, axes) if bound.axes.batch else x.reshape(x.shape[-len(axes) + 2 :])


def looked_up(x: Array, at: Array) -> Array:
    """``x.flat[at]``, 0 where ``at`` is -1."""
    flat = np.concatenate([np.asarray(x).ravel(), np.zeros(1, np.asarray(x).dtype)])
    return flat[at]


def _looked_up(p: Prediction, at: Array) -> Prediction:
    return Prediction(looked_up(p.value, at), looked_up(p.reach, at))


def _transposed(x: Array, at: Array) -> Array:
    """What a look-up took, put back: for each position of the source the sum of what was read from it."""
    out = np.zeros(x.size + 1, np.float64)
    np.add.at(out, at.ravel(), x.astype(np.float64).ravel())
    return out[:-1].reshape(x.shape).astype(x.dtype)


def _scattered(p: Prediction, at: Array, shape: tuple[int, ...]) -> Prediction:
    """The gradient of a field of a shape that was read through a look-up."""
    value, reach = np.zeros(int(np.prod(shape)) + 1), np.zeros(int(np.prod(shape)) + 1)
    with np.errstate(invalid="ignore"):  # infinities of both signs: no number, which explains what is none
        np.add.at(value, at.ravel(), p.value.ravel())
        np.add.at(reach, at.ravel(), p.reach.ravel())
    return Prediction(value[:-1].reshape(shape), reach[:-1].reshape(shape))
