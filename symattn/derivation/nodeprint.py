r"""Display trees written as LaTeX and as plain text with Unicode signs. The printers walk the tree and change nothing in it.

A style says which letters tensors have and whether numbers whose decimal expansion ends are written as decimals (they are
where the input was typed in decimals) or as fractions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from symattn.derivation.exactvalue import Exact
from symattn.derivation.numbersteps import Apply, Item, Node, Num, Power, Product, Quotient, Rounded, Sum, terminating
from symattn.derivation.unicodemath import unicode_math
from symattn.readings.latex import LATEX, Letters
from symattn.readings.latex import Style as Typesetting

FRACTION = r"\frac"
SUM, PRODUCT, POWER, ATOM = range(4)
SPECIAL = {"nan": (r"\mathrm{NaN}", "NaN"), "oo": (r"\infty", "∞"), "-oo": (r"-\infty", "-∞")}
LATEX_NAMES = {name: "\\" + name for name in ("log", "tanh", "sin", "cos")} | {
    "Max": r"\max",
    "Min": r"\min",
    "sigmoid": r"\sigma",
}
RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
TEXT_NAMES = {"Max": "max", "Min": "min", "sigmoid": "σ"}
FENCES = {
    "Abs": (r"\lvert", r"\rvert", "|", "|"),
    "floor": (r"\lfloor", r"\rfloor", "⌊", "⌋"),
    "ceiling": (r"\lceil", r"\rceil", "⌈", "⌉"),
}


@dataclass(frozen=True)
class Style:
    """How letters and numbers are written.

    Parameters
    ----------
    letters
        The table of LaTeX letters.
    leading
        Tensor -> how many of its first indices (heads) stand above, as in ``S^{(1)}_{2,3}``.
    decimals
        Whether numbers whose decimal expansion ends are written as decimals.
    origin
        The number of the first position, head or component: 1, or 0 as in programs.
    heads
        Tensor -> the names of its heads, which stand above in the place of their numbers.
    mark
        The decimal mark.
    typesetting
        The macros: :data:`~symattn.readings.latex.LATEX` or :data:`~symattn.readings.latex.MARKDOWN`.
    width
        How many characters fit on a line of LaTeX, about.
    """

    letters: Letters = field(default_factory=Letters)
    leading: Mapping[str, int] = field(default_factory=dict)
    decimals: bool = False
    origin: int = 1
    heads: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    mark: str = "."
    typesetting: Typesetting = LATEX
    width: int = 76

    def name(self, tensor: str, subscript: str = "", above: str = "") -> str:
        """The LaTeX of a tensor or of an element."""
        return self.letters.tensor(tensor).tex(above, subscript)

    def subscripts(self, tensor: str, index: tuple[int, ...]) -> tuple[str, str]:
        """What stands above and below for an element."""
        n = self.leading.get(tensor, 0)
        return self.above(tensor, index[:n]), self.counted(index[n:])

    def above(self, tensor: str, leading: tuple[int, ...]) -> str:
        """What stands above for the leading indices of an element or a matrix: numbers, or the name of the head."""
        names = self.heads.get(tensor, ())
        return rf"\text{{{names[leading[0]]}}}" if len(leading) == 1 and names else self.counted(leading)

    def counted(self, index: Iterable[int]) -> str:
        """Indices, which are kept from 0, as they are written."""
        return ",".join(str(k + self.origin) for k in index)


def latex(node: Node, style: Style | None = None) -> str:
    r"""The tree as LaTeX.

    >>> from symattn.derivation.numbersteps import number, product
    >>> latex(Sum(tuple((1, product([number(a), number(b)])) for a, b in [(1, 2), (0, -5)])))
    '1 \\cdot 2 + 0 \\cdot (-5)'
    >>> latex(Quotient(number(10), Apply("sqrt", (number(3),))))
    '\\frac{10}{\\sqrt{3}}'
    """
    return _Latex(style or Style()).write(node)[0]


def text(node: Node, style: Style | None = None) -> str:
    """The tree as one line of Unicode text that reads as arithmetic.

    >>> from symattn.derivation.numbersteps import number
    >>> text(Apply("exp", (Quotient(number(10), Apply("sqrt", (number(3),))),)))
    'e^(10/√3)'
    """
    return _Text(style or Style()).write(node)[0]


def latex_pieces(node: Node, style: Style | None = None) -> list[str]:
    """The tree as LaTeX, torn where a line may be broken: before the signs of its outermost sum."""
    return _Latex(style or Style()).pieces(node)


def text_pieces(node: Node, style: Style | None = None) -> list[str]:
    """The tree as text, torn at the same places as :func:`latex_pieces` does."""
    return _Text(style or Style()).pieces(node)


def latex_decimal(digits: str, mark: str = ".") -> str:
    r"""A decimal as LaTeX, a power of ten as one; a comma as its mark has no space behind it.

    >>> latex_decimal("1.5e-7"), latex_decimal("0.5", ",")
    ('1.5 \\cdot 10^{-7}', '0{,}5')
    """
    mantissa, _, exponent = digits.replace(".", "{,}" if mark == "," else mark).partition("e")
    return rf"{mantissa} \cdot 10^{{{exponent}}}" if exponent else mantissa


def text_decimal(digits: str, mark: str = ".") -> str:
    """A decimal as text, a power of ten with a raised exponent.

    >>> text_decimal("1.5e-7")
    '1.5·10⁻⁷'
    """
    mantissa, _, exponent = digits.replace(".", mark).partition("e")
    return f"{mantissa}·10{exponent.translate(RAISED)}" if exponent else mantissa


class _Printer(ABC):
    """What both forms share: precedence and signs. ``write`` returns the text and how strongly it binds."""

    def __init__(self, style: Style) -> None:
        self.style = style
        self.inline = 0

    @property
    def between(self) -> str:
        """What stands between two arguments: no second comma where one is the decimal mark."""
        return "; " if self.style.mark == "," else ", "

    def write(self, node: Node) -> tuple[str, int]:
        kind: dict[type, Callable[..., tuple[str, int]]] = {
            Num: self.number,
            Item: self.item,
            Rounded: self.rounded,
            Sum: self.sum,
            Product: self.product,
            Quotient: self.quotient,
            Power: self.power,
            Apply: self.apply,
        }
        return kind[type(node)](node)

    def at(self, node: Node, binding: int) -> str:
        body, strength = self.write(node)
        return body if strength >= binding else self.brackets(body)

    def above(self, node: Node) -> str:
        """What stands before a slash; a fraction there is in brackets."""
        body, strength = self.write(node)
        fraction = isinstance(node, (Num, Quotient)) and "/" in body
        return self.brackets(body) if fraction or strength < PRODUCT else body

    def brackets(self, body: str) -> str:
        return f"({body})"

    def term(self, node: Node, sign: int, first: bool) -> str:
        """A term of a sum; a negative number has brackets, except where the sum begins with it."""
        begins = first and sign > 0 and isinstance(node, (Num, Rounded))
        return self.at(node, SUM if begins else PRODUCT)

    def sum(self, node: Sum) -> tuple[str, int]:
        parts: list[str] = []
        for sign, term in node.terms:
            body = self.term(term, sign, first=not parts)
            parts.append(("- " if sign < 0 else "+ ") + body if parts else ("-" if sign < 0 else "") + body)
        return " ".join(parts), SUM

    def pieces(self, node: Node) -> list[str]:
        if isinstance(node, Sum) and (len(node.terms) > 1 or node.terms[0][0] > 0):
            found = []
            for k, (sign, term) in enumerate(node.terms):
                body = self.term(term, sign, first=not k)
                found.append((("- " if sign < 0 else "+ ") if k else "-" if sign < 0 else "") + body)
            return found
        if (
            isinstance(node, Product)
            and len(node.factors) > 1
            and isinstance(node.factors[-1], Sum)
            and len(node.factors[-1].terms) > 2
        ):
            inner = self.pieces(node.factors[-1])
            inner[0] = self.before_bracket(node.factors[:-1]) + "(" + inner[0]
            inner[-1] += ")"
            return inner
        return [self.write(node)[0]]

    @abstractmethod
    def before_bracket(self, factors: tuple[Node, ...]) -> str: ...

    @abstractmethod
    def number(self, node: Num) -> tuple[str, int]: ...

    @abstractmethod
    def item(self, node: Item) -> tuple[str, int]: ...

    def rounded(self, node: Rounded) -> tuple[str, int]:
        body = self.decimal(node.decimal)
        return body, SUM if body[0] in "-−" else PRODUCT if "e" in node.decimal else ATOM

    @abstractmethod
    def decimal(self, digits: str) -> str: ...

    @abstractmethod
    def product(self, node: Product) -> tuple[str, int]: ...

    @abstractmethod
    def quotient(self, node: Quotient) -> tuple[str, int]: ...

    @abstractmethod
    def power(self, node: Power) -> tuple[str, int]: ...

    @abstractmethod
    def apply(self, node: Apply) -> tuple[str, int]: ...


class _Latex(_Printer):
    def before_bracket(self, factors: tuple[Node, ...]) -> str:
        return r" \cdot ".join(self.at(f, PRODUCT) for f in factors) + " " + r"\cdot "

    def brackets(self, body: str) -> str:
        return rf"\left({body}\right)" if "\\frac" in body or "\\sum" in body else f"({body})"

    def number(self, node: Num) -> tuple[str, int]:
        if node.number.special:
            return SPECIAL[node.number.special][0], SUM if node.number.special == "-oo" else ATOM
        x = _fraction(node.number)
        if x.denominator == 1 or (self.style.decimals and terminating(x)):
            return self.decimal(terminating(x) or str(x)), ATOM if x >= 0 else SUM
        sign = "-" if x < 0 else ""
        if self.inline:
            return f"{sign}{abs(x.numerator)}/{x.denominator}", SUM if sign else PRODUCT
        return rf"{sign}\frac{{{abs(x.numerator)}}}{{{x.denominator}}}", SUM if sign else ATOM

    def item(self, node: Item) -> tuple[str, int]:
        above, below = self.style.subscripts(node.tensor, node.index)
        return self.style.name(node.tensor, below, above), ATOM

    def decimal(self, digits: str) -> str:
        return latex_decimal(digits, self.style.mark)

    def product(self, node: Product) -> tuple[str, int]:
        out = ""
        for f in node.factors:
            body = self.at(f, PRODUCT)
            out += (r" \cdot " if node.dot or body[0].isdigit() else self.style.typesetting.thin) * bool(out) + body
        return out, PRODUCT

    def quotient(self, node: Quotient) -> tuple[str, int]:
        if self.inline:
            return self.above(node.over) + "/" + self.at(node.under, POWER), PRODUCT
        over, under = self.write(node.over)[0], self.write(node.under)[0]
        return rf"\frac{{{over}}}{{{under}}}", ATOM

    def power(self, node: Power) -> tuple[str, int]:
        self.inline += 1
        exponent = self.write(node.exponent)[0]
        self.inline -= 1
        base = self.at(node.base, ATOM)
        return f"{{{self.brackets(base) if base.startswith(FRACTION) else base}}}^{{{exponent}}}", POWER

    def apply(self, node: Apply) -> tuple[str, int]:
        if node.name == "Pi":
            return r"\pi", ATOM
        if node.name == "sqrt":
            return rf"\sqrt{{{self.write(node.args[0])[0]}}}", ATOM
        if node.name == "exp":
            self.inline += 1
            body = self.write(node.args[0])[0]
            self.inline -= 1
            return f"e^{{{body}}}", POWER
        if node.name in FENCES:
            left, right = FENCES[node.name][:2]
            return rf"\left{left} {self.write(node.args[0])[0]} \right{right}", ATOM
        name = LATEX_NAMES.get(node.name) or self.style.typesetting.function(node.name)
        body = self.between.join(self.write(a)[0] for a in node.args)
        return rf"{name}\left({body}\right)", ATOM


class _Text(_Printer):
    def before_bracket(self, factors: tuple[Node, ...]) -> str:
        head, *rest = factors
        return "·".join([self.at(head, PRODUCT), *(self.at(f, POWER) for f in rest)]) + "·"

    def number(self, node: Num) -> tuple[str, int]:
        if node.number.special:
            return SPECIAL[node.number.special][1], SUM if node.number.special == "-oo" else ATOM
        x = _fraction(node.number)
        if x.denominator == 1 or (self.style.decimals and terminating(x)):
            return self.decimal(terminating(x) or str(x)), ATOM if x >= 0 else SUM
        return f"{x.numerator}/{x.denominator}", SUM if x < 0 else PRODUCT

    def item(self, node: Item) -> tuple[str, int]:
        above, subscript = self.style.subscripts(node.tensor, node.index)
        letter = unicode_math(self.style.name(node.tensor, "", above), labels=True)
        return f"{letter}[{subscript}]" if subscript else letter, ATOM

    def decimal(self, digits: str) -> str:
        return text_decimal(digits, self.style.mark)

    def product(self, node: Product) -> tuple[str, int]:
        head, *rest = node.factors
        return "·".join([self.at(head, PRODUCT), *(self.at(f, POWER) for f in rest)]), PRODUCT

    def quotient(self, node: Quotient) -> tuple[str, int]:
        return self.above(node.over) + "/" + self.at(node.under, POWER), PRODUCT

    def power(self, node: Power) -> tuple[str, int]:
        return f"{self.at(node.base, ATOM)}^{self.at(node.exponent, ATOM)}", POWER

    def apply(self, node: Apply) -> tuple[str, int]:
        if node.name == "Pi":
            return "π", ATOM
        if node.name == "sqrt":
            return "√" + self.at(node.args[0], ATOM), POWER
        if node.name == "exp":
            return "e^" + self.at(node.args[0], ATOM), POWER
        if node.name in FENCES:
            left, right = FENCES[node.name][2:]
            return f"{left}{self.write(node.args[0])[0]}{right}", ATOM
        return f"{TEXT_NAMES.get(node.name, node.name)}({self.between.join(self.write(a)[0] for a in node.args)})", ATOM


def _fraction(x: Exact) -> Fraction:
    r = x.rational
    assert r is not None, "a number leaf holds a rational number"
    return r
