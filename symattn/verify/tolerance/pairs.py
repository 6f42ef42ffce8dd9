"""Tolerances for tests elsewhere: the a-priori bound of all inputs of given magnitudes, and a pair (atol, rtol) for a law.

Two things are given, and are not the same. The *bounded* error holds for every input whose entries are no larger than the
magnitudes (:mod:`.apriori`). The *estimated* pair is the line ``atol + rtol |exact|`` of least mean height above the derived
bounds of one seeded input of a law: another input of the law may need more. For each of them, and for the derived bound of every
element that ``symattn verify`` uses, it says what would be missed: the smallest error of the scale (all scores times 1 + e) that
an otherwise exact kernel would show on that input.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from symattn import formats
from symattn.arithmetic import Arithmetic, declaration
from symattn.binding import bind
from symattn.definition import Definition
from symattn.errors import DefinitionError, InputValueError, LimitError, UnknownNameError, nearest
from symattn.fields import field_of
from symattn.intake import Array
from symattn.program import Program
from symattn.readings import numpy as values
from symattn.readings import slopes
from symattn.verify import programs
from symattn.verify.inputs import KINDS, Kind, Shape, fields_for
from symattn.verify.judge import require_values
from symattn.verify.tolerance.apriori import apriori
from symattn.verify.tolerance.parts import Reach

MOST = 2**23
"""The most scores, H N M, that are looked at."""
GRID = 40
"""Steps of the search for the smallest scale error, between 2^-34 and 2."""


@dataclass(frozen=True)
class Tolerance:
    """What may be asked of one tensor.

    Parameters
    ----------
    size, bounded
        The greatest magnitude of the exact tensor and the greatest error of a correct kernel, for all inputs within the
        magnitudes; infinite where none can be had.
    atol, rtol
        The estimated pair; NaN where the derived bounds are infinite.
    greatest
        The greatest derived bound of an element on the input of the law.
    missed
        By ``bounded``, ``pair``, ``derived``: up to which scale error a test with that tolerance would pass; None where every
        error that was tried passes.
    """

    size: float
    bounded: float
    atol: float
    rtol: float
    greatest: float
    missed: Mapping[str, float | None]


@dataclass(frozen=True)
class Tolerances:
    """The tolerances of all outputs; see the module.

    Parameters
    ----------
    definition, arithmetic, shape
        What is computed, how, and in which sizes.
    magnitudes
        By field name, those for which ``bounded`` holds; the other inputs are those of the law.
    law, seed
        The input that the estimates are of.
    tensors
        By field name.
    """

    definition: Definition
    arithmetic: Arithmetic
    shape: Shape
    magnitudes: Mapping[str, float]
    law: str
    seed: int
    tensors: Mapping[str, Tolerance]

    def to_dict(self) -> dict[str, Any]:
        """Plain data; numbers as text, since infinities are no JSON."""
        rows = {
            name: {
                "size": _text(t.size),
                "bounded": _text(t.bounded),
                "estimated": {"atol": _text(t.atol), "rtol": _text(t.rtol), "greatest_bound": _text(t.greatest)},
                "scale_error_missed": {k: None if x is None else _text(x) for k, x in t.missed.items()},
            }
            for name, t in self.tensors.items()
        }
        return {
            "definition": self.definition.conventions(),
            "arithmetic": self.arithmetic.to_dict(),
            "shape": str(self.shape),
            "magnitudes": {k: _text(x) for k, x in self.magnitudes.items()},
            "law": self.law,
            "seed": self.seed,
            "tensors": rows,
        }

    def to_json(self) -> str:
        """One JSON document."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def to_text(self) -> str:
        """For a terminal of 80 columns."""
        from symattn.verify.tolerance.text import tolerances_text

        return tolerances_text(self)

    def __str__(self) -> str:
        return self.to_text()


