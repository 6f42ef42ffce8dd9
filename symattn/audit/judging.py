"""Verdicts on the printed numbers of a chain: each by the exact value, and by what follows from the page's printed numbers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from symattn.audit import arrays
from symattn.audit.arrays import Value, flat, mapped, size
from symattn.audit.article import Article
from symattn.audit.comparing import alike, far
from symattn.audit.evaluate import MODES
from symattn.audit.exactness import decimal
from symattn.audit.findings import Finding
from symattn.audit.language_nodes import Node, is_literal
from symattn.audit.language_text import plain_text
from symattn.audit.orders import holds, may_hold
from symattn.audit.outcome import Mark, Outcome, cut, said_of
from symattn.audit.printed import WITHIN, WRONG, Printed, Verdict, verdict
from symattn.audit.provenance import Slip
from symattn.audit.said import Entry, Evaluated, Literal, Page, evaluated, literal_spread, literal_value, literals
from symattn.audit.statements import Chain, Side
from symattn.audit.trees import Real, bounds, to_sympy
from symattn.errors import SymattnError


@dataclass
class Judge:
    """Judges printed numbers of one chain and keeps the findings.

    Parameters
    ----------
    article, page, chain
        Where the numbers stand, what the page said before, and the chain.
    digits
        Significant digits of exact values.
    """

    article: Article
    page: Page
    chain: Chain
    digits: int
    out: Outcome = field(default_factory=Outcome)
    places: dict[int, Entry] = field(default_factory=dict)
    """What single numbers stand for, by where they stand."""
    symbols: dict[int, Any] = field(default_factory=dict)
    kept: list[Real] = field(default_factory=list)
    """Numbers whose SymPy forms are in ``symbols``: they stay alive as long as these, so an id means one number."""

    def literal(self, side: Side, before: Node, value: Evaluated, relation: str) -> Evaluated | None:
        """Judge the numbers of a literal by the values of a formula.

        Returns
        -------
        Evaluated or None
            The value that fitted, in the shape of the literal; None when its size is another one, which is then said.
        """
        node = side.node
        assert node is not None
        fitted = self._fitted(node, before, value)
        found = literals(node)
        if fitted is None:
            counted = f"{len(found)} number{'s' if len(found) != 1 else ''}"
            reason = f"{counted}, and what is before it has {size(value.printed)}"
            self.out.open.append((side.start, side.end, reason))
            return None
        starts = None if fitted.start is None else flat(fitted.start)
        prints, spreads = flat(fitted.printed), flat(fitted.spread)
        text = cut(plain_text(before))
        for x, k in zip(found, _positions(found, len(prints)), strict=True):
            if x is not None and k is not None:
                element = Evaluated(None if starts is None else starts[k], prints[k], spreads[k], fitted.used)
                self.number(x, element, text, relation)
        if any(x is None for x in found):
            return fitted
        shaped = [None if v is None else _shaped_like(node, v) for v in (fitted.start, fitted.printed, fitted.spread)]
        return Evaluated(shaped[0], shaped[1], shaped[2], fitted.used)

    def _fitted(self, node: Node, before: Node, value: Evaluated) -> Evaluated | None:
        """The value with as many elements as the literal, by the meaning of its products that fits most of them."""
        count = len(literals(node))
        gaps = any(x is None for x in literals(node))
        fitting: list[Evaluated] = []
        for mode in MODES:
            if mode != "dot":
                if not value.ambiguous:
                    break
                try:
                    value = evaluated(self.page, before, self.places, mode)
                except SymattnError:
                    continue
            n = size(value.printed)
            if n == count or (gaps and n >= count - 1):
                fitting.append(value)
        return min(fitting, key=lambda v: far(node, v) if v.ambiguous else 0, default=None)

    def number(self, x: Literal, value: Evaluated, text: str, relation: str = "EQ") -> str:
        """Judge one number; its name is returned."""
        p = x.printed(about=relation == "APPROX")
        chained: Verdict | None = None
        if value.start is None or value.used:
            chained = verdict(p, self.exact(value.printed), spread=bounds(value.spread), digits=self.digits)
        if value.start is None:
            assert chained is not None
            return self.mark(x, chained, None, text, value.used)
        return self.mark(x, verdict(p, self.exact(value.start), digits=self.digits), chained, text, value.used)

    def exact(self, x: Real) -> Any:
        """The number as a verdict takes it."""
        if isinstance(x, Fraction):
            return x
        self.kept.append(x)
        return to_sympy(x, self.symbols)

    def mark(
        self, x: Literal, v: Verdict, chained: Verdict | None, text: str, used: tuple[Entry, ...] = (), note: str = ""
    ) -> str:
        """Keep a finding on a number."""
        line = self.article.line(x.node.start)
        name = f"{line}:{self.article.column(x.node.start)}"
        label = said_of(self.article, self.chain.sides[0])
        finding = Finding(name, label, text, v, chained, place=str(line), note=note)
        self.out.marks.append(Mark(x.node.start, x.node.end, finding, used))
        return name

    def misprint(self, x: Literal, right: str, note: str) -> None:
        """Keep a finding on a number that should be another one."""
        self.mark(x, verdict(x.printed(), Printed(right).value, digits=self.digits), None, right, note=note)

    def slips(self, found: list[Slip]) -> None:
        """Keep findings on numbers that were copied wrong."""
        for slip in found:
            self.misprint(slip.literal, slip.right, f"{slip.right} was printed before")

    def ordered(self, side: Side, before: Node, values: tuple[Evaluated, Evaluated], relation: str) -> None:
        """Judge an inequality: it holds, or it is wrong, or the rounding of its numbers leaves it open."""
        assert side.node is not None
        exact = [v.start if v.start is not None else v.printed for v in values]
        try:
            held = arrays.flat(arrays.broadcast(lambda a, b: Fraction(holds(a, b, relation)), *exact))
            wide = [_loose(n, v) for n, v in zip((before, side.node), values, strict=True)]
            possible = arrays.flat(arrays.broadcast(lambda a, b: Fraction(may_hold(a, b, relation)), *wide))
        except SymattnError as error:
            self.out.open.append((side.start, side.end, str(error)))
            return
        if all(held):
            self.out.holds.append((side.start, side.end))
            return
        k = next(k for k, x in enumerate(held) if not x)
        left, right = (flat(x)[min(k, size(x) - 1)] for x in exact)
        shown = Printed(_digits(right))
        v = verdict(shown, self.exact(left), digits=self.digits)
        v = replace(v, status=WITHIN if all(possible) else WRONG, error=None, allowed=all(possible))
        line = self.article.line(side.start)
        name = f"{line}:{self.article.column(side.start)}"
        label = said_of(self.article, self.chain.sides[0])
        note = f"the inequality {'may not hold, as far as its rounded numbers show' if all(possible) else 'does not hold'}"
        finding = Finding(name, label, cut(plain_text(before)), v, place=str(line), note=note)
        self.out.marks.append(Mark(side.start, side.end, finding, (*values[0].used, *values[1].used)))

    def whole(self, side: Side, before: Node, known: Evaluated, value: Evaluated) -> None:
        """A formula that has another value than the one before it: said of the formula as a whole, by its first wrong element."""
        right = flat(known.start if known.start is not None else known.printed)
        for a, b in zip(right, flat(value.printed), strict=True):
            if alike(a, b):
                continue
            v = verdict(Printed(_digits(b)), self.exact(a), digits=self.digits)
            line = self.article.line(side.start)
            name = f"{line}:{self.article.column(side.start)}-{self.article.column(side.end)}"
            label = said_of(self.article, self.chain.sides[0])
            finding = Finding(name, label, cut(plain_text(before)), v, place=str(line), note="the value of the formula there")
            self.out.marks.append(Mark(side.start, side.end, finding, known.used))
            return


def _loose(node: Node, value: Evaluated) -> Value:
    """The values that a side may have, its printed decimals being rounded."""
    return literal_spread(node) if is_literal(node) else value.spread


def _positions(found: list[Literal | None], n: int) -> list[int | None]:
    """Which element each number is: with an ellipsis the first ones and the last ones."""
    gap = next((k for k, x in enumerate(found) if x is None), None)
    if gap is None:
        return list(range(len(found)))
    after = len(found) - gap - 1
    return [*range(gap), None, *range(n - after, n)]


def _shaped_like(node: Node, value: Value) -> Value:
    """The elements of a value in the shape of a literal with as many."""
    elements = iter(flat(value))
    return mapped(lambda _: next(elements), literal_value(node))


def _digits(x: Real) -> str:
    """A value as a page would print it in full."""
    if isinstance(x, Fraction) and x.denominator == 1:
        return str(x)
    return decimal(x if isinstance(x, Fraction) else to_sympy(x), 12)
