"""Integers in a program: subscripts such as ``tok[p]``, ``t - 1``, ``floor(j/b)``, and conditions that read integers only.

They are exact in every reading: int64 arrays, and fractions where a division does not come out even. Conditions that need more
than that (functions, divisors that may be 0) are decided in ``decisions.py``. A tensor that a scan defines is 0 beyond the ends
of the scan's axis: a look-up there is not out of range.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sp

from symattn.errors import InputValueError, ProgramError
from symattn.program import Statement, Tensor, integer_symbols, name_of, reads, subscripts_of
from symattn.readings.code import Namespace, compiled, constant
from symattn.readings.decisions import OUTSIDE, States, columns_of, decide

Ints = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]
Grid = Mapping[sp.Symbol, Ints]


def _each(f: Callable[..., Any]) -> Callable[..., Any]:
    return np.frompyfunc(f, f.__code__.co_argcount, 1)


def _narrow(x: Any) -> Any:
    """Fractions that are integers become integers, of Python where 64 bits do not hold them."""
    a = np.asarray(x)
    if a.dtype == object and all(Fraction(v).denominator == 1 for v in a.ravel().tolist()):
        whole = np.asarray(np.frompyfunc(int, 1, 1)(a), dtype=object)
        return whole.astype(np.int64) if all(abs(v) < 2**62 for v in np.ravel(whole).tolist()) else whole
    return a


def _divide(a: Any, b: Any) -> Any:
    if np.any(np.asarray(b) == 0):
        raise InputValueError("a subscript divides by 0")
    return _narrow(_each(lambda p, q: Fraction(p) / Fraction(q))(np.asarray(a, dtype=object), np.asarray(b, dtype=object)))


def _power(a: Any, b: Any) -> Any:
    return _narrow(_each(lambda p, q: Fraction(p) ** Fraction(q))(np.asarray(a, dtype=object), np.asarray(b, dtype=object)))


def _refuse(name: str) -> Callable[..., Any]:
    def f(*_: Any) -> Any:
        raise ProgramError(f"a subscript is an integer and cannot hold the function {name}")

    return f


def _floor_div(a: Any, b: Any) -> Any:
    if np.any(np.asarray(b) == 0):
        raise InputValueError("a subscript divides by 0")
    return _narrow(np.floor_divide(a, b))


def _piecewise(*branches: tuple[Callable[[], Any], Callable[[], Any]]) -> Any:
    out: Any = branches[-1][0]()
    for value, condition in branches[-2::-1]:
        out = np.where(condition(), value(), out)
    return out


INTEGERS = Namespace(
    {
        **{
            name: _refuse(name)
            for name in ("sqrt", "exp", "log", "tanh", "sinh", "cosh", "sin", "cos", "erf", "sigmoid", "pi", "step")
        },
        "rational": lambda p, q: p if q == 1 else Fraction(p, q),
        "infinity": lambda sign: sign * math.inf,
        "div": _divide,
        "power": _power,
        "floor_div": _floor_div,
        "ceiling": lambda a: -_floor_div(-np.asarray(a), 1),
        "mod": lambda a, b: a - b * _floor_div(a, b),
        "absolute": np.abs,
        "sign": np.sign,
        "maximum": lambda *a: np.maximum.reduce(np.broadcast_arrays(*a)),
        "minimum": lambda *a: np.minimum.reduce(np.broadcast_arrays(*a)),
        "piecewise": _piecewise,
        "less": lambda a, b: np.less(a, b).astype(bool),
        "less_equal": lambda a, b: np.less_equal(a, b).astype(bool),
        "equal": lambda a, b: np.equal(a, b).astype(bool),
        "negation": np.logical_not,
        "conjunction": lambda *a: np.logical_and.reduce(np.broadcast_arrays(*a)),
        "disjunction": lambda *a: np.logical_or.reduce(np.broadcast_arrays(*a)),
    }
)
"""The table of exact integers, on arrays."""


class Subscripts:
    """Evaluates integer expressions at many points at once.

    Parameters
    ----------
    integers
        Gives a tensor as an int64 array, or None where it holds something else than integers.
    sizes
        Size symbol -> number.
    given
        Gives a tensor as an array of numbers that are exact (an input), or None; the integers are.
    scans
        Name of a tensor that a scan defines -> the axis of the scan.

    Attributes
    ----------
    steps
        The indices of scans that are walked along at the moment, with their values.
    origin
        The first values of indices whose grids do not start at 0: those of a block of rows.
    """

    def __init__(
        self,
        integers: Callable[[str], Ints | None],
        sizes: Mapping[sp.Symbol, int],
        given: Callable[[str], Any | None] = lambda name: None,
        scans: Mapping[str, int] | None = None,
    ) -> None:
        self._integers = integers
        self._sizes = sizes
        self._given = given
        self._scans = scans or {}
        self.steps: dict[sp.Symbol, int] = {}
        self.origin: dict[sp.Symbol, int] = {}
        self._states: dict[tuple[sp.Basic, tuple[sp.Symbol, ...], tuple[int, ...]], States] = {}

    def readable(self, e: sp.Basic) -> bool:
        """Whether an expression reads integers only."""
        return all(self._integers(name_of(x)) is not None and all(self.readable(s) for s in subscripts_of(x)) for x in reads(e))

    def decidable(self, condition: sp.Basic) -> bool:
        """Whether a condition depends on exact numbers only: what it says is then the same in every reading."""
        return all(
            (self._integers(name_of(x)) is not None or self._given(name_of(x)) is not None)
            and all(self.readable(s) for s in subscripts_of(x))
            for x in reads(condition)
        )

    def states(self, condition: sp.Basic, axes: Sequence[sp.Symbol], shape: Sequence[int]) -> States:
        """The states of a decidable condition on the grid of some indices."""
        if self.varies(condition):
            return self._decided(condition, axes, shape)
        key = (condition, tuple(axes), tuple(shape))
        if key not in self._states:
            self._states[key] = self._decided(condition, axes, shape)
        return self._states[key]

    def grid(self, axes: Sequence[sp.Symbol], shape: Sequence[int]) -> dict[sp.Symbol, Ints]:
        """An index array for each axis, from its origin on, shaped so that they broadcast to the grid."""
        starts = (self.origin.get(a, 0) for a in axes)
        return {
            a: np.arange(k, k + n, dtype=np.int64).reshape([-1 if b == a else 1 for b in axes])
            for a, k, n in zip(axes, starts, shape, strict=True)
        }

    def varies(self, e: sp.Basic) -> bool:
        """Whether an expression depends on the step of a scan that is walked along."""
        return bool(self.steps) and not self.steps.keys().isdisjoint(integer_symbols(e))

    def _decided(self, condition: sp.Basic, axes: Sequence[sp.Symbol], shape: Sequence[int]) -> States:
        at = self.grid(axes, shape)
        columns: dict[sp.Basic, Any] = {}
        bad: Bools | None = None
        rd, symbols = columns_of(condition)
        for x in rd:
            array: Any = self._integers(name_of(x))
            array = self._given(name_of(x)) if array is None else array
            columns[x], out = self.look_up(x, array, at, 0)
            bad = either(bad, out)
        columns |= {a: self.symbol(a, at) for a in symbols}
        columns = {x: np.broadcast_to(v, tuple(shape)) if np.ndim(v) else np.asarray(v) for x, v in columns.items()}
        found = decide(condition, columns, math.prod(shape), INTEGERS).reshape(tuple(shape))
        if bad is not None:
            found[np.broadcast_to(bad, tuple(shape))] = OUTSIDE
        found.flags.writeable = False
        return found

    def value(self, e: sp.Basic, at: Grid) -> tuple[Any, Bools | None]:
        """The value of an integer expression or condition at ``at``, and where a look-up inside it was out of range."""
        if isinstance(e, sp.Symbol) and e.is_integer:
            return self.symbol(e, at), None
        if isinstance(e, sp.Integer):
            return np.int64(int(e)), None
        rd = reads(e)
        names = tuple(sorted(loose_symbols(e), key=str))
        values, bad = [], None
        for x in rd:
            array = self._integers(name_of(x))
            if array is None:
                raise InputValueError(f"{name_of(x)} is read as a subscript in `{e}` and must hold integers")
            got, out = self.look_up(x, array, at, 0)
            values.append(got)
            bad = either(bad, out)
        f, constants = compiled(e, (*rd, *names), INTEGERS)
        v = f(*(constant(c, INTEGERS) for c in constants), *values, *(self.symbol(a, at) for a in names))
        return v, bad

    def symbol(self, a: sp.Symbol, at: Grid) -> Any:
        """The value of an index or a size symbol."""
        if a in at:
            return at[a]
        if a in self.steps:
            return np.int64(self.steps[a])
        if a in self._sizes:
            return np.int64(self._sizes[a])
        raise ProgramError(f"{a} has no value here")

    def locate(self, x: Tensor, shape: Sequence[int], at: Grid) -> tuple[tuple[Any, ...], Bools | None]:
        """Where a read looks: an index array for each axis (clipped into range), and where it was out of range.

        Beyond the ends of a scan's axis it is not out of range; see :meth:`beyond`.
        """
        where: list[Any] = []
        bad: Bools | None = None
        scan = self._scans.get(name_of(x))
        for k, (s, length) in enumerate(zip(subscripts_of(x), shape, strict=True)):
            v, out = self.value(s, at)
            bad = either(bad, out)
            if not (isinstance(s, sp.Symbol) and s in at and v.size and int(v.max()) < length):
                v = np.asarray(v)
                if v.dtype == object:
                    even = np.asarray(_each(lambda q: Fraction(q).denominator == 1)(v), dtype=bool)
                    bad = either(bad, ~even)
                    v = np.asarray(np.frompyfunc(math.floor, 1, 1)(v)).astype(np.int64)
                outside = (v < 0) | (v >= length)
                if np.any(outside):
                    bad = bad if k == scan else either(bad, outside)
                    v = np.clip(v, 0, length - 1)
            where.append(v)
        return tuple(where), bad

    def beyond(self, x: Tensor, shape: Sequence[int], at: Grid) -> Bools | None:
        """Where a read looks beyond the ends of the axis of the scan that defines its tensor: it is 0 there."""
        scan = self._scans.get(name_of(x))
        if scan is None or isinstance(subscripts_of(x)[scan], sp.Symbol):
            return None
        v = np.asarray(self.value(subscripts_of(x)[scan], at)[0])
        outside = np.asarray((v < 0) | (v >= shape[scan]), dtype=bool)
        return outside if np.any(outside) else None

    def positions(self, s: Statement, shape: Sequence[int]) -> Ints:
        """The integers of a statement that is made of indices and sizes."""
        sub = s.indices
        at = {a: np.arange(n).reshape([-1 if b == a else 1 for b in sub]) for a, n in zip(sub, shape, strict=True)}
        return np.broadcast_to(self.value(s.expr, at)[0], tuple(shape))

    def look_up(self, x: Tensor, array: Any, at: Grid, zero: Any) -> tuple[Any, Bools | None]:
        """The values of a tensor at ``at``, and where it was out of range. ``zero`` is what it is beyond a scan's axis."""
        where, bad = self.locate(x, array.shape, at)
        got, past = array[where], self.beyond(x, array.shape, at)
        return (got if past is None else np.where(past, zero, got)), bad


