"""The power of a run: the smallest error of the scale, gain, and weight of a lost key that its bounds would have shown.

Shown means that no conforming kernel is both: the tensor of a kernel with the fault and that of a right one differ somewhere by
more than the bounds of the two together. For a gain that is a formula; the others are found from derivatives of the outputs, and
confirmed by evaluating the definition with the fault and its own bounds, so that the figures hold rigorously. They are of the
inputs of the run, and of the one on which each shows best.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symattn.errors import SymattnError
from symattn.intake import Array
from symattn.verify.faults.fault import Alternative, Prediction
from symattn.verify.faults.predict import predictions
from symattn.verify.guard import separation
from symattn.verify.margins.directions import by_scale, lost, scaled, weights
from symattn.verify.observed import Observed
from symattn.verify.report import DISPLAY, short

__all__ = ["Power", "Shown", "gain", "power"]

LARGEST = 0.5
"""Errors of the scale beyond it are not small, and are in the catalogue of faults."""
WORK = 400_000
"""A fault is confirmed on inputs up to this size (pairs of queries and keys times width), and so looked for on no others."""
TRIED = 4
"""As many keys, of the smallest weights that should show, are tried."""


@dataclass(frozen=True)
class Shown:
    """The smallest size of a fault that would have shown, and the input and tensor that would have shown it."""

    size: float
    case: str
    tensor: str

    def to_dict(self) -> dict[str, str]:
        """The entry of the JSON document; numbers are text."""
        return {"size": f"{self.size:.3g}", "case": self.case, "tensor": self.tensor}


@dataclass(frozen=True)
class Power:
    """What a run would have shown.

    Parameters
    ----------
    scale, gain
        By field name of a tensor: the smallest relative error of the scale, and the smallest gain (the tensor times 1 + g).
    key
        The smallest weight of a key that one query loses; None where no key was found whose loss would have shown, or where the
        definition is no softmax.
    """

    scale: Mapping[str, Shown]
    gain: Mapping[str, Shown]
    key: Shown | None

    @property
    def line(self) -> str:
        """In a line: ``this run would have shown: scale off by 2.1e-4 in LSE; a lost key of weight 5e-4``; "" where nothing."""
        said = []
        if self.scale:
            best = min(self.scale.values(), key=lambda x: x.size)
            said.append(f"scale off by {short(best.size)} in {DISPLAY.get(best.tensor, best.tensor)}")
        gains = {k: x for k, x in self.gain.items() if k != "lse"}
        if gains:
            each = {short(x.size): [DISPLAY.get(k, k) for k, y in gains.items() if y.size == x.size] for x in gains.values()}
            said.append("gain of " + ", ".join(f"{size} in {' '.join(names)}" for size, names in each.items()))
        if self.key is not None:
            said.append(f"a lost key of weight {short(self.key.size)}")
        return f"this run would have shown: {'; '.join(said)}" if said else ""

    def to_dict(self) -> dict[str, Any]:
        """The entry of the JSON document."""
        return {
            "scale": {k: x.to_dict() for k, x in self.scale.items()},
            "gain": {k: x.to_dict() for k, x in self.gain.items()},
            "lost_key": None if self.key is None else self.key.to_dict(),
        }


def power(seen: Sequence[Observed]) -> Power:
    """What a run would have shown; see the module.

    Parameters
    ----------
    seen
        The inputs of the run, with the tensors that were judged on each.
    """
    return Power(_scales(seen), _gains(seen), _key([o for o in seen if o.work <= WORK]))


def _gains(seen: Sequence[Observed]) -> dict[str, Shown]:
    best: dict[str, Shown] = {}
    for o in seen:
        for name in o.judged:
            size = gain(o.base[name]) if name in o.base else math.inf
            if size < (best[name].size if name in best else math.inf):
                best[name] = Shown(size, o.case, name)
    return {k: Shown(_up(x.size), x.case, x.tensor) for k, x in best.items()}


def gain(p: Prediction) -> float:
    """The smallest g for which a conforming tensor times 1 + g is not one itself: ``g (|v| - r) > 2 r`` somewhere.

    >>> gain(Prediction(np.array([1.0, 3.0]), np.array([0.5, 0.5])))
    0.4
    """
    with np.errstate(all="ignore"):
        room = np.abs(p.value) - p.reach
        sizes = np.where(room > 0, 2 * p.reach / room, np.inf)
    return float(np.min(np.where(np.isfinite(p.value) & ~np.isnan(sizes), sizes, np.inf), initial=math.inf))


def _scales(seen: Sequence[Observed]) -> dict[str, Shown]:
    """By tensor: found from the derivative, confirmed at the value itself."""
    best: dict[str, tuple[float, Observed]] = {}
    for o in (o for o in seen if o.work <= WORK):
        for name, slope in by_scale(o).items():
            size = _least(slope, o.base[name])
            if size < (best[name][0] if name in best else LARGEST):
                best[name] = size, o
    found = {}
    for name, (size, o) in best.items():
        confirmed = next((e for e in _upward(size) if _shows(o, scaled(o.situation, e), (name,))), None)
        if confirmed is not None:
            found[name] = Shown(confirmed, o.case, name)
    return found


def _least(slope: Array, p: Prediction) -> float:
    """The smallest step along a derivative that leaves the bounds of both ends somewhere."""
    with np.errstate(all="ignore"):
        sizes = 2 * p.reach / np.abs(slope)
    there = np.isfinite(p.value) & np.isfinite(slope) & (slope != 0) & np.isfinite(sizes)
    return float(np.min(np.where(there, sizes, np.inf), initial=math.inf))


def _upward(size: float) -> Iterator[float]:
    """Sizes to try, two digits each, from one up."""
    for factor in (1.01, 1.2, 1.6, 2.5):
        if size * factor <= LARGEST:
            yield _up(size * factor)


def _shows(o: Observed, a: Alternative | None, names: Sequence[str]) -> bool:
    """Whether the bounds of a right kernel and of one with a fault exclude each other in one of some tensors."""
    if a is None:
        return False
    gradient = names[0].startswith("grad_")
    try:
        other = predictions(o.situation, a, forward=not gradient, backward=gradient, sharp=True)
    except SymattnError:
        return False
    return any(separation(o.base[n], other[n]) > 1 for n in names if n in o.base and n in other)


def _key(seen: Sequence[Observed]) -> Shown | None:
    """The smallest weight of a key whose loss in one row would have shown, over all rows and keys of all inputs."""
    found = sorted((c for o in seen for c in _candidates(o)), key=lambda c: c[0])
    return next((Shown(_up(p), o.case, name) for p, o, name, at in found[:TRIED] if _shows(o, lost(*at), (name,))), None)


def _candidates(o: Observed) -> Iterator[tuple[float, Observed, str, tuple[int, int]]]:
    """Keys that should show on one input by the formula of the softmax: L + log(1 - p) and (O - p V)/(1 - p)."""
    judged = [n for n in ("lse", "out") if n in o.part(False) and n in o.base]
    p = weights(o.situation) if judged else None
    if p is None:
        return
    with np.errstate(all="ignore"):
        for name in judged:
            shift = _lse_moves(p) if name == "lse" else _out_moves(o, p)
            if shift is None:
                continue
            reach = o.base[name].reach[..., None] if name == "lse" else o.base[name].reach[..., None, :]
            ratio = np.abs(shift) / (2 * reach)
            ratio = ratio if name == "lse" else ratio.max(axis=-1)
            shows = (ratio > 1.05) & (p > 0) & (p < 0.5)
            for at in sorted(np.argwhere(shows).tolist(), key=lambda at: float(p[tuple(at)]))[:2]:
                yield float(p[tuple(at)]), o, name, (at[2], at[3])


def _lse_moves(p: Array) -> Array:
    return np.log1p(-p)


def _out_moves(o: Observed, p: Array) -> Array | None:
    """By how much each element of O moves with each key: (B, H, n, m, dv); None where that is too much or no such thing."""
    value = o.situation.fields.get("value")
    out = o.base["out"].value
    if value is None or value.shape[3] != out.shape[3] or p.size * out.shape[3] > 4 * WORK:
        return None
    v = value.astype(np.float64)[:, o.situation.reference.call.kv_head]
    moves: Array = (p / (1 - p))[..., None] * (out[:, :, :, None, :] - v[:, :, None, :, :])
    return moves


def _up(x: float) -> float:
    """Rounded up to two digits.

    >>> _up(0.001234), _up(0.5)
    (0.0013, 0.5)
    """
    if not 0 < x < math.inf:
        return x
    step = 10.0 ** (math.floor(math.log10(x)) - 1)
    return float(f"{math.ceil(x / step - 1e-9) * step:.1e}")
