"""The derivative rule for programs: one rule, read backwards (the adjoint) and forwards (the tangent).

For ``Y[F] = sum over R of expr(X1[I1], X2[I2], ...) where w`` each read ``X[I]`` contributes, backwards::

    dX[u] += sum over F, R of  dY[F] * d expr / d X[I]    where w and I(F, R) = u

and forwards ``Y_t[F] += sum over R of  d expr / d X[I] * X_t[I]  where w``. SymPy differentiates scalars, every read being a
real symbol; the rule moves indices. The equality goes away where the subscripts are distinct indices, and is a scatter-add
otherwise. Conditions are never differentiated and are carried along. A product needs one helper, the product of the other
factors. A statement that is ``range_only`` is held constant here; :mod:`symattn.adjoint` is the door that proves such claims.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import sympy as sp

from symattn.errors import NotDifferentiableError, UnknownNameError, nearest
from symattn.indexed import Tensor, index, integer_symbols, name_of, reads, subscripts_of, tensor
from symattn.program import Program, Statement

__all__ = ["Transposed", "backward", "derivative", "forward", "real_inputs", "tangent_name"]

_ROUGH = (sp.Max, sp.Min)
_FLAT = (sp.sign, sp.floor, sp.ceiling, sp.Heaviside)


def derivative(expr: sp.Expr, x: Tensor, where: str = "") -> sp.Expr:
    """The scalar derivative d ``expr`` / d ``x``, every tensor read held as a real symbol of its own.

    Parameters
    ----------
    expr
        A scalar expression in ``Indexed`` tensors, indices and scalar parameters.
    x
        One of the tensors that it reads, with its subscripts.
    where
        Name of the statement, for the message.

    Raises
    ------
    NotDifferentiableError
        When ``x`` is inside a ``Max`` or ``Min``, or SymPy knows no derivative.

    The sign function and rounding to integers are flat: their derivative is 0, as it is almost everywhere.

    >>> from symattn.program import tensor, indices
    >>> i, j = indices("i j")
    >>> derivative(sp.Abs(tensor("x", i)) * tensor("x", j), tensor("x", i))
    sign(x[i])*x[j]
    """
    table = {y: sp.Dummy(name_of(y), real=True) for y in reads(expr)}
    if x not in table:
        return sp.S.Zero
    plain, d = expr.xreplace(table), table[x]
    rough = [a for a in plain.atoms(*_ROUGH) if a.has(d)]
    if rough:
        raise NotDifferentiableError(
            f"{where or expr}: {type(rough[0]).__name__} has no derivative in {x}; write it with conditions (`where`), or mark "
            "the statement range_only if its value cancels"
        )
    flat = {a: sp.Dummy(real=True) for a in plain.atoms(*_FLAT) if a.has(d)}
    slope = plain.xreplace(flat).diff(d).xreplace({v: k for k, v in flat.items()})
    if slope.has(sp.Derivative, sp.Subs):
        raise NotDifferentiableError(f"{where or expr}: the derivative in {x} is not known")
    return slope.xreplace({v: k for k, v in table.items()})


def real_inputs(program: Program) -> tuple[str, ...]:
    """The inputs that have a gradient: all but those that only conditions and subscripts read."""
    return tuple(n for n in program.inputs if n not in program.discrete)


def tangent_name(name: str) -> str:
    """The name of the tangent of the tensor ``name``.

    >>> tangent_name("Q")
    'Q_t'
    """
    return name + "_t"


@dataclass
class _Names:
    """Names and indices that are in use, and fresh ones."""

    program: Program
    taken: set[str] = field(init=False)
    dims: dict[sp.Symbol, sp.Expr] = field(init=False)

    def __post_init__(self) -> None:
        self.taken = {*self.program.inputs, *(s.name for s in self.program)}
        self.dims = dict(self.program.dims)

    def name(self, wish: str) -> str:
        """``wish``, with primes until it is free."""
        while wish in self.taken:
            wish += "'"
        self.taken.add(wish)
        return wish

    def twin(self, a: sp.Symbol, used: Iterable[sp.Symbol]) -> sp.Symbol:
        """An index of the same size as ``a``, primed until it is not in ``used``."""
        used, b = set(used), index(a.name + "'")
        while b in used or self.dims.setdefault(b, self.dims[a]) != self.dims[a]:
            b = index(b.name + "'")
        return b

    def of_size(self, n: sp.Expr, used: Iterable[sp.Symbol]) -> sp.Symbol:
        """An index of size ``n`` that is not in ``used``: one that the program knows, or a new letter."""
        used = set(used)
        for a, v in self.dims.items():
            if v == n and a not in used:
                return a
        busy = {a.name for a in self.dims} | self.taken | {a.name for a in self.program.sizes}
        letters = [x + tail for tail in ("", *map(str, range(1, len(busy) + 2))) for x in "uvwxyz"]
        a = index(next(x for x in letters if x not in busy))
        self.dims[a] = n
        return a


@dataclass(frozen=True)
class _Part:
    """One contribution to a gradient: sum over ``over`` of ``expr`` where ``where``, at the subscripts ``at``."""

    at: tuple[sp.Symbol, ...]
    expr: sp.Expr
    over: tuple[sp.Symbol, ...]
    where: sp.Basic
    source: str


@dataclass(frozen=True)
class Transposed:
    """What :func:`backward` gives: the program, and the names of seeds and gradients by the tensor they belong to."""

    program: Program
    seeds: dict[str, str]
    gradients: dict[str, str]


def _count(
    expr: sp.Expr, over: tuple[sp.Symbol, ...], where: sp.Basic, dims: dict[sp.Symbol, sp.Expr]
) -> tuple[sp.Expr, tuple[sp.Symbol, ...]]:
    """Sum over indices that neither expression nor condition has: a factor, their size."""
    used = integer_symbols(expr) | integer_symbols(where)
    for a in over:
        if a not in used:
            expr = dims[a] * expr
    return expr, tuple(a for a in over if a in used)


def _others(s: Statement, names: _Names) -> Statement:
    """For a product over R: at each (F, R) the product over all other points R', no division needed."""
    table = {a: names.twin(a, s.domain) for a in s.over}
    apart = sp.Or(*[sp.Ne(b, a) for a, b in table.items()])
    rest = s.renamed(table)
    return Statement(tensor(names.name(s.name + "_others"), *s.domain), rest.expr, rest.over, "prod", sp.And(apart, rest.where))


