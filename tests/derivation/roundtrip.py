r"""A second program that reads a derivation in LaTeX and computes all of it again; it shares no code with what printed it.

From the document alone it takes the given numbers and the formulas in index form, evaluates every formula at every place with 60
digits, and holds each printed number to it: every side of every line (symbols = substituted = exact = decimal), every cell of
every matrix. A decimal has to be the value rounded once, halves to even; what stands after ``=`` has to be equal.

``python -m tests.derivation.roundtrip FILE.tex`` says what it found.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from tests.derivation.texnumbers import (
    CONTEXT,
    FUNCTIONS,
    LABEL,
    NAME,
    OPERATIONS,
    Scope,
    Tree,
    Unread,
    applied,
    expression,
    relations,
    subscripts,
    variables,
)

SAME = CONTEXT.mpf(10) ** -45
INDEX = r"(?:_(?P<below>\{[^{}]*\}|[A-Za-z0-9]'*))?"
LEFT = re.compile(rf"(?:\((?P<bracketed>{NAME}{LABEL})\)|(?P<plain>{NAME}))(?:\^\{{\((?P<above>[^()]*)\)\}})?{INDEX}")
HEADS = r"(?:\^\{\((?P<above>[\d,]*)\)\})?"
ROW = re.compile(rf"(?:\((?P<bracketed>{NAME}{LABEL})\)|(?P<plain>{NAME})){HEADS}_\{{(?P<row>\d+),:\}}")
MATRIX = re.compile(rf"(?:\((?P<bracketed>{NAME}{LABEL})\)|(?P<plain>{NAME}{LABEL}?)){HEADS}")


@dataclass
class Known:
    """A tensor: values by index, None outside of a mask; whether all of it is known; its formula with the numbers put in."""

    values: dict[tuple[int, ...], Any] = field(default_factory=dict)
    whole: bool = False
    put_in: dict[tuple[int, ...], Tree] = field(default_factory=dict)

    def range(self, axis: int) -> range:
        places = {index[axis] for index in self.values}
        return range(min(places), max(places) + 1)


@dataclass
class Report:
    """What was checked, what is wrong, which numbers could not be compared, and which other equations could not be read."""

    lines: int = 0
    cells: int = 0
    formulas: int = 0
    wrong: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


def equations(document: str) -> Iterator[str]:
    """Every equation of the displays, its rows put together, without tags and labels."""
    for block in re.findall(r"\\begin\{align\*\}(.*?)\\end\{align\*\}", document, re.S):
        whole = ""
        for row in rows(block):
            row = re.sub(r"\\tag\*?\{(?:[^{}]|\{[^{}]*\})*\}|\\label\{[^{}]*\}|\\rule\{[^{}]*\}\{[^{}]*\}|\\hline", " ", row)
            left, _, right = row.partition("&")
            if left.strip() and whole:
                yield whole
                whole = ""
            whole += f"{left.strip()} {right.strip()} " if left.strip() else right.replace(r"\qquad", " ", 1).strip() + " "
        if whole:
            yield whole.strip()


def rows(block: str) -> list[str]:
    """The rows of a display; those of a matrix in it stay together."""
    out, depth = [""], 0
    for part in re.split(r"(\\begin\{array\}|\\end\{array\}|\\\\(?:\[\w+\])?)", block):
        depth += {r"\begin{array}": 1, r"\end{array}": -1}.get(part, 0)
        if part.startswith("\\\\") and not depth:
            out.append("")
        else:
            out[-1] += part
    return [row.strip() for row in out if row.strip()]


def sides(equation: str) -> tuple[str, list[tuple[str, str]]]:
    """What stands on the left, and the other sides with their relations; relations in braces and matrices stay."""
    parts, depth, at = [""], 0, 0
    signs: list[str] = []
    while at < len(equation):
        found = re.compile(r"\\begin\{array\}|\\end\{array\}|\\approx|[={}]").match(equation, at)
        token = found[0] if found else equation[at]
        depth += {"{": 1, "}": -1, r"\begin{array}": 1, r"\end{array}": -1}.get(token, 0)
        if token in ("=", r"\approx") and not depth:
            signs.append(token)
            parts.append("")
        else:
            parts[-1] += token
        at += len(token)
    return parts[0].strip(), [(s, p.strip()) for s, p in zip(signs, parts[1:], strict=True)]


class Roundtrip:
    """One document."""

    def __init__(self, document: str) -> None:
        self.report = Report()
        self.tensors: dict[str, Known] = {}
        self.below: list[tuple[list[str], Tree, Scope]] = []
        self.origin = int(m[1]) if (m := re.search(r"counted from (\d)", document)) else 1
        self.words = words(document)
        self.identities = {n.replace("\\_", "_") for n in re.findall(r"The matrix (\S+) is the identity", document)}
        for equation in equations(document):
            self.equation(equation)

    # --- reading a page from top to bottom

    def equation(self, equation: str) -> None:
        formula, _, where = equation.partition(r"\text{where }")
        if r"\begin{array}" in equation:
            self.matrix(*sides(equation))
            return
        left, right = sides(re.sub(r"\\q?quad\s*$", "", formula.strip()))
        found = LEFT.fullmatch(left)
        if not found or not right:
            self.report.unread.append(equation)
            return
        name = found["bracketed"] or found["plain"]
        kept = self.report.unread
        try:
            above = subscripts(found["above"]) if found["above"] else ()
            index = (*above, *(subscripts(found["below"].strip("{}")) if found["below"] else ()))
            if index and all(i[0] == "num" and i[1] >= self.origin for i in index):
                kept = self.report.missed
                self.line(equation, name, tuple(int(i[1]) for i in index), right)
            elif not index and not variables(expression(right[0][1])):
                self.line(equation, name, (), right)
            elif len(right) == 1:
                self.formula(name, index, expression(right[0][1]), relations(where) if where else ())
            else:
                self.report.unread.append(equation)
        except (Unread, KeyError, IndexError, ZeroDivisionError, ValueError) as why:
            kept.append(f"{equation}: {why}")

    def read(self, name: str, index: tuple[Any, ...]) -> Any:
        """The value of an element, 0 outside of a mask."""
        if name == "d" and index == ("k",):
            return CONTEXT.mpf(len(self.tensors["K"].range(-1)))
        if name == "t" and "t" not in self.tensors:
            return CONTEXT.mpf(self.words[index[0] - self.origin])
        known = self.tensors.get(name)
        if known is None:
            raise Unread(f"{name} is not known")
        if not index and len(known.values) == 1:  # a number, printed as a matrix of one
            return next(iter(known.values.values()))
        if index not in known.values:
            known.values[index] = self.denominator(known, name, index)
        value = known.values[index]
        return CONTEXT.mpf(0) if value is None else value

    def denominator(self, known: Known, name: str, index: tuple[int, ...]) -> Any:
        """A normaliser is defined for the followed row and used for others: it is a denominator that has its known values."""
        for names, body, scope in self.below:
            at = [dict(zip(names, i, strict=False)) for i in (*known.values, index)]
            if any(p[:2] == ("tensor", name) for p in parts(body)):
                continue
            try:
                *before, value = [scope.value(body, point) for point in at]
            except (KeyError, Unread):  # it depends on more than that
                continue
            if before and all(same(a, b) for a, b in zip(before, known.values.values(), strict=True)):
                return value
        raise Unread(f"{name} is not known at {index}")

    # --- formulas

    def formula(self, name: str, index: tuple[Tree, ...], body: Tree, where: tuple[Tree, ...]) -> None:
        """Evaluate an index form at every place."""
        names = [i[1] for i in index]
        self.identity(body)
        ranges: dict[str, range] = {}
        self.ranges(("tensor", name.removeprefix("d"), *index) if name[:1] == "d" else (), ranges)
        self.ranges(body, ranges)
        if set(names) - set(ranges):
            raise Unread(f"the range of {set(names) - set(ranges)} is not known")
        scope = Scope(self.read, ranges, where)
        outer = tuple(c for c in where if variables(c) <= set(names))
        found = Known(whole=True)
        for at in itertools.product(*(ranges[v] for v in names)):
            point = dict(zip(names, at, strict=True))
            inside = scope.holds(outer, point)
            found.values[at] = scope.value(body, point) if inside else None
            if inside:
                found.put_in[at] = scope.put_in(body, point)
        self.tensors[name] = found
        if body[0] == "div":
            self.below.append((names, body[2], scope))
        self.report.formulas += 1

    def identity(self, body: Tree) -> None:
        """A matrix that the page does not print, since it is the identity, is as wide as what it is multiplied with."""
        tensors = [part[1] for part in parts(body) if part[0] == "tensor"]
        for name in self.identities & set(tensors) - set(self.tensors):
            size = next((self.tensors[n].range(-1) for n in tensors if n in self.tensors), range(0))
            self.tensors[name] = Known({(a, b): CONTEXT.mpf(a == b) for a in size for b in size}, whole=True)

    def ranges(self, tree: Any, out: dict[str, range]) -> None:
        """How far every index runs: as far as the axes of the tensors at which it stands."""
        if not isinstance(tree, tuple):
            return
        if tree[:1] == ("tensor",) and tree[1] == "t" and len(tree) == 3:
            out[tree[2][1]] = range(self.origin, self.origin + len(self.words))
        elif tree[:1] == ("tensor",) and len(tree) > 2 and tree[1] in self.tensors:
            known = self.tensors[tree[1]]
            for axis, sub in enumerate(tree[2:]):
                if sub[0] == "tensor" and len(sub) == 2 and all(len(i) > axis for i in known.values):
                    out[sub[1]] = known.range(axis)
        for part in tree:
            self.ranges(part, out)

    # --- numbers

    def line(self, equation: str, name: str, index: tuple[int, ...], right: list[tuple[str, str]]) -> None:
        """The work of one element: all sides have the value that the formula gives, or the first of them where none is known."""
        trees = [(sign, expression(side)) for sign, side in right]
        scope = Scope(self.read, {}, ())
        known = self.tensors.setdefault(name, Known())
        if index in known.values and known.values[index] is not None:
            true = known.values[index]
        elif known.whole or trees[0][0] != "=":
            self.report.wrong.append(f"{equation}: nothing is computed there")
            return
        else:
            true = known.values[index] = scope.value(trees[0][1], {})
        exact = [tree for sign, tree in trees if sign == "="]
        if exact and index in known.put_in and not self.alike(scope, exact[0], known.put_in[index]):
            self.report.wrong.append(f"{equation}: not the formula with these numbers")
        for sign, tree in trees:
            self.report.lines += 1
            if sign == "=":
                good = same(scope.value(tree, {}), true)
            elif (number := signed(tree)) is not None:
                good = rounds(number, true)
            else:
                good = any(self.follows(scope, tree, e) for e in exact)
            if not good:
                self.report.wrong.append(equation)

    def follows(self, scope: Scope, decimals: Tree, exact: Tree) -> bool:
        """Whether a side with decimals is an exact side in which parts were replaced by their rounded values."""
        if (number := signed(decimals)) is not None and number[1] is not None:
            return rounds(number, scope.value(exact, {}))
        if decimals == exact:
            return True
        if decimals[0] != exact[0] or len(decimals) != len(exact):
            return signed(decimals) is not None and same(scope.value(decimals, {}), scope.value(exact, {}))
        if decimals[0] in ("num", "tensor"):
            return same(scope.value(decimals, {}), scope.value(exact, {}))
        start = 2 if decimals[0] == "fun" else 1
        if decimals[:start] != exact[:start]:
            return False
        return all(self.follows(scope, d, e) for d, e in zip(decimals[start:], exact[start:], strict=True))

    def alike(self, scope: Scope, shown: Tree, put_in: Tree) -> bool:
        """Whether numbers stand at the places of a formula at which they belong; what was simplified has the same value."""
        if shown[0] == put_in[0] and len(shown) == len(put_in):
            start = 2 if shown[0] == "fun" else 1
            return all(self.alike(scope, a, b) for a, b in zip(shown[start:], put_in[start:], strict=True))
        return same(scope.value(shown, {}), value_of(put_in))

    def matrix(self, left: str, right: list[tuple[str, str]]) -> None:
        """A matrix, in exact values, decimals or both: what is known is compared, what is not and is exact is taken."""
        found = ROW.fullmatch(left) or MATRIX.fullmatch(left)
        if not found:
            self.report.unread.append(left)
            return
        name, row = found["bracketed"] or found["plain"], found.groupdict().get("row")
        known = self.tensors.setdefault(name, Known())
        given = not known.values
        above = tuple(int(k) for k in found["above"].split(",")) if found["above"] else ()
        scope = Scope(self.read, {}, ())
        for sign, side in right:
            cells = table(side)
            for (r, c), cell in cells.items():
                at = self.place(known, above, row, (r, c), cells, given)
                self.cell(f"{left} at {at}: {cell}", known, at, sign, cell, scope)
        known.whole = known.whole or (given and not row)
        if name == r"\mathcal{E}" and self.words:
            labels = side_words(right[0][1])
            self.words = [labels.index(w) + self.origin if w in labels else w for w in self.words]

    def place(self, known: Known, above: Any, row: Any, at: tuple[int, int], cells: Any, given: bool) -> tuple[int, ...]:
        """The index of a cell: a vector is printed as one row."""
        r, c = at[0] + self.origin, at[1] + self.origin
        if row:
            return (*above, int(row), c)
        ranks = {len(i) for i in known.values}
        single = all(k == 0 for k, _ in cells)
        if not given and ranks == {len(above)}:
            return above
        if not given and single and ranks == {len(above) + 1}:
            return (*above, c)
        return (*above, r, c)

    def cell(self, what: str, known: Known, at: tuple[int, ...], sign: str, cell: str, scope: Scope) -> None:
        self.report.cells += 1
        if cell == r"\cdot":
            if known.values.setdefault(at, None) is not None:
                self.report.wrong.append(f"{what}: there is a value")
            return
        tree = expression(cell.strip("{}") if cell.startswith("{") and "{" not in cell[1:] else cell)
        if at not in known.values:
            if sign != "=":
                self.report.missed.append(f"{what}: known to its rounding only")
                return
            known.values[at] = scope.value(tree, {})
        true = known.values[at]
        number = signed(tree)
        good = true is not None and (rounds(number, true) if sign != "=" and number else same(scope.value(tree, {}), true))
        if not good:
            self.report.wrong.append(what)


def value_of(put_in: Tree) -> Any:
    """The value of a tree of values."""
    kind, *rest = put_in
    if kind == "value":
        return rest[0]
    values = [value_of(t) for t in (rest[1:] if kind == "fun" else rest)]
    return (
        applied(rest[0], values) if kind == "fun" else applied(kind, values) if kind in FUNCTIONS else OPERATIONS[kind](*values)
    )


def parts(tree: Any) -> Iterator[Tree]:
    """A tree and all trees in it."""
    if isinstance(tree, tuple) and tree and isinstance(tree[0], str):
        yield tree
    for part in tree if isinstance(tree, tuple) else ():
        yield from parts(part)


def signed(tree: Tree) -> tuple[Fraction, Fraction | None] | None:
    """A number with its sign and the unit of its last digit, if the tree is nothing else."""
    sign, inner = (-1, tree[1]) if tree[0] == "neg" else (1, tree)
    return (sign * inner[1], inner[2]) if inner[0] == "num" and isinstance(inner[1], Fraction) else None


def same(a: Any, b: Any) -> bool:
    """Whether two values of 60 digits are equal."""
    return abs(a - b) <= SAME * max(1, abs(b))


def rounds(number: tuple[Fraction, Fraction | None], true: Any) -> bool:
    """Whether a decimal is a value rounded once, halves to even."""
    value, unit = number
    shown = CONTEXT.mpf(value.numerator) / value.denominator
    if unit is None:
        return same(shown, true)
    off, half = abs(shown - true), CONTEXT.mpf(unit.numerator) / unit.denominator / 2
    if abs(off - half) <= SAME * max(1, abs(true)):
        return (value / unit) % 2 == 0
    return off < half


def table(side: str) -> dict[tuple[int, int], str]:
    """The cells of an array by place; words at its sides, and what is left out, are no cells."""
    body = re.search(r"\\begin\{array\}\{([^{}]*)\}(.*)\\end\{array\}", side, re.S)
    if not body:
        raise Unread(side)
    found, r = {}, 0
    if r"\vdots" in body[2] or r"\cdots" in body[2]:
        return {}
    for row in re.split(r"\\\\(?:\[\w+\])?", body[2]):
        cells = [c.strip() for c in row.split("&")]
        numbers = cells[1:] if "|" in body[1] else cells
        if any(r"\text" in c for c in numbers) or not any(numbers):
            continue
        found |= {(r, c): cell for c, cell in enumerate(numbers)}
        r += 1
    return found


def side_words(side: str) -> list[str]:
    """The words at the rows of an array."""
    return re.findall(r"\\text\{([^{}]*)\}\s*&", side)


def words(document: str) -> list[Any]:
    """The words at the queries, as the page lists them."""
    found = re.search(r"(?:Words|Queries): (.*?)\.\\par", document)
    return [part.split(" ", 1)[1] for part in found[1].split(", ")] if found else []


def check(document: str) -> Report:
    """All numbers of a document in LaTeX."""
    return Roundtrip(document).report


if __name__ == "__main__":
    result = check(Path(sys.argv[1]).read_text(encoding="utf-8"))
    print(f"{result.formulas} formulas, {result.lines} sides of lines and {result.cells} cells; {len(result.wrong)} wrong")
    said = (("WRONG", result.wrong), ("not compared", result.missed), ("not read", result.unread))
    print("\n".join(f"{word}: {text}" for word, texts in said for text in texts))
