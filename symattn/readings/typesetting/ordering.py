"""In which order factors and terms are written: by the indices of the statement, not in SymPy's order of names.

A product follows the target's indices and then the bound ones (``Q[i, c]*K[j, c]``); a difference begins with its positive
term, the one with the most indices first (``dP - D``); index arithmetic follows the indices, sizes last (``i + m - n``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import sympy as sp

from symattn.program import Program, Statement, integer_symbols, name_of, reads


def is_tensorial(e: sp.Basic) -> bool:
    """Whether an expression reads a tensor with subscripts."""
    return bool(e.atoms(sp.Indexed))


def is_negative(term: sp.Expr) -> bool:
    """Whether a term of a sum is written with a minus sign.

    >>> is_negative(-2 * sp.Symbol("x")), is_negative(sp.Symbol("x"))
    (True, False)
    """
    coefficient = term.as_coeff_Mul()[0]
    return bool(coefficient.is_negative)


@lru_cache(maxsize=64)
def batch_indices(program: Program) -> frozenset[sp.Symbol]:
    """The indices that no matrix has as an axis: those before the last two of a target, unless a matrix or vector ends in them.

    The index of a scan is one of them: a recurrence is written for one step.

    >>> from symattn.program import indices, size, tensor
    >>> h, i, j = indices("h i j")
    >>> s = Statement(tensor("P", h, i, j), tensor("E", h, i, j))
    >>> batch_indices(Program((s,), {h: size("H"), i: size("n"), j: size("m")}, ("P",)))
    frozenset({h})
    """
    first = {a for s in program for a in s.indices[:-2]}
    last = {s.indices[-1] for s in program if len(s.indices) > 1 and not set(s.indices) <= first}
    return frozenset(first - last | {s.scan.index for s in program if s.scan is not None})


@dataclass(frozen=True)
class Order:
    """What decides the order of writing: the indices of the statement in turn, without batch indices, and the defined tensors."""

    domain: tuple[sp.Symbol, ...] = ()
    defined: frozenset[str] = frozenset()

    @classmethod
    def of(cls, statement: Statement, program: Program | None = None) -> Order:
        """The order for one statement of a program."""
        if program is None:
            return cls(statement.domain)
        batch = batch_indices(program)
        return cls(tuple(a for a in statement.domain if a not in batch), frozenset(s.name for s in program))

    def positions(self, e: sp.Basic) -> tuple[int, ...]:
        """Where the indices of an expression stand in the statement, sorted."""
        used = integer_symbols(e)
        return tuple(k for k, a in enumerate(self.domain) if a in used)

    def factors(self, factors: Iterable[sp.Expr]) -> list[sp.Expr]:
        """The factors of a product in the order of writing."""
        items = list(factors)
        atoms = {name_of(x): x for x in items if isinstance(x, (sp.Indexed, sp.Symbol)) and not x.is_integer}
        return sorted(items, key=lambda f: self._factor_key(f, atoms))

    def _factor_key(self, f: sp.Expr, atoms: dict[str, sp.Expr]) -> tuple[object, ...]:
        if f.is_number:
            return (0, (), 0, 0, 0, sp.default_sort_key(f))
        if not is_tensorial(f):
            scalar = not self.positions(f)
            return (1 if scalar else 2, self.positions(f), 0, 0, int(isinstance(f, sp.Add)), sp.default_sort_key(f))
        if not self.positions(f):
            return (1, (), 1, 0, int(isinstance(f, sp.Add)), sp.default_sort_key(f))
        named = {name_of(x) for x in reads(f)}
        if isinstance(f, sp.Add) and len(named) == 1 and named <= atoms.keys():  # P (1 - P) stay together
            twin = self._factor_key(atoms[next(iter(named))], {})
            return (*twin[:4], 1, *twin[5:])
        kind = 3 if isinstance(f, sp.Add) else 2 if isinstance(f, sp.Function) else 1 if isinstance(f, sp.Pow) else 0
        return (3, self.positions(f), kind, int(_has_gradient(reads(f))), 0, str(f))

    def terms(self, terms: Iterable[sp.Expr]) -> list[sp.Expr]:
        """The terms of a sum in the order of writing."""
        items = list(terms)
        if any(is_tensorial(t) for t in items):
            return sorted(items, key=self._term_key)
        items.sort(key=lambda t: (bool(t.is_number), not self.positions(t), is_negative(t), self.positions(t), str(t)))
        first = next((k for k, t in enumerate(items) if not is_negative(t)), 0)
        return [items[first], *items[:first], *items[first + 1 :]]

    def _term_key(self, t: sp.Expr) -> tuple[object, ...]:
        sign = is_negative(t)
        if not is_tensorial(t):
            return (sign, 0 if t.is_number else 2, not self.positions(t), self.positions(t), str(t))
        read = [x for x in reads(t) if isinstance(x, sp.Indexed)]
        given = all(name_of(x) not in self.defined for x in read)
        body = t.as_coeff_Mul()[1]
        kind = 0 if isinstance(body, sp.Indexed) else 2 if isinstance(body, sp.Function) else 1
        return (sign, 1, -max((len(x.indices) for x in read), default=0), given, _has_gradient(read), kind, str(body))


def _has_gradient(read: Iterable[sp.Expr]) -> bool:
    return any(len(n) > 1 and n.startswith("d") for n in map(name_of, read))


def gathered(terms: Iterable[sp.Expr]) -> list[sp.Expr]:
    """Terms of a sum, those in indices alone that share a number put together again: ``x - i/3 + j/3`` is ``x - (i - j)/3``.

    SymPy multiplies a number into a sum of its own accord. The value is the same; only the way of writing changes.

    >>> i, j, x = sp.Symbol("i", integer=True), sp.Symbol("j", integer=True), sp.IndexedBase("x")[0]
    >>> sorted(map(str, gathered((x - (i - j) / 3).args))), sorted(map(str, gathered((x - (i - j)).args)))
    (['-(i - j)/3', 'x[0]'], ['-i', 'j', 'x[0]'])
    """
    items = list(terms)
    shares: dict[sp.Expr, list[sp.Expr]] = {}
    for t in items:
        number, rest = t.as_coeff_Mul()
        if abs(number) != 1 and rest != 1 and not reads(rest) and integer_symbols(rest):
            shares.setdefault(abs(number), []).append(t)
    for number, found in shares.items():
        if 1 < len(found) < len(items):
            first = min(found, key=lambda t: str(t.as_coeff_Mul()[1]))
            number = -number if is_negative(first) else number
            items = [t for t in items if t not in found]
            items.append(sp.Mul(number, sp.Add(*[t / number for t in found]), evaluate=False))
    return items


def absorb_sign(e: sp.Expr) -> sp.Expr:
    """A negative product with a difference in it, with the sign taken into the difference: ``-(i - j)*x`` is ``(j - i)*x``.

    The value is the same; only the way of writing changes.

    >>> i, j, x = sp.symbols("i j x")
    >>> absorb_sign(-(i - j) * x) == (j - i) * x
    True
    """
    if not isinstance(e, sp.Mul) or not is_negative(e):
        return e
    for f in e.args:
        if isinstance(f, sp.Add) and any(is_negative(t) for t in f.args):
            rest = sp.Mul(*[a for a in e.args if a is not f])
            return sp.Mul(-rest, sp.Add(*[-t for t in f.args]), evaluate=False) if rest != -1 else -f
    return e


def split_product(e: sp.Expr, bound: Sequence[sp.Symbol]) -> tuple[sp.Expr, sp.Expr]:
    """A product as (factors without the bound indices, the others).

    >>> i, j = sp.symbols("i j", integer=True)
    >>> A, x = sp.IndexedBase("A"), sp.Symbol("x")
    >>> split_product(2 * x * A[i, j], (j,))
    (2*x, A[i, j])
    """
    outer: list[sp.Expr] = []
    inner: list[sp.Expr] = []
    for f in sp.Mul.make_args(e):
        (inner if integer_symbols(f) & set(bound) else outer).append(f)
    return sp.Mul(*outer), sp.Mul(*inner)
