"""The exact values of a definition under field names: arrays in, enclosures of outputs, gradients and tangents out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import sympy as sp

from symattn import formats
from symattn.binding import Bound, bind, unbind
from symattn.defined import refuse_undefined
from symattn.definition import Definition
from symattn.derivative import tangent_name
from symattn.directions import PREFIX, bind_directions, check_directions, directions_in, moving
from symattn.errors import InputValueError, UnknownNameError, nearest
from symattn.fields import field_of, kind_of, public_fields
from symattn.program import Program
from symattn.truth.derived import with_gradient, with_tangent
from symattn.truth.enclosure import Enclosure
from symattn.truth.truth import Truth, truth
from symattn.truth.work.run import Work

__all__ = ["back", "check_outputs", "laid_back", "prepared", "truth_of", "with_gradient", "with_seeds"]

Array = npt.NDArray[Any]


def check_outputs(definition: Definition, wanted: Iterable[str]) -> None:
    """Refuse names that are no tensor of a definition and no gradient or tangent of one, before there are arrays.

    Raises
    ------
    UnknownNameError
        With the nearest names that exist.

    >>> check_outputs(Definition(), ["out", "grad_query", "weights", "tangent_out", "hvp_query"])
    >>> check_outputs(Definition(), ["wights"])
    Traceback (most recent call last):
    symattn.errors.UnknownNameError: there is no output 'wights'. Did you mean 'weights'?
    """
    program, parameters = definition.program(batch=True), definition.parameters
    defined = [s.name for s in program]
    real = [n for n in program.inputs if n not in program.discrete]
    seeds = {field_of("d" + n, parameters) for n in program.outputs}
    tangents = [tangent_name(s.name) for s in program if not s.range_only]
    letters = [*defined, *tangents, *(x for n in (*real, *defined) for x in ("d" + n, tangent_name("d" + n)))]
    names = {field_of(n, parameters) for n in letters} - seeds
    public = [*defined, *map(tangent_name, program.outputs), *(x for n in real for x in ("d" + n, tangent_name("d" + n)))]
    shown = public_fields(public, parameters) - seeds
    for name in wanted:
        if name not in names:
            raise UnknownNameError(f"there is no output {name!r}. {nearest(name, shown)}")


def prepared(
    definition: Definition, fields: Mapping[str, Any], *, layout: str, gradient: bool, tangent: bool
) -> tuple[Bound, Program, dict[str, Array]]:
    """A definition bound to its numbers, the program that gives what is wanted, and the inputs of that program.

    Parameters
    ----------
    definition, fields, layout
        As for :func:`truth_of`.
    gradient, tangent
        Whether gradients and tangents are wanted; with both, Hessian-vector products are in the program too.

    Raises
    ------
    InputValueError
        When gradients are wanted and no gradient comes in, or tangents and no direction: all would be 0.
    SymattnError
        As :func:`symattn.binding.bind` and :func:`symattn.directions.bind_directions` do.
    """
    given, rest = directions_in(definition, fields)
    check_directions(definition, given)
    bound = bind(definition, rest, layout=layout)
    program, inputs = bound.program, dict(bound.inputs)
    if tangent:
        directions = bind_directions(bound, given)
        if not directions:
            wanted = [f for f in moving(program, bound.definition.parameters) if not f.startswith(PREFIX + "grad_")]
            raise InputValueError(f"missing: {' or '.join(wanted)}; tangents need a direction (one that is absent is 0)")
        program = with_tangent(program, tuple(sorted(directions)), gradient)
        inputs |= {tangent_name(n): x for n, x in directions.items()}
    elif gradient:
        program = with_gradient(program)
    if gradient:
        seeded = any(n.startswith("d") for n in directions) if tangent else False
        inputs |= with_seeds(bound, needed=not seeded)
    return bound, program, inputs


def with_seeds(bound: Bound, needed: bool = True) -> dict[str, Array]:
    """The inputs of a bound definition with a zero for each incoming gradient that was not given.

    The zeros are integers, so that they do not widen the dtype of what was given.

    Raises
    ------
    InputValueError
        When none was given, and one is ``needed``: every gradient would be 0.
    """
    seeds = ["d" + name for name in bound.program.outputs]
    if needed and not any(name in bound.inputs for name in seeds):
        named = " or ".join(field_of(name, bound.definition.parameters) for name in seeds)
        raise InputValueError(f"missing: {named}; gradients of the inputs need an incoming gradient (one that is absent is 0)")
    sizes = {s: sp.Integer(bound.sizes[str(s)]) for s in bound.program.sizes if str(s) in bound.sizes}
    given = dict(bound.inputs)
    for name in bound.program.outputs:
        shape = tuple(int(n.xreplace(sizes)) for n in bound.program.shapes[name])
        given.setdefault("d" + name, np.zeros(shape, dtype=np.int64))
    return given


def laid_back(bound: Bound, name: str, array: Array) -> tuple[str, Array]:
    """The field name and the array in the layout of fields of a tensor; a tangent lies as what it is the tangent of."""
    parameters = bound.definition.parameters
    moves = kind_of(name, parameters)[0] in ("tangent_", "hvp_")
    return field_of(name, parameters), unbind(bound, name.removesuffix("_t") if moves else name, array)[1]


def back(bound: Bound, name: str, found: Enclosure) -> tuple[str, Enclosure]:
    """A tensor's field name, and its enclosure in the layout of fields.

    A gradient that is summed because its mask was broadcast is summed exactly: midpoints and radii add up.
    """
    field, codes = laid_back(bound, name, found.codes)
    if codes.size == found.codes.size:
        return field, found.each(lambda array: laid_back(bound, name, array)[1])
    mid, rad = (laid_back(bound, name, array)[1] for array in (found.mid, found.rad))
    return field, Enclosure(mid, rad, np.where(rad == 0, "exact", "enclosed"))


def truth_of(
    definition: Definition,
    fields: Mapping[str, Any],
    *,
    layout: str = "bhsd",
    digits: int | None = None,
    bits: int | None = None,
    until: Literal["decided"] | None = None,
    decide: str | formats.Format | None = None,
    max_bits: int | None = None,
    tier: str | None = None,
    assume: bool = False,
    work: Work | None = None,
) -> Truth:
    """The exact values of a definition's outputs, and of the derivatives that the given fields determine.

    Gradients are there where ``grad_out`` or ``grad_lse`` is given; tangents, where a direction is (``tangent_query`` ...); with
    both, the Hessian-vector products, which are the tangents of the gradients.

    Parameters
    ----------
    definition
        What is computed.
    fields
        Arrays under field names, as for :func:`symattn.binding.bind`, and directions of the shape of what moves
        (``tangent_query``, ``tangent_grad_out`` ...). An incoming gradient or a direction that is absent is 0.
    layout
        ``"bhsd"`` or ``"bshd"``.
    digits, bits, until, decide, max_bits, tier, assume, work
        As for :func:`symattn.truth.truth`; 50 digits when nothing is asked.

    Returns
    -------
    Truth
        ``out``, ``lse``, ``grad_query``, ``tangent_out``, ``hvp_query`` ... -> :class:`Enclosure`.

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
    moved = directions_in(definition, fields)[0]
    gradient = any(fields.get(f) is not None for f in ("grad_out", "grad_lse"))
    gradient |= any(f.startswith(PREFIX + "grad_") for f in moved)
    bound, program, inputs = prepared(definition, fields, layout=layout, gradient=gradient, tangent=bool(moved))
    refuse_undefined(program, inputs, bound.sizes)
    evaluate: Callable[..., Truth] = truth
    given = {n: inputs[n] for n in program.inputs}
    how = {"until": until, "decide": decide, "max_bits": max_bits, "tier": tier, "assume": assume, "work": work}
    found = evaluate(program, given, digits=digits, bits=bits, sizes=bound.sizes, **how)
    return Truth(dict(back(bound, name, enclosure) for name, enclosure in found.items()), found.steps)
