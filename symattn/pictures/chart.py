"""What a picture shows, as data: panels of numbers with names at their sides. Nothing here draws."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

LARGEST = 128
"""Rows and columns of a panel that are drawn; larger panels are drawn in blocks, and say so."""
WRITTEN = 12
"""Rows and columns up to which the numbers stand in the cells."""
MOST_CELLS = 16_000_000
"""Elements of a matrix that is looked at."""


@dataclass(frozen=True)
class Panel:
    """One matrix of a picture.

    Parameters
    ----------
    title
        What stands above it.
    values
        float64, shape (rows, columns); NaN where there is nothing: masked.
    rows, columns
        Names at the rows and columns; empty: their numbers, counted from ``origin``.
    row_axis, column_axis
        What rows and columns are.
    texts
        What is written in the cells; empty: nothing.
    origin
        From where rows and columns are counted.
    outside
        Where a value is beyond what is allowed, shape (rows, columns); such cells are crossed.
    block
        How many rows and columns one cell stands for.
    """

    title: str
    values: Any
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    row_axis: str = ""
    column_axis: str = ""
    texts: tuple[tuple[str, ...], ...] = ()
    origin: int = 1
    outside: Any = None
    block: tuple[int, int] = (1, 1)


@dataclass(frozen=True)
class Chart:
    """Panels in rows, all in one scale of colours.

    Parameters
    ----------
    title, says
        Heading, and what is shown, in a sentence.
    panels
        Rows of panels.
    scale
        What a colour means.
    low, high
        The ends of the scale; where ``low`` is negative, colours run in two directions from 0.
    """

    title: str
    says: str
    panels: tuple[tuple[Panel, ...], ...]
    scale: str
    low: float = 0.0
    high: float = 1.0


def reduced(p: Panel, largest: int = LARGEST) -> Panel:
    """A panel of at most so many rows and columns: one cell shows the value of a block that is farthest from 0.

    >>> small = reduced(Panel("a", np.arange(12.0).reshape(2, 6)), largest=3)
    >>> small.values.tolist(), small.block
    ([[1.0, 3.0, 5.0], [7.0, 9.0, 11.0]], (1, 2))
    """
    height, width = p.values.shape
    if max(height, width) <= largest:
        return p
    block = math.ceil(height / largest), math.ceil(width / largest)
    values = _blocks(p.values, block)
    marked = np.nan_to_num(np.abs(values), nan=-1.0)
    at = marked.argmax(axis=2)[..., None]
    outside = None if p.outside is None else _blocks(p.outside.astype(float), block).max(axis=2) > 0
    names = [w[::step] if w and step == 1 else () for w, step in zip((p.rows, p.columns), block, strict=True)]
    said = f"{p.title}; a cell shows the value farthest from 0 of {block[0]} × {block[1]}"
    return replace(
        p,
        title=said,
        values=np.take_along_axis(values, at, axis=2)[..., 0],
        rows=names[0],
        columns=names[1],
        texts=(),
        outside=outside,
        block=block,
    )


def _blocks(values: Any, block: tuple[int, int]) -> Any:
    """An array (rows, columns, elements of the block), NaN beyond its ends."""
    height, width = (-(-n // b) for n, b in zip(values.shape, block, strict=True))
    full = np.full((height * block[0], width * block[1]), np.nan)
    full[: values.shape[0], : values.shape[1]] = values
    return full.reshape(height, block[0], width, block[1]).swapaxes(1, 2).reshape(height, width, -1)


def stacked(charts: list[Chart]) -> Chart:
    """Several charts of a kind below each other, each panel named by its chart."""
    if len(charts) == 1:
        return charts[0]
    rows = tuple(tuple(replace(p, title=f"{c.title}: {p.title}") for p in row) for c in charts for row in c.panels)
    first = charts[0]
    says = " ".join(dict.fromkeys(c.says for c in charts))
    return Chart(f"{len(charts)} files", says, rows, first.scale, min(c.low for c in charts), max(c.high for c in charts))
