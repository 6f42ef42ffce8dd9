"""What happens to results after they were computed: factors, parts that stay 0; and rewritings under labels."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from symattn.verify.faults.fault import Alternative, Prediction, Predictions, Situation

Rewrite = Callable[[Situation], Iterator[Alternative]]
After = Callable[[Situation, Predictions], Predictions]


def times(p: Prediction, f: float) -> Prediction:
    """A prediction multiplied by a number."""
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


def labelled(*parts: tuple[str, Rewrite]) -> Rewrite:
    """Several rewritings, each under a label."""

    def rewrite(s: Situation) -> Iterator[Alternative]:
        for label, part in parts:
            yield from under(label, part(s))

    return rewrite


def under(label: str, found: Iterator[Alternative]) -> Iterator[Alternative]:
    """Alternatives with a label before their own."""
    return (replace(a, label=" ".join(x for x in (label, a.label) if x)) for a in found)
