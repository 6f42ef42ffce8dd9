"""Functions that pages use, of exact numbers and of arrays of them: one table for elements, one for whole arrays."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from symattn.audit import arrays
from symattn.audit.arrays import Value, flat, shape
from symattn.audit.reals import absolute, cos, divide, exp, log, multiply, negative, sin, softmax, sqrt, subtract, tanh, total
from symattn.audit.trees import Real, sign
from symattn.errors import GrammarError, ShapeError, UndecidedError


def _sigmoid(x: Real) -> Real:
    return divide(Fraction(1), total([Fraction(1), exp(negative(x))]))


def _relu(x: Real) -> Real:
    return x if _sign(x) > 0 else Fraction(0)


def _log_to(base: int) -> Callable[[Real], Real]:
    return lambda x: divide(log(x), log(Fraction(base)))


ELEMENTWISE: dict[str, Callable[[Real], Real]] = {
    "exp": exp, "log": log, "sqrt": sqrt, "tanh": tanh, "sin": sin, "cos": cos,
    "tan": lambda x: divide(sin(x), cos(x)),
    "abs": absolute, "sigmoid": _sigmoid, "relu": _relu,
    "log2": _log_to(2), "log_2": _log_to(2), "log10": _log_to(10), "log_10": _log_to(10), "log_e": log,
}  # fmt: skip
"""Functions of a number, and of each element of an array."""


def _sign(x: Real) -> int:
    s = sign(x)
    if s is None:
        raise UndecidedError("two numbers are too near to each other to say which is larger")
    return s


def _largest(values: list[Real]) -> Real:
    best = values[0]
    for x in values[1:]:
        best = x if _sign(subtract(x, best)) > 0 else best
    return best


def _softmax(a: Value) -> Value:
    return tuple(softmax(list(a)))


def _logsumexp(a: Value) -> Value:
    return log(total([exp(x) for x in flat(a)]))


def _norm(a: Value) -> Real:
    return sqrt(total([multiply(x, x) for x in flat(a)]))


_ROWS: dict[str, Callable[[Value], Value]] = {
    "softmax": _softmax,
    "logsumexp": _logsumexp,
    "log_softmax": lambda a: tuple(subtract(x, _logsumexp(a)) for x in a),
}
"""Functions of a vector that go along the last axis of a matrix."""
_WHOLE: dict[str, Callable[[list[Real]], Value]] = {
    "sum": total,
    "mean": lambda xs: divide(total(xs), Fraction(len(xs))),
    "max": _largest,
    "min": lambda xs: negative(_largest([negative(x) for x in xs])),
    "norm": lambda xs: _norm(tuple(xs)),
    "norm_1": lambda xs: total([absolute(x) for x in xs]),
    "norm_∞": lambda xs: _largest([absolute(x) for x in xs]),
}
"""Functions of all elements together."""


def of_arrays(name: str, args: list[Value], axis: int = -1) -> Value:
    """The value of a function of arrays; several numbers count as the elements of one.

    Raises
    ------
    GrammarError
        When the function is none that is known.
    ShapeError
        When it takes no array of this shape.

    >>> of_arrays("softmax", [(Fraction(1), Fraction(1))])
    (Fraction(1, 2), Fraction(1, 2))
    """
    base = name.partition("_")[0] if name not in _ROWS and name not in _WHOLE else name
    if base == "softmax":
        axis = 0 if name in ("softmax_col", "softmax_column", "softmax_columns") else axis
    if base in _ROWS:
        whole = arrays.stacked(args) if len(args) > 1 else args[0]
        return _along(_ROWS[base], arrays.squeezed(whole) if shape(whole)[-1:] == (1,) else whole, axis, name)
    if base in _WHOLE:
        return _whole(base, args, axis)
    if base == "array" and len(args) == 1:
        return args[0]
    if base == "transpose" and len(args) == 1:
        return arrays.transposed(args[0])
    if base == "concat":
        return _joined(args)
    if base == "diag" and len(args) == 1 and len(shape(args[0])) == 1:
        n = len(args[0])
        return tuple(tuple(args[0][i] if i == j else Fraction(0) for j in range(n)) for i in range(n))
    if base in ("det", "trace") and len(args) == 1:
        return _of_square(base, args[0])
    raise GrammarError(f"`{name}` of {len(args)} arguments is not computed here")


def _along(f: Callable[[Value], Value], a: Value, axis: int, name: str) -> Value:
    s = shape(a)
    if not s:
        raise ShapeError(f"`{name}` is taken of a vector or of the rows of a matrix, and this is one number")
    if len(s) == 1:
        return f(a)
    if axis in (0, -2) and len(s) == 2:
        return arrays.transposed(tuple(f(c) for c in arrays.transposed(a)))
    return tuple(_along(f, row, -1, name) for row in a)


def _whole(name: str, args: list[Value], axis: int) -> Value:
    if len(args) == 1 and len(shape(args[0])) == 2 and axis in (0, 1):
        rows = args[0] if axis == 1 else arrays.transposed(args[0])
        return tuple(_WHOLE[name](list(r)) for r in rows)
    return _WHOLE[name]([x for a in args for x in flat(a)])


def position_of_largest(a: Value) -> Fraction:
    """Which element of a vector is the largest, counted from 1.

    Raises
    ------
    UndecidedError
        When two are too near to each other.
    """
    best = 0
    for k in range(1, len(a)):
        best = k if _sign(subtract(a[k], a[best])) > 0 else best
    return Fraction(best + 1)


def _of_square(name: str, a: Value) -> Real:
    """The trace or the determinant of a square matrix."""
    n = len(a) if shape(a) else 0
    if shape(a) != (n, n) or n > 6:
        raise ShapeError(f"`{name}` is taken of a square matrix of up to 6 rows")
    return total([a[k][k] for k in range(n)]) if name == "trace" else _determinant(a)


def _determinant(a: Value) -> Real:
    """By the first row."""
    if len(a) == 1:
        return a[0][0]
    minors = [tuple(row[:k] + row[k + 1 :] for row in a[1:]) for k in range(len(a))]
    terms = [multiply(x, _determinant(m)) for x, m in zip(a[0], minors, strict=True) if x != 0]
    signs = [k % 2 for k, x in enumerate(a[0]) if x != 0]
    return total([negative(t) if odd else t for t, odd in zip(terms, signs, strict=True)])


def _joined(args: list[Value]) -> Value:
    """Vectors one after the other; matrices side by side."""
    parts = list(args[0]) if len(args) == 1 and len(shape(args[0])) > 1 and len(shape(args[0])) == 3 else args
    if all(len(shape(p)) == 1 for p in parts):
        return tuple(x for p in parts for x in p)
    if all(len(shape(p)) == 2 for p in parts) and len({len(p) for p in parts}) == 1:
        return tuple(tuple(x for p in parts for x in p[i]) for i in range(len(parts[0])))
    raise ShapeError("only vectors, or matrices with as many rows, are put side by side")
