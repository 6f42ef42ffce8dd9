"""Whether a hypothesis explains what a kernel returned: every element of every tensor, within the declared bound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from symattn import formats
from symattn.errors import SymattnError
from symattn.intake import Array
from symattn.verify.faults.fault import SAME, Alternative, Fault, Prediction, Predictions, Situation
from symattn.verify.faults.predict import predictions
from symattn.verify.observed import Observed

BETTER_THAN_CHANCE = 0.5
"""What is left of the deviation of the wrong elements has to be less than this share of it."""

ENOUGH = 0.1
"""The share of the elements that should tell something that has to."""
FAR = 16
"""Bounds that an element is off by from which on it should tell something: below, a reach a little wider covers it."""


@dataclass(frozen=True)
class Told:
    """Of how many elements that should how many tell something of a prediction, and the sum of the shares of deviations left.

    >>> Told(4, 3, 0.5) + Told(1, 1, 1.0)
    Told(asked=5, count=4, rest=1.5)
    """

    asked: int
    count: int
    rest: float

    def __add__(self, other: Told) -> Told:
        return Told(self.asked + other.asked, self.count + other.count, self.rest + other.rest)

    @property
    def convincing(self) -> bool:
        """Whether enough of them tell something, and little is left."""
        return self.count >= ENOUGH * self.asked and self.rest <= BETTER_THAN_CHANCE * self.count


@dataclass(frozen=True)
class Hypothesis:
    """A fault, in one of the ways that it can be meant, or None for what the definition says."""

    fault: Fault | None
    label: str = ""

    def on(self, situation: Situation) -> Alternative:
        """What it means on an input; what the definition says where the fault, meant so, makes no difference there."""
        if self.fault is None:
            return SAME
        found = {a.label: a for a in _alternatives(self.fault, situation)}
        return found.get(self.label, SAME)


def _alternatives(fault: Fault, situation: Situation) -> tuple[Alternative, ...]:
    key = ("alternatives", fault.line)  # a fitted one has a title of its own
    if key not in situation.kept:
        situation.kept[key] = tuple(fault.alternatives(situation))
    found: tuple[Alternative, ...] = situation.kept[key]
    return found


def hypotheses(faults: Iterable[Fault], situation: Situation) -> list[Hypothesis]:
    """Everything that some faults can mean on an input."""
    return [Hypothesis(f, a.label) for f in faults for a in _alternatives(f, situation)]


def explained(kernel: Array, p: Prediction) -> Array:
    """Which elements a prediction explains: within its reach, or the same infinity or NaN."""
    k, value, reach = kernel.astype(np.float64), p.value, np.where(np.isnan(p.reach), np.inf, p.reach)
    top = float(formats.get(kernel.dtype).max)
    with np.errstate(all="ignore"):
        near = np.abs(k - value) <= reach
        beyond = np.isinf(k) & np.isfinite(value) & (np.sign(k) == np.sign(value)) & (np.abs(value) + reach >= top)
    return near | (k == value) | (np.isnan(k) & np.isnan(value)) | (beyond & np.isfinite(reach)) | np.isinf(reach)


def wrong(kernel: Array, base: Prediction) -> Array:
    """Which elements the definition does not explain."""
    return ~explained(kernel, base)


def silent(kernel: Array, p: Prediction) -> Array:
    """Where a kernel returns a number, and a prediction is none or reaches to infinity, and is no such number either."""
    return np.isfinite(kernel.astype(np.float64)) & ~(np.isfinite(p.value) & np.isfinite(p.reach)) & (kernel != p.value)


def left(kernel: Array, base: Prediction, p: Prediction) -> Told:
    """What the wrong elements of a tensor tell of a prediction.

    An element tells nothing where the prediction reaches further than the deviation itself and than twice the definition's bound.
    Where it is no number, or reaches to infinity, and the kernel returns a number, it leaves the whole deviation; so it does
    where that number is right.
    """
    unsaid = silent(kernel, p)
    bad = wrong(kernel, base) | (unsaid & np.isfinite(base.reach))
    if not bad.any():
        return Told(0, 0, 0.0)
    k, b, value, reach = kernel.astype(np.float64)[bad], base.value[bad], p.value[bad], p.reach[bad]
    with np.errstate(all="ignore"):
        before, after = np.abs(k - b), np.abs(k - value)
        same = (np.isnan(k) & np.isnan(value)) | (k == value)
        ratio = np.where(same, 0.0, np.where(np.isfinite(before), after / before, np.where(np.isfinite(after), 0.0, 1.0)))
        far = before > FAR * base.reach[bad]
        tells = same | unsaid[bad] | (reach < np.maximum(before, 2 * base.reach[bad]))
    ratio = np.minimum(np.where(np.isnan(ratio) | unsaid[bad], 1.0, ratio), 1.0)
    return Told(int((tells | far).sum()), int(tells.sum()), float(ratio[tells].sum()))


def misses(tensors: Mapping[str, Array], found: Predictions) -> int:
    """How many elements are left unexplained; tensors that were not predicted count whole."""
    return sum(
        int((~explained(a, found[n])).sum()) if n in found and found[n].value.shape == a.shape else a.size
        for n, a in tensors.items()
    )


def predicted(o: Observed, a: Alternative, gradient: bool, *, sharp: bool = False) -> Predictions | None:
    """What an alternative predicts for a case; None where it makes no sense there."""
    try:
        return predictions(o.situation, a, forward=not gradient, backward=gradient, sharp=sharp)
    except (SymattnError, ZeroDivisionError, OverflowError):
        return None


Evidence = dict[str, Told]
"""By tensor: what its wrong elements tell."""


def explains(o: Observed, a: Alternative, gradient: bool) -> Evidence | None:
    """What speaks for an alternative that explains all outputs (all gradients) of a case; None where it does not."""
    tensors = o.part(gradient)
    found = predicted(o, a, gradient)
    if found is None or misses(tensors, found):
        return None
    found = predicted(o, a, gradient, sharp=True) or found
    if misses(tensors, found):
        return None
    return {n: left(x, o.base[n], found[n]) for n, x in tensors.items() if n in o.base}


def convincing(evidence: Iterable[Evidence]) -> bool:
    """Whether what explains every case does so better than by being vague: for each tensor that was wrong, over all cases."""
    total: dict[str, Told] = {}
    for e in evidence:
        for name, told in e.items():
            total[name] = total[name] + told if name in total else told
    counted = [told for told in total.values() if told.asked]
    return bool(counted) and all(told.convincing for told in counted)
