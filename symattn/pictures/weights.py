"""The weights, or the scores, of every softmax of an example as panels with the words at their sides."""

from __future__ import annotations

from itertools import product as cartesian
from typing import Any

import numpy as np

from symattn.indexed import name_of
from symattn.pictures.chart import Chart, Panel
from symattn.pictures.examplevalues import Bound, floats, written
from symattn.readings.typesetting.softmax import Softmax

HEADS = 16
"""Heads that are drawn."""
ACROSS = 4


def weights(bound: Bound) -> Chart:
    """The weights: rows are queries, columns are keys; what the mask leaves out is empty.

    >>> from symattn.pictures.examplevalues import bind
    >>> weights(bind("two-words-causal")).panels[0][0].values
    array([[1. , nan],
           [0.5, 0.5]])
    """
    return _chart(bound, "weights")


def scores(bound: Bound) -> Chart:
    """The scores: what the exponential of the softmax is taken of, masked scores left out.

    >>> from symattn.pictures.examplevalues import bind
    >>> scores(bind("two-words-causal")).panels[0][0].texts
    (('0.58', ''), ('2.31', '2.31'))
    """
    return _chart(bound, "scores")


def _chart(bound: Bound, what: str) -> Chart:
    panels: list[tuple[Panel, ...]] = []
    for softmax in bound.softmaxes():
        found = _panels(bound, softmax, what)
        panels += [tuple(found[k : k + ACROSS]) for k in range(0, len(found), ACROSS)]
    values = [p.values for row in panels for p in row]
    if what == "weights":
        return Chart(bound.title, "Attention weights of each query (row) over the keys (columns).", tuple(panels), "weight")
    known = [v[np.isfinite(v)] for v in values]
    low, high = (
        min((float(v.min()) for v in known if v.size), default=0.0),
        max((float(v.max()) for v in known if v.size), default=1.0),
    )
    reach = max(abs(low), abs(high)) or 1.0
    says = "Scores of each query (row) and key (column): what the exponential of the softmax is taken of."
    return Chart(bound.title, says, tuple(panels), "score", -reach if low < 0 else 0.0, reach)


def _panels(bound: Bound, softmax: Softmax, what: str) -> list[Panel]:
    name = softmax.name if what == "weights" else name_of(softmax.score)
    axes = softmax.weights.indices
    inside = bound.evaluate(bound.program, (softmax.name, name))
    values = inside[name] if what == "weights" else _spread(inside[name], softmax, bound)
    kept = _kept(bound, softmax)
    letter = what.capitalize() if len(bound.softmaxes()) == 1 else f"{what.capitalize()} {name}"
    leading = list(cartesian(*map(range, values.shape[:-2])))
    out = []
    for at in leading[:HEADS]:
        head = f", head {', '.join(str(k + 1) for k in at)}" if at else ""
        more = f" ({HEADS} of {len(leading)} heads)" if len(leading) > HEADS and at == leading[0] else ""
        matrix = np.where(kept[at], floats(values[at]), np.nan)
        texts = tuple(
            tuple(t if k else "" for t, k in zip(row, ks, strict=True))
            for row, ks in zip(written(values[at]), kept[at], strict=False)
        )
        rows, columns = (bound.words(a, bound.program) for a in axes[-2:])
        out.append(Panel(f"{letter}{head}{more}", matrix, rows, columns, "query", "key", texts))
    return out


def _spread(values: Any, softmax: Softmax, bound: Bound) -> Any:
    """Scores along the axes of the weights."""
    order = softmax.score.indices
    axes = softmax.weights.indices
    moved = np.transpose(values, sorted(range(len(order)), key=lambda k: axes.index(order[k])))
    shape = [n if a in order else 1 for a, n in zip(axes, bound.shape(softmax.name), strict=True)]
    return np.broadcast_to(moved.reshape(shape), bound.shape(softmax.name))


def _kept(bound: Bound, softmax: Softmax) -> Any:
    """Where the weights are computed."""
    from symattn.derivation.work import Worksheet

    sheet = Worksheet(bound.program, bound.arrays, bound.sizes)
    shape = bound.shape(softmax.name)
    out = np.zeros(shape, dtype=bool)
    for at in np.ndindex(*shape):
        out[at] = sheet.defined(softmax.name, at)
    return out
