r"""A chart for LaTeX that needs no package: a square for each number, its area as large as the number; black rules and frames.

Negative numbers are frames, positive ones full squares, what is masked a dot. Rows have their names; columns too where these fit,
otherwise numbers, and their names below.
"""

from __future__ import annotations

import math

from symattn.derivation.escaping import latex_text, shortened, visible
from symattn.pictures.chart import Chart, Panel, reduced

CELL, LETTER = 5.0, 1.9
"""Millimetres: the side of a cell, and the width of a letter of a name in small type, about."""
NAME = 12
"""Letters of a name."""
LARGEST = 24
"""Rows and columns of a panel on a page."""
LEGEND = "The area of a square is its number, the largest square {reach:.4g}"
THIN = 0.15
"""Millimetres: the line of a frame."""


def squares(chart: Chart, room: float = 150.0) -> str:
    r"""The panels of a chart below each other, as LaTeX.

    Parameters
    ----------
    chart
        What is shown.
    room
        Millimetres that a line of the page has.

    >>> import numpy as np
    >>> from symattn.pictures.chart import Chart, Panel
    >>> panel = Panel("p", np.array([[1.0, 0.25]]), ("a",), ("x", "y"))
    >>> print(squares(Chart("c", "Numbers.", ((panel,),), "weight")).count(r"\rule"))
    2
    """
    reach = max(abs(chart.low), abs(chart.high)) or 1.0
    drawn = [_panel(reduced(p, LARGEST), reach, room) for row in chart.panels for p in row]
    said = LEGEND.format(reach=reach) + ("; a frame is a negative one." if chart.low < 0 else ".")
    return "\n".join([*drawn, rf"\noindent{{\small {latex_text(said)}}}\par"])


def _panel(p: Panel, reach: float, room: float) -> str:
    height, width = p.values.shape
    rows = [_name(p.rows, k, p, 0) for k in range(height)]
    columns = [_name(p.columns, k, p, 1) for k in range(width)]
    side = 2 + LETTER * max(map(len, rows))
    across = max(CELL, 1 + LETTER * max(map(len, columns)))
    told = ""
    if side + across * width > room:
        if p.columns:
            told = ", ".join(f"{k * p.block[1] + p.origin} {name}" for k, name in enumerate(columns))
            told = rf"\par {{\small Columns: {latex_text(told)}.}}"
        columns = [str(k * p.block[1] + p.origin) for k in range(width)]
        across = CELL
    out = [rf"\noindent{{\small {latex_text(visible(p.title))}}}\par\nopagebreak", r"{\setlength{\unitlength}{1mm}%"]
    out.append(rf"\noindent\begin{{picture}}({side + across * width:.1f},{CELL * (height + 1):.1f})")
    for c, name in enumerate(columns):
        out.append(_put(side + across * (c + 0.5), CELL * (height + 0.5), rf"\makebox(0,0){{\small {latex_text(name)}}}"))
    for r, name in enumerate(rows):
        y = CELL * (height - r - 0.5)
        out.append(_put(side - 1.5, y, rf"\makebox(0,0)[r]{{\small {latex_text(name)}}}"))
        out += [_put(side + across * (c + 0.5), y, _mark(float(x), reach)) for c, x in enumerate(p.values[r])]
    return "\n".join([*out, r"\end{picture}}" + told + r"\par"])


def _mark(x: float, reach: float) -> str:
    """A square around its place."""
    if math.isnan(x):
        return r"\makebox(0,0){$\cdot$}"
    side = 0.9 * CELL * math.sqrt(min(abs(x) / reach, 1.0))
    if x >= 0 or side < 4 * THIN:
        return rf"\makebox(0,0){{\rule{{{side:.2f}mm}}{{{side:.2f}mm}}}}"
    inside = side - 2 * THIN
    return rf"\makebox(0,0){{\fboxsep=0pt\fboxrule={THIN}mm\fbox{{\rule{{0pt}}{{{inside:.2f}mm}}\hspace{{{inside:.2f}mm}}}}}}"


def _put(x: float, y: float, what: str) -> str:
    return rf"\put({x:.2f},{y:.2f}){{{what}}}"


def _name(names: tuple[str, ...], k: int, p: Panel, axis: int) -> str:
    return shortened(visible(names[k]), NAME) if names else str(k * p.block[axis] + p.origin)
