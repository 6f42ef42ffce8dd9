"""Sums of the parts that blocks give, in a tree whose shape is fixed by how many there are.

Part ``k`` is leaf k; node ``k`` of a level adds nodes ``2k`` and ``2k + 1`` of the level below, and a last one without a
neighbour moves up as it is. So the sum of any run of leaves is a few whole nodes, whoever adds them may do so in any order, and
what comes out at the root is the same bit for bit: there is one way only to add.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from symattn.errors import ProgramError
from symattn.formats import Exact
from symattn.program import Reduce
from symattn.readings.balls import TABLE, precision
from symattn.readings.specials import Ball
from symattn.truth.limbs.values import Limbs
from symattn.truth.values import Balls, Floats, Objects, Scaled, Values, object_array
from symattn.truth.work.digits import added, side_by_side
from symattn.truth.work.packed import settled

__all__ = ["Node", "Part", "Sum", "Tree", "combined", "placed"]

Array = npt.NDArray[Any]
SLACK, TINY = 1 + 2.0**-50, math.ulp(0.0)


@dataclass(frozen=True)
class Part:
    """Values of a box of a tensor; elsewhere the part is what reducing nothing gives.

    Parameters
    ----------
    values
        The values.
    start
        Where the box begins on each axis.
    """

    values: Values
    start: tuple[int, ...]


Node = tuple[int, int]
"""Level and number."""


class Tree:
    """One sum under way.

    Parameters
    ----------
    leaves
        How many parts there are.
    add
        Combines two neighbours, the left one first.

    >>> tree = Tree(3, lambda a, b: f"({a} {b})")
    >>> for k in (2, 0, 1):
    ...     tree.put((0, k), "abc"[k])
    >>> tree.nodes
    {(2, 0): '((a b) c)'}
    """

    def __init__(self, leaves: int, add: Callable[[Any, Any], Any]) -> None:
        self._add = add
        self._counts = [leaves]
        while self._counts[-1] > 1:
            self._counts.append(-(-self._counts[-1] // 2))
        self._leaves: set[int] = set()
        self.nodes: dict[Node, Any] = {}

    def put(self, node: Node, value: Any) -> None:
        """Take a node: a leaf, or the sum of a whole run of them.

        Raises
        ------
        ProgramError
            When a leaf below it has been taken before: it would count twice.
        """
        level, k = node
        below = set(range(k << level, min((k + 1) << level, self._counts[0])))
        if not below or below & self._leaves:
            raise ProgramError(
                f"blocks {min(below, default=k)} to {max(below, default=k)} of a sum came twice, or are none of its own"
            )
        self._leaves |= below
        while level + 1 < len(self._counts):
            if k ^ 1 < self._counts[level]:
                other = self.nodes.pop((level, k ^ 1), None)
                if other is None:
                    break
                value = self._add(other, value) if k % 2 else self._add(value, other)
            level, k = level + 1, k // 2
        self.nodes[level, k] = value

    def root(self) -> Any:
        """The whole sum.

        Raises
        ------
        ProgramError
            When a leaf is missing.
        """
        missing = self._counts[0] - len(self._leaves)
        if missing:
            raise ProgramError(f"{missing} of {self._counts[0]} blocks of a sum are missing")
        return self.nodes[len(self._counts) - 1, 0]


class Sum(Tree):
    """A tree of parts of a tensor.

    Parameters
    ----------
    leaves
        How many parts there are.
    reduce
        How the tensor is reduced.
    bits
        Precision of balls.

    Notes
    -----
    What is added is taken as it comes out of a file (:mod:`.packed`), so that it is the same whether it went through one or not.
    """

    def __init__(self, leaves: int, reduce: Reduce, bits: int) -> None:
        super().__init__(leaves, self._both)
        self.leaves, self.reduce, self.bits = leaves, reduce, bits

    def put(self, node: Node, value: Part) -> None:
        """Take a node, as :meth:`Tree.put` does."""
        super().put(node, Part(settled(value.values), value.start))

    def _both(self, a: Part, b: Part) -> Part:
        found = combined(a, b, self.reduce, self.bits)
        return Part(settled(found.values), found.start)


def placed(parts: Sequence[Part], start: tuple[int, ...], shape: tuple[int, ...], reduce: Reduce) -> Values:
    """Parts that do not overlap in one box; what no part has is what reducing nothing gives: 0, 1 or -oo.

    >>> two = [Part(Floats(np.array([x]), np.array([0.0])), (k,)) for k, x in ((3, 5.0), (1, 3.0))]
    >>> placed(two, (1,), (3,), "sum").mid.tolist()
    [3.0, 0.0, 5.0]
    """
    if len(parts) == 1 and parts[0].start == start and parts[0].values.shape == shape:
        return parts[0].values
    limbs = [(p.values, p.start) for p in parts if isinstance(p.values, Limbs)]
    if len(limbs) == len(parts) and reduce == "sum":
        return side_by_side(limbs, start, shape)
    kept = _alike([p.values for p in parts])
    columns = []
    for k, (first, fill) in enumerate(_arrays(kept[0], reduce)):
        out = np.empty(shape, dtype=first.dtype)
        out.fill(fill)
        for p, v in zip(parts, kept, strict=True):
            at: Any = (*(slice(b - a, b - a + n) for a, b, n in zip(start, p.start, v.shape, strict=True)), ...)
            out[at] = _arrays(v, reduce)[k][0]
        columns.append(out)
    return _made(kept[0], columns)


def _alike(values: Sequence[Values]) -> list[Values]:
    """Values of one kind: integers over the smallest of all units, anything else in fractions where kinds differ."""
    if all(isinstance(v, Floats) for v in values) or all(isinstance(v, Balls) for v in values):
        return list(values)
    scaled = [v for v in values if isinstance(v, Scaled)]
    if len(scaled) == len(values):
        e = min(v.exponent for v in scaled)
        return [Scaled(v.integers.astype(object) * (1 << (v.exponent - e)), e, v.radius) for v in scaled]
    return [_objects(v) for v in values]


def _arrays(v: Values, reduce: Reduce) -> list[tuple[Array, Any]]:
    """The arrays that values are made of, and what each holds where nothing is reduced."""
    nothing = {"sum": 0, "prod": 1, "max": -math.inf}[reduce]
    if isinstance(v, Floats):
        return [(v.mid, nothing), (v.rad, 0)]
    if isinstance(v, Balls):
        return [(v.balls, TABLE.negative_infinity if reduce == "max" else Ball(nothing))]
    if isinstance(v, Scaled):
        return [(v.integers.astype(object), 0), (v.radius.astype(object), Fraction(0))]
    w = _objects(v)
    return [(w.mid, nothing if reduce == "max" else Fraction(nothing)), (w.rad, Fraction(0))]


def _made(v: Values, columns: Sequence[Array]) -> Values:
    if isinstance(v, Floats):
        return Floats(*columns)
    if isinstance(v, Balls):
        return Balls(columns[0], v.scale)
    return Scaled(columns[0], v.exponent, columns[1]) if isinstance(v, Scaled) else Objects(*columns)


def combined(a: Part, b: Part, reduce: Reduce, bits: int) -> Part:
    """Two parts as one, enclosed.

    Parameters
    ----------
    a, b
        Parts of one tensor, of one kind.
    reduce
        How the tensor is reduced.
    bits
        Precision of balls; the other kinds have their own.

    Notes
    -----
    In float64 the rounding error of a sum is a float64 number, which the two-sum algorithm gives, unless the sum overflows, where
    nothing is known. Integers and fractions are added exactly.

    >>> one = Part(Floats(np.array([1.0]), np.array([0.0])), (0,))
    >>> small = Part(Floats(np.array([2.0**-60]), np.array([0.0])), (0,))
    >>> both = combined(one, small, "sum", 53).values
    >>> both.mid.tolist(), 2.0**-60 <= float(both.rad[0]) < 2.0**-59
    ([1.0], True)
    """
    if reduce != "sum":
        a, b = (Part(_objects(p.values), p.start) if isinstance(p.values, Scaled) else p for p in (a, b))
    start = tuple(map(min, a.start, b.start))
    ends = (tuple(s + n for s, n in zip(p.start, p.values.shape, strict=True)) for p in (a, b))
    shape = tuple(max(pair) - s for pair, s in zip(zip(*ends, strict=True), start, strict=True))
    x, y = placed([a], start, shape, reduce), placed([b], start, shape, reduce)
    if isinstance(x, Floats) and isinstance(y, Floats):
        return Part(_floats(x, y, reduce), start)
    if isinstance(x, Balls) and isinstance(y, Balls):
        with precision(bits):
            ways: dict[Reduce, Callable[[list[Any]], Any]] = {"sum": TABLE.add, "prod": TABLE.multiply, "max": TABLE.largest}
            found = [ways[reduce]([p, q]) for p, q in zip(x.balls.ravel().tolist(), y.balls.ravel().tolist(), strict=True)]
        return Part(Balls(object_array(found, shape), x.scale), start)
    if isinstance(x, Limbs) and isinstance(y, Limbs) and reduce == "sum" and not (x.fixed.special or y.fixed.special):
        return Part(added(x, y), start)
    if isinstance(x, Scaled) and isinstance(y, Scaled):
        return Part(_scaled(x, y), start)
    x, y = _objects(x), _objects(y)
    columns = (v.ravel().tolist() for v in (x.mid, x.rad, y.mid, y.rad))
    pairs = [_exact(a, b, c, d, reduce) for a, b, c, d in zip(*columns, strict=True)]
    return Part(Objects(*(object_array([p[k] for p in pairs], shape) for k in (0, 1))), start)


def _objects(v: Values) -> Objects:
    return v if isinstance(v, Objects) else Objects(*(object_array(w, v.shape) for w in v.exact()))


def _floats(x: Floats, y: Floats, reduce: Reduce) -> Floats:
    a, b = x.mid, y.mid
    with np.errstate(all="ignore"):
        if reduce == "max":
            mid, error = np.maximum(a, b), np.zeros(a.shape)
            rad = np.maximum(x.rad, y.rad)
        elif reduce == "sum":
            mid = a + b
            back = mid - a
            error = np.abs((a - (mid - back)) + (b - back))
            rad = x.rad + y.rad
        else:
            mid = a * b
            error = np.where((a == 0) | (b == 0), 0.0, np.abs(mid) * 2.0**-53 + TINY)
            terms = [(np.abs(a), y.rad), (np.abs(b), x.rad), (x.rad, y.rad)]
            low = sum(np.where((u > 0) & (v > 0), TINY, 0.0) for u, v in terms)  # what a product may lose below the least float64
            rad = sum(u * v for u, v in terms) + low
        wide = (rad + error) * SLACK
        wide = np.where(wide > 0, wide + TINY, wide)
        special = ~(np.isfinite(a) & np.isfinite(b))
        known = (x.rad < math.inf) & (y.rad < math.inf)
        wide = np.where(np.isfinite(mid), wide, np.where(special, 0.0, math.inf))  # an overflow is no infinity
    return Floats(mid, np.where(known, wide, math.inf))


def _scaled(x: Scaled, y: Scaled) -> Scaled:
    e = min(x.exponent, y.exponent)
    p, q = (v.integers.astype(object) * (1 << (v.exponent - e)) for v in (x, y))
    rads = [
        math.inf if math.inf in (r, s) else Fraction(r) + Fraction(s)
        for r, s in zip(x.radius.ravel().tolist(), y.radius.ravel().tolist(), strict=True)
    ]
    return Scaled(p + q, e, object_array(rads, x.shape))


def _exact(m: Exact, r: Exact, n: Exact, s: Exact, reduce: Reduce) -> tuple[Exact, Exact]:
    """Two enclosures as one, in fractions; a midpoint that is a float is NaN or an infinity."""
    if math.inf in (r, s):
        return Fraction(0), math.inf
    if reduce == "max":
        if any(isinstance(v, float) and math.isnan(v) for v in (m, n)):
            return math.nan, Fraction(0)
        special = next((v for v in (m, n) if v == math.inf), None)
        if special is not None:
            return special, Fraction(0)
        if -math.inf in (m, n):
            return (n, s) if m == -math.inf else (m, r)
        return max(m, n), max(r, s)
    if isinstance(m, float) or isinstance(n, float):
        a, b = (v if isinstance(v, float) else math.copysign(1.0, v) if v else 0.0 for v in (m, n))
        return (a + b if reduce == "sum" else a * b), Fraction(0)
    return (m + n, r + s) if reduce == "sum" else (m * n, abs(m) * s + abs(n) * r + r * s)
