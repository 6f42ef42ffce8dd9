"""Verdicts on a problem: the public bounds, intervals and float64 values, found once per declaration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks.rounding.laws import HEADS, Problem, grouped
from symattn.arithmetic import Arithmetic, uniform
from symattn.definition import Definition
from symattn.program import Program
from symattn.readings import slopes
from symattn.verify import programs
from symattn.verify.replay.bounds import Interval, Replay

CLOSE = 1 - 2.0**-48
"""What the differences that are formed here in float64 may lose."""
GRADIENTS = ("dQ", "dK", "dV")


@dataclass(frozen=True)
class Share:
    """A tensor against its bound.

    Parameters
    ----------
    outside
        Elements that are out of bounds whatever the error of the float64 value is.
    share
        The greatest error as a share of its element's bound.
    error, bound
        The greatest error and the greatest bound.
    total, unbounded
        Elements, and those without a finite bound.
    """

    outside: int
    share: float
    error: float
    bound: float
    total: int
    unbounded: int

    @property
    def ratio(self) -> float:
        """Greatest bound over greatest error; NaN where the kernel is exact."""
        return self.bound / self.error if self.error else float("nan")


class Judge:
    """What a problem's outputs are judged by; everything is found once per declaration."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._bounds: dict[Any, Mapping[str, slopes.Bounded]] = {}
        self._replays: dict[Any, Interval] = {}

    def bounds(self, how: Arithmetic, fields: Mapping[str, Any] | None = None) -> Mapping[str, slopes.Bounded]:
        """The bounds of O and L."""
        how = replace(how, order=None, shift=None)
        more = tuple((fields or {}).items())
        key = how, more
        if key not in self._bounds:
            program = listed((*self.problem.fields().items(), *more), how.algorithm, False)
            self._bounds[key] = slopes.bounds(program, self._given(program), how, ("O", "L"))
        return self._bounds[key]

    def interval(self, how: Arithmetic) -> Interval | None:
        """What a replay allows for O; None where P is not rounded."""
        if how.probability is None:
            return None
        if how not in self._replays:
            program = listed(tuple(self.problem.fields().items()), how.algorithm, False)
            self._replays[how] = Replay(program, self._given(program), how).intervals()["O"]
        return self._replays[how]

    def gradients(self, how: Arithmetic, out: Any, lse: Any) -> Mapping[str, slopes.Bounded]:
        """The bounds of gradients that start from a kernel's own O and LSE."""
        whole = listed(tuple(self.problem.fields().items()), how.algorithm, True)
        part = programs.staged(whole, ("O", "L"))
        given = self._given(part) | {"O": grouped(out), "L": grouped(lse)}
        return slopes.bounds(part, {n: given[n] for n in part.inputs}, how, GRADIENTS)

    def end_to_end(self, how: Arithmetic) -> Mapping[str, slopes.Bounded]:
        """The bounds of gradients that start from exact O and LSE."""
        whole = listed(tuple(self.problem.fields().items()), how.algorithm, True)
        return slopes.bounds(whole, self._given(whole), how, GRADIENTS)

    def _given(self, program: Program) -> dict[str, Any]:
        zero = np.zeros((2, HEADS // 2, self.problem.rows), np.float32)
        return {n: zero for n in program.inputs if n == "dL"} | self.problem.given(*(n for n in program.inputs if n in INPUTS))


INPUTS = frozenset({"Q", "K", "V", "dO"})


@lru_cache(maxsize=512)
def listed(fields: tuple[tuple[str, Any], ...], algorithm: Any, gradient: bool) -> Program:
    """The list of a definition that kernels of an algorithm follow."""
    how = uniform("list", "float32", algorithm=algorithm)
    return programs.followed(Definition(**dict(fields)).program(), how, gradient=gradient)


def share(kernel: Any, bounded: slopes.Bounded) -> Share:
    """A kernel's tensor, in its own axes or the program's, against its bound."""
    k = np.asarray(kernel, np.float64).reshape(bounded.value.shape)
    finite = np.isfinite(bounded.value)
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.where(finite, np.abs(k - bounded.value), np.where(k == bounded.value, 0.0, np.inf))
        error = np.where(np.isnan(error), np.inf, error)
        outside = error * CLOSE > np.where(finite, bounded.bound + bounded.own, 0.0)
        shares = np.where(error > 0, error / bounded.bound, 0.0)
    bounds = bounded.bound[finite]
    return Share(
        int(outside.sum()),
        float(shares.max()),
        float(error[finite].max(initial=0.0)),
        float(bounds.max(initial=0.0)),
        k.size,
        int((~np.isfinite(bounds)).sum()),
    )


def misses(kernel: Any, interval: Interval) -> int:
    """Elements that no kernel of the declaration gives."""
    k = np.asarray(kernel, np.float64).reshape(interval.value.shape)
    return int((~interval.inside(k)).sum())
