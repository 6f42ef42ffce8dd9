r"""Replay: the cast of the weights emulated; the bound on what a matrix product makes of them drops to the accumulate format.

A kernel rounds weights ``e = exp(z - m_a)`` relative to the maximum ``m_a`` of the tiles so far, and later multiplies by
``exp(m_a - m)``. With tile, order and shift declared, ``m_a`` is known up to the errors of scores, so e lies in a narrow
interval; rounding is monotone, so the rounded weight lies between the rounded ends. These are equal but near midpoints.

**Theorem.** Let X be a cast tensor of degree 1 in a row maximum m (:mod:`.replayplan`), v its value, T the greatest relative
error of a conforming kernel in it at m, D how far the kernel's maxima may be from the exact ones, and ``f = exp(m_a - m)``. With
``e = v / f``, the kernel's rounded weight, brought to m, is ``c w`` with a number c >= exp(-D) common to the row and

    f (1 - R) rd(e (1 - T) exp(-D) - h)  <=  w  <=  f (1 + R) rd(e (1 + T) exp(D) + h),
    1 + R = exp(D + u (m - m_a + 2 D)) (1 + eps)^r,

u the unit roundoff of exponents, eps the error of exp, r the number of rescalings, h the greatest error of underflow.

*Proof.* The kernel's exponent at its own tile maximum m'_a is no larger than at its row maximum, so neither is its error, and
``|m'_a - m_a| <= D``. The factors that it is multiplied with are exponentials of differences of running maxima, which are
monotone and telescope to ``m'_a - m' = (m_a - m) + (m'_a - m_a) + (m - m')``; the last is the common c. What the rest of the list
reads beside has the same degree, so c cancels in the outputs, whose degree is 0. The multiplications are roundings of the sum. ∎
A cast tensor of degree 0 needs no tile: its interval is that of the rounding reading.

The rest of the list is read by :mod:`symattn.readings.rounding` with the interval as the box of an input, and the output's
interval is rounded to the output format at both ends. An element outside was given by no kernel of the declaration. Ties may go
either way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sympy as sp

from symattn import formats
from symattn.arithmetic import Arithmetic, uniform
from symattn.intake import Array
from symattn.program import Program, Statement
from symattn.readings import boxes as bx
from symattn.readings import boxstatements, rounding
from symattn.readings import numpy as evaluation
from symattn.readings.boxes import Box
from symattn.readings.products import align
from symattn.readings.units import Unit
from symattn.verify.replay.maxima import Shifts, scores_of, shifts_of
from symattn.verify.replay.plan import Cast, plan

HALF = 0.5
SLACK = 2.0**-46
"""Relative error of what is computed here in float64 beside boxes: a dozen operations and functions."""


@dataclass(frozen=True)
class Interval:
    """An output that can be replayed: a value amid, and the least and the greatest number that may come out.

    ``low`` and ``high`` are numbers of the output format; infinite where nothing is promised.
    """

    value: Array
    low: Array
    high: Array

    def inside(self, kernel: Array) -> Array:
        """Where a kernel's numbers may be those of the declaration; also where the value is none, which is judged elsewhere."""
        k = np.asarray(kernel, dtype=np.float64)
        return ~np.isfinite(self.value) | ((self.low <= k) & (k <= self.high))

    def open(self) -> Array:
        """Where nothing is asked."""
        return ~np.isfinite(self.value) | ~np.isfinite(self.low) | ~np.isfinite(self.high)


