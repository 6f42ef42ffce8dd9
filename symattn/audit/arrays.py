"""Scalars, vectors and matrices of exact numbers, as pages write them: products, transposes, and what shapes allow.

A value is a number, a tuple of numbers, or a tuple of such tuples. A vector stands for a row or a column, whichever fits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from symattn.audit.reals import multiply, total
from symattn.audit.trees import Real
from symattn.errors import LimitError, ShapeError

Value: TypeAlias = Any
"""A ``Real``, a tuple of them, or a tuple of tuples of them (untyped: tuples nest)."""
LARGEST = 20_000


def shape(a: Value) -> tuple[int, ...]:
    """The lengths: ``()``, ``(n,)`` or ``(n, m)``.

    >>> shape(((1, 2, 3), (4, 5, 6)))
    (2, 3)
    """
    return (len(a), *shape(a[0])) if isinstance(a, tuple) else ()


def size(a: Value) -> int:
    """The number of elements."""
    return sum(map(size, a)) if isinstance(a, tuple) else 1


def flat(a: Value) -> list[Real]:
    """The elements in order."""
    return [x for part in a for x in flat(part)] if isinstance(a, tuple) else [a]


def stacked(items: Sequence[Value], shown: object = None) -> Value:
    """A vector of numbers, or a matrix of vectors.

    Raises
    ------
    ShapeError
        When the items have unequal shapes.
    """
    shapes = {shape(x) for x in items}
    if len(shapes) != 1:
        lengths = ", ".join(sorted({"x".join(map(str, s)) or "a number" for s in shapes}))
        raise ShapeError(f"the rows of an array differ in length: {lengths}")
    if len(next(iter(shapes))) > 2:
        raise ShapeError("arrays of more than three axes are not computed here")
    if len(items) * size(items[0]) > LARGEST:
        raise LimitError(f"an array of more than {LARGEST} elements")
    return tuple(items)


def mapped(f: Callable[[Real], Real], a: Value) -> Value:
    """A function of each element."""
    return tuple(mapped(f, x) for x in a) if isinstance(a, tuple) else f(a)


def combined(f: Callable[..., Real], *values: Value) -> Value:
    """A function of the elements at each place of values of one shape."""
    if isinstance(values[0], tuple):
        return tuple(combined(f, *parts) for parts in zip(*values, strict=True))
    return f(*values)


def broadcast(f: Callable[[Real, Real], Real], a: Value, b: Value) -> Value:
    """A function of two values, element by element; a number or a row goes with every element or row.

    Raises
    ------
    ShapeError
        When the shapes do not fit.
    """
    sa, sb = shape(a), shape(b)
    if sa == sb:
        return combined(f, a, b)
    if not sb:
        return mapped(lambda x: f(x, b), a)
    if not sa:
        return mapped(lambda y: f(a, y), b)
    if sa == sb[1:]:
        return tuple(broadcast(f, a, row) for row in b)
    if sb == sa[1:]:
        return tuple(broadcast(f, row, b) for row in a)
    if len(sa) == len(sb) == 2 and sa[0] == sb[0] and 1 in (sa[1], sb[1]):
        return tuple(broadcast(f, x[0] if sa[1] == 1 else x, y[0] if sb[1] == 1 else y) for x, y in zip(a, b, strict=True))
    if squeezed(a) is not a or squeezed(b) is not b:
        return broadcast(f, squeezed(a), squeezed(b))
    raise ShapeError(f"shapes {_shown(sa)} and {_shown(sb)} do not fit each other")


def squeezed(a: Value) -> Value:
    """The value without axes of length 1: a column is a vector, one element a number.

    >>> squeezed(((1,), (2,))), squeezed(((5,),)), squeezed(((1, 2),))
    ((1, 2), 5, (1, 2))
    """
    if not isinstance(a, tuple):
        return a
    if len(a) == 1:
        return squeezed(a[0])
    return tuple(x[0] for x in a) if all(isinstance(x, tuple) and len(x) == 1 for x in a) else a


def transposed(a: Value) -> Value:
    """The transpose; a vector stays one."""
    if len(shape(a)) < 2:
        return a
    if len(shape(a)) == 3:
        return tuple(map(transposed, a))
    return tuple(zip(*a, strict=True))


def product(a: Value, b: Value) -> Value:
    """The product of vectors and matrices: two vectors, or two columns, give their scalar product.

    Raises
    ------
    ShapeError
        When the lengths do not fit.

    >>> from fractions import Fraction as F
    >>> product((F(1), F(2)), ((F(1), F(0)), (F(0), F(3))))
    (Fraction(1, 1), Fraction(6, 1))
    """
    sa, sb = shape(a), shape(b)
    if len(sa) == len(sb) == 1 and sa == sb:
        return _dot(a, b)
    if len(sa) == 1 and len(sb) == 2 and sa[0] == sb[0]:
        return tuple(_dot(a, column) for column in zip(*b, strict=True))
    if len(sa) == 2 and len(sb) == 1 and sa[1] == sb[0]:
        return tuple(_dot(row, b) for row in a)
    if len(sa) == len(sb) == 2 and sa[1] == sb[0]:
        columns = tuple(zip(*b, strict=True))
        return tuple(tuple(_dot(row, column) for column in columns) for row in a)
    if sa == sb and 1 in sa:
        return _dot(tuple(flat(a)), tuple(flat(b)))
    if len(sa) == len(sb) == 3 and sa[0] == sb[0]:
        return tuple(product(x, y) for x, y in zip(a, b, strict=True))
    flat_a, flat_b = squeezed(a), squeezed(b)
    if shape(flat_a) != sa or shape(flat_b) != sb:
        return broadcast(multiply, flat_a, flat_b) if () in (shape(flat_a), shape(flat_b)) else product(flat_a, flat_b)
    raise ShapeError(f"there is no product of shapes {_shown(sa)} and {_shown(sb)}")


def product_steps(sa: tuple[int, ...], sb: tuple[int, ...]) -> int:
    """About how many multiplications a product takes."""
    out = 1
    for n in sa:
        out *= n
    return out * (sb[-1] if len(sb) > 1 else 1)


def outer(a: Value, b: Value) -> Value:
    """The matrix of all products of an element of one with an element of the other."""
    return tuple(tuple(multiply(x, y) for y in flat(b)) for x in flat(a))


def _dot(a: Sequence[Real], b: Sequence[Real]) -> Real:
    return total([multiply(x, y) for x, y in zip(a, b, strict=True)])


def element(a: Value, at: tuple[int, ...]) -> Value:
    """A part of a value by whole numbers that count from 1.

    Raises
    ------
    ShapeError
        When there is none.
    """
    for k in at:
        if not isinstance(a, tuple) or not 1 <= k <= len(a):
            raise ShapeError(f"there is no element {','.join(map(str, at))}")
        a = a[k - 1]
    return a


def _shown(s: tuple[int, ...]) -> str:
    return " x ".join(map(str, s)) if len(s) > 1 else f"{s[0]} elements" if s else "of a number"
