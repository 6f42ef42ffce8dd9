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
* ``log l + m``: c cancels too.

What a rule does not cover has no bound: infinity. The result is no larger than the interval reading of the whole list.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import sympy as sp

from symattn.arithmetic import Arithmetic
from symattn.program import Program, Statement, name_of, reads, tensor
from symattn.readings import boxstatements, rounding
from symattn.readings.boxes import UP, Box, Unit, fits
from symattn.readings.degrees import degrees_of
from symattn.readings.sizes import find_sizes, size_value
from symattn.verify.replay.plan import chain_of, products_of
from symattn.verify.tolerance.parts import Reach, Share, around, exponent_of, leaf_of, leaves_of, log_of, over


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
        self.program, self.a, self.given = program, a, sizes
        self.degrees = degrees_of(program)
        self.summed = boxstatements.summed_as_read(program) if a.sum_from_cast else frozenset()
        self.exponents = {s.name: z for s in program if (z := exponent_of(s, self.degrees)) is not None}
        more = [
            Statement(tensor(f"{n}_z", *program[n].indices), z, where=program[n].where) for n, (z, _) in self.exponents.items()
        ]
        whole = program.with_statements((*program.statements, *more))
        arrays = {n: np.zeros(np.shape(x)) if n in magnitudes else np.asarray(x) for n, x in inputs.items()}
        boxes = {n: around(np.shape(inputs[n]), x, a.input) for n, x in magnitudes.items() if n in inputs}
        self.boxes = rounding.Evaluation(whole, arrays, a, sizes=sizes, boxes=boxes).boxes
        numbers = find_sizes(program, {n: np.shape(x) for n, x in arrays.items()}, sizes)
        self.sizes = {x: size_value(s, numbers) for x, s in program.dims.items() if s.free_symbols <= numbers.keys()}
        self.found: dict[str, Share | Reach | None] = {}
        for s in program:
            if not s.range_only and (self.degrees[s.name] != {} or any(n in self.found for n in s.needs)):
                self.found[s.name] = self._statement(s)

    def outputs(self) -> dict[str, Reach]:
        """The better of both readings."""
        return {o: self._reach(o) for o in self.program.outputs}

    def _reach(self, name: str) -> Reach:
        """The magnitude and error of a tensor of degree 0."""
        b = self.boxes[name]
        plain = over(b)
        found = self.found.get(name)
        if isinstance(found, Share) and found.gauge is None:
            found = Reach(found.factor, found.rel * found.factor + found.tiny)
        if not isinstance(found, Reach):
            return plain
        return Reach(min(plain.size, found.size), min(plain.error, found.error))

    def _unit(self, format: str) -> Unit:
        return Unit.of(format, self.a.flush_to_zero)

    def _keys(self, gauge: str) -> int:
        return self.sizes[chain_of(self.program, gauge)[0].over[0]]  # type: ignore[index]

    def _rescalings(self, gauge: str | None) -> int:
        if gauge is None:
            return 0
        chain = chain_of(self.program, gauge) or ()
        return self.a.tiles(self._keys(gauge)) - 1 + len(chain) - 1

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
        if s.over:
            return self._sum(s)
        shares = [x for x in reads(s.expr) if isinstance(self.found.get(name_of(x)), Share)]
        if degree is not None and len(degree) == 1 and isinstance(s.expr, sp.Add):
            return self._stored(self._added([self.found[name_of(x)] for x in s.expr.args if x in shares], s), s)
        if isinstance(log := self._log(s), Reach):
            return log
        return self._product(s)

    def _weight(self, s: Statement) -> Share | None:
        """``exp(z - m)`` with z a leaf of m."""
        _, gauge = self.exponents[s.name]
        z, leaf = over(self.boxes[f"{s.name}_z"]), leaf_of(self.program, s, self.exponents[s.name])
        if leaf is None:
            return None
        u, a, top = self._unit(self.a.compute), self.a, over(self.boxes[gauge]).size + self.a.stale
        x = z.size + z.error + top
        exponent = z.error + u.u * x + (u.u * (top + 2 * x) if a.folded else 0.0)
        again = 1 + self._rescalings(gauge)
        rel = math.expm1(exponent) if exponent < 700 else math.inf
        error = a.function_errors("exp")
        rel = (1 + rel) * (1 + error) ** again - 1
        fall = 1 - math.exp(-exponent) * max(1 - error, 0.0) ** again
        return Share(
            s.name, gauge, 1.0, rel * UP, again * u.tiny, min(fall * UP, 1.0), True, False, frozenset(), frozenset({leaf})
        )

    def _sum(self, s: Statement) -> Share | Reach | None:
        """A sum of weights, each times what else is in the term."""
        factors = list(sp.Mul.make_args(s.expr))
        shares = [f for f in factors if f in reads(f) and isinstance(self.found.get(name_of(f)), Share)]
        if len(shares) != 1 or s.reduce != "sum":
            return None
        x = self.found[name_of(shares[0])]
        assert isinstance(x, Share)
        others = [self._term(f, s) for f in factors if f is not shares[0]]
        if x.summed or any(o is None for o in others):
            return None
        count = math.prod(self.sizes[k] for k in s.over)
        if shares[0] in products_of(s) and name_of(shares[0]) not in self.summed:
            x = self._cast(x)
        size = math.prod(o.size for o in others if o is not None)
        more = math.prod(1 + (o.error / o.size if o.size else 0.0) for o in others if o is not None) - 1
        unit, a = self._unit(self.a.accumulate), self.a
        rescalings = self._rescalings(x.gauge)
        additions = a.additions(count, count) + (rescalings if a.block is not None and a.depth is None else 0)
        sums = (1 + a.step_error) ** additions
        products = (1 + unit.u) ** (len(others) + rescalings)
        rel = (1 + x.rel) * (1 + more) * sums * products - 1
        low = max(1 - (sums - 1), 0.0) * max(1 - (products - 1), 0.0)
        tiny = count * x.tiny * size * (1 + rel) + (count * (len(others) + 1) + rescalings) * max(1.0, size) * 2 * unit.tiny
        tight = x.tight and not others
        out = replace(
            x,
            factor=x.factor * size,
            rel=rel * UP,
            tiny=tiny * UP,
            fall=min((1 - (1 - x.fall) * low) * UP, 1.0),
            tight=tight,
            summed=True,
            covers=frozenset({x.base}) if tight and x.base else frozenset(),
            leaves=x.leaves if tight else frozenset(),
            most=count * x.most,
        )
        return self._stored(out, s)

    def _cast(self, x: Share) -> Share:
        """Weights as a matrix product reads them."""
        a = self.a
        if a.probability is None:
            return x
        unit, scale = Unit.of(a.probability, ulps=a.ulps("probability")), a.probability_scale
        most = x.factor * (1 + x.rel) * math.exp(min(self._lag(x.gauge), 700.0) if x.gauge else 0.0)
        if not most * scale <= unit.top:
            return replace(x, rel=math.inf)
        also = 0.0 if abs(math.frexp(scale)[0]) == 0.5 else 3 * self._unit(a.compute).u
        rel = (1 + x.rel) * (1 + unit.u) * (1 + also) - 1
        fall = 1 - (1 - x.fall) * (1 - unit.u) * (1 - also)
        return replace(x, rel=rel * UP, fall=min(fall * UP, 1.0), tiny=(x.tiny * (1 + unit.u) + unit.tiny / scale) * UP)

    def _term(self, f: sp.Expr, s: Statement) -> Reach | None:
        """Another factor of a term: a number, an input, a tensor of degree 0."""
        if f.is_number:
            return Reach(abs(float(f)), 0.0 if f.is_Integer else 2 * self._unit(self.a.compute).u * abs(float(f)))
        if f not in reads(f) or self.degrees.get(name_of(f), {}) != {}:
            return None
        r = self._reach(name_of(f))
        if name_of(f) in self.program.inputs and self.a.operand is not None and f in products_of(s):
            unit = Unit.of(self.a.operand, ulps=self.a.ulps("operand"))
            r = Reach(r.size, r.error + unit.u * r.size + unit.tiny)
        return r

    def _added(self, shares: list[Any], s: Statement) -> Share | None:
        """Sums of weights, added."""
        if len(shares) != len(s.expr.args) or not all(isinstance(x, Share) and x.tight for x in shares):
            return None
        u = self._unit(self.a.compute)
        rel = (1 + max(x.rel for x in shares)) * (1 + u.u) ** (len(shares) - 1) - 1
        fall = min((1 - (1 - max(x.fall for x in shares)) * (1 - u.u) ** (len(shares) - 1)) * UP, 1.0)
        covers = frozenset().union(*(x.covers | ({x.base} if x.base else set()) for x in shares))
        leaves = frozenset().union(*(x.leaves for x in shares))
        tiny = sum(x.tiny for x in shares) * (1 + rel) + u.tiny
        most = sum(x.most for x in shares)
        return Share(None, shares[0].gauge, 1.0, rel * UP, tiny * UP, fall, True, True, covers, leaves, most)

    def _product(self, s: Statement) -> Share | Reach | None:
        """A share times numbers or tensors of degree 0, or divided by a sum of weights."""
        top: Share | None = None
        below: Share | None = None
        size, more, count = 1.0, 0.0, 0
        for f in sp.Mul.make_args(s.expr):
            base, power = f.as_base_exp()
            held = self.found.get(name_of(base)) if base in reads(base) else None
            if isinstance(held, Share) and power == 1 and top is None:
                top = held
            elif isinstance(held, Share) and power == -1 and below is None:
                below = held
            elif (r := self._scalar(f)) is not None:
                size, more, count = size * r.size, (1 + more) * (1 + r.error / r.size if r.size else 1.0) - 1, count + 1
            else:
                return self._alone(s)
        if top is None:
            return self._alone(s)
        u = self._unit(self.a.compute)
        rel = (1 + top.rel) * (1 + more) * (1 + u.u) ** count - 1
        top = replace(top, factor=top.factor * size, rel=rel * UP, tiny=top.tiny * size * (1 + rel) + count * u.tiny)
        top = replace(top, tight=top.tight and not count)
        return self._stored(top if below is None else self._quotient(top, below), s)

    def _quotient(self, top: Share, below: Share) -> Share | Reach | None:
        if below.gauge != top.gauge or top.gauge is None or not below.tight or top.base not in below.covers:
            return None
        if below.leaves != leaves_of(self.program, top.gauge):
            return None
        u, shift = self._unit(self.a.compute), math.exp(min(self._lag(top.gauge), 700.0))
        rise, fall = below.rel + below.tiny * shift, below.fall + below.tiny * shift
        if not fall < 1:
            return None
        rel = top.rel / (1 - fall) + max(fall / (1 - fall), rise)
        rel = (1 + rel) * (1 + u.u) ** 2 - 1
        tiny = top.tiny * shift / (1 - fall) * (1 + 3 * u.u) + 2 * u.tiny
        return Share(top.base, None, top.factor, rel * UP, tiny * UP, 1.0, False, top.summed)

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
        return log_of(mass, abs(float(k)), self._lag(mass.gauge), over(self.boxes[mass.gauge]).size + self.a.stale, self.a)

    def _scalar(self, e: sp.Expr) -> Reach | None:
        """A factor of degree 0 that reads no share: its box, by a statement of its own."""
        if any(isinstance(self.found.get(name_of(x)), Share) or self.degrees.get(name_of(x), {}) != {} for x in reads(e)):
            return None
        if e.is_number:
            return Reach(abs(float(e)), 0.0 if e.is_Integer else 2 * self._unit(self.a.compute).u * abs(float(e)))
        if reads(e) and not all(x.is_Symbol for x in reads(e)):
            return self._reach(name_of(e)) if e in reads(e) else None
        return over(self._evaluated(Statement(tensor("alone"), e)))

    def _alone(self, s: Statement) -> Reach | None:
        """A statement of tensors of degree 0, from their magnitudes and errors."""
        if self.degrees[s.name] != {} or s.over:
            return None
        return over(self._evaluated(s, output=s.name in self.program.outputs))

    def _evaluated(self, s: Statement, *, output: bool = False) -> Box:
        a = self.a if output else replace(self.a, output=self.a.store)
        program = self.program.with_statements([s], (s.name,))
        names = [n for n in program.inputs if n in self.boxes]
        boxes = {}
        for n in names:
            r = self._reach(n)
            b = self.boxes[n]
            shape = np.shape(b.value)
            boxes[n] = (
                b if n not in self.found else replace(around(shape, r.size, b.held or a.compute), bound=np.full(shape, r.error))
            )
        return rounding.Evaluation(program, {n: boxes[n].value for n in names}, a, sizes=self.given, boxes=boxes).boxes[s.name]

    def _stored(self, x: Share | Reach | None, s: Statement) -> Share | Reach | None:
        """The result rounded to the format that holds it."""
        if not isinstance(x, Share):
            return x
        a = self.a
        target = a.output if s.name in self.program.outputs or (x.gauge is None and x.summed and not s.over) else None
        target = target or (a.aux if s.aux else a.store)
        held = a.accumulate if s.over else a.compute
        if not fits(held, target):
            unit = Unit.of(target)
            fall = min((1 - (1 - x.fall) * (1 - unit.u)) * UP, 1.0)
            x = replace(x, rel=((1 + x.rel) * (1 + unit.u) - 1) * UP, fall=fall, tiny=(x.tiny * (1 + unit.u) + unit.tiny) * UP)
            if not x.factor * (1 + x.rel) <= unit.top:
                x = replace(x, rel=math.inf)
        if s.name in self.summed:
            x = self._cast(x)
        return Reach(x.factor, x.rel * x.factor + x.tiny) if x.gauge is None and x.summed else x