def tolerances(
    definition: Definition,
    shape: str | Shape,
    arithmetic: Arithmetic | str | Mapping[str, Any],
    *,
    magnitudes: Mapping[str, Any] | None = None,
    law: str = "normal",
    seed: int = 0,
    gradient: bool = False,
) -> Tolerances:
    """The tolerances of a definition's outputs, and of its gradients if asked for.

    Parameters
    ----------
    definition
        The attention of given query, key and value.
    shape
        ``"B,H,HKV,N,M,D[,DV]"``.
    arithmetic
        A declaration, the name of a preset, or a mapping.
    magnitudes
        The greatest absolute value of inputs by field name; those that are not named are taken from the law's input.
    law, seed
        A kind of input of the default pack, and its seed.
    gradient
        Whether the gradients of all real inputs are among the tensors: of a loss with a gradient in ``out`` and none in ``lse``,
        from the inputs to the end, as a test that compares with the truth sees them.

    Returns
    -------
    Tolerances
        *Bounded* errors hold for all inputs within the magnitudes; pairs are *estimated* from one input.

    Raises
    ------
    ShapeError, UnknownNameError, InputValueError, DefinitionError
        For a bad shape, a law or a field that does not exist, a magnitude that is no positive number.
    LimitError
        For more scores than are looked at.

    >>> t = tolerances(Definition(), "1,2,1,3,8,4", "flash-bf16", magnitudes={"query": 2, "key": 2, "value": 1})
    >>> bool(2**-8 < t.tensors["out"].bounded < 2**-6), t.tensors["out"].rtol <= 2**-5
    (True, True)
    """
    a = declaration(arithmetic)
    if a is None:
        raise DefinitionError("a tolerance is one of a declared arithmetic: name one")
    s = Shape.parse(shape) if isinstance(shape, str) else shape
    if s.h * s.n * s.m > MOST:
        raise LimitError(
            f"{s.h * s.n * s.m} scores: at most {MOST} are looked at. The bounds do not depend on batch and heads, nor on the "
            "number of queries unless a mask does: give fewer"
        )
    core = definition.core
    require_values(core)
    fields = fields_for(core, Shape(1, s.h, s.hkv, s.n, s.m, s.d, s.dv), formats.get(a.input).storage, seed, _kind(law))
    if "grad_lse" in fields:
        fields["grad_lse"] = np.zeros_like(fields["grad_lse"])
    fields = {k: _on_grid(x, a) for k, x in fields.items() if gradient or not k.startswith("grad_")}
    bound = bind(core, fields)
    reach = _magnitudes(magnitudes or {}, {k: x for k, x in fields.items() if k != "grad_lse"})
    program = programs.followed(bound.program, a, gradient=gradient)
    inputs = {n: bound.inputs[n] for n in program.inputs}
    own = bound.definition.parameters
    sizes = dict(bound.sizes)
    letters = {n: reach[f] for n in program.inputs if (f := field_of(n, own)) in reach}
    prior = apriori(program, inputs, letters, a, sizes=sizes)
    derived = slopes.bounds(program, inputs, a, sizes=sizes)
    moved = _Moved(program, inputs, sizes)
    rows = {}
    for name in program.outputs:
        rows[field_of(name, own)] = _row(name, prior[name], derived[name], moved)
    return Tolerances(bound.definition, a, s, reach, law, seed, rows)


def _kind(law: str) -> Kind:
    kinds = {k.name: k for k in KINDS}
    if law not in kinds:
        raise UnknownNameError(f"there is no law {law!r}. {nearest(law, kinds)}")
    return kinds[law]


def _on_grid(x: Array, a: Arithmetic) -> Array:
    """Inputs of a format that is kept in a wider dtype are numbers of the format."""
    f = formats.get(a.input)
    if f.name == f.storage or x.dtype.kind in "biu":
        return x
    return formats.round_array(x.astype(np.float64), f, saturate=True).astype(x.dtype)


def _magnitudes(given: Mapping[str, Any], fields: Mapping[str, Array]) -> dict[str, float]:
    real = {k for k, x in fields.items() if x.dtype.kind not in "biu"}
    found: dict[str, float] = {}
    for name, value in given.items():
        if name not in real:
            raise InputValueError(f"no magnitude of {name!r}: the real inputs here are {', '.join(sorted(real))}")
        found[name] = magnitude(name, value)
    for name in ("query", "key", "value", "grad_out"):
        if name in real and name not in found:
            found[name] = float(np.max(np.abs(fields[name].astype(np.float64)), initial=0.0))
    return found


def magnitude(name: str, value: Any) -> float:
    """A magnitude that a user gives, as the next float64 that is not smaller.

    >>> magnitude("query", "0.1") >= Fraction(1, 10)
    True
    """
    try:
        exact = Fraction(value) if isinstance(value, (str, int, float, Fraction)) and not isinstance(value, bool) else None
    except (ValueError, OverflowError, ZeroDivisionError):
        exact = None
    if exact is None or exact <= 0 or exact > 10**30:
        raise InputValueError(f"the magnitude of {name} is a positive number up to 1e30, got {value!r}")
    return formats.above(exact)