def is_position(s: Statement) -> bool:
    """Whether a statement is an integer made of indices and sizes: no numbers make it, and subscripts may read it."""
    return not s.over and s.where == sp.true and not reads(s.expr) and bool(s.expr.is_integer)


def either(a: Bools | None, b: Bools | None) -> Bools | None:
    """The union of two sets of points, None being empty."""
    if a is None or b is None:
        return b if a is None else a
    return a | b


def loose_symbols(e: sp.Basic) -> frozenset[sp.Symbol]:
    """Index and size symbols that stand in an expression itself, not only inside the subscripts of a read."""
    if isinstance(e, sp.Indexed):
        return frozenset()
    if isinstance(e, sp.Symbol):
        return frozenset((e,)) if e.is_integer else frozenset()
    return frozenset().union(*(loose_symbols(a) for a in e.args))


def positions(e: sp.Basic) -> tuple[sp.Expr, ...]:
    """The largest parts of an expression that depend on indices and sizes only: numbers known before any tensor is.

    >>> from symattn.program import indices, tensor
    >>> i, j = indices("i j")
    >>> positions(tensor("slope") * (i - j) + tensor("S", i, j))
    (i - j,)
    """
    found: dict[sp.Expr, None] = {}

    def visit(e: sp.Basic) -> None:
        if isinstance(e, sp.Expr) and loose_symbols(e) and not reads(e):
            found[e] = None
        elif not isinstance(e, sp.Indexed):
            for a in e.args:
                visit(a)

    visit(e)
    return tuple(sorted(found, key=str))
