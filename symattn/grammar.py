"""Text to SymPy: the small grammar in which a user may write a score, a mask, a scale or a number.

Text is parsed by Python's ``ast`` and rebuilt node by node; what is not in the tables below is refused with its position.
Nothing is ever evaluated: no ``eval``, no ``sympify``.

=============  ============================================================================================
numbers        ``3``, ``0.1`` (exactly 1/10), ``1e-3``
names          of a score: ``s`` the scaled score, ``i j`` query and key, ``h b`` head and batch, ``n m d`` the number
               of queries, of keys, of channels; of a mask all of these but ``s``; of a scale ``n m d dv``. ``pi`` is
               the number. Any other name is a parameter;
               ``name[i]``, ``name[j]``, ``name[i, j]`` (``b`` may stand first) is an entry of a given array
arithmetic     ``+ - * / **``, ``//`` and ``%`` (floor division and its remainder)
functions      ``exp log sqrt tanh sin cos abs min max sigmoid floor erf``
comparisons    ``< <= > >= == !=``, chained as in ``0 <= i - j < 4`` (masks only)
logic          ``and or not``; ``& | ~`` between parenthesised comparisons only, because they bind tighter than ``<=``
=============  ============================================================================================

``^`` is a power in the value of a parameter (``--param slope=2^-3``, see :func:`symattn.numbers.exact_number`), and refused in a
score, where Python and mathematics read it differently. :func:`symattn.grammarprint.write` is the way back from SymPy to text.
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
from symattn.indexed import index, size, tensor
from symattn.symbols import i, j, s

MAX_NODES = 400
MAX_EXPONENT = 1000
MAX_BITS = 4096
MAX_MAGNITUDE = 100
"""Numerators and denominators of constants go up to ten to this power, however they are written."""
TOO_LARGE = f"this number is too large: numerators and denominators go up to 10**{MAX_MAGNITUDE}"

SCORE_NAMES: Mapping[str, sp.Symbol] = {
    "s": s, "i": i, "j": j, "h": index("h"), "b": index("b"), "n": size("n"), "m": size("m"), "d": size("d"),
}  # fmt: skip
MASK_NAMES: Mapping[str, sp.Symbol] = {name: symbol for name, symbol in SCORE_NAMES.items() if name != "s"}
SCALE_NAMES: Mapping[str, sp.Symbol] = {name: size(name) for name in ("n", "m", "d", "dv")}
FREQUENCY_NAMES: Mapping[str, sp.Symbol] = {**SCALE_NAMES, "p": index("p"), "r": size("r")}
"""Of the frequencies of a rotation: the pair of channels, from 0, and how many channels rotate, beside the sizes."""

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


def parse_score(text: str, names: Mapping[str, sp.Expr] | None = None) -> sp.Expr:
    """The scalar expression that ``text`` writes, in ``s``, the indices, the sizes and real symbols for parameters.

    Parameters
    ----------
    text
        For example ``"20*tanh(s/20) - slope*(i - j)"``.
    names
        What the known names stand for; every other name becomes a real symbol. Default: ``s i j h b n m d``.

    Raises
    ------
    GrammarError
        With the position, when the text is outside the grammar.
    LimitError
        When it is too long, too deep, or holds a number too large.

    >>> parse_score("s/10 + 0.1")
    s/10 + 1/10
    """
    return _Reader(text, SCORE_NAMES if names is None else names, "score").value()


def parse_mask(text: str, names: Mapping[str, sp.Expr] | None = None) -> sp.Basic:
    """The condition that ``text`` writes: where it holds, query ``i`` attends to key ``j``.

    Raises as :func:`parse_score` does.

    >>> parse_mask("j <= i and i - j < 128")
    (j <= i) & (i - j < 128)
    """
    return _Reader(text, MASK_NAMES if names is None else names, "mask").condition()


def parse_scale(text: str, names: Mapping[str, sp.Expr] | None = None) -> sp.Expr:
    """The scalar that ``text`` writes in the sizes ``n m d dv`` and parameters.

    Raises as :func:`parse_score` does.

    >>> parse_scale("1/sqrt(d)")
    1/sqrt(d)
    """
    return _Reader(text, SCALE_NAMES if names is None else names, "scale").value()


def parse_frequency(text: str) -> sp.Expr:
    """The angle by which pair ``p`` of the ``r`` rotated channels turns from one position to the next, in parameters and sizes.

    Raises as :func:`parse_score` does.

    >>> parse_frequency("base**(-2*p/r)")
    base**(-2*p/r)
    """
    return _Reader(text, FREQUENCY_NAMES, "frequency").value()


def parameters_of(expr: sp.Basic) -> tuple[str, ...]:
    """The names of the parameters that a parsed score, mask or scale reads, sorted.

    >>> parameters_of(parse_score("cap*tanh(s/cap) - slope*(i - j)"))
    ('cap', 'slope')
    """
    symbols = {a for a in expr.free_symbols if isinstance(a, sp.Symbol)}
    return tuple(sorted(a.name for a in symbols if not a.is_integer and a != s))


def arrays_of(expr: sp.Basic) -> dict[str, str]:
    """The arrays that a parsed score or mask reads, and their axes.

    >>> arrays_of(parse_mask("lane[i] == owner[j] or open[b, i, j] > 0"))
    {'lane': 'i', 'open': 'bij', 'owner': 'j'}
    """
    found = {str(x.base.label): "".join(str(a) for a in x.indices) for x in expr.atoms(sp.Indexed)}
    return dict(sorted(found.items()))


class _Reader:
    """One text, and the walk over its syntax tree."""

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
        return GrammarError(f"{why}{where_in(self.text, self.place(node))}")

    def limit(self, node: ast.AST, why: str) -> LimitError:
        return LimitError(f"{why}{where_in(self.text, self.place(node))}")

    def place(self, node: ast.AST) -> int:
        """The column of a node; of an operation that of its operator."""
        left = node.left if isinstance(node, (ast.BinOp, ast.Compare)) else None
        column = int(getattr(node, "col_offset", 0) if left is None else left.end_col_offset or 0)
        while left is not None and column < len(self.text) - 1 and self.text[column] in " )":
            column += 1
        return column

    def value(self) -> sp.Expr:
        return self.number(self.tree)

    def condition(self) -> sp.Basic:
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
        bits = max(int(a.p).bit_length(), int(a.q).bit_length()) if a.is_Rational else 1
        if b.is_number and (abs(b) > MAX_EXPONENT or bits * abs(b) > MAX_BITS) is not sp.false and a not in (0, 1, -1):
            raise self.limit(node, f"this power is too large: exponents go up to {MAX_EXPONENT}")

    def call(self, node: ast.Call) -> sp.Expr:
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
