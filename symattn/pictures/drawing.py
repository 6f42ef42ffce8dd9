"""A chart drawn by matplotlib as PDF, SVG or PNG: the same chart gives the same bytes with the same matplotlib.

Figures are objects of their own: nothing goes through ``pyplot``, and the settings of matplotlib are as they were afterwards.
Words of the user are never read as mathematics, and letters that the font lacks are shown as code points.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from symattn.derivation.escaping import shortened, visible
from symattn.errors import DefinitionError, FileFormatError, LimitError, MissingDependencyError
from symattn.pictures.chart import LARGEST, WRITTEN, Chart, Panel, reduced

SUFFIXES = (".pdf", ".svg", ".png")
CELL, SIDE, GAP = 0.34, 1.5, 0.9
"""Inches: a cell of a small panel, the longest side of a large one in multiples of itself, between panels."""
LARGEST_SIDE, SMALLEST_SIDE = 4.5, 1.3
MOST_PANELS = 64
VECTORS = 2500
"""Cells of a panel up to which each is a shape of its own; more of them are one picture element of PDF and SVG."""
NAMES = 40
"""Rows and columns up to which every one is named."""
ONE_WAY, TWO_WAY = "YlOrBr", "PuOr"


def draw(chart: Chart, suffix: str = ".svg", dpi: int = 150, largest: int = LARGEST) -> bytes:
    """The bytes of a picture.

    Parameters
    ----------
    chart
        What is shown.
    suffix
        ``.pdf``, ``.svg`` (text as paths, so that it looks the same everywhere) or ``.png``.
    dpi
        Dots per inch of a PNG.
    largest
        Rows and columns of a panel that are drawn; larger ones are drawn in blocks.

    Raises
    ------
    DefinitionError
        For another suffix.
    LimitError
        When there are too many panels.
    MissingDependencyError
        When matplotlib is not installed.
    """
    if suffix not in SUFFIXES:
        raise DefinitionError(f"a picture ends in {', '.join(SUFFIXES)}, got {suffix!r}")
    if (count := sum(map(len, chart.panels))) > MOST_PANELS:
        raise LimitError(f"{count} panels; at most {MOST_PANELS} are drawn in a picture: draw fewer files at once")
    out = io.BytesIO()
    with _settings():
        figure = _figure(chart, largest)
        dates = {".pdf": {"CreationDate": None, "Producer": None, "Creator": None}, ".svg": {"Date": None, "Creator": None}}
        figure.savefig(out, format=suffix[1:], dpi=dpi, metadata=dates.get(suffix, {"Software": None}))
    return out.getvalue()


def save(chart: Chart, path: str | Path, dpi: int = 150) -> None:
    """Write a picture; the suffix of the file says in which form.

    Raises
    ------
    FileFormatError
        When the file cannot be written.
    """
    path = Path(path)
    data = draw(chart, path.suffix.lower(), dpi)
    try:
        path.write_bytes(data)
    except OSError as why:
        raise FileFormatError(f"{path}: cannot be written: {why.strerror or why}") from why


def matplotlib() -> Any:
    """The package, imported here and nowhere else.

    Raises
    ------
    MissingDependencyError
        When it is not installed.
    """
    try:
        import matplotlib
    except ImportError as why:
        raise MissingDependencyError(
            "pictures need the package matplotlib; install it with: pip install 'symattn[plot]'"
        ) from why
    return matplotlib


@contextmanager
def _settings() -> Iterator[None]:
    """Settings of matplotlib itself and not of the user's file, so that pictures are the same everywhere; restored afterwards."""
    library = matplotlib()
    with library.rc_context():
        library.rcdefaults()
        library.rcParams.update(
            {"svg.hashsalt": "symattn", "svg.fonttype": "path", "pdf.fonttype": 42, "font.size": 9, "image.interpolation": "none"}
        )
        yield


