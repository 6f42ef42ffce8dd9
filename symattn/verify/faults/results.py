"""What happens to results after they were computed: factors, parts that stay 0; and rewritings under labels."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from symattn import formats
from symattn.intake import Array
from symattn.verify.faults.fault import After, Alternative, Prediction, Predictions, Situation

Rewrite = Callable[[Situation], Iterator[Alternative]]
ROUNDINGS = 8
"""Unit roundoffs that the LSE of a row without keys may be off by."""


def times(p: Prediction, f: float) -> Prediction:
    """A prediction multiplied by a number."""
    with np.errstate(invalid="ignore"):  # 0 times infinity: no number, which explains what is none
        return Prediction(p.value * f, p.reach * abs(f))


def zero(p: Prediction) -> Prediction:
    """A tensor of zeros."""
    return Prediction(np.zeros_like(p.value), np.zeros_like(p.reach))


def multiplied(names: Collection[str], f: float) -> After:
    """Some tensors multiplied by a number."""
    return lambda _, p: {n: times(x, f) if n in names else x for n, x in p.items()}


def zeroed(names: Collection[str], at: tuple[Any, ...]) -> After:
    """A part of some tensors, an index of NumPy, stays 0."""

    def after(_: Situation, p: Predictions) -> Predictions:
        found = dict(p)
        for name in names:
            if name in p:
                value, reach = p[name].value.copy(), p[name].reach.copy()
                value[at], reach[at] = 0.0, 0.0
                found[name] = Prediction(value, reach)
        return found

    return after


def in_empty_rows(lse: Callable[[Situation], Array]) -> After:
    """Rows without keys have another LSE, broadcastable to (B, H, n), and the output 0; other rows are as they are."""

    def after(s: Situation, p: Predictions) -> Predictions:
        call = s.reference.call
        if not {"query", "key"} <= set(call.sources):  # no pairs are given to be without
            return p
        found, empty = dict(p), ~call.keep.any(-1)
        if not empty.any():
            return p
        if "lse" in p and p["lse"].value.shape == empty.shape:
            level = np.broadcast_to(lse(s), empty.shape)
            unit = ROUNDINGS * float(formats.get(s.arithmetic.lse).unit_roundoff)
            room = unit * (1 + np.abs(level))
            found["lse"] = Prediction(np.where(empty, level, p["lse"].value), np.where(empty, room, p["lse"].reach))
        if "out" in p and p["out"].value.shape[:3] == empty.shape:
            at = np.asarray(empty)[..., None]
            found["out"] = Prediction(np.where(at, 0.0, p["out"].value), np.where(at, 0.0, p["out"].reach))
        return found

    return after


def labelled(*parts: tuple[str, Rewrite]) -> Rewrite:
    """Several rewritings, each under a label."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        for label, part in parts:
            yield from under(label, part(s))

    return rewrite


def under(label: str, found: Iterator[Alternative]) -> Iterator[Alternative]:
    """Alternatives with a label before their own."""
    return (replace(a, label=" ".join(x for x in (label, a.label) if x)) for a in found)
