"""The walk over the syntax tree of a score, a mask, a scale or a frequency: each node becomes SymPy or is refused with its place.

What is allowed stands in the tables of this module; :mod:`symattn.grammar` says the same in words and holds the functions that
read a text.
"""

from __future__ import annotations

import ast
import keyword
import warnings
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import sympy as sp
from sympy.core.evalf import PrecisionExhausted

from symattn.errors import GrammarError, LimitError
from symattn.functions import sigmoid
from symattn.grammartext import bracketed_comparisons, check_text, where_in
from symattn.indexed import index, tensor

MAX_NODES = 400
MAX_EXPONENT = 1000
MAX_BITS = 4096
MAX_MAGNITUDE = 100
"""Numerators and denominators of constants go up to ten to this power, however they are written."""
TOO_LARGE = f"this number is too large: numerators and denominators go up to 10**{MAX_MAGNITUDE}"
ENTRIES = ("i", "j", "ij", "bi", "bj", "bij")
"""The subscripts that a given array may have."""

FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "exp": sp.exp,
    "log": sp.log,
    "sqrt": sp.sqrt,
    "tanh": sp.tanh,
    "sin": sp.sin,
    "cos": sp.cos,
    "abs": sp.Abs,
    "min": sp.Min,
    "max": sp.Max,
    "sigmoid": sigmoid,
    "floor": sp.floor,
    "erf": sp.erf,
}
NUMBERS: Mapping[str, str] = {
    **dict.fromkeys(("nan", "NaN", "inf", "Inf", "infinity", "oo"), "it is no number that is finite"),
    "pi": "it is the number pi",
    "e": "it looks like the number e; write exp(1) for that, and another name for a parameter",
}
"""Names that a reader takes for a number, and why none of them names a parameter."""
OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: sp.floor(a / b),
    ast.Mod: lambda a, b: a - b * sp.floor(a / b),
    ast.Pow: lambda a, b: a**b,
}
COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: sp.Lt,
    ast.LtE: sp.Le,
    ast.Gt: sp.Gt,
    ast.GtE: sp.Ge,
    ast.Eq: sp.Eq,
    ast.NotEq: sp.Ne,
}


