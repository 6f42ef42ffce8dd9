"""What a page has said so far: values of its names, vectors that it printed, and how the next formula may read them.

Everything that a page prints has up to three values: *start*, the exact one that follows from the inputs on; *printed*, the
digits as they stand; and *spread*, the interval that the digits were rounded from. A formula that uses a printed intermediate is
evaluated with each of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

from symattn.audit import arrays
from symattn.audit.arrays import Value
from symattn.audit.evaluate import Budget, Evaluator
from symattn.audit.formula import look_up, name_key
from symattn.audit.language_nodes import Apply, Array, Gap, Name, Node, Number, key
from symattn.audit.printed import Printed
from symattn.audit.reals import negative
from symattn.audit.trees import INFINITY, Real, interval, same
from symattn.errors import ShapeError, SymattnError, UnknownNameError


def known_as(name: Name) -> str:
    """What a name of a formula is known by."""
    return name_key(f"{name.text}_{','.join(map(str, name.index))}" if name.index else name.text)


START, PRINTED, SPREAD = "start", "printed", "spread"


@lru_cache(maxsize=4096)
def _printed(text: str) -> Printed:
    """A printed number, read once however often it is looked at."""
    return Printed(text)


def _number(p: Printed) -> Real:
    """What the digits of a printed number say."""
    if p.kind == "infinity":
        return INFINITY if p.value > 0 else negative(INFINITY)
    return p.value


@dataclass(frozen=True, slots=True)
class Literal:
    """A printed number with its sign."""

    node: Number
    negated: bool

    @property
    def text(self) -> str:
        """As it is printed, with what follows it."""
        return ("-" if self.negated else "") + self.node.text + "%" * self.node.percent + "…" * self.node.cut

    def printed(self, about: bool = False) -> Printed:
        """The number with what it claims; ``about`` where it stands after ``≈``."""
        return _printed(("≈ " if about else "") + self.text)

    @property
    def is_decimal(self) -> bool:
        """Whether it was printed with decimals, so that it may be a rounded value."""
        return "." in self.node.text or "e" in self.node.text.lower()


@dataclass(frozen=True, eq=False)
class Entry:
    """What a page said of one quantity; ``start`` is None where it does not follow from anything on the page."""

    start: Value | None
    printed: Value
    spread: Value
    marks: tuple[str, ...] = ()
    """Names of the numbers by which it is printed."""
    pending: Node | None = None
    """The formula that defines it, where nothing gives its value yet."""

    def at(self, mode: str) -> Value | None:
        """The value of one mode."""
        return {START: self.start, PRINTED: self.printed, SPREAD: self.spread}[mode]

    def element(self, k: int, mark: str | None = None) -> Entry:
        """One of its numbers, in order."""
        values = [None if v is None else arrays.flat(v)[k] for v in (self.start, self.printed, self.spread)]
        own = (mark,) if mark else self.marks[k : k + 1]
        return Entry(values[0], values[1], values[2], own)

    @property
    def is_rounded(self) -> bool:
        """Whether the printed digits are not the exact value."""
        if self.start is None:
            return True
        pairs = zip(arrays.flat(self.start), arrays.flat(self.printed), strict=True)
        return not all(same(a, b) for a, b in pairs)


@dataclass(frozen=True, eq=False)
class Result:
    """Numbers that a page printed as the value of something: their texts in order, and what they are."""

    texts: tuple[str, ...]
    entry: Entry
    key: str


@dataclass
class Page:
    """The state of a page while it is read from top to bottom."""

    budget: Budget = field(default_factory=Budget)
    fewest_digits: int = 3
    """Significant digits from which a single number is taken for a result that was printed before."""
    changes: int = 1500
    """Changes of a digit that may still be tried, to find a misprint."""
    names: dict[str, Entry] = field(default_factory=dict)
    written: dict[str, Node] = field(default_factory=dict)
    """The literal by which a name was given, where it was."""
    formulas: dict[str, Entry] = field(default_factory=dict)
    results: list[Result] = field(default_factory=list)
    scalars: list[Result] = field(default_factory=list)
    """The single numbers among the results, of the chains right before."""
    at: dict[int, Entry] = field(default_factory=dict)
    """What the numbers of tables stand for, by where they stand: several columns may follow from one."""
    inputs: list[tuple[str, ...]] = field(default_factory=list)
    """Numbers that the page gives, as printed: of each vector or matrix that is no result."""

    def define(self, node: Node, entry: Entry, literal: Node | None = None) -> None:
        """Keep the value of a name, or of a formula that stands for one."""
        if not isinstance(node, Name):
            self.formulas[key(node)] = entry
            return
        name = known_as(node)
        self.names[name] = entry
        self.written.pop(name, None)
        if literal is not None:
            self.written[name] = literal


@dataclass(frozen=True)
class Evaluated:
    """The values of a formula, and the printed intermediates that they use."""

    start: Value | None
    printed: Value
    spread: Value
    used: tuple[Entry, ...] = ()
    ambiguous: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the value."""
        return arrays.shape(self.printed)