class Replay:
    """A list prepared for replays on one input: what does not depend on tile, order and shift is evaluated once.

    Parameters
    ----------
    program
        The list that the kernel follows.
    inputs
        Arrays by name.
    arithmetic
        The declaration; its ``tile``, ``order`` and ``shift`` are those of a replay that names none.
    sizes
        Sizes that no input shows.
    """

    def __init__(
        self, program: Program, inputs: Mapping[str, Any], arithmetic: Arithmetic, sizes: Mapping[str, int] | None = None
    ) -> None:
        self.program, self.inputs, self.arithmetic, self.sizes = program, inputs, arithmetic, dict(sizes or {})
        self.plan = plan(program, boxstatements.summed_as_read(program) if arithmetic.sum_from_cast else frozenset())
        self.kept: dict[Any, Any] = {}

    @property
    def possible(self) -> bool:
        """Whether the list has something that can be replayed, and it is rounded."""
        return self.plan is not None and self.arithmetic.probability is not None

    def shifts(self) -> tuple[str, ...]:
        """The maxima that weights may be relative to: that of the row, and before it that of the keys alone where they differ."""
        assert self.plan is not None
        longest = max((len(self.plan.chains[c.gauge]) for c in self.plan.casts if c.gauge), default=1)
        return ("row", "keys") if longest > 1 else ("row",)

    def keys(self) -> list[int]:
        """For each cast tensor that is relative to a maximum, how many keys that is taken over."""
        assert self.plan is not None
        return [scores_of(self, self.plan.chains[c.gauge][0]).shape[-1] for c in self.plan.casts if c.gauge]

    def intervals(self, arithmetic: Arithmetic | None = None, start: str = "row") -> dict[str, Interval]:
        """The intervals of all outputs that can be replayed.

        Parameters
        ----------
        arithmetic
            The declaration with another ``tile``, ``order`` or ``shift``.
        start
            One of :meth:`shifts`: whether what is in the maximum beside the keys (a sink) is there from the beginning
            (``row``), or comes in at the end (``keys``).
        """
        assert self.plan is not None
        a = arithmetic or self.arithmetic
        shown = replace(a, output=_wider(a.compute, a.output))
        boxes = {c.rounded: self._rounded(c, a, start) for c in self.plan.casts}
        boxes |= {name: self._given(name, gauge, a) for name, gauge in self.plan.given.items()}
        inputs = {n: boxes[n].value if n in boxes else self.inputs[n] for n in self.plan.rest.inputs}
        found = rounding.Evaluation(self.plan.rest, inputs, shown, sizes=self.sizes, boxes=boxes).boxes
        return {name: _interval(found[name], a) for name in self.plan.rest.outputs}

    def values(self, arithmetic: Arithmetic, start: str = "row") -> dict[str, Array]:
        """The values of :meth:`intervals` alone, rounded to the output format: what most elements of a kernel should equal."""
        assert self.plan is not None
        own = self.exact()
        inputs = {n: own[n].value if n in own else self.inputs[n] for n in self.plan.rest.inputs if n not in self._names()}
        inputs |= {c.rounded: self._value(c, arithmetic, start) for c in self.plan.casts}
        with np.errstate(all="ignore"):
            found = evaluation.evaluate(self.plan.rest, inputs, sizes=self.sizes, dtype="float64")
        narrow = formats.get(arithmetic.output).precision <= 24
        return {n: formats.round_array(found[n], arithmetic.output) if narrow else found[n] for n in self.plan.rest.outputs}

    def _names(self) -> set[str]:
        return set() if self.plan is None else {c.rounded for c in self.plan.casts}

    def _value(self, c: Cast, a: Arithmetic, start: str) -> Array:
        assert self.plan is not None
        x, rule = self.exact()[c.name], self._rule(c, a)[0]
        if c.gauge is None:
            return rule.at(x.value)
        drop = shifts_of(self, self.plan.chains[c.gauge], self.program[c.name], a, start).drop
        with np.errstate(all="ignore"):
            return np.nan_to_num(rule.at(x.value * np.exp(drop)) * np.exp(-drop))

    def exact(self) -> dict[str, Box]:
        """The boxes in float64: values, and how far these are from the exact ones."""
        return self._evaluated(uniform("own", "float64", algorithm=self.arithmetic.algorithm))

    def _evaluated(self, a: Arithmetic) -> dict[str, Box]:
        if a not in self.kept:
            self.kept[a] = rounding.evaluate(self.program, self.inputs, a, sizes=self.sizes)
        return self.kept[a]

    def _declared(self, a: Arithmetic) -> dict[str, Box]:
        """The boxes of the declaration; the sum of what is rounded is none of what they are asked for."""
        return self._evaluated(replace(a, sum_from_cast=False, order=None, shift=None))

    def _given(self, name: str, gauge: str | None, a: Arithmetic) -> Box:
        """What the rest reads beside the rounded tensors, relative to the exact row maximum."""
        own, declared = self.exact()[name], self._declared(a)[name]
        bound, true = declared.bound, own.own + own.bound
        if gauge is None:
            least = np.maximum(declared.low, 0.0)
            return replace(declared, value=own.value, own=true, bound=bound, low=least, rescalings=0)
        lag = _spread(self._lag(gauge, a), self.program[gauge], self.program[name])
        bound, unit = bound * np.exp(lag), _below(lag)
        low = np.maximum(np.abs(own.value) - (true + bound), 0.0) * bx.DOWN
        found = replace(declared, value=own.value, own=true, bound=bound * bx.UP, low=low, rescalings=0)
        return found.map(lambda x: x * unit)

    def _lag(self, gauge: str, a: Arithmetic) -> Array:
        """How far the kernel's maximum may be from the exact one."""
        box, own = self._declared(a)[gauge], self.exact()[gauge]
        return np.where(np.isfinite(box.value), box.own + own.own, 0.0)

    def _rounded(self, c: Cast, a: Arithmetic, start: str) -> Box:
        s = self.program[c.name]
        x = self.exact()[c.name]
        plain = self._declared(replace(a, tile=None))[c.name]
        rule, held = self._rule(c, a)
        if c.gauge is None:
            reach = plain.bound + x.own + x.bound
            value, low, high = rule.at(x.value), rule.low(x.value - reach), rule.high(x.value + reach)
            return _boxed(value, low, high, plain.nonneg, held)
        assert self.plan is not None
        moves = shifts_of(self, self.plan.chains[c.gauge], s, a, start)
        return self._relative(c.gauge, s, x, plain, rule, moves, a, held)

    def _rule(self, c: Cast, a: Arithmetic) -> tuple[_Rule, str]:
        """How a tensor is rounded, and the format that holds it then."""
        weights = self._declared(replace(a, tile=None))[c.name].nonneg
        target, scale = (a.probability, a.probability_scale) if weights else (a.gradient, a.gradient_scale)
        rule = _Rule(target, scale, weights and "probability" in a.truncate, a.probability_overflow == "saturate")
        return rule, target if scale == 1 and target is not None else a.accumulate

    def _relative(
        self, gauge: str, s: Statement, x: Box, plain: Box, rule: _Rule, moves: Shifts, a: Arithmetic, held: str
    ) -> Box:
        """The theorem: weights relative to the maxima of their tiles, brought to that of the row."""
        unit = Unit.of(a.compute, a.flush_to_zero)
        lag = _spread(self._lag(gauge, a), self.program[gauge], s)
        drop, loss = moves.drop, moves.error
        with np.errstate(all="ignore"):
            sure = np.maximum(x.value - (x.own + x.bound), 0.0)
            share = (plain.bound * np.exp(lag) + x.own + x.bound) / sure
            share = share + loss + SLACK + (unit.u * np.maximum(moves.height, 0.0) if a.folded else 0.0)
            e, factor = x.value * np.exp(drop), np.exp(-drop)
            low = rule.low(np.maximum(e * (1 - share) * np.exp(-lag) - unit.tiny, 0.0))
            high = rule.high(e * (1 + share) * np.exp(lag) + unit.tiny)
            turns = (1 + a.function_errors("exp")) ** moves.rescalings
            again = np.expm1(lag + (3 if a.folded else 1) * unit.u * (drop + 2 * lag)) + loss + SLACK
            again = (1 + again) * turns * bx.UP - 1
            low, high = low * factor * np.maximum(1 - again, 0.0), high * factor * (1 + again)
            value = rule.at(e) * factor
            most = 2 * (x.value + x.own + x.bound + plain.bound * np.exp(lag)) + factor * (rule.least + unit.tiny) + bx.OWN_TINY
            most = most * (1 + again) * np.exp(lag)
        wild = ~(share < HALF) | ~np.isfinite(e)
        value, low = np.where(wild, 0.0, value), np.where(wild, 0.0, low)
        high = np.where(wild, most, high)
        nothing = (x.value == 0) & (plain.bound == 0)
        value, low, high = (np.where(nothing, 0.0, y) * _below(lag) for y in (value, low, high))
        return replace(_boxed(value, low, high, True, held), rescalings=moves.rescalings)


