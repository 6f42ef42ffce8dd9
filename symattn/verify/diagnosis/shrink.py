"""The smallest shape on which a kernel still fails: sizes are lowered one after the other as long as it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from symattn.verify.inputs import Shape

TRIES = 40
"""Runs of the kernel."""


def smallest_failing(shape: Shape, fails: Callable[[Shape], bool], tries: float = TRIES) -> Shape:
    """A shape from which no size can be lowered without the kernel passing, as far as ``tries`` runs reach.

    Parameters
    ----------
    shape
        Sizes on which it fails.
    fails
        Whether it fails on others; where it cannot run it does not fail.

    >>> str(smallest_failing(Shape.parse("2,6,3,5,7,6"), lambda s: s.m >= 4))
    '1,1,1,1,4,1'
    """
    left = tries
    changed = True
    while changed and left > 0:
        changed = False
        for smaller in _smaller(shape):
            if left <= 0:
                break
            left -= 1
            if fails(smaller):
                shape, changed = smaller, True
                break
    return shape


def _smaller(s: Shape) -> list[Shape]:
    """Shapes with one size lowered, the boldest first."""
    found = []
    for h, kv in ((1, 1), (2, 1), (2, 2), (4, 2)):
        if h < s.h or (h == s.h and kv < s.hkv):
            found.append(replace(s, h=h, hkv=kv))
    for name in ("b", "n", "m", "d"):
        size = getattr(s, name)
        for smaller in dict.fromkeys((1, 2, size // 2, size - 1)):
            if 1 <= smaller < size:
                both = {"d": smaller, "dv": smaller} if name == "d" and s.d == s.dv else {name: smaller}
                found.append(replace(s, **both))
    return found
