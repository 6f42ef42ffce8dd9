"""Indexed tensors: making and taking apart the reads, subscripts and conditions that statements are built of.

A read is ``sympy.Indexed`` (or a real symbol for a scalar); an index is an integer symbol; a size is a positive integer symbol.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import sympy as sp

from symattn.errors import ProgramError

Tensor: TypeAlias = "sp.Indexed | sp.Symbol"
KEPT = 2**16
"""How many expressions are remembered with what they read: programs are made again and again from mostly the same statements."""


def index(name: str) -> sp.Symbol:
    """An index symbol, for example ``i``: a plain integer symbol (never ``sympy.Idx``, which evaluates comparisons early)."""
    return sp.Symbol(name, integer=True)


def indices(names: str) -> tuple[sp.Symbol, ...]:
    """Several index symbols at once.

    >>> indices("i j")
    (i, j)
    """
    return tuple(index(n) for n in names.split())


def size(name: str) -> sp.Symbol:
    """A size symbol, for example ``n``: the number of values that an index takes."""
    return sp.Symbol(name, integer=True, positive=True)


def tensor(name: str, *subscripts: sp.Expr | int) -> Tensor:
    """``name[subscripts]``, or the scalar ``name`` when there are none.

    >>> tensor("Q", index("i"), 0), tensor("scale")
    (Q[i, 0], scale)
    """
    return sp.IndexedBase(name)[tuple(subscripts)] if subscripts else sp.Symbol(name, real=True)


def name_of(x: Tensor) -> str:
    """The name of the tensor that a read or a target names."""
    return str(x.args[0].name) if isinstance(x, sp.Indexed) else str(x.name)


def subscripts_of(x: Tensor) -> tuple[sp.Expr, ...]:
    """The subscripts of a read or a target; empty for a scalar."""
    return tuple(x.indices) if isinstance(x, sp.Indexed) else ()


def expression(e: Any) -> Any:
    """A SymPy object as it is; a Python number as the SymPy number that it exactly is. Text is refused, never parsed.

    Raises
    ------
    ProgramError
        For anything else.

    >>> expression(3), expression(0.5), expression(Fraction(1, 3))
    (3, 1/2, 1/3)
    """
    if isinstance(e, sp.Basic):
        return e
    if isinstance(e, (int, Fraction)) or (isinstance(e, float) and math.isfinite(e)):
        return sp.Rational(*e.as_integer_ratio())
    raise ProgramError(f"an expression is made of SymPy objects and exact numbers, got {e!r} ({type(e).__name__})")


@lru_cache(maxsize=KEPT)
def reads(expr: sp.Basic) -> tuple[Tensor, ...]:
    """The tensors that an expression reads, outermost only: ``E[tok[p], c]`` counts, ``tok[p]`` inside it does not.

    Scalar parameters (symbols that are not integers) are reads of tensors without indices.

    >>> i, p = indices("i p")
    >>> reads(tensor("E", tensor("tok", p), i) * tensor("scale"))
    (E[tok[p], i], scale)
    """
    found: dict[Tensor, None] = {}

    def visit(e: sp.Basic) -> None:
        if isinstance(e, sp.Indexed) or (isinstance(e, sp.Symbol) and not e.is_integer):
            found[e] = None
        else:
            for a in e.args:
                visit(a)

    visit(expr)
    return tuple(sorted(found, key=str))


@lru_cache(maxsize=KEPT)
def all_reads(expr: sp.Basic) -> tuple[Tensor, ...]:
    """Every tensor that an expression reads, those inside subscripts included."""
    found: dict[Tensor, None] = {}
    todo = list(reads(expr))
    while todo:
        x = todo.pop()
        if x not in found:
            found[x] = None
            todo += [y for s in subscripts_of(x) for y in reads(s)]
    return tuple(sorted(found, key=str))


@lru_cache(maxsize=KEPT)
def integer_symbols(expr: sp.Basic) -> frozenset[sp.Symbol]:
    """The index and size symbols of an expression (labels of tensors are not among them)."""
    found: set[sp.Symbol] = set()

    def visit(e: sp.Basic) -> None:
        if isinstance(e, sp.Indexed):
            for a in e.indices:
                visit(a)
        elif isinstance(e, sp.Symbol):
            if e.is_integer:
                found.add(e)
        else:
            for a in e.args:
                visit(a)

    visit(expr)
    return frozenset(found)


def conjuncts(where: sp.Basic) -> tuple[sp.Basic, ...]:
    """The conditions that a ``where`` is the conjunction of; none for true."""
    if where == sp.true:
        return ()
    return tuple(sorted(where.args, key=str)) if isinstance(where, sp.And) else (where,)


def condition_text(c: sp.Basic) -> str:
    """Write a condition as a reader writes it: `M[i, j] != 0`, `(a or b)`."""
    if isinstance(c, sp.Eq):
        return f"{c.lhs} == {c.rhs}"
    if isinstance(c, sp.Ne):
        return f"{c.lhs} != {c.rhs}"
    if isinstance(c, (sp.And, sp.Or)):
        word = " and " if isinstance(c, sp.And) else " or "
        return "(" + word.join(condition_text(a) for a in sorted(c.args, key=str)) + ")"
    if isinstance(c, sp.Not):
        return f"not {condition_text(c.args[0])}"
    return str(c)


class Table(Mapping[Any, Any]):
    """An immutable, hashable mapping; what a program keeps its sizes and shapes in."""

    def __init__(self, items: Mapping[Any, Any] | Iterable[tuple[Any, Any]] = ()) -> None:
        self._items = dict(items)

    def __getitem__(self, key: Any) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and dict(other) == self._items

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{k}: {v}" for k, v in self._items.items()) + "}"
