"""Heat maps of verdicts: each element's error as a share of its bound, in a few colours, as PNG with a text alternative.

Colours are classes and not a continuous scale, so that "within" and "out" are never one shade apart: blues are within, greys
and violet show nothing, yellow to red is out. Where there are more cells than pixels, a pixel shows the worst of its cells.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from symattn.verify.axiswords import axes_of
from symattn.verify.compare import OUT, UNBOUNDED, UNDECIDED
from symattn.verify.evidence import Evidence

Cells = npt.NDArray[np.uint8]

CLASSES: tuple[tuple[str, str], ...] = (
    ("#e9eff8", "no error"),
    ("#c3d5ee", "up to 1/100 of the bound"),
    ("#8fb4e0", "up to 1/10"),
    ("#5287c8", "up to 1/2"),
    ("#23559c", "up to the bound"),
    ("#a9a9a9", "no bound"),
    ("#8a5fc0", "undecided"),
    ("#f2b134", "out: up to 10 times the bound"),
    ("#e0641c", "out: up to 1000 times"),
    ("#a8121b", "out: beyond"),
)
"""Colour and meaning of each class, from best to worst."""

WITHIN_UP_TO = (0.0, 0.01, 0.1, 0.5)
NO_BOUND, OPEN, FIRST_OUT = 5, 6, 7
MOST = 96
"""Cells along an axis of a picture at most."""


@dataclass(frozen=True)
class Panel:
    """A part of a tensor as a matrix of classes: what it shows, what rows and columns are, and how many of each there are."""

    name: str
    rows: str
    columns: str
    cells: Cells
    worst: float

    @property
    def failing(self) -> int:
        """How many elements are out."""
        return int((self.cells >= FIRST_OUT).sum())

    @property
    def words(self) -> str:
        """The text alternative: sizes, how many are out and where, and the worst.

        >>> Panel("head 1", "query", "channel", np.array([[0, 7], [0, 0]], dtype=np.uint8), 3.0).words
        'head 1: 2 (query) x 2 (channel); 1 of 4 out of bounds, in query 0, channel 1; the worst is 3 times its bound'
        """
        n, m = self.cells.shape
        what = f"{self.name}: " if self.name else ""
        size = f"{what}{n} ({self.rows}) x {m} ({self.columns})"
        share = "infinite" if math.isinf(self.worst) else f"{self.worst:.3g} times its bound"
        if not self.failing:
            quiet = int((self.cells >= NO_BOUND).sum())
            return f"{size}; none out of bounds" + (f", {quiet} that show nothing" if quiet else f"; the worst is {share}")
        out = self.cells >= FIRST_OUT
        places = (f"{self.rows} {runs(np.flatnonzero(out.any(1)))}", f"{self.columns} {runs(np.flatnonzero(out.any(0)))}")
        return f"{size}; {self.failing} of {n * m} out of bounds, in {', '.join(places)}; the worst is {share}"


def classes(e: Evidence) -> tuple[Cells, npt.NDArray[np.float64]]:
    """The class of every element, and its share of the bound."""
    shares, states = e.shares(), e.states()
    found = np.searchsorted(WITHIN_UP_TO, shares, side="left").astype(np.uint8)
    out = FIRST_OUT + np.searchsorted((10.0, 1000.0), shares, side="left").astype(np.uint8)
    for state, values in ((UNBOUNDED, np.uint8(NO_BOUND)), (UNDECIDED, np.uint8(OPEN)), (OUT, out)):
        found = np.where(states == state, values, found)
    return found.astype(np.uint8), shares


def panels(name: str, e: Evidence) -> list[Panel]:
    """A tensor as one matrix per index of its leading axes: query x channel per head, query x key of a mask, head x query.

    >>> import fractions
    >>> zero = np.full((1, 2, 3, 4), fractions.Fraction(0), dtype=object)
    >>> [p.words for p in panels("out", Evidence(np.zeros((1, 2, 3, 4)), zero, zero, np.ones((1, 2, 3, 4))))][1]
    'batch 0, head 1: 3 (query) x 4 (channel); none out of bounds; the worst is 0 times its bound'
    """
    cells, shares = classes(e)
    words = axes_of(name, cells.ndim)
    while cells.ndim < 2:
        cells, shares, words = cells[None], shares[None], ("", *words)
    found = []
    for at in np.ndindex(cells.shape[:-2]):
        title = ", ".join(f"{w} {k}" for w, k in zip(words, at, strict=False))
        part = shares[at]
        found.append(Panel(title, words[-2] or "row", words[-1] or "column", cells[at], float(part.max(initial=0.0))))
    return found


def overview(name: str, e: Evidence, tile: int | None = None) -> Panel | None:
    """Head x block of rows: each cell the worst class of a block of queries or keys of one head; None for fewer than 4 axes.

    ``tile`` is the number of rows in a block; by default as many as give at most 32 blocks.
    """
    cells, shares = classes(e)
    if cells.ndim != 4:
        return None
    words = axes_of(name, 4)
    n = cells.shape[2]
    size = tile or math.ceil(n / 32)
    lines = cells.max(3).reshape(-1, n)
    blocks = np.stack([lines[:, k : k + size].max(1) for k in range(0, n, size)], axis=1)
    rows = f"{words[0]} and {words[1]}" if cells.shape[0] > 1 else words[1]
    columns = words[2] if size == 1 else f"block of {size} rows ({words[2]})"
    return Panel("", rows, columns, blocks, float(shares.max(initial=0.0)))


def shown(found: Sequence[Panel], most: int) -> list[Panel]:
    """As many panels as are shown, in their order: those with the worst elements, where there are more."""
    chosen = sorted(range(len(found)), key=lambda k: (-found[k].worst, k))[:most]
    return [found[k] for k in sorted(chosen)]


def runs(indices: Sequence[int] | npt.NDArray[np.intp]) -> str:
    """Indices as text, neighbours joined, the tail cut.

    >>> runs([0, 1, 2, 5, 7, 8]), runs(range(0, 40, 2))
    ('0-2, 5, 7-8', '0, 2, 4, 6, 8, 10 ...')
    """
    parts = [f"{a}" if a == b else f"{a}-{b}" for a, b in _spans(indices)]
    return ", ".join(parts[:6]) + (" ..." if len(parts) > 6 else "")


def _spans(indices: Sequence[int] | npt.NDArray[np.intp]) -> Iterator[tuple[int, int]]:
    start = last = None
    for k in map(int, indices):
        if last is not None and k == last + 1:
            last = k
            continue
        if start is not None and last is not None:
            yield start, last
        start = last = k
    if start is not None and last is not None:
        yield start, last


def pooled(cells: Cells) -> Cells:
    """A matrix with at most :data:`MOST` rows and columns: each cell the worst of those that it stands for."""
    for axis in (0, 1):
        n = cells.shape[axis]
        if n > MOST:
            starts = np.unique(np.arange(MOST) * n // MOST)
            cells = np.maximum.reduceat(cells, starts, axis=axis)
    return cells


def png(cells: Cells) -> bytes:
    """A matrix of classes as an indexed PNG, a pixel a cell.

    >>> png(np.zeros((2, 3), dtype=np.uint8))[1:4]
    b'PNG'
    """
    n, m = cells.shape
    palette = b"".join(bytes.fromhex(color[1:]) for color, _ in CLASSES)
    lines = b"".join(b"\0" + row.astype(np.uint8).tobytes() for row in cells)
    header = struct.pack(">IIBBBBB", m, n, 8, 3, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"PLTE", palette), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    body = b"".join(struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in chunks)
    return b"\x89PNG\r\n\x1a\n" + body


def data_address(cells: Cells) -> str:
    """The picture as a ``data:`` address."""
    return "data:image/png;base64," + base64.b64encode(png(cells)).decode("ascii")
