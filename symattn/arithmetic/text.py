"""An arithmetic as one line of a report."""

from __future__ import annotations

from symattn.arithmetic.declared import Arithmetic


def described(a: Arithmetic) -> str:
    """One line, what is at its default left out; see :meth:`Arithmetic.describe`."""
    parts = [f"in {a.input}", f"sums {a.accumulate}", f"elementwise {a.compute}", f"stored {a.store}"]
    if a.aux != a.store:
        parts.append(f"helpers {a.aux}")
    if a.probability:
        parts.append(_weights(a))
    if a.gradient:
        times = "" if a.gradient_scale == 1 else f" (times {a.gradient_scale:.3g})"
        parts.append(f"dS read as {a.gradient}{times}")
    if a.operand:
        parts.append(f"inputs read as {a.operand}")
    parts += [f"out {a.output}", f"lse {a.lse}"]
    parts += [
        f"{name} {a.function_errors(name):.2g}"
        for name in ("exp", "log", "tanh")
        if name == "exp" or getattr(a, f"{name}_error") is not None
    ]
    for label, value in (
        ("tile", a.tile),
        ("depth", a.depth),
        ("query tile", a.query_tile),
        ("dQ grows in", a.dq_accumulate),
        ("dK and dV grow in", a.dkv_accumulate),
    ):
        if value is not None:
            parts.append(f"{label} {value}")
    if a.block:
        parts.append(f"{a.block} products at once" + (f" cut off after {a.block_bits} bits" if a.block_bits else ""))
    if a.truncate:
        parts.append(f"truncated: {', '.join(a.truncate)}")
    if a.scale_before:
        where = f" in {a.scale_format}" if a.scale_format else ""
        parts.append(f"{a.scale_before} operand{'s' * (a.scale_before > 1)} scaled before{where}")
    if a.stale:
        parts.append(f"maximum late by {a.stale:g}")
    if a.shift:
        parts.append(f"tiles {a.order}, {a.shift} maximum")
    for label, holds in (
        ("parts merged by LSE", a.merged),
        ("heads expanded", a.expand_heads),
        ("subnormals flushed", a.flush_to_zero),
        ("backward staged", a.staged),
    ):
        if holds:
            parts.append(label)
    return f"{a.name}: {a.algorithm}; {', '.join(parts)}"


def _weights(a: Arithmetic) -> str:
    """When the weights are rounded follows from the list that the kernel follows."""
    when = "before normalising" if a.algorithm == "flash" else "after normalising"
    parts = [f"P read as {a.probability} ({when}"]
    if a.probability_scale != 1:
        parts.append(f"scaled by {a.probability_scale:g}")
        parts += ["overflow is NaN"] if a.probability_overflow == "nan" else []
    if a.sum_from_cast:
        parts.append("row sum of the rounded ones")
    return "; ".join(parts) + ")"
