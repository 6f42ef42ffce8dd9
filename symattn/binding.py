"""Arrays under field names to the inputs of a program, checked; and a program's results back to fields.

Arrays are ``(B, H, n, d)`` (layout ``bhsd``) or ``(B, n, H, d)`` (``bshd``); a single head without batch may be ``(n, d)``. Three
axes are refused, because nothing says whether the first one is the batch or the heads. The log-sum-exp is ``(B, H, n)`` in both
layouts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from symattn import declared, forms, givens
from symattn.axes import Array, Axes
from symattn.definition import Definition
from symattn.errors import DefinitionError, EmptyRowError, InputValueError, ShapeError, UnknownNameError, nearest
from symattn.evaluation import refuse_open_block
from symattn.fields import BY_LETTER, HELPERS, INPUT_FIELDS, field_of
from symattn.positions import refuse_widths
from symattn.program import Program
from symattn.readcheck import keep_of, refuse_unusable
from symattn.sources import as_array, sources_of

LAYOUTS = ("bhsd", "bshd")
OUTPUT_FIELDS = frozenset({"out", "lse"} | {"grad_" + f for f in INPUT_FIELDS if not f.startswith("grad_")})
"""Fields that a file may hold beside the inputs; binding leaves them alone."""


@dataclass(frozen=True)
class Bound:
    """A definition with its numbers.

    Parameters
    ----------
    definition
        With heads, mask axes and the like as the arrays show them.
    program
        Its forward program, with a batch axis unless the arrays have none.
    inputs
        Tensor name -> array in the axes of the program; gradients of the outputs (``dO``, ``dL``) where they were given.
    sizes
        Size name -> number.
    axes, layout, shapes
        How to bring a result back: see :func:`unbind`. ``shapes`` holds the shape in which each field was given.
    """

    definition: Definition
    program: Program
    inputs: Mapping[str, Array]
    sizes: Mapping[str, int]
    axes: Axes
    layout: str
    shapes: Mapping[str, tuple[int, ...]]

    def keep(self) -> Array:
        """Where query i attends to key j: boolean, ``(B, H, n, m)`` (``(n, m)`` without batch)."""
        shape = (self.sizes.get("B", 1), self.axes.heads, self.sizes["n"], self.sizes.get("m", self.sizes["n"]))
        found = keep_of(self.definition, self.axes.batch, self.inputs, self.sizes)
        full = np.broadcast_to(found, self.axes.into(np.empty(shape), "bHij").shape)
        return self.axes.back(full, "bHij") if self.axes.batch else full


def bind(definition: Definition, fields: Mapping[str, Any], *, layout: str = "bhsd") -> Bound:
    """The program of a definition and its inputs, from arrays under field names.

    Parameters
    ----------
    definition
        Heads that it does not fix are taken from the arrays, the axes of masks and biases too.
    fields
        ``query key value`` (or ``x``, ``memory``, ``tokens``, ``embedding``, ``w_q`` ...), what the definition reads beside them,
        its unbound parameters, and ``grad_out``, ``grad_lse`` where gradients are wanted. Outputs among them are ignored.
    layout
        Of query, key, value and their gradients.

    Raises
    ------
    ShapeError
        On axes that do not fit each other or the definition, and on an empty axis.
    InputValueError
        On a NaN or infinity that something reads, on arrays of different dtypes, and on a field that is missing.
    EmptyRowError
        On a query without keys under ``empty_row="error"``.
    DefinitionError
        On a field that the definition does not use, and on a parameter without a value.
    UnknownNameError
        On a field that does not exist.

    >>> import numpy as np
    >>> q = np.ones((1, 4, 3, 2))
    >>> bound = bind(Definition(causal="top-left"), {"query": q, "key": q[:, :2], "value": q[:, :2]})
    >>> bound.program["R"].target, bound.inputs["Q"].shape, bound.sizes["G"]
    (R[b, k, g, i, j], (1, 2, 2, 3, 2), 2)
    """
    if layout not in LAYOUTS:
        raise DefinitionError(f"layout is one of {', '.join(map(repr, LAYOUTS))}, got {layout!r}. {nearest(layout, LAYOUTS)}")
    _refuse_unused(definition, fields)
    refuse_open_block(definition)
    arrays = {name: as_array(name, x) for name, x in fields.items() if name not in OUTPUT_FIELDS and x is not None}
    for name, x in arrays.items():
        if 0 in x.shape:
            raise ShapeError(f"{name} has an empty axis: its shape is {x.shape}")
    shapes = {name: x.shape for name, x in arrays.items()}
    sources = sources_of(definition, arrays, layout)
    d, axes, inputs = sources.definition, sources.axes, dict(sources.inputs)
    d = givens.masks(d, arrays, sources, inputs)
    d = givens.others(d, arrays, sources, inputs)
    program = d.program(batch=axes.batch)
    known = dict(sources.sizes)
    inputs |= declared.take(
        program, [n for n in program.inputs if n in declared.LETTERS and n not in inputs], arrays, axes, known, layout
    )
    _refuse_unread(program, arrays, d)
    sizes = {k: v for k, v in known.items() if k in {str(s) for s in program.sizes}}
    missing = [n for n in program.inputs if n not in inputs]
    if missing:
        raise InputValueError(f"missing: {', '.join(field_of(n, d.parameters) for n in missing)}")
    if "K" in inputs and str(program.shapes["K"][-2]) == "n" and known["m"] != known["n"]:
        raise ShapeError(f"this definition needs as many keys as queries, got {known['m']} keys and {known['n']} queries")
    givens.seeds(program, arrays, sources, inputs)
    bound = Bound(d, program, inputs, sizes, axes, layout, shapes)
    if "d" in known:
        refuse_widths(d, known.get("dr", known["d"]))
    whole = d.without_tiles.program(batch=axes.batch)
    refuse_unusable(whole, inputs, sizes, {n: field_of(n, d.parameters) for n in inputs})
    if d.empty_row == "error" and not bound.keep().any(axis=-1).all():
        row = tuple(int(k) for k in np.argwhere(~bound.keep().any(axis=-1))[0])
        raise EmptyRowError(f"query {row} may attend to no key, and the definition says empty_row='error'")
    return bound


def unbind(bound: Bound, name: str, array: Array) -> tuple[str, Array]:
    """The field name and the array in field layout of a tensor of the program or of its gradient.

    The gradient of a given mask or bias comes back in the shape in which that was given.

    >>> import numpy as np
    >>> q = np.ones((1, 4, 3, 2))
    >>> bound = bind(Definition(), {"query": q, "key": q[:, :1], "value": q[:, :1]})
    >>> name, back = unbind(bound, "dK", np.zeros((1, 3, 2)))
    >>> name, back.shape
    ('grad_key', (1, 1, 3, 2))
    """
    parameters = bound.definition.parameters
    letter = name if name in BY_LETTER or name in parameters or not name.startswith("d") else name[1:]
    field, x, axes = field_of(name, parameters), np.asarray(array), bound.axes
    given = field.removeprefix("grad_")
    if letter in bound.definition.arrays:
        return field, x
    if letter in parameters:
        if x.ndim == 0 and bound.shapes.get(given) == (1,):  # one head: a value per head and one number are the same
            return field, x.reshape(1)
        return field, x if x.ndim == 0 or letter == bound.definition.prefix else axes.back(x, "H")
    if letter not in BY_LETTER:
        roles = HELPERS.get(letter, "bHij" if letter[0] in "FW" else "")
        return field, axes.back(x, roles) if axes.batch or roles == "H" else x
    roles = BY_LETTER[letter].axes
    if letter in ("WQ", "WK", "WV", "WO"):
        return field, _weight_back(x, letter, bound)
    if letter in ("M", "B", "bias"):
        d = bound.definition
        return field, _spread_back(x, (d.bias_axes if letter == "bias" else d.mask_axes) or "bhij", bound.shapes[given], axes)
    if roles == "*":
        return field, x
    if letter in declared.LETTERS and bound.shapes.get(given, ()) and len(bound.shapes[given]) < len(roles):
        row = BY_LETTER[letter]
        whole = declared.merged(row, axes) is not None
        return field, declared.together(row, axes.back(x, roles), axes) if whole else x
    if "b" not in roles:
        return field, axes.back(x, roles)
    if not axes.batch:
        return field, x
    x = axes.back(x, roles)
    if bound.layout == "bshd" and roles in declared.TURNED:
        x = np.swapaxes(x, 1, 2)
    return field, x


def _weight_back(x: Array, letter: str, bound: Bound) -> Array:
    role = "H" if letter in ("WQ", "WO") else "K"
    x = bound.axes.back(x, role)
    shape = bound.shapes[field_of(letter)]
    if len(shape) == 3:
        return x
    return x.reshape(shape) if letter == "WO" else np.moveaxis(x, 0, 1).reshape(shape)


def _spread_back(x: Array, carried_axes: str, shape: tuple[int, ...], axes: Axes) -> Array:
    """A mask's gradient in the shape in which the mask was given; summed over an axis that was broadcast."""
    x = axes.back(x, "".join("H" if a == "h" else a for a in carried_axes))
    of = dict(zip(carried_axes, x.shape, strict=True))
    x = x.reshape([of.get(a, 1) for a in "bhij"])
    if len(shape) != len(carried_axes) or shape != tuple(of[a] for a in carried_axes):
        spread = (1,) * (4 - len(shape)) + shape
        for k, n in enumerate(spread):
            if n == 1 and x.shape[k] > 1:
                x = x.sum(axis=k, keepdims=True)
    return x.reshape(shape)


