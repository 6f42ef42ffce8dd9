"""How a kernel computes: the formats, functions, tiles and casts that a rounding bound is derived from.

An :class:`Arithmetic` is a declaration. It holds no tensor names: the rounding reading decides from the structure of a
statement (a sum of products, an unreduced expression, an output, an operand of a matrix product) which entry applies.
:data:`PRESETS` are declarations that people run; :mod:`symattn.measured` has those of real kernels, as measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Literal

from symattn import formats
from symattn.errors import DefinitionError, UnknownNameError, nearest

Algorithm = Literal["naive", "flash"]


@dataclass(frozen=True)
class Arithmetic:
    """A declared floating-point arithmetic of an attention kernel.

    Every format is a name of :mod:`symattn.formats`; errors of functions are relative, the rounding of the result included.
    ``None`` for an error means eight unit roundoffs of the compute format (4 ulp).

    Parameters
    ----------
    name
        What reports call it.
    input
        Format of the tensors that come in.
    accumulate
        Format in which sums are accumulated and their terms multiplied.
    compute
        Format of elementwise operations.
    store
        Format that statements which are neither outputs nor helpers are rounded to.
    aux
        Format of helpers (statements marked ``aux``: row maximum, exponentials, their sum).
    output, lse
        Formats of outputs: of those without a logarithm, and of those with one.
    probability, gradient
        What an intermediate operand of a matrix product is rounded to when read: one that is certainly not negative
        (weights), and any other (dS). None: as it is stored.
    operand
        What *inputs* are rounded to when a matrix product reads them (tf32). None: exact.
    exp_error, log_error, tanh_error, function_error
        Relative errors of the functions; the last is that of all others.
    tile
        Keys per tile where the sum over the keys is rescaled when the running maximum rises; T = ceil(keys / tile) tiles
        have at most T - 1 rescalings. None: one tile.
    depth
        A declared number of additions that a term passes through at most. None: any order of summation.
    scale_before, scale_format
        How many operands of a scaled matrix product are multiplied by the scale beforehand and rounded to ``scale_format``
        (None: ``input``).
    scalar_roundings, scalar_format
        Additional roundings of a scalar that is computed (a scale times log2(e)), and their format (None: ``compute``).
    shift_roundings
        Roundings of the row maximum where it is read outside an exponential (the LSE of a kernel that folds the scale).
    stale
        How far (in nats) the maximum in use may lag behind the true one.
    dq_accumulate
        Format of the buffer in which an output that is a sum over the keys grows, ``tile`` keys at a time. None: ``accumulate``.
    dkv_accumulate, query_tile
        Format of the buffers in which outputs that are sums over the queries grow, ``query_tile`` queries at a time (None: all).
    expand_heads
        Outputs that sum over several indices (dK over queries and group) are rounded once before the last sum.
    flush_to_zero
        Subnormal results of the accumulate and compute formats become 0; otherwise underflow is gradual.
    algorithm
        The list of statements that the kernel follows: ``naive`` (P = E/l, D = sum_j P dP) or ``flash``
        (O = N/l; backward from the saved O and LSE: P = exp(Z - L), D = sum_c dO O).
    staged
        The backward takes the kernel's own saved O and LSE.
    source, remark
        Where the declaration comes from; what was measured, and on which version.

    Raises
    ------
    DefinitionError
        For a value out of its range.
    UnknownNameError
        For a format that does not exist.

    >>> get("flash-bf16").probability, get("flash-bf16").accumulate
    ('bfloat16', 'float32')
    """

    name: str
    input: str
    accumulate: str
    compute: str
    store: str
    aux: str
    output: str
    lse: str
    probability: str | None = None
    gradient: str | None = None
    operand: str | None = None
    exp_error: float | None = None
    log_error: float | None = None
    tanh_error: float | None = None
    function_error: float | None = None
    tile: int | None = None
    depth: int | None = None
    scale_before: int = 0
    scale_format: str | None = None
    scalar_roundings: int = 0
    scalar_format: str | None = None
    shift_roundings: int = 0
    stale: float = 0.0
    dq_accumulate: str | None = None
    dkv_accumulate: str | None = None
    query_tile: int | None = None
    expand_heads: bool = False
    flush_to_zero: bool = False
    algorithm: Algorithm = "naive"
    staged: bool = False
    source: str = ""
    remark: str = ""

    def __post_init__(self) -> None:
        for f in FORMAT_FIELDS:
            value = getattr(self, f)
            if value is not None:
                object.__setattr__(self, f, formats.get(value).name)
            elif f not in OPTIONAL_FORMATS:
                raise DefinitionError(f"arithmetic {self.name}: {f} must be the name of a format")
        for f in ("exp_error", "log_error", "tanh_error", "function_error", "stale"):
            value = getattr(self, f)
            if value is not None and not (
                isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < math.inf
            ):
                raise DefinitionError(f"arithmetic {self.name}: {f} must be a number >= 0, got {value!r}")
        for f in ("tile", "query_tile", "depth"):
            value = getattr(self, f)
            if value is not None and not (_is_integer(value) and value >= 1):
                raise DefinitionError(f"arithmetic {self.name}: {f} must be a positive integer or None, got {value!r}")
        for f in ("scale_before", "scalar_roundings", "shift_roundings"):
            value = getattr(self, f)
            if not (_is_integer(value) and value >= 0):
                raise DefinitionError(f"arithmetic {self.name}: {f} must be an integer >= 0, got {value!r}")
        for f in ("expand_heads", "flush_to_zero", "staged"):
            if not isinstance(getattr(self, f), bool):
                raise DefinitionError(f"arithmetic {self.name}: {f} must be true or false, got {getattr(self, f)!r}")
        if self.algorithm not in ("naive", "flash"):
            raise DefinitionError(f"arithmetic {self.name}: algorithm is 'naive' or 'flash', got {self.algorithm!r}")
        if self.staged and self.algorithm != "flash":
            raise DefinitionError(f"arithmetic {self.name}: staged needs a backward that recomputes P from the saved LSE")

    def function_errors(self, name: str) -> float:
        """The declared relative error of a function, ``exp`` for example.

        >>> get("fast-exp-bf16").function_errors("exp")
        0.00011
        """
        value = {"exp": self.exp_error, "log": self.log_error, "tanh": self.tanh_error}.get(name, self.function_error)
        return 8 * float(formats.get(self.compute).unit_roundoff) if value is None else value

    def tiles(self, keys: int) -> int:
        """The number of tiles over ``keys`` keys.

        >>> replace(get("flash-bf16"), tile=64).tiles(130)
        3
        """
        return _blocks(keys, self.tile)

    def query_tiles(self, queries: int) -> int:
        """The number of tiles over ``queries`` queries."""
        return _blocks(queries, self.query_tile)

    def to_dict(self) -> dict[str, Any]:
        """The fields that differ from their defaults, in order; JSON can hold them."""
        out = asdict(self)
        return {f.name: out[f.name] for f in fields(self) if f.name in REQUIRED or out[f.name] != f.default}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Arithmetic:
        """The arithmetic that :meth:`to_dict` wrote down, or a preset with changes: ``{"preset": "flash-bf16", "tile": 64}``.

        Raises
        ------
        DefinitionError
            For a field that does not exist or is missing, or a value out of its range.

        >>> Arithmetic.from_dict(get("eager-fp16").to_dict()) == get("eager-fp16")
        True
        """
        given = dict(record)
        base = get(str(given.pop("preset"))).to_dict() if "preset" in given else {}
        known = [f.name for f in fields(cls)]
        for key in given:
            if key not in known:
                raise DefinitionError(f"an arithmetic has no field {key!r}. {nearest(key, known)}")
        values = base | given
        missing = [f for f in REQUIRED if f not in values]
        if missing:
            raise DefinitionError(f"an arithmetic needs {', '.join(missing)}")
        return cls(**values)

    def describe(self) -> str:
        """One line for reports, what is at its default left out.

        >>> get("numpy-fp64").describe()
        'numpy-fp64: naive; in float64, sums float64, elementwise float64, stored float64, out float64, lse float64, exp 8.9e-16'
        """
        parts = [f"in {self.input}", f"sums {self.accumulate}", f"elementwise {self.compute}", f"stored {self.store}"]
        if self.aux != self.store:
            parts.append(f"helpers {self.aux}")
        casts = (("P read as", self.probability), ("dS read as", self.gradient))
        parts += [f"{label} {value}" for label, value in casts if value]
        if self.operand:
            parts.append(f"inputs read as {self.operand}")
        parts += [f"out {self.output}", f"lse {self.lse}"]
        parts.append(f"exp {self.function_errors('exp'):.2g}")
        for label, value in (
            ("tile", self.tile),
            ("depth", self.depth),
            ("dQ grows in", self.dq_accumulate),
            ("dK and dV grow in", self.dkv_accumulate),
        ):
            if value is not None:
                parts.append(f"{label} {value}")
        if self.scale_before:
            parts.append(f"{self.scale_before} operand{'s' * (self.scale_before > 1)} scaled before")
        if self.stale:
            parts.append(f"maximum late by {self.stale:g}")
        if self.expand_heads:
            parts.append("heads expanded")
        if self.flush_to_zero:
            parts.append("subnormals flushed")
        if self.staged:
            parts.append("backward staged")
        return f"{self.name}: {self.algorithm}; {', '.join(parts)}"


def _blocks(length: int, tile: int | None) -> int:
    return 1 if tile is None else max(1, -(-length // tile))


def _is_integer(x: object) -> bool:
    return isinstance(x, int) and not isinstance(x, bool)


FORMAT_FIELDS = (
    *("input", "accumulate", "compute", "store", "aux", "output", "lse"),
    *("probability", "gradient", "operand", "scale_format", "scalar_format", "dq_accumulate", "dkv_accumulate"),
)
OPTIONAL_FORMATS = frozenset(FORMAT_FIELDS[7:])
REQUIRED = ("name", "input", "accumulate", "compute", "store", "aux", "output", "lse")
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
        "flush_to_zero": True,
        "algorithm": "flash",
        "staged": True,
    }
    return replace(base, **(low | common | changes))


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
    return get(f"flash-{SHORT[_supported(dtype)]}")


def _supported(dtype: object) -> str:
    name = formats.get(dtype).name  # type: ignore[arg-type]
    if name not in SHORT:
        raise UnknownNameError(f"no default arithmetic for {name}: declare one. {nearest(name, SHORT)}")
    return name


def inside_float32(format: str, **changes: Any) -> Arithmetic:
    """Everything in float32, inputs and outputs in another format.

    >>> inside_float32("bf16", name="math").describe()
    'math: naive; in bfloat16, sums float32, elementwise float32, stored float32, out bfloat16, lse float32, exp 4.8e-07'
    """
    f = formats.get(format).name
    return replace(uniform(f"inside-fp32-{SHORT[f]}", "float32"), input=f, output=f, **changes)


def _presets() -> dict[str, Arithmetic]:
    rows = [make(f) for make in (eager, flash, rounded_throughout) for f in SHORT]
    rows += [
        flash(f, name=f"fast-exp-{SHORT[f]}", exp_error=1.1e-4, source="tiled kernels with a short polynomial for exp")
        for f in ("float16", "bfloat16")
    ]
    return {a.name: a for a in rows}


PRESETS: Mapping[str, Arithmetic] = MappingProxyType(_presets())
"""General declarations by name; those of real kernels are in :mod:`symattn.measured`, and :func:`get` knows both."""
