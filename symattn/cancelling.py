"""The shift that cancels: a proof that outputs do not depend on a row maximum, statement by statement, scans included.

A tensor that the claimed ``m`` scales, ``l = exp(-m) l'``, or shifts, ``L = m + L'``, is replaced by what is left of it. When no
``m`` is left in any statement, the statements of ``l'``, ``L'`` .. are a program without ``m`` that has the same outputs: they do
not depend on its value. In a scan ``l[t] = exp(m[t-1] - m[t]) l[t-1] + sum of exp(z - m[t])`` becomes
``l'[t] = l'[t-1] + sum of exp(z)``, for any sequence ``m``: that is the theorem of the online softmax.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import sympy as sp

from symattn.indexed import Tensor, all_reads, integer_symbols, name_of, reads, subscripts_of
from symattn.program import Program, Statement

__all__ = ["Shift", "shifts", "shifts_cancel"]


@dataclass(frozen=True)
class Shift:
    """What the claimed tensors do to a tensor: it is ``exp(by) * rest`` where they scale it, else ``by + rest``.

    ``at`` are the tensor's indices, in which ``by`` is written; ``where`` is where a shifted tensor is so.
    """

    at: tuple[sp.Symbol, ...]
    by: sp.Expr
    scales: bool
    where: tuple[sp.Basic, ...] = ()

    def moved(self, x: Tensor) -> sp.Expr:
        """``by`` at the subscripts of a read."""
        return self.by.xreplace(dict(zip(self.at, subscripts_of(x), strict=True)))


def shifts_cancel(program: Program, claimed: Collection[str]) -> bool:
    """Whether the outputs are proved not to depend on the values of the tensors ``claimed``, which the program reads as inputs.

    True is a proof for all sizes, wherever the expressions are defined; False says that there is none of this kind.

    >>> from symattn.program import Scan, indices, size, tensor
    >>> i, t = indices("i t")
    >>> z, m, l = tensor("z", i, t), tensor("m", i, t), tensor("l", i, t)
    >>> def online(rescale):
    ...     step = Statement(l, rescale * tensor("l", i, t - 1) + sp.exp(z - m), scan=Scan(t))
    ...     last = Statement(tensor("L", i), tensor("m", i, 0) + sp.log(tensor("l", i, 0)))
    ...     return Program((step, last), {i: size("n"), t: size("T")}, ("L",))
    >>> before = tensor("m", i, t - 1)
    >>> [shifts_cancel(online(r), {"m"}) for r in (sp.exp(before - m), sp.exp(m - before), sp.S.One)]
    [True, False, False]
    """
    found = shifts(program, claimed)
    return found is not None and not any(o in found for o in program.outputs)


def shifts(program: Program, claimed: Collection[str]) -> dict[str, Shift] | None:
    """The shift of every tensor that the claimed ones scale or shift; None where they do something else to one."""
    work = _Shifting(frozenset(claimed))
    for group in program.groups():
        guesses: dict[str, Shift | None] = {}
        for s in group if group[0].scan is not None else ():
            guess = guesses[s.name] = work.guess(s, {x.name for x in group} - guesses.keys())
            if guess is not None:
                work.known[s.name] = guess
        for s in group:
            got = work.of(s)
            if isinstance(got, str) or (s.name in guesses and got != guesses[s.name]):
                return None
            if got is not None:
                if s.scan is not None and not got.scales:
                    return None  # beyond its ends a scan's tensor is 0, which no shift leaves
                work.known[s.name] = got
    return work.known


@dataclass
class _Shifting:
    claimed: frozenset[str]
    known: dict[str, Shift] = field(default_factory=dict)

    def guess(self, s: Statement, group: set[str]) -> Shift | None:
        """What the terms of a scan's statement that read nothing of ``group`` say: those tensors have no guess yet."""
        terms = [t for t in sp.Add.make_args(sp.expand(s.expr)) if not {name_of(x) for x in reads(t)} & group]
        found = self.of(Statement(s.target, sp.Add(*terms), s.over, s.reduce, s.where)) if terms else None
        return found if isinstance(found, Shift) else None

    def of(self, s: Statement) -> Shift | str | None:
        """The shift of a statement; None where no claimed tensor is left in it, a word where it has none."""
        hidden = {name_of(x) for x in all_reads(s.where)}
        hidden |= {name_of(y) for x in reads(s.expr) for a in subscripts_of(x) for y in all_reads(a)}
        if hidden & (self.claimed | self.known.keys()):
            return "read in a condition or subscript"
        if not any(name_of(x) in self.claimed or name_of(x) in self.known for x in reads(s.expr)):
            return None
        for x in reads(s.expr):
            g = self.known.get(name_of(x))
            if g is not None and g.where:
                at = dict(zip(g.at, subscripts_of(x), strict=True))
                if not {c.xreplace(at) for c in g.where} <= set(s.conditions):
                    return "read outside the domain of a shift"
        form = _Form(self)
        terms = form.terms(s.expr)
        if form.failed or not terms:
            return "claimed tensors stay" if form.failed else None
        scales = {t.scale for t in terms}
        added = sp.Add(*[t.added for t in terms])
        if len(scales) != 1:
            return "terms of different scales"
        scale = scales.pop()
        if scale != 0 and added != 0:
            return "scaled and shifted"
        by = scale if scale != 0 else added
        if by == 0:
            return None
        if s.over and (s.reduce != "sum" or scale == 0 or integer_symbols(by) & set(s.over)):
            return "reduced over an index of the shift"
        return Shift(s.indices, by, scale != 0, () if scale != 0 else s.conditions)


