r"""Matrices, vectors and scalars in LaTeX, each with the values that the formula stands for.

A :class:`Form` carries its formula and a function that computes it with NumPy, built together by the same step; so a test
compares what is *printed* with what the statement says. The evaluator is for that purpose: float64, no masks, no rounding claim.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
import numpy.typing as npt
import sympy as sp

from symattn.program import integer_symbols, name_of, reads, subscripts_of
from symattn.readings.typesetting.letters import Style, script
from symattn.readings.typesetting.scalars import MACROS, bracket

ADDED, ENTRYWISE, PRODUCT, ATOM = range(4)
ONES = r"\mathbf{1}"
Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Env:
    """What a formula is evaluated at: arrays by name, numbers for index and size symbols, and where the batch indices stand.

    ``scans`` are the axes beyond whose ends a tensor is 0, by name.
    """

    arrays: Mapping[str, npt.NDArray[np.generic]]
    sizes: Mapping[sp.Symbol, int]
    point: Mapping[sp.Symbol, int]
    scans: Mapping[str, int] = field(default_factory=dict)

    def pointwise(self, e: sp.Basic, labels: Sequence[sp.Symbol]) -> Array:
        """A scalar expression or a condition on the whole grid of some indices."""
        shape = tuple(self.sizes[a] for a in labels)
        grid = dict(zip(labels, np.indices(shape), strict=True)) if labels else {}
        table: dict[sp.Basic, sp.Dummy] = {}
        values = []
        for x in (*reads(e), *integer_symbols(e)):
            if x in table:
                continue
            table[x] = sp.Dummy()
            if isinstance(x, sp.Symbol) and x.is_integer:
                value = grid.get(x, self.point.get(x, self.sizes.get(x)))
            else:
                at = tuple(np.asarray(self.pointwise(s, labels), int) for s in subscripts_of(x))
                value = self._taken(x, at) if at else self.arrays[name_of(x)]
            values.append(np.broadcast_to(np.asarray(value), shape))
        return np.broadcast_to(_callable(list(table.values()), e.xreplace(table))(*values), shape)

    def read(self, x: sp.Expr, labels: Sequence[sp.Symbol]) -> Array:
        """A tensor with its axes in the order of ``labels``, cut at the batch indices."""
        subscripts = subscripts_of(x)
        at = tuple(slice(None) if s in labels else int(self.pointwise(s, ())) for s in subscripts)
        left = [s for s in subscripts if s in labels]
        array, scan = np.asarray(self.arrays[name_of(x)], float), self.scans.get(name_of(x))
        step = None if scan is None else at[scan]
        if isinstance(step, int) and not 0 <= step < array.shape[scan or 0]:
            at = tuple(0 if k == scan else s for k, s in enumerate(at))
            array = np.zeros_like(array)
        return array[at].transpose([left.index(a) for a in labels])

    def _taken(self, x: sp.Expr, at: tuple[Array, ...]) -> Array:
        """The elements of a tensor at some places, 0 beyond the ends of a scan."""
        array, scan = self.arrays[name_of(x)], self.scans.get(name_of(x))
        if scan is None:
            return np.asarray(array[at])
        there = (at[scan] >= 0) & (at[scan] < array.shape[scan])
        inside = tuple(np.where(there, a, 0) if k == scan else a for k, a in enumerate(at))
        return np.where(there, array[inside], 0.0)


def _callable(arguments: Sequence[sp.Dummy], e: sp.Basic) -> Callable[..., Array]:
    """A NumPy function of dummy symbols; no name that a user chose reaches the code."""
    own = {"erf": np.vectorize(math.erf, otypes=[float]), "sigmoid": lambda x: 1 / (1 + np.exp(-x))}
    f = sp.lambdify(list(arguments), e, [own, "numpy"])
    # NumPy has no negative powers of integers
    return lambda *values: f(*[np.asarray(v, float) if np.asarray(v).dtype.kind in "iu" else v for v in values])


Values = Callable[[Env], Array]


@dataclass(frozen=True)
class Form:
    """A formula: its LaTeX, the indices of its axes (two at most), how strongly it holds together, and its values."""

    tex: str
    labels: tuple[sp.Symbol, ...]
    level: int
    value: Values
    apart: tuple[bool, bool] = (False, False)  # begins, ends with a gradient's letter
    transposed: Callable[[], Form] | None = None

    def at(self, level: int) -> str:
        """The LaTeX, bracketed where it holds together less than ``level``."""
        return self.tex if self.level >= level else bracket(self.tex)


@dataclass(frozen=True)
class Algebra:
    """The operations on forms, in one style."""

    style: Style

    @property
    def top(self) -> str:
        """The transpose as a superscript."""
        return script("^", self.style.transpose)

    def side_by_side(self, a: Form, b: Form, level: int = PRODUCT) -> str:
        """Two formulas as factors, a gradient's letter set apart by a thin space."""
        thin = (b.apart[0] and b.level >= level) or (
            a.apart[1] and a.level >= level and b.level >= level and not a.tex.endswith("}")
        )
        return a.at(level) + (self.style.thin if thin else " ") + b.at(level)

    def transpose(self, a: Form) -> Form:
        """A transposed matrix, or a column written as a row (its values stay one axis)."""
        if a.transposed is not None:
            return a.transposed()
        safe = a.level == ATOM and "^" not in a.tex
        tex = (a.tex if safe else bracket(a.tex)) + self.top
        value: Values = (lambda env: a.value(env).T) if len(a.labels) == 2 else a.value
        return Form(tex, a.labels[::-1], ATOM, value, (a.apart[0] and safe, False), lambda: a)

    def oriented(self, a: Form, labels: Sequence[sp.Symbol]) -> Form:
        """A matrix with its axes in this order."""
        return a if a.labels == tuple(labels) else self.transpose(a)

    def entrywise(self, forms: Sequence[Form]) -> Form:
        """The Hadamard product of forms with the same labels."""
        if len(forms) == 1:
            return forms[0]
        tex = f" {self.style.hadamard} ".join(a.at(ATOM) for a in forms)
        return Form(tex, forms[0].labels, ENTRYWISE, lambda env: np.prod([a.value(env) for a in forms], axis=0))

    def matmul(self, a: Form, b: Form) -> Form:
        """The product of a matrix with a matrix or a vector."""
        labels = a.labels[:-1] + b.labels[1:]
        value: Values = lambda env: a.value(env) @ b.value(env)
        back = (lambda: self.matmul(self.transpose(b), self.transpose(a))) if len(b.labels) == 2 else None
        out = Form(self.side_by_side(a, b), labels, PRODUCT, value, (a.apart[0], b.apart[1]), back)
        return out if len(b.labels) == 2 else self._with_row(out, self.transpose(b), self.transpose(a))

    def row_sums(self, a: Form) -> Form:
        """A matrix times the vector of ones."""
        value: Values = lambda env: a.value(env).sum(1)
        out = Form(a.at(PRODUCT) + ONES, a.labels[:1], PRODUCT, value, (a.apart[0], False))
        return self._with_row(out, Form(ONES + self.top, a.labels[1:], ATOM, a.value), self.transpose(a))

    def _with_row(self, column: Form, left: Form, right: Form) -> Form:
        """A column with the product ``left right`` as the way to write its transpose."""
        tex = self.side_by_side(left, right)
        row = Form(tex, column.labels, PRODUCT, column.value, (left.apart[0], right.apart[1]), lambda: column)
        return replace(column, transposed=lambda: row)

    def inner(self, u: Form, w: Form) -> Form:
        """The scalar product of two vectors."""
        row = self.transpose(u)
        return Form(
            self.side_by_side(row, w),
            (),
            PRODUCT,
            lambda env: np.asarray(u.value(env) @ w.value(env)),
            (row.apart[0], w.apart[1]),
        )

    def total(self, u: Form) -> Form:
        """The sum of a vector's entries."""
        return Form(
            ONES + self.top + " " + u.at(PRODUCT), (), PRODUCT, lambda env: np.asarray(u.value(env).sum()), (False, u.apart[1])
        )

    def outer(self, u: Form, w: Form) -> Form:
        """The matrix of all products of two vectors' entries."""
        row = self.transpose(w)
        return Form(
            self.side_by_side(u, row),
            u.labels + w.labels,
            PRODUCT,
            lambda env: np.multiply.outer(u.value(env), w.value(env)),
            (u.apart[0], False),
            lambda: self.outer(w, u),
        )

    def diagonal(self, u: Form, exponent: sp.Rational) -> str:
        """The LaTeX of a diagonal matrix, raised to a power."""
        return self.style.function("diag") + bracket(u.tex) + ("" if exponent == 1 else script("^", _exponent(exponent)))

    def vector(self, parts: Sequence[tuple[Form, sp.Rational]]) -> Form:
        """A vector given as the entrywise product of powers."""
        plain = [u for u, q in parts if q == 1]
        raised = [(u, q) for u, q in parts if q != 1]
        if not plain:
            return self.entrywise([self.power(u, q) for u, q in raised])
        body = self.entrywise(plain)
        for u, q in reversed(raised):
            body = self._scaled_rows(u, q, body)
        return body

    def _scaled_rows(self, u: Form, q: sp.Rational, a: Form) -> Form:
        def value(env: Env) -> Array:
            weights = u.value(env) ** float(q)
            return weights[:, None] * a.value(env) if len(a.labels) == 2 else weights * a.value(env)

        diagonal = Form(self.diagonal(u, q), u.labels, ATOM, value)
        return Form(self.side_by_side(diagonal, a), a.labels, PRODUCT, value, (False, a.apart[1]))

    def rows_scaled(self, parts: Sequence[tuple[Form, sp.Rational]], a: Form) -> Form:
        """``diag(u) A``."""
        for u, q in self._merged(parts)[::-1]:
            a = self._scaled_rows(u, q, a)
        return a

    def columns_scaled(self, a: Form, parts: Sequence[tuple[Form, sp.Rational]]) -> Form:
        """``A diag(u)``."""
        for u, q in self._merged(parts):
            a = self._scaled_columns(a, u, q)
        return a

    def _scaled_columns(self, a: Form, u: Form, q: sp.Rational) -> Form:
        diagonal = Form(self.diagonal(u, q), u.labels, ATOM, u.value)
        value: Values = lambda env: a.value(env) * u.value(env) ** float(q)
        return Form(self.side_by_side(a, diagonal), a.labels, PRODUCT, value, (a.apart[0], False))

    def _merged(self, parts: Sequence[tuple[Form, sp.Rational]]) -> list[tuple[Form, sp.Rational]]:
        """Plain factors as one vector, the raised ones as they are."""
        plain = [u for u, q in parts if q == 1]
        one = sp.Integer(1)
        return [*([(self.entrywise(plain), one)] if plain else []), *((u, q) for u, q in parts if q != 1)]

    def power(self, a: Form, q: sp.Rational) -> Form:
        """Every entry to a power; a scalar's own power."""
        safe = a.level == ATOM and "^" not in a.tex and not a.apart[0]
        sign = r"\circ " if a.labels else ""
        tex = (a.tex if safe else bracket(a.tex)) + script("^", sign + _exponent(q))
        return Form(tex, a.labels, ATOM, lambda env: a.value(env) ** float(q))

    def spread(self, a: Form, labels: Sequence[sp.Symbol]) -> Form:
        """A scalar or a vector repeated along the axes that it lacks, with vectors of ones."""
        labels = tuple(labels)
        if a.labels == labels:
            return a
        if not a.labels:
            ones = ONES + (ONES + self.top if len(labels) == 2 else "")
            tex = ones if a.tex == "1" else a.at(PRODUCT) + ones
            value: Values = lambda env: np.broadcast_to(a.value(env), [env.sizes[x] for x in labels])
            return Form(tex, labels, PRODUCT, value, (a.apart[0], False))
        row, column = labels
        if a.labels == (row,):
            value = lambda env: np.repeat(a.value(env)[:, None], env.sizes[column], 1)
            return Form(a.at(PRODUCT) + ONES + self.top, labels, PRODUCT, value, (a.apart[0], False))
        value = lambda env: np.repeat(a.value(env)[None, :], env.sizes[row], 0)
        return Form(ONES + self.transpose(a).at(PRODUCT), labels, PRODUCT, value)

    def add(self, terms: Sequence[tuple[bool, Form]]) -> Form:
        """The sum of forms with the same labels, each with whether it is subtracted."""
        tex = ""
        for negative, a in terms:
            sign = (" - " if negative else " + ") if tex else ("-" if negative else "")
            tex += sign + a.at(ENTRYWISE)
        return Form(
            tex,
            terms[0][1].labels,
            ADDED,
            lambda env: np.sum([-a.value(env) if negative else a.value(env) for negative, a in terms], axis=0),
            (terms[0][1].apart[0] and not terms[0][0], terms[-1][1].apart[1]),
        )

    def negative(self, a: Form) -> Form:
        """Minus a form."""
        return Form("-" + a.at(ENTRYWISE), a.labels, ADDED, lambda env: -a.value(env), (False, a.apart[1]))

    def times(self, factor: Form, a: Form) -> Form:
        """A scalar in front of a form."""
        value: Values = lambda env: factor.value(env) * a.value(env)
        return Form(
            self.side_by_side(factor, a),
            a.labels,
            PRODUCT,
            value,
            (factor.apart[0], a.apart[1]),
            (lambda: self.times(factor, self.transpose(a))) if len(a.labels) == 2 else None,
        )

    def over(self, a: Form, divisor: Form) -> Form:
        """A form divided by a scalar, as a fraction."""
        return Form(
            rf"\frac{{{a.tex}}}{{{divisor.tex}}}",
            a.labels,
            PRODUCT,
            lambda env: a.value(env) / divisor.value(env),
            transposed=(lambda: self.over(self.transpose(a), divisor)) if len(a.labels) == 2 else None,
        )

    def function(self, e: sp.Expr, arguments: Sequence[Form]) -> Form:
        """A function of every entry; the arguments have the same labels."""
        name = e.func.__name__
        macro = {"Max": r"\max", "Min": r"\min"}.get(name) or MACROS.get(name) or self.style.function(name)
        dummies = [sp.Dummy(real=True) for _ in arguments]
        f = cache(lambda: _callable(dummies, e.func(*dummies)))
        return Form(
            macro + bracket(", ".join(a.tex for a in arguments)),
            arguments[0].labels,
            ATOM,
            lambda env: np.asarray(f()(*[a.value(env) for a in arguments])),
        )

    def summed(self, a: Form, over: Sequence[sp.Symbol], names: Sequence[str]) -> Form:
        """The sum over batch indices."""

        def value(env: Env) -> Array:
            shape = [env.sizes[x] for x in over]
            points = [dict(zip(over, map(int, at), strict=True)) for at in np.ndindex(*shape)]
            return np.sum([a.value(replace(env, point={**env.point, **p})) for p in points], axis=0)

        return Form(rf"\sum{script('_', ','.join(names))} {a.at(ENTRYWISE)}", a.labels, PRODUCT, value)


def _exponent(q: sp.Rational) -> str:
    return str(q)