class Reading:
    """What numbers and names stand for in one mode; ``places`` says it of single numbers, by where they stand."""

    def __init__(self, page: Page, mode: str, places: dict[int, Entry]) -> None:
        self.page, self.mode, self.places = page, mode, places
        self.used: list[Entry] = []

    def number(self, node: Number, negated: bool) -> Real:
        """The digits, or in other modes what they were rounded from."""
        entry = self.places.get(node.start)
        if entry is None:
            value = _number(_printed(node.text + "%" * node.percent))
            return negative(value) if negated else value
        return self._of(entry, "a number")

    def name(self, text: str, index: tuple[int, ...]) -> Value | None:
        """The value that the page gave a name."""
        found = {k: e for k, e in self.page.names.items() if e.pending is None}
        whole = name_key(f"{text}_{','.join(map(str, index))}") if index else name_key(text)
        if whole in found:
            return self._of(found[whole], f"`{text}`")
        if index and name_key(text) in found:
            value = self._of(found[name_key(text)], f"`{text}`")
            return look_up({name_key(text): value}, text, index)
        if not index and name_key(text) == "dk" and "K" in found:
            return Fraction(arrays.shape(found["K"].printed)[-1]) if arrays.shape(found["K"].printed) else None
        return None if index else self._gathered(text, found)

    def _gathered(self, text: str, found: dict[str, Entry]) -> Value | None:
        """A vector of which the page gave the elements one by one: `x_1`, `x_2` ..."""
        elements: list[Value] = []
        while (whole := name_key(f"{text}_{len(elements) + 1}")) in found:
            elements.append(self._of(found[whole], f"`{text}`"))
        return arrays.stacked(elements) if len(elements) > 1 else None

    def formula(self, node: Node) -> Value | None:
        """The value that the page gave a formula which has none by itself."""
        if isinstance(node, Array):
            return None
        entry = self.page.formulas.get(key(node))
        return None if entry is None or entry.pending is not None else self._of(entry, "a formula")

    def _of(self, entry: Entry, what: str) -> Value:
        if entry.is_rounded:
            self.used.append(entry)
        value = entry.at(self.mode)
        if value is None:
            raise UnknownNameError(f"the exact value of {what} does not follow from the page")
        return value


def evaluated(page: Page, node: Node, places: dict[int, Entry], mode: str = "dot") -> Evaluated:
    """The values of a formula on a page.

    Raises
    ------
    SymattnError
        When it has none.
    """
    reading = Reading(page, PRINTED, places)
    evaluator = Evaluator(reading, page.budget, mode)
    printed = evaluator.value(node)
    used = tuple(dict.fromkeys(reading.used))
    if not used:
        return Evaluated(printed, printed, printed, (), evaluator.ambiguous)
    start: Value | None = None
    try:
        start = Evaluator(Reading(page, START, places), page.budget, mode).value(node)
    except SymattnError:
        start = None
    try:
        spread = Evaluator(Reading(page, SPREAD, places), page.budget, mode).value(node)
    except SymattnError:
        spread = printed
    return Evaluated(start, printed, spread, used, evaluator.ambiguous)


def literals(node: Node) -> list[Literal | None]:
    """The printed numbers of a literal in order; None for an ellipsis."""
    if isinstance(node, Number):
        return [Literal(node, False)]
    if isinstance(node, Gap):
        return [None]
    if isinstance(node, Apply):  # a sign
        inner = node.args[0]
        assert isinstance(inner, Number)
        return [Literal(inner, True)]
    return [x for part in getattr(node, "items", ()) for x in literals(part)]


def literal_value(node: Node) -> Value:
    """The digits of a literal as numbers.

    Raises
    ------
    ShapeError
        When an ellipsis leaves elements out, or rows differ in length.
    """
    if isinstance(node, Array):
        if any(isinstance(x, Gap) for x in node.items):
            raise ShapeError("an ellipsis leaves elements out")
        return arrays.stacked([literal_value(x) for x in node.items])
    found = literals(node)[0]
    assert found is not None
    return _number(found.printed())


def literal_spread(node: Node) -> Value:
    """The intervals of a literal whose decimals are rounded."""
    if isinstance(node, Array):
        return arrays.stacked([literal_spread(x) for x in node.items])
    found = literals(node)[0]
    assert found is not None
    p = found.printed()
    return _number(p) if p.kind == "infinity" else interval(*p.interval())
