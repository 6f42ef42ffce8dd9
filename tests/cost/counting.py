"""Programs executed with numbers that count: every operation on data is done, one after the other, and written down."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import sympy as sp


class Number:
    """A number of the data; what is done with it is counted in ``log``."""

    log: Counter[str] = Counter()

    def _done(self, kind: str) -> Number:
        Number.log[kind] += 1
        return self

    def add(self, _: object) -> Number:
        return self._done("additions")

    def multiply(self, _: object) -> Number:
        return self._done("multiplications")

    def divide(self, _: object) -> Number:
        return self._done("divisions")


def executed(program: Any, sizes: dict[str, int], arrays: dict[str, Any] | None = None) -> Counter[str]:
    """The operations of a program at given sizes; arrays decide the conditions that read them."""
    Number.log = Counter()
    for s in program:
        _statement(s, program, sizes, arrays or {})
    return Number.log


def _statement(s: Any, program: Any, sizes: dict[str, int], arrays: dict[str, Any]) -> None:
    if not s.over and isinstance(s.expr, (sp.Indexed, sp.Symbol)):
        return  # a copy: nothing is computed, wherever it is made
    table = {a: sizes[a.name] for a in program.sizes}
    extent = {a: int(program.dims[a].subs(table)) for a in s.domain}
    kind = {"sum": "additions", "prod": "multiplications", "max": "comparisons"}[s.reduce]
    for free in itertools.product(*(range(extent[a]) for a in s.indices)):
        terms = 0
        for bound in itertools.product(*(range(extent[a]) for a in s.over)):
            at = dict(zip(s.domain, free + bound, strict=True))
            if _holds(s.where, {**table, **at}, arrays):
                terms += 1
                _evaluate(s.expr)
        if s.over and _data(s.expr):
            Number.log[kind] += max(terms - 1, 0)


def _holds(where: Any, at: dict[Any, int], arrays: dict[str, Any]) -> bool:
    found = where.subs({x: int(arrays[str(x.base)][tuple(int(i.subs(at)) for i in x.indices)]) for x in where.atoms(sp.Indexed)})
    return bool(found.subs(at))


def _data(e: Any) -> bool:
    return bool(e.atoms(sp.Indexed)) or any(not a.is_integer for a in e.free_symbols)


def _evaluate(e: Any) -> Any:
    """A Number, or the expression itself where it holds sizes and positions only."""
    if not _data(e):
        return e
    if isinstance(e, (sp.Indexed, sp.Symbol)):
        return Number()
    if isinstance(e, sp.Add):
        value: Any = None
        constant = [t for t in e.args if not _data(t)]
        for t in [t for t in e.args if _data(t)]:
            found = _evaluate(t)
            value = found if value is None else value.add(found)
        return value.add(sp.Add(*constant)) if constant else value
    if isinstance(e, sp.Mul):
        return _product(e)
    if isinstance(e, sp.Pow):
        return _product(sp.Mul(e, evaluate=False)) if e.exp.is_Integer and e.exp < 0 else _raised(e.base, e.exp)
    for a in e.args:
        _evaluate(a)
    if isinstance(e, sp.Max):
        Number.log["comparisons"] += len(e.args) - 1
    else:
        Number.log["exponentials" if isinstance(e, sp.exp) else "functions"] += 1
    return Number()


def _raised(base: Any, exponent: Any) -> Number:
    value = _evaluate(base)
    if exponent.is_Integer:
        for _ in range(int(exponent) - 1):
            value = value.multiply(value)
        return value
    Number.log["functions"] += 1
    return value.divide(value) if exponent == sp.Rational(-1, 2) else value


def _product(e: Any) -> Number:
    above: Any = None
    below: Any = None
    factors = e.args if isinstance(e, sp.Mul) else (e,)
    constant = sp.Mul(*[f for f in factors if not _data(f)])
    for f in (f for f in factors if _data(f)):
        if isinstance(f, sp.Pow) and f.exp.is_Integer and f.exp < 0:
            found = _raised(f.base, -f.exp)
            below = found if below is None else below.multiply(found)
        else:
            found = _evaluate(f)
            above = found if above is None else above.multiply(found)
    if constant not in (1, -1) and above is not None:
        above = above.multiply(constant)
    return (above or Number()).divide(below) if below is not None else above
