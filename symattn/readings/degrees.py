"""How tensors depend on the row maxima that a kernel chooses: a tensor has *degree* k in m when lowering m by t multiplies it by
``e^(k t)``.

The degree follows from the statements. ``exp(z - m)`` has degree 1; sums keep a degree and products add it; in ``log l + m`` what
a shift adds to the logarithm of a tensor of degree 1 is taken away by m. A degree of 0 in every maximum is the empty mapping.
"""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp

from symattn.program import Program, name_of, reads

Degree = Mapping[str, sp.Expr]
"""Power of each row maximum, by its name; none is left out that is not 0."""


def degrees_of(program: Program) -> dict[str, Degree | None]:
    """The degree of every tensor in every row maximum; None where it has none."""
    found: dict[str, Degree | None] = {}
    gauges = {s.name for s in program if s.range_only}
    for s in program:
        if s.range_only:
            continue
        free = all(_decides(c, found, gauges) for c in s.conditions)
        one = _degree(s.expr, found, gauges) if free else None
        found[s.name] = one if not s.over or s.reduce == "sum" or one == {} else None
    return found


def lagging(program: Program) -> frozenset[str] | None:
    """The tensors whose degree is not 0, where every tensor has one; None where some has none, or is made in a scan.

    >>> from symattn.definition import Definition
    >>> sorted(lagging(Definition().program()))
    ['E', 'l']
    """
    if any(s.scan is not None for s in program):
        return None
    found = degrees_of(program)
    return None if any(d is None for d in found.values()) else frozenset(n for n, d in found.items() if d)


def _decides(c: sp.Basic, found: Mapping[str, Degree | None], gauges: set[str]) -> bool:
    """Whether a condition holds whatever the maxima are: it reads what has degree 0, or compares with 0."""
    names = [name_of(x) for x in reads(c)]
    if any(n in gauges or found.get(n, {}) is None for n in names):
        return False
    return all(found.get(n, {}) == {} for n in names) or (isinstance(c, sp.core.relational.Relational) and 0 in c.args)


def _degree(e: sp.Basic, found: Mapping[str, Degree | None], gauges: set[str]) -> Degree | None:
    tensors = {name_of(x) for x in reads(e)}
    if not tensors & gauges and all(found.get(n, {}) == {} for n in tensors):
        return {}
    if e in reads(e):
        return None if name_of(e) in gauges else found.get(name_of(e), {})
    if isinstance(e, sp.exp):
        return _exponent(e.args[0], found, gauges)
    if isinstance(e, sp.Pow) and e.exp.is_number:
        inner = _degree(e.base, found, gauges)
        return None if inner is None else {n: k * e.exp for n, k in inner.items()}
    if isinstance(e, sp.Add) and e.has(sp.log):
        return _logarithms(e, found, gauges)
    if isinstance(e, (sp.Mul, sp.Add)):
        parts = [_degree(x, found, gauges) for x in e.args]
        if any(p is None for p in parts):
            return None
        known = [p for p in parts if p is not None]
        if isinstance(e, sp.Add):
            return known[0] if all(p == known[0] for p in known) else None
        total: dict[str, sp.Expr] = {}
        for p in known:
            for n, k in p.items():
                total[n] = total.get(n, sp.Integer(0)) + k
        return {n: k for n, k in total.items() if k != 0}
    return None


def _exponent(e: sp.Expr, found: Mapping[str, Degree | None], gauges: set[str]) -> Degree | None:
    total: dict[str, sp.Expr] = {}
    for term in sp.Add.make_args(e):
        number, rest = term.as_coeff_Mul()
        if rest in reads(rest) and name_of(rest) in gauges:
            total[name_of(rest)] = total.get(name_of(rest), sp.Integer(0)) - number
        elif _degree(term, found, gauges) != {}:
            return None
    return {n: k for n, k in total.items() if k != 0}


def _logarithms(e: sp.Add, found: Mapping[str, Degree | None], gauges: set[str]) -> Degree | None:
    """A sum in which logarithms and maxima shift by opposite amounts: degree 0."""
    total: dict[str, sp.Expr] = {}
    for term in e.args:
        number, rest = term.as_coeff_Mul()
        if rest in reads(rest) and name_of(rest) in gauges:
            total[name_of(rest)] = total.get(name_of(rest), sp.Integer(0)) - number
            continue
        inner = _degree(rest.args[0], found, gauges) if isinstance(rest, sp.log) else {}
        if inner is None or (not isinstance(rest, sp.log) and _degree(term, found, gauges) != {}):
            return None
        for n, k in inner.items():
            total[n] = total.get(n, sp.Integer(0)) + number * k
    return {} if all(k == 0 for k in total.values()) else None
