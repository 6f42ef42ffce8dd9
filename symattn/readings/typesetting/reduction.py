r"""From index form to matrix form: a statement whose tensors have at most two axes besides the batch indices.

The factors of a product are grouped by index set, entrywise within a group; the groups are edges between indices, and the bound
indices are eliminated, the last one first: ``A_ix B_xj`` gives ``A B`` (transposed as needed), ``A_ix`` gives ``A 1``,
``A_ix v_x`` gives ``A v``, ``A_ix v_x B_xj`` gives ``A diag(v) B`` and ``u_x w_x`` gives ``u^T w``. What does not reduce (a third
index, a look-up, a cycle) raises :class:`NoMatrixForm`, and the statement is written in index form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sympy as sp

from symattn.program import Program, Statement, integer_symbols, name_of, reads, subscripts_of
from symattn.readings.typesetting.conditions import condition
from symattn.readings.typesetting.letters import script
from symattn.readings.typesetting.matrices import ADDED, ATOM, PRODUCT, Algebra, Form
from symattn.readings.typesetting.ordering import absorb_sign, is_negative, is_tensorial
from symattn.readings.typesetting.scalars import ATOM as SCALAR_ATOM
from symattn.readings.typesetting.scalars import SUM as SCALAR_SUM
from symattn.readings.typesetting.scalars import Printer, bracket
from symattn.readings.typesetting.zeros import vanishes_outside

Labels = tuple[sp.Symbol, ...]
Part = tuple[Form, sp.Rational]
ONE = sp.Integer(1)


class NoMatrixForm(Exception):
    """The statement does not reduce to matrices."""


@dataclass(frozen=True)
class Reduction:
    """Reduces the expressions of one statement; ``batch`` indices are no axes."""

    program: Program
    printer: Printer
    batch: frozenset[sp.Symbol]

    @property
    def algebra(self) -> Algebra:
        """The operations, in the printer's style."""
        return Algebra(self.printer.style)

    # --- statements

    def statement(self, s: Statement) -> Form:
        """The right-hand side of a statement."""
        labels = tuple(a for a in s.indices if a not in self.batch)
        over = tuple(a for a in s.over if a not in self.batch)
        lifted = tuple(a for a in s.over if a in self.batch)
        if len(labels) > 2:
            raise NoMatrixForm
        e = absorb_sign(s.expr)
        if s.over and s.reduce == "max" and not lifted:
            return self._maximum(s, e, labels, over)
        if s.over and s.reduce != "sum":
            raise NoMatrixForm
        if not s.over:
            return self._fit(self.element(e, labels), labels)
        guards = [c for c in s.conditions if integer_symbols(c) & set(s.over) and not vanishes_outside(self.program, e, c)]
        coefficient, body = self.contract(e, over, labels, self._indicators(guards, (*labels, *over)))
        body = self._fit(body, labels)
        if lifted:
            inside = integer_symbols(coefficient) & set(lifted)
            body = self.scaled(coefficient, body) if inside else body
            body = self.algebra.summed(body, lifted, [self.printer.tex(a) for a in lifted])
            coefficient = ONE if inside else coefficient
        return self.scaled(coefficient, body, fraction=not lifted)

    def _fit(self, a: Form, labels: Labels) -> Form:
        a = self.algebra.oriented(a, labels) if set(a.labels) == set(labels) else a
        return self.algebra.spread(a, labels)

    def _maximum(self, s: Statement, e: sp.Expr, labels: Labels, over: Labels) -> Form:
        if len(over) != 1 or len(labels) > 1:
            raise NoMatrixForm
        x = over[0]
        body = self._fit(self.element(e, (*labels, x)), (*labels, x))
        masks = [c for c in s.conditions if integer_symbols(c) & {x}]
        if not set(masks) <= self._outside(e):
            raise NoMatrixForm  # a matrix has no entries outside its own mask; what else is left out must be said
        name = r"\max" if not labels else self.printer.style.function("rowmax")

        def value(env):  # type: ignore[no-untyped-def]
            keep = np.ones([env.sizes[a] for a in body.labels], bool)
            for c in masks:
                keep = keep & env.pointwise(c, body.labels)
            return np.where(keep, body.value(env), -np.inf).max(-1)

        return Form(name + bracket(body.tex), labels, ATOM, value)

    def _outside(self, e: sp.Expr) -> set[sp.Basic]:
        """The conditions outside which what an expression reads has no entries."""
        found: set[sp.Basic] = set()
        for x in reads(e):
            if name_of(x) in self.program:
                s = self.program[name_of(x)]
                table = dict(zip(s.indices, subscripts_of(x), strict=True))
                found |= {c.xreplace(table) for c in s.conditions}
        return found

    def _indicators(self, conditions: Sequence[sp.Basic], axes: Labels) -> list[Form]:
        """The 0/1 matrices of conditions, one for all conditions on the same indices."""
        found: dict[Labels, list[sp.Basic]] = {}
        for c in conditions:
            found.setdefault(tuple(a for a in axes if a in integer_symbols(c)), []).append(c)
        if not all(1 <= len(labels) <= 2 for labels in found):
            raise NoMatrixForm
        return [self._indicator(sp.And(*cs), labels) for labels, cs in found.items()]

    def _indicator(self, c: sp.Basic, labels: Labels) -> Form:
        tex = f"[{condition(c, self.printer)}]" + script("_", "".join(self.printer.tex(a) for a in labels))
        return Form(tex, labels, ATOM, lambda env: env.pointwise(c, labels).astype(float))

    # --- elementwise expressions

    def element(self, e: sp.Expr, labels: Labels) -> Form:
        """An expression without sums, as a matrix or vector over those of ``labels`` that it has, in their order."""
        own = tuple(a for a in labels if a in integer_symbols(e))
        if not own:
            return self.scalar(e)
        if len(own) > 2:
            raise NoMatrixForm
        if not is_tensorial(e) and not isinstance(e, sp.Mul):
            return self._index_only(e, own)
        if isinstance(e, sp.Indexed):
            return self._letter(e, own)
        if isinstance(e, sp.Add):
            return self._sum(e, own)
        if isinstance(e, sp.Mul):
            return self.scaled(*self.contract(e, (), own, []))
        if isinstance(e, sp.Pow) and e.exp.is_Rational:
            return self.algebra.power(self.element(e.base, own), e.exp)
        if isinstance(e, (sp.Function, sp.Max, sp.Min)) and e.func.__name__ not in ("floor", "ceiling", "Mod", "Piecewise"):
            arguments = self.printer.order.terms(e.args) if isinstance(e, (sp.Max, sp.Min)) else e.args
            return self.algebra.function(e, [self.algebra.spread(self.element(a, own), own) for a in arguments])
        raise NoMatrixForm

    def scalar(self, e: sp.Expr) -> Form:
        """An expression that has no axis: numbers, parameters, sizes, tensors with batch indices only."""
        p = self.printer.piece(e)
        level = {SCALAR_SUM: ADDED, SCALAR_ATOM: ATOM}.get(p.level, PRODUCT)
        return Form(p.tex, (), level, lambda env: env.pointwise(e, ()), (p.apart, p.apart))

    def _letter(self, x: sp.Expr, labels: Labels) -> Form:
        for s in subscripts_of(x):
            used = integer_symbols(s)
            if not (s in labels or (used and used <= self.batch)):
                raise NoMatrixForm
        found = tuple(s for s in subscripts_of(x) if s in labels)
        if len(set(found)) != len(found):
            raise NoMatrixForm
        above, _ = self.printer.subscripts(x)
        letter = self.printer.letters.tensor(str(x.base.label))
        shape = self.printer.shape(found)
        plain = Form(
            letter.tex(above, shape=shape),
            found,
            ATOM,
            lambda env: env.read(x, found),
            (letter.gradient, letter.gradient and not above),
        )
        turned = Form(
            letter.tex(above, raised=self.printer.style.transpose, shape=shape[::-1]),
            found[::-1],
            ATOM,
            lambda env: env.read(x, found[::-1]),
            (letter.gradient, False),
            lambda: plain,
        )
        if len(found) == 1:
            turned = Form(turned.tex, found, ATOM, plain.value, turned.apart, lambda: plain)
        a = Form(plain.tex, plain.labels, ATOM, plain.value, plain.apart, lambda: turned)
        return self.algebra.oriented(a, labels)

    def _index_only(self, e: sp.Expr, labels: Labels) -> Form:
        tex = self.printer.tex(e)
        left, right = (r"\left[", r"\right]") if bracket(tex).startswith(r"\left") else ("[", "]")
        below = "".join(self.printer.tex(a) for a in labels)
        return Form(f"{left}{tex}{right}{script('_', below)}", labels, ATOM, lambda env: env.pointwise(e, labels))

    def _sum(self, e: sp.Add, labels: Labels) -> Form:
        loose = [t for t in e.args if not is_tensorial(t) and integer_symbols(t) & set(labels)]
        terms = [t for t in e.args if t not in loose]
        if len(loose) == 1:
            terms, loose = [*terms, *loose], []
        parts = [self._signed(t, labels) for t in self.printer.order.terms(terms)]
        if loose:
            together = sp.Add(*loose)
            parts.append((False, self.element(together, labels)))
        full = tuple(a for a in labels if any(a in p.labels for _, p in parts))
        return self.algebra.add([(negative, self.algebra.spread(p, full)) for negative, p in parts])

    def _signed(self, t: sp.Expr, labels: Labels) -> tuple[bool, Form]:
        negative = is_negative(t)
        return negative, self.element(-t if negative else t, labels)

    # --- products

    def scaled(self, coefficient: sp.Expr, a: Form, *, fraction: bool = True) -> Form:
        """A scalar coefficient in front of a form; a reciprocal as a fraction line under it."""
        if is_negative(coefficient):
            return self.algebra.negative(self.scaled(-coefficient, a, fraction=fraction))
        if coefficient == 1:
            return a
        if a.tex == "1" and not a.labels:
            return self.scalar(coefficient)
        num, den = sp.fraction(coefficient) if not coefficient.is_number else (ONE, 1 / coefficient)
        if fraction and num == 1 and den != 1 and (not den.is_number or den.is_Integer or (den**2).is_Integer):
            return self.algebra.over(a, self.scalar(den))
        return self.algebra.times(self.scalar(coefficient), a)

    def contract(self, e: sp.Expr, over: Labels, labels: Labels, guards: Sequence[Form]) -> tuple[sp.Expr, Form]:
        """The sum over ``over`` of a product: its scalar coefficient and the rest."""
        axes = (*labels, *over)
        factors = sp.Mul.make_args(e)
        scalars = [f for f in factors if not integer_symbols(f) & set(axes)]
        others = [f for f in factors if integer_symbols(f) & set(axes)]
        wide = [f for f in others if len(integer_symbols(f) & set(axes)) > 2]
        if wide:
            if not all(isinstance(f, sp.Add) for f in wide):
                raise NoMatrixForm
            terms = self.printer.order.terms(sp.Add.make_args(sp.expand_mul(sp.Mul(*others))))
            if len(terms) == 1:
                raise NoMatrixForm
            return sp.Mul(*scalars), self.algebra.add([self._term(t, over, labels, guards) for t in terms])
        return self._product(sp.Mul(*scalars), others, over, labels, guards)

    def _term(self, t: sp.Expr, over: Labels, labels: Labels, guards: Sequence[Form]) -> tuple[bool, Form]:
        coefficient, a = self.contract(t, over, labels, guards)
        negative = is_negative(coefficient)
        return negative, self._fit(self.scaled(-coefficient if negative else coefficient, a), labels)

    def _product(
        self, coefficient: sp.Expr, factors: list[sp.Expr], over: Labels, labels: Labels, guards: Sequence[Form]
    ) -> tuple[sp.Expr, Form]:
        axes = (*labels, *over)
        graph = Graph(self.algebra, axes)
        for g in guards:
            graph.put(g)
        loose = [f for f in factors if not is_tensorial(f)]
        if loose:
            graph.put(self._index_only(absorb_sign(sp.Mul(*loose)), self._own(sp.Mul(*loose), axes)))
        for f in self.printer.order.factors(f for f in factors if is_tensorial(f)):
            own = self._own(f, axes)
            if len(own) == 1 and isinstance(f, sp.Pow) and f.exp.is_Rational:
                graph.put(self.element(f.base, own), f.exp)
            else:
                graph.put(self.element(f, own))
        for x in reversed(over):
            graph.eliminate(x)
        return coefficient, graph.result(labels)

    def _own(self, e: sp.Expr, axes: Labels) -> Labels:
        own = tuple(a for a in axes if a in integer_symbols(e))
        if len(own) > 2:
            raise NoMatrixForm
        return own