@dataclass(frozen=True)
class _Rule:
    """The rounding of a cast tensor, and its monotone envelopes."""

    format: str | None
    scale: float
    truncates: bool
    saturates: bool

    def at(self, x: Array) -> Array:
        """The rounded number."""
        return self._of(x, "zero" if self.truncates else "even")

    def low(self, x: Array) -> Array:
        """At most what a number from x on is rounded to."""
        return self._of(x * (1 - np.sign(x) * self._wide), "zero" if self.truncates else "down")

    def high(self, x: Array) -> Array:
        """At least what a number up to x is rounded to; infinite where that is no number."""
        found = self._of(x * (1 + np.sign(x) * self._wide), "zero" if self.truncates else "up")
        return np.where(np.isnan(found), np.inf, found)

    @property
    def _wide(self) -> float:
        return 0.0 if abs(float(np.frexp(self.scale)[0])) == HALF else 2.0**-22

    @property
    def least(self) -> float:
        """The smallest positive number that it may give."""
        return 0.0 if self.format is None else float(formats.get(self.format).smallest_subnormal) / self.scale

    def _of(self, x: Array, how: str) -> Array:
        if self.format is None or formats.get(self.format).precision > 24:
            return np.asarray(x, dtype=np.float64)
        return formats.round_array(x * self.scale, self.format, rule=how, saturate=self.saturates) / self.scale


