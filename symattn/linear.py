"""What the fields of the linear family say together: which contradict each other, and their conventions in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from symattn.grammarprint import write

if TYPE_CHECKING:
    from symattn.definition import Definition

OWN = ("feature", "normalized", "decay", "decay_space", "delta", "evaluation", "initial_state")
"""The fields that only the form ``"linear"`` reads."""


def refuse_linear(d: Definition, refuse: Callable[[object, str], None]) -> None:
    """Fields of the linear family that cannot hold together, or that stand at another form."""
    if d.form != "linear":
        for name in OWN:
            refuse(name in d.changed, f"{name} belongs to the linear family: set form='linear'")
        return
    refuse(d.causal not in (None, "top-left"), "the form 'linear' is causal='top-left' (step t reads steps 0 to t) or not causal")
    if d.causal is None:
        for name in ("decay", "delta", "initial_state"):
            refuse(getattr(d, name), f"{name} needs an order of the steps: set causal='top-left'")
        refuse(d.evaluation == "chunked", "evaluation='chunked' needs an order of the steps: set causal='top-left'")
    refuse(d.decay_space != "linear" and d.decay is None, f"decay_space={d.decay_space!r} describes a decay: set decay")
    refuse(
        d.decay_space != "linear" and d.decay == "retention",
        "decay='retention' is a fixed set of factors: no array is in log space",
    )
    refuse(d.normalized and d.delta, "normalized=True divides by the sum of the weights; the delta rule has no such weights")
    refuse(
        d.normalized and d.initial_state,
        "normalized=True needs the sum of the keys that made the initial state: leave one of the two out",
    )
    refuse(d.normalized and d.scale is not None, "the scale cancels where normalized=True: leave it out")
    refuse(d.block is not None and d.evaluation != "chunked", "block is the length of a chunk: set evaluation='chunked'")


def record_linear(d: Definition) -> dict[str, str]:
    """The conventions of a definition of the form ``"linear"``, in words."""
    if d.form != "linear":
        return {}
    maps = {
        "identity": "none",
        "elu": "elu(s) + 1 of every entry",
        "relu": "max(s, 0) of every entry",
        "exp": "exp(s) of every entry",
    }
    feature = maps[d.feature] if isinstance(d.feature, str) else f"{write(d.feature)} of every entry s"
    words = {
        "form": "linear attention: a state that steps write to and queries read",
        "scale": "none: it cancels" if d.normalized else f"{'1/sqrt(d)' if d.scale is None else write(d.scale)}, of what is read",
        "feature": feature,
        "empty_row": "none",
        "normalized": "weights are divided by their sum over the keys" if d.normalized else "no",
        "evaluation": d.evaluation + (f", {d.block} steps a chunk" if d.block else ""),
    }  # fmt: skip
    if d.causal is not None:
        words["read"] = "after the step has been written: query t reads steps 0 to t"
        words["decay"] = _decay(d)
        words["delta"] = (
            "beta times (v - k state), the state as it is after its decay" if d.delta else "no: v is written as it is"
        )
        words["state"] = f"{'given' if d.initial_state else 'zero'} before the first step"
    return words


def _decay(d: Definition) -> str:
    if d.decay is None:
        return "none"
    kinds = {
        "head": "one factor per head",
        "retention": "1 - 2^(-5-h) for head h",
        "step": "one factor per head and step",
        "channel": "one factor per head, step and key channel",
    }
    space = ", given as its logarithm" if d.decay_space == "log" else ""
    return f"{kinds[d.decay]}{space}; the state is decayed before a step is written to it"
