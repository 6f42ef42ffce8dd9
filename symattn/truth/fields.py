"""The exact values of a definition under field names: arrays in, enclosures of outputs and gradients out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sp

from symattn import formats
from symattn.adjoint import adjoint
from symattn.binding import Bound, bind, unbind
from symattn.defined import refuse_undefined
from symattn.definition import Definition
from symattn.errors import InputValueError, UnknownNameError, nearest
from symattn.fields import field_of, public_fields
from symattn.program import Program
from symattn.truth.enclosure import Enclosure
from symattn.truth.truth import truth

Array = npt.NDArray[Any]


@lru_cache(maxsize=256)
def with_gradient(program: Program) -> Program:
    """A forward program followed by its gradient as the rule gives it; its outputs are those of both.

    >>> with_gradient(Definition(lse=False).program()).outputs
    ('O', 'dK', 'dQ', 'dV')
    """
    raw = adjoint(program)
    return raw.with_statements(raw.statements, dict.fromkeys((*program.outputs, *raw.outputs)))


def check_outputs(definition: Definition, wanted: Iterable[str]) -> None:
    """Refuse names that are no tensor of a definition and no gradient of one, before there are arrays.

    Raises
    ------
    UnknownNameError
        With the nearest names that exist.

    >>> check_outputs(Definition(), ["out", "grad_query", "weights"])
    >>> check_outputs(Definition(), ["wights"])
    Traceback (most recent call last):
    symattn.errors.UnknownNameError: there is no output 'wights'. Did you mean 'weights'?
    """
    program, parameters = definition.program(batch=True), definition.parameters
    defined = [s.name for s in program]
    real = [n for n in program.inputs if n not in program.discrete]
    seeds = {field_of("d" + n, parameters) for n in program.outputs}
    letters = [*defined, *("d" + n for n in (*real, *defined))]
    names = {field_of(n, parameters) for n in letters} - seeds
    shown = public_fields([*defined, *("d" + n for n in real)], parameters) - seeds
    for name in wanted:
        if name not in names:
            raise UnknownNameError(f"there is no output {name!r}. {nearest(name, shown)}")


def with_seeds(bound: Bound) -> dict[str, Array]:
    """The inputs of a bound definition with a zero for each incoming gradient that was not given.

    The zeros are integers, so that they do not widen the dtype of what was given.

    Raises
    ------
    InputValueError
        When none was given: every gradient would be 0.
    """
    seeds = ["d" + name for name in bound.program.outputs]
    if not any(name in bound.inputs for name in seeds):
        needed = " or ".join(field_of(name, bound.definition.parameters) for name in seeds)
        raise InputValueError(f"missing: {needed}; gradients of the inputs need an incoming gradient (one that is absent is 0)")
    sizes = {s: sp.Integer(bound.sizes[str(s)]) for s in bound.program.sizes if str(s) in bound.sizes}
    given = dict(bound.inputs)
    for name in bound.program.outputs:
        shape = tuple(int(n.xreplace(sizes)) for n in bound.program.shapes[name])
        given.setdefault("d" + name, np.zeros(shape, dtype=np.int64))
    return given


def back(bound: Bound, name: str, found: Enclosure) -> tuple[str, Enclosure]:
    """A tensor's field name, and its enclosure in the layout of fields.

    A gradient that is summed because its mask was broadcast is summed exactly: midpoints and radii add up.
    """
    field, mid = unbind(bound, name, found.mid)
    rad = unbind(bound, name, found.rad)[1]
    if mid.size == found.status.size:
        return field, Enclosure(mid, rad, unbind(bound, name, found.status)[1])
    return field, Enclosure(mid, rad, np.where(rad == 0, "exact", "enclosed"))


def truth_of(
    definition: Definition,
    fields: Mapping[str, Any],
    *,
    layout: str = "bhsd",
    digits: int | None = None,
    bits: int | None = None,
    decide: str | formats.Format | None = None,
    max_bits: int | None = None,
) -> dict[str, Enclosure]:
    """The exact values of a definition's outputs, and of its gradients where ``grad_out`` or ``grad_lse`` is given.

    Parameters
    ----------
    definition
        What is computed.
    fields
        Arrays under field names, as for :func:`symattn.binding.bind`; an incoming gradient that is absent is 0.
    layout
        ``"bhsd"`` or ``"bshd"``.
    digits, bits, decide, max_bits
        As for :func:`symattn.truth.truth`; 50 digits when nothing is asked.

    Returns
    -------
    dict
        ``out``, ``lse``, ``grad_query`` ... -> :class:`Enclosure`.

    Raises
    ------
    InputValueError
        Where a score has no value, see :func:`symattn.defined.refuse_undefined`.
    SymattnError
        As :func:`symattn.binding.bind` and :func:`symattn.truth.truth` do.

    >>> found = truth_of(Definition(), {"query": [[1.0]], "key": [[0.0], [0.0]], "value": [[1.0], [4.0]]}, digits=20)
    >>> found["out"].decimal(4).tolist(), found["lse"].decimal(12).tolist()
    ([['2.500']], ['0.693147180560'])
    """
    bound = bind(definition, fields, layout=layout)
    gradient = any(fields.get(f) is not None for f in ("grad_out", "grad_lse"))
    program = with_gradient(bound.program) if gradient else bound.program
    inputs = with_seeds(bound) if gradient else bound.inputs
    refuse_undefined(program, inputs, bound.sizes)
    evaluate: Callable[..., dict[str, Enclosure]] = truth
    given = {n: inputs[n] for n in program.inputs}
    found = evaluate(program, given, digits=digits, bits=bits, decide=decide, max_bits=max_bits, sizes=bound.sizes)
    return dict(back(bound, name, enclosure) for name, enclosure in found.items())
