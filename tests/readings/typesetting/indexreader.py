r"""Reads index-form LaTeX back into numbers, point by point, without any knowledge of what wrote it.

``\sum_{g,i} dS_{kgij}\,Q_{kgic}`` is evaluated by loops over the indices; a condition after ``\quad\text{where }`` decides which
points count: a sum skips the others, a maximum passes over them, anything else is 0 there.
"""

import itertools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

TOKEN = re.compile(
    r"\\text\{[^}]*\}|\\operatorname\{\w+\}|\\mathrm\{[\w,]+\}|\\mathcal\{\w\}|\\dot\{\w\}|\\[a-zA-Z]+|\\,|\d+|[A-Za-z]'*"
    r"|[-+*/^_{}()\[\]=,<>]"
)
STOPS = {"", "+", "-", ")", "}", ",", r"\right", "=", "/", r"\le", r"\ge", r"\ne", "<", ">", r"\bmod"}
FUNCTIONS = {
    r"\exp": math.exp,
    r"\log": lambda z: math.log(z) if z > 0 else -math.inf,
    r"\tanh": math.tanh,
    r"\max": max,
}
RELATIONS = {
    r"\le": lambda a, b: a <= b,
    r"\ge": lambda a, b: a >= b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "=": lambda a, b: a == b,
    r"\ne": lambda a, b: a != b,
}


