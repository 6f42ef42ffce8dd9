"""The local error of a statement split by the kinds of rounding that it is made of.

The kinds are switched off in the declaration one after another; what the error loses with each is its part. Parts add up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from symattn.arithmetic import Arithmetic
from symattn.readings.boxes import Array

__all__ = ["KINDS", "split", "without"]

KINDS: tuple[tuple[str, Callable[[Arithmetic], Mapping[str, Any]]], ...] = (
    ("underflow", lambda a: {"flush_to_zero": False}),
    ("storage", lambda a: dict.fromkeys(("store", "aux", "output", "lse"), a.compute)),
    ("cast", lambda a: {"probability": None, "gradient": None, "operand": None, "sum_from_cast": False}),
    ("buffer", lambda a: {"dq_accumulate": None, "dkv_accumulate": None, "expand_heads": False}),
    ("scale", lambda a: {"scale_before": 0, "scalar_roundings": 0, "shift_roundings": 0}),
    ("exp", lambda a: {"exp_error": 0.0}),
    ("log", lambda a: {"log_error": 0.0}),
    ("tanh", lambda a: {"tanh_error": 0.0}),
    ("function", lambda a: {"function_error": 0.0}),
    ("sum", lambda a: {"accumulate": "float64", "block": None, "block_bits": None, "truncate": ()}),
)
"""Name of a kind of rounding, and the changes to a declaration that leave it out; what is left at the end are operations."""


def without(declared: Arithmetic, kinds: Collection[str]) -> Arithmetic:
    """A declaration with some kinds of rounding left out.

    >>> from symattn.arithmetic import get
    >>> without(get("flash-bf16"), {"exp", "cast"}).probability is None
    True
    """
    changes = {k: v for name, change in KINDS if name in kinds for k, v in change(declared).items()}
    return replace(declared, **{k: v for k, v in changes.items() if getattr(declared, k) != v})


def split(error: Callable[[Arithmetic], Array], declared: Arithmetic) -> dict[str, Array]:
    """The parts of an error that depends on a declaration; those that are 0 are left out.

    >>> from symattn.arithmetic import get
    >>> split(lambda a: np.float64((a.exp_error is None) + 0.25), get("flash-fp32"))
    {'exp': np.float64(1.0), 'operation': np.float64(0.25)}
    """
    left, found, a = error(declared), {}, declared
    for name, changes in KINDS:
        b = replace(a, **{k: v for k, v in changes(a).items() if getattr(a, k) != v})
        if b == a:
            continue
        rest = np.fmin(error(b), left)
        found[name], left, a = np.where(left > rest, left - rest, 0.0), rest, b
    found["operation"] = left
    return {name: part[()] for name, part in found.items() if np.any(part)}
