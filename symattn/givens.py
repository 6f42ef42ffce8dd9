"""What a definition reads beside Q, K and V: masks, biases, slopes, sinks, lengths, documents, dropout, parameters, gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from symattn.axes import Array, carried
from symattn.definition import Definition
from symattn.errors import DefinitionError, InputValueError, ShapeError
from symattn.fields import BY_LETTER
from symattn.indexed import size
from symattn.numbers import exact_array
from symattn.program import Program
from symattn.sources import Sources


def masks(d: Definition, arrays: Mapping[str, Array], sources: Sources, inputs: dict[str, Array]) -> Definition:
    """Given masks and biases, in the axes that they carry."""
    wanted = [("attn_mask", "M" if d.attn_mask == "boolean" else "B", d.attn_mask is not None, d.mask_axes, "mask_axes")]
    wanted.append(("bias", "bias", d.bias, d.bias_axes, "bias_axes"))
    for field, letter, used, declared, axes_field in wanted:
        if not used or field not in arrays:
            continue
        x = arrays[field]
        if letter == "M" and x.dtype.kind not in "biu":
            raise InputValueError(
                f"attn_mask has dtype {x.dtype}; a boolean mask is boolean (or 0 and 1): else attn_mask='additive'"
            )
        if letter == "M":
            _zeros_and_ones(field, x)
        if letter == "B" and x.dtype.kind == "b":
            raise InputValueError("attn_mask has dtype bool; an additive mask holds numbers: else attn_mask='boolean'")
        if not sources.axes.batch and x.ndim > 2:
            raise ShapeError(f"{field} has shape {x.shape}; without batch and heads it is (n, m) or broadcasts to it")
        found, spread = carried(field, x.shape, sources.full, declared)
        part = np.broadcast_to(x.reshape(spread), [n if a in found else 1 for a, n in zip("bhij", sources.full, strict=True)])
        part = part.reshape([n for a, n in zip("bhij", sources.full, strict=True) if a in found])
        inputs[letter] = sources.axes.into(part, "".join("H" if a == "h" else a for a in found))
        d = d.replace(**{axes_field: found})
    return d


def others(d: Definition, arrays: Mapping[str, Array], sources: Sources, inputs: dict[str, Array]) -> Definition:
    """Slopes, sinks, lengths, documents, dropout and parameters."""
    b, heads, n, m = sources.full
    axes = sources.axes

    def take(field: str, letter: str, roles: str, shape: tuple[int, ...], integers: bool = False) -> None:
        if field not in arrays:
            return
        x = arrays[field]
        lacks = x.ndim == len(shape) - 1 and roles.startswith("b")
        if integers and x.dtype.kind not in "iu":
            raise InputValueError(f"{field} has dtype {x.dtype}; integers are needed")
        if x.shape not in (shape, shape[1:] if lacks else shape):
            raise ShapeError(f"{field} has shape {x.shape}, needed is {shape}")
        inputs[letter] = axes.into(np.broadcast_to(x, shape), roles)

    take("alibi_slopes", "slope", "H", (heads,))
    take("sinks", "sink", "H", (heads,))
    take("key_lengths", "len", "b", (b,), integers=True)
    if "key_lengths" in arrays:
        _between("key_lengths", arrays["key_lengths"], lambda v: 0 <= v <= m, f"from 0 to {m}, the number of keys")
    one = d.start != "qkv" and not d.cross
    take("doc", "doc" if one else "doc_q", "bi", (b, n), integers=True)
    if "doc" in arrays and not one:
        take("doc", "doc_k", "bj", (b, m), integers=True)
    take("doc_q", "doc_q", "bi", (b, n), integers=True)
    take("doc_k", "doc_k", "bj", (b, m), integers=True)
    if "dropout_mask" in arrays:
        x = arrays["dropout_mask"]
        _zeros_and_ones("dropout_mask", x)
        _, spread = carried("dropout_mask", x.shape, sources.full, "bhij")
        inputs["drop"] = axes.into(np.broadcast_to(x.reshape(spread), sources.full), "bHij")
    take("dropout_p", "p", "", ())
    for name in ("dropout_p", d.dropout_p):
        if isinstance(name, str) and name in arrays:
            _between(name, arrays[name], lambda v: 0 <= v < 1, "at least 0 and below 1")
    if isinstance(d.softcap, str) and d.softcap in arrays:
        _between(d.softcap, arrays[d.softcap], lambda v: v > 0, "positive: it is a softcap")
    missing = [name for name in d.unbound if name not in arrays]
    if missing:
        raise DefinitionError(
            f"no value for the parameter {', '.join(missing)}: bind it with params, or give an array of that name"
        )
    for name in d.unbound:
        x = arrays[name]
        if name in d.arrays:
            inputs[name] = _entries(name, x, d.arrays[name], {"b": b, "i": n, "j": m})
        elif name == d.prefix:
            take(name, name, "b", (b,))
        elif x.ndim == 1 and x.shape == (heads,):
            inputs[name] = axes.into(x, "H")
            d = d.replace(params={**d.params, name: "head"}) if heads > 1 else d
        else:
            take(name, name, "", ())
    for name, value in d.params.items():
        if isinstance(value, tuple):
            inputs[name] = axes.into(exact_array(list(value)), "H")
    return d


def seeds(program: Program, arrays: Mapping[str, Array], sources: Sources, inputs: dict[str, Array]) -> None:
    """The gradients of the outputs, where they are given."""
    known = {size(k): v for k, v in sources.sizes.items()}
    leading = {"b": sources.sizes.get("B", 1), "H": sources.axes.heads, "K": sources.axes.kv_heads}
    for letter in program.outputs:
        field = "grad_" + BY_LETTER[letter].field
        if field not in arrays:
            continue
        x, roles = arrays[field], BY_LETTER[letter].axes
        first = [leading[a] for a in roles if a in leading]
        own = program.shapes[letter][len(program.shapes[letter]) - len(roles) + len(first) :]
        shape = (*first, *(int(k.xreplace(known)) for k in own))
        if not sources.axes.batch:
            x = x.reshape((1,) * (len(roles) - x.ndim) + x.shape)
        elif roles == "bHie" and sources.layout == "bshd" and x.ndim == 4:
            x = np.swapaxes(x, 1, 2)
        if x.shape != shape:
            raise ShapeError(f"{field} has shape {arrays[field].shape}, needed is {shape} (in the layout bhsd)")
        inputs["d" + letter] = sources.axes.into(x, roles)


def _entries(name: str, x: Array, axes: str, sizes: Mapping[str, int]) -> Array:
    """An array that a score or mask reads by subscript."""
    want = tuple(sizes[a] for a in axes)
    if x.shape != want:
        raise ShapeError(f"{name} is read as {name}[{', '.join(axes)}] and has shape {x.shape}, needed is {want}")
    return x.astype(np.int64) if x.dtype.kind == "b" else x


def _zeros_and_ones(field: str, x: Array) -> None:
    if x.dtype.kind != "b":
        _between(field, x, lambda v: v in (0, 1), "True or False (1 or 0) everywhere")


def _between(field: str, x: Array, allowed: Callable[[Any], Any], what: str) -> None:
    """Refuse the first value that is not allowed; NaN never is."""
    for value in np.unique(x) if x.dtype.kind in "iuf" else x.ravel().tolist():
        if not allowed(value):
            at = [int(k) for k in np.argwhere(np.asarray(x == value))[0]] if value == value and x.ndim else []
            raise InputValueError(f"{field} is {what}, got {value}{f' at {at}' if at else ''}")