@dataclass
class IndexReader:
    """``tensors`` maps a letter to its array, ``sizes`` a letter to a number, ``lengths`` an index to the size of its range."""

    tensors: Mapping[str, np.ndarray]
    sizes: Mapping[str, int]
    lengths: Mapping[str, int]

    def read(self, tex: str, rank: int) -> np.ndarray:
        """The array on the left of a formula; ``rank`` is the number of its indices."""
        formula, _, where = tex.partition(r" \quad\text{where } ")
        left, _, right = formula.partition(" = ")
        self.where = self.parse(where, self.conditions) if where else lambda p: True
        axes = TOKEN.findall(left.rpartition("_")[2].strip("{}").replace(",", " ")) if rank else []
        self.reduced = False
        body = self.parse(right, self.sum)
        out = np.zeros([self.lengths[a] for a in axes])
        for at in np.ndindex(out.shape):
            point = dict(zip(axes, at, strict=True))
            out[at] = body(point) if self.reduced or self.where(point) else 0.0
        return out

    def parse(self, tex, rule):
        self.tokens, self.at = TOKEN.findall(tex), 0
        if TOKEN.sub("", tex).strip():
            raise ValueError(f"not understood: {TOKEN.sub('', tex).strip()!r}")
        out = rule()
        if self.at != len(self.tokens):
            raise ValueError(f"trailing {self.tokens[self.at :]}")
        return out

    def peek(self, k=0):
        return self.tokens[self.at + k] if self.at + k < len(self.tokens) else ""

    def take(self, token=None):
        t = self.peek()
        if token is not None and t != token:
            raise ValueError(f"expected {token}, found {t}")
        self.at += 1
        return t

    # --- conditions

    def conditions(self):
        parts, words = [self.relation()], []
        while self.peek().startswith(r"\text{ "):
            words.append(self.take())
            parts.append(self.relation())
        if len(set(words)) > 1:
            raise ValueError("and / or mixed without brackets")
        both = any if words[:1] == [r"\text{ or }"] else all
        return lambda p: both(f(p) for f in parts)

    def relation(self):
        if self.peek() == r"\text{not }":
            self.take()
            inner = self.relation()
            return lambda p: not inner(p)
        start = self.at
        if self.peek() == "(":
            try:
                self.take()
                inner = self.conditions()
                if self.peek() == ")" and self.is_condition(start + 1, self.at):
                    self.take()
                    return inner
            except ValueError:  # a letter in brackets
                pass
            self.at = start
        a = self.sum()
        if self.peek() not in RELATIONS:
            return a
        sign = RELATIONS[self.take()]
        b = self.sum()
        return lambda p: sign(a(p), b(p))

    def is_condition(self, start, stop):
        return any(t in RELATIONS for t in self.tokens[start:stop])

    # --- expressions

    def sum(self):
        terms = [(-1 if self.peek() == "-" and self.take() else 1, self.quotient())]
        while self.peek() in ("+", "-"):
            terms.append((1 if self.take() == "+" else -1, self.quotient()))
        return lambda p: sum(s * f(p) for s, f in terms) if len(terms) > 1 else terms[0][0] * terms[0][1](p)

    def quotient(self):
        f = self.product()
        if self.peek() == "/":
            self.take()
            g = self.power()
            return lambda p: f(p) / g(p)
        if self.peek() == r"\bmod":
            self.take()
            g = self.power()
            return lambda p: f(p) % g(p)
        return f

    def product(self):
        factors = [self.power()]
        while self.peek() not in STOPS and not self.peek().startswith(r"\text"):
            if self.peek() in (r"\,", r"\cdot"):
                self.take()
                continue
            factors.append(self.power())
        return lambda p: math.prod(f(p) for f in factors)

    def power(self):
        f = self.atom()
        if self.peek() == "^":
            g = self.script("^")
            return lambda p: f(p) ** g(p)
        return f

    def script(self, sign):
        self.take(sign)
        if self.peek() != "{":
            return self.atom()
        return self.braced()

    def braced(self):
        self.take("{")
        f = self.sum()
        self.take("}")
        return f

    def arguments(self):
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
        if t in (r"\sum", r"\max") and self.peek(1) == "_":
            return self.reduction()
        if t.isdigit():
            value = int(self.take())
            return lambda p: value
        if t == r"\frac":
            self.take()
            a, b = self.braced(), self.braced()
            return lambda p: a(p) / b(p) if b(p) else math.nan
        if t == r"\sqrt":
            self.take()
            a = self.braced()
            return lambda p: math.sqrt(a(p))
        if t == r"\infty":
            self.take()
            return lambda p: math.inf
        if t in FUNCTIONS:
            self.take()
            exponent = self.script("^") if self.peek() == "^" else lambda p: 1
            args = self.arguments() if self.peek() in ("(", r"\left") else [self.atom()]
            return lambda p: FUNCTIONS[t](*[f(p) for f in args]) ** exponent(p)
        found = self.letter()
        if found is not None:
            return found
        (f,) = self.arguments()
        return f

    def reduction(self):
        best = self.take() == r"\max"
        self.take("_")
        names = [t for t in self.group() if t != ","]
        body = self.product()
        self.reduced = True

        def value(p):
            points = [
                {**p, **dict(zip(names, at, strict=True))} for at in itertools.product(*[range(self.lengths[a]) for a in names])
            ]
            kept = [body(q) for q in points if self.where(q)]
            return max(kept, default=-math.inf) if best else sum(kept)

        return value

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

    def letter(self):
        """A tensor with its subscripts, a size or an index; a letter with a subscript of its own stands in brackets."""
        start = self.at
        bracketed = self.peek() == "("
        for stop in range(min(len(self.tokens), start + 12), start, -1):
            run = self.tokens[start:stop]
            name = "".join(run[1:-1] if bracketed else run)
            if bracketed and (run[-1] != ")" or (self.tokens[stop : stop + 1] != ["_"])):
                continue
            if name in self.tensors and (np.ndim(self.tensors[name]) == 0 or self.tokens[stop : stop + 1] == ["_"]):
                self.at = stop
                return self.subscripted(name)
            if name in self.sizes and not bracketed:
                self.at = stop
                return lambda p: self.sizes[name]
            if name in self.lengths and not bracketed:
                self.at = stop
                return lambda p: p[name]
        if bracketed or self.peek() == r"\left":
            return None
        raise ValueError(f"unknown letter at {self.tokens[start : start + 6]}")

    def subscripted(self, name):
        array = np.asarray(self.tensors[name])
        if array.ndim == 0:
            return lambda p: float(array)
        self.take("_")
        tokens = self.group()
        parts = [tokens] if array.ndim == 1 else self.split(tokens) if "," in tokens else [[t] for t in tokens]
        if len(parts) != array.ndim:
            raise ValueError(f"{name} has {array.ndim} axes, found {tokens}")
        inner = [self.inner(q) for q in parts]
        return lambda p: array[tuple(int(f(p)) for f in inner)].item()

    def split(self, tokens):
        parts, depth = [[]], 0
        for t in tokens:
            depth += (t == "{") - (t == "}")
            if t == "," and not depth:
                parts.append([])
            else:
                parts[-1].append(t)
        return parts

    def inner(self, tokens):
        kept = self.tokens, self.at
        self.tokens, self.at = tokens, 0
        f = self.sum()
        self.tokens, self.at = kept
        return f
