r"""Reads matrix LaTeX back into numbers, without any knowledge of what wrote it: the witness of the matrix forms.

A vector is a column. ``\mathbf{1}`` has a free length: ``A\mathbf{1}`` sums rows, ``v\mathbf{1}^{\top}`` repeats a column.
Shapes are checked strictly, so a missing transpose or a missing vector of ones is an error and not a broadcast.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

TOKEN = re.compile(
    r"\\left\\lfloor|\\left|\\right|\\mathbf\{1\}|\\operatorname\{\w+\}|\\mathrm\{\w+\}|\\mathcal\{\w\}|\\dot\{\w\}|\\[a-zA-Z]+|\\,"
    r"|\d+|[A-Za-z]'*|[-+*/^_{}()\[\]=,<>]"
)
FREE = 0


@dataclass
class Value:
    """An array of two axes; an axis of length FREE repeats as needed (it comes from a vector of ones)."""

    x: np.ndarray
    rows: int
    columns: int

    @property
    def scalar(self):
        return self.rows == self.columns == 1


def _join(a, b):
    if a == b or b == FREE:
        return a
    if a == FREE:
        return b
    raise ValueError(f"lengths {a} and {b} do not fit")


@dataclass
class Reader:
    """``letters`` maps LaTeX of a letter, with its subscript and superscript, to an array; ``brackets`` text in [...] to one."""

    letters: Mapping[str, np.ndarray]
    brackets: Mapping[str, np.ndarray]
    functions: Mapping[str, Callable]

    def read(self, tex: str) -> np.ndarray:
        for k, name in enumerate(self.brackets):
            tex = tex.replace(name, rf" \bracket{chr(65 + k)} ")
        self.named = {rf"\bracket{chr(65 + k)}": v for k, v in enumerate(self.brackets.values())}
        self.tokens = TOKEN.findall(tex)
        leftover = TOKEN.sub("", tex).strip()
        if leftover:
            raise ValueError(f"not understood: {leftover!r}")
        self.at = 0
        v = self.sum()
        if self.at != len(self.tokens):
            raise ValueError(f"trailing {self.tokens[self.at :]}")
        return v

    def peek(self, k=0):
        return self.tokens[self.at + k] if self.at + k < len(self.tokens) else ""

    def take(self, token=None):
        t = self.peek()
        if token is not None and t != token:
            raise ValueError(f"expected {token}, found {t}")
        self.at += 1
        return t

    def sum(self):
        sign = -1 if self.peek() == "-" and self.take() else 1
        v = self.entrywise()
        v = Value(sign * v.x, v.rows, v.columns)
        while self.peek() in ("+", "-"):
            sign = 1 if self.take() == "+" else -1
            w = self.entrywise()
            v = Value(v.x + sign * w.x, _join(v.rows, w.rows), _join(v.columns, w.columns))
        return v

    def entrywise(self):
        v = self.product()
        while self.peek() in (r"\circ", r"\odot"):
            self.take()
            w = self.product()
            v = Value(v.x * w.x, _join(v.rows, w.rows), _join(v.columns, w.columns))
        return v

    def product(self):
        v = self.power()
        while self.peek() not in ("", "+", "-", r"\circ", r"\odot", ")", "}", "]", ",", r"\right", "="):
            if self.peek() == r"\,":
                self.take()
                continue
            v = self.multiply(v, self.power())
        return v

    def multiply(self, a, b):
        if a.scalar or b.scalar:
            w = b if a.scalar else a
            return Value(a.x * b.x, w.rows, w.columns)
        if a.columns == FREE and b.rows == FREE:
            raise ValueError("ones of unknown length")
        if a.columns == FREE:
            x = b.x.sum(0, keepdims=True) * np.ones((a.x.shape[0], 1)) * a.x[:, :1]
        elif b.rows == FREE:
            x = a.x.sum(1, keepdims=True) * b.x[:1, :] if a.columns != 1 else a.x * b.x
        elif a.columns != b.rows:
            raise ValueError(f"inner lengths {a.columns} and {b.rows}")
        else:
            x = a.x @ b.x
        return Value(x, a.rows, b.columns)

    def power(self):
        v = self.atom()
        while self.peek() == "^":
            self.take()
            body = self.group()
            if body == [r"\top"]:
                v = Value(v.x.T, v.columns, v.rows)
            elif body[:1] == [r"\circ"]:
                v = Value(v.x ** _number(body[1:]), v.rows, v.columns)
            elif getattr(v, "diagonal", None) is not None:
                v = _diagonal(v.diagonal ** _number(body))
            elif v.scalar:
                v = Value(v.x ** _number(body), 1, 1)
            else:
                raise ValueError(f"a matrix to the power {body}")
        return v

    def group(self):
        if self.peek() != "{":
            return [self.take()]
        self.take("{")
        body, depth = [], 1
        while depth:
            t = self.take()
            depth += (t == "{") - (t == "}")
            body.append(t)
        return body[:-1]

    def inside(self, close):
        if self.peek() == r"\left":
            self.take()
            self.take()
            v = self.sum()
            self.take(r"\right")
            self.take(close)
            return v
        self.take()
        v = self.sum()
        self.take(close)
        return v

    def arguments(self):
        """One or more arguments in round brackets."""
        tall = self.peek() == r"\left" and self.take()
        self.take("(")
        out = [self.sum()]
        while self.peek() == ",":
            self.take()
            out.append(self.sum())
        if tall:
            self.take(r"\right")
        self.take(")")
        return out

    def atom(self):
        t = self.peek()
        if t in self.named:
            self.take()
            return _matrix(self.named[t])
        if t == r"\left" or t == "(":
            return self.inside(")")
        if t.isdigit():
            return Value(np.full((1, 1), float(self.take())), 1, 1)
        if t == r"\mathbf{1}":
            self.take()
            return Value(np.ones((1, 1)), FREE, 1)
        if t == r"\frac":
            self.take()
            num, den = self.braced(), self.braced()
            if not den.scalar:
                raise ValueError("divided by a matrix")
            return Value(num.x / den.x, num.rows, num.columns)
        if t == r"\sqrt":
            self.take()
            v = self.braced()
            return Value(np.sqrt(v.x), v.rows, v.columns)
        if t == r"\operatorname{diag}" or t == r"\mathrm{diag}":
            self.take()
            (v,) = self.arguments()
            if v.columns != 1:
                raise ValueError("diag takes a vector")
            return _diagonal(v.x[:, 0])
        if t in self.functions:
            self.take()
            args = self.arguments()
            rows, columns = args[0].rows, args[0].columns
            for a in args[1:]:
                rows, columns = _join(rows, a.rows), _join(columns, a.columns)
            x = self.functions[t](*[a.x for a in args])
            return Value(x, x.shape[0] if rows else FREE, x.shape[1] if columns else FREE)
        return self.letter()

    def braced(self):
        self.take("{")
        v = self.sum()
        self.take("}")
        return v

    def letter(self):
        """The longest run of tokens that is a known letter; a transpose may stand inside its superscript."""
        for stop in range(min(len(self.tokens), self.at + 16), self.at, -1):
            run = self.tokens[self.at : stop]
            turned = run[-2:] == [r"\top", "}"]
            name = "".join(run[:-2]) + "}" if turned else "".join(run)
            if name in self.letters:
                self.at = stop
                v = _matrix(self.letters[name])
                return Value(v.x.T, v.columns, v.rows) if turned else v
        raise ValueError(f"unknown letter at {self.tokens[self.at : self.at + 6]}")


def _number(tokens):
    a, _, b = "".join(tokens).partition("/")
    return float(a) / float(b or 1)


def _matrix(x):
    x = np.asarray(x, float)
    x = x.reshape(1, 1) if x.ndim == 0 else x[:, None] if x.ndim == 1 else x
    return Value(x, *x.shape)


def _diagonal(x):
    v = Value(np.diag(x), len(x), len(x))
    v.diagonal = x
    return v
