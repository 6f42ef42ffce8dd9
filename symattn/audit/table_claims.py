"""What a table states: cells that hold equations, columns whose heads are formulas of other columns, weights, sums, quantities.

A head such as `exp(score)` or `q · k` says how its column follows from the others, row by row; weights are the softmax of a
column before them where that bears out most of them; a row of sums adds up what is above it. What nothing explains is given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from symattn.audit.comparing import far
from symattn.audit.evaluate import Budget
from symattn.audit.exactness import decimal
from symattn.audit.findings import Remark
from symattn.audit.formula import name_key
from symattn.audit.language import parse
from symattn.audit.language_nodes import Apply, Array, Name, Node, Number, apply, array, is_literal, is_number, names_in
from symattn.audit.said import Literal, Page, evaluated
from symattn.audit.statements import Chain, Side
from symattn.audit.tables import Cell, Table, name_of
from symattn.errors import SymattnError

WEIGHTS = frozenset({"softmax", "weight", "weights", "attention", "attention weight", "attention weights", "probability",
                     "probabilities", "prob", "alpha", "attn", "attention score after softmax", "softmax weight"})  # fmt: skip
SUMS = frozenset({"sum", "total", "sums", "σ", "∑", "summe"})
_RELATION = re.compile(r"[=≈]|\\approx")
_OF_COLUMNS = ("call:softmax", "bigsum", "call:sum", "call:mean", "call:max", "call:min", "call:norm")


@dataclass(frozen=True, slots=True)
class Given:
    """Numbers of a table that nothing in it explains."""

    start: int
    end: int
    reason: str


def table_chains(
    table: Table, equations: Callable[[int, int], list[Chain]], line: Callable[[int], int]
) -> list[Chain | Given | Remark]:
    """The chains of a table, and what of it nothing explains.

    Parameters
    ----------
    table
        The table.
    equations
        Reads the equations between two places.
    line
        The line of a place.
    """
    return _Reader(table, equations, line).chains()


class _Reader:
    """Reads one table."""

    def __init__(self, table: Table, equations: Callable[[int, int], list[Chain]], line: Callable[[int], int]) -> None:
        self.table, self.equations, self.line = table, equations, line
        self.width = max(len(table.head), *map(len, table.rows))
        self.rows = [r for r in table.rows if not _is_sum(r)]
        self.sums = [r for r in table.rows if _is_sum(r)]
        self.heads = [_head(table.head[j]) if j < len(table.head) else (None, "") for j in range(self.width)]
        self.explained: set[int] = set()
        """Columns that follow, or that others follow from."""

    def chains(self) -> list[Chain | Given | Remark]:
        """What it states, column by column."""
        out: list[Chain | Given | Remark] = []
        for row in (self.table.head, *self.table.rows):
            for c in row:
                if _RELATION.search(c.text):
                    out += self.equations(c.start, c.end)
        for j in range(self.width):
            out += self._formula(j)
        for j in range(self.width):
            if self.heads[j][1] in WEIGHTS and j not in self.explained:
                out += self._weights(j)
        out += [c for row in self.sums for c in self._sums(row)]
        out += self._quantities()
        return [*out, *self._given()]

    def column(self, j: int) -> list[Cell]:
        """The cells of a column that are printed numbers or vectors."""
        cells = [r[j] for r in self.rows if j < len(r)]
        return [c for c in cells if c.node is not None and is_literal(c.node)]

    def _formula(self, j: int) -> Iterator[Chain]:
        """A column whose head is a formula of other columns."""
        node = self.heads[j][0]
        if node is None or isinstance(node, Name) or not names_in(node):
            return
        sources = {name_key(self.heads[k][1]): k for k in range(self.width) if k != j and self.heads[k][1] and self.column(k)}
        used = {sources[key] for n in names_in(node) if (key := name_key(n.text)) in sources}
        cells = self.column(j)
        if not used or not cells:
            return
        whole = any(_has(node, op) for op in _OF_COLUMNS)
        self.explained |= {j, *used}
        if whole:
            columns: dict[str, Node] = {key: _stacked(self.column(k)) for key, k in sources.items() if k in used}
            if all(len(self.column(k)) == len(cells) for k in used):
                yield _chain(_with(node, columns), _stacked(cells))
            return
        for row in self.rows:
            value = row[j].node if j < len(row) else None
            named = {key: n for key, k in sources.items() if k in used and k < len(row) and (n := row[k].node) and is_literal(n)}
            if value is not None and is_literal(value) and len(named) == len(used):
                yield _chain(_with(node, named), value)

    def _weights(self, j: int) -> Iterator[Chain]:
        """Weights, the softmax of the column before them that bears out most of them."""
        cells = [c for c in self.column(j) if c.node is not None and is_number(c.node)]
        best: tuple[int, int, Chain] | None = None
        for k in range(j - 1, -1, -1):
            sources = self.column(k)
            if len(sources) != len(cells) or len(cells) < 2 or not all(c.node is not None and is_number(c.node) for c in sources):
                continue
            vector = _stacked(sources)
            ways = [apply("call:softmax", (vector,), vector.start, vector.end)]
            if k in self.explained:
                ways.append(
                    apply("divide", (vector, apply("call:sum", (vector,), vector.start, vector.end)), vector.start, vector.end)
                )
            for way in ways:
                wrong = _far(way, _stacked(cells))
                if 2 * wrong < len(cells) and (best is None or wrong < best[0]):
                    best = (wrong, k, _chain(way, _stacked(cells)))
        if best is not None:
            self.explained |= {j, best[1]}
            yield best[2]

    def _sums(self, row: tuple[Cell, ...]) -> Iterator[Chain]:
        """A row of sums: each of its numbers is that of the column above."""
        for j, c in enumerate(row):
            cells = self.column(j)
            if c.node is None or not is_number(c.node) or len(cells) < 2 or len(cells) < len(self.rows):
                continue
            if all(x.node is not None and is_number(x.node) for x in cells):
                terms = tuple(x.node for x in cells if x.node is not None)
                self.explained.add(j)
                yield _chain(apply("sum", terms, cells[0].start, cells[-1].end), c.node)

    def _quantities(self) -> Iterator[Chain]:
        """Rows of a name or a formula and its value."""
        numeric = [j for j in range(1, self.width) if self.column(j)]
        if len(numeric) != 1 or numeric[0] in self.explained:
            return
        j = numeric[0]
        for row in (self.table.head, *self.rows):
            first, value = row[0].node, row[j].node if j < len(row) else None
            if first is None or value is None or not is_literal(value) or is_literal(first):
                continue
            short = isinstance(first, Name) and (len(re.split(r"[_^]", first.text)[0]) <= 3 or "_" in first.text)
            if isinstance(first, (Apply, Array)) or short:
                self.explained.add(j)
                yield Chain((Side(row[0].start, row[0].end, first), Side(row[j].start, row[j].end, value)), ("EQ",), "table")

    def _row_sums(self, columns: Sequence[int]) -> Iterator[Remark]:
        """Rows of weights, by the words of the table: those that do not sum to 1 where most of them do."""
        labels = [name_of(r[0]) for r in self.rows]
        if sorted(labels) != sorted(self.heads[j][1] for j in columns):
            return
        broken = []
        for row in self.rows:
            printed = [Literal(n, False).printed() for j in columns if isinstance(n := row[j].node, Number)]
            ends = [p.interval() for p in printed]
            if len(ends) < len(columns) or any(low > 1 for low, _ in ends):
                return
            if not sum(low for low, _ in ends) <= 1 <= sum(high for _, high in ends):
                broken.append((row, sum((p.value for p in printed), Fraction(0))))
        if 2 * len(broken) >= len(self.rows):
            return
        for row, total in broken:
            where = f"line {self.line(row[0].start)}: the weights of {name_of(row[0])}"
            text = f"{where} sum to {decimal(total, 6)}, beyond their rounding"
            yield Remark("rows of weights sum to 1", text)

    def _given(self) -> Iterator[Chain | Given | Remark]:
        """Columns that nothing explains: names get their value by them, and copies of results are compared."""
        rest = [j for j in range(self.width) if j not in self.explained and self.column(j)]
        if not rest:
            return
        cells = [self.column(j) for j in rest]
        if len(rest) > 1 and all(len(c) == len(self.rows) for c in cells) and _are_numbers(cells):
            rows = [[r[j] for j in rest] for r in self.rows]
            matrix = array(tuple(_stacked(r) for r in rows), rows[0][0].start, rows[-1][-1].end)
            place = cells[0][0].start
            yield _definition(Name(f"table in line {self.line(place)}", place, place), matrix)
            yield from self._row_sums(rest)
        names = ", ".join(self.heads[j][1] or f"column {j + 1}" for j in rest[:4]) + (" ..." if len(rest) > 4 else "")
        one = cells[0][0]
        yield Given(one.start, one.end, f"numbers of a table that no formula of it gives ({names}): taken as given")


def _is_sum(row: Sequence[Cell]) -> bool:
    return bool(row) and (name_of(row[0]).strip(" :") in SUMS or row[0].text.strip() in ("Σ", "∑", r"\sum"))


def _head(cell: Cell) -> tuple[Node | None, str]:
    """The formula of a head and its name: of `Scaled (score/√3)` the formula in brackets, and `scaled`."""
    name = name_of(cell)
    inside = re.search(r"\(([^()]*(?:\([^()]*\))?[^()]*)\)\s*\Z", cell.text)
    words = cell.text[: inside.start()].strip() if inside else ""
    if (
        inside
        and re.fullmatch(r"[\w\s-]{3,}", words)
        and words.lower() not in ("exp", "log", "softmax", "max", "sum", "sqrt", "sin", "cos")
    ):
        try:
            return parse(inside[1], cell.start + inside.start(1)), words.lower()
        except SymattnError:
            return None, words.lower()
    return cell.node, name


def _has(node: Node, op: str) -> bool:
    parts = node.items if isinstance(node, Array) else node.args if isinstance(node, Apply) else ()
    return (isinstance(node, Apply) and node.op == op) or any(_has(p, op) for p in parts)


def _with(node: Node, values: dict[str, Node]) -> Node:
    """A formula with numbers in place of names; it stands where they do."""
    if isinstance(node, Name):
        return values.get(name_key(node.text), node)
    if isinstance(node, Array):
        items = tuple(_with(x, values) for x in node.items)
        return replace(node, items=items, start=min(x.start for x in items), end=max(x.end for x in items))
    if isinstance(node, Apply) and node.args:
        args = tuple(_with(x, values) for x in node.args)
        return apply(node.op, args, min(x.start for x in args), max(x.end for x in args), node.options)
    return node


def _stacked(cells: Sequence[Cell]) -> Array:
    items = tuple(c.node for c in cells if c.node is not None)
    return array(items, items[0].start, items[-1].end)


def _chain(formula: Node, value: Node) -> Chain:
    place = min(formula.start, value.start)
    return Chain((Side(place, place, formula), Side(value.start, value.end, value)), ("EQ",), "table")


def _definition(name: Name, value: Node) -> Chain:
    return Chain((Side(name.start, name.start, name), Side(value.start, value.end, value)), ("EQ",), "table")


def _are_numbers(columns: Sequence[Sequence[Cell]]) -> bool:
    return all(c.node is not None and is_number(c.node) for column in columns for c in column)


def _far(formula: Node, printed: Node) -> int:
    """How many printed numbers are not near the value of a formula."""
    try:
        return far(printed, evaluated(Page(Budget(5000)), formula, {}))
    except SymattnError:
        return 10**6
