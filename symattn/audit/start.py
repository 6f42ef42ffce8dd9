"""Where a page starts: its inputs under the names of fields, or in the middle of the computation.

A page may start at X and weights (the identity where a weight matrix is not given), at Q, K and V, at scores, or at weights.
Arrays that it does not give are filled with zeros, so that there is a program, and nothing that depends on them has a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from symattn.audit.claimsfile import Given
from symattn.audit.quantities import field_named, letter_named, size_named
from symattn.errors import DefinitionError, InputValueError, ShapeError

Array = npt.NDArray[Any]

MIDWAY = ("R", "S", "P")
"""Tensors at which a page may start: scores, scaled scores, weights."""


@dataclass(frozen=True)
class Start:
    """The arrays of a page under field names, and the tensors that it starts with in the middle of the program."""

    fields: Mapping[str, Array]
    midway: Mapping[str, Array]
    filled: frozenset[str]
    """Fields that hold zeros because the page does not give them."""
    sizes: Mapping[str, int]


def start_of(given: Mapping[str, Given], definition: Mapping[str, Any]) -> Start:
    """Where a page starts.

    Parameters
    ----------
    given
        Its inputs by the names that it uses.
    definition
        Fields of the definition as typed.

    Raises
    ------
    DefinitionError
        When it gives no start.
    ShapeError, InputValueError
        When heads do not share the columns, or a size is none.

    >>> import numpy as np
    >>> x = np.array([[1, 2]], dtype=object)
    >>> sorted(start_of({"X": Given(x, x * 0)}, {}).fields)
    ['w_k', 'w_q', 'w_v', 'x']
    """
    fields: dict[str, Array] = {}
    midway: dict[str, Array] = {}
    sizes: dict[str, int] = {}
    for name, g in given.items():
        field, letter, size = field_named(name), letter_named(name), size_named(name)
        if field is not None and (name == field or g.values.ndim):
            fields[field] = _rows(g.values) if field in ("query", "key", "value", "x", "memory", "grad_out") else g.values
        elif letter in MIDWAY:
            midway[letter] = _rows(g.values)
        elif size is not None and not g.values.ndim:
            sizes[size] = _whole(name, g.values[()])
    if "x" in fields:  # a page may give some of Q, K and V beside X: they stand in for the projections
        midway |= {letter: fields.pop(name) for letter, name in (("Q", "query"), ("K", "key"), ("V", "value")) if name in fields}
    else:  # weights without an X are what the page shows beside, and nothing reads them
        for name in ("w_q", "w_k", "w_v", "memory"):
            fields.pop(name, None)
    _split(fields, definition)
    if "attn_mask" in fields and not any(isinstance(x, float) for x in fields["attn_mask"].ravel().tolist()):
        fields["attn_mask"] = _boolean(fields["attn_mask"])
    filled = _fill(fields, midway, sizes, _heads(definition, "heads"))
    return Start(fields, midway, filled, sizes)


def implied(fields: Mapping[str, Array]) -> dict[str, Any]:
    """The fields of a definition that arrays ask for by being there."""
    found: dict[str, Any] = {"start": "x"} if "x" in fields else {}
    given = {"output_projection": "w_o", "cross": "memory", "sink": "sinks", "alibi": "alibi_slopes", "bias": "bias"}
    if "attn_mask" in fields:
        found["attn_mask"] = "boolean" if fields["attn_mask"].dtype == bool else "additive"
    return found | {name: True for name, array in given.items() if array in fields}


def _boolean(x: Array) -> Array:
    """A mask of zeros and ones as what it says; any other is added to the scores."""
    return x.astype(bool) if all(v in (0, 1) for v in x.ravel().tolist()) else x


def _rows(x: Array) -> Array:
    """A matrix: a vector is its only row."""
    while x.ndim < 2:
        x = x[None]
    return x


def _whole(name: str, x: Any) -> int:
    if isinstance(x, float) or x.denominator != 1 or not 0 < x < 10**6:
        raise InputValueError(f"{name} is a size: a whole number above 0")
    return int(x)


def _split(fields: dict[str, Array], definition: Mapping[str, Any]) -> None:
    """Give Q, K and V a head axis where a definition has several heads."""
    for name in ("query", "key", "value", "grad_out"):
        x = fields.get(name)
        if x is None or "x" in fields:
            continue
        heads = _heads(definition, "heads" if name in ("query", "grad_out") or "kv_heads" not in definition else "kv_heads")
        if x.ndim == 2 and heads > 1:
            if x.shape[1] % heads:
                raise ShapeError(f"{name} has {x.shape[1]} columns, which {heads} heads do not share evenly")
            x = np.moveaxis(x.reshape(x.shape[0], heads, -1), 1, 0)
        if x.ndim == 3:
            fields[name] = x[None]


def _heads(definition: Mapping[str, Any], key: str) -> int:
    """A number of heads as typed; 1 where it is none, which the definition itself will say."""
    typed = str(definition.get(key, 1))
    return int(typed) if typed.isdigit() and 0 < int(typed) < 1000 else 1


def _fill(fields: dict[str, Array], midway: Mapping[str, Array], sizes: Mapping[str, int], heads: int) -> frozenset[str]:
    """Zeros for what the page does not give, in the shapes that the rest has."""
    if "x" in fields:
        width = fields["x"].shape[-1]
        source = fields.get("memory", fields["x"]).shape[-1]
        unit = {"w_q": width, "w_k": source, "w_v": source}
        for name, size in unit.items():
            fields.setdefault(name, _identity(size))
        return frozenset()
    scores = next((x for x in midway.values()), None)
    known = fields.get("query"), fields.get("key"), fields.get("value")
    if scores is None and all(x is None for x in known):
        raise DefinitionError("the inputs start nowhere: give X, or Q, K and V, or scores, or weights")
    n = known[0].shape[-2] if known[0] is not None else scores.shape[-2] if scores is not None and scores.ndim > 1 else 1
    m = scores.shape[-1] if scores is not None else next((x.shape[-2] for x in known[1:] if x is not None), n)
    d = next((x.shape[-1] for x in known[:2] if x is not None), sizes.get("d", 1))
    wide = (
        [fields["grad_out"].shape[-1]] if "grad_out" in fields else [fields["w_o"].shape[0] // heads] if "w_o" in fields else []
    )
    front = next((x.shape[:-2] for x in known if x is not None), (1, heads) if heads > 1 else ())
    filled = set()
    for name, shape in {"query": (n, d), "key": (m, d), "value": (m, wide[0] if wide else 1)}.items():
        if name not in fields:
            fields[name] = np.full((*front, *shape), 0, dtype=object)
            filled.add(name)
    return frozenset(filled)


def _identity(size: int) -> Array:
    out = np.zeros((size, size), dtype=object)
    for k in range(size):
        out[k, k] = 1
    return out
