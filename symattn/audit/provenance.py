"""Where the numbers of a formula come from: which of them repeat what the page printed before.

A vector that was printed as a result and stands in the next formula is that result, not a new input: evaluated from the start
it is the exact value, evaluated as printed its digits. Numbers that stand one by one, such as weights before the vectors of a
sum, are recognised by their order. A copy that differs from the result in a single number is a copy with a slip.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from symattn.audit.language_nodes import Apply, Array, Name, Node, Number, is_literal, key
from symattn.audit.printed import Printed
from symattn.audit.said import Entry, Literal, Page, Result, literals
from symattn.audit.trees import bounds, interval, same

FEWEST_DIGITS = 3
"""Significant digits from which two numbers in a row are enough to recognise a vector."""
LOOK_BACK = 40
"""Results of the page that are compared, the latest first."""


@dataclass(frozen=True)
class Slip:
    """A copied number that is not what the page printed before."""

    literal: Literal
    result: Result
    k: int

    @property
    def right(self) -> str:
        """What the page printed before."""
        return self.result.texts[self.k]


@dataclass
class Origins:
    """Of numbers of a formula, by where they stand: what they repeat; and the slips among them."""

    places: dict[int, Entry] = field(default_factory=dict)
    slips: list[Slip] = field(default_factory=list)
    copies: set[int] = field(default_factory=set)
    """Numbers that stand in a copy of a result."""

    def put(self, found: Sequence[Literal], at: Sequence[int], result: Result) -> None:
        """Say that these numbers repeat elements of a result; one that differs is a slip."""
        for literal, k in zip(found, at, strict=True):
            entry = result.entry.element(k)
            self.copies.add(literal.node.start)
            if literal.text != result.texts[k]:
                if _is_right(literal, entry):  # the page got it right the second time
                    p = literal.printed()
                    entry = Entry(entry.start, p.value, interval(*p.interval()))
                else:
                    self.slips.append(Slip(literal, result, k))
            self.places[literal.node.start] = entry


def _is_right(literal: Literal, entry: Entry) -> bool:
    """Whether a number is the exact value of what it repeats, rounded."""
    if entry.start is None:
        return False
    low, high = literal.printed().interval()
    ends = bounds(entry.start)
    return ends is not None and low <= ends[0] and ends[1] <= high


def origins(page: Page, node: Node) -> Origins:
    """Where the numbers of a formula come from."""
    out = Origins()
    recent = page.results[: -LOOK_BACK - 1 : -1]
    if page.at:
        out.places = {x.node.start: page.at[x.node.start] for x in signed(node) if x.node.start in page.at}
        out.copies |= out.places.keys()
    for array in literal_arrays(node):
        if array.start not in out.places and not any(x and x.node.start in out.places for x in literals(array)):
            _whole(out, array, recent)
    rest = [x for x in signed(node) if x.node.start not in out.places]
    for result in recent:
        if len(result.texts) > 1 and all("." in t for t in result.texts):
            _in_order(out, [x for x in rest if x.node.start not in out.places], result)
    for literal in rest:
        if literal.node.start not in out.places:
            _single(out, literal, page, recent)
    return out


def literal_arrays(node: Node) -> list[Array]:
    """The arrays of numbers in a formula, outermost first."""
    if isinstance(node, Array) and is_literal(node):
        return [node]
    parts = node.items if isinstance(node, Array) else node.args if isinstance(node, Apply) else ()
    return [a for p in parts for a in literal_arrays(p)]


def signed(node: Node) -> list[Literal]:
    """The numbers of a formula with their signs, in order.

    >>> from symattn.audit.language import parse
    >>> [x.text for x in signed(parse("2 × [-1, 0.50] - 60%"))]
    ['2', '-1', '0.50', '-60%']
    """
    if isinstance(node, Number):
        return [Literal(node, False)]
    if isinstance(node, Apply) and node.op == "neg" and isinstance(node.args[0], Number):
        return [Literal(node.args[0], True)]
    parts = node.items if isinstance(node, Array) else node.args if isinstance(node, Apply) else ()
    if isinstance(node, Apply) and node.op == "power" and isinstance(node.args[0], Name):
        parts = node.args[1:]
    return [x for p in parts for x in signed(p)]


def texts_of(array: Node) -> tuple[str, ...]:
    """The numbers of an array as printed."""
    return tuple(x.text for x in literals(array) if x is not None)


def _whole(out: Origins, array: Array, recent: Sequence[Result]) -> None:
    """An array that repeats a result, or all of it but one number."""
    found = [x for x in literals(array) if x is not None]
    texts = tuple(x.text for x in found)
    shape = key(array).count("[")
    same = [r for r in recent if len(r.texts) == len(texts) and r.key.count("[") == shape]
    for result in same:
        if result.texts == texts:
            out.put(found, range(len(texts)), result)
            return
    for result in same:
        if _nearly(texts, result.texts):
            out.put(found, range(len(texts)), result)
            return


def _nearly(texts: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two lists are the same but for one digit of one number, and long enough that this is no chance."""
    differing = [(a, b) for a, b in zip(texts, other, strict=True) if a != b]
    long = all("." in t and Printed(t).digits >= FEWEST_DIGITS for t in other)
    enough = len(texts) >= 4 or (len(texts) >= 3 and all("." in t for t in other)) or (len(texts) == 2 and long)
    return enough and len(differing) == 1 and one_digit(*differing[0])


def one_digit(a: str, b: str) -> bool:
    """Whether two numbers differ in exactly one digit.

    >>> one_digit("0.19", "0.18"), one_digit("10", "1"), one_digit("12", "21")
    (True, False, False)
    """
    return (
        len(a) == len(b)
        and sum(x != y for x, y in zip(a, b, strict=True)) == 1
        and all(x == y or (x.isdigit() and y.isdigit()) for x, y in zip(a, b, strict=True))
    )


def _in_order(out: Origins, rest: Sequence[Literal], result: Result) -> None:
    """Numbers of a formula that repeat all elements of a result in their order, be it with one slip."""
    decimals = [x for x in rest if x.is_decimal]
    chosen: list[Literal] = []
    position = 0
    for text in result.texts:
        while position < len(decimals) and decimals[position].text != text:
            position += 1
        if position == len(decimals):
            break
        chosen.append(decimals[position])
        position += 1
    else:
        out.put(chosen, range(len(result.texts)), result)
        return
    if len(decimals) == len(result.texts) and _nearly([x.text for x in decimals], result.texts):
        out.put(decimals, range(len(result.texts)), result)


def _single(out: Origins, literal: Literal, page: Page, recent: Sequence[Result]) -> None:
    """One number with enough digits that it is no chance that it was printed before as a result."""
    telling = literal.printed().digits - (len(literal.node.text) - len(literal.node.text.rstrip("0")))  # `1.0000` tells little
    if not literal.is_decimal or literal.node.percent or telling < page.fewest_digits:
        return
    if any(literal.text in texts for texts in page.inputs):
        return
    found = [(r, k) for r in recent for k, t in enumerate(r.texts) if t == literal.text]
    entries = [r.entry.element(k) for r, k in found]
    first = entries[0].start if entries else None
    if first is not None and all(e.start is not None and same(e.start, first) for e in entries):
        out.places[literal.node.start] = entries[0]
