"""What casts, sums of sums, quotients and formats make of a share: the arithmetic of errors relative to weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import sympy as sp

from symattn.arithmetic import Arithmetic
from symattn.program import Program, Statement
from symattn.readings import merging
from symattn.readings.boxes import UP, Array
from symattn.readings.units import Unit, fits
from symattn.verify.replay.plan import chain_of
from symattn.verify.tolerance.parts import Reach, Share, leaves_of

__all__ = ["Shares"]


class Shares:
    """The rules of one declaration.

    Parameters
    ----------
    program, arithmetic
        What is computed, and how.
    keys
        How many terms the row with this maximum has.
    lag
        How far a kernel's maximum of this name may be from the exact one.
    top
        The greatest magnitude of the maximum of this name.
    """

    def __init__(
        self,
        program: Program,
        arithmetic: Arithmetic,
        keys: Callable[[str], int],
        lag: Callable[[str], float],
        top: Callable[[str], float],
    ) -> None:
        self.program, self.a, self.keys, self.lag, self.top = program, arithmetic, keys, lag, top

    def unit(self, format: str) -> Unit:
        """The rounding of a format, as the declaration has it."""
        return Unit.of(format, self.a.flush_to_zero)

    def rescalings(self, gauge: str | None) -> int:
        """How often what is relative to a maximum may be multiplied by a correction of it."""
        if gauge is None:
            return 0
        chain = chain_of(self.program, gauge) or ()
        return self.a.tiles(self.keys(gauge)) - 1 + len(chain) - 1 + (merging.AGAIN if self.a.merged else 0)

    def parts(self, gauge: str, span: float) -> float:
        """What an exponent of a size may be off by more, where parts of the keys are put together."""
        if not self.a.merged:
            return 0.0
        return float(merging.of_exponent(self.a, _array(span), _array(self.top(gauge)), self.keys(gauge)))

    def exponential(self, name: str, exponent: float, again: int) -> Share:
        """The exponential of an exponent that is off by so much, and is corrected so often."""
        u, error = self.unit(self.a.compute), self.a.function_errors("exp")
        rel = math.expm1(exponent) if exponent < 700 else math.inf
        rel = (1 + rel) * (1 + error) ** again - 1
        fall = 1 - math.exp(-exponent) * max(1 - error, 0.0) ** again
        return Share(name, None, 1.0, rel * UP, again * u.tiny, min(fall * UP, 1.0), False, False)

    def number(self, e: sp.Expr) -> Reach:
        """A number: an integer is exact, any other is computed in two roundings."""
        size = abs(float(e))
        return Reach(size, 0.0 if e.is_Integer else 2 * self.unit(self.a.compute).u * size)

    def operand(self, r: Reach, given: bool) -> Reach:
        """Another tensor as a matrix product reads it; an intermediate one may be cast as weights are or as dS is."""
        for target in (self.a.operand,) if given else (self.a.probability, self.a.gradient):
            if target is not None:
                unit = Unit.of(target, ulps=self.a.ulps("operand") if given else 1)
                more = unit.u * (r.size + r.error) + unit.tiny if r.size <= unit.top else math.inf
                r = Reach(r.size, r.error + more)
        return r

    def cast(self, x: Share) -> Share:
        """Weights, or what they were multiplied to (dS), as a matrix product reads them."""
        a = self.a
        target = a.gradient if x.signed else a.probability
        if target is None:
            return x
        if x.signed:
            unit, scale, also = Unit.of(target), a.gradient_scale, 0.0
        else:
            unit, scale = Unit.of(target, ulps=a.ulps("probability")), a.probability_scale
            also = 0.0 if abs(math.frexp(scale)[0]) == 0.5 else 3 * self.unit(a.compute).u
        most = x.factor * (1 + x.rel) * math.exp(min(self.lag(x.gauge), 700.0) if x.gauge else 0.0)
        if not most * scale <= unit.top:
            return replace(x, rel=math.inf)
        rel = (1 + x.rel) * (1 + unit.u) * (1 + also) - 1
        fall = 1 - (1 - x.fall) * (1 - unit.u) * (1 - also)
        return replace(x, rel=rel * UP, fall=min(fall * UP, 1.0), tiny=(x.tiny * (1 + unit.u) + unit.tiny / scale) * UP)

    def added(self, shares: Sequence[Any], count: int) -> Share | None:
        """Sums of weights, added."""
        if len(shares) != count or not all(isinstance(x, Share) and x.tight for x in shares):
            return None
        u = self.unit(self.a.compute)
        rel = (1 + max(x.rel for x in shares)) * (1 + u.u) ** (count - 1) - 1
        fall = min((1 - (1 - max(x.fall for x in shares)) * (1 - u.u) ** (count - 1)) * UP, 1.0)
        tiny = sum(x.tiny for x in shares) * (1 + rel) + u.tiny
        return replace(
            shares[0],
            base=None,
            factor=1.0,
            rel=rel * UP,
            tiny=tiny * UP,
            fall=fall,
            summed=True,
            covers=frozenset().union(*(x.covers | ({x.base} if x.base else set()) for x in shares)),
            leaves=frozenset().union(*(x.leaves for x in shares)),
            most=sum(x.most for x in shares),
        )

    def quotient(self, top: Share, below: Share) -> Share | None:
        """``N / l`` with a sum l of weights of which N's are some: the kernel's maximum cancels."""
        if below.gauge != top.gauge or top.gauge is None or not below.tight or top.base not in below.covers:
            return None
        if below.leaves != leaves_of(self.program, top.gauge):
            return None
        u, shift = self.unit(self.a.compute), math.exp(min(self.lag(top.gauge), 700.0))
        rise, fall = below.rel + below.tiny * shift, below.fall + below.tiny * shift
        if not fall < 1:
            return None
        rel = top.rel / (1 - fall) + max(fall / (1 - fall), rise)
        rel = (1 + rel) * (1 + u.u) ** 2 - 1
        if self.a.merged:
            rel = (1 + rel) * (1 + float(merging.of_average(self.a, _array(self.top(top.gauge)), self.keys(top.gauge)))) - 1
        tiny = top.tiny * shift / (1 - fall) * (1 + 3 * u.u) + 2 * u.tiny
        mean = replace(top, gauge=None, rel=rel * UP, tiny=tiny * UP, fall=1.0, tight=False)
        return replace(mean, covers=frozenset(), leaves=frozenset(), most=1.0)

    def stored(self, x: Share, s: Statement, read_rounded: bool) -> Share | Reach:
        """The result rounded to the format that holds it; a weighted mean is a tensor like any other."""
        a = self.a
        target = a.output if s.name in self.program.outputs or (x.gauge is None and x.summed and not s.over) else None
        target = target or (a.aux if s.aux else a.store)
        held = a.accumulate if s.over else a.compute
        if not fits(held, target):
            unit = Unit.of(target)
            fall = min((1 - (1 - x.fall) * (1 - unit.u)) * UP, 1.0)
            x = replace(x, rel=((1 + x.rel) * (1 + unit.u) - 1) * UP, fall=fall, tiny=(x.tiny * (1 + unit.u) + unit.tiny) * UP)
            if not x.factor * (1 + x.rel) <= unit.top:
                x = replace(x, rel=math.inf)
        if read_rounded:
            x = self.cast(x)
        return reach_of(x) if x.gauge is None and x.summed else x


def reach_of(x: Share) -> Reach:
    """Of a share whose weights are normalised, or of their mean."""
    return Reach(x.factor, x.rel * x.factor + x.tiny)


def _array(x: float) -> Array:
    return np.asarray(x, dtype=np.float64)