class Reader:
    """One text of a kind (``score``, ``mask``, ``scale``, ``frequency``), the names it may use, and the walk over its tree."""

    def __init__(self, text: str, names: Mapping[str, sp.Expr], kind: str) -> None:
        self.kind, self.names = kind, names
        self.arrays: dict[str, str] = {}
        check_text(text, kind)
        self.text = text.strip()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.tree = ast.parse(self.text, mode="eval").body
        except SyntaxError as e:
            column = max((e.offset or 1) - 1, 0) if (e.lineno or 1) == 1 else len(self.text)
            raise GrammarError(f"this {kind} is not well formed ({e.msg}){where_in(self.text, column)}") from None
        except (ValueError, MemoryError, RecursionError):
            raise LimitError(f"this {kind} is nested too deeply to be read") from None
        if sum(1 for _ in ast.walk(self.tree)) > MAX_NODES:
            raise LimitError(f"this {kind} has more than {MAX_NODES} parts")

    def refuse(self, node: ast.AST, why: str) -> GrammarError:
        """The error that shows a node as what is outside the grammar."""
        return GrammarError(f"{why}{where_in(self.text, self.place(node))}")

    def limit(self, node: ast.AST, why: str) -> LimitError:
        """The error that shows a node as what is too large."""
        return LimitError(f"{why}{where_in(self.text, self.place(node))}")

    def place(self, node: ast.AST) -> int:
        """The column of a node; of an operation that of its operator."""
        left = node.left if isinstance(node, (ast.BinOp, ast.Compare)) else None
        column = int(getattr(node, "col_offset", 0) if left is None else left.end_col_offset or 0)
        while left is not None and column < len(self.text) - 1 and self.text[column] in " )":
            column += 1
        return column

    def value(self) -> sp.Expr:
        """The number that the text writes."""
        return self.number(self.tree)

    def condition(self) -> sp.Basic:
        """The condition that the text writes."""
        return self.truth(self.tree)

    def number(self, node: ast.expr) -> sp.Expr:
        """A node that must be a number."""
        if isinstance(node, ast.Constant):
            return self.constant(node)
        if isinstance(node, ast.Name):
            return self.name(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            inner = self.number(node.operand)
            return -inner if isinstance(node.op, ast.USub) else inner
        if isinstance(node, ast.BinOp):
            return self.binary(node)
        if isinstance(node, ast.Call):
            return self.call(node)
        if isinstance(node, ast.Subscript):
            return self.entry(node)
        if isinstance(node, (ast.Compare, ast.BoolOp)) or (
            isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.Invert))
        ):
            if self.kind == "mask":
                raise self.refuse(node, "a number is needed here, this is a condition")
            raise self.refuse(node, f"a {self.kind} is a number and this is a condition: conditions belong in the mask")
        if isinstance(node, ast.IfExp):
            raise self.refuse(node, "`if` is not part of the grammar: put the condition into the mask, or use min and max")
        raise self.refuse(node, f"{_called(node)} is not part of the grammar of a {self.kind}")

    def constant(self, node: ast.Constant) -> sp.Expr:
        """A number as it is written: 0.1 is 1/10."""
        if type(node.value) not in (int, float):
            raise self.refuse(node, f"{_called(node)} is not part of the grammar of a {self.kind}")
        literal = (ast.get_source_segment(self.text, node) or "").replace("_", "").lower()
        mantissa, _, exponent = (literal, "", "") if literal[:2] in ("0x", "0b", "0o") else literal.partition("e")
        if len(exponent) > 6 or abs(int(exponent or 0)) > MAX_EXPONENT:
            raise self.limit(node, TOO_LARGE)
        exact = (
            Fraction(int(literal, 0)) if isinstance(node.value, int) else Fraction(mantissa) * Fraction(10) ** int(exponent or 0)
        )
        return self.checked(node, sp.Rational(exact.numerator, exact.denominator))

    def name(self, node: ast.Name) -> sp.Expr:
        """What a name stands for: a known one, the number pi, or a parameter."""
        known = self.names.get(node.id)
        if known is not None:
            return known
        if node.id == "pi":
            return sp.pi
        if node.id == "s":
            raise self.refuse(node, f"a {self.kind} cannot read the score s")
        if node.id in FUNCTIONS:
            raise self.refuse(node, f"{node.id} is a function: write {node.id}(...)")
        return sp.Symbol(check_parameter(node.id, lambda why: self.refuse(node, why)), real=True)

    def entry(self, node: ast.Subscript) -> sp.Expr:
        """An entry of a given array: ``name[i]``, ``name[j]``, ``name[i, j]``, each also with ``b`` before."""
        if self.kind not in ("score", "mask"):
            raise self.refuse(node, f"a {self.kind} reads no arrays")
        if not isinstance(node.value, ast.Name):
            raise self.refuse(node, "a subscript belongs to the name of an array, as in name[i]")
        at = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        axes = "".join(a.id if isinstance(a, ast.Name) and len(a.id) == 1 else "?" for a in at)
        if axes not in ENTRIES:
            raise self.refuse(node, "the subscripts of an array are [i], [j] or [i, j], and b may stand first")
        name = node.value.id
        if name in self.names or name in FUNCTIONS or name in ("s", "pi"):
            raise self.refuse(node, f"{name} has a meaning of its own and cannot name an array")
        earlier = self.arrays.setdefault(check_parameter(name, lambda why: self.refuse(node, why)), axes)
        if earlier != axes:
            raise self.refuse(
                node, f"{name} is read as {name}[{', '.join(earlier)}] too: queries and keys have arrays of their own"
            )
        return tensor(name, *map(index, axes))

    def binary(self, node: ast.BinOp) -> sp.Expr:
        """Two numbers and the operation between them."""
        if isinstance(node.op, (ast.BitAnd, ast.BitOr)):
            raise self.refuse(node, self.bitwise_advice(node))
        if isinstance(node.op, ast.BitXor):
            raise self.refuse(node, "`^` is not a power here: write ** (as in 2**-3)")
        operator = OPERATORS.get(type(node.op))
        if operator is None:
            raise self.refuse(node, f"the operator {type(node.op).__name__} is not part of the grammar")
        a, b = self.number(node.left), self.number(node.right)
        if isinstance(node.op, ast.Pow):
            self.check_power(node, a, b)
        if isinstance(node.op, (ast.FloorDiv, ast.Mod)) and b == 0:
            raise self.refuse(node, "a division by zero")
        return self.checked(node, operator(a, b))

    def check_power(self, node: ast.BinOp, a: sp.Expr, b: sp.Expr) -> None:
        """Refuse a power whose exact value would be out of hand."""
        bits = max(int(a.p).bit_length(), int(a.q).bit_length()) if a.is_Rational else 1
        if b.is_number and (abs(b) > MAX_EXPONENT or bits * abs(b) > MAX_BITS) is not sp.false and a not in (0, 1, -1):
            raise self.limit(node, f"this power is too large: exponents go up to {MAX_EXPONENT}")

    def call(self, node: ast.Call) -> sp.Expr:
        """A function of the table, of its number of arguments."""
        if not isinstance(node.func, ast.Name):
            raise self.refuse(node, "only the functions of the grammar may be called")
        if node.func.id not in FUNCTIONS:
            known = ", ".join(FUNCTIONS)
            raise self.refuse(node, f"{node.func.id!r} is no function of the grammar (known: {known})")
        many = node.func.id in ("min", "max")
        plain = not node.keywords and not any(isinstance(a, ast.Starred) for a in node.args)
        if not plain or (len(node.args) < 2 if many else len(node.args) != 1):
            raise self.refuse(node, f"{node.func.id} takes {'two or more numbers' if many else 'one number'}")
        arguments = [self.number(a) for a in node.args]
        if node.func.id == "exp" and arguments[0].is_number and abs(sp.N(arguments[0])) > 3 * MAX_MAGNITUDE:
            raise self.limit(node, TOO_LARGE)
        try:
            return self.checked(node, FUNCTIONS[node.func.id](*arguments))
        except PrecisionExhausted:
            raise self.limit(node, "this number cannot be told apart from an integer") from None

    def checked(self, node: ast.expr, value: sp.Expr) -> sp.Expr:
        """A finite real value of bounded size, or an error."""
        if value.has(sp.zoo, sp.nan, sp.oo, -sp.oo):
            raise self.refuse(node, "a division by zero, or the logarithm of zero")
        if value.has(sp.I) or value.is_real is False:
            raise self.refuse(node, "this is not a real number")
        for power in value.atoms(sp.Pow):
            if power.exp.is_number and abs(power.exp) > MAX_EXPONENT:
                raise self.limit(node, f"this power is too large: exponents go up to {MAX_EXPONENT}")
        if too_large(value) or (value.is_number and abs(sp.N(value)) > sp.Float(10) ** MAX_MAGNITUDE):
            raise self.limit(node, TOO_LARGE)
        return value

    def truth(self, node: ast.expr) -> sp.Basic:
        """A node that must be a condition."""
        if isinstance(node, ast.Compare):
            return self.comparison(node)
        if isinstance(node, ast.BoolOp):
            parts = [self.truth(v) for v in node.values]
            return sp.And(*parts) if isinstance(node.op, ast.And) else sp.Or(*parts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.Invert)):
            if isinstance(node.op, ast.Invert) and not _is_condition(node.operand):
                raise self.refuse(node, "`~` takes a parenthesised comparison, as in ~(j <= i); or write `not`")
            return sp.to_nnf(sp.Not(self.truth(node.operand)), simplify=False)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr)):
            if not (_is_condition(node.left) and _is_condition(node.right)):
                raise self.refuse(node, self.bitwise_advice(node))
            a, b = self.truth(node.left), self.truth(node.right)
            return sp.And(a, b) if isinstance(node.op, ast.BitAnd) else sp.Or(a, b)
        if isinstance(node, ast.Constant) and isinstance(node.value, bool):
            return sp.true if node.value else sp.false
        self.number(node)  # an error of its own for what is outside the grammar altogether
        raise self.refuse(node, "a mask is a condition such as `j <= i`, and this is a number")

    def comparison(self, node: ast.Compare) -> sp.Basic:
        """A chain of comparisons, each between its two neighbours."""
        sides = [node.left, *node.comparators]
        for side in sides:
            if isinstance(side, ast.BinOp) and isinstance(side.op, (ast.BitAnd, ast.BitOr)):
                raise self.refuse(side, self.bitwise_advice(side))
        values, parts = [self.number(x) for x in sides], []
        for operator, a, b in zip(node.ops, values, values[1:], strict=False):
            compare = COMPARISONS.get(type(operator))
            if compare is None:
                raise self.refuse(node, f"{_called(operator)} is not part of the grammar")
            parts.append(compare(a, b))
        return sp.And(*parts)

    def bitwise_advice(self, node: ast.BinOp) -> str:
        """What to write in place of ``&`` or ``|``."""
        sign, word = ("&", "and") if isinstance(node.op, ast.BitAnd) else ("|", "or")
        if self.kind != "mask":
            return f"`{sign}` joins conditions, and a {self.kind} is a number"
        shown = bracketed_comparisons(self.text, node.left.end_col_offset or 0)
        return f"`{sign}` binds tighter than a comparison: write `{shown}`, or `{word}` in place of `{sign}`"


