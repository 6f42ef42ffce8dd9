"""Any precision by mpmath in a private context: the witness that shares no number code with balls or SymPy."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import mpmath
import sympy as sp

from symattn.numbers import Exact
from symattn.program import Program
from symattn.readings.code import Namespace, constant
from symattn.readings.evaluate import evaluate_over
from symattn.readings.limits import checked_digits
from symattn.readings.tables import LOGIC, NumberTable, Objects, piecewise_of, product_by_rows

GUARD = 10
"""Digits beyond those asked for; a chain of well conditioned steps loses far fewer."""


def evaluate(
    program: Program, inputs: Mapping[str, object], *, sizes: Mapping[sp.Symbol | str, int] | None = None, digits: int = 50
) -> dict[str, Objects]:
    """Every tensor of a program as mpmath numbers.

    Parameters
    ----------
    program
        Any program.
    inputs
        Arrays of exact numbers: floats are the dyadic rationals that they are, text is read exactly.
    sizes
        Sizes that no input shows.
    digits
        Decimal digits; the arithmetic carries ten more. No radius is proved: that is what balls are for.

    Returns
    -------
    dict
        Object arrays of ``mpf`` of a private context; ``mpmath.mp`` is neither read nor changed.

    Raises
    ------
    DefinitionError, LimitError
        For digits that are no integer from 1 to 100000.

    >>> from symattn.program import Statement, indices, size, tensor
    >>> i, = indices("i")
    >>> p = Program((Statement(tensor("y", i), sp.exp(tensor("x", i)) / 3),), {i: size("n")}, ("y",))
    >>> mpmath.nstr(evaluate(p, {"x": ["0.1"]}, digits=30)["y"][0], 30)
    '0.368390306025215874937235942163'
    """
    return evaluate_over(program, inputs, table(checked_digits(digits)), sizes)


def table(digits: int) -> NumberTable:
    """The number type of so many digits: one context a thread, since mpmath's functions raise its precision as they run."""
    return _table(digits, threading.get_ident())


@lru_cache(maxsize=32)
def _table(digits: int, thread: int) -> NumberTable:
    ctx = mpmath.MPContext()
    ctx.dps = digits + GUARD
    mpf, nan = ctx.mpf, ctx.nan

    def number(x: Exact) -> Any:
        if isinstance(x, float):
            return mpf(x)
        if isinstance(x, sp.Basic):
            return constant(x, namespace)
        return mpf(x) if isinstance(x, int) else mpf(x.numerator) / x.denominator

    def div(a: Any, b: Any) -> Any:
        return nan if b == 0 else a / b

    def real(f: Callable[..., Any]) -> Callable[..., Any]:
        """The function on the reals: NaN where mpmath goes on to complex numbers."""

        def g(*x: Any) -> Any:
            y = f(*x)
            return nan if isinstance(y, ctx.mpc) else y

        return g

    def power(a: Any, b: Any) -> Any:
        return nan if a == 0 and b < 0 else ctx.power(a, b)

    def compare(f: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
        return lambda a, b: bool(f(a, b))

    def extreme(pick: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *x: nan if any(map(ctx.isnan, x)) else pick(x)

    def odd(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """A function with the limits -1 and 1, which mpmath does not know for all."""
        return lambda x: mpf(ctx.sign(x)) if ctx.isinf(x) else f(x)

    def floor(x: Any) -> Any:
        return ctx.floor(x) if ctx.isfinite(x) else x

    def wave(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda x: nan if ctx.isinf(x) else f(x)

    namespace = Namespace(
        {
            "rational": lambda p, q: mpf(p) / q,
            "pi": lambda: +ctx.pi,
            "infinity": lambda s: mpf(s * math.inf),
            "not_a_number": lambda: nan,
            "div": div,
            "power": real(power),
            "sqrt": real(ctx.sqrt),
            "exp": ctx.exp,
            "log": real(ctx.log),
            "tanh": odd(ctx.tanh),
            "sinh": ctx.sinh,
            "cosh": ctx.cosh,
            "sin": wave(ctx.sin),
            "cos": wave(ctx.cos),
            "erf": odd(ctx.erf),
            "sigmoid": lambda x: 1 / (1 + ctx.exp(-x)),
            "absolute": abs,
            "sign": lambda x: x if ctx.isnan(x) else mpf(ctx.sign(x)),
            "step": lambda x, at_zero: x if ctx.isnan(x) else at_zero if x == 0 else mpf(int(x > 0)),
            "maximum": extreme(max),
            "minimum": extreme(min),
            "floor_div": lambda a, b: floor(div(a, b)),
            "ceiling": lambda x: -floor(-x),
            "mod": lambda a, b: a - b * floor(div(a, b)),
            "piecewise": piecewise_of(nan),
            "less": compare(lambda a, b: a < b),
            "less_equal": compare(lambda a, b: a <= b),
            "equal": compare(lambda a, b: a == b),
            **LOGIC,
        }
    )

    def integer(x: Any) -> int | None:
        return int(x) if ctx.isint(x) else None

    def product(values: Sequence[Any]) -> Any:
        return ctx.fprod(values)

    return NumberTable(
        namespace=namespace,
        number=number,
        add=lambda values: sum(values[1:], values[0]) if not all(map(ctx.isfinite, values)) else ctx.fsum(values),
        multiply=product,
        largest=lambda values: extreme(max)(*values),
        matmul=product_by_rows(ctx.fdot),
        finite=lambda x: bool(ctx.isfinite(x)),
        integer=integer,
        nan=nan,
        negative_infinity=ctx.ninf,
    )
