"""The code printer: a scalar SymPy expression to a Python function over one table of functions.

Every number type is bound by this one route: the printer writes functions by bare name and constants as arguments, and a
table (``tables.py``) says what the names mean. No module name and no name that a user chose ever reaches the code.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import sympy as sp
from sympy.printing.printer import Printer

from symattn.errors import ProgramError

SMALL = 256
"""Integers up to this size are exact in every float format in use (bfloat16 holds eight bits) and are written as literals."""

_FUNCTIONS = ("exp", "log", "tanh", "sinh", "cosh", "sin", "cos", "erf", "sigmoid", "sign", "ceiling")


class ScalarPrinter(Printer):
    """Prints a scalar expression as Python, with reads and indices renamed and numbers taken out as constants.

    Parameters
    ----------
    names
        Read, index or size -> the name that it has in the code.
    hoist
        Whether each maximal numeric part is one named constant (listed in ``constants``); otherwise numbers are built in place.
    """

    printmethod = "_symattn_code"

    def __init__(self, names: Mapping[sp.Basic, str], hoist: bool = True) -> None:
        super().__init__()
        self._names = dict(names)
        self._hoist = hoist
        self.constants: list[sp.Expr] = []

    def _print(self, expr: sp.Basic, **kwargs: Any) -> str:
        if expr in self._names:
            return self._names[expr]
        if self._hoist and isinstance(expr, sp.Expr) and expr.is_number:
            return self._constant(expr)
        return super()._print(expr, **kwargs)

    def _constant(self, e: sp.Expr) -> str:
        if e not in self.constants:
            self.constants.append(e)
        return f"k{self.constants.index(e)}"

    def _factor(self, e: sp.Basic) -> str:
        """An operand beside others: small integers are literals, which no number type promotes."""
        return f"({int(e)})" if isinstance(e, sp.Integer) and abs(e) <= SMALL and self._hoist else self._print(e)

    def emptyPrinter(self, expr: object) -> str:
        """What SymPy calls for an object without a rule here."""
        raise ProgramError(f"no reading evaluates {type(expr).__name__} in `{expr}`; allowed are + - * / powers and {_KNOWN}")

    def _print_Integer(self, e: sp.Integer) -> str:
        return f"rational({int(e)}, 1)"

    def _print_Rational(self, e: sp.Rational) -> str:
        return f"rational({int(e.p)}, {int(e.q)})"

    def _print_Float(self, e: sp.Float) -> str:
        return self._print_Rational(sp.Rational(e))

    def _print_Pi(self, e: sp.Expr) -> str:
        return "pi()"

    def _print_Exp1(self, e: sp.Expr) -> str:
        return "exp(rational(1, 1))"

    def _print_Infinity(self, e: sp.Expr) -> str:
        return "infinity(1)"

    def _print_NegativeInfinity(self, e: sp.Expr) -> str:
        return "infinity(-1)"

    def _print_NaN(self, e: sp.Expr) -> str:
        return "not_a_number()"

    _print_ComplexInfinity = _print_NaN

    def _print_Add(self, e: sp.Add) -> str:
        out = ""
        for a in e.args:
            minus = a not in self._names and isinstance(a, sp.Mul) and a.args[0] is sp.S.NegativeOne
            text = self._print_Mul(sp.Mul(*a.args[1:], evaluate=False)) if minus else self._factor(a)
            out = (f"(-{text})" if minus else text) if not out else f"{out} {'-' if minus else '+'} {text}"
        return f"({out})"

    def _print_Mul(self, e: sp.Mul) -> str:
        numbers = [a for a in sp.Mul.make_args(e) if self._hoist and a.is_number]
        above: list[str] = []
        below: list[str] = []
        sign = ""
        if numbers:
            c = sp.Mul(*numbers) if len(numbers) > 1 else numbers[0]
            if c is sp.S.NegativeOne:
                sign = "-"
            elif c is not sp.S.One:
                above.append(self._factor(c))
        for a in sp.Mul.make_args(e):
            if a in numbers:
                continue
            if isinstance(a, sp.Pow) and a.exp.is_Rational and a.exp.is_negative and a not in self._names:
                below.append(self._print_power(a.base, -a.exp))
            else:
                above.append(self._print(a))
        text = "*".join(above) if above else "1"
        if below:
            text = f"div({text}, {'*'.join(below)})"
        return f"({sign}{text})" if sign or len(above) > 1 else text

    def _print_Pow(self, e: sp.Pow) -> str:
        if e.base is sp.E:
            return f"exp({self._print(e.exp)})"
        if e.exp.is_Rational and e.exp.is_negative:
            return f"div(1, {self._print_power(e.base, -e.exp)})"
        return self._print_power(e.base, e.exp)

    def _print_power(self, base: sp.Expr, exponent: sp.Expr) -> str:
        b = self._print(base)
        if exponent.is_Integer and 0 < exponent <= SMALL:
            return b if exponent == 1 else f"whole({b}, {int(exponent)})"
        if exponent.is_Rational and exponent.q == 2 and 0 < exponent.p <= SMALL:
            return f"sqrt({b})" if exponent.p == 1 else f"whole(sqrt({b}), {int(exponent.p)})"
        return f"power({b}, {self._print(exponent)})"

    def _call(self, name: str, *args: sp.Basic) -> str:
        return f"{name}({', '.join(self._print(a) for a in args)})"

    def _print_Function(self, e: sp.Function) -> str:
        name = type(e).__name__
        if name in _FUNCTIONS and len(e.args) == 1:
            return self._call(name, *e.args)
        return self.emptyPrinter(e)

    def _print_Abs(self, e: sp.Expr) -> str:
        return self._call("absolute", *e.args)

    def _print_Max(self, e: sp.Expr) -> str:
        return self._call("maximum", *e.args)

    def _print_Min(self, e: sp.Expr) -> str:
        return self._call("minimum", *e.args)

    def _print_Mod(self, e: sp.Expr) -> str:
        return self._call("mod", *e.args)

    def _print_floor(self, e: sp.Expr) -> str:
        return self._call("floor_div", *e.args[0].as_numer_denom())

    def _print_Heaviside(self, e: sp.Expr) -> str:
        return f"step({self._print(e.args[0])}, {self._print(e.args[1])})"

    def _print_Piecewise(self, e: sp.Piecewise) -> str:
        """Branches are functions without arguments: one that is not taken is not evaluated, where the table can do so."""
        return "piecewise(" + ", ".join(f"(lambda: {self._print(v)}, lambda: {self._print(c)})" for v, c in e.args) + ")"

    def _print_BooleanTrue(self, e: sp.Basic) -> str:
        return "True"

    def _print_BooleanFalse(self, e: sp.Basic) -> str:
        return "False"

    def _print_Not(self, e: sp.Basic) -> str:
        return self._call("negation", *e.args)

    def _print_And(self, e: sp.Basic) -> str:
        return self._call("conjunction", *e.args)

    def _print_Or(self, e: sp.Basic) -> str:
        return self._call("disjunction", *e.args)

    def _print_Relational(self, e: sp.core.relational.Relational) -> str:
        a, b = self._print(e.lhs), self._print(e.rhs)
        return {
            sp.Lt: f"less({a}, {b})",
            sp.Gt: f"less({b}, {a})",
            sp.Le: f"less_equal({a}, {b})",
            sp.Ge: f"less_equal({b}, {a})",
            sp.Eq: f"equal({a}, {b})",
            sp.Ne: f"negation(equal({a}, {b}))",
        }[type(e)]


_KNOWN = ", ".join((*_FUNCTIONS, "Abs", "Max", "Min", "Mod", "floor", "Piecewise", "Heaviside"))

Functions = Mapping[str, Callable[..., Any]]


class Namespace:
    """What the names in printed code mean; hashable by identity, so that a compiled function is kept with it.

    ``whole``, the power with a positive integer, is Python's where a table does not say otherwise.
    """

    def __init__(self, functions: Functions) -> None:
        self.functions = {"whole": operator.pow, **functions}


@lru_cache(maxsize=2048)
def compiled(expr: sp.Basic, args: tuple[sp.Basic, ...], namespace: Namespace) -> tuple[Callable[..., Any], tuple[sp.Expr, ...]]:
    """The Python function of an expression, and the exact constants that it takes before its arguments.

    >>> import math
    >>> x = sp.Symbol("x", real=True)
    >>> f, constants = compiled(sp.exp(x) * sp.sqrt(3) / 3, (x,), Namespace({"exp": math.exp}))
    >>> constants, f(2, 0)
    ((sqrt(3)/3,), 2.0)
    """
    names = {a: f"x{k}" for k, a in enumerate(args)}
    printer = ScalarPrinter(names)
    code = printer.doprint(expr)
    constants = tuple(printer.constants)
    takes = [sp.Symbol(f"k{k}") for k in range(len(constants))] + [sp.Symbol(v) for v in names.values()]
    return _bind(takes, code, namespace), constants


def constant(expr: sp.Expr, namespace: Namespace) -> Any:
    """The value of a numeric expression in a table, each integer and fraction made from its exact text.

    The code is kept, the value is not: it depends on the precision in use.
    """
    return _constant(expr, namespace)()


@lru_cache(maxsize=2048)
def _constant(expr: sp.Expr, namespace: Namespace) -> Callable[[], Any]:
    return _bind([], ScalarPrinter({}, hoist=False).doprint(expr), namespace)


def _bind(takes: list[sp.Symbol], code: str, namespace: Namespace) -> Callable[..., Any]:
    """Let SymPy bind printed code to a table; the expression is in ``code`` already, so that only our names reach it."""
    return sp.lambdify(takes, sp.S.Zero, modules=[namespace.functions], printer=lambda _: code, docstring_limit=0)
