"""What of a list of statements can be replayed: the tensors that a matrix product reads rounded, and what follows from them.

Nothing here knows a variant. A tensor is *cast* where a matrix product reads it (it has the bound index and lacks an index of
another factor). It may depend on a row maximum (a ``range_only`` tensor) that a kernel chooses, in a known way: its *degree* is
the k for which lowering the maximum by t multiplies it by ``e^(k t)``. The degree follows from the statements: exponentials of
``-m`` have degree 1, sums keep it, products add it. What is left of the list, with the cast tensors as inputs, is the *rest*.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import sympy as sp

from symattn.program import Program, Statement, Tensor, integer_symbols, name_of, reads, subscripts_of, tensor
from symattn.readings.degrees import Degree, degrees_of


@dataclass(frozen=True)
class Cast:
    """A tensor that is read rounded.

    Parameters
    ----------
    name
        Of the tensor; ``rounded`` is that of the input of the rest that stands for it.
    gauge
        The row maximum that it is taken relative to, or None.
    """

    name: str
    rounded: str
    gauge: str | None


@dataclass(frozen=True)
class Plan:
    """What is replayed.

    Parameters
    ----------
    casts
        The tensors that are rounded: where some are relative to a row maximum those, otherwise all that no maximum is made of.
    rest
        The list from the rounded tensors to the outputs that can be replayed.
    given
        Names of the other inputs of the rest that are no inputs of the program, and the gauge that each is relative to, if any.
    chains
        For each gauge the statements that make it, the maximum over the keys first.
    """

    casts: tuple[Cast, ...]
    rest: Program
    given: Mapping[str, str | None]
    chains: Mapping[str, tuple[Statement, ...]]


@lru_cache(maxsize=256)
def plan(program: Program, summed: frozenset[str] = frozenset()) -> Plan | None:
    """What can be replayed of a list; None for nothing.

    Parameters
    ----------
    program
        The list that a kernel follows.
    summed
        Names of tensors that plain sums read rounded too.

    Returns
    -------
    Plan or None
        None for recurrences, and where a scalar factor of the weights may come before the cast or after the product.

    >>> from symattn.arithmetic import get
    >>> from symattn.definition import Definition
    >>> from symattn.verify.programs import followed
    >>> found = plan(followed(Definition(sink=True).program(), get("flash-bf16"), gradient=False))
    >>> [(c.name, c.gauge) for c in found.casts], found.rest.outputs, dict(found.given)
    ([('E', 'm')], ('O',), {'l': 'm'})
    """
    if any(s.scan is not None for s in program):
        return None
    degrees = degrees_of(program)
    chains = {s.name: chain for s in program if s.range_only and (chain := chain_of(program, s.name)) is not None}
    shifted = _before_maxima(program)
    operands = [n for n in _operands(program) if n not in shifted]
    casts = [c for name in operands if (c := _cast(name, degrees.get(name), chains)) is not None]
    casts = [c for c in casts if c.gauge] or casts
    if any(_placed_freely(program[c.name]) for c in casts):
        return None
    table = {c.name: c.rounded for c in casts}
    replaced = {s.name: _reading(s, table, summed) for s in program}
    changed = {s.name for s in program if replaced[s.name] != s}
    for s in program:
        if s.needs & changed:
            changed.add(s.name)
    gauges = {s.name for s in program if s.range_only}
    outputs = tuple(
        o for o in program.outputs if o in changed and degrees[o] == {} and not _needed(program, o, changed, replaced) & gauges
    )
    if not outputs:
        return None
    rest = program.with_statements([replaced[s.name] for s in program if s.name in changed], outputs).live()
    given: dict[str, str | None] = {}
    for name in rest.inputs:
        if name in program:
            one = _one_gauge(degrees[name], chains)
            if isinstance(one, bool):
                return None
            given[name] = one or None
    used = {c.rounded for c in casts} & set(rest.inputs)
    return Plan(tuple(c for c in casts if c.rounded in used), rest, given, chains)


def _before_maxima(program: Program) -> set[str]:
    """Tensors that some row maximum is made of: their rounding is an error of the scores, and no cast of weights."""
    found: set[str] = set()
    for s in reversed(program.statements):
        if s.range_only or s.name in found:
            found |= {n for n in s.needs if n in program}
    return found


def _placed_freely(s: Statement) -> bool:
    """Whether a tensor has a scalar factor that rounding sees: kernels apply 1/(1-p) of dropout after the product too."""
    free = [f for f in sp.Mul.make_args(s.expr) if not f.has(sp.Indexed) and not integer_symbols(f) & set(s.domain)]
    number = sp.Mul(*free)
    exact = number.is_Rational and all(k & (k - 1) == 0 for k in (abs(number.p), number.q))
    return not s.over and not exact


def _operands(program: Program) -> list[str]:
    """Intermediate tensors that a matrix product reads."""
    found: dict[str, None] = {}
    for s in program:
        for f in products_of(s):
            if name_of(f) in program:
                found.setdefault(name_of(f))
    return list(found)


def products_of(s: Statement) -> list[Tensor]:
    """The factors of a sum that make it a matrix product."""
    if not s.over or s.reduce != "sum":
        return []
    factors = [f for f in sp.Mul.make_args(s.expr) if isinstance(f, sp.Indexed)]
    over = set(s.over)
    summed = [(f, integer_symbols(f) & set(s.domain)) for f in factors]
    return [f for f, own in summed if own & over and any((o & over) and o - own for g, o in summed if g is not f)]


def _cast(name: str, degree: Degree | None, chains: Mapping[str, tuple[Statement, ...]]) -> Cast | None:
    gauge = _one_gauge(degree, chains)
    return None if isinstance(gauge, bool) else Cast(name, f"{name}_rounded", gauge or None)


def _one_gauge(degree: Degree | None, chains: Mapping[str, tuple[Statement, ...]]) -> str | bool:
    """The row maximum that a tensor of degree 1 is relative to; ``""`` for degree 0, False for any other."""
    if degree == {}:
        return ""
    if degree is None or len(degree) != 1:
        return False
    [(name, power)] = degree.items()
    return name if power == 1 and name in chains else False


def chain_of(program: Program, name: str) -> tuple[Statement, ...] | None:
    """The statements that make a row maximum, the one over a single index first."""
    found: list[Statement] = []
    while True:
        s = program[name]
        found.insert(0, s)
        if s.over:
            return tuple(found) if s.reduce == "max" and len(s.over) == 1 else None
        above = [n for n in s.needs if n in program and program[n].range_only]
        if len(above) != 1:
            return None
        name = above[0]


def _reading(s: Statement, table: Mapping[str, str], summed: frozenset[str]) -> Statement:
    """A statement with the rounded tensors in place of those that it reads as a matrix product."""
    factors = products_of(s)
    if s.over and s.reduce == "sum" and s.expr in reads(s.expr) and name_of(s.expr) in summed:
        factors = [s.expr]
    changes = {f: tensor(table[name_of(f)], *subscripts_of(f)) for f in factors if name_of(f) in table}
    return s if not changes else Statement(s.target, s.expr.xreplace(changes), s.over, s.reduce, s.where, aux=s.aux)


def _needed(program: Program, name: str, changed: set[str], replaced: Mapping[str, Statement]) -> set[str]:
    """What a tensor is made of, down to the first that the rounding does not change."""
    found: set[str] = set()
    todo = [name]
    while todo:
        for n in replaced[todo.pop()].needs:
            if n not in found:
                found.add(n)
                if n in changed and n in program:
                    todo.append(n)
    return found
