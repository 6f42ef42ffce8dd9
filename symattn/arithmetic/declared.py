"""The declaration itself: its fields, what they are checked for, and how it is written down and read back.

An :class:`Arithmetic` holds no tensor names: the rounding reading decides from the structure of a statement (a sum of products,
an unreduced expression, an output, an operand of a matrix product) which entry applies.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from symattn import formats
from symattn.errors import DefinitionError, nearest

Algorithm = Literal["naive", "log", "flash"]
Order = Literal["forward", "reverse"]
Shift = Literal["running", "row"]


@dataclass(frozen=True)
class Arithmetic:
    """A declared floating-point arithmetic of an attention kernel.

    Every format is a name of :mod:`symattn.formats`; errors of functions are relative, the rounding of the result included.
    ``None`` for an error means eight unit roundoffs of the compute format (4 ulp). A multiplication and the addition of its
    result count as two roundings, so that kernels with and without fma conform alike.

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
        (weights), and any other (dS). None: as it is stored. The weights are those of the algorithm's list: before they are
        divided by their sum in ``flash``, after it in ``naive``.
    probability_scale, probability_overflow
        A constant that weights are multiplied with before they are rounded to ``probability``, and divided by after the
        product (2^8 for 8-bit floats); what is beyond the format's largest number becomes that (``saturate``) or NaN (``nan``).
    gradient_scale
        A constant that dS is multiplied with before it is rounded to ``gradient`` and not after the product: where the scale is
        taken into dS, what underflows is larger by as much.
    sum_from_cast
        The row sum adds the weights as rounded to ``probability``, where it adds what a matrix product reads.
    operand
        What *inputs* are rounded to when a matrix product reads them (tf32). None: exact.
    exp_error, log_error, tanh_error, function_error
        Relative errors of the functions; the last is that of all others.
    tile
        Keys per tile where the sum over the keys is rescaled when the running maximum rises; T = ceil(keys / tile) tiles
        have at most T - 1 rescalings. None: one tile.
    depth
        A declared number of additions that a term passes through at most. None: any order of summation.
    truncate
        What is cut off and not rounded to nearest, and so errs by up to a whole unit in the last place: ``"accumulate"``
        (additions), ``"operand"``, ``"probability"``.
    block, block_bits
        Products that a hardware accumulator adds at once: with the sum so far they are aligned to the largest and cut off
        ``block_bits`` bits below it (None: the precision of ``accumulate``), then rounded to ``accumulate``.
    scale_before, scale_format
        How many operands of a scaled matrix product are multiplied by the scale beforehand and rounded to ``scale_format``
        (None: ``input``). 0: the scale comes after the product.
    scalar_roundings, scalar_format
        Additional roundings of a scalar that is computed (a scale times log2(e)), and their format (None: ``compute``).
    shift_roundings
        Roundings of the row maximum where it is read outside an exponential (the LSE of a kernel that folds the scale).
    folded
        Exponents may be formed as ``c r - fl(c m)`` from the unscaled score r, in one fma or two operations.
    merged
        The keys may be taken in parts, each with a softmax of its own, whose outputs are put together through their
        log-sum-exps (format ``lse``).
    stale
        How far (in nats) the maximum in use may lag behind the true one.
    order, shift
        Where both are declared, the cast of the weights can be *replayed*: the order in which tiles of keys are taken, and the
        maximum that is subtracted in each: the ``running`` one of the tiles so far, or that of the whole ``row``.
    dq_accumulate
        Format of the buffer in which an output that is a sum over the keys grows, ``tile`` keys at a time. None: ``accumulate``.
    dkv_accumulate, query_tile
        Format of the buffers in which outputs that are sums over the queries grow, ``query_tile`` queries at a time (None: all).
    expand_heads
        Outputs that sum over several indices (dK over queries and group) are rounded once before the last sum.
    flush_to_zero
        Subnormal results of the accumulate and compute formats become 0; otherwise underflow is gradual.
    algorithm
        The list of statements that the kernel follows: ``naive`` (P = E/l, D = sum_j P dP), ``log`` (the same, with
        P = exp(Z - L)) or ``flash`` (O = N/l; backward from the saved O and LSE: P = exp(Z - L), D = sum_c dO O).
    staged
        The backward takes the kernel's own saved O and LSE.
    source, remark
        Where the declaration comes from; what was measured, and on which version.

    Raises
    ------
    DefinitionError
        For a value out of its range, or values that contradict each other.
    UnknownNameError
        For a format that does not exist.

    >>> from symattn.arithmetic import get
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
    probability_scale: float = 1.0
    probability_overflow: str = "saturate"
    sum_from_cast: bool = False
    gradient: str | None = None
    gradient_scale: float = 1.0
    operand: str | None = None
    exp_error: float | None = None
    log_error: float | None = None
    tanh_error: float | None = None
    function_error: float | None = None
    tile: int | None = None
    depth: int | None = None
    truncate: tuple[str, ...] = ()
    block: int | None = None
    block_bits: int | None = None
    scale_before: int = 0
    scale_format: str | None = None
    scalar_roundings: int = 0
    scalar_format: str | None = None
    shift_roundings: int = 0
    folded: bool = False
    merged: bool = False
    stale: float = 0.0
    order: Order | None = None
    shift: Shift | None = None
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
            if value is not None and not isinstance(value, (str, formats.Format)):
                raise self._wrong(f"{f} must be the name of a format, got {value!r}")
            if value is not None:
                object.__setattr__(self, f, formats.get(value).name)
            elif f not in OPTIONAL_FORMATS:
                raise self._wrong(f"{f} must be the name of a format")
        self._check_numbers()
        for f, allowed in CHOICES.items():
            if getattr(self, f) not in allowed:
                raise self._wrong(f"{f} is {_choices(allowed)}, got {getattr(self, f)!r}")
        given = (self.truncate,) if isinstance(self.truncate, str) else tuple(self.truncate)
        for x in given:
            if x not in TRUNCATED:
                raise self._wrong(f"truncate lists {_choices(TRUNCATED)}, got {x!r}")
        object.__setattr__(self, "truncate", given)
        self._check_together()

    def _check_numbers(self) -> None:
        for f in ("exp_error", "log_error", "tanh_error", "function_error", "stale"):
            value = getattr(self, f)
            if value is not None and not (_is_number(value) and 0 <= value <= LARGEST):
                raise self._wrong(f"{f} must be a number >= 0, got {value!r}")
        for f in ("probability_scale", "gradient_scale"):
            value = getattr(self, f)
            if not (_is_number(value) and 0 < value <= LARGEST):
                raise self._wrong(f"{f} must be a number > 0, got {value!r}")
        for f in ("tile", "query_tile", "depth", "block", "block_bits"):
            value = getattr(self, f)
            if value is not None and not (_is_integer(value) and 1 <= value <= LONGEST):
                raise self._wrong(f"{f} must be a positive integer or None, got {value!r}")
        for f in ("scale_before", "scalar_roundings", "shift_roundings"):
            value = getattr(self, f)
            if not (_is_integer(value) and 0 <= value <= MOST):
                raise self._wrong(f"{f} must be an integer >= 0 and <= {MOST}, got {value!r}")
        for f in ("expand_heads", "flush_to_zero", "staged", "sum_from_cast", "folded", "merged"):
            if not isinstance(getattr(self, f), bool):
                raise self._wrong(f"{f} must be true or false, got {getattr(self, f)!r}")

    def _check_together(self) -> None:
        if self.staged and self.algorithm != "flash":
            raise self._wrong("staged needs a backward that recomputes P from the saved LSE (algorithm 'flash')")
        if self.block_bits is not None and self.block is None:
            raise self._wrong("block_bits says how a block of products is cut off: declare block too")
        if self.probability is None and (self.sum_from_cast or self.probability_scale != 1):
            raise self._wrong("sum_from_cast and probability_scale are about weights that are rounded: declare probability")
        if (self.order is None) != (self.shift is None):
            raise self._wrong("order and shift are declared together: a replay needs both")
        if self.merged and self.algorithm != "flash":
            raise self._wrong("parts of the keys are merged where O = N/l (algorithm 'flash')")
        if self.shift is not None and self.merged:
            raise self._wrong("parts of the keys that are merged have maxima of their own: leave order and shift out")
        if self.shift is not None and self.stale:
            raise self._wrong("with a maximum that lags (stale) the cast cannot be replayed: leave order and shift out")

    def _wrong(self, text: str) -> DefinitionError:
        return DefinitionError(f"arithmetic {self.name}: {text}")

    def function_errors(self, name: str) -> float:
        """The declared relative error of a function, ``exp`` for example.

        >>> from symattn.arithmetic import get
        >>> get("fast-exp-bf16").function_errors("exp")
        0.00011
        """
        value = {"exp": self.exp_error, "log": self.log_error, "tanh": self.tanh_error}.get(name, self.function_error)
        return 8 * float(formats.get(self.compute).unit_roundoff) if value is None else value

    def tiles(self, keys: int) -> int:
        """The number of tiles over ``keys`` keys.

        >>> from dataclasses import replace
        >>> from symattn.arithmetic import get
        >>> replace(get("flash-bf16"), tile=64).tiles(130)
        3
        """
        return _blocks(keys, self.tile)

    def query_tiles(self, queries: int) -> int:
        """The number of tiles over ``queries`` queries."""
        return _blocks(queries, self.query_tile)

    def ulps(self, what: str) -> int:
        """1 where ``what`` is rounded to nearest, 2 where it is truncated: its error in unit roundoffs."""
        return 2 if what in self.truncate else 1

    @property
    def step_error(self) -> float:
        """What one addition of an accumulator errs by, relative to the sizes of what it adds.

        One unit roundoff, two where additions truncate. Of a block of b products and the sum so far, each is cut off t bits
        below the largest: (b + 1) 2^-t, and the rounding of the result.
        """
        f = formats.get(self.accumulate)
        rounding = self.ulps("accumulate") * float(f.unit_roundoff)
        if self.block is None:
            return rounding
        cut = (self.block + 1) * 2.0 ** -(self.block_bits or f.precision)
        return cut + rounding + cut * rounding

    def additions(self, terms: int, points: int) -> int:
        """The most additions that a term of a sum passes through: of ``terms`` terms at most, among ``points`` places.

        With blocks a place is passed whether it holds a term or not; a step without a term changes a sum once at most.

        >>> from dataclasses import replace
        >>> from symattn.arithmetic import get
        >>> replace(get("flash-bf16"), block=16).additions(100, 100)
        7
        """
        found = max(terms - 1, 0) if self.block is None else min(_blocks(points, self.block), 2 * terms)
        return found if self.depth is None else min(found, self.depth)

    def to_dict(self) -> dict[str, Any]:
        """The fields that differ from their defaults, in order; JSON can hold them."""
        out = asdict(self) | {"truncate": list(self.truncate)}
        defaults = {f.name: f.default for f in fields(self)} | {"truncate": []}
        return {n: x for n, x in out.items() if n in REQUIRED or x != defaults[n]}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Arithmetic:
        """The arithmetic that :meth:`to_dict` wrote down, or a preset with changes: ``{"preset": "flash-bf16", "tile": 64}``.

        Without a ``name``, a changed preset is called by its name and a plus.

        Raises
        ------
        DefinitionError
            For a field that does not exist or is missing, or a value out of its range.

        >>> from symattn.arithmetic import get
        >>> Arithmetic.from_dict(get("eager-fp16").to_dict()) == get("eager-fp16")
        True
        >>> Arithmetic.from_dict({"preset": "flash-bf16", "tile": 128}).name
        'flash-bf16+'
        """
        from symattn.arithmetic.presets import get

        given = dict(record)
        base: dict[str, Any] = {}
        if "preset" in given:
            preset = given.pop("preset")
            if not isinstance(preset, str):
                raise DefinitionError(f"preset is the name of an arithmetic, got {preset!r}")
            base = get(preset).to_dict()
            if given.keys() - {"name"}:
                base["name"] += "+"
        known = [f.name for f in fields(cls)]
        for key in given:
            if key not in known:
                raise DefinitionError(f"an arithmetic has no field {key!r}. {nearest(key, [*known, 'preset'])}")
        values = base | given
        missing = [f for f in REQUIRED if f not in values]
        if missing:
            raise DefinitionError(f"an arithmetic needs {', '.join(missing)} (or a preset to start from)")
        for f in ("name", "source", "remark"):
            if not isinstance(values.get(f, ""), str):
                raise DefinitionError(f"an arithmetic's {f} is a text, got {values[f]!r}")
        if not isinstance(values.get("truncate", ()), (str, list, tuple)):
            raise DefinitionError(f"truncate is a list of {_choices(TRUNCATED)}, got {values['truncate']!r}")
        return cls(**values)

    def describe(self) -> str:
        """One line for reports, what is at its default left out.

        >>> from symattn.arithmetic import get
        >>> get("numpy-fp64").describe()
        'numpy-fp64: naive; in float64, sums float64, elementwise float64, stored float64, out float64, lse float64, exp 8.9e-16'
        """
        from symattn.arithmetic.text import described

        return described(self)


