"""Identities at fixed sizes, entry by entry: every entry of a tensor as an expression, exponentials as positive symbols.

A program at sizes n = 2, m = 2 ... is unrolled into scalar expressions in the entries of its inputs; each ``exp(x)`` becomes a
product of positive symbols, each other function a symbol of its own; two entries are equal when ``cancel`` of their difference
is 0.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import sympy as sp

from symattn.errors import LimitError, SymattnError
from symattn.indexed import conjuncts, name_of, reads, size, subscripts_of
from symattn.program import Program, Statement

if TYPE_CHECKING:
    from symattn.theorems.claim import Equal

__all__ = ["algebraic", "equal_entries", "unrolled"]

OPERATIONS = 300
"""Entries with more operations than this are not tried."""


def unrolled(program: Program, sizes: Mapping[str, int]) -> dict[str, dict[Any, Any]]:
    """Every tensor of a program as expressions in the entries of its inputs: name -> index tuple -> expression.

    Maxima must be ``range_only``: they are 0 here. Discrete inputs (a mask) are 1.

    Raises
    ------
    LimitError
        When a condition is not decided by the sizes, or a tensor is a maximum that is not ``range_only``.

    >>> from symattn.indexed import indices, size, tensor
    >>> i, j = indices("i j")
    >>> row = Program((Statement(tensor("l", i), tensor("E", i, j), (j,)),), {i: size("n"), j: size("m")}, ("l",))
    >>> unrolled(row, {"n": 1, "m": 2})["l"]
    {(0,): E[0, 0] + E[0, 1]}
    """
    numbers = {size(k): sp.Integer(v) for k, v in sizes.items()}
    env: dict[str, dict[Any, Any]] = {}
    for s in program:
        ranges = {a: range(int(program.dims[a].xreplace(numbers))) for a in s.domain}
        env[s.name] = {}
        for at in itertools.product(*[ranges[a] for a in s.indices]):
            point = dict(zip(s.indices, map(sp.Integer, at), strict=True))
            env[s.name][at] = _entry(s, point, ranges, numbers, env, program)
    return env


def _entry(
    s: Statement,
    point: dict[Any, Any],
    ranges: Mapping[Any, range],
    numbers: Mapping[Any, Any],
    env: Mapping[str, Mapping[Any, Any]],
    program: Program,
) -> Any:
    if s.range_only:
        return sp.S.Zero
    if s.over and s.reduce == "max":
        raise LimitError(f"{s.name} is a maximum whose value matters")
    parts = []
    for bound in itertools.product(*[ranges[a] for a in s.over]):
        here = {**numbers, **point, **dict(zip(s.over, map(sp.Integer, bound), strict=True))}
        if all(_holds(c, here, program) for c in conjuncts(s.where)):
            parts.append(_at(s.expr, here, env))
    return (sp.Mul if s.over and s.reduce == "prod" else sp.Add)(*parts)


def _holds(c: Any, here: Mapping[Any, Any], program: Program) -> bool:
    table = {x: sp.S.One for x in reads(c) if name_of(x) in program.discrete}
    value = c.xreplace(table).xreplace(here)
    if value not in (sp.true, sp.false):
        raise LimitError(f"{c} is not decided by the sizes")
    return bool(value)


def _at(e: Any, here: Mapping[Any, Any], env: Mapping[str, Mapping[Any, Any]]) -> Any:
    table = {}
    for x in reads(e):
        at = tuple(a.xreplace(here) for a in subscripts_of(x))
        if not all(a.is_Integer for a in at):
            raise LimitError(f"the subscripts of {x} are not decided by the sizes")
        whole = tuple(map(int, at))
        if name_of(x) in env:
            table[x] = env[name_of(x)].get(whole, sp.S.Zero)
        else:
            table[x] = sp.IndexedBase(name_of(x))[whole] if whole else x
    return e.xreplace(table).xreplace(here)


def algebraic(e: sp.Expr) -> sp.Expr:
    """The expression with exponentials of sums taken apart into positive symbols, and other functions as symbols.

    >>> x, y = sp.symbols("x y", real=True)
    >>> sp.cancel(algebraic(sp.exp(x + y) - sp.exp(x) * sp.exp(y)))
    0
    """
    table: dict[Any, Any] = {}

    def exponential(argument: sp.Expr) -> sp.Expr:
        out: Any = sp.S.One
        for a in sp.Add.make_args(sp.expand(argument)):
            number, rest = a.as_coeff_Mul()
            if not number.is_Integer:
                number, rest = sp.S.One, a
            if rest.could_extract_minus_sign():
                number, rest = -number, -rest
            symbol = table.setdefault(sp.exp(rest), sp.Dummy("u", positive=True))
            out *= symbol**number
        return out

    def visit(f: sp.Expr) -> sp.Expr:
        if isinstance(f, sp.exp):
            return exponential(f.args[0])
        if isinstance(f, sp.Function):
            return table.setdefault(f, sp.Dummy("f", real=True))
        if isinstance(f, sp.Indexed) or not f.args:
            return f
        return f.func(*map(visit, f.args))

    return visit(e)


MOST = 5
"""Programs with more sizes than this are not tried: every choice of sizes has to be."""


def equal_entries(claim: Equal, largest: int = 2) -> int:
    """``largest`` where the claim is proved entry by entry for every choice of sizes up to it, else 0."""
    if claim.program.discrete or len(claim.program.sizes) > MOST:  # it would have to be every mask
        return 0
    whole = claim.program.with_statements(claim.program.statements, [claim.left, claim.right]).live()
    names = [str(a) for a in claim.program.sizes]
    try:
        for numbers in itertools.product(range(1, largest + 1), repeat=len(names)):
            env = unrolled(whole, dict(zip(names, numbers, strict=True)))
            for where, left in env[claim.left].items():
                difference = left - env[claim.right][where]
                if sp.count_ops(difference) > OPERATIONS or sp.cancel(algebraic(difference)) != 0:
                    return 0
    except (SymattnError, NotImplementedError, sp.PolynomialError):
        return 0
    return largest