def _reducible(s: Statement) -> None:
    if s.over and s.reduce == "max":
        raise NotDifferentiableError(
            f"{s.name}: a maximum that is not range_only has no derivative, in `{s}`; mark it range_only if its value cancels"
        )


def _active(program: Program, wrt: Iterable[str]) -> set[str]:
    """The tensors that depend on ``wrt`` through values that are differentiated."""
    live = set(wrt)
    for s in program:
        if not s.range_only and any(name_of(x) in live for x in s.reads):
            live.add(s.name)
    return live


def _wrt(program: Program, wrt: Iterable[str] | None) -> tuple[str, ...]:
    if wrt is None:
        return real_inputs(program)
    asked = (wrt,) if isinstance(wrt, str) else tuple(dict.fromkeys(wrt))
    known = {*program.inputs, *(s.name for s in program)}
    for n in asked:
        if n not in known:
            raise UnknownNameError(f"no tensor {n!r} to differentiate by. {nearest(n, known)}")
        if n in program.discrete:
            raise NotDifferentiableError(f"{n} is read only in conditions and subscripts; it has no gradient")
    return asked


def backward(program: Program, wrt: Iterable[str] | None = None) -> Transposed:
    """The statements of ``program`` followed by those of its gradient; ``range_only`` statements are held constant, unproved.

    See :func:`symattn.adjoint.adjoint`, which proves them.
    """
    asked, names = _wrt(program, wrt), _Names(program)
    active = _active(program, asked)
    seeds = {o: names.name("d" + o) for o in program.outputs}
    grads: dict[str, str] = {}
    parts: dict[str, list[_Part]] = {}
    out: list[Statement] = []

    def close(target: Tensor) -> None:
        """Emit the statements that add up all contributions to the gradient of ``target``."""
        n = name_of(target)
        if n in seeds and not parts.get(n) and n not in asked:
            grads[n] = seeds[n]
            return
        grads[n] = names.name("d" + n)
        seed = tensor(seeds[n], *subscripts_of(target)) if n in seeds else None
        out.extend(_total(tensor(grads[n], *subscripts_of(target)), parts.pop(n, []), seed, names))

    for s in reversed(program.statements):
        if s.range_only or s.name not in active or not (s.name in parts or s.name in seeds or s.name in asked):
            continue
        close(s.target)
        live = [x for x in s.reads if name_of(x) in active]
        if not live:
            continue
        _reducible(s)
        weight: sp.Expr = tensor(grads[s.name], *s.indices)
        if s.over and s.reduce == "prod":
            others = _others(s, names)
            out.append(others)
            weight = weight * others.target
        for x in live:
            slope = derivative(s.expr, x, s.name)
            if slope != 0:
                parts.setdefault(name_of(x), []).append(_contribution(s, x, weight * slope, program, names))
    for n in asked:
        if n not in grads:
            close(program[n].target if n in program else _generic(program, n, names))
    shapes = {seeds[o]: program.shapes[o] for o in program.outputs}
    seen = {name_of(x) for s in out for x in s.reads}
    full = program.with_statements(
        (*program.statements, *out), [grads[n] for n in asked], names.dims, {k: v for k, v in shapes.items() if k in seen}
    )
    return Transposed(full, seeds, {n: grads[n] for n in asked})


