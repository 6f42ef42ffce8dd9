"""Where Q, K and V come from: given, or projected from X, a memory or an embedding; and how many heads there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp

from symattn import declared, forms
from symattn.axes import Array, Axes
from symattn.definition import Definition
from symattn.errors import InputValueError, ShapeError
from symattn.indexed import index, size
from symattn.intake import framework, to_numpy
from symattn.numbers import exact_array


@dataclass(frozen=True)
class Sources:
    """The definition with its heads, the inputs that stand for the sources, and the sizes that they show."""

    definition: Definition
    axes: Axes
    inputs: Mapping[str, Array]
    sizes: Mapping[str, int]
    layout: str

    @property
    def full(self) -> tuple[int, int, int, int]:
        """(B, H, n, m), where m is the number of keys that masks are about: in a decoder layer those of its self-attention."""
        s = self.sizes
        return s["B"], self.axes.heads, s["n"], s["n" if forms.get(self.definition.form).memory else "m"]


def as_array(name: str, x: Any) -> Array:
    """An array of real numbers; lists, text, fractions and SymPy numbers become exact numbers, lists of integers integers.

    >>> as_array("tokens", [0, 2]).dtype.kind
    'i'
    >>> as_array("query", [["0.1", 1]]).tolist()
    [[Fraction(1, 10), Fraction(1, 1)]]
    """
    if isinstance(x, (list, tuple, str)):
        found = exact_array(x)
        whole = np.asarray(x) if _all_integers(x) else found
        return whole if whole.dtype.kind in "biu" else found
    if framework(x) in ("torch", "jax"):
        return to_numpy(x, name)
    try:
        array = np.asarray(x)
    except (TypeError, ValueError) as e:
        raise InputValueError(f"{name} gives no NumPy array: {e}") from None
    if array.dtype.kind == "c":
        raise InputValueError(f"{name} is complex; real numbers are needed")
    return exact_array(array) if array.dtype.kind in "OUS" else array


def _all_integers(x: Any) -> bool:
    """Whether nested lists hold Python integers and booleans only: masks, lengths and token numbers must stay integers."""
    return all(map(_all_integers, x)) if isinstance(x, (list, tuple)) else type(x) in (int, bool)


def sources_of(d: Definition, arrays: Mapping[str, Array], layout: str) -> Sources:
    """The sources of a definition; see :func:`symattn.binding.bind` for what is refused."""
    if forms.sources_of(d):
        return _combined(_own(d, arrays, layout), arrays)
    needed = {
        "qkv": ("query", "key", "value"),
        "x": ("x", "w_q", "w_k", "w_v"),
        "tokens": ("tokens", "embedding", "w_q", "w_k", "w_v"),
    }
    names = needed[d.start]
    names += (("memory",) if d.cross or forms.get(d.form).memory else ()) + (("w_o",) if d.output_projection else ())
    missing = [n for n in names if n not in arrays]
    if missing:
        raise InputValueError(f"missing: {', '.join(missing)}; this definition starts from {', '.join(names)}")
    floats = {n: arrays[n].dtype for n in names if arrays[n].dtype.kind not in "Obiu"}
    if len(set(floats.values())) > 1:  # exact numbers and integers go with any float dtype
        raise InputValueError(f"the float dtypes differ: {', '.join(f'{n} {x}' for n, x in floats.items())}; cast them to one")
    return _combined(_given(d, arrays, layout) if d.start == "qkv" else _projected(d, arrays, layout), arrays)


def _combined(sources: Sources, arrays: Mapping[str, Array]) -> Sources:
    """The sources with W_O, where the definition combines its heads."""
    d, layout = sources.definition, sources.layout
    if not d.output_projection:
        return sources
    if "w_o" not in arrays:
        raise InputValueError("missing: w_o; this definition combines its heads by it (output_projection=True)")
    wo, heads, dv = arrays["w_o"], sources.axes.heads, sources.sizes["dv"]
    if wo.ndim == 2 and wo.shape[0] == heads * dv:
        wo = wo.reshape(heads, dv, -1)
    if wo.ndim != 3 or wo.shape[:2] != (heads, dv):
        raise ShapeError(f"w_o has shape {arrays['w_o'].shape}, needed is (H, dv, dout) = ({heads}, {dv}, ..) or (H*dv, dout)")
    if sources.sizes.get("dmodel") != wo.shape[2] and "dout" not in {str(s) for s in d.program().sizes}:
        raise ShapeError(
            f"w_o has shape {arrays['w_o'].shape}: it must lead back to the width of X, dmodel = {sources.sizes['dmodel']}"
        )
    inputs = {**sources.inputs, "WO": sources.axes.into(wo, "Hef")}
    return Sources(sources.definition, sources.axes, inputs, {**sources.sizes, "dout": wo.shape[2]}, layout)


def _heads(d: Definition, heads: int, kv_heads: int) -> Definition:
    """The definition with the numbers of heads that the arrays show."""
    for field, n in (("heads", heads), ("kv_heads", kv_heads)):
        fixed = getattr(d, field)
        if fixed is not None and fixed != n:
            raise ShapeError(
                f"the arrays have {n} {'query' if field == 'heads' else 'key/value'} heads, the definition says {field}={fixed}"
            )
    if heads % kv_heads:
        raise ShapeError(f"{heads} query heads cannot share {kv_heads} key/value heads: {kv_heads} does not divide {heads}")
    return d.replace(heads=heads, kv_heads=kv_heads)


def _own(d: Definition, arrays: Mapping[str, Array], layout: str) -> Sources:
    """The sources of a form that starts from other tensors than Q, K, V or X."""
    heads, kv_heads, batch = declared.heads_of(d, arrays)
    d = _heads(d, heads, kv_heads)
    axes = Axes(heads, kv_heads, batch, d.grouping == "tiled")
    sizes = _sizes(axes)
    program = d.program(batch=batch)
    inputs = declared.take(program, forms.sources_of(d), arrays, axes, sizes, layout)
    sizes.setdefault("B", 1)
    keys = program.dims.get(index("j"), size("m"))
    slots = keys.xreplace({a: sp.Integer(sizes[str(a)]) for a in keys.free_symbols if str(a) in sizes})
    sizes.setdefault("m", int(slots) if slots.is_Integer else sizes.get("n", 1))
    return Sources(d, axes, inputs, sizes, layout)


def _sizes(axes: Axes, **sizes: int) -> dict[str, int]:
    return {"H": axes.heads, "Hkv": axes.kv_heads, "G": axes.heads // axes.kv_heads, **sizes}


def _given(d: Definition, arrays: Mapping[str, Array], layout: str) -> Sources:
    q, k, v = (arrays[n] for n in ("query", "key", "value"))
    shown = f"query {q.shape}, key {k.shape}, value {v.shape}"
    if not q.ndim == k.ndim == v.ndim or q.ndim not in (2, 4):
        form = "(B, H, n, d)" if layout == "bhsd" else "(B, n, H, d)"
        raise ShapeError(f"query, key and value are {form}, or (n, d) for a single head without batch; got {shown}")
    batch = q.ndim == 4
    if not batch:
        q, k, v = (x[None, None] for x in (q, k, v))
    elif layout == "bshd":
        q, k, v = (np.swapaxes(x, 1, 2) for x in (q, k, v))
    pairs = [("batch sizes", 0, q, k), ("batch sizes", 0, q, v), ("numbers of key and value heads", 1, k, v)]
    pairs += [("numbers of keys and values", 2, k, v), ("head dimensions of query and key", 3, q, k)]
    for what, axis, x, y in pairs:
        if x.shape[axis] != y.shape[axis]:
            raise ShapeError(f"the {what} differ, {x.shape[axis]} and {y.shape[axis]}: {shown}")
    d = _heads(d, q.shape[1], k.shape[1])
    axes = Axes(q.shape[1], k.shape[1], batch, d.grouping == "tiled")
    inputs = {"Q": axes.into(q, "bHic"), "K": axes.into(k, "bKjc"), "V": axes.into(v, "bKje")}
    sizes = _sizes(axes, B=q.shape[0], n=q.shape[2], m=k.shape[2], d=q.shape[3], dv=v.shape[3])
    return Sources(d, axes, inputs, sizes, layout)


def _projected(d: Definition, arrays: Mapping[str, Array], layout: str) -> Sources:
    x = arrays["tokens" if d.start == "tokens" else "x"]
    last = 1 if d.start == "x" else 0
    if x.ndim not in (1 + last, 2 + last):
        raise ShapeError(f"{'x is (B, n, dmodel) or (n, dmodel)' if last else 'tokens is (B, n) or (n,)'}, got shape {x.shape}")
    batch = x.ndim == 2 + last
    inputs: dict[str, Array] = {}
    if d.start == "tokens":
        embedding = arrays["embedding"]
        if embedding.ndim != 2:
            raise ShapeError(f"embedding is (vocab, dmodel), got shape {embedding.shape}")
        if x.dtype.kind not in "iu" or x.min() < 0 or x.max() >= embedding.shape[0]:
            raise InputValueError(f"tokens are integers from 0 to {embedding.shape[0] - 1}, the rows of the embedding")
        inputs |= {"tok": x, "Emb": embedding}
        width = embedding.shape[1]
    else:
        inputs["X"], width = x, x.shape[-1]
    n = x.shape[-1 - last]
    memory, m, memory_width = arrays.get("memory"), n, width
    if memory is not None:
        if memory.ndim != 2 + batch or (batch and memory.shape[0] != x.shape[0]):
            raise ShapeError(f"memory has shape {memory.shape}, needed is ({f'{x.shape[0]}, ' if batch else ''}m, dmemory)")
        inputs["C"] = memory
        m, memory_width = memory.shape[-2], memory.shape[-1]
    key_width = memory_width if d.cross else width
    wq, heads = _weight("w_q", arrays["w_q"], width, d.heads)
    wk, kv_heads = _weight("w_k", arrays["w_k"], key_width, d.kv_heads)
    wv, _ = _weight("w_v", arrays["w_v"], key_width, kv_heads)
    if wq.shape[2] != wk.shape[2]:
        raise ShapeError(f"w_q makes queries of {wq.shape[2]} channels and w_k keys of {wk.shape[2]}")
    d = _heads(d, heads, kv_heads)
    if d.next_word and not d.output_projection and wv.shape[2] != width:
        raise ShapeError(
            f"w_v makes values of {wv.shape[2]} channels, and the rows of the embedding have {width}: next_word=True compares "
            "them; set output_projection=True, or give a w_v of that width"
        )
    axes = Axes(heads, kv_heads, batch, d.grouping == "tiled")
    inputs |= {"WQ": axes.into(wq, "Hac"), "WK": axes.into(wk, "Kac"), "WV": axes.into(wv, "Kae")}
    sizes = _sizes(
        axes, B=x.shape[0] if batch else 1, n=n, m=m, d=wq.shape[2], dv=wv.shape[2], dmodel=width, dmemory=memory_width
    )
    if d.start == "tokens":
        sizes["vocab"] = arrays["embedding"].shape[0]
    return Sources(d, axes, inputs, sizes, layout)


def _weight(name: str, w: Array, width: int, heads: int | None) -> tuple[Array, int]:
    """A projection as (H, dmodel, d), given so or as (dmodel, H*d)."""
    if w.ndim == 2:
        h = heads or 1
        if w.shape[0] != width or w.shape[1] % h:
            raise ShapeError(f"{name} has shape {w.shape}, needed is (dmodel, H*d) = ({width}, {h}*d) or (H, dmodel, d)")
        return np.moveaxis(w.reshape(width, h, -1), 1, 0), h
    if w.ndim != 3 or w.shape[1] != width or (heads is not None and w.shape[0] != heads):
        raise ShapeError(f"{name} has shape {w.shape}, needed is (H, dmodel, d) = ({heads or 'H'}, {width}, d) or (dmodel, H*d)")
    return w, w.shape[0]