class Graph:
    """A product of matrices and vectors as edges between indices; bound indices are eliminated one at a time."""

    def __init__(self, algebra: Algebra, axes: Labels) -> None:
        self.algebra = algebra
        self.axes = axes
        self.matrices: dict[frozenset[sp.Symbol], list[Form]] = {}
        self.vectors: dict[sp.Symbol, list[Part]] = {}
        self.scalars: list[Form] = []

    def put(self, a: Form, exponent: sp.Rational = ONE) -> None:
        """One more factor."""
        if len(a.labels) == 2:
            self.matrices.setdefault(frozenset(a.labels), []).append(self.algebra.oriented(a, self._sorted(a.labels)))
        elif len(a.labels) == 1:
            self.vectors.setdefault(a.labels[0], []).append((a, exponent))
        else:
            self.scalars.append(a)

    def eliminate(self, x: sp.Symbol) -> None:
        """The sum over one index."""
        at = sorted((k for k in self.matrices if x in k), key=lambda k: [self.axes.index(a) for a in k if a != x])
        parts = self.vectors.pop(x, [])
        if not at:
            self._sum_vector(parts)
        elif len(at) == 1:
            (a,) = at[0] - {x}
            m = self.algebra.oriented(self.algebra.entrywise(self.matrices.pop(at[0])), (a, x))
            self.put(self.algebra.matmul(m, self.algebra.vector(parts)) if parts else self.algebra.row_sums(m))
        elif len(at) == 2:
            (a,), (b,) = at[0] - {x}, at[1] - {x}
            left = self.algebra.oriented(self.algebra.entrywise(self.matrices.pop(at[0])), (a, x))
            right = self.algebra.oriented(self.algebra.entrywise(self.matrices.pop(at[1])), (x, b))
            self.put(self.algebra.matmul(left, self.algebra.rows_scaled(parts, right)))
        else:
            raise NoMatrixForm

    def _sum_vector(self, parts: list[Part]) -> None:
        if not parts:
            raise NoMatrixForm
        if len(parts) == 2 and all(q == 1 for _, q in parts):
            self.put(self.algebra.inner(parts[0][0], parts[1][0]))
        else:
            self.put(self.algebra.total(self.algebra.vector(parts)))

    def result(self, labels: Labels) -> Form:
        """What is left once all bound indices are gone."""
        alg = self.algebra
        vectors = {a: self.vectors[a] for a in labels if a in self.vectors}
        if self.matrices:
            ((key, forms),) = self.matrices.items()
            row, column = self._sorted(key)
            out = alg.entrywise(forms)
            out = alg.columns_scaled(alg.rows_scaled(vectors.get(row, []), out), vectors.get(column, []))
        elif len(vectors) == 2:
            u, w = (alg.vector(parts) for parts in vectors.values())
            out = alg.outer(u, w)
        elif vectors:
            (parts,) = vectors.values()
            out = alg.vector(parts)
        elif self.scalars:
            out = self.scalars.pop()
        else:
            out = Form("1", (), ATOM, lambda env: np.asarray(1.0))
        for a in reversed(self.scalars):
            out = alg.times(a, out)
        return out

    def _sorted(self, labels: Sequence[sp.Symbol] | frozenset[sp.Symbol]) -> Labels:
        return tuple(a for a in self.axes if a in labels)
