"""Statements as plain Python: each is a function of its indices, computed with mpmath and nothing of symattn.

What is printed here is what a reader runs to recompute the numbers of a page, so it is written to be read: sums are sums over
``range``, a condition is an ``if``, a recurrence reads the step before.
"""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sympy as sp

from symattn.errors import UnfitError
from symattn.indexed import all_reads, conjuncts, name_of, subscripts_of
from symattn.program import Program, Statement

SETUP = '''\
import functools
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace

import mpmath

mp = mpmath.MPContext()
mp.dps = {digits}  # more digits than are printed


def step(*shape):
    """A tensor of this shape: a function of its indices, which count from 0; beyond the ends of a recurrence it is 0."""

    def wrap(element):
        known = functools.cache(element)
        return lambda *at: known(*at) if all(0 <= k < n for k, n in zip(at, shape)) else mp.mpf(0)

    return wrap


def given(numbers):
    """An input: numbers as they were typed, in lists of lists."""

    def element(*at):
        x = numbers
        for k in at:
            if not 0 <= k < len(x):
                raise IndexError(at)
            x = x[k]
        return mp.mpf(x) if "inf" in x else mp.mpf(Fraction(x).numerator) / Fraction(x).denominator

    return functools.cache(element)


def total(terms):
    return mp.fsum(terms)


def product(factors):
    return mp.fprod(factors)


def largest(numbers):
    return max(numbers, default=-mp.inf)


def check(tensor, printed):
    """Every printed decimal is the number that is computed here, rounded."""
    for at, digits in printed.items():
        got = mp.mpf(tensor(*at))
        if digits in ("NaN", "inf", "-inf"):
            right = mp.isnan(got) if digits == "NaN" else got == mp.mpf(digits)
        else:
            unit = mp.mpf(10) ** Decimal(digits).as_tuple().exponent
            right = abs(got - mp.mpf(digits)) <= unit * (mp.mpf(1) / 2 + mp.mpf(10) ** -6)
        assert right, f"at {{at}} {{digits}} is printed, and {{mp.nstr(got, 12)}} is computed"
    print(f"{{len(printed)}} numbers are right" if len(printed) != 1 else "1 number is right")
'''
MODULES = ("functools", "Decimal", "Fraction", "SimpleNamespace", "mpmath", "mp")
HELPERS = ("step", "given", "total", "product", "largest", "check", "size")
RESERVED = frozenset({*MODULES, *HELPERS, *dir(builtins)})
"""Names that the cells use already."""
GUARD = 15
REDUCE = {"sum": "total", "prod": "product", "max": "largest"}
FUNCTIONS = {name: f"mp.{name}" for name in ("exp", "log", "tanh", "sin", "cos", "tan", "sinh", "cosh", "atan", "erf", "floor")}
FUNCTIONS |= {"ceiling": "mp.ceil", "Abs": "abs", "Max": "max", "Min": "min", "sign": "mp.sign"}
SUM, PRODUCT, POWER, ATOM = range(4)


@dataclass(frozen=True)
class Source:
    """What the numbers of a derivation were computed from: statements, arrays of exact numbers, sizes."""

    program: Program
    inputs: Mapping[str, Any]
    sizes: Mapping[sp.Symbol, int]


