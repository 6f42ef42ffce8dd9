"""The normal form of nested sums of products over free dimensions: identities proved for all sizes at once.

An expression becomes a sum of terms, each a coefficient times powers of atoms times conditions, summed over bound indices
(:mod:`symattn.terms`). Named tensors are expanded down to the opaque ones; bound indices get canonical names, only those of one
dimension being exchangeable; equal terms are collected. Two expressions with the same normal form are equal for all sizes.
The rules used, beside those of a commutative ring:

* ``exp(a + b) = exp(a) exp(b)``, ``exp(log x) = x``; ``first / (first + rest) = 1 - rest / (first + rest)``
* a sum over an index that a fact names (:class:`Contraction`): ``sum_j E[i, j] = l[i]``
* an equality ``x = y`` of a bound index with an index of the same dimension, or with a subscript that is in range, eliminates it
* an index that occurs nowhere is a factor, its size; conditions that the ranges decide, or that others imply, go away
* where that is not enough: complements, ``[x < y] = 1 - [y <= x]``, ``[x <= y - 1] = [x <= y] - [x = y]``; and a total
  ``l = sum + rest`` whose sum is taken under a condition: ``[not condition] l = [not condition] rest``

A proof holds wherever the expressions are defined: no divisor is 0. "Not proved" is not "false".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product as cartesian

import sympy as sp

from symattn.conditions import Exists, normal_conditions
from symattn.errors import LimitError, ProgramError
from symattn.indexed import expression, index, integer_symbols, name_of, reads, subscripts_of
from symattn.opening import axes_of, opened
from symattn.program import Program, Statement
from symattn.reduction import Reduction
from symattn.sums import Contraction, Outside, SumOver, Support
from symattn.terms import Term, canonical, expanded, over_one_denominator, vanishes

__all__ = ["Contraction", "NormalForm", "SumOver", "Support"]

_NONE: frozenset[sp.Basic] = frozenset()
WORK = 10_000
"""As many terms a form makes, those in between included; the longest proof of the catalogue makes about 300."""


class NormalForm:
    """Expressions in the tensors of a list of statements, brought to one form.

    Parameters
    ----------
    statements
        A program or statements; what they define is expanded unless it is opaque. Maxima, products and what a scan defines stay
        opaque.
    dims
        Index -> size, for indices of claims that a program does not know as well.
    opaque
        Names that stay as they are.
    contract
        Known sums.
    subst
        Pairs (tensor, value): wherever the tensor occurs, the value; indices of the tensor are wildcards.
    support
        Name -> where it is not 0; holds for opaque names.
    ranges
        Triples (subscript, size, conditions): the subscript is in range where the conditions hold.
    outside
        Name of an opaque tensor -> what it is where conditions do not hold.
    limit
        The greatest number of terms of one product or one list.
    work
        The greatest number of terms that are made altogether, those in between included, over all that is asked: lists
        within the limit may follow each other many times. None: :data:`WORK`.

    Raises
    ------
    LimitError
        When an expression needs more than ``limit`` terms, or more of them are made on the way than ``work``.
    ProgramError
        When an index of a claim has no size.

    >>> from symattn.indexed import expression, indices, size, tensor
    >>> i, j, n, m = *indices("i j"), size("n"), size("m")
    >>> row = Statement(tensor("r", i), tensor("A", i, j) * tensor("x", j), (j,))
    >>> nf = NormalForm([row], {i: n, j: m})
    >>> nf.equal(SumOver(tensor("r", i), i), SumOver(tensor("x", j) * SumOver(tensor("A", i, j), i), j))
    True
    >>> nf.equal(SumOver(tensor("r", i), i), SumOver(tensor("x", i) * SumOver(tensor("A", i, j), j), i))
    False
    """

    def __init__(
        self,
        statements: Program | Iterable[Statement] = (),
        dims: Mapping[sp.Symbol, sp.Expr] | None = None,
        opaque: Iterable[str] = (),
        contract: Iterable[Contraction] = (),
        subst: Iterable[tuple[sp.Expr, sp.Expr]] = (),
        support: Mapping[str, Support] | None = None,
        ranges: Iterable[tuple[sp.Expr, sp.Expr, frozenset[sp.Basic]]] = (),
        outside: Mapping[str, Outside] | None = None,
        limit: int = 20_000,
        work: int | None = None,
    ) -> None:
        known = dict(statements.dims) if isinstance(statements, Program) else {}
        self.dims: dict[sp.Symbol, sp.Expr] = known | dict(dims or {})
        held = set(opaque)
        self.statements = {s.name: s for s in statements}
        self.open = {
            s.name: s
            for s in statements
            if s.name not in held and not s.range_only and s.scan is None and (s.reduce == "sum" or not s.over)
        }
        self.contract, self.subst, self.ranges = tuple(contract), tuple(subst), tuple(ranges)
        self.support = dict(support or {})
        self.outside = dict(outside or {})
        self.limit = limit
        self.work = WORK if work is None else work
        self._made = 0
        self._count = 0
        self._known: dict[str, list[Term]] = {}
        self._reduction = Reduction(self)
        self._axes = axes_of(self.statements.values(), self.dims)

    # ---------------------------------------------------------------- proofs
    def equal(self, left: sp.Expr, right: sp.Expr) -> bool:
        """Whether ``left = right`` is proved for all sizes. False says that it is not proved, not that it is false."""
        try:
            return self.is_zero(left - right)
        except LimitError:
            return False

    def is_zero(self, e: sp.Expr) -> bool:
        """Whether ``e = 0`` is proved for all sizes; raises LimitError where :meth:`equal` gives up."""
        left = self._collected(self.expand(expression(e)), split=False)
        if not left or self._splits_to_zero(list(left.values())):
            return True
        apart = [x for t in left.values() for x in self._reduction.apart(t)]
        if apart == list(left.values()):
            return False
        left = self._collected(apart, split=False)
        return not left or self._splits_to_zero(list(left.values()))

    def _splits_to_zero(self, terms: list[Term]) -> bool:
        """Whether terms cancel when their conditions are taken apart, those with most bound indices first.

        Terms that differ in more than their conditions cannot cancel, except through an equality that removes a bound index.
        """
        levels: dict[int, list[Term]] = {}
        for t in terms:
            levels.setdefault(len(t.bound), []).append(t)
        for level in range(max(levels), -1, -1):
            groups: dict[str, list[Term]] = {}
            for t in levels.get(level, ()):
                groups.setdefault(self._key(replace(t, conditions=_NONE)) or "", []).append(t)
            for group in groups.values():
                for t in self._collected(group, split=True).values():
                    if len(t.bound) >= level:
                        return False
                    levels.setdefault(len(t.bound), []).append(t)
        return True

    def terms(self, e: sp.Expr, split: bool = False) -> dict[str, sp.Expr]:
        """The normal form: canonical term -> coefficient. With ``split``, conditions are taken apart into complements too."""
        return {k: t.coefficient for k, t in self._collected(self.expand(expression(e)), split).items()}

    def _collected(self, todo: list[Term], split: bool) -> dict[str, Term]:
        """Reduce all terms, and add up those with one canonical name."""
        out: dict[str, Term] = {}
        steps = 0
        while todo:
            t = todo.pop()
            less = self._reduction.step(t, split)
            if less is None:
                key = self._key(t)
                if key is None:
                    continue
                out[key] = replace(t, coefficient=t.coefficient + (out[key].coefficient if key in out else 0))
                continue
            todo += less
            steps += 1
            self._makes(len(less))
            if len(todo) + len(out) > self.limit or steps > 20 * self.limit:
                raise LimitError(f"the normal form needs more than {self.limit} terms")
        return {k: t for k, t in out.items() if not vanishes(t.coefficient)}

    def _makes(self, terms: int) -> None:
        """Count terms that are about to be made."""
        self._made += terms
        if self._made > self.work:
            raise LimitError(f"the normal form makes more than {self.work} terms on the way")

    def _key(self, t: Term) -> str | None:
        """The canonical name of a term, shifted subscripts in one shape; None where it is 0."""
        found = opened(t, self.dims, self._axes)
        return None if found is None else canonical(*found)

    # ---------------------------------------------------------------- indices
    def fresh(self, a: sp.Symbol) -> sp.Symbol:
        """A new bound index of the size of ``a``."""
        if a not in self.dims:
            raise ProgramError(f"index {a} has no size; give it in `dims`")
        self._count += 1
        b = index(f"{a.name.split('~')[0]}~{self._count}")
        self.dims[b] = self.dims[a]
        return b

    def normal(self, where: sp.Basic) -> frozenset[sp.Basic] | None:
        """Conditions in normal shape; None when they cannot hold."""
        return normal_conditions(where, self.dims)

    # ---------------------------------------------------------------- expansion
    def expand(self, e: sp.Expr, given: frozenset[sp.Basic] = _NONE) -> list[Term]:
        """The terms of an expression; ``given`` are conditions that hold wherever it is evaluated."""
        if not reads(e) and not (integer_symbols(e) & self.dims.keys()) and not e.has(SumOver):
            return [Term(e, {})] if e != 0 else []
        if isinstance(e, sp.Add):
            return [t for a in e.args for t in self.expand(a, given)]
        if isinstance(e, sp.Mul):
            return self.times(*[self.expand(a, given) for a in e.args])
        if isinstance(e, sp.Pow):
            return self._power(e.base, e.exp, given)
        if isinstance(e, sp.exp):
            return self._exponential(e.args[0], given)
        if isinstance(e, SumOver):
            table = {a: self.fresh(a) for a in e.over}
            conditions = self.normal(e.where.xreplace(table))
            if conditions is None:
                return []
            return self._bind(self.expand(e.body.xreplace(table), given | conditions), frozenset(table.values()), conditions)
        if isinstance(e, (sp.Indexed, sp.Symbol)):
            return self._tensor(e)
        inner = self.inline(e, given)
        return [Term(sp.S.One, {inner: sp.S.One})] if isinstance(inner, type(e)) else self.expand(inner, given)

    def _tensor(self, e: sp.Expr) -> list[Term]:
        name = name_of(e)
        if e in self.dims or name not in self.open:
            return [Term(sp.S.One, {e: sp.S.One}, conditions=self.supported(e))]
        s = self.open[name]
        if name not in self._known:
            conditions = self.normal(s.where)
            inner = [] if conditions is None else self.expand(s.expr, conditions)
            self._known[name] = self._bind(inner, frozenset(s.over), conditions or _NONE)
        out = []
        self._makes(len(self._known[name]))
        for t in self._known[name]:
            table = {**{a: self.fresh(a) for a in t.bound}, **dict(zip(s.indices, subscripts_of(e), strict=True))}
            moved = self.renamed(t, table)
            if moved is not None:
                out.append(moved)
        return out

    def supported(self, e: sp.Expr) -> frozenset[sp.Basic]:
        """The conditions outside which a tensor is 0."""
        if e in self.dims or name_of(e) not in self.support:
            return _NONE
        s = self.support[name_of(e)]
        table = dict(zip(s.at, subscripts_of(e), strict=True))
        found = _NONE
        for c in s.conditions:
            q = normal_conditions(c.xreplace(table), self.dims)
            found |= frozenset({sp.false}) if q is None else q
        return found

    def renamed(self, t: Term, table: Mapping[sp.Symbol, sp.Expr]) -> Term | None:
        """The term with indices replaced; None when its conditions cannot hold any more."""
        conditions: frozenset[sp.Basic] = _NONE
        for c in t.conditions:
            q = self.normal(c.xreplace(table))
            if q is None:
                return None
            conditions |= q
        atoms: dict[sp.Expr, sp.Rational] = {}
        coefficient, names_only = t.coefficient, all(v.is_Symbol for v in table.values())
        for x, p in t.atoms.items():
            y = x.xreplace(table)
            if not isinstance(x, sp.exp) or names_only:
                atoms[y] = atoms.get(y, sp.S.Zero) + p
                continue
            if y.is_number:
                coefficient *= y**p
                continue
            apart = self._exponential(y.args[0], conditions)
            if len(apart) == 1:  # an index in the exponent may have become a sum
                coefficient *= apart[0].coefficient ** p
                for z, q in apart[0].atoms.items():
                    atoms[z] = atoms.get(z, sp.S.Zero) + p * q
                continue
            atoms[y] = atoms.get(y, sp.S.Zero) + p
        bound = frozenset(table.get(a, a) for a in t.bound)
        return Term(coefficient, {x: p for x, p in atoms.items() if p != 0}, bound, conditions)

    def _bind(self, terms: list[Term], over: frozenset[sp.Symbol], conditions: frozenset[sp.Basic]) -> list[Term]:
        return [Term(t.coefficient, t.atoms, t.bound | over, t.conditions | conditions) for t in terms]

    def times(self, *factors: list[Term]) -> list[Term]:
        """The product of sums of terms, multiplied out; bound indices are kept apart."""
        total = 1
        for f in factors:
            total *= len(f)
        if total > self.limit:
            raise LimitError(f"the normal form needs more than {self.limit} terms")
        self._makes(total)
        out = []
        for combination in cartesian(*factors):
            coefficient, atoms, bound, conditions = sp.S.One, {}, frozenset(), _NONE  # type: ignore[var-annotated]
            for t in combination:
                clash = t.bound & bound
                moved = self.renamed(t, {a: self.fresh(a) for a in clash}) if clash else t
                assert moved is not None
                coefficient *= moved.coefficient
                bound |= moved.bound
                conditions |= moved.conditions
                for x, p in moved.atoms.items():
                    atoms[x] = atoms.get(x, sp.S.Zero) + p
            out.append(Term(coefficient, {x: p for x, p in atoms.items() if p != 0}, bound, conditions))
        return out

    def _power(self, base: sp.Expr, exponent: sp.Expr, given: frozenset[sp.Basic]) -> list[Term]:
        if not exponent.is_Rational:
            whole = self.inline(base**exponent, given)
            return (
                self._number_to(whole.base, whole.exp)
                if whole.is_Pow and whole.base.is_number and whole.base.is_positive
                else [Term(sp.S.One, {whole: sp.S.One})]
            )
        if exponent.is_Integer and exponent > 0:
            return self.times(*[self.expand(base, given)] * int(exponent))
        terms = self.expand(base, given)
        if len(terms) == 1 and not terms[0].bound and terms[0].conditions <= given | self._of_names(base):
            t = terms[0]
            if exponent.is_Integer or (t.coefficient.is_positive and len(t.atoms) == 1 and next(iter(t.atoms.values())) == 1):
                return [Term(t.coefficient**exponent, {x: p * exponent for x, p in t.atoms.items()})]
        inner = expanded(self.inline(base, given), self.limit)
        if not isinstance(inner, sp.Add):
            return [Term(sp.S.One, {inner: exponent})]
        if not exponent.is_Integer:
            return [self._root(inner, exponent)]
        number, rest, below = over_one_denominator(inner)
        under = self.times(*[self.expand(below, given)] * -int(exponent)) if below != 1 else [Term(sp.S.One, {})]
        return self.times([Term(number**exponent, {rest: exponent})], under)

    def _number_to(self, base: sp.Expr, exponent: sp.Expr) -> list[Term]:
        """A positive base to a sum: the product of its powers, rational factors of the exponents being powers of those."""
        coefficient, atoms = sp.S.One, dict[sp.Expr, sp.Rational]()
        for a in sp.Add.make_args(expanded(exponent, self.limit)):
            number, rest = a.as_coeff_Mul()
            if rest == 1:
                coefficient *= base**number
            else:
                number, rest = (number, rest) if number.is_Rational else (sp.S.One, a)
                atoms[base**rest] = atoms.get(base**rest, sp.S.Zero) + number
        return [Term(coefficient, atoms)]

    def _root(self, e: sp.Expr, exponent: sp.Rational) -> Term:
        """A power of a sum that is no integer; a denominator of squares comes out: ``(x**2)**q = |x|**(2 q)``."""
        number, rest, below = over_one_denominator(e)
        coefficient, atoms = number**exponent, {rest: exponent}
        for x, k in below.as_powers_dict().items():
            if x.is_positive and not reads(x):
                coefficient *= x ** (-k * exponent)
            elif k.is_even:
                atoms[sp.Abs(x)] = -k * exponent
            else:
                return Term(sp.S.One, {e: exponent})
        return Term(coefficient, atoms) if number.is_positive else Term(sp.S.One, {e: exponent})

    def _of_names(self, base: sp.Expr) -> frozenset[sp.Basic]:
        """Support of an opaque tensor that is divided by: outside it there is no value to speak of."""
        return self.supported(base) if isinstance(base, (sp.Indexed, sp.Symbol)) and base not in self.dims else _NONE

    def _exponential(self, argument: sp.Expr, given: frozenset[sp.Basic]) -> list[Term]:
        """The exponential of a sum: the product of the exponentials, rational factors of the exponent being powers."""
        out: list[Term] = [Term(sp.S.One, {})]
        for a in sp.Add.make_args(expanded(self.inline(argument, given, exponent=True), self.limit)):
            number, rest = a.as_coeff_Mul()
            if not number.is_Rational:
                number, rest = sp.S.One, a
            if isinstance(rest, sp.log):
                out = self.times(out, self._power(rest.args[0], number, given))
            elif not reads(rest) and not (integer_symbols(rest) & self.dims.keys()):
                out = self.times(out, [Term(sp.exp(a), {})])
            else:
                out = self.times(out, [Term(sp.S.One, {sp.exp(rest): number})])
        return out

    def inline(self, e: sp.Expr, given: frozenset[sp.Basic], exponent: bool = False) -> sp.Expr:
        """``e`` with every unreduced tensor written out, where it is known to be inside its domain; reduced ones stay names.

        In an exponent a tensor that is the logarithm of a sum stays a name too: as a power it would have to be multiplied out.
        """
        for x in e.atoms(SumOver):
            if not any(x in y.atoms(SumOver) for y in e.atoms(SumOver) - {x}):  # outermost: bound indices of their own
                e = e.xreplace({x: x.over_new({a: self.fresh(a) for a in x.over}, [self.dims[a] for a in x.over])})
        table = {}
        for x in reads(e):
            s = self.statements.get(name_of(x))
            if x in self.dims or s is None or s.over or s.range_only or s.name not in self.open:
                continue
            if exponent and any(isinstance(f.args[0], sp.Add) for f in s.expr.atoms(sp.log)):
                continue
            at = dict(zip(s.indices, subscripts_of(x), strict=True))
            conditions = self.normal(s.where.xreplace(at))
            if conditions is not None and conditions <= given:
                table[x] = self.inline(s.expr.xreplace(at), given, exponent)
        return e.xreplace(table)

    # ---------------------------------------------------------------- what the reduction asks
    def exists(self, conditions: Iterable[sp.Basic], over: Iterable[sp.Symbol]) -> frozenset[sp.Basic] | None:
        """The condition that some value of the indices satisfies all conditions, in normal shape."""
        found = Exists.over(conditions, {a: self.dims[a] for a in over})
        self.dims |= zip(found.indices, found.sizes, strict=True)
        return self.normal(found)
