"""The keyword options that a kernel is called with: those that the definition uses and that are not at their default."""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from typing import Any

import numpy as np

from symattn.errors import KernelError
from symattn.verify.kernels.call import Call

NAMES = (
    *("attn_mask", "is_causal", "causal_alignment", "scale", "enable_gqa", "softcap", "window", "alibi_slopes", "sinks"),
    *("dropout_mask", "dropout_p", "lse_base", "empty_row"),
)
"""The options of the calling convention."""
OTHERS = ("bias", "prefix", "doc_q", "doc_k", "key_lengths")
"""Parts of a definition that have no option of their own: handed over under the names of their fields."""

_SAYS = {
    "is_causal": "is causal",
    "causal_alignment": "is causal with another alignment than top-left",
    "attn_mask": "has an attn_mask",
    "alibi_slopes": "uses alibi",
    "sinks": "has a sink",
    "dropout_mask": "uses dropout",
    "dropout_p": "uses dropout",
    "doc_q": "uses document numbers",
    "doc_k": "uses document numbers",
    "lse_base": "has an LSE of base 2",
}
"""What the definition says where an option is given; elsewhere it "uses" what the option is called."""


def options(call: Call) -> dict[str, Any]:
    """Option name -> value of one call.

    Arrays are NumPy arrays; numbers are Python floats. ``is_causal=True`` alone means ``j <= i``; the other alignment comes with
    ``causal_alignment="bottom-right"`` (or the fixed offset). ``window`` is ``(left, right)`` as the definition counts it, -1 for
    unlimited. What has no option of its own (:data:`OTHERS`, and the further tensors of a variant) is handed over under its field
    name; what a score or mask text or the structure of a variant says is the kernel's own business. A form that does not start
    from query, key and value hands over all of its tensors so.
    """
    d, fields = call.definition, call.fields
    found: dict[str, Any] = dict(call.others)
    found |= {name: fields[name] for name in d.arrays if name in fields}
    if not {"query", "key", "value"} <= set(call.sources):
        return {name: a for name, a in fields.items() if not name.startswith("grad_")}
    if d.attn_mask is not None:
        found["attn_mask"] = call.spread("attn_mask", d.mask_axes)
    if d.causal is not None:
        found["is_causal"] = True
        if d.causal != "top-left":
            found["causal_alignment"] = d.causal
    if d.scale is not None:
        found["scale"] = call.scale
    if call.query.shape[1] != call.key.shape[1]:
        found["enable_gqa"] = True
    if d.softcap is not None:
        found["softcap"] = call.number(d.softcap)
    if d.window is not None:
        found["window"] = tuple(-1 if side is None else side for side in d.window)
    if call.slopes is not None:
        found["alibi_slopes"] = call.slopes
    if d.sink:
        found["sinks"] = fields["sinks"]
    if d.dropout:
        found["dropout_mask"] = fields["dropout_mask"]
        found["dropout_p"] = call.number(d.dropout_p) if d.dropout_p is not None else float(fields["dropout_p"])
    if d.lse_base != "e":
        found["lse_base"] = int(d.lse_base)
    if d.empty_row != "zero":
        found["empty_row"] = d.empty_row
    if d.bias:
        found["bias"] = call.spread("bias", d.bias_axes)
    if d.prefix is not None:
        found["prefix"] = call.prefix
    if d.document:
        found["doc_q"], found["doc_k"] = call.documents
    if d.key_lengths:
        found["key_lengths"] = fields["key_lengths"]
    return found


def parameters(call: Call) -> dict[str, Any]:
    """Parameters of a score, mask or scale text by name: floats, and arrays (H,) where there is one per head.

    A kernel written for a text has its numbers of its own; it is given those that its signature names.

    >>> from symattn.definition import Definition
    >>> parameters(Call(Definition(score="s*t", params={"t": "1/4"}), {}))
    {'t': 0.25}
    """
    found: dict[str, Any] = {}
    for name in call.definition.parameters:
        value = call.definition.params.get(name, "head")
        if isinstance(value, Fraction):
            found[name] = float(value)
        elif isinstance(value, tuple):
            found[name] = np.array([float(x) for x in value])
        elif name in call.fields:
            a = call.fields[name]
            found[name] = float(a) if a.ndim == 0 else a
    return found


def refuse_untaken(kernel: str, call: Call, given: Collection[str], taken: Collection[str]) -> None:
    """Refuse a kernel that does not take all options: it would compute another definition.

    Raises
    ------
    KernelError
        Naming the part of the definition and the keyword that is missing.
    """
    missing = [name for name in given if name not in taken]
    if not missing:
        return
    name = missing[0]
    if name == "enable_gqa":
        heads, kv = call.query.shape[1], call.key.shape[1]
        said = f"the inputs have {heads} query heads and {kv} key/value heads"
        raise KernelError(f"{said}, and {kernel} takes no keyword enable_gqa; a --shape with H = HKV needs none")
    says = _SAYS.get(name, f"uses {name}")
    raise KernelError(f"the definition {says}, and {kernel} takes no keyword {name}: it would compute something else")