class Python:
    """The names of a program in Python, and its statements."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.index = {a: _identifier(a.name) for a in program.dims}
        taken = set(self.index.values()) | RESERVED
        self.names: dict[str, str] = {}
        for name in (*program.inputs, *(s.name for s in program)):
            own = _identifier(name)
            while own in taken:
                own += "_"
            self.names[name] = own
            taken.add(own)

    def statement(self, s: Statement) -> str:
        """A statement as a decorated function.

        >>> from symattn.definition import Definition
        >>> program = Definition(causal="top-left").program()
        >>> print(Python(program).statement(program["O"]))
        @step(size.n, size.dv)
        def O(i, e):
            return total(P(i, j) * V(j, e) for j in range(size.m) if j <= i)
        """
        head = f"def {self.names[s.name]}({', '.join(self.index[a] for a in s.indices)}):"
        shape = ", ".join(self.whole(self.program.dims[a]) for a in s.indices)
        clauses = [self.condition(c) for c in sorted(conjuncts(s.where), key=_reads)] if s.where != sp.true else []
        test = f" if {' and '.join(clauses)}" if clauses else ""
        if s.over:
            loops = " ".join(f"for {self.index[a]} in range({self.whole(self.program.dims[a])})" for a in s.over)
            body = f"{REDUCE[s.reduce]}({self.number(s.expr)} {loops}{test})"
        else:
            body = f"{self.number(s.expr)}{test} else mp.mpf(0)" if test else self.number(s.expr)
        return f"@step({shape})\n{head}\n    return {body}"

    def whole(self, e: sp.Expr) -> str:
        """A subscript or a size: a whole number of Python."""
        if e.is_Integer:
            return str(e)
        if e.is_Symbol:
            return self.index.get(e) or f"size.{e.name}"
        terms = dict(e.as_coefficients_dict()) if isinstance(e, (sp.Add, sp.Mul)) else {}
        if terms and all(c.is_Integer and (t == 1 or (t.is_Symbol and t.is_integer)) for t, c in terms.items()):
            out = ""
            for t, c in sorted(terms.items(), key=lambda x: (bool(x[0] == 1), bool(x[1] < 0), str(x[0]))):
                body = str(abs(c)) if t == 1 else self.whole(t) if abs(c) == 1 else f"{abs(c)} * {self.whole(t)}"
                out += f" {'-' if c < 0 else '+'} {body}" if out else f"{'-' if c < 0 else ''}{body}"
            return out
        return f"int({self.number(e)})"

    def condition(self, c: Any) -> str:
        """A condition."""
        if c in (sp.true, sp.false):
            return str(bool(c))
        if isinstance(c, sp.core.relational.Relational):
            return f"{self.side(c.lhs)} {c.rel_op} {self.side(c.rhs)}"
        if isinstance(c, (sp.And, sp.Or)):
            word = " and " if isinstance(c, sp.And) else " or "
            return f"({word.join(self.condition(a) for a in sorted(c.args, key=_reads))})"
        if isinstance(c, sp.Not):
            return f"not ({self.condition(c.args[0])})"
        raise UnfitError(f"the condition {c} is not written in Python")

    def side(self, e: sp.Expr) -> str:
        """A side of a comparison; an index stays a whole number."""
        text = self.whole(e) if e.is_integer and not _reads(e) else ""
        return self.number(e) if not text or text.startswith("int(") else text

    def number(self, e: sp.Expr) -> str:
        """A real number."""
        return self._at(e, SUM)

    def _at(self, e: sp.Expr, least: int) -> str:
        text, binding = self._written(e)
        return text if binding >= least else f"({text})"

    def _written(self, e: sp.Expr) -> tuple[str, int]:
        if isinstance(e, sp.Indexed):
            return f"{self.names[name_of(e)]}({', '.join(map(self.whole, subscripts_of(e)))})", ATOM
        if e.is_Symbol:
            return (f"{self.names[e.name]}()" if e.name in self.names and not e.is_integer else f"mp.mpf({self.whole(e)})"), ATOM
        if e.is_Integer:
            return str(e), ATOM if e >= 0 else SUM
        if e.is_Rational:
            return f"mp.mpf({e.p}) / {e.q}", PRODUCT if e.p >= 0 else SUM
        if e in (sp.oo, -sp.oo, sp.nan, sp.pi, sp.E):
            return {sp.oo: "mp.inf", -sp.oo: "-mp.inf", sp.nan: "mp.nan", sp.pi: "mp.pi", sp.E: "mp.e"}[e], POWER
        if isinstance(e, sp.Add):
            return self._sum(e), SUM
        if isinstance(e, sp.Mul):
            return self._product(e)
        if isinstance(e, sp.Pow):
            return self._power(e.base, e.exp)
        if isinstance(e, sp.Piecewise):
            branches = [f"{self._at(v, PRODUCT)} if {self.condition(c)} else " for v, c in e.args]
            return f"({''.join(branches)}mp.nan)", ATOM
        name = e.func.__name__
        args = [self.number(a) for a in e.args]
        if name == "sigmoid":
            return f"1 / (1 + mp.exp(-{self._at(e.args[0], POWER)}))", PRODUCT
        if name == "Mod":
            return f"{self._at(e.args[0], POWER)} % {self._at(e.args[1], POWER)}", PRODUCT
        if name == "Heaviside":
            return f"({args[1]} if {args[0]} == 0 else mp.mpf({args[0]} > 0))", ATOM
        if name not in FUNCTIONS:
            raise UnfitError(f"the function {name} is not written in Python")
        return f"{FUNCTIONS[name]}({', '.join(args)})", ATOM

    def _sum(self, e: sp.Add) -> str:
        out = ""
        for t in sorted(e.args, key=lambda t: bool(t.could_extract_minus_sign())):
            minus = bool(out) and t.could_extract_minus_sign()
            text = self._at(-t if minus else t, PRODUCT)
            out += f" {'-' if minus else '+'} {text}" if out else text
        return out

    def _product(self, e: sp.Mul) -> tuple[str, int]:
        if e.could_extract_minus_sign():
            return f"-{self._at(-e, PRODUCT)}", SUM
        under = [f for f in e.args if isinstance(f, sp.Pow) and f.exp.is_number and f.exp.is_negative]
        over = [f for f in e.args if f not in under]
        text = " * ".join(self._at(f, POWER) for f in over) or "1"
        for f in under:
            text += f" / {self._at(f.base**-f.exp, POWER)}"
        return text, PRODUCT

    def _power(self, base: sp.Expr, exponent: sp.Expr) -> tuple[str, int]:
        if exponent.is_number and exponent.is_negative:
            return f"1 / {self._at(base**-exponent, POWER)}", PRODUCT
        if exponent == sp.Rational(1, 2):
            return f"mp.sqrt({self.number(base)})", ATOM
        under = f"mp.mpf({base})" if base.is_Integer else self._at(base, ATOM)
        return f"{under} ** {self._at(exponent, ATOM)}", POWER


def _identifier(name: str) -> str:
    """A name that Python takes.

    >>> _identifier("j'"), _identifier("lambda")
    ('j_1', 'lambda_')
    """
    own = "".join(c if c.isalnum() or c == "_" else "_1" for c in name)
    return own if own.isidentifier() and not keyword.iskeyword(own) else f"{own}_" if own.isidentifier() else f"x_{own}"


def _reads(e: sp.Basic) -> bool:
    """Whether a tensor is read: conditions that read none stand first, because they say where the others may be asked."""
    return bool(list(all_reads(e)))
