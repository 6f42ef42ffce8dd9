r"""The largest error of a correct kernel for *all* inputs of given magnitudes, from a list of statements and a declaration.

Each input is a box around 0 as wide as its magnitude, and the rounding reading bounds what is made of it. That ends at an
exponential: the box of ``exp(z - m)`` spans orders of magnitude. From there on errors are kept *relative to weights*. Let m be a
row maximum over z (and over other leaves, a sink), c the number by which a kernel's own maximum shifts the row, and
``w = exp(z - m)``.

* A weight has ``0 <= w <= 1``, and the kernel's is within ``rel w + tiny`` of ``c w``.
* A sum of weights times x has ``|t| <= factor W``, W the sum of the weights, factor the magnitude of x; the kernel's is within
  ``rel factor W + tiny`` of ``c t``. Roundings of the terms and of the sum add up in ``rel``.
* A sum l of weights alone has an error relative to itself. It is at least 1 where it holds an exponential of every leaf.
* In ``N / l`` with ``l >= W`` the number c cancels, and the quotient is at most its factor: a weighted mean.
* ``log l + m``: c cancels too. ``exp(z - L)`` of this L, z one of the leaves, is a weight of a row that sums to 1 at most.
* Such a weight times other tensors (dS = P (dP - D)) is relative to it still; summed over the keys it is at most its factor.

A sum over anything else, over the queries for dK and dV, takes each term at its greatest. What a rule does not cover is bounded
from the magnitudes and errors of what it reads; where that ends at an exponential, there is no bound: infinity. The result is no
larger than the interval reading of the whole list.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import sympy as sp

from symattn.arithmetic import Arithmetic
from symattn.program import Program, Statement, integer_symbols, name_of, reads, subscripts_of, tensor
from symattn.readings import boxstatements, rounding
from symattn.readings.boxes import UP, Box
from symattn.readings.degrees import degrees_of
from symattn.readings.sizes import find_sizes, size_value
from symattn.readings.units import Unit, fits
from symattn.verify.replay.plan import chain_of, products_of
from symattn.verify.tolerance.parts import (
    Reach,
    Share,
    around,
    copies_of,
    exponent_of,
    leaf_of,
    leaves_of,
    log_of,
    over,
    renamed,
    weights_up_to,
)
from symattn.verify.tolerance.shares import Shares, reach_of


def apriori(
    program: Program,
    inputs: Mapping[str, Any],
    magnitudes: Mapping[str, float],
    arithmetic: Arithmetic,
    *,
    sizes: Mapping[str, int] | None = None,
) -> dict[str, Reach]:
    """Magnitude and greatest error of every output.

    Parameters
    ----------
    program
        The list that the kernel follows.
    inputs
        Arrays by name: of those with a magnitude only the shape counts, the others are taken as they are.
    magnitudes
        The greatest absolute value of inputs, by name.
    arithmetic
        How the kernel computes.
    sizes
        Sizes that no input shows.

    >>> from symattn.arithmetic import get
    >>> from symattn.definition import Definition
    >>> from symattn.verify.programs import followed
    >>> p = followed(Definition().program(), get("flash-bf16"), gradient=False)
    >>> x = np.zeros((4, 8))
    >>> found = apriori(p, {"Q": x, "K": x, "V": x}, {"Q": 2.0, "K": 2.0, "V": 3.0}, get("flash-bf16"))
    >>> found["O"].size, bool(3 * 2**-8 < found["O"].error < 3 * 2**-6)
    (3.0, True)
    """
    with np.errstate(all="ignore"):
        return _Apriori(program, inputs, magnitudes, arithmetic, dict(sizes or {})).outputs()


class _Apriori:
    def __init__(
        self,
        program: Program,
        inputs: Mapping[str, Any],
        magnitudes: Mapping[str, float],
        a: Arithmetic,
        sizes: Mapping[str, int],
    ) -> None:
        self.program, self.a = program, a
        self.degrees = degrees_of(program)
        self.summed = boxstatements.summed_as_read(program) if a.sum_from_cast else frozenset()
        self.exponents = {s.name: z for s in program if (z := exponent_of(s, self.degrees)) is not None}
        self.copies = copies_of(program)
        more = [
            Statement(tensor(f"{n}_z", *program[n].indices), z, where=program[n].where) for n, (z, _) in self.exponents.items()
        ]
        whole = program.with_statements((*program.statements, *more))
        arrays = {n: np.zeros(np.shape(x)) if n in magnitudes else np.asarray(x) for n, x in inputs.items()}
        boxes = {n: around(np.shape(inputs[n]), x, a.input) for n, x in magnitudes.items() if n in inputs}
        self.boxes = rounding.Evaluation(whole, arrays, a, sizes=sizes, boxes=boxes).boxes
        numbers = find_sizes(program, {n: np.shape(x) for n, x in arrays.items()}, sizes)
        self.given = {str(s): n for s, n in numbers.items()}
        self.sizes = {x: size_value(s, numbers) for x, s in program.dims.items() if s.free_symbols <= numbers.keys()}
        self.rules = Shares(program, a, self._keys, self._lag, self._top)
        self.found: dict[str, Share | Reach | None] = {}
        self.logs: dict[str, tuple[sp.Expr, str]] = {}
        for s in program:
            if not s.range_only and (self.degrees[s.name] != {} or any(n in self.found for n in s.needs)):
                self.found[s.name] = self._statement(s)

    def outputs(self) -> dict[str, Reach]:
        """The better of both readings."""
        return {o: self._reach(o) for o in self.program.outputs}

    def _reach(self, name: str) -> Reach:
        """The magnitude and error of a tensor of degree 0."""
        plain, found = over(self.boxes[name]), self.found.get(name)
        if isinstance(found, Share) and found.gauge is None:
            found = reach_of(found)
        if not isinstance(found, Reach):
            return plain
        return Reach(min(plain.size, found.size), min(plain.error, found.error))

    def _keys(self, gauge: str) -> int:
        return self.sizes[self._row(gauge).over[0]]

    def _row(self, gauge: str) -> Statement:
        """The maximum over the keys itself."""
        chain = chain_of(self.program, gauge)
        assert chain is not None  # its weights are shares
        return chain[0]

    def _top(self, gauge: str) -> float:
        return over(self.boxes[gauge]).size + self.a.stale

    def _lag(self, gauge: str) -> float:
        """How far a kernel's maximum may be from the exact one: the error of what it is a maximum of, and what it is late by."""
        own = [n for n, (_, g) in self.exponents.items() if g == gauge]
        if {leaf_of(self.program, self.program[n], self.exponents[n]) for n in own} != leaves_of(self.program, gauge):
            return math.inf
        return max(over(self.boxes[f"{n}_z"]).error for n in own) + self.a.stale

    def _statement(self, s: Statement) -> Share | Reach | None:
        degree = self.degrees[s.name]
        if s.name in self.exponents:
            return self._stored(self._weight(s), s)
        if isinstance(normalised := self._by_lse(s), Share):
            return self._stored(normalised, s)
        if s.over:
            return self._sum(s) or self._alone(s)
        shares = [x for x in reads(s.expr) if isinstance(self.found.get(name_of(x)), Share)]
        if degree is not None and len(degree) == 1 and isinstance(s.expr, sp.Add):
            held = [self.found[name_of(x)] for x in s.expr.args if x in shares]
            return self._stored(self.rules.added(held, len(s.expr.args)), s)
        if isinstance(log := self._log(s), Reach):
            return log
        return self._product(s)

    def _stored(self, x: Share | None, s: Statement) -> Share | Reach | None:
        return None if x is None else self.rules.stored(x, s, s.name in self.summed)

    def _weight(self, s: Statement) -> Share | None:
        """``exp(z - m)`` with z a leaf of m."""
        _, gauge = self.exponents[s.name]
        z, leaf = over(self.boxes[f"{s.name}_z"]), leaf_of(self.program, s, self.exponents[s.name])
        if leaf is None:
            return None
        u, a, top = self.rules.unit(self.a.compute), self.a, self._top(gauge)
        x = z.size + z.error + top
        exponent = z.error + u.u * x + (u.u * (top + 2 * x) if a.folded else 0.0) + self.rules.parts(gauge, x)
        share = self.rules.exponential(s.name, exponent, 1 + self.rules.rescalings(gauge))
        return replace(share, gauge=gauge, tight=True, leaves=frozenset({leaf}), keys=frozenset(self._row(gauge).over))

    def _by_lse(self, s: Statement) -> Share | None:
        """``exp(z - L)`` with L the log-sum-exp of a row and z a leaf of it: at most 1, and so is the sum over the keys."""
        lse = next((x for x in reads(s.expr) if name_of(x) in self.logs), None)
        if lse is None or s.over or not isinstance(s.expr, sp.exp):
            return None
        exponent = sp.expand(s.expr.args[0])
        factor = exponent.coeff(lse)
        (number, gauge), z = self.logs[name_of(lse)], exponent - factor * lse
        leaf = (renamed(z, self.copies), gauge)
        if sp.expand(factor * number) != -1 or any(name_of(x) in self.found for x in reads(z)):
            return None
        if leaf_of(self.program, s, leaf) is None:
            return None
        of_z, of_lse, c = over(self._evaluated(self._part(s, z))), self._reach(name_of(lse)), abs(float(factor))
        u = self.rules.unit(self.a.compute).u
        x = of_z.size + of_z.error + c * (of_lse.size + of_lse.error)
        roundings = 1 + (0 if c == 1 else 4) + (3 if self.a.folded else 0)
        share = self.rules.exponential(s.name, of_z.error + c * of_lse.error + roundings * u * x, 1)
        return replace(share, keys=frozenset(self._row(gauge).over) & set(s.indices))

    def _sum(self, s: Statement) -> Share | Reach | None:
        """A sum over the keys of weights, each times what else is in the term."""
        factors = list(sp.Mul.make_args(s.expr))
        shares = [f for f in factors if f in reads(f) and isinstance(self.found.get(name_of(f)), Share)]
        if len(shares) != 1 or s.reduce != "sum":
            return None
        x, read = self.found[name_of(shares[0])], subscripts_of(shares[0])
        assert isinstance(x, Share)
        others = [self._term(f, s) for f in factors if f is not shares[0]]
        if x.summed or any(o is None for o in others) or set(s.over) != x.keys:
            return None
        numbers = [f for f in factors if not integer_symbols(f)]
        if read != self.program[name_of(shares[0])].indices or (numbers and self.a.scale_before):
            return None
        if shares[0] in products_of(s) and name_of(shares[0]) not in self.summed:
            x = self.rules.cast(x)
        return self._stored(self._accumulated(s, x, [o for o in others if o is not None], len(numbers)), s)

    def _accumulated(self, s: Statement, x: Share, others: list[Reach], numbers: int) -> Share:
        """The sum itself: what the other factors err by, and the roundings of products and sums."""
        count = math.prod(self.sizes[k] for k in s.over)
        size = math.prod(o.size for o in others)
        more = math.prod(1 + (o.error / o.size if o.size else 0.0) for o in others) - 1
        unit, a = self.rules.unit(self.a.accumulate), self.a
        rescalings = self.rules.rescalings(x.gauge)
        additions = a.additions(count, count) + (rescalings if a.block is not None and a.depth is None else 0)
        sums = (1 + a.step_error) ** additions
        products = (1 + unit.u) ** (len(others) + rescalings)
        after, tiny_after = self._after(count, numbers)
        rel = (1 + x.rel) * (1 + more) * sums * products * after - 1
        low = max(1 - (sums - 1), 0.0) * max(1 - (products - 1), 0.0) * max(2 - after, 0.0)
        tiny = count * x.tiny * size * (1 + rel) + (count * (len(others) + 1) + rescalings) * max(1.0, size) * 2 * unit.tiny
        tight = x.tight and not others
        return replace(
            x,
            factor=x.factor * size,
            rel=rel * UP,
            tiny=(tiny * after + tiny_after) * UP,
            fall=min((1 - (1 - x.fall) * low) * UP, 1.0),
            tight=tight,
            summed=True,
            covers=frozenset({x.base}) if tight and x.base else frozenset(),
            leaves=x.leaves if tight else frozenset(),
            most=count * x.most,
        )

    def _after(self, count: int, numbers: int) -> tuple[float, float]:
        """Roundings of the sum: by a number in a narrower format, and by a buffer that grows tile by tile."""
        a, compute = self.a, self.rules.unit(self.a.compute)
        after, tiny = 1.0, 0.0
        if numbers and not fits(a.accumulate, compute.name):
            after, tiny = (1 + compute.u) ** numbers, numbers * compute.tiny
        if a.dq_accumulate is not None:
            unit, times = Unit.of(a.dq_accumulate), a.tiles(count) + 1
            after, tiny = after * (1 + unit.u) ** times, tiny + times * unit.tiny
        return after, tiny * after

    def _term(self, f: sp.Expr, s: Statement) -> Reach | None:
        """Another factor of a term: a number, an input, a tensor of degree 0."""
        if f.is_number:
            return self.rules.number(f)
        if f not in reads(f) or self.degrees.get(name_of(f), {}) != {}:
            return None
        r = self._reach(name_of(f))
        return self.rules.operand(r, name_of(f) in self.program.inputs) if f in products_of(s) else r

    def _product(self, s: Statement) -> Share | Reach | None:
        """A share times tensors of degree 0, or divided by a sum of weights."""
        top: Share | None = None
        below: Share | None = None
        size, more, count, signed = 1.0, 0.0, 0, False
        for f in sp.Mul.make_args(s.expr):
            base, power = f.as_base_exp()
            held = self.found.get(name_of(base)) if base in reads(base) else None
            whole = base in reads(base) and isinstance(held, Share) and subscripts_of(base) == self.program[name_of(base)].indices
            if whole and power == 1 and top is None:
                top = held  # type: ignore[assignment]
            elif isinstance(held, Share) and power == -1 and below is None:
                below = held
            elif (r := self._factor(f, s)) is not None:
                size, more, count = size * r.size, (1 + more) * (1 + r.error / r.size if r.size else 1.0) - 1, count + 1
                signed = signed or f.is_nonnegative is not True
            else:
                return self._alone(s)
        if top is None:
            return self._alone(s)
        u = self.rules.unit(self.a.compute)
        rel = (1 + top.rel) * (1 + more) * (1 + u.u) ** count - 1
        top = replace(top, factor=top.factor * size, rel=rel * UP, tiny=top.tiny * size * (1 + rel) + count * u.tiny)
        top = replace(top, tight=top.tight and not count, signed=top.signed or signed)
        return self._stored(top if below is None else self.rules.quotient(top, below), s)

    def _log(self, s: Statement) -> Reach | None:
        """``k (log l + m)``."""
        factors = sp.Mul.make_args(s.expr)
        k, e = sp.Mul(*(f for f in factors if f.is_number)), sp.Mul(*(f for f in factors if not f.is_number))
        if not (isinstance(e, sp.Add) and len(e.args) == 2):
            return None
        logs = [x for x in e.args if isinstance(x, sp.log)]
        rest = [x for x in e.args if not isinstance(x, sp.log)]
        if len(logs) != 1 or logs[0].args[0] not in reads(e) or rest[0] not in reads(e):
            return None
        mass = self.found.get(name_of(logs[0].args[0]))
        if not isinstance(mass, Share) or not mass.tight or mass.gauge != name_of(rest[0]):
            return None
        if mass.leaves != leaves_of(self.program, mass.gauge):
            return None
        self.logs[s.name] = (k, mass.gauge)
        return log_of(mass, abs(float(k)), self._lag(mass.gauge), self._top(mass.gauge), self.a)

    def _factor(self, e: sp.Expr, s: Statement) -> Reach | None:
        """A factor of degree 0 that reads no share, by a statement of its own."""
        if any(isinstance(self.found.get(name_of(x)), Share) or self.degrees.get(name_of(x), {}) != {} for x in reads(e)):
            return None
        if e.is_number:
            return self.rules.number(e)
        return self._reach(name_of(e)) if e in reads(e) else over(self._evaluated(self._part(s, e)))

    def _part(self, s: Statement, e: sp.Expr) -> Statement:
        """A part of a statement as a statement."""
        return Statement(tensor("alone", *s.indices), e, where=s.where)

    def _alone(self, s: Statement) -> Reach | None:
        """A statement of tensors of degree 0, from their magnitudes and errors."""
        if self.degrees[s.name] != {} or s.scan is not None:
            return None
        return over(self._evaluated(s, output=s.name in self.program.outputs))

    def _evaluated(self, s: Statement, *, output: bool = False) -> Box:
        a = self.a if output else replace(self.a, output=self.a.store)
        program = self.program.with_statements([s], (s.name,))
        boxes = {n: self._box(n) for n in program.inputs if n in self.boxes}
        values = {n: b.value for n, b in boxes.items()}
        return rounding.Evaluation(program, values, a, sizes=self.given, boxes=boxes).boxes[s.name]

    def _box(self, name: str) -> Box:
        """All that a tensor of degree 0 may be."""
        b = self.boxes[name]
        if name not in self.found:
            return b
        r, shape, x = self._reach(name), np.shape(b.value), self.found[name]
        if isinstance(x, Share) and not x.signed:
            return weights_up_to(shape, r.size, r.error, b.held or self.a.compute)
        return replace(around(shape, r.size, b.held or self.a.compute), bound=np.full(shape, r.error))
