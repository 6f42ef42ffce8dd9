"""What a program itself says that a proof may use: known sums, where tensors are 0, which subscripts are in range.

* ``l[i] = sum over j of E[i, j] where keep``: the sum of ``E`` is ``l``, and an empty row has ``l = 0`` (a maximum -oo).
* ``l[i] = r[i] + exp(sink - m[i])`` with ``r`` a sum: that sum is ``l - exp(sink - m)``.
* There, where the conditions of ``r`` do not hold, ``l`` is ``exp(sink - m)``.
* ``L[i] = m[i] + log(l[i])``: where ``l`` is 0 the output has no value, and its incoming gradient is taken to be 0.
* A read ``x[t - 1] where t >= 1``: then ``t - 1`` is in range.

No fact knows a tensor's name. Statements of a scan give no facts: what they define is 0 beyond the ends, where their equations do
not hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import sympy as sp

from symattn.conditions import Exists, normal_conditions
from symattn.indexed import Tensor, all_reads, name_of, reads, subscripts_of
from symattn.normalform import Contraction, NormalForm, Support
from symattn.program import Program, Statement
from symattn.sums import Outside

__all__ = ["knowing", "opaque_names", "sums", "supports"]


def opaque_names(program: Program) -> frozenset[str]:
    """The tensors that proofs keep as names: maxima, products, and sums that something divides by or takes the logarithm of."""
    out = {s.name for s in program if s.range_only or (s.over and s.reduce != "sum")}
    divided: set[str] = set()
    for s in program:
        for x in s.expr.atoms(sp.Pow, sp.log):
            base = x.args[0]
            if isinstance(x, sp.log) or not (x.exp.is_Integer and x.exp > 0):
                divided |= {name_of(y) for y in _outside_functions(base)}
    todo = [n for n in divided if n in program]
    seen: set[str] = set()
    while todo:  # a divisor that is a product or a copy of others is written out: those are what stays
        n = todo.pop()
        if n in seen:
            continue
        seen.add(n)
        s = program[n]
        if s.over or isinstance(sp.expand(s.expr), sp.Add):
            out.add(n)
        else:
            todo += [name_of(y) for y in s.reads if name_of(y) in program]
    return frozenset(out)


def _outside_functions(e: sp.Expr) -> set[Tensor]:
    """The tensors that an expression reads, but not as arguments of functions: there they stay names anyway."""
    return set(reads(e.xreplace(dict.fromkeys(e.atoms(sp.Function), sp.S.One))))


def supports(program: Program) -> dict[str, Support]:
    """Where each tensor is not 0 (a maximum not -oo), as far as its own statement says."""
    out: dict[str, Support] = {}
    dims = dict(program.dims)
    for s in program:
        if s.scan is not None:
            continue
        conditions = normal_conditions(s.where, dims)
        if conditions is None:
            out[s.name] = Support(s.indices, (sp.false,))
            continue
        bound = [a for a in s.over if any(c.has(a) for c in conditions)]
        inner = [c for c in conditions if any(c.has(a) for a in bound)]
        own = [c for c in conditions if c not in inner]
        if s.over and s.reduce == "prod":
            continue
        if inner:
            found = Exists.over(inner, {a: dims[a] for a in bound})
            dims |= zip(found.indices, found.sizes, strict=True)
            own += normal_conditions(found, dims) or []
        if own:
            out[s.name] = Support(s.indices, tuple(own))
    return out


def _of_seeds(program: Program, known: Mapping[str, Support], seeds: Mapping[str, str]) -> dict[str, Support]:
    """Support of incoming gradients: where an output has no value (the logarithm of an empty sum), its gradient counts as 0."""
    out: dict[str, Support] = {}
    for o, seed in seeds.items():
        s = program[o]
        conditions: list[sp.Basic] = []
        for x in s.expr.atoms(sp.Pow, sp.log):
            if isinstance(x, sp.log) or not (x.exp.is_Rational and x.exp > 0):
                for y in all_reads(x.args[0]):
                    if name_of(y) in known:
                        at = dict(zip(known[name_of(y)].at, subscripts_of(y), strict=True))
                        conditions += [c.xreplace(at) for c in known[name_of(y)].conditions]
        if conditions and not s.over:
            out[seed] = Support(s.indices, tuple(dict.fromkeys(conditions)))
    return out


def sums(program: Program, opaque: Iterable[str]) -> tuple[Contraction, ...]:
    """The sums that opaque tensors name, directly or as the only sum in ``total = sum + rest``."""
    held = frozenset(opaque)
    out = [
        _sum(s, s.target)
        for s in program
        if s.name in held and s.over and s.reduce == "sum" and not s.range_only and s.scan is None
    ]
    for t in _totals(program, held):
        back = dict(zip(subscripts_of(t.read), t.sum.indices, strict=True))
        out.append(_sum(t.sum, ((t.user.target - t.rest) / t.slope).xreplace(back)))
    return tuple(out)


@dataclass(frozen=True)
class _Total:
    """``user = slope * read + rest``, ``read`` being a sum."""

    user: Statement
    sum: Statement
    read: Tensor
    slope: sp.Expr
    rest: sp.Expr


def _totals(program: Program, held: frozenset[str]) -> Iterator[_Total]:
    """The opaque tensors that are a sum and something else."""
    for s in program:
        if not s.over or s.reduce != "sum" or s.range_only or s.scan is not None or s.name in held:
            continue
        for u in program.users(s.name):
            if u.name not in held or u.over or u.range_only or u.scan is not None or u.where != sp.true:
                continue
            for x in u.reads:
                if name_of(x) != s.name or sorted(map(str, subscripts_of(x))) != sorted(map(str, u.indices)):
                    continue
                slope = sp.expand(u.expr).coeff(x, 1)
                rest = sp.expand(u.expr - slope * x)
                if slope != 0 and not rest.has(x) and not slope.has(x):
                    yield _Total(u, s, x, slope, rest)


def _outside(program: Program, held: frozenset[str], known: Mapping[str, Support]) -> dict[str, Outside]:
    """What totals are where the conditions of their sum, apart from the index that is summed, do not hold."""
    out: dict[str, Outside] = {}
    for t in _totals(program, held):
        if t.sum.name in known:
            at = dict(zip(known[t.sum.name].at, subscripts_of(t.read), strict=True))
            own = tuple(c.xreplace(at) for c in known[t.sum.name].conditions if not isinstance(c, Exists))
            if own:
                out[t.user.name] = Outside(t.user.indices, own, t.rest)
    return out


def _sum(s: Statement, value: sp.Expr) -> Contraction:
    own = [c for c in s.conditions if any(c.has(a) for a in s.over)]
    return Contraction(s.expr, s.over, sp.And(*own), value, sp.And(*[c for c in s.conditions if c not in own]))


def _ranges(program: Program) -> list[tuple[sp.Expr, sp.Expr, frozenset[sp.Basic]]]:
    """Subscripts that are no plain index, with the size of their axis and the conditions under which they are read."""
    out: dict[tuple[sp.Expr, sp.Expr, frozenset[sp.Basic]], None] = {}
    for s in program:
        where = normal_conditions(s.where, program.dims)
        if where is None:
            continue
        for x in all_reads(s.expr):
            scan = program.scan_axes.get(name_of(x))
            for k, (a, n) in enumerate(zip(subscripts_of(x), program.shapes[name_of(x)], strict=True)):
                if a not in program.dims and not a.is_Integer and k != scan:
                    out[a, n, where] = None
    return list(out)


def knowing(
    program: Program,
    derived: Program | None = None,
    seeds: Mapping[str, str] | None = None,
    opaque: Iterable[str] | None = None,
    frozen: Iterable[str] = (),
    limit: int = 20_000,
) -> NormalForm:
    """A normal form for tensors of ``derived`` that knows what the forward ``program`` says.

    Parameters
    ----------
    program
        The forward statements: facts come from them and from nothing else.
    derived
        A program with more statements (a gradient, a tangent); what it adds is expanded.
    seeds
        Output -> name of its incoming gradient, ``"d" + output`` by default.
    opaque
        Names that stay; :func:`opaque_names` by default.
    frozen
        More names that stay.
    limit
        The greatest number of terms.

    >>> from symattn.indexed import indices, size, tensor
    >>> from symattn.normalform import SumOver
    >>> i, j = indices("i j")
    >>> E, l, P = tensor("E", i, j), tensor("l", i), tensor("P", i, j)
    >>> p = Program((Statement(l, E, (j,)), Statement(P, E / l)), {i: size("n"), j: size("m")}, ("P",))
    >>> knowing(p).equal(SumOver(P, j), sp.S.One)
    True
    """
    held = (opaque_names(program) if opaque is None else frozenset(opaque)) | set(frozen)
    every = {s.name: s for s in (derived or program)} | {s.name: s for s in program}
    known = supports(program)
    incoming = {o: "d" + o for o in program.outputs} if seeds is None else seeds
    dims: dict[sp.Symbol, sp.Expr] = {**program.dims, **(derived.dims if derived is not None else {})}
    for s in known.values():
        for c in s.conditions:
            if isinstance(c, Exists):
                dims |= zip(c.indices, c.sizes, strict=True)
    return NormalForm(
        every.values(),
        dims,
        opaque=held,
        contract=sums(program, held),
        support={**known, **_of_seeds(program, known, incoming)},
        ranges=_ranges(program),
        outside=_outside(program, held, known),
        limit=limit,
    )
