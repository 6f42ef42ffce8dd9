"""The keyword options that a kernel is called with: those that the definition uses and that are not at their default."""

from __future__ import annotations

from typing import Any

from symattn.verify.kernels.call import Call

NAMES = (
    *("attn_mask", "is_causal", "causal_alignment", "scale", "enable_gqa", "softcap", "window", "alibi_slopes", "sinks"),
    *("dropout_mask", "dropout_p", "lse_base", "empty_row"),
)
"""The options of the calling convention. A definition with more to say hands it over under the names of its fields."""


def options(call: Call) -> dict[str, Any]:
    """Option name -> value of one call.

    Arrays are NumPy arrays; numbers are Python floats. ``is_causal=True`` alone means ``j <= i``; the other alignment comes with
    ``causal_alignment="bottom-right"`` (or the fixed offset). ``window`` is ``(left, right)`` as the definition counts it, -1 for
    unlimited. What has no option of its own (``bias``, ``prefix``, ``doc_q``, ``key_lengths``, unbound parameters of a text) is
    handed over under its field name; what a score or mask text says, and the numbers bound in it, is the kernel's own business.
    """
    d, fields = call.definition, call.fields
    found: dict[str, Any] = {}
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
    if isinstance(d.prefix, int):
        found["prefix"] = d.prefix
    taken = {"query", "key", "value", *found}
    for name, a in fields.items():
        if name not in taken and not name.startswith("grad_") and name not in ("out", "lse", "dropout_p"):
            found[name] = call.spread("bias", d.bias_axes) if name == "bias" else a
    return found
