r"""LaTeX arithmetic as trees, and their values by mpmath: the reading half of :mod:`tests.derivation.roundtrip`.

``\frac{2\,dS_{1,2}}{\sqrt{3}}``, ``\sum_{j' \le i} \exp(S_{ij'})``, ``(dX_Q)^{(1)}_{2,1}``. A tree is a tuple whose first entry
says what it is. Nothing here knows what wrote the text, and nothing of symattn is imported.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from typing import Any

import mpmath

CONTEXT = mpmath.MPContext()
CONTEXT.dps = 60
Tree = tuple[Any, ...]
RESERVED = (
    r"frac|sqrt|sum|max|min|exp|log|tanh|sin|cos|cdot|quad|qquad|text|infty|pi|lvert|rvert|lfloor|rfloor|le|ge|ne|bmod|left|right"
    r"|begin|end|operatorname|mathbf|top|circ|langle|rangle|sigma|approx|vdots|cdots|ldots"
)
COMMAND = rf"\\(?!(?:{RESERVED})(?![a-z]))[a-z]+(?![a-z{{])"
LETTER = rf"(?:\\mathcal\{{[A-Z]\}}|\\mathrm\{{[^{{}}]*\}}|{COMMAND}|[A-Za-z]+)"
NAME = rf"d?(?:\\dot\{{{LETTER}\}}|{LETTER})'*"
LABEL = r"(?:_(?:\{[^{}]*(?:\{[^{}]*\})?[^{}]*\}|[A-Za-z0-9]))"
ABOVE = r"(?:\^\{\(([^()]*)\)\})?"
BRACKETED = re.compile(rf"\(({NAME}{LABEL})\){ABOVE}_")
PLAIN = re.compile(rf"({NAME}){ABOVE}")
DECIMAL = re.compile(r"(\d+)(?:\.(\d+))?(?: \\cdot 10\^\{(-?\d+)\})?")
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "exp": CONTEXT.exp,
    "log": CONTEXT.log,
    "tanh": CONTEXT.tanh,
    "sin": CONTEXT.sin,
    "cos": CONTEXT.cos,
    "max": max,
    "min": min,
    "sigma": lambda x: 1 / (1 + CONTEXT.exp(-x)),
}
RELATIONS: Mapping[str, Callable[[Any, Any], bool]] = {
    r"\le": lambda a, b: a <= b,
    r"\ge": lambda a, b: a >= b,
    r"\ne": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "=": lambda a, b: a == b,
}


WIDTH: Tree = ("tensor", "d", ("tensor", "k"))
"""``d_k``"""


class Unread(Exception):
    """The text says something that this reader does not know, or needs a value that the page does not give."""


class Reader:
    """One piece of LaTeX."""

    def __init__(self, source: str) -> None:
        source = re.sub(r"\\left(?![a-z])|\\right(?![a-z])|\\thinspace|\\,|\{\}|~", " ", source)
        self.source, self.at = re.sub(r"\s+", " ", source).strip(), 0

    def looking(self, pattern: str) -> re.Match[str] | None:
        return re.compile(" ?(?:" + pattern + ")").match(self.source, self.at)

    def took(self, pattern: str) -> bool:
        found = self.looking(pattern)
        self.at = found.end() if found else self.at
        return found is not None

    def need(self, pattern: str) -> None:
        if not self.took(pattern):
            raise Unread(f"{pattern} expected at {self.source[self.at : self.at + 30]!r}")

    def whole(self, rule: Callable[[], Tree]) -> Tree:
        out = rule()
        if self.source[self.at :].strip():
            raise Unread(f"{self.source[self.at : self.at + 40]!r} is left over")
        return out

    # --- expressions

    def sum(self) -> Tree:
        terms = [("neg", self.product()) if self.took("-") else self.product()]
        while self.looking(r"[+-]"):
            terms.append(self.product() if self.took(r"\+") else ("neg", self.product()) if self.took("-") else ())
        return terms[0] if len(terms) == 1 else ("sum", *terms)

    def product(self) -> Tree:
        factors = [self.power()]
        while True:
            if self.took("/"):
                factors[-1:] = [("div", factors[-1], self.power())]
            elif self.took(r"\\bmod"):
                factors = [("mod", factors[0] if len(factors) == 1 else ("mul", *factors), self.power())]
            elif self.took(r"\\cdot(?![a-z])") or not self.looking(
                r"$|[+\-)},:=<>&]|\\(?:le|ge|ne|approx|rvert|rfloor|text|quad|qquad|begin|end)(?![a-z])"
            ):
                factors.append(self.power())
            else:
                return factors[0] if len(factors) == 1 else ("mul", *factors)

    def power(self) -> Tree:
        base = self.atom()
        return ("pow", base, self.group()) if self.took(r"\^") else base

    def group(self) -> Tree:
        if not self.took(r"\{"):
            return self.atom()
        inner = self.sum()
        self.need(r"\}")
        return inner

    def atom(self) -> Tree:
        if found := self.looking(DECIMAL.pattern):
            self.at = found.end()
            return literal(found[0].strip())
        if self.looking(r"\{"):
            return self.group()
        if self.took(r"\\frac"):
            return ("div", self.group(), self.group())
        if self.took(r"\\sqrt"):
            return ("sqrt", self.group())
        if self.took(r"e\^"):
            return ("fun", "exp", self.group())
        if self.took(r"\\infty"):
            return ("num", CONTEXT.inf, None)
        if self.took(r"\\pi"):
            return ("num", CONTEXT.pi, None)
        for opening, closing, name in ((r"\\lvert", r"\\rvert", "abs"), (r"\\lfloor", r"\\rfloor", "floor")):
            if self.took(opening):
                inner = self.sum()
                self.need(closing)
                return ("fun", name, inner)
        if found := self.looking(r"\\(sum|max|min)_"):
            self.at = found.end()
            return self.reduction(found[1])
        if found := self.looking(r"\\(exp|log|tanh|sin|cos|max|min|sigma)(?![a-z])"):
            self.at = found.end()
            exponent = self.group() if self.took(r"\^") else None
            body = ("fun", found[1], *self.arguments()) if self.looking(r"\(") else ("fun", found[1], self.power())
            return ("pow", body, exponent) if exponent else body
        if found := self.looking(BRACKETED.pattern):
            self.at = found.end() - 1
            return self.element(found[1], found[2])
        if self.looking(r"\("):
            inner = self.arguments()
            if len(inner) == 1:
                return inner[0]
        if found := self.looking(PLAIN.pattern):
            self.at = found.end()
            return self.element(found[1], found[2])
        raise Unread(f"not understood: {self.source[self.at : self.at + 30]!r}")

    def arguments(self) -> list[Tree]:
        self.need(r"\(")
        found = [self.sum()]
        while self.took(","):
            found.append(self.sum())
        self.need(r"\)")
        return found

    def element(self, name: str, above: str | None) -> Tree:
        """A tensor with what stands at it; without anything, a name."""
        over = subscripts(above) if above else ()
        if not self.looking("_"):
            return ("tensor", name, *over)
        self.took("_")
        return ("tensor", name, *over, *subscripts(self.braces()))

    def braces(self) -> str:
        """The raw text of a script."""
        if not self.took(r"\{"):
            self.at += 1
            return self.source[self.at - 1]
        start, depth = self.at, 1
        while depth:
            depth += {"{": 1, "}": -1}.get(self.source[self.at], 0)
            self.at += 1
        return self.source[start : self.at - 1]

    def reduction(self, kind: str) -> Tree:
        below = self.braces()
        names, _, told = below.partition(":")
        if not told and re.search(r"\\le|\\ge|[<>=]", names):
            names, told = re.split(r"\\le|\\ge|[<>=]", names, maxsplit=1)[0], names
        variables = re.findall(r"[A-Za-z]'*", names)
        return ("red", kind, tuple(variables), relations(told), self.product())

    def relation(self) -> Tree:
        """``a < b``, or ``a \\le b < c``."""
        sides, signs = [self.sum()], []
        while found := self.looking(r"\\le(?![a-z])|\\ge(?![a-z])|\\ne(?![a-z])|[<>=]"):
            self.at = found.end()
            signs.append(found[0].strip())
            sides.append(self.sum())
        if not signs:
            raise Unread(f"no relation in {self.source!r}")
        return ("all", *(("rel", s, a, b) for s, a, b in zip(signs, sides, sides[1:], strict=False)))


def literal(text: str) -> Tree:
    """A number as it stands: its value, and the unit of its last digit (None for an integer)."""
    found = DECIMAL.fullmatch(text)
    assert found, text
    places, power = len(found[2] or ""), int(found[3] or 0)
    value = Fraction(found[1] + (found[2] or "")) / 10**places * Fraction(10) ** power
    return ("num", value, Fraction(10) ** (power - places) if found[2] or found[3] else None)


def subscripts(text: str) -> tuple[Tree, ...]:
    """``ij``, ``1,2``, ``t_p,a``, ``i - 1,c``."""
    parts = text.split(",") if "," in text else [text]
    if len(parts) == 1 and re.fullmatch(r"(?:[a-zA-Z]'*)+", text):
        parts = re.findall(r"[a-zA-Z]'*", text)
    return tuple(map(expression, parts))


@cache
def expression(text: str) -> Tree:
    """The tree of a whole text."""
    reader = Reader(text)
    return reader.whole(reader.sum)


def relations(text: str) -> tuple[Tree, ...]:
    """The conditions of a text; all of them have to hold."""
    found: list[Tree] = []
    for part in re.split(r"\\ ?\\text\{and \}|\\text\{ and \}|,", text):
        if r"\text{ is the number" in part or not part.replace("\\,", "").strip():
            continue
        reader = Reader(part)
        found.append(reader.whole(reader.relation))
    return tuple(found)


def variables(tree: Any) -> set[str]:
    """The names without subscripts in a tree."""
    if not isinstance(tree, tuple):
        return set()
    if tree[:1] == ("tensor",) and len(tree) == 2:
        return {tree[1]}
    return set().union(*map(variables, tree))


class Scope:
    """Tensors by name and index, sizes by name, and the condition of the formula that is read."""

    def __init__(self, read: Callable[[str, tuple[int, ...]], Any], ranges: Mapping[str, range], where: tuple[Tree, ...]) -> None:
        self.read, self.ranges, self.where = read, ranges, where

    def holds(self, conditions: tuple[Tree, ...], at: Mapping[str, int]) -> bool:
        return all(RELATIONS[sign](self.value(a, at), self.value(b, at)) for c in conditions for _, sign, a, b in c[1:])

    def value(self, tree: Tree, at: Mapping[str, int]) -> Any:
        """The value at a point."""
        kind, *rest = tree
        if kind == "num":
            x = rest[0]
            return CONTEXT.mpf(x.numerator) / x.denominator if isinstance(x, Fraction) else +x
        if kind == "tensor":
            name, *subs = rest
            if tree == WIDTH:  # also where k counts heads
                return self.read("d", ("k",))
            return CONTEXT.mpf(at[name]) if not subs and name in at else self.read(name, tuple(self.index(s, at) for s in subs))
        if kind == "red":
            return self.reduced(tree, at)
        values = [self.value(t, at) for t in (rest[1:] if kind == "fun" else rest)]
        return OPERATIONS[kind](*values) if kind != "fun" else applied(rest[0], values)

    def index(self, tree: Tree, at: Mapping[str, int]) -> int:
        return int(self.value(tree, at))

    def points(self, tree: Tree, at: Mapping[str, int]) -> list[dict[str, int]]:
        """The points that a sum or a maximum runs over."""
        _, _, names, told, _ = tree
        missing = [v for v in names if v not in self.ranges]
        if missing:
            raise Unread(f"the range of {missing} is not known")
        kept = []
        for point in itertools.product(*(self.ranges[v] for v in names)):
            here = {**at, **dict(zip(names, point, strict=True))}
            bound = [c for c in self.where if variables(c) <= here.keys()]
            if self.holds(told, here) and self.holds(tuple(bound), here):
                kept.append(here)
        return kept

    def reduced(self, tree: Tree, at: Mapping[str, int]) -> Any:
        values = [self.value(tree[4], here) for here in self.points(tree, at)]
        return CONTEXT.fsum(values) if tree[1] == "sum" else (max if tree[1] == "max" else min)(values)

    def put_in(self, tree: Tree, at: Mapping[str, int]) -> Tree:
        """The tree at a point: a sum as its terms, elements and indices as values."""
        kind, *rest = tree
        if kind in ("num", "tensor"):
            return ("value", self.value(tree, at))
        if kind == "red":
            terms = [self.put_in(tree[4], here) for here in self.points(tree, at)]
            return terms[0] if len(terms) == 1 else ("sum" if tree[1] == "sum" else tree[1], *terms)
        if kind == "fun":
            return ("fun", rest[0], *(self.put_in(t, at) for t in rest[1:]))
        return (kind, *(self.put_in(t, at) for t in rest))


def applied(name: str, values: list[Any]) -> Any:
    """A function of numbers."""
    if name in ("abs", "floor"):
        return abs(values[0]) if name == "abs" else CONTEXT.floor(values[0])
    return FUNCTIONS[name](*values)


def quotient(a: Any, b: Any) -> Any:
    """A quotient; what would be divided by 0 has no value."""
    if b == 0:
        raise Unread("a division by zero")
    return a / b


OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "neg": lambda x: -x,
    "sum": lambda *terms: CONTEXT.fsum(terms),
    "mul": lambda *factors: CONTEXT.fprod(factors),
    "div": quotient,
    "mod": lambda a, b: a - b * CONTEXT.floor(a / b),
    "pow": lambda a, b: a**b,
    "sqrt": CONTEXT.sqrt,
}
