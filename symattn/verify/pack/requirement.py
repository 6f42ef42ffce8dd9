"""What a kernel cannot take, as a small text about sizes (``d % 8 == 0, n == m``), and the nearest sizes that fit it.

Grammar: comparisons joined by commas or ``and``; a comparison is two or more terms with ``== != < <= > >=`` between them; a term
is made of integers, the names ``b h hkv n m d dv g`` (g = h / hkv) in either case, ``+ - * // %`` and brackets. The text is read
by the parser here and by nothing else.
"""

from __future__ import annotations

import heapq
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from symattn.errors import GrammarError, ShapeError
from symattn.verify.pack.shapes import Shape

NAMES = ("b", "h", "hkv", "n", "m", "d", "dv", "g")
LONGEST = 200
"""Characters of a text; a longer one is refused."""
TRIES = 50_000
"""How many sizes are tried."""
_TOKEN = re.compile(r"\s*(?:(\d{1,9})|([A-Za-z]+)|(==|!=|<=|>=|//|[-+*%()<>,]))")
_COMPARE: Mapping[str, Callable[[int, int], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_SUM: Mapping[str, Callable[[int, int], int]] = {"+": operator.add, "-": operator.sub}
_PRODUCT: Mapping[str, Callable[[int, int], int]] = {"*": operator.mul, "//": operator.floordiv, "%": operator.mod}
Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Clause:
    """One comparison: the names in it, and whether sizes fit."""

    names: frozenset[str]
    holds: Callable[[Sizes], bool]


_DIVIDES = Clause(frozenset({"h", "hkv"}), lambda s: s["h"] % s["hkv"] == 0)


@dataclass(frozen=True)
class Requirement:
    """Comparisons of sizes that have to hold together.

    >>> rule = Requirement.parse("d % 8 == 0, n == m")
    >>> str(rule.fit(Shape.parse("2,4,2,5,7,6")))
    '2,4,2,7,7,8'
    """

    text: str
    clauses: tuple[Clause, ...]

    @classmethod
    def parse(cls, text: str) -> Requirement:
        """Read a text.

        Raises
        ------
        GrammarError
            With the place, and what is allowed.
        """
        return cls(text.strip(), _Parser(text).whole())

    def holds(self, shape: Shape) -> bool:
        """Whether a shape fits.

        >>> Requirement.parse("4 <= d <= 256").holds(Shape.parse("1,1,1,2,2,3"))
        False
        """
        return self.fulfilled(shape.sizes)

    def fulfilled(self, sizes: Sizes) -> bool:
        """Whether sizes fit, given by the names that the text has (``h`` and ``hkv`` for ``g``)."""
        return all(_holds(c, sizes) for c in self.clauses)

    def fit(self, shape: Shape) -> Shape:
        """The nearest shape that fits: with the least change of the sizes, measured by their ratios. ``dv`` follows ``d``
        where the two were equal and the text does not name ``dv``.

        Raises
        ------
        ShapeError
            When none is found.
        """
        sizes = dict(shape.sizes)
        for names, clauses in self._parts():
            sizes |= self._nearest(names, clauses, sizes)
        if shape.d == shape.dv and not any("dv" in c.names for c in self.clauses):
            sizes["dv"] = sizes["d"]
        return replace(shape, **sizes)

    def _parts(self) -> list[tuple[frozenset[str], list[Clause]]]:
        """Names that clauses tie together, with those clauses."""
        clauses = [*self.clauses, *([_DIVIDES] if any(c.names & {"h", "hkv", "g"} for c in self.clauses) else [])]
        parts: list[tuple[frozenset[str], list[Clause]]] = []
        for c in clauses:
            names = frozenset(x for n in c.names for x in (("h", "hkv") if n == "g" else (n,)))
            tied = [p for p in parts if p[0] & names]
            parts = [p for p in parts if p not in tied]
            parts.append((names.union(*(p[0] for p in tied)), [c for p in tied for c in p[1]] + [c]))
        return parts

    def _nearest(self, names: frozenset[str], clauses: list[Clause], sizes: dict[str, int]) -> dict[str, int]:
        if all(_holds(c, sizes) for c in clauses):
            return {}
        order = sorted(names)
        near = {n: _nearest_to(sizes[n]) for n in order}
        start = (0,) * len(order)
        queue, seen = [(0.0, start)], {start}
        while queue and len(seen) < TRIES:
            _, at = heapq.heappop(queue)
            tried = {n: near[n][k] for n, k in zip(order, at, strict=True)}
            if all(_holds(c, sizes | tried) for c in clauses):
                return tried
            for x in range(len(order)):
                further = (*at[:x], at[x] + 1, *at[x + 1 :])
                if further[x] < len(near[order[x]]) and further not in seen:
                    seen.add(further)
                    cost = sum(_far(near[n][k], sizes[n]) for n, k in zip(order, further, strict=True))
                    heapq.heappush(queue, (cost, further))
        for v in sorted(range(1, 2 * max(sizes.values()) + 1), key=lambda v: (sum(_far(v, sizes[n]) for n in order), v)):
            if all(_holds(c, sizes | dict.fromkeys(order, v)) for c in clauses):  # far apart, and required to be equal
                return dict.fromkeys(order, v)
        raise ShapeError(f"no sizes near {', '.join(f'{n}={sizes[n]}' for n in order)} fit {self.text!r}")


def _nearest_to(size: int) -> list[int]:
    """Sizes by how far they are from one."""
    return sorted(range(1, 2 * max(size, 1024) + 1), key=lambda v: (_far(v, size), v))


def _far(value: int, from_: int) -> float:
    return abs(math.log(value / from_))


def _holds(clause: Clause, sizes: Sizes) -> bool:
    try:
        group = {"g": sizes["h"] // sizes["hkv"]} if "g" in clause.names else {}
        return clause.holds({**sizes, **group})
    except ZeroDivisionError:
        return False


class _Parser:
    """Recursive descent over the grammar of the module; every rule gives a function of the sizes."""

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST:
            raise GrammarError(f"a requirement has at most {LONGEST} characters, got {len(text)}")
        self.text, self.at, self.names = text, 0, set[str]()
        self.tokens: list[tuple[str, int]] = []
        end = len(text.rstrip())
        while self.at < end:
            found = _TOKEN.match(text, self.at)
            if found is None:
                raise self._wrong(self.at)
            self.tokens.append((found.group(found.lastindex or 0), found.start(found.lastindex or 0)))
            self.at = found.end()
        self.tokens.append(("", end))
        self.at = 0

    def _wrong(self, place: int) -> GrammarError:
        shown = self.text[place : place + 12].strip() or "the end"
        allowed = "comparisons of sizes such as 'd % 8 == 0, n == m'; names are b h hkv n m d dv g"
        return GrammarError(f"a requirement is {allowed}; got {self.text!r}, which cannot be read from {shown!r} on")

    def _next(self, *allowed: str) -> str | None:
        word = self.tokens[self.at][0]
        if word in allowed and word:
            self.at += 1
            return word
        return None

    def whole(self) -> tuple[Clause, ...]:
        clauses = self._chain()
        while self._next(",", "and"):
            clauses += self._chain()
        if self.tokens[self.at][0]:
            raise self._wrong(self.tokens[self.at][1])
        return tuple(clauses)

    def _chain(self) -> list[Clause]:
        self.names = set()
        left, found = self._operations(_SUM), []
        while word := self._next(*_COMPARE):
            right = self._operations(_SUM)
            found.append(_clause(_COMPARE[word], left, right))
            left = right
        if not found:
            raise self._wrong(self.tokens[self.at][1])
        return [Clause(frozenset(self.names), holds) for holds in found]

    def _operations(self, table: Mapping[str, Callable[[int, int], int]]) -> Callable[[Sizes], int]:
        part = self._atom if table is _PRODUCT else lambda: self._operations(_PRODUCT)
        left = part()
        while word := self._next(*table):
            left = _operation(table[word], left, part())
        return left

    def _atom(self) -> Callable[[Sizes], int]:
        word, place = self.tokens[self.at]
        self.at += 1
        if word.isdigit():
            value = int(word)
            return lambda sizes: value
        if (name := word.lower()) in NAMES:
            self.names.add(name)
            return lambda sizes: sizes[name]
        if word == "(":
            inside = self._operations(_SUM)
            if self._next(")"):
                return inside
            place = self.tokens[self.at][1]
        raise self._wrong(place)


def _operation(f: Callable[[int, int], int], a: Callable[[Sizes], int], b: Callable[[Sizes], int]) -> Callable[[Sizes], int]:
    return lambda sizes: f(a(sizes), b(sizes))


def _clause(f: Callable[[int, int], bool], a: Callable[[Sizes], int], b: Callable[[Sizes], int]) -> Callable[[Sizes], bool]:
    return lambda sizes: f(a(sizes), b(sizes))