def _refuse_unread(program: Program, arrays: Mapping[str, Array], d: Definition) -> None:
    for letter in sorted(declared.LETTERS - set(program.inputs)):
        field = BY_LETTER[letter].field
        if (
            field in arrays
            and field not in d.unbound
            and not any(BY_LETTER[n].field == field for n in program.inputs if n in BY_LETTER)
        ):
            raise DefinitionError(f"{field} is given, but the definition does not use it")


def _refuse_unused(d: Definition, fields: Mapping[str, Any]) -> None:
    """A field that exists and that this definition does not read is a mistake: it would be ignored in silence."""
    own = forms.sources_of(d)

    def starts(letter: str, otherwise: bool) -> bool:
        return letter in own if own else otherwise

    uses = {
        "attn_mask": (d.attn_mask is not None, "attn_mask='boolean' or 'additive'"),
        "bias": (d.bias, "bias=True"),
        "alibi_slopes": (d.alibi and d.alibi_slopes == "given", "alibi=True with alibi_slopes='given'"),
        "sinks": (d.sink, "sink=True"),
        "dropout_mask": (d.dropout, "dropout=True"),
        "dropout_p": (d.dropout and d.dropout_p is None, "dropout=True without a dropout_p of its own"),
        "key_lengths": (d.key_lengths, "key_lengths=True"),
        "grad_lse": (d.lse, "lse=True"),
        **dict.fromkeys(("grad_logits", "grad_next_word"), (d.next_word, "next_word=True")),
        **dict.fromkeys(("doc", "doc_q", "doc_k"), (d.document, "document=True")),
        **{BY_LETTER[n].field: (starts(n, d.start == "qkv"), "start='qkv'") for n in ("Q", "K", "V")},
        **{BY_LETTER[n].field: (starts(n, d.start != "qkv"), "start='x' or 'tokens'") for n in ("WQ", "WK", "WV")},
        "x": (starts("X", d.start == "x"), "start='x'"),
        "memory": (starts("C", d.cross or forms.get(d.form).memory), "cross=True"),
        "w_o": (d.output_projection or "WO" in own, "output_projection=True"),
        **dict.fromkeys(("tokens", "embedding"), (d.start == "tokens", "start='tokens'")),
    }
    for name, value in fields.items():
        if value is None or name in OUTPUT_FIELDS or name in d.unbound:
            continue
        if name in d.params:
            raise DefinitionError(f"the parameter {name} is bound to a number by the definition and given as an array too")
        if name not in INPUT_FIELDS:
            raise UnknownNameError(f"no field is called {name!r}. {nearest(name, {*INPUT_FIELDS, *d.unbound})}")
        used, how = uses.get(name, (True, ""))
        if not used:
            raise DefinitionError(f"{name} is given, but the definition does not use it; it needs {how}")
