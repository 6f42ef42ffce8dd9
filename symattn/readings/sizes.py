"""Sizes of a program from the shapes of its inputs, checked: one number for every size symbol, no axis empty."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import sympy as sp

from symattn.errors import InputValueError, ShapeError, UnknownNameError, nearest
from symattn.program import Program, integer_symbols

Sizes = Mapping[sp.Symbol, int]


def check_names(program: Program, given: Mapping[str, object]) -> None:
    """Raise unless exactly the inputs of the program are given.

    Raises
    ------
    UnknownNameError
        On a name that the program does not read.
    InputValueError
        On an input that is missing.
    """
    for name in given:
        if name not in program.inputs:
            raise UnknownNameError(f"the program reads no input {name!r}. {nearest(name, program.inputs)}")
    missing = [n for n in program.inputs if n not in given]
    if missing:
        raise InputValueError(f"missing: {', '.join(missing)}; the program reads {', '.join(program.inputs)}")


def find_sizes(
    program: Program, shapes: Mapping[str, tuple[int, ...]], given: Mapping[sp.Symbol | str, int] | None = None
) -> dict[sp.Symbol, int]:
    """The number that every size symbol of a program stands for.

    Parameters
    ----------
    program
        Its ``shapes`` say which size each axis of an input has.
    shapes
        The shape of each input given.
    given
        Sizes that no input shows, by symbol or name; the others may be given too and are checked.

    Raises
    ------
    ShapeError
        When an input has another number of axes, two axes of one size differ, an axis is empty, or a size stays unknown.

    >>> from symattn.program import Statement, indices, size, tensor
    >>> i, j = indices("i j")
    >>> n, m = size("n"), size("m")
    >>> p = Program((Statement(tensor("l", i), tensor("E", i, j), (j,)),), {i: n, j: m}, ("l",))
    >>> find_sizes(p, {"E": (2, 3)})
    {n: 2, m: 3}
    """
    by_name = {str(s): s for s in program.sizes}
    found: dict[sp.Symbol, int] = {}
    source: dict[sp.Symbol, str] = {}
    for key, value in (given or {}).items():
        if str(key) not in by_name:
            raise ShapeError(f"the program has no size {key}. {nearest(str(key), by_name)}")
        found[by_name[str(key)]], source[by_name[str(key)]] = int(value), "`sizes`"
    for name, shape in shapes.items():
        axes = program.shapes[name]
        if len(axes) != len(shape):
            raise ShapeError(f"{name} has shape {shape}; {len(axes)} axes are needed: {_sizes(axes)}")
        for k, (axis, length) in enumerate(zip(axes, shape, strict=True)):
            if length == 0:
                raise ShapeError(f"axis {k} of {name} is empty: its shape is {shape}")
            if not isinstance(axis, sp.Symbol):
                continue
            if found.setdefault(axis, length) != length:
                raise ShapeError(f"axis {k} of {name} has length {length}, but {axis} is {found[axis]} by {source[axis]}")
            source.setdefault(axis, f"axis {k} of {name}")
    needed = _needed(program)
    lost = [s for s in program.sizes if s in needed and s not in found]
    if lost:
        raise ShapeError(f"no input shows the size {', '.join(map(str, lost))}; give it in `sizes`")
    for name, shape in shapes.items():
        for k, (axis, length) in enumerate(zip(program.shapes[name], shape, strict=True)):
            if size_value(axis, found) != length:
                raise ShapeError(f"axis {k} of {name} has length {length}, but {axis} is {size_value(axis, found)}")
    return found


def size_value(expr: sp.Expr, sizes: Sizes) -> int:
    """The number that a size expression stands for.

    >>> n = sp.Symbol("n", integer=True, positive=True)
    >>> size_value(n + 1, {n: 2})
    3
    """
    value = expr.xreplace({k: sp.Integer(v) for k, v in sizes.items()})
    if not (value.is_Integer and value > 0):
        raise ShapeError(f"the size {expr} is {value}; a positive integer is needed")
    return int(value)


class Extents:
    """How many values each index of a program takes, each worked out once; what an evaluation of it inherits.

    >>> from symattn.program import Statement, indices, size, tensor
    >>> i, j = indices("i j")
    >>> n = size("n")
    >>> p = Program((Statement(tensor("l", i), tensor("E", i, j), (j,)),), {i: n, j: n + 1}, ("l",))
    >>> Extents(p, {n: 2}).shape((i, j))
    (2, 3)
    """

    def __init__(self, program: Program, sizes: Sizes) -> None:
        self.program = program
        self.sizes = sizes
        self._extents: dict[sp.Symbol, int] = {}

    def size(self, a: sp.Symbol) -> int:
        """How many values the index ``a`` takes."""
        if a not in self._extents:
            self._extents[a] = size_value(self.program.dims[a], self.sizes)
        return self._extents[a]

    def shape(self, axes: Iterable[sp.Symbol]) -> tuple[int, ...]:
        """How many values each of some indices takes."""
        return tuple(self.size(a) for a in axes)


def _needed(program: Program) -> set[sp.Symbol]:
    """The size symbols that a program uses; ``dims`` may name more indices than the statements do."""
    used = {a for name in program.inputs for v in program.shapes[name] for a in v.free_symbols}
    for s in program:
        used |= {a for index in s.domain for a in program.dims[index].free_symbols}
        used |= integer_symbols(s.expr) | integer_symbols(s.where)
    return used


def _sizes(axes: tuple[object, ...]) -> str:
    return "(" + ", ".join(map(str, axes)) + ("," if len(axes) == 1 else "") + ")"
