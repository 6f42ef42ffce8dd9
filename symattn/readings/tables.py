"""A number type as a table: scalar functions by name, plus a matrix product. The evaluator knows numbers by nothing else.

The names that printed code uses (``code.py``) are: ``rational pi infinity not_a_number div power sqrt exp log tanh sinh cosh
sin cos erf sigmoid absolute sign step maximum minimum floor_div ceiling mod piecewise less less_equal equal negation conjunction
disjunction whole``. Conditions are three-valued: True, False, and None where the numbers do not decide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from symattn.errors import UndecidedError
from symattn.numbers import Exact
from symattn.readings.code import Namespace

Objects = npt.NDArray[Any]
Decision = bool | None


@dataclass(frozen=True, eq=False)
class NumberTable:
    """One number type.

    Parameters
    ----------
    namespace
        Scalar functions by the names above.
    number
        An exact number (``symattn.numbers``) as a number of this type, rounded once.
    add, multiply, largest
        The sum, product and maximum of one or more numbers.
    matmul
        The product of two object matrices of finite numbers.
    finite
        Whether a number is neither NaN nor infinite (nor a ball that may be).
    integer
        The integer that a number is, or None.
    nan, negative_infinity
        The special values; NaN is also what is undefined, harmless until something reads it.
    settle
        What a ``range_only`` number becomes before others read it: any exact number near it.
    or_nothing
        A number type that holds sets gives the set of a term and 0, for a term of a sum of which it is not decided whether it is
        there; None: an error there.
    """

    namespace: Namespace
    number: Callable[[Exact], Any]
    add: Callable[[Sequence[Any]], Any]
    multiply: Callable[[Sequence[Any]], Any]
    largest: Callable[[Sequence[Any]], Any]
    matmul: Callable[[Objects, Objects], Objects]
    finite: Callable[[Any], bool]
    integer: Callable[[Any], int | None]
    nan: Any
    negative_infinity: Any
    settle: Callable[[Any], Any] = lambda x: x
    or_nothing: Callable[[Any], Any] | None = None


def negation(a: Decision) -> Decision:
    """Not, three-valued."""
    return None if a is None else not a


def conjunction(*args: Decision) -> Decision:
    """And, three-valued: False as soon as one is False, else undecided as soon as one is.

    >>> conjunction(True, None), conjunction(False, None)
    (None, False)
    """
    return False if any(a is False for a in args) else None if any(a is None for a in args) else True


def disjunction(*args: Decision) -> Decision:
    """Or, three-valued.

    >>> disjunction(True, None), disjunction(False, None)
    (True, None)
    """
    return negation(conjunction(*map(negation, args)))


def piecewise_of(nan: Any) -> Callable[..., Any]:
    """Piecewise for scalars: the first branch whose condition holds, the others not evaluated; NaN where none does.

    Raises
    ------
    UndecidedError
        When the numbers do not decide a condition that comes before.
    """

    def piecewise(*branches: tuple[Callable[[], Any], Callable[[], Decision]]) -> Any:
        for value, condition in branches:
            holds = condition()
            if holds is None:
                raise UndecidedError("the branch of a Piecewise is not decided at this precision; more bits may decide it")
            if holds:
                return value()
        return nan

    return piecewise


LOGIC: dict[str, Callable[..., Any]] = {"negation": negation, "conjunction": conjunction, "disjunction": disjunction}


def product_by_rows(dot: Callable[[Sequence[Any], Sequence[Any]], Any]) -> Callable[[Objects, Objects], Objects]:
    """A matrix product from a dot product of two lists."""

    def matmul(a: Objects, b: Objects) -> Objects:
        columns = b.T.tolist()
        out = np.empty((a.shape[0], b.shape[1]), dtype=object)
        for r, row in enumerate(a.tolist()):
            out[r] = [dot(row, column) for column in columns]
        return out

    return matmul
