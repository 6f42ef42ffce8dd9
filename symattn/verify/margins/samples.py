"""The errors of a run beside what chance makes of them, and regressions on a direction with errors clustered by row."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from symattn import formats
from symattn.errors import SymattnError
from symattn.intake import Array
from symattn.readings.rounding import Evaluation
from symattn.readings.slopes.estimates import estimates
from symattn.verify.margins.asked import Asked, asked
from symattn.verify.observed import Observed

__all__ = ["Fit", "Sample", "fit", "samples"]

CLEAR = 8.0
"""The error of the float64 value is at most this part of what is expected of the kernel; other elements are left out."""
SPREAD = 12.0
"""Fewer rows of equal weight than so many prove nothing."""


@dataclass(frozen=True)
class Sample:
    """One tensor of one case, by rows: arrays (rows, elements of a row).

    Parameters
    ----------
    case, tensor
        Which.
    error
        Kernel minus float64 value; 0 where an element is left out.
    rms
        The root mean square that is expected of it; infinite where an element is left out.
    chance
        What it hardly exceeds in any element.
    """

    case: str
    tensor: str
    error: Array
    rms: Array
    chance: Array

    def rows(self, x: Array) -> Array:
        """An array of the tensor's shape by rows."""
        return _by_row(x, self.tensor)


@dataclass(frozen=True)
class Fit:
    """``error = amplitude * direction + noise``, fitted by weighted least squares over rows; ``t`` is the amplitude over its
    standard error, in which the errors of a row may depend on each other as they like.
    """

    amplitude: float
    t: float


def samples(o: Observed) -> list[Sample]:
    """The tensors of a case of which something can be expected."""
    found: list[Sample] = []
    for q in asked(o):
        try:
            found += _of_list(o, q)
        except SymattnError:  # a list that slopes are not known for
            continue
    return found


def _of_list(o: Observed, q: Asked) -> list[Sample]:
    a = o.situation.arithmetic
    names = {f: n for f, n in q.names.items() if f in o.base and formats.get(o.tensors[f].dtype).precision < 53}
    if not names:
        return []
    evaluation = Evaluation(q.program, q.inputs, a, sizes=q.sizes)
    known = estimates(evaluation, names.values(), q.sizes)
    found = []
    for f, n in names.items():
        value, own = o.base[f].value, q.back(n, evaluation.boxes[n].own)
        with np.errstate(all="ignore"):
            error, rms = o.tensors[f].astype(np.float64) - value, q.back(n, known[n].rms)
            usable = np.isfinite(error) & np.isfinite(rms) & (rms > 0) & (CLEAR * own <= rms)
        if usable.any():
            parts = (np.where(usable, error, 0.0), np.where(usable, rms, np.inf), q.back(n, known[n].chance()))
            found.append(Sample(o.case, f, *(_by_row(x, f) for x in parts)))
    return found


def _by_row(x: Array, tensor: str) -> Array:
    """Rows of a tensor; of the log-sum-exp each number is one."""
    return np.reshape(x, (-1, 1)) if tensor == "lse" or x.ndim < 2 else np.reshape(x, (-1, x.shape[-1]))


def fit(pairs: Iterable[tuple[Sample, Array]]) -> Fit | None:
    """The amplitude of a direction in some samples; None where too few rows would show it.

    Parameters
    ----------
    pairs
        Samples, each with the direction on it, by rows.
    """
    cross, weight = _sums(list(pairs))
    if not weight.any():
        return None
    cap = float(np.quantile(weight[weight > 0], 0.9))  # no row decides alone
    share = np.minimum(1.0, cap / np.where(weight > 0, weight, 1.0))
    cross, weight = cross * share, weight * share
    total = float(weight.sum())
    if total**2 < SPREAD * float((weight**2).sum()):
        return None
    amplitude = float(cross.sum()) / total
    left = cross - amplitude * weight
    count = int((weight > 0).sum())
    error = math.sqrt(float((left**2).sum()) * count / (count - 1)) / total
    return Fit(amplitude, amplitude / error if error > 0 else math.copysign(math.inf, amplitude) if amplitude else 0.0)


def _sums(pairs: Sequence[tuple[Sample, Array]]) -> tuple[Array, Array]:
    """By row: the direction times the error, and times itself, in units of what is expected."""
    cross, weight = [np.zeros(0)], [np.zeros(0)]
    for s, direction in pairs:
        with np.errstate(all="ignore"):
            scaled = np.where(np.isfinite(s.rms) & np.isfinite(direction), direction / s.rms, 0.0)
            cross.append((scaled * (s.error / s.rms)).sum(axis=1))
            weight.append((scaled**2).sum(axis=1))
    return np.concatenate(cross), np.concatenate(weight)
