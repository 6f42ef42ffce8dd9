"""What an emulated kernel does otherwise than a correct one: tiles, ranges, roundings of named steps, masks and shifts.

The emulation computes in float64, so that its own errors are far below any bound; after every step a number has the *range* of
the kernel's format (it overflows, or becomes 0, where it would there), and it is *rounded* only where a fault is about that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from symattn import formats
from symattn.formats import Format
from symattn.intake import Array

STEPS = (
    *("dot", "dot_term", "raw", "score", "exp", "rescale", "sum", "weight", "term", "partial", "out", "lse"),
    *("saved_lse", "delta", "recomputed", "grad_weight", "grad_query", "grad_key", "sink_terms"),
)
"""Steps that can be rounded: the sum of q.k after every channel and its terms; q.k, the scaled score, exponentials of scores,
factors of rescaling, the running sum, the weight that meets V, the output after every key and after every tile, the results;
in the backward the LSE and D as read, recomputed scores, dP, dQ after every tile of keys, dK and dV after every tile of
queries, the terms of dSink."""


@dataclass(frozen=True)
class Machine:
    """How an emulated kernel computes.

    Parameters
    ----------
    range
        Format whose range every intermediate result has.
    stored
        Format whose range scores have, where they are stored.
    tile
        Keys per tile; None: all at once.
    known_maximum
        The maximum of all keys is taken before the first tile, in a pass of its own.
    query_tile
        Queries per tile in the backward.
    rounded
        Step -> format that its result is rounded to, of :data:`STEPS`.
    masked, start
        What a masked score is, and what the running maximum starts from.
    soft
        The pairs, broadcastable to (B, H, n, m), whose score is ``masked`` where they are masked; -infinity at others. None: all.
    adds
        The masked number is added to the score instead.
    shift
        What is taken off: the ``"maximum"``, the maximum where it is ``"not below 0"``, or ``"nothing"``.
    bare
        The maximum is taken off even where it is -infinity: ``-inf - (-inf)``, so that such a row is NaN.
    stuck
        After a tile without keys the maximum is 0, and stays where later scores are below.
    sink_outside
        The sink does not enter the maximum.
    grown_output, grown_sum
        The power of ``exp(m_old - m_new)`` that output and sum are multiplied by when the maximum rises: 1 is right, -1 is its
        inverse, 0 is not at all.
    lag
        The maximum is replaced only when it rises by more than this (in nats).
    ahead
        Weights are measured from the new maximum even where the old one is kept.
    clip
        The greatest weight.
    normalised
        Weights are divided by their sum before they meet V; for a single tile.
    multiplies
        Masked values are multiplied by 0 instead of left out.
    guarded
        A sum that is 0 is taken for that of a row without keys, and the output is 0 instead of 0/0.
    empty
        Output of rows without keys; None: as the definition says.
    empty_gradient, empty_in
        What rows without keys have in the backward: 0, or NaN as of ``exp(-inf + inf)``; and in what: the ``"weights"`` (dS is
        made of them), the weights of ``"values"`` alone (dS is masked), or dS, that is the ``"scores"``, alone (D is NaN).
    tail
        Zero keys behind the end take part in the backward.
    stale_keys
        dQ is computed with the keys of the tile before.
    nudge
        By how much of itself a number is moved before it is rounded: shows what hangs on a tie.
    """

    range: str = "float32"
    stored: str | None = None
    tile: int | None = None
    known_maximum: bool = False
    query_tile: int | None = None
    rounded: Mapping[str, str] = field(default_factory=dict)
    masked: float = -np.inf
    start: float = -np.inf
    soft: Array | None = None
    adds: bool = False
    shift: str = "maximum"
    bare: bool = False
    stuck: bool = False
    sink_outside: bool = False
    grown_output: int = 1
    grown_sum: int = 1
    lag: float = 0.0
    ahead: bool = False
    clip: float = np.inf
    normalised: bool = False
    multiplies: bool = False
    guarded: bool = False
    empty: str | None = None
    empty_gradient: float = 0.0
    empty_in: str = "weights"
    tail: bool = False
    stale_keys: bool = False
    nudge: float = 0.0

    def __call__(self, step: str, x: Array) -> Array:
        """The result of a step as the kernel holds it."""
        if step in self.rounded:
            return round_to(x * (1 + self.nudge), formats.get(self.rounded[step]))
        own = self.stored if step in ("raw", "score") and self.stored is not None else self.range
        return within(x, formats.get(own))

    def tiles(self, keys: int) -> list[slice]:
        """The tiles of so many keys."""
        return _slices(keys, self.tile)

    def query_tiles(self, queries: int) -> list[slice]:
        """The tiles of so many queries."""
        return _slices(queries, self.query_tile)

    def nudged(self, by: float) -> Machine:
        """The same with every rounded number moved a little."""
        return replace(self, nudge=by)


def _slices(length: int, tile: int | None) -> list[slice]:
    step = length if tile is None else tile
    return [slice(a, min(a + step, length)) for a in range(0, length, max(step, 1))]


def within(x: Array, f: Format) -> Array:
    """A number with the range of a format: beyond it infinite (NaN where the format has no infinities), far below it 0.

    >>> from symattn.formats import get
    >>> within(np.array([1e39, 1e-46, 0.1]), get("float32"))
    array([inf, 0. , 0.1])
    """
    if f.name == "float64":
        return x
    with np.errstate(all="ignore"):
        edge = float(f.max + formats.ulp(f.max, f) / 2)
        x = np.where(np.abs(x) >= edge, np.copysign(np.inf if f.infinities else np.nan, x), x)
        return np.where(np.abs(x) <= float(f.eta), 0.0, x)


def round_to(x: Array, f: Format) -> Array:
    """Float64 numbers rounded to a format, ties to even; an infinity stays one.

    >>> from symattn.formats import get
    >>> round_to(np.array([257.0, 0.1, 1e6]), get("float16"))
    array([2.57000000e+02, 9.99755859e-02,            inf])
    """
    return x if f.name == "float64" else np.where(np.isfinite(x), formats.round_array(x, f), x)