def _boxed(value: Array, low: Array, high: Array, nonneg: bool, held: str) -> Box:
    """The box of what lies between two numbers, around their middle; where they are one, ``value`` is it."""
    with np.errstate(invalid="ignore"):
        value = np.where((low < high) & np.isfinite(high), low + (high - low) / 2, value)
        bound = np.maximum(high - value, value - low) * bx.UP
    bound = np.where(np.isnan(bound), np.inf, np.maximum(bound, 0.0))
    least = np.maximum(np.minimum(np.abs(low), np.abs(high)) * bx.DOWN, 0.0) if nonneg else np.maximum(np.abs(value) - bound, 0.0)
    zero = np.zeros_like(value)
    return Box(value, bound, np.where(np.isfinite(least), least, 0.0), zero, nonneg=nonneg, held=held)


def _spread(x: Array, of: Statement, to: Statement) -> Array:
    """An array on the indices of one statement, with an axis of length 1 for each further one of another."""
    sizes: dict[sp.Symbol, int] = dict(zip(of.indices, x.shape, strict=True))
    return align(x, of.indices, to.indices, sizes)


def _below(lag: Array) -> Array:
    """A power of two that brings tensors at an exact maximum below a kernel's: its underflow, which is absolute, is no larger."""
    return np.asarray(np.exp2(-np.ceil(lag / np.log(2.0) + 2.0**-20)))


def _wider(compute: str, output: str) -> str:
    return compute if formats.get(compute).precision >= formats.get(output).precision else output


def _interval(b: Box, a: Arithmetic) -> Interval:
    """From the box before the last rounding to what may come out of it."""
    reach = (b.own + b.bound) * bx.UP
    with np.errstate(invalid="ignore", over="ignore"):
        low, high = b.value - reach, b.value + reach
    if formats.get(a.output).precision <= 24:
        low, high = (formats.round_array(x, a.output, rule=r) for x, r in ((low, "down"), (high, "up")))
    return Interval(b.value, np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high))