@dataclass(frozen=True)
class _Part:
    """A term ``exp(scale) * rest``, or what is ``added`` of the claimed tensors."""

    scale: sp.Expr
    rest: sp.Expr
    added: sp.Expr = sp.S.Zero


_ONE = (_Part(sp.S.Zero, sp.S.One),)


@dataclass
class _Form:
    """An expression as a sum of terms with the claimed tensors in exponents, or added; ``failed`` where they are elsewhere."""

    work: _Shifting
    failed: bool = False

    def terms(self, e: sp.Expr) -> tuple[_Part, ...]:
        """The terms of an expression; those of one scale are one."""
        if isinstance(e, sp.Add):
            return self.collected([t for a in e.args for t in self.terms(a)])
        if isinstance(e, sp.Mul):
            out: tuple[_Part, ...] = _ONE
            for a in e.args:
                out = self.product(out, self.terms(a))
            return out
        if isinstance(e, sp.Pow) and e.exp.is_Rational:
            return self.power(self.terms(e.base), e.exp)
        if isinstance(e, sp.exp):
            return self.exponential(self.terms(e.args[0]))
        if isinstance(e, sp.log):
            return self.logarithm(self.terms(e.args[0]))
        if isinstance(e, (sp.Indexed, sp.Symbol)):
            return self.read(e)
        parts = [self.terms(a) for a in e.args if reads(a)]
        self.failed |= any(t.scale != 0 or t.added != 0 for p in parts for t in p)
        return (_Part(sp.S.Zero, e),)

    def read(self, x: sp.Expr) -> tuple[_Part, ...]:
        """A tensor: claimed, known to be scaled or shifted, or neither."""
        name = "" if isinstance(x, sp.Symbol) and x.is_integer else name_of(x)
        if name in self.work.claimed:
            return (_Part(sp.S.Zero, sp.S.Zero, x),)
        g = self.work.known.get(name)
        if g is None:
            return (_Part(sp.S.Zero, x),)
        return (_Part(g.moved(x), x),) if g.scales else (_Part(sp.S.Zero, x, g.moved(x)),)

    def collected(self, parts: list[_Part]) -> tuple[_Part, ...]:
        """One part for each scale."""
        rest: dict[sp.Expr, sp.Expr] = {}
        added: dict[sp.Expr, sp.Expr] = {}
        for p in parts:
            rest[p.scale] = rest.get(p.scale, sp.S.Zero) + p.rest
            added[p.scale] = added.get(p.scale, sp.S.Zero) + p.added
        return tuple(_Part(k, v, sp.expand(added[k])) for k, v in rest.items())

    def product(self, left: tuple[_Part, ...], right: tuple[_Part, ...]) -> tuple[_Part, ...]:
        """Products of terms; what is added may only be multiplied by numbers."""
        out = []
        for a in left:
            for b in right:
                for x, y in ((a, b), (b, a)):
                    if x.added != 0 and (y.added != 0 or y.scale != 0 or reads(y.rest) or integer_symbols(y.rest)):
                        self.failed = True
                added = sp.expand(a.added * b.rest + b.added * a.rest) if a.added != 0 or b.added != 0 else sp.S.Zero
                out.append(_Part(sp.expand(a.scale + b.scale), a.rest * b.rest, added))
        return self.collected(out)

    def power(self, base: tuple[_Part, ...], exponent: sp.Rational) -> tuple[_Part, ...]:
        """A power of one scaled term."""
        if len(base) != 1 or base[0].added != 0:
            self.failed |= any(t.scale != 0 or t.added != 0 for t in base)
            return (_Part(sp.S.Zero, sp.Add(*[t.rest for t in base]) ** exponent),)
        (t,) = base
        return (_Part(sp.expand(exponent * t.scale), t.rest**exponent),)

    def exponential(self, argument: tuple[_Part, ...]) -> tuple[_Part, ...]:
        """``exp(added + rest)``: what is added scales it."""
        if len(argument) != 1 or argument[0].scale != 0:
            self.failed |= any(t.scale != 0 for t in argument)
            return (_Part(sp.S.Zero, sp.exp(sp.Add(*[t.rest for t in argument]))),)
        (t,) = argument
        return (_Part(t.added, sp.exp(t.rest)),)

    def logarithm(self, argument: tuple[_Part, ...]) -> tuple[_Part, ...]:
        """``log(exp(scale) rest) = scale + log(rest)``."""
        if len(argument) != 1 or argument[0].added != 0:
            self.failed |= any(t.scale != 0 or t.added != 0 for t in argument)
            return (_Part(sp.S.Zero, sp.log(sp.Add(*[t.rest for t in argument]))),)
        (t,) = argument
        return (_Part(sp.S.Zero, sp.log(t.rest), t.scale),)