def _choices(allowed: tuple[object, ...]) -> str:
    return " or ".join(repr(x) for x in allowed)


def _blocks(length: int, tile: int | None) -> int:
    return 1 if tile is None else max(1, -(-length // tile))


def _is_integer(x: object) -> bool:
    return isinstance(x, int) and not isinstance(x, bool)


def _is_number(x: object) -> bool:
    return isinstance(x, (int, float)) and not isinstance(x, bool)


FORMAT_FIELDS = (
    *("input", "accumulate", "compute", "store", "aux", "output", "lse"),
    *("probability", "gradient", "operand", "scale_format", "scalar_format", "dq_accumulate", "dkv_accumulate"),
)
OPTIONAL_FORMATS = frozenset(FORMAT_FIELDS[7:])
REQUIRED = ("name", "input", "accumulate", "compute", "store", "aux", "output", "lse")
TRUNCATED = ("accumulate", "operand", "probability")
LARGEST, LONGEST, MOST = sys.float_info.max, 2**62, 1000
"""The greatest number, length and count of roundings that a declaration may hold: bounds are computed in float64."""
CHOICES: Mapping[str, tuple[object, ...]] = {
    "algorithm": ("naive", "log", "flash"),
    "probability_overflow": ("saturate", "nan"),
    "order": ("forward", "reverse", None),
    "shift": ("running", "row", None),
}
