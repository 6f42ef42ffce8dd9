"""What a replay says of a kernel's output: which elements no kernel of the declaration gives, and which tiles fit best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from symattn import formats
from symattn.formats import exact
from symattn.intake import Array
from symattn.verify.compare import significant
from symattn.verify.replay.bounds import Interval, Replay

TILES = (16, 32, 64, 128, 256, 512)
"""Tiles that a fingerprint tries."""


@dataclass(frozen=True)
class Match:
    """One tile and order, and how many elements of a kernel equal its replay bit for bit."""

    tile: int
    order: str
    equal: int


@dataclass(frozen=True)
class Replayed:
    """An output against its replay.

    Parameters
    ----------
    declared
        Tile, order and shift in words; None where nothing is declared: then there is a fingerprint and no verdict.
    total, failing, open, equal
        Numbers of elements: all, those outside the interval, those of which nothing is asked, and those that equal the replay
        bit for bit.
    worst
        Of a failing element: index, what the kernel gave, the least and the greatest number that the declaration allows.
    fingerprint
        The tiles that were tried, the best first, where none is declared or the declared one fails; information, no verdict.
    """

    declared: str | None
    total: int
    failing: int = 0
    open: int = 0
    equal: int = 0
    worst: tuple[tuple[int, ...], float, float, float] | None = None
    fingerprint: tuple[Match, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The entry of the JSON document."""
        entry: dict[str, Any] = {
            "declared": self.declared,
            "total": self.total,
            "failing": self.failing,
            "open": self.open,
            "equal": self.equal,
            "worst": None,
            "fingerprint": [{"tile": m.tile, "order": m.order, "equal": m.equal} for m in self.fingerprint],
        }
        if self.worst is not None:
            index, *numbers = self.worst
            kernel, low, high = (significant(exact(x), 9) for x in numbers)
            entry["worst"] = {"index": list(index), "kernel": kernel, "least": low, "greatest": high}
        return entry

    def lines(self, label: str) -> list[str]:
        """What a report says, a sentence a line."""
        found = []
        if self.declared is not None:
            inside = self.total - self.failing
            share = f"{self.equal / self.total:.1%}" if self.total else "-"
            found.append(f"{label} replayed ({self.declared}): {inside}/{self.total} possible, {share} equal")
        if self.worst is not None:
            index, kernel, low, high = self.worst
            at, numbers = ",".join(map(str, index)), [significant(exact(x), 9) for x in (kernel, low, high)]
            found.append(f"{label}[{at}]: kernel {numbers[0]}, the replay gives {numbers[1]} to {numbers[2]}")
        if self.fingerprint:
            best = self.fingerprint[0]
            rest = [m for m in self.fingerprint if m.equal != best.equal]
            text = f"{label} fits best to tiles of {best.tile} keys, {best.order} ({best.equal / self.total:.1%} equal"
            found.append(text + (f", next {rest[0].tile} {rest[0].order} {rest[0].equal / self.total:.1%})" if rest else ")"))
        return found


def of_output(replay: Replay, name: str, kernel: Array, shown: Any) -> Replayed | None:
    """What a replay says of one output; None where it says nothing.

    Parameters
    ----------
    replay
        The list on the input.
    name
        The output, a name of the program.
    kernel
        What the kernel gave, in the layout of ``shown``.
    shown
        Brings an array from the axes of the program to those of the kernel.
    """
    if not replay.possible or replay.plan is None or name not in replay.plan.rest.outputs:
        return None
    a = replay.arithmetic
    if a.shift is None:
        tried = fingerprints(replay, name, kernel, shown)
        return Replayed(None, kernel.size, fingerprint=tried) if tried else None
    found = [_against(replay, s, name, kernel, shown) for s in replay.shifts()]
    best = min(found, key=lambda r: r.failing)
    return replace(best, fingerprint=fingerprints(replay, name, kernel, shown)) if best.failing else best


def _against(replay: Replay, start: str, name: str, kernel: Array, shown: Any) -> Replayed:
    i, a = replay.intervals(start=start)[name], replay.arithmetic
    value, low, high = (shown(name, x) for x in (i.value, i.low, i.high))
    there = Interval(value, low, high)
    inside, k = there.inside(kernel), kernel.astype(np.float64)
    same = shown(name, replay.values(a, start)[name]) == k
    worst = None
    if not inside.all():
        with np.errstate(invalid="ignore"):
            off = np.where(inside, -1.0, np.maximum(low - k, k - high))
        off = np.where(np.isnan(off), np.inf, off)
        at = tuple(int(x) for x in np.unravel_index(int(np.argmax(off)), off.shape))
        worst = (at, float(k[at]), float(low[at]), float(high[at]))
    where = "maximum of the row" if a.shift == "row" else f"tile {a.tile}, {a.order}" if a.tile else "one tile"
    return Replayed(where, kernel.size, int((~inside).sum()), int(there.open().sum()), int(same.sum()), worst)


def fingerprints(replay: Replay, name: str, kernel: Array, shown: Any) -> tuple[Match, ...]:
    """How many elements of an output equal the replay with each tile and order, the best first; empty where all are alike."""
    a, plan = replay.arithmetic, replay.plan
    if plan is None or not any(c.gauge for c in plan.casts) or formats.get(a.output).precision > 24:
        return ()
    keys = max(replay.keys())
    tiles = sorted({*TILES, *([a.tile] if a.tile and a.shift else [])})
    several = [t for t in tiles if t < keys]
    if not several:
        return ()
    counts: dict[tuple[int, str], int] = {}
    for tile in [*several, *[t for t in tiles if t >= keys][:1]]:
        for order in ("forward", "reverse") if tile < keys else ("forward",):
            how = replace(a, tile=tile, order=order, shift="running", stale=0.0, merged=False)
            found = [shown(name, replay.values(how, s)[name]) for s in replay.shifts()]
            counts[tile, order] = max(int((x == kernel.astype(np.float64)).sum()) for x in found)
    best = [Match(t, o, n) for (t, o), n in sorted(counts.items(), key=lambda x: (-x[1], x[0]))]
    return tuple(best) if best[0].equal > best[-1].equal else ()


def replayed(replay: Replay, names: Mapping[str, str], tensors: Mapping[str, Array], shown: Any) -> dict[str, Replayed]:
    """What a replay says of outputs by field name."""
    found = {f: of_output(replay, n, tensors[f], shown) for f, n in names.items()}
    return {f: r for f, r in found.items() if r is not None}
