"""The cost of a program as symbols: operations statement by statement, steps that wait for each other, bytes moved.

Counts are exact for the program as it is written. A sum of k terms is k - 1 additions, at every target that has a term.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import sympy as sp

from symattn.cost.operations import Operations, operations_of
from symattn.cost.points import Counted, Counter
from symattn.program import Program, Statement

__all__ = ["Cost", "bytes_of", "count", "sequential"]


@dataclass(frozen=True)
class Cost:
    """What a program costs.

    Parameters
    ----------
    program
        What was counted.
    each
        Name of a statement -> its operations.
    names
        Counts that have no closed form: symbol -> what it counts.
    least
        From which sizes on the closed forms hold.
    """

    program: Program
    each: Mapping[str, Operations]
    names: Mapping[sp.Symbol, Counted]
    least: int = 1

    @property
    def total(self) -> Operations:
        """The operations of all statements."""
        found = Operations()
        for o in self.each.values():
            found = found + o
        return found.expanded()

    def at(self, sizes: Mapping[str, int]) -> Operations:
        """The operations at given sizes.

        Raises
        ------
        LimitError
            When a mask is given as a tensor: then how much it keeps depends on its numbers.
        """
        table: dict[sp.Basic, sp.Basic] = {a: sp.Integer(sizes[a.name]) for a in self.program.sizes if a.name in sizes}
        numbers = {a: int(v) for a, v in table.items()}
        used = {a for o in self.each.values() for k in vars(o).values() for a in k.free_symbols}
        table |= {s: sp.Integer(c.at(numbers)) for s, c in self.names.items() if s in used}
        return self.total.xreplace(table)


def count(program: Program, equal: Mapping[sp.Symbol, sp.Expr] | None = None) -> Cost:
    """The operations of a program.

    Parameters
    ----------
    program
        Any program: forward, gradient, an algorithm by tiles.
    equal
        Sizes that are taken to be equal, such as {m: n}.

    >>> from symattn.definition import Definition
    >>> found = count(Definition(lse=False).program()).total
    >>> found.exponentials, found.multiplications
    (m*n, d*m*n + dv*m*n + m*n)
    """
    counter = Counter(dict(equal or {}))
    each = {s.name: _statement(s, program, counter) for s in program}
    return Cost(program, each, {v: k for k, v in counter.names.items()}, counter.least)


def _statement(s: Statement, program: Program, counter: Counter) -> Operations:
    over = [(a, program.dims[a]) for a in s.domain]
    points = counter.points(over, s.where)
    found = operations_of(s.expr).times(points)
    if not s.over or not s.reads:
        return found
    rows = counter.points(over, s.where, s.indices)
    kind = {"sum": "additions", "prod": "multiplications", "max": "comparisons"}[s.reduce]
    return found + Operations(**{kind: points - rows})


def sequential(program: Program, equal: Mapping[sp.Symbol, sp.Expr] | None = None) -> sp.Expr:
    """How many steps wait for each other: a statement is one step, a scan as many as its axis is long.

    All that a statement computes is taken to be done at once; the logarithmic depth of a sum is not counted.

    >>> from symattn.definition import Definition
    >>> sequential(Definition(lse=False).program())
    7
    """
    table = dict(equal or {})
    ready: dict[str, sp.Expr] = {}
    for group in program.groups():
        own = {s.name for s in group}
        before = _latest(ready[n] for s in group for n in s.needs if n in ready and n not in own)
        counted = any(s.reads for s in group)
        scan = group[0].scan
        length = sp.S.One if scan is None else program.dims[scan.index].xreplace(table)
        for s in group:
            ready[s.name] = before + (length if counted else 0)
    return sp.expand(_latest(ready[o] for o in program.outputs if o in ready))


def _latest(found: Iterable[sp.Expr]) -> sp.Expr:
    """The largest of some numbers of steps for large sizes."""
    listed = list(found)
    return max(listed, key=lambda e: e.subs(dict.fromkeys(e.free_symbols, 10**6)), default=sp.S.Zero)


def bytes_of(program: Program, width: sp.Expr, equal: Mapping[sp.Symbol, sp.Expr] | None = None) -> sp.Expr:
    """The bytes that a program moves when every statement reads its tensors from memory and writes its own, each once, whole.

    >>> from symattn.definition import Definition
    >>> sp.expand(bytes_of(Definition(lse=False).program(), sp.Integer(1))).coeff(sp.Symbol("m", integer=True, positive=True), 1)
    d + dv + 10*n
    """
    table = dict(equal or {})
    own = {s.name: program.shape_of(s) for s in program}
    total = sp.S.Zero
    for s in program:
        moved = {s.name, *s.needs}
        for n in moved:
            total += sp.Mul(*[v.xreplace(table) for v in own.get(n, program.shapes.get(n, ()))])
    return sp.expand(total * width)
