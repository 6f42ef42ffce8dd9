"""One parameter fitted: the factor of the scores under which the outputs of a kernel come nearest to what the definition says."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import sympy as sp

from symattn.errors import SymattnError
from symattn.intake import Array
from symattn.verify.faults.fault import Alternative, Fault, Predictions, Situation
from symattn.verify.faults.predict import predictions
from symattn.verify.faults.scaling import rescaled, scale_of
from symattn.verify.observed import Observed

__all__ = ["Fit", "fitted_fault", "fitted_scale"]

STEPS = 8
"""Steps of the fit."""
STEP = 1e-4
"""Relative step of the difference that stands for the derivative."""
GRID = tuple(2.0 ** (k / 2) for k in range(-12, 13))
"""Where the fit starts when it finds nothing from 1 on."""
CONSTANTS: dict[str, sp.Expr] = {
    "2": sp.Integer(2), "1/2": sp.Rational(1, 2), "sqrt(2)": sp.sqrt(2), "1/sqrt(2)": 1 / sp.sqrt(2), "ln 2": sp.log(2),
    "log2(e)": 1 / sp.log(2), "4": sp.Integer(4), "1/4": sp.Rational(1, 4),
}  # fmt: skip
"""Factors that have a name."""


@dataclass(frozen=True)
class Fit:
    """A factor of the scores: the best one, its standard error, and the interval that the bounds of all elements leave.

    >>> Fit(1.0098, 1e-3, 1.0081, 1.0113).constant
    ('1.01', 101/100)
    """

    factor: float
    error: float
    low: float
    high: float

    @property
    def constant(self) -> tuple[str, sp.Expr] | None:
        """The named constant in the interval, else the shortest decimal in it; None where it is empty or 1 is in it."""
        if not self.low <= self.high or self.low <= 1 <= self.high:
            return None
        for label, c in CONSTANTS.items():
            if self.low <= float(c) <= self.high:
                return label, c
        for digits in range(1, 10):
            text = f"{self.factor:.{digits}g}"
            if self.low <= float(text) <= self.high:
                return text, sp.Rational(text)
        return None


def fitted_scale(o: Observed) -> Fit | None:
    """The factor of the scores that fits the outputs of a case; None where none does or the definition has no scale."""
    if not o.part(False) or next(iter(_alternatives(o.situation, 2.0)), None) is None:
        return None
    with np.errstate(all="ignore"):
        found = _descent(o, 1.0)
        if found is not None and found.low <= found.high:
            return found
        starts = [(_cost(o, f), f) for f in GRID]
        cost, start = min(starts)
        return _descent(o, start) if math.isfinite(cost) and start != 1 else found


def fitted_fault(row: Fault, o: Observed) -> Fault | None:
    """The row of the catalogue on a fitted factor, as a fault with that factor; None where no factor but 1 fits."""
    fit = fitted_scale(o)
    constant = None if fit is None else fit.constant
    if constant is None:
        return None
    label, factor = constant
    return replace(
        row,
        title=f"scores times {label} (fitted)",
        wrong=f"{label}*scale*q.k",
        rewrite=lambda s: rescaled(s, scale_of(s) * factor),
    )


def _alternatives(s: Situation, factor: float) -> Iterator[Alternative]:
    yield from rescaled(s, scale_of(s) * sp.Float(factor, 20))


def _at(o: Observed, factor: float) -> Predictions | None:
    a = next(iter(_alternatives(o.situation, factor)), None)
    try:
        return predictions(o.situation, a, forward=True) if a is not None else predictions(o.situation, forward=True)
    except (SymattnError, ZeroDivisionError, OverflowError):
        return None


def _columns(o: Observed, p: Predictions) -> tuple[Array, Array, Array]:
    """What the kernel returned, what is predicted, and how far it may be off, of all outputs in one."""
    names = [n for n in o.part(False) if n in p and p[n].value.shape == o.judged[n].shape]
    if not names:
        return np.zeros(0), np.zeros(0), np.zeros(0)
    kernel = np.concatenate([o.judged[n].astype(np.float64).ravel() for n in names])
    value = np.concatenate([p[n].value.ravel() for n in names])
    reach = np.concatenate([p[n].reach.ravel() for n in names])
    return kernel, value, reach


def _cost(o: Observed, factor: float) -> float:
    p = _at(o, factor)
    if p is None:
        return math.inf
    kernel, value, _ = _columns(o, p)
    off = (kernel - value)[np.isfinite(kernel) & np.isfinite(value)]
    return float(np.mean(np.abs(off))) if off.size else math.inf


def _descent(o: Observed, factor: float) -> Fit | None:
    """Least squares, each element weighed by its bound, from a start on; the interval is that of the last step."""
    for _ in range(STEPS):
        here, there = _at(o, factor), _at(o, factor * (1 + STEP))
        if here is None or there is None:
            return None
        kernel, value, reach = _columns(o, here)
        slope = (_columns(o, there)[1] - value) / (factor * STEP)
        use = np.isfinite(kernel) & np.isfinite(value) & np.isfinite(slope) & (reach > 0) & np.isfinite(reach)
        if use.sum() < 3 or not (np.abs(slope[use]) > 0).any():
            return None
        off, slope, reach = (kernel - value)[use], slope[use], reach[use]
        weight = 1 / reach**2
        size = float(np.sum(weight * slope**2))
        step = float(np.sum(weight * slope * off)) / size
        moves = np.abs(slope) * factor > 0.01 * reach
        middle, room = off[moves] / slope[moves], reach[moves] / np.abs(slope[moves])
        low, high = (float((middle - room).max()), float((middle + room).min())) if moves.any() else (-math.inf, math.inf)
        rest = float(np.sum(weight * (off - step * slope) ** 2)) / max(1, off.size - 1)
        found = Fit(factor + step, math.sqrt(rest / size), factor + low, factor + high)
        if abs(step) <= 1e-2 * (1e-4 * factor + found.error) or not math.isfinite(step):
            return found if math.isfinite(step) else None
        factor = min(max(factor + step, factor / 2), factor * 2)
    return found
