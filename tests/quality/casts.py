"""Roundings that planted faults make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]
FORMATS: dict[str, Any] = {
    "float64": np.float64,
    "float32": np.float32,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
}


def to(format: str) -> Callable[[Array], Array]:
    """Rounding to a format and back to the dtype that came in."""

    def rounded(x: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(x).astype(FORMATS[format]).astype(np.asarray(x).dtype)

    return rounded


def low(dtype: str) -> str:
    """The 16-bit format of a kernel: that of its inputs, bfloat16 for wider ones."""
    return dtype if dtype in ("float16", "bfloat16") else "bfloat16"


def summed(x: Array, format: str) -> Array:
    """The sum over the first and last axis, rounded after every addition."""
    cast, flat = to(format), np.moveaxis(x, 1, -1).reshape(-1, x.shape[1])
    total = np.zeros(flat.shape[1], x.dtype)
    for row in flat:
        total = cast(total + cast(row))
    return total
