"""The derivative rule for programs: one rule, read backwards (the adjoint) and forwards (the tangent).

For ``Y[F] = sum over R of expr(X1[I1], X2[I2], ...) where w`` each read ``X[I]`` contributes, backwards::

    dX[u] += sum over F, R of  dY[F] * d expr / d X[I]    where w and I(F, R) = u

and forwards ``Y_t[F] += sum over R of  d expr / d X[I] * X_t[I]  where w``. SymPy differentiates scalars, every read being a
real symbol; the rule moves indices. The equality goes away where the subscripts are distinct indices or can be solved for one
(``t - 1``), and is a scatter-add otherwise (:mod:`symattn.contributions`). Conditions are never differentiated and are carried
along. A product needs one helper, the product of the other factors. A statement that is ``range_only`` is held constant here;
:mod:`symattn.adjoint` is the door that proves such claims.

The gradient of a scan group needs no other rule: all its statements contribute first, and the gradients of its tensors, in
reverse order, are a scan that walks the other way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import sympy as sp

from symattn.contributions import Names, Part, contribution, count_out, total_of
from symattn.errors import NotDifferentiableError, UnknownNameError, nearest
from symattn.indexed import Tensor, name_of, reads, subscripts_of, tensor
from symattn.program import Program, Statement
from symattn.scans import Scan, kept_apart

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


@dataclass(frozen=True)
class Transposed:
    """What :func:`backward` gives: the program, and the names of seeds and gradients by the tensor they belong to."""

    program: Program
    seeds: dict[str, str]
    gradients: dict[str, str]


def _others(s: Statement, names: Names) -> Statement:
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
    for group in program.groups():
        while more := {
            s.name for s in group if not s.range_only and s.name not in live and any(name_of(x) in live for x in s.reads)
        }:
            live |= more
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
    return _Backward(program, _wrt(program, wrt)).run()


class _Backward:
    """The gradient as it grows: contributions that wait for their tensor, and the groups of statements so far."""

    def __init__(self, program: Program, asked: tuple[str, ...]) -> None:
        self.program, self.asked, self.names = program, asked, Names(program)
        self.active = _active(program, asked)
        self.seeds = {o: self.names.name("d" + o) for o in program.outputs}
        self.grads: dict[str, str] = {}
        self.parts: dict[str, list[Part]] = {}
        self.out: list[tuple[Statement, ...]] = []

    def run(self) -> Transposed:
        program, grads = self.program, self.grads
        for group in reversed(program.groups()):
            reached = self.reached(group)
            self.opened(reached)
            self.put(group[0].scan, reached)
        for n in self.asked:
            if n not in grads:
                target = program[n].target if n in program else _generic(program, n, self.names)
                grads[n] = self.names.name("d" + n)
                self.out += [(s,) for s in self.total(target)]
        shapes = {self.seeds[o]: program.shapes[o] for o in program.outputs}
        seen = {name_of(x) for group in self.out for s in group for x in s.reads}
        full = program.with_statements(
            kept_apart([*program.groups(), *self.out]),
            [grads[n] for n in self.asked],
            self.names.dims,
            {k: v for k, v in shapes.items() if k in seen},
        )
        return Transposed(full, self.seeds, {n: grads[n] for n in self.asked})

    def reached(self, group: tuple[Statement, ...]) -> dict[str, tuple[Statement, dict[Tensor, sp.Expr]]]:
        """The statements that have a gradient, last one first, each with its slopes by what it reads."""
        able = [s for s in reversed(group) if s.name in self.active and not s.range_only]
        waiting = {s.name for s in able if s.name in self.parts or s.name in self.seeds or s.name in self.asked}
        found: dict[str, tuple[Statement, dict[Tensor, sp.Expr]]] = {}
        while todo := [s for s in able if s.name in waiting and s.name not in found]:
            for s in todo:
                live = [x for x in s.reads if name_of(x) in self.active]
                if live:
                    _reducible(s)
                slopes = {x: derivative(s.expr, x, s.name) for x in live}
                found[s.name] = s, {x: slope for x, slope in slopes.items() if slope != 0}
                waiting |= {name_of(x) for x in found[s.name][1]}
        return {s.name: found[s.name] for s in able if s.name in found}

    def opened(self, reached: dict[str, tuple[Statement, dict[Tensor, sp.Expr]]]) -> None:
        """Name the gradients of a group, and let its statements contribute to those of what they read."""
        fed = {name_of(x) for _, slopes in reached.values() for x in slopes} | self.parts.keys() | set(self.asked)
        for n in reached:
            self.grads[n] = self.names.name("d" + n) if n not in self.seeds or n in fed else self.seeds[n]
        for s, slopes in reached.values():
            weight: sp.Expr = tensor(self.grads[s.name], *s.indices)
            if slopes and s.over and s.reduce == "prod":
                others = _others(s, self.names)
                self.out.append((others,))
                weight = weight * others.target
            ends = isinstance(weight, sp.Indexed) and self.grads[s.name] != self.seeds.get(s.name)
            for x, slope in slopes.items():
                part = contribution(s, x, weight, slope, self.program, self.names, ends)
                if part is not None:
                    self.parts.setdefault(name_of(x), []).append(part)

    def put(self, scan: Scan | None, reached: dict[str, tuple[Statement, dict[Tensor, sp.Expr]]]) -> None:
        """Emit the gradients of a group: those of a scan are a scan that walks the other way; helpers that read none stay out."""
        own = {self.grads[n] for n in reached if self.grads[n] != self.seeds.get(n)}
        inside: list[Statement] = []
        for n, (s, _) in reached.items():
            if self.grads[n] not in own:
                continue
            back = None if scan is None else scan.reversed()
            for made in self.total(s.target, back):
                if back is None or not (made.name in own or made.needs & own):
                    self.out.append((made,))
                else:
                    inside.append(replace(made, scan=back))
        if inside:
            self.out.append(tuple(inside))

    def total(self, target: Tensor, scan: Scan | None = None) -> list[Statement]:
        """The statements that add up all contributions to the gradient of ``target``, whose name is given."""
        n, at = name_of(target), subscripts_of(target)
        seed = tensor(self.seeds[n], *at) if n in self.seeds else None
        return total_of(tensor(self.grads[n], *at), self.parts.pop(n, []), seed, self.names, scan)


def _generic(program: Program, name: str, names: Names) -> Tensor:
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
    asked, names = _wrt(program, wrt), Names(program)
    given = {n: names.name(tangent_name(n)) for n in asked}
    dot = dict(given)
    out: list[tuple[Statement, ...]] = []
    for group in program.groups():
        moved = _moved_by(group, dot, asked)
        for s in moved:
            if s.name not in asked:
                dot[s.name] = names.name(tangent_name(s.name))
            elif s.scan is not None:  # what is added at one step moves the later ones
                dot[s.name] = names.name(given[s.name])
        made = []
        for s, slopes in moved.items():
            expr = sp.Add(*[slope * tensor(dot[name_of(x)], *subscripts_of(x)) for x, slope in slopes.items()])
            if s.over and s.reduce == "prod":
                others = _others(s, names)
                out.append((others,))
                expr = others.target * expr
            expr, over = count_out(expr, s.over, s.where, names.dims)
            target = tensor(dot[s.name], *s.indices)
            derived = Statement(target, expr, over, where=s.where, scan=s.scan)
            made += [derived] if s.name not in given else _with_direction(derived, given[s.name], names)
        out.append(tuple(made))
    for o in program.outputs:
        if o not in dot:
            dot[o] = names.name(tangent_name(o))
            out.append((Statement(tensor(dot[o], *program[o].indices), sp.S.Zero),))
    shapes = {given[n]: program.shapes[n] for n in asked}
    full = kept_apart([*program.groups(), *(group for group in out if group)])
    return program.with_statements(full, [dot[o] for o in program.outputs], names.dims, shapes)


def _moved_by(
    group: tuple[Statement, ...], dot: Mapping[str, str], asked: tuple[str, ...]
) -> dict[Statement, dict[Tensor, sp.Expr]]:
    """The statements of a group that have a tangent, with their slopes by what they read and what moves."""
    able = [s for s in group if not s.range_only and (s.name not in asked or s.scan is not None)]
    moving = set(dot)
    found: dict[Statement, dict[Tensor, sp.Expr]] = {}
    while True:
        for s in able:
            live = [x for x in s.reads if name_of(x) in moving]
            if live:
                _reducible(s)
            slopes = {x: derivative(s.expr, x, s.name) for x in live}
            found[s] = {x: slope for x, slope in slopes.items() if slope != 0}
        more = {s.name for s in able if found[s]} - moving
        if not more:
            return {s: slopes for s, slopes in found.items() if slopes}
        moving |= more


def _with_direction(s: Statement, given: str, names: Names) -> list[Statement]:
    """What moves a tensor of a scan through earlier steps, and the direction that it is given, added up."""
    direction = tensor(given, *s.indices)
    if s.where == sp.true and not s.over:
        return [replace(s, expr=s.expr + direction)]
    part = tensor(names.name(s.name + "_earlier"), *s.indices)
    return [replace(s, target=part), Statement(s.target, part + direction, scan=s.scan)]