def too_large(expr: sp.Basic) -> bool:
    """Whether an expression holds a rational number beyond the limit; its text would not be read again.

    >>> too_large(sp.Symbol("s") * 10**100), too_large(sp.Symbol("s") / 10**101)
    (False, True)
    """
    return any(max(abs(int(x.p)), int(x.q)) > 10**MAX_MAGNITUDE for x in expr.atoms(sp.Rational))


def check_parameter(name: str, refuse: Callable[[str], Exception] = GrammarError) -> str:
    """The name of a parameter: letters, digits and single underscores; anything else is refused."""
    if not (name.isascii() and name.isidentifier()) or keyword.iskeyword(name):
        raise refuse(f"{name!r} cannot be the name of a parameter")
    if name.startswith("_") or "__" in name:
        raise refuse(f"{name!r} cannot be the name of a parameter: no leading or doubled underscore")
    if name in NUMBERS:
        raise refuse(f"{name!r} cannot be the name of a parameter: {NUMBERS[name]}")
    return name


def _is_condition(node: ast.expr) -> bool:
    bitwise = isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr))
    negated = isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.Invert))
    return bitwise or negated or isinstance(node, (ast.Compare, ast.BoolOp))


def _called(node: ast.AST) -> str:
    """What a reader calls a piece of syntax."""
    names = {
        ast.Attribute: "an attribute (a dot)",
        ast.Subscript: "a subscript",
        ast.Lambda: "a lambda",
        ast.Tuple: "a comma",
        ast.NamedExpr: "an assignment",
        ast.JoinedStr: "a string",
        ast.Is: "`is`",
        ast.IsNot: "`is not`",
        ast.In: "`in`",
        ast.NotIn: "`not in`",
    }
    if isinstance(node, ast.Constant):
        return {str: "a string", bytes: "a string", complex: "an imaginary number", bool: "a truth value"}.get(
            type(node.value), "this constant"
        )
    return names.get(type(node), f"this ({type(node).__name__})")
