"""The smallest shape on which a kernel still fails, as far as a number of runs reaches.

Sizes go to 1 at once where the kernel still fails there, and are bisected where it does not. What fails need not fail on all
larger sizes (a tile may be lost only where it is not full), so what runs are left ask for the sizes between, small ones first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from symattn.verify.inputs import Shape

__all__ = ["TRIES", "Smallest", "smallest_failing"]

TRIES = 40
"""Runs of the kernel."""


@dataclass(frozen=True)
class Smallest:
    """The smallest of the shapes that were tried on which the kernel fails.

    Parameters
    ----------
    shape
        Its sizes.
    tried
        How many shapes were run.
    complete
        Whether these hold every shape with one of its sizes lowered; otherwise the runs were used up before.
    """

    shape: Shape
    tried: int
    complete: bool


def smallest_failing(shape: Shape, fails: Callable[[Shape], bool], tries: float = TRIES) -> Smallest:
    """The smallest shape that ``tries`` runs find, from one on which a kernel fails.

    Parameters
    ----------
    shape
        Sizes on which it fails.
    fails
        Whether it fails on others; where it cannot run it does not fail.
    tries
        How many others may be run.

    >>> str(smallest_failing(Shape.parse("2,6,3,5,7,6"), lambda s: s.m >= 4).shape)
    '1,1,1,1,4,1'
    """
    search = _Search(fails, tries)
    while True:
        before = shape
        for axis in range(len(_lowered(shape))):
            shape = search.bisected(shape, axis)
        if shape == before:
            shape = search.between(shape)
        if shape == before:
            return Smallest(shape, len(search.known), not search.over)


@dataclass
class _Search:
    """What was run, and how many runs are left."""

    fails: Callable[[Shape], bool]
    left: float
    known: dict[Shape, bool] = field(default_factory=dict)
    over: bool = False
    """Whether a run was refused."""

    def asked(self, shape: Shape) -> bool:
        """Whether the kernel is known to fail there."""
        if shape not in self.known:
            if self.left < 1:
                self.over = True
                return False
            self.left -= 1
            self.known[shape] = self.fails(shape)
        return self.known[shape]

    def bisected(self, shape: Shape, axis: int) -> Shape:
        """One size lowered: to the least one, else between one that passes and one that fails."""
        smaller = _lowered(shape)[axis]
        if not smaller:
            return shape
        if self.asked(smaller[0]):
            return smaller[0]
        low, high = 0, len(smaller)
        while high - low > 1:
            middle = (low + high) // 2
            if self.asked(smaller[middle]):
                shape, high = smaller[middle], middle
            else:
                low = middle
        return shape

    def between(self, shape: Shape) -> Shape:
        """The first that fails of all shapes with one size lowered, the smallest ones of every size first."""
        in_turn = zip_longest(*_lowered(shape))
        return next((s for row in in_turn for s in row if s is not None and self.asked(s)), shape)


def _lowered(s: Shape) -> list[list[Shape]]:
    """By what is lowered, the smaller shapes in order: batch, heads, widths, keys, queries, and the last two by as much."""
    d = [{"d": k, "dv": k} for k in range(1, s.d)] if s.d == s.dv else [{"d": k} for k in range(1, s.d)]
    dv = [{"dv": k} for k in range(1, s.dv)] if s.d != s.dv else []
    both = [{"n": s.n - k, "m": s.m - k} for k in range(min(s.n, s.m) - 1, 0, -1)]
    one = ([{name: k} for k in range(1, getattr(s, name))] for name in ("m", "n"))
    changes = [[{"b": k} for k in range(1, s.b)], list(_heads(s)), d, dv, *one, both]
    return [[replace(s, **change) for change in axis] for axis in changes]


def _heads(s: Shape) -> Iterator[dict[str, int]]:
    """Fewer heads, or as many with fewer of keys and values; of the latter never more than there are."""
    for h in range(1, s.h + 1):
        for kv in range(1, min(h, s.hkv) + 1):
            if h % kv == 0 and (h, kv) < (s.h, s.hkv):
                yield {"h": h, "hkv": kv}
