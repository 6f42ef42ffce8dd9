"""What a quantity can be when its inputs were printed rounded: an interval of all its values, as narrow as slopes allow.

The program is evaluated in balls over the whole box of inputs first. Where that leaves a question open, its tangents are enclosed
over the box, one input at a time: an input of which the slope keeps its sign is set to the end at which the quantity is smallest
or largest, and only the others remain intervals. If all slopes keep their signs, the interval is the exact range.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from symattn.adjoint import tangent
from symattn.audit.claimsfile import Given
from symattn.audit.sheet import Sheet
from symattn.derivative import tangent_name
from symattn.program import Program
from symattn.readings import balls
from symattn.readings.specials import Ball

Array = npt.NDArray[Any]
Interval = tuple[Fraction, Fraction]
Coordinate = tuple[str, tuple[int, ...]]

BITS = 160
TURNS = 3
FEW = 40
"""Inputs without a sign up to which their slopes are asked for again in the narrower box."""
MOST_SLOPES = 400
"""Inputs up to which slopes are enclosed; beyond, the balls over the whole box stand."""


class Box:
    r"""The inputs of a sheet as intervals, and the intervals of what is computed from them.

    Parameters
    ----------
    sheet
        A page with half widths.
    printed
        Further intervals: tensors of which the page prints numbers, as values (None where it prints none) and half widths.

    >>> from symattn.audit.claimsfile import parse
    >>> text = b'[inputs]\nhalf_width = "0.02"\nscaled = ["0", "1"]\n[claims]\nweights = ["0.3", "0.7"]'
    >>> low, high = Box(Sheet(parse(text, "demo").examples[0])).sharpened("P", (1,))
    >>> round(float(low), 6), round(float(high), 6)  # 1/(1 + exp(-0.96)), 1/(1 + exp(-1.04))
    (0.723122, 0.73885)
    """

    def __init__(self, sheet: Sheet, printed: Mapping[str, tuple[Array, Array]] | None = None) -> None:
        self.sheet, self.printed = sheet, printed or {}
        self._wide: dict[str, Array] = {}
        self._slopes: dict[tuple[str, Coordinate], Array] = {}

    @cached_property
    def widths(self) -> dict[str, tuple[Array, Array]]:
        """Values and half widths of the program's inputs that have some: those of the page, taken through the same binding."""
        given = self.sheet.example.inputs
        if not any(x != 0 for g in given.values() for x in g.half_widths.ravel().tolist()):
            return {}
        raised = {n: Given(_plus(g.values, g.half_widths), g.half_widths) for n, g in given.items()}
        upper = Sheet(replace(self.sheet.example, inputs=raised), self.sheet.changes, self.sheet.rewrite).inputs
        lower = self.sheet.inputs
        found = {n: (np.asarray(x, dtype=object), _plus(upper[n], -np.asarray(x, dtype=object))) for n, x in lower.items()}
        return {n: (x, w) for n, (x, w) in found.items() if any(v != 0 for v in w.ravel().tolist())}

    @cached_property
    def coordinates(self) -> list[Coordinate]:
        """All intervals one by one: the input or the printed quantity, and the place."""
        both = {**self.widths, **self.printed}
        return [
            (n, place) for n, (x, w) in both.items() for place in np.ndindex(w.shape) if x[place] is not None and w[place] != 0
        ]

    def interval(self, base: str, index: tuple[int, ...]) -> Interval | None:
        """The ends of an element of a quantity, over the whole box; None where nothing is known.

        Parameters
        ----------
        base
            A letter of the sheet.
        index
            Of the element, in the axes of the page; axes of length 1 in front may be left out.
        """
        at = self._at(base, index)
        return _ends(self._wide[base][at])

    def sharpened(self, base: str, index: tuple[int, ...]) -> Interval | None:
        """The same, with the inputs of which the slope keeps its sign set to their ends."""
        if len(self.coordinates) > MOST_SLOPES:
            return self.interval(base, index)
        ends = [_ends(self._evaluated(base, self._pinned(base, index, side))[self._at(base, index)]) for side in (-1, 1)]
        low, high = ends
        return None if low is None or high is None else (low[0], high[1])

    def _at(self, base: str, index: tuple[int, ...]) -> tuple[int, ...]:
        if base not in self._wide:
            self._wide[base] = self._evaluated(base, {})
        return (0,) * (self._wide[base].ndim - len(index)) + index

    def _pinned(self, base: str, index: tuple[int, ...], side: int) -> dict[Coordinate, int]:
        """The ends at which an element is smallest (side -1) or largest (1), for the inputs of which the slope keeps its sign.

        What is pinned narrows the box, so that further slopes may show a sign; the first slopes are those of the whole box.
        """
        pinned: dict[Coordinate, int] = {}
        at = self._at(base, index)
        for turn in range(TURNS):
            left = [c for c in self.coordinates if c not in pinned]
            found = {}
            for c in left:
                if turn and len(left) > FEW:
                    break
                s = (self._first_slope(base, c) if not turn else self._slope(base, *c, pinned))[at]
                if s > 0 or s < 0 or s == 0:
                    found[c] = side if s > 0 else -side
            if not found:
                break
            pinned |= found
        return pinned

    def _first_slope(self, base: str, c: Coordinate) -> Array:
        if (base, c) not in self._slopes:
            self._slopes[base, c] = self._slope(base, *c, {})
        return self._slopes[base, c]

    def _balls(self, name: str, pinned: Mapping[Coordinate, int]) -> Array:
        """A tensor as balls, some of them set to one end; None stays."""
        mid, widths = self.widths[name] if name in self.widths else self.printed[name]
        x = np.empty(widths.shape, dtype=object)
        with balls.precision(BITS):
            for place in np.ndindex(widths.shape):
                side, m, w = pinned.get((name, place)), mid[place], widths[place]
                if m is None or isinstance(m, float):
                    x[place] = m if m is None else balls.ball(m)
                elif side is not None:
                    x[place] = balls.ball(m + side * w)
                else:
                    x[place] = balls.ball(m - w).union(balls.ball(m + w))
        return x

    def _given(self, name: str, pinned: Mapping[Coordinate, int]) -> Array:
        """An input itself as balls."""
        if name in self.widths:
            return self._balls(name, pinned)
        x = np.asarray(self.sheet.inputs[name], dtype=object)
        out = np.empty(x.shape, dtype=object)
        with balls.precision(BITS):
            out.ravel()[:] = [balls.ball(v) for v in x.ravel().tolist()]
        return out

    def _evaluated(self, base: str, pinned: Mapping[Coordinate, int]) -> Array:
        name = self.sheet.statement(base)
        if name in self.sheet.inputs and base not in self.printed:
            return self.sheet.back(base, self._given(name, pinned))

        def run(program: Program, inputs: dict[str, Array], letter: str) -> Array:
            return self._run(self.sheet.checked(program, letter), inputs, pinned)[letter]

        return self.sheet.evaluate(base, {b: self._balls(b, pinned) for b in self.printed}, run)

    def _run(self, lean: Program, inputs: Mapping[str, Array], pinned: Mapping[Coordinate, int]) -> dict[str, Array]:
        given = self.sheet.seeded(lean, inputs)
        known = {n: self._balls(n, pinned) for n in given if n in self.widths}
        for n, x in given.items():
            if n not in known and any(isinstance(v, Ball) for v in np.asarray(x, dtype=object).ravel().tolist()):
                known[n] = x
        exact = {n: x for n, x in given.items() if n not in known}
        return balls.evaluate(lean, exact, sizes=self.sheet.sizes_of(lean), bits=BITS, known=known)

    def _slope(self, base: str, name: str, place: tuple[int, ...], pinned: Mapping[Coordinate, int]) -> Array:
        """The slopes of a quantity in one interval, over the box with some inputs at their ends."""
        moving = name if name in self.widths else self.sheet.statement(name)
        direction = np.zeros((self.widths if name in self.widths else self.printed)[name][1].shape, dtype=object)
        direction[place] = 1

        given = self.sheet.statement(base)
        if given in self.sheet.inputs:
            slopes = np.full(np.asarray(self.sheet.inputs[given]).shape, Ball(0), dtype=object)
            if given == moving:
                slopes[place] = Ball(1)
            return self.sheet.back(base, slopes)

        def run(program: Program, inputs: dict[str, Array], letter: str) -> Array:
            lean = self.sheet.checked(program, letter)
            if letter != self.sheet.statement(base):
                return self._run(lean, inputs, pinned)[letter]
            wanted = tangent_name(letter)
            moved = _moved(lean, moving, wanted)
            if moved is None:
                return np.full(self._run(lean, inputs, pinned)[letter].shape, Ball(0), dtype=object)
            start = self.sheet.placed(name, direction) if name in self.printed else direction
            return self._run(moved, {**inputs, tangent_name(moving): start}, pinned)[wanted]

        return self.sheet.evaluate(base, {b: self._balls(b, pinned) for b in self.printed}, run)


@lru_cache(maxsize=64)
def _moved(lean: Program, name: str, wanted: str) -> Program | None:
    """The program of one tangent in the direction of one input; None where the input does not reach it."""
    if name not in lean.inputs:
        return None
    moved = tangent(lean, (name,))
    return moved.with_statements(moved.statements, (wanted,)).live() if wanted in moved else None


def _plus(a: Array, b: Array) -> Array:
    """The sum of arrays of exact numbers; infinities stay."""
    x, y = np.broadcast_arrays(np.asarray(a, dtype=object), np.asarray(b, dtype=object))
    out = np.empty(x.shape, dtype=object)
    pairs = zip(x.ravel().tolist(), y.ravel().tolist(), strict=True)
    out.ravel()[:] = [Fraction(0) if isinstance(p, float) and p == -q else p + q for p, q in pairs]
    return out


def _ends(x: Any) -> Interval | None:
    mid, rad = balls.parts(x)
    return None if isinstance(mid, float) or isinstance(rad, float) else (Fraction(mid - rad), Fraction(mid + rad))
