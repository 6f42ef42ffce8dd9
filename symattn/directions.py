"""Directions: which inputs of a definition move, by field name, and their arrays in the axes of the program.

A direction has the shape of the array that moves. How that array lies in the program is not said a second time here: the way back
(:func:`symattn.binding.unbind`) is asked where each element goes, and the direction is put there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import sympy as sp

from symattn.axes import Array
from symattn.binding import Bound, unbind
from symattn.definition import Definition
from symattn.errors import InputValueError, ShapeError, UnknownNameError, nearest
from symattn.fields import INPUT_FIELDS, field_of
from symattn.program import Program
from symattn.readcheck import refuse_unusable_directions
from symattn.sources import as_array

__all__ = ["PREFIX", "bind_directions", "check_directions", "directions_in", "moving"]

PREFIX = "tangent_"
RESULTS = frozenset({"tangent_out", "tangent_lse"})
"""Results that a file may hold beside the directions; they are left alone, and so is every ``hvp_``."""


def moving(program: Program, parameters: Iterable[str] = ()) -> dict[str, str]:
    """The direction fields that a forward program has, with the tensor that moves: real inputs, and gradients of the outputs.

    >>> moving(Definition(lse=False, attn_mask="boolean").program())
    {'tangent_key': 'K', 'tangent_query': 'Q', 'tangent_value': 'V', 'tangent_grad_out': 'dO'}
    """
    parameters = tuple(parameters)
    real = [n for n in program.inputs if n not in program.discrete]
    seeds = ["d" + n for n in program.outputs]
    return {PREFIX + field_of(n, parameters): n for n in (*real, *seeds)}


def directions_in(definition: Definition, fields: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The directions among given fields, and the others; recorded results (``tangent_out``, ``hvp_query``) are in neither.

    >>> directions_in(Definition(), {"query": 1, "tangent_query": 2, "tangent_key": None, "tangent_out": 3})
    ({'tangent_query': 2}, {'query': 1})
    """
    own = set(definition.unbound)
    found, rest = {}, {}
    for name, x in fields.items():
        if name in own or not name.startswith((PREFIX, "hvp_")):
            rest[name] = x
        elif name not in RESULTS and name.startswith(PREFIX) and x is not None:
            found[name] = x
    return found, rest


def check_directions(definition: Definition, names: Iterable[str]) -> None:
    """Refuse directions of what a definition has not, or does not differentiate by.

    Raises
    ------
    UnknownNameError
        With the nearest names that exist.
    InputValueError
        For a mask, lengths or token numbers: nothing is differentiated by them.

    >>> check_directions(Definition(), ["tangent_query"])
    >>> check_directions(Definition(), ["tangent_qery"])
    Traceback (most recent call last):
    symattn.errors.UnknownNameError: no direction is called 'tangent_qery'. Did you mean 'tangent_query', ...?
    """
    program = definition.program(batch=True)
    known = moving(program, definition.parameters)
    still = {PREFIX + field_of(n, definition.parameters) for n in program.discrete}
    for name in names:
        if name in known:
            continue
        base = name.removeprefix(PREFIX)
        if name in still:
            raise InputValueError(f"{name}: only conditions and subscripts read {base}, so nothing is differentiated by it")
        if base in definition.params:
            raise InputValueError(f"{name}: the parameter {base} is bound to a number by the definition; it does not move")
        if base in INPUT_FIELDS:
            raise InputValueError(f"{name} is given, but this definition does not read {base}. {nearest(name, known)}")
        raise UnknownNameError(f"no direction is called {name!r}. {nearest(name, known)}")


def bind_directions(bound: Bound, given: Mapping[str, Any]) -> dict[str, Array]:
    """The arrays of directions by the names of the tensors that move, in the axes of the program.

    Parameters
    ----------
    bound
        The definition with its numbers.
    given
        Direction field -> array, each of the shape of the array that moves.

    Raises
    ------
    ShapeError
        On a direction of another shape, by name.
    InputValueError
        On a NaN or an infinity that something reads, and as :func:`check_directions`.

    >>> import numpy as np
    >>> from symattn.binding import bind
    >>> q = np.ones((1, 4, 3, 2))
    >>> bound = bind(Definition(), {"query": q, "key": q[:, :2], "value": q[:, :2]})
    >>> bind_directions(bound, {"tangent_query": q})["Q"].shape
    (1, 2, 2, 3, 2)
    """
    parameters = bound.definition.parameters
    check_directions(bound.definition, given)
    known, found = moving(bound.program, parameters), {}
    for field, x in given.items():
        found[known[field]] = _placed(bound, field, known[field], as_array(field, x))
    fields = {letter: field for field, letter in known.items()}
    refuse_unusable_directions(bound.program, bound.inputs, found, bound.sizes, fields)
    return found


def _placed(bound: Bound, field: str, letter: str, x: Array) -> Array:
    """An array as it was given, in the axes of the program."""
    inner = _inner_shape(bound, letter)
    count = int(np.prod(inner, dtype=np.int64))
    places = unbind(bound, letter, np.arange(count).reshape(inner))[1]
    if places.shape != x.shape:
        base = field.removeprefix(PREFIX)
        raise ShapeError(f"{field} has shape {x.shape}, needed is {places.shape}, the shape of {base}")
    flat = np.zeros(count, dtype=x.dtype)
    if places.size == count:
        flat[places.ravel()] = x.ravel()
        return flat.reshape(inner)
    lists = np.empty(count, dtype=object)  # one number stands for many places: their gradients are added up, and so are lists
    lists[:] = [(k,) for k in range(count)]
    for at, value in zip(unbind(bound, letter, lists.reshape(inner))[1].ravel(), x.ravel(), strict=True):
        flat[list(at)] = value
    return flat.reshape(inner)


def _inner_shape(bound: Bound, letter: str) -> tuple[int, ...]:
    """The shape in the program of an input, or of the gradient of an output."""
    if letter in bound.inputs:
        return np.shape(bound.inputs[letter])
    sizes = {s: sp.Integer(bound.sizes[str(s)]) for s in bound.program.sizes if str(s) in bound.sizes}
    shape = bound.program.shapes[letter[1:]]
    return tuple(int(n.xreplace(sizes)) for n in shape)
