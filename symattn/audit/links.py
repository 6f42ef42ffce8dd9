"""One chain of equalities, checked link by link: each printed number against the exact value of what it is printed for.

A side that is a number or an array of numbers is judged element by element. A side that is a formula of printed numbers, built like
the side before it, is judged number by number; another one has to have the same value, or one that its rounded numbers allow.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from symattn.audit import arrays
from symattn.audit.alignment import Pair, aligned
from symattn.audit.arrays import Value, flat, shape
from symattn.audit.article import Article
from symattn.audit.evaluate import MODES
from symattn.audit.exactness import decimal
from symattn.audit.findings import Finding
from symattn.audit.language_nodes import Apply, Array, Name, Node, Number, is_literal, key, numbers
from symattn.audit.language_text import plain_text
from symattn.audit.printed import Printed, Verdict, verdict
from symattn.audit.provenance import Origins, literal_arrays, origins, signed
from symattn.audit.reals import Real, bounds, same, subtract, to_sympy
from symattn.audit.said import (
    Entry,
    Evaluated,
    Literal,
    Page,
    Result,
    evaluated,
    known_as,
    literal_spread,
    literal_value,
    literals,
)  # fmt: skip
from symattn.audit.statements import Chain, Side
from symattn.errors import ShapeError, SymattnError

MOST_SHOWN = 70
"""Characters of a formula that stand in a finding."""


@dataclass(frozen=True)
class Mark:
    """A finding, and where its number stands in the text."""

    start: int
    end: int
    finding: Finding
    used: tuple[Entry, ...] = ()


@dataclass
class Outcome:
    """What a chain came to."""

    marks: list[Mark] = field(default_factory=list)
    holds: list[tuple[int, int]] = field(default_factory=list)
    """Sides that have the value of the side before them, as formulas."""
    open: list[tuple[int, int, str]] = field(default_factory=list)
    """Sides that have no value, with the reason."""
    results: list[Result] = field(default_factory=list)
    targets: list[Node] = field(default_factory=list)
    entry: Entry | None = None
    given: tuple[str, ...] = ()
    literal: Node | None = None
    """The printed numbers that define the target and follow from nothing."""

    @property
    def wrong(self) -> list[Mark]:
        """The marks of numbers that are wrong."""
        return [m for m in self.marks if m.finding.verdict.wrong]


@dataclass
class Run:
    """One pass over a chain."""

    article: Article
    page: Page
    chain: Chain
    digits: int
    out: Outcome = field(default_factory=Outcome)
    places: dict[int, Entry] = field(default_factory=dict)
    copies: set[int] = field(default_factory=set)
    before: tuple[Node, Evaluated] | None = None
    """The last side that has a value."""
    waiting: tuple[Side, Evaluated] | None = None
    """A literal that begins the chain, to be judged by what follows it."""
    symbols: dict[int, Any] = field(default_factory=dict)
    kept: list[Any] = field(default_factory=list)
    """Numbers whose SymPy forms are in ``symbols``: they stay alive as long as these, so an id means one number."""

    def outcome(self) -> Outcome:
        """Check the chain from left to right."""
        for k, side in enumerate(self.chain.sides):
            relation = self.chain.relations[k - 1] if k else "EQ"
            if relation == "ORDER":
                self.out.open.append((side.start, side.end, "an inequality is not checked"))
                self.before = None
                continue
            self._side(side, relation, k)
        self._finish()
        return self.out

    def _side(self, side: Side, relation: str, k: int) -> None:
        node = side.node
        if node is None:
            self.out.open.append((side.start, side.end, side.reason))
            return
        if is_literal(node):
            self._literal(side, node, relation)
            return
        if k == 0 and isinstance(node, Name) and self._is_redefined(node):
            self.out.targets.append(node)
            return
        if not self._with_origins(node):
            return
        value = self._value(node, side)
        if value is None:
            return
        if self.waiting is not None:
            literal, _ = self.waiting
            self._judge(literal, node, value, relation)
            self.waiting = None
        elif self.before is not None:
            value = self._formula(side, node, value, relation)
        self.before = (node, value)

    def _is_redefined(self, node: Name) -> bool:
        """Whether a bare name on the left is (re)defined here: it is not where a formula on the page gave it a value that no number shows."""
        entry = self.page.names.get(known_as(node))
        if entry is None:
            return True
        if entry.pending is not None:
            try:
                evaluated(self.page, entry.pending, {})
            except SymattnError:
                return True
            self.before = (entry.pending, evaluated(self.page, entry.pending, {}))
            return True
        return bool(entry.marks) or entry.start is None or not self._agrees(node, entry)

    def _agrees(self, node: Name, entry: Entry) -> bool:
        """Whether the literal that follows has the shape of the value that a formula gave."""
        after = self.chain.sides[1].node if len(self.chain.sides) > 1 else None
        if after is None or not is_literal(after) or entry.printed is not entry.start:
            return False
        del node
        return len(literals(after)) == arrays.size(entry.printed)

    def _with_origins(self, node: Node) -> bool:
        found: Origins = origins(self.page, node)
        self.places |= found.places
        self.copies |= found.copies
        for slip in found.slips:
            p = slip.literal.printed()
            right = Printed(slip.right)
            v = _plain_verdict(p, right.value, self.digits)
            self._mark(slip.literal, v, None, slip.right, note=f"{slip.right} was printed before")
        return True

    def _value(self, node: Node, side: Side) -> Evaluated | None:
        try:
            return evaluated(self.page, node, self.places)
        except SymattnError as error:
            if self.before is None and not self.out.targets and isinstance(node, (Name, Apply)):
                self.out.targets.append(node)
            elif isinstance(node, (Name, Apply)):
                self.out.targets.append(node)
            self.out.open.append((side.start, side.end, str(error)))
            return None

    # a side of printed numbers

    def _literal(self, side: Side, node: Node, relation: str) -> None:
        spread = None
        try:
            printed, spread = literal_value(node), literal_spread(node)
        except SymattnError as error:
            if self.before is None or not isinstance(error, ShapeError):
                self.out.open.append((side.start, side.end, str(error)))
                return
            printed = None
        if self.before is None:
            if self.waiting is not None:
                literal, value = self.waiting
                if literal.node is not None:
                    self._judge(side, literal.node, value, relation)
                self.before = (node, Evaluated(value.start, printed, spread))
                self.waiting = None
            elif self.out.targets:
                self._given(side, node, printed, spread)
            else:
                self.waiting = (side, self._as_input(node, printed, spread))
            return
        before, value = self.before
        found = self._judge(side, before, value, relation)
        if printed is None or found is None:
            return
        entry = Entry(found, printed, spread, tuple(m.finding.name for m in self.out.marks if side.start <= m.start < side.end))
        self._place(node, entry)
        self.before = (node, Evaluated(found, printed, spread, (entry,) if entry.is_rounded else ()))
        texts = tuple(x.text for x in literals(node) if x is not None)
        self.out.results.append(Result(texts, entry, key(node)))

    def _place(self, node: Node, entry: Entry) -> None:
        for k, x in enumerate(literals(node)):
            if x is not None:
                self.places[x.node.start] = entry.element(k)

    def _as_input(self, node: Node, printed: Value, spread: Value) -> Evaluated:
        found = origins(self.page, node)
        self.places |= found.places
        del spread
        return evaluated(self.page, node, self.places) if found.places else Evaluated(printed, printed, printed)

    def _given(self, side: Side, node: Node, printed: Value, spread: Value) -> None:
        """A literal that defines a name: an input, a copy of a result, or the results right before it collected."""
        collected = self._collected(node)
        if collected is not None:
            entry = collected
        elif any(isinstance(t, Apply) for t in self.out.targets) and any(x and x.is_decimal for x in literals(node)):
            entry = Entry(None, printed, spread)  # the value of what is not known here, rounded
        else:
            found = origins(self.page, node)
            self.places |= found.places
            if found.places:
                value = evaluated(self.page, node, self.places)
                entry = Entry(value.start, value.printed, value.spread)
                for slip in found.slips:
                    v = _plain_verdict(slip.literal.printed(), Printed(slip.right).value, self.digits)
                    self._mark(slip.literal, v, None, slip.right, note=f"{slip.right} was printed before")
            else:
                entry = Entry(printed, printed, printed)
                self.out.given = tuple(x.text for x in literals(node) if x is not None)
                self.out.literal = node
        self.before = (node, Evaluated(entry.start, entry.printed, entry.spread, (entry,) if entry.is_rounded else ()))
        self.out.entry = entry
        if collected is not None or entry.start is None:
            texts = tuple(x.text for x in literals(node) if x is not None)
            self.out.results.append(Result(texts, entry, key(node)))

    def _collected(self, node: Node) -> Entry | None:
        """A vector of the single results right before it, each judged by the value of its own."""
        found = [x for x in literals(node) if x is not None]
        scalars = self.page.scalars[-len(found) :]
        if len(found) < 2 or len(scalars) != len(found) or key(node).count("[") != 1:
            return None
        same_text = sum(x.text == r.texts[0] for x, r in zip(found, scalars, strict=True))
        if same_text < max(2, len(found) - 1):
            return None
        starts = [r.entry.start for r in scalars]
        marks: list[str] = []
        for x, r in zip(found, scalars, strict=True):
            value = Evaluated(r.entry.start, r.entry.printed, r.entry.spread, (r.entry,) if r.entry.is_rounded else ())
            marks.append(self._number(x, value.start, value.printed, value.spread, "the result above", "EQ", value.used))
        start = None if any(s is None for s in starts) else tuple(starts)
        right = tuple(r.entry.printed for r in scalars)
        return Entry(start, right, tuple(r.entry.spread for r in scalars), tuple(marks))

    # verdicts

    def _judge(self, side: Side, before: Node, value: Evaluated, relation: str) -> Value | None:
        """Judge the numbers of a literal by a value; the exact value where it is known is what they stand for from then on."""
        node = side.node
        assert node is not None
        fitted = self._fitted(node, before, value)
        if fitted is None:
            self.out.open.append(
                (side.start, side.end, f"has {_shown(node)}, and what is before it has shape {_size(value.shape)}")
            )
            return None
        found = literals(node)
        at = _positions(found, arrays.size(fitted.printed))
        starts = None if fitted.start is None else flat(fitted.start)
        prints, spreads = flat(fitted.printed), flat(fitted.spread)
        text = self._source(before)
        for x, k in zip(found, at, strict=True):
            if x is not None and k is not None:
                start = None if starts is None else starts[k]
                self._number(x, start, prints[k], spreads[k], text, relation, fitted.used)
        if fitted.start is None:
            return None if shape(fitted.printed) == () and not fitted.used else fitted.start
        return _shaped_like(node, fitted.start)

    def _fitted(self, node: Node, before: Node, value: Evaluated) -> Evaluated | None:
        """The value with as many elements as the literal, by another meaning of a product where the first does not fit."""
        count = len(literals(node))
        gaps = any(x is None for x in literals(node))
        for mode in MODES:
            if mode != "dot":
                if not value.ambiguous:
                    break
                try:
                    value = evaluated(self.page, before, self.places, mode)
                except SymattnError:
                    continue
            size = arrays.size(value.printed)
            if size == count or (gaps and size >= count - 1):
                return value
        return None

    def _number(
        self, x: Literal, start: Real | None, printed: Real, spread: Real, text: str, relation: str, used: tuple[Entry, ...]
    ) -> str:
        p = x.printed(about=relation == "APPROX")
        chained: Verdict | None = None
        if start is None or used:
            chained = verdict(p, self._exact(printed), spread=bounds(spread), digits=self.digits)
        v = chained if start is None else verdict(p, self._exact(start), digits=self.digits)
        assert v is not None
        return self._mark(x, v, chained if start is not None else None, text, used)

    def _exact(self, x: Real) -> Any:
        if isinstance(x, Fraction):
            return x
        self.kept.append(x)
        return to_sympy(x, self.symbols)

    def _mark(
        self, x: Literal, v: Verdict, chained: Verdict | None, text: str, used: tuple[Entry, ...] = (), note: str = ""
    ) -> str:
        start, end = x.node.start, x.node.end
        line = self.article.line(start)
        name = f"{line}:{self.article.column(start)}"
        finding = Finding(name, self._label(), text, v, chained, place=str(line), note=note)
        self.out.marks.append(Mark(start, end, finding, used))
        return name

    def _label(self) -> str:
        """What the chain is about: its first side."""
        first = self.chain.sides[0]
        return said_of(self.article, first)

    def _source(self, node: Node) -> str:
        return cut(plain_text(node))

    # a side that is a formula

    def _formula(self, side: Side, node: Node, value: Evaluated, relation: str) -> Evaluated:
        """Lay the side along the one before it; what is printed there stands for what it is printed for."""
        assert self.before is not None
        before, known = self.before
        equal = _equal(known, value)
        pairs = aligned(before, node, lambda name: self.page.written.get(known_as(name)))
        judged = pairs is not None and self._pairs(before, pairs, relation, equal)
        if judged:
            value = self._value(node, side) or value
        if equal or judged:
            self.out.holds.append((side.start, side.end))
            return value
        if self._allowed(node, known, value):
            self.out.holds.append((side.start, side.end))
            return Evaluated(known.start, value.printed, value.spread, value.used)
        self._whole(side, node, known, value)
        return Evaluated(known.start, value.printed, value.spread, (*value.used, *known.used), value.ambiguous)

    def _pairs(self, before: Node, pairs: list[Pair], relation: str, equal: bool) -> bool:
        """Judge the numbers of a side by what they stand for; nothing is said where the order of a right sum is another one."""
        kept = list(self.out.marks)
        places = dict(self.places)
        entries: list[tuple[Node, Entry]] = []
        fine = True
        for pair in pairs:
            try:
                value = evaluated(self.page, pair.stands_for, places)
                printed, spread = literal_value(pair.printed), literal_spread(pair.printed)
            except SymattnError:
                continue
            fitted = Evaluated(value.start, value.printed, value.spread, value.used)
            if arrays.size(value.printed) != len(literals(pair.printed)):
                self.out.marks = kept
                return False
            n = len(self.out.marks)
            found = self._judge(Side(pair.printed.start, pair.printed.end, pair.printed), pair.stands_for, fitted, relation)
            if pair.repeats and equal:
                self._other_way(pair, n, before)
            new = self.out.marks[n:]
            fine = fine and all(m.finding.verdict.correct for m in new)
            if found is not None:
                entries.append((pair.printed, Entry(found, printed, spread, tuple(m.finding.name for m in new))))
        if equal and not fine and not any(p.repeats for p in pairs):
            self.out.marks = kept
            return False
        for node, entry in entries:
            self._place(node, entry)
        return bool(entries)

    def _other_way(self, pair: Pair, n: int, before: Node) -> None:
        """A factor that is not the element which it repeats: the element is wrong where it makes a vector unknown to the page."""
        if all(m.finding.verdict.correct for m in self.out.marks[n:]):
            return
        factor, element = literals(pair.printed)[0], literals(pair.stands_for)[0]
        if factor is None or element is None:
            return
        for array in literal_arrays(before):
            found = [x.text if x.node.start != element.node.start else factor.text for x in literals(array) if x is not None]
            if array.start <= element.node.start < array.end and tuple(found) in self.page.inputs:
                del self.out.marks[n:]
                v = _plain_verdict(element.printed(), factor.printed().value, self.digits)
                self._mark(
                    element,
                    v,
                    None,
                    factor.text,
                    note=f"the next side has {factor.text}, and so has the vector that the page gave",
                )

    def _allowed(self, node: Node, known: Evaluated, value: Evaluated) -> bool:
        """Whether the rounded numbers of a side allow the value of the side before."""
        loose = {n.start for n in numbers(node)} - set(self.places)
        if not loose and not value.used:
            return False
        places = dict(self.places)
        for x in _decimals(node):
            if x.node.start in loose:
                p = x.printed()
                places[x.node.start] = Entry(None, p.value, literal_spread(x.node) if not x.negated else -p.value, ())
        try:
            wide = evaluated(self.page, node, places).spread
        except SymattnError:
            return False
        target = known.start if known.start is not None else known.printed
        if shape(wide) != shape(target):
            return False
        return all(_meets(a, b) for a, b in zip(flat(wide), flat(target), strict=True))

    def _whole(self, side: Side, node: Node, known: Evaluated, value: Evaluated) -> None:
        """A formula that has another value than the one before it: said of the formula as a whole."""
        if shape(known.printed) != shape(value.printed):
            squeezed = [arrays.squeezed(v) for v in (known.printed, value.printed)]
            if shape(squeezed[0]) != shape(squeezed[1]):
                reason = f"has shape {_size(value.shape)}, and what is before it {_size(known.shape)}"
                self.out.open.append((side.start, side.end, reason))
                return
        right = flat(known.start if known.start is not None else known.printed)
        for a, b in zip(right, flat(value.printed), strict=True):
            if not _alike(a, b):
                p = Printed(_digits(b))
                v = _plain_verdict(p, self._exact(a), self.digits)
                line = self.article.line(side.start)
                name = f"{line}:{self.article.column(side.start)}"
                assert self.before is not None
                finding = Finding(name, self._label(), self._source(self.before[0]), v, place=str(line))
                self.out.marks.append(Mark(side.start, side.end, finding, known.used))
                return
        del node

    def _finish(self) -> None:
        if not self.out.targets:
            return
        if self.out.entry is None and self.before is not None:
            node, value = self.before
            marks = tuple(m.finding.name for m in self.out.marks) if is_literal(node) else ()
            self.out.entry = Entry(value.start, value.printed, value.spread, marks)
        elif self.out.entry is None and len(self.out.targets) > 1 and isinstance(self.out.targets[0], Name):
            self.out.entry = Entry(None, Fraction(0), Fraction(0), pending=self.out.targets[1])
            self.out.targets = self.out.targets[:1]


def _positions(found: list[Literal | None], size: int) -> list[int | None]:
    """Which element each number is: with an ellipsis the first ones and the last ones."""
    gap = next((k for k, x in enumerate(found) if x is None), None)
    if gap is None:
        return list(range(len(found)))
    after = len(found) - gap - 1
    return [*range(gap), None, *range(size - after, size)]


def _shaped_like(node: Node, value: Value) -> Value:
    """The elements of a value in the shape of a literal with as many."""
    if is_literal(node) and any(x is None for x in literals(node)):
        return value
    elements = iter(flat(value))
    return arrays.mapped(lambda _: next(elements), literal_value(node))


def _decimals(node: Node) -> list[Literal]:
    return [x for x in signed(node) if x.is_decimal]


def _plain_verdict(p: Printed, value: Any, digits: int) -> Verdict:
    return verdict(p, value, digits=digits)


def _alike(a: Real, b: Real) -> bool:
    """Whether two numbers are equal, or nothing tells them apart."""
    if same(a, b):
        return True
    gap = subtract(a, b)
    if isinstance(gap, Fraction):
        return gap == 0
    return all((ends := bounds(gap, bits)) is None or ends[0] <= 0 <= ends[1] for bits in (64, 400))


def _meets(wide: Real, point: Real) -> bool:
    a, b = bounds(wide), bounds(point)
    return a is not None and b is not None and a[0] <= b[1] and b[0] <= a[1]


def _equal(a: Evaluated, b: Evaluated) -> bool:
    """Whether two sides have the same exact value; of values from printed intermediates, the same from them."""
    for x, y in ((a.start, b.start), (a.printed, b.printed)):
        if x is not None and y is not None and arrays.size(x) == arrays.size(y):
            if all(_alike(p, q) for p, q in zip(flat(x), flat(y), strict=True)):
                return True
    return False


def _digits(x: Real) -> str:
    value = to_sympy(x) if not isinstance(x, Fraction) else x
    return str(value) if isinstance(value, Fraction) and value.denominator == 1 else decimal(value, 12)


def said_of(article: Article, side: Side) -> str:
    """A side in a short text: its formula, or as it is written where that was not read."""
    if side.node is not None:
        return cut(plain_text(side.node))
    return cut(" ".join(article.source[side.start : side.end].replace("&", " ").split()).strip("$ "))


def cut(text: str) -> str:
    """The beginning of a long text."""
    return text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 1] + "…"


def _shown(node: Node) -> str:
    n = len(literals(node))
    return f"{n} number{'s' if n != 1 else ''}"


def _size(s: tuple[int, ...]) -> str:
    return " x ".join(map(str, s)) if s else "of one number"


def with_number(chain: Chain, start: int, text: str) -> Chain:
    """The chain with another number at a place."""
    return replace(
        chain, sides=tuple(s if s.node is None else replace(s, node=_changed(s.node, start, text)) for s in chain.sides)
    )


def _changed(node: Node, start: int, text: str) -> Node:
    if isinstance(node, Number):
        return replace(node, text=text) if node.start == start else node
    if isinstance(node, Array) and node.start <= start < node.end:
        return replace(node, items=tuple(_changed(x, start, text) for x in node.items))
    if isinstance(node, Apply) and node.start <= start < node.end:
        return replace(node, args=tuple(_changed(x, start, text) for x in node.args))
    return node