class _Moved:
    """The outputs with all scores times 1 + e, in float64: the queries are multiplied by it, and by the chain rule so is dQ."""

    def __init__(self, program: Program, inputs: Mapping[str, Any], sizes: Mapping[str, int]) -> None:
        self.program, self.inputs, self.sizes = program, inputs, sizes
        self._kept: dict[float, dict[str, Array]] = {}

    def at(self, error: float) -> dict[str, Array]:
        """The outputs at a scale error."""
        if error not in self._kept:
            inputs = {n: np.asarray(x, np.float64) * (1 + error) if n == "Q" else x for n, x in self.inputs.items()}
            with np.errstate(all="ignore"):
                found = values.evaluate(self.program, inputs, sizes=self.sizes, dtype="float64")
            self._kept[error] = {n: x * (1 + error) if n == "dQ" else x for n, x in found.items()}
        return self._kept[error]

    def missed(self, name: str, tolerance: Array) -> float | None:
        """The greatest scale error of a grid up to which no element leaves the tolerance; None where none does."""
        if "Q" not in self.inputs:
            return None
        base = self.at(0.0)[name]

        def shows(k: int) -> bool:
            with np.errstate(invalid="ignore"):
                off = np.abs(self.at(2.0 ** (35 * k / GRID - 34))[name] - base)
            return bool(np.any(np.where(np.isfinite(base), off, 0.0) > tolerance))

        if not shows(GRID):
            return None
        low, high = -1, GRID
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if shows(middle) else (middle, high)
        return float(2.0 ** (35 * low / GRID - 34)) if low >= 0 else 0.0


def _row(name: str, prior: Reach, found: slopes.Bounded, moved: _Moved) -> Tolerance:
    there = np.isfinite(found.value)
    size = np.where(there, np.abs(found.value), 0.0)
    need = np.where(there, found.bound, 0.0)
    atol, rtol = covering(np.maximum(size - found.own, 0.0)[there], need[there])
    pair = atol + rtol * size if math.isfinite(atol) else np.full(size.shape, np.inf)
    asked: dict[str, Callable[[], Array] | Array] = {
        "bounded": np.full(size.shape, prior.error),
        "pair": pair,
        "derived": found.bound,
    }
    missed = {k: moved.missed(name, np.asarray(x)) for k, x in asked.items()}
    return Tolerance(prior.size, prior.error, atol, rtol, float(np.max(need, initial=0.0)), missed)


def covering(size: Array, need: Array) -> tuple[float, float]:
    """The pair (atol, rtol) with ``atol + rtol size >= need`` everywhere that is lowest at the mean size; both rounded up.

    >>> covering(np.array([0.0, 1.0, 2.0]), np.array([1.0, 1.5, 3.0]))
    (1.0, 1.0)
    """
    x, y = np.ravel(size), np.ravel(need)
    if not x.size:
        return 0.0, 0.0
    if not np.isfinite(y).all():
        return math.nan, math.nan
    middle = float(np.mean(x))
    left, right = x <= middle, x > middle
    slopes = [0.0]
    if right.any():
        # the lowest line at the middle touches the points on both sides: its slope is where their demands cross
        low, high = 0.0, float(np.max(y)) / max(float(np.min(x[right] - middle)), 1e-300)
        for _ in range(200):
            slope = (low + high) / 2
            before, after = (float(np.max(y[k] - slope * (x[k] - middle))) for k in (left, right))
            low, high = (slope, high) if after > before else (low, slope)
        slopes.append(high)
    found = []
    for slope in slopes:
        rtol = _up(slope)
        found.append((_up(_most(x, y, rtol)), rtol))
    positive = x > 0
    if (positive | (y == 0)).all():
        found.append((0.0, _up(float(np.max(np.where(positive, y / np.where(positive, x, 1.0), 0.0))))))
    return min(found, key=lambda p: p[0] + p[1] * middle)


def _most(x: Array, y: Array, slope: float) -> Fraction:
    """The greatest ``y - slope x``, exactly, and at least 0; looked for among those that are near it in float64."""
    off = y - slope * x
    near = off >= np.max(off) - 2.0**-40 * np.max(y)
    return max(Fraction(0), *(Fraction(b) - Fraction(slope) * Fraction(a) for a, b in zip(x[near], y[near], strict=True)))


def _up(x: float | Fraction) -> float:
    """Rounded up to two significant digits."""
    if x <= 0:
        return 0.0
    step = Fraction(10) ** (math.floor(math.log10(x)) - 1)
    near = float(math.ceil(Fraction(x) / step) * step)
    return near if near >= x else math.nextafter(near, math.inf)


def _text(x: float) -> str:
    return f"{x:.4g}" if math.isfinite(x) else str(x)