def _figure(chart: Chart, largest: int) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    rows = [[reduced(p, largest) for p in row] for row in chart.panels]
    sizes = [[_size(p) for p in row] for row in rows]
    across = max(map(len, rows))
    width = max(sum(w for w, _ in row) + GAP * len(row) for row in sizes) + 1.6
    height = sum(max(h for _, h in row) + GAP for row in sizes) + 1.0
    figure = Figure(figsize=(max(width, 4.5), max(height, 2.6)), layout=ConstrainedLayoutEngine(h_pad=0.09, w_pad=0.06))
    FigureCanvasAgg(figure)
    figure.suptitle(_text(chart.title, 80), fontsize=11, parse_math=False)
    figure.supxlabel(_wrapped(chart.says, max(width, 4.5)), fontsize=8, parse_math=False)
    norm = Normalize(chart.low, chart.high if chart.high > chart.low else chart.low + 1)
    colours = ScalarMappable(norm, TWO_WAY if chart.low < 0 else ONE_WAY)
    ratios = [max(h for _, h in row) for row in sizes]
    grid = figure.subplots(len(rows), across, squeeze=False, height_ratios=ratios)
    for r, row in enumerate(rows):
        for c in range(across):
            if c < len(row):
                _panel(grid[r][c], row[c], colours)
            else:
                grid[r][c].set_axis_off()
    beyond = any(p.outside is not None and p.outside.any() for row in rows for p in row)
    shrink = min(0.9, 4 / max(height, 1))
    bar = figure.colorbar(
        colours, ax=grid, label=chart.scale, extend="max" if beyond else "neither", shrink=shrink, aspect=25, fraction=0.06
    )
    bar.solids.set(rasterized=False, edgecolor="face")  # type: ignore[union-attr, unused-ignore]
    return figure


def _size(p: Panel) -> tuple[float, float]:
    """Width and height of a panel in inches."""
    sides = [min(max(n * CELL, SMALLEST_SIDE), LARGEST_SIDE) for n in p.values.shape]
    return sides[1], sides[0]


def _panel(axes: Any, p: Panel, colours: Any) -> None:
    height, width = p.values.shape
    shown = np.ma.masked_invalid(np.where(np.isposinf(p.values), colours.norm.vmax, p.values))
    small = max(height, width) <= WRITTEN
    axes.pcolormesh(
        np.arange(width + 1) - 0.5, np.arange(height + 1) - 0.5, shown, cmap=colours.cmap, norm=colours.norm,
        edgecolors="white" if small else "none", linewidth=0.5 if small else 0, rasterized=p.values.size > VECTORS,
    )  # fmt: skip
    axes.patch.set(facecolor="white", hatch="////", edgecolor="0.75", linewidth=0)  # what is masked shows it
    axes.set_xlim(-0.5, width - 0.5)
    axes.set_ylim(height - 0.5, -0.5)
    if max(height, width) <= 4 * min(height, width):
        axes.set_aspect("equal")
    axes.set_title(_wrapped(p.title, max(_size(p)[0], 2.2)), fontsize=9, parse_math=False)
    axes.set_xlabel(_text(p.column_axis, 40), parse_math=False)
    axes.set_ylabel(_text(p.row_axis, 40), parse_math=False)
    _names(axes.xaxis, p.columns, width, p.origin, p.block[1], _size(p)[0])
    _names(axes.yaxis, p.rows, height, p.origin, p.block[0], math.inf)
    for r, row in enumerate(p.texts):
        for c, said in enumerate(row):
            ink = "black" if _light(colours.to_rgba(p.values[r, c])) else "white"
            axes.text(c, r, said, ha="center", va="center", fontsize=6.5, color=ink, parse_math=False)
    if p.outside is not None:
        at = np.argwhere(p.outside)
        axes.plot(at[:, 1], at[:, 0], linestyle="none", marker="x", color="red", markersize=4 if small else 2)


def _names(axis: Any, names: tuple[str, ...], count: int, origin: int, block: int, inches: float) -> None:
    """Names at an axis: each where they fit, otherwise some; turned where they do not fit side by side."""
    every = math.ceil(count / (NAMES if names else 10))
    at = list(range(0, count, every))
    said = [_text(names[k], 12) if names else str(k * block + origin) for k in at]
    long = max(map(len, said)) * 0.085 > inches * every / count
    axis.set_ticks(at, labels=said, parse_math=False, rotation=90 if long else 0, fontsize=7)


def _light(rgba: tuple[float, ...]) -> bool:
    return 0.299 * rgba[0] + 0.587 * rgba[1] + 0.114 * rgba[2] > 0.5


@cache
def _letters() -> frozenset[int]:
    """The code points that the font of matplotlib has."""
    from matplotlib import font_manager

    return frozenset(font_manager.get_font(font_manager.findfont("DejaVu Sans")).get_charmap())


def _text(text: str, longest: int) -> str:
    """Words as the font can show them."""
    said = shortened(visible(text), longest)
    return "".join(c if ord(c) in _letters() else f"[U+{ord(c):04X}]" for c in said)


def _wrapped(text: str, inches: float) -> str:
    import textwrap

    return "\n".join(textwrap.wrap(_text(text, 400), max(20, int(inches * 14))))