def _contribution(s: Statement, x: Tensor, expr: sp.Expr, program: Program, names: _Names) -> _Part:
    """What the read ``x`` of ``s`` adds to the gradient of its tensor; other subscripts become ``where a = subscript``."""
    at: list[sp.Symbol] = []
    where = s.where
    plain = {a for a in subscripts_of(x) if a in s.domain}
    for k, a in enumerate(subscripts_of(x)):
        if a in s.domain and a not in at:
            at.append(a)
        else:
            u = names.of_size(program.shapes[name_of(x)][k], {*s.domain, *at, *plain})
            at.append(u)
            where = sp.And(where, sp.Eq(u, a))
    expr, over = _count(expr, tuple(a for a in s.domain if a not in at), where, names.dims)
    return _Part(tuple(at), expr, over, where, s.name)


def _total(target: Tensor, parts: list[_Part], seed: Tensor | None, names: _Names) -> list[Statement]:
    """``target`` = the sum of all contributions and the seed, in as few statements as their domains allow."""
    own = [_moved(p, target, names) for p in parts]
    if own and seed is None and (len(own) == 1 or (not any(p.over for p in own) and len({p.where for p in own}) == 1)):
        return [Statement(target, sp.Add(*[p.expr for p in own]), own[0].over, where=own[0].where)]
    out, total = [], [] if seed is None else [seed]
    for p in own:
        if p.over or p.where != sp.true:
            part = tensor(names.name(f"{name_of(target)}_{p.source}"), *subscripts_of(target))
            out.append(Statement(part, p.expr, p.over, where=p.where))
            total.append(part)
        else:
            total.append(p.expr)
    return [*out, Statement(target, sp.Add(*total))]


def _moved(p: _Part, target: Tensor, names: _Names) -> _Part:
    """The contribution with its subscripts renamed to those of the target, and bound indices out of their way."""
    to = subscripts_of(target)
    table = dict(zip(p.at, to, strict=True))
    for a in p.over:
        if a in to:
            table[a] = names.twin(a, {*to, *p.at, *p.over, *table.values()})
    return _Part(to, p.expr.xreplace(table), tuple(table.get(a, a) for a in p.over), p.where.xreplace(table), p.source)


def _generic(program: Program, name: str, names: _Names) -> Tensor:
    """An input with distinct plain indices: as the program first reads it so, or with indices of the right sizes."""
    first: Tensor | None = None
    for s in program:
        for x in s.reads:
            if name_of(x) == name:
                sub = subscripts_of(x)
                if all(a in s.domain for a in sub) and len(set(sub)) == len(sub):
                    return x
                first = x if first is None else first
    at: list[sp.Symbol] = []
    known = subscripts_of(first) if first is not None else ()
    for k, n in enumerate(program.shapes[name]):
        a = known[k] if k < len(known) else None
        at.append(a if a in program.dims and a not in at else names.of_size(n, {*at, *known}))
    return tensor(name, *at)


def forward(program: Program, wrt: Iterable[str] | None = None) -> Program:
    """The statements of ``program`` followed by those of its tangent; ``range_only`` statements are held constant, unproved.

    See :func:`symattn.adjoint.tangent`, which proves them.
    """
    asked, names = _wrt(program, wrt), _Names(program)
    dot = {n: names.name(tangent_name(n)) for n in asked}
    out: list[Statement] = []
    for s in program:
        live = [x for x in s.reads if name_of(x) in dot]
        if s.range_only or s.name in asked or not live:
            continue
        _reducible(s)
        slopes = [(derivative(s.expr, x, s.name), tensor(dot[name_of(x)], *subscripts_of(x))) for x in live]
        expr = sp.Add(*[d * t for d, t in slopes])
        if expr == 0:
            continue
        if s.over and s.reduce == "prod":
            others = _others(s, names)
            out.append(others)
            expr = others.target * expr
        expr, over = _count(expr, s.over, s.where, names.dims)
        dot[s.name] = names.name(tangent_name(s.name))
        out.append(Statement(tensor(dot[s.name], *s.indices), expr, over, where=s.where))
    for o in program.outputs:
        if o not in dot:
            dot[o] = names.name(tangent_name(o))
            out.append(Statement(tensor(dot[o], *program[o].indices), sp.S.Zero))
    shapes = {dot[n]: program.shapes[n] for n in asked}
    return program.with_statements((*program.statements, *out), [dot[o] for o in program.outputs], names.dims, shapes)
