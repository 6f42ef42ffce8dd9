"""Independent readers of what derivations print: text and LaTeX arithmetic, evaluated by mpmath at 60 digits.

They share no code with symattn: a recursive descent over tokens, with elements looked up in arrays that the caller gives.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import mpmath

CONTEXT = mpmath.MPContext()
CONTEXT.dps = 60
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "tanh": CONTEXT.tanh,
    "log": CONTEXT.log,
    "max": lambda *a: max(a),
    "exp": CONTEXT.exp,
    "abs": abs,
}
LATEX_LETTERS = {r"\ell": "ℓ", r"\mathcal{E}": "ℰ", r"\alpha": "α", r"\mu": "μ"}
Lookup = Callable[[str, tuple[int, ...]], Any]


class _Reader:
    """Sums, products, quotients, powers; ``tokens`` and ``primary`` are the form's business."""

    tokens: list[str]

    def __init__(self, source: str, element: Lookup) -> None:
        self.tokens = self.split(source)
        self.element = element
        self.at = 0

    def split(self, source: str) -> list[str]:
        raise AssertionError

    def primary(self) -> Any:
        raise AssertionError

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, expected: str = "") -> str:
        token = self.peek()
        assert not expected or token == expected, (expected, token, self.tokens)
        self.at += 1
        return token

    def whole(self) -> Any:
        value = self.sum()
        assert self.at == len(self.tokens), self.tokens[self.at :]
        return value

    def sum(self) -> Any:
        sign = -1 if self.peek() in ("-", "−") and self.take() else 1
        value = sign * self.product()
        while self.peek() in ("+", "-"):
            value = value + self.product() if self.take() == "+" else value - self.product()
        return value

    def product(self) -> Any:
        value = self.power()
        while self.peek() in ("·", "/") or (self.peek() and self.peek() not in (*")+-,}]|", r"\rvert")):
            sign = self.take() if self.peek() in ("·", "/") else "·"
            right = self.power()
            value = value / right if sign == "/" else value * right
        return value

    def power(self) -> Any:
        value = self.primary()
        if self.peek() == "^":
            self.take()
            value = value ** self.exponent()
        return value

    def exponent(self) -> Any:
        return self.power()

    def fenced(self, closing: str) -> Any:
        value = self.sum()
        self.take(closing)
        return value

    def arguments(self, closing: str = ")") -> list[Any]:
        found = [self.sum()]
        while self.peek() == ",":
            self.take()
            found.append(self.sum())
        self.take(closing)
        return found


class _Text(_Reader):
    def split(self, source: str) -> list[str]:
        return re.findall(
            r"[A-Za-zℓℰαμ][\w']*(?:\^\([\d,]+\))?\[[\d,]+\]|\d+(?:\.\d+)?(?:·10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?|[A-Za-z]+|[√^()+\-·/,|]", source
        )

    def primary(self) -> Any:
        t = self.take()
        if t == "(":
            value = self.sum()
            self.take(")")
            return value
        if t == "|":
            return abs(self.fenced("|"))
        if t == "√":
            return CONTEXT.sqrt(self.power())
        if t == "e":
            return CONTEXT.e
        if "[" in t:
            name, _, inner = t.partition("[")
            letter, _, above = name.partition("^(")
            return self.element(letter, tuple(int(k) for k in [*above.strip(")").split(","), *inner.strip("]").split(",")] if k))
        if t in FUNCTIONS:
            self.take("(")
            return FUNCTIONS[t](*self.arguments())
        return decimal(t)


class _Latex(_Reader):
    def split(self, source: str) -> list[str]:
        source = source.replace(r"\left", "").replace(r"\right", "").replace(r"\cdot", "·").replace(r"\,", " ").replace("{}", "")
        source = source.replace(r"\thinspace", " ")
        for tex, letter in LATEX_LETTERS.items():
            source = source.replace(tex, letter)
        element = r"(?:\([A-Za-z]+_[A-Z](?:\^\{\([\d,]+\)\})?\)|[A-Za-zℓℰαμ]+(?:\^\{\([\d,]+\)\})?)_(?:\{[\d,]+\}|\d)"
        return re.findall(element + r"|\\?[A-Za-z]+|\d+(?:\.\d+)?|[\^()+\-·/,{}]", source)

    def braced(self) -> Any:
        if self.peek() != "{":
            return self.primary()
        self.take("{")
        value = self.sum()
        self.take("}")
        return value

    def exponent(self) -> Any:
        return self.braced()

    def primary(self) -> Any:
        t = self.take()
        if t in "({":
            value = self.sum()
            self.take(")" if t == "(" else "}")
            return value
        if t == r"\lvert":
            return abs(self.fenced(r"\rvert"))
        if t == r"\frac":
            over = self.braced()
            return over / self.braced()
        if t == r"\sqrt":
            return CONTEXT.sqrt(self.braced())
        if t == "e":
            return CONTEXT.e
        if t.lstrip("\\") in FUNCTIONS:
            self.take("(")
            return FUNCTIONS[t.lstrip("\\")](*self.arguments())
        if m := re.fullmatch(r"\(?(.+?)(?:\^\{\(([\d,]+)\)\})?\)?_\{?([\d,]+)\}?", t):
            return self.element(m[1], tuple(int(k) for k in (m[2] or "").split(",") + m[3].split(",") if k))
        return decimal(t)


def decimal(t: str) -> Any:
    mantissa, _, exponent = t.partition("·10")
    power = int(exponent.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")) or 0)
    return CONTEXT.mpf(mantissa) * CONTEXT.mpf(10) ** power


def read_text(source: str, element: Lookup) -> Any:
    """The value of a line of text."""
    return _Text(source, element).whole()


def read_latex(source: str, element: Lookup) -> Any:
    """The value of a piece of LaTeX."""
    return _Latex(source, element).whole()
