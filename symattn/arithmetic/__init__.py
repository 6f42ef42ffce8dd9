"""How a kernel computes: the formats, functions, tiles and casts that a rounding bound is derived from.

An :class:`Arithmetic` (:mod:`.declared`) is a declaration; :data:`PRESETS` (:mod:`.presets`) are declarations that people run,
and :mod:`symattn.measured` has those of real kernels, as measured. :mod:`.reading` takes one from what a user gives.
"""

from symattn.arithmetic.declared import Algorithm, Arithmetic, Order, Shift
from symattn.arithmetic.presets import (
    LOG,
    PRESETS,
    SHORT,
    default_for,
    eager,
    flash,
    flash_fp8,
    flash_tf32,
    get,
    inside_float32,
    log_probabilities,
    rounded_throughout,
    uniform,
)
from symattn.arithmetic.reading import declaration

__all__ = [
    "LOG",
    "PRESETS",
    "SHORT",
    "Algorithm",
    "Arithmetic",
    "Order",
    "Shift",
    "declaration",
    "default_for",
    "eager",
    "flash",
    "flash_fp8",
    "flash_tf32",
    "get",
    "inside_float32",
    "log_probabilities",
    "rounded_throughout",
    "uniform",
]
