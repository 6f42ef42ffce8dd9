"""Declarations that people run, and the functions that make them for a format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from symattn import formats
from symattn.arithmetic.declared import Arithmetic
from symattn.errors import UnknownNameError, nearest

LOG: Mapping[str, Any] = MappingProxyType({"algorithm": "log", "staged": False, "merged": False})
"""What a kernel declares otherwise than a tiled one if its weights are exp(S - L)."""
SHORT: Mapping[str, str] = {"float64": "fp64", "float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}


def uniform(name: str, format: str, **changes: Any) -> Arithmetic:
    """Everything in one format.

    >>> uniform("double", "fp64").store
    'float64'
    """
    f = formats.get(format).name
    return replace(Arithmetic(name, input=f, accumulate=f, compute=f, store=f, aux=f, output=f, lse=f), **changes)


def eager(format: str, **changes: Any) -> Arithmetic:
    """Matrix products, softmax and the rest one after the other, each stored in the input format, computed in float32 or wider.

    The softmax is one operation: its exponentials and their sum are not stored.
    """
    f = formats.get(format).name
    wide = "float64" if f == "float64" else "float32"
    base = uniform(f"eager-{SHORT[f]}", wide, source="eager frameworks: one operation after the other, all results stored")
    low: dict[str, Any] = {} if f == wide else {"input": f, "store": f, "output": f, "scale_before": 2}
    return replace(base, **low, flush_to_zero=True, expand_heads=True, **changes)


def log_probabilities(format: str, **changes: Any) -> Arithmetic:
    """Float32 or wider inside, weights exp(S - L) with the log-sum-exp rounded before it is subtracted, then read in the format.

    >>> found = log_probabilities("bf16")
    >>> found.algorithm, found.probability
    ('log', 'bfloat16')
    """
    own = {"name": f"log-{SHORT[formats.get(format).name]}", "source": "kernels that hold log-probabilities", **LOG}
    return flash(format, **(own | changes))


def flash(format: str, **changes: Any) -> Arithmetic:
    """A tiled kernel with an online softmax: at least float32 inside, P and dS rounded to the input format when read."""
    f = formats.get(format).name
    wide = "float64" if f == "float64" else "float32"
    base = uniform(f"flash-{SHORT[f]}", wide, source="tiled kernels with an online softmax")
    low: dict[str, Any] = {} if f == wide else {"input": f, "output": f, "probability": f, "gradient": f}
    common: dict[str, Any] = {
        "tile": 32,
        "shift_roundings": 4,
        "scalar_roundings": 2,
        "folded": True,
        "flush_to_zero": True,
        "algorithm": "flash",
        "staged": True,
    }
    return replace(base, **(low | common | changes))


def flash_tf32(**changes: Any) -> Arithmetic:
    """A tiled kernel on float32 inputs whose matrix products read tf32, rounded or cut off."""
    common: dict[str, Any] = {
        "name": "flash-tf32",
        "operand": "tf32",
        "probability": "tf32",
        "gradient": "tf32",
        "truncate": ("accumulate", "operand", "probability"),
        "source": "tiled kernels whose float32 products run on tensor cores; hardware cuts off what is not rounded before",
    }
    return flash("float32", **(common | changes))


def flash_fp8(**changes: Any) -> Arithmetic:
    """A tiled kernel on float8_e4m3fn inputs: weights times 2^8 in the same format, output in bfloat16, additions truncate."""
    f = "float8_e4m3fn"
    common: dict[str, Any] = {
        "name": "flash-fp8",
        "input": f,
        "probability": f,
        "probability_scale": 256.0,
        "gradient": "bfloat16",
        "output": "bfloat16",
        "truncate": ("accumulate",),
        "source": "tiled kernels on 8-bit inputs, weights scaled by 2^8 before they are rounded",
    }
    return flash("float32", **(common | changes))


def rounded_throughout(format: str, **changes: Any) -> Arithmetic:
    """The convention of the NumPy reading: elementwise operations in the dtype itself; sums of a 16-bit dtype are accumulated
    in float32 and rounded once. NumPy evaluates the functions of 16-bit dtypes in float32 and rounds the result.
    """
    f = formats.get(format)
    wide = f.name if f.precision >= 24 else "float32"
    error = None if f.precision >= 24 else float(f.unit_roundoff) * 1.01
    base = uniform(f"numpy-{SHORT[f.name]}", f.name, source="the NumPy reading of a program, in the dtype of the inputs")
    functions: dict[str, Any] = {"exp_error": error, "log_error": error, "tanh_error": error, "function_error": error}
    return replace(base, accumulate=wide, **functions, **changes)


def get(name: str) -> Arithmetic:
    """The preset of a name.

    Raises
    ------
    UnknownNameError
        When there is none; the message names the nearest.
    """
    from symattn.measured import MEASURED

    known = {**PRESETS, **MEASURED}
    if name not in known:
        raise UnknownNameError(f"no declared arithmetic {name!r}. {nearest(name, known)}")
    return known[name]


def default_for(dtype: object) -> Arithmetic:
    """What a kernel is taken to do that declares nothing: a tiled kernel on the dtype's format, judged from its own O and LSE.

    >>> default_for("bfloat16").name
    'flash-bf16'
    """
    name = formats.get(dtype).name  # type: ignore[arg-type]
    short = {**SHORT, "float8_e4m3fn": "fp8"}
    if name not in short:
        raise UnknownNameError(f"no default arithmetic for {name}: declare one. {nearest(name, short)}")
    return get(f"flash-{short[name]}")


def inside_float32(format: str, **changes: Any) -> Arithmetic:
    """Everything in float32, inputs and outputs in another format.

    >>> inside_float32("bf16", name="math").describe()
    'math: naive; in bfloat16, sums float32, elementwise float32, stored float32, out bfloat16, lse float32, exp 4.8e-07'
    """
    f = formats.get(format).name
    return replace(uniform(f"inside-fp32-{SHORT[f]}", "float32"), input=f, output=f, **changes)


def _presets() -> dict[str, Arithmetic]:
    rows = [make(f) for make in (eager, flash, log_probabilities, rounded_throughout) for f in SHORT]
    short: dict[str, Any] = {"exp_error": 1.1e-4, "source": "tiled kernels with a short polynomial for exp"}
    fast = {"fast-exp": "float32", "fast-exp-fp16": "float16", "fast-exp-bf16": "bfloat16"}
    rows += [flash(f, name=name, **short) for name, f in fast.items()]
    split = "tiled kernels that split the keys and merge the parts through their log-sum-exps (decoding)"
    rows += [flash(f, name=f"split-{SHORT[f]}", merged=True, source=split) for f in SHORT]
    rows += [
        flash_tf32(),
        flash_fp8(),
        flash_fp8(
            name="flash-fp8-14bit",
            block=32,
            block_bits=13,
            source="tiled kernels on 8-bit inputs whose accumulators keep 14 bits",
        ),
    ]
    return {a.name: a for a in rows}


PRESETS: Mapping[str, Arithmetic] = MappingProxyType(_presets())
"""General declarations by name; those of real kernels are in :mod:`symattn.measured`, and :func:`get` knows both."""
