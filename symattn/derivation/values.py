"""The numbers of a step: the work of single elements, rows and matrices, every decimal from an enclosure that decides it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import groupby
from itertools import product as cartesian
from math import prod
from typing import Any

import sympy as sp

from symattn.derivation import exactvalue as ev
from symattn.derivation.binding import WEIGHTS
from symattn.derivation.decimals import decimal, enclosed_decimal, fixed, is_exact
from symattn.derivation.document import Cell, Grid, Line
from symattn.derivation.enclose import BITS, bounds
from symattn.derivation.examples import Array
from symattn.derivation.nodeprint import Style, text
from symattn.derivation.numbersteps import Apply, Item, Node, Num, Power, Product, Quotient, Rounded, Sum, children, tree
from symattn.derivation.page import Page
from symattn.derivation.remarks import identity_factor
from symattn.derivation.work import Worksheet
from symattn.errors import LimitError, UndecidedError
from symattn.indexed import all_reads, name_of, subscripts_of
from symattn.program import Program, Statement
from symattn.readings import balls

LARGEST = 8
"""Matrices with more rows or columns are shown with some left out."""
HEADS = 4
"""How many matrices of a tensor with leading indices are shown."""
VOCABULARY = "vocabulary"
"""The key of the words at the rows of the embedding table."""
LONG_VALUE, LONG_CELL = 16, 5
GUARD = 2
STEPS = Page()
ROWS, ROOM = 40, 60
"""Rows below each other, and characters side by side, of a block of a large matrix that is shown whole."""


class Numbers:
    """A program with numbers in it, and how they are shown; ``flat`` are the matrices whose columns are positions."""

    def __init__(
        self,
        program: Program,
        arrays: Mapping[str, Array],
        sizes: Mapping[sp.Symbol, int],
        style: Style,
        digits: int,
        follow: int | None,
        words: Mapping[str, tuple[str, ...]],
        inline: frozenset[str],
        page: Page = STEPS,
        flat: Collection[str] = (),
    ) -> None:
        self.program, self.arrays, self.sizes, self.page, self.flat = program, arrays, sizes, page, flat
        self.style, self.digits, self.follow, self.words = style, digits, follow, words
        self.sheet = Worksheet(program, arrays, sizes, inline, style.decimals, style.origin)
        self._balls: dict[int, dict[str, Any]] = {}
        self.query = sp.Symbol("i", integer=True)

    # --- steps

    def step(self, group: Sequence[Statement]) -> tuple[tuple[Line, ...], tuple[Grid, ...], str]:
        """Lines of work, matrices and a remark for the statements of one step."""
        last = group[-1]
        identity = identity_factor(last, self.arrays)
        if identity is not None or self.is_lookup(last):
            return (), self.grids(last), identity.sentence if identity is not None else ""
        lines = [line for s in group for line in self.lines(s, helper=s is not last and s.name in self.sheet.inline)]
        shown = [g for s in group if s is last for g in self.grids(s)]
        return tuple(lines), tuple(shown), ""

    def is_lookup(self, s: Statement) -> bool:
        """Whether a statement only copies."""
        return not s.over and isinstance(s.expr, sp.Indexed)

    def lines(self, s: Statement, helper: bool = False) -> list[Line]:
        """The work of the followed row, of every row, or of the first row of a tensor that no query labels.

        Of a ``helper``, which is written out where it is read, only the elements that are too long for that.
        """
        free = self.free_axes(s)
        fixed = self.fixed(s)
        found = []
        for values in cartesian(*(range(self.sheet.extent(a)) for a in free)):
            index = tuple({**fixed, **dict(zip(free, values, strict=True))}[a] for a in s.indices)
            if self.sheet.defined(s.name, index) and (not helper or self.sheet.named(s.name, index)):
                found.append(index)
        rows = groupby(found, lambda index: index[:-1] if self.page.every else ())
        return [line for _, row in rows for line in self.row(s, list(row))]

    def row(self, s: Statement, found: Sequence[tuple[int, ...]]) -> list[Line]:
        """The work of the elements of a row, as many as the page shows."""
        shown = found if self.page.full else found[:LARGEST]
        lines = [self.line(s, index) for index in shown]
        if len(shown) < len(found):
            lines[-1] = replace(lines[-1], row=len(found), shown=len(shown))
        return lines

    def fixed(self, s: Statement) -> dict[sp.Symbol, int]:
        """The indices that stay fixed while a row, or every row, is followed."""
        if self.page.every:
            return {a: 0 for a in s.indices[:-2] if a != self.query}
        if self.query in s.indices:
            before = s.indices[: s.indices.index(self.query)]
            before = before[:-1] if s.indices[-1] == self.query and s.name in self.flat else before
            return {**dict.fromkeys(before, 0), self.query: self.follow or 0}
        fixed = dict.fromkeys(s.indices[:-2], 0)
        if len(s.indices) > 1:
            row = s.indices[-1 if s.name in self.flat else -2]
            fixed[row] = self.followed(row) or 0
        return fixed

    def followed(self, axis: sp.Symbol) -> int | None:
        """The position of the followed query or of its word on an axis; None where the axis has none."""
        if self.follow is None:
            return None
        words = self.axis_key(axis, self.program.dims[axis])
        if words == VOCABULARY:
            return self.words[VOCABULARY].index(self.words["i"][self.follow])
        return self.follow if self.follow < self.sheet.extent(axis) and words in self.words else None

    def axis_key(self, axis: sp.Expr, size: sp.Expr) -> str:
        """Under which key the words at the positions of an axis are kept; "" for one that is read at a computed place."""
        return VOCABULARY if str(size) == "vocab" else axis.name if axis.is_Symbol else ""

    def free_axes(self, s: Statement) -> list[sp.Symbol]:
        """The indices that run through the line of elements whose work is shown."""
        fixed = self.fixed(s)
        return [a for a in s.indices if a not in fixed]

    def line(self, s: Statement, index: tuple[int, ...]) -> Line:
        """The work of one element."""
        work: Node | None = self.sheet.work(s.name, index)
        assert work is not None
        cell = self.cell(s.name, index, in_line=True)
        approximate: Node | None = self.approximate(work) if _has_item(work) or _has_function(work) else None
        if cell.value is not None and text(work, self.style) == text(cell.value, self.style):
            work = None
        if cell.value is None and isinstance(work, Item):
            work = None
        if (
            cell.value is not None
            and work is not None
            and isinstance(cell.value, Sum)
            and len(cell.value.terms) > 1
            and not _has_item(work)
        ):
            cell = replace(cell, value=None)  # like terms collected: nothing that the line does not say already
        if cell.exact or isinstance(approximate, Rounded):
            approximate = None
        return Line(Item(s.name, index, ev.generator(ev.Ref(s.name, index))), work, cell, approximate, self.note(s, index))

    def note(self, s: Statement, index: tuple[int, ...]) -> tuple[str, ...]:
        """The words at the positions of an element."""
        said = [
            self.words[a.name][k]
            for a, k in zip(s.indices, index, strict=True)
            if a.name in self.words and k < len(self.words[a.name])
        ]
        return tuple(said) if len(said) == 2 else ()

    @property
    def heads(self) -> int:
        """How many matrices the tensor with the most of them has."""
        return max((prod(self.sheet.shape(s.name)[:-2]) for s in self.program), default=1)

    # --- values

    def cell(self, name: str, index: tuple[int, ...], in_line: bool = False) -> Cell:
        """Exact value and decimal of an element; a matrix has exact values without functions only, a line has longer ones."""
        if not self.sheet.defined(name, index):
            return Cell(None, "", True, masked=True)
        value = self.sheet.full(name, index)
        if value.special:
            return Cell(Num(value), {"nan": "NaN", "oo": "inf", "-oo": "-inf"}[value.special], True)
        short = value.size <= LONG_VALUE if in_line else value.numeric and value.size <= LONG_CELL
        node: Node | None = tree(value, self.style.decimals) if short else None
        exact = value.rational
        if exact is not None:
            return Cell(tree(value, self.style.decimals), decimal(exact, self.digits), is_exact(exact, self.digits))
        return Cell(node, self.decimal(name, index, self.digits), False)

    def decimal(self, name: str, index: tuple[int, ...], digits: int) -> str:
        """The decimal of an element, right in every digit.

        Raises
        ------
        UndecidedError
            When the enclosure does not decide it at the largest precision.
        """

        def enclosure(bits: int) -> tuple[Fraction, Fraction]:
            mid, rad = bounds(self.enclosures(bits)[name][index])
            own, own_rad = bounds(self.sheet.enclose.ball(self.sheet.full(name, index), bits))
            assert abs(mid - own) <= rad + own_rad, f"{name}{list(index)}: the steps do not lead to the value of the program"
            return (mid, rad) if rad <= own_rad else (own, own_rad)  # a floor may be known by its exact value alone

        return decided(enclosure, digits, f"{name}[{self.style.counted(index)}]")

    def enclosures(self, bits: int) -> dict[str, Any]:
        """Every tensor of the program as balls; a row maximum that is shown is the maximum, and no number near it."""
        if bits not in self._balls:
            shown = self.program.with_statements(replace(s, range_only=False) for s in self.program)
            self._balls[bits] = balls.evaluate(shown, self.arrays, sizes=self.sizes, bits=bits)
        return self._balls[bits]

    def rounded(self, node: Node) -> Rounded:
        """The decimal of a display tree, with guard digits."""
        value = self.sheet.settled(node.value)
        digits = self.digits + GUARD
        if value.rational is not None:
            return Rounded(decimal(value.rational, digits), node.value)
        return Rounded(decided(lambda bits: self.sheet.enclose.bounds(value, bits), digits, "a term"), node.value)

    def approximate(self, node: Node) -> Node:
        """The tree with decimals in place of everything irrational."""
        if isinstance(node, Sum):
            return Sum(tuple((s, self.approximate(t)) for s, t in node.terms))
        if isinstance(node, Product):
            return Product(tuple(self.approximate(f) for f in node.factors))
        if isinstance(node, Item) or not _has_item(node):
            return node if node.value.rational is not None or node.value.special else self.rounded(node)
        if isinstance(node, Quotient):
            return Quotient(self.approximate(node.over), self.approximate(node.under))
        if isinstance(node, Power):
            return Power(self.approximate(node.base), node.exponent)
        if isinstance(node, Apply):
            return Apply(node.name, tuple(self.approximate(a) for a in node.args), node.known)
        return node

    # --- matrices

    def inputs(self) -> tuple[Grid, ...]:
        """The inputs that no step computes, except weights that a step says are identities, and the numbers of words."""
        remarks = (identity_factor(s, self.arrays) for s in self.program)
        said = {r.name for r in remarks if r is not None and r.name in WEIGHTS}
        found = []
        for name, array in self.arrays.items():
            if name != "tok" and name not in said:
                found += [replace(g, given=True) for g in self._grids(name, array.shape)]
        return tuple(found)

    def grids(self, s: Statement) -> tuple[Grid, ...]:
        """The followed row of a tensor, where it has more than one, and the whole of it."""
        shape = self.sheet.shape(s.name)
        whole = tuple(self._grids(s.name, shape))
        if len(shape) < 2 or self.query not in s.indices or self.follow is None or s.indices[-1] == self.query:
            return whole
        if s.indices[-2] != self.query:  # a matrix for every query: that of the followed one
            return tuple(self._grids(s.name, shape, {s.indices.index(self.query): self.follow}))
        rows = []
        for g in whole:
            if g.block is None or g.block[0] == 0:
                columns = list(range(g.block[2], g.block[3] + 1)) if g.block is not None else None
                one = self._grid(s.name, g.leading, shape[-2:], [self.follow], columns)
                block = (self.follow, self.follow, *g.block[2:]) if g.block is not None else None
                rows.append(replace(one, row=self.follow, skipped_rows=None, shape=shape[-2:], block=block))
        return (*rows, *whole) if shape[-2] > 1 else tuple(rows)

    def _grids(self, name: str, shape: tuple[int, ...], fixed: Mapping[int, int] | None = None) -> Iterator[Grid]:
        leading = shape[:-2] if len(shape) > 2 else ()
        places = [range(n) if k not in (fixed or {}) else [(fixed or {})[k]] for k, n in enumerate(leading)]
        for k, at in enumerate(cartesian(*places)):
            if k < HEADS or self.page.values:
                yield from self._blocks(name, at, shape[len(leading) :])

    def _blocks(self, name: str, leading: tuple[int, ...], shape: tuple[int, ...]) -> Iterator[Grid]:
        """A matrix with some rows and columns left out, or the whole of it, in blocks that a page has room for."""
        height, width = (1, *shape)[-2:] if shape else (1, 1)
        if not self.page.values or (height <= ROWS and width <= LARGEST):
            yield self._grid(name, leading, shape)
            return
        across = max(1, min(LARGEST, ROOM // (self.digits + 5)))
        for top in range(0, height, ROWS):
            for first in range(0, width, across):
                rows, columns = range(top, min(top + ROWS, height)), range(first, min(first + across, width))
                block = (rows[0], rows[-1], columns[0], columns[-1])
                yield replace(self._grid(name, leading, shape, list(rows), list(columns)), block=block)

    def _grid(
        self,
        name: str,
        leading: tuple[int, ...],
        shape: tuple[int, ...],
        rows: list[int] | None = None,
        columns: list[int] | None = None,
    ) -> Grid:
        height, width = (1, *shape)[-2:] if shape else (1, 1)
        skipped_rows = skipped_columns = None
        if columns is None:
            columns, skipped_columns = self._kept(width)
        if rows is None:
            rows, skipped_rows = self._kept(height)
        cells = tuple(tuple(self.cell(name, (*leading, *((r, c)[2 - len(shape) :]))) for c in columns) for r in rows)
        words = self.axis_words(name)[len(leading) :]
        row_words, column_words = words if len(words) == 2 else [(), *words] if words else [(), ()]
        along = self.axes(name)[-2] if len(shape) == 2 else None
        queries = along is not None and along.is_Symbol and along.name in (self.query.name, "p", "u")
        followed = self.followed(along) if queries and along in self.program.dims else self.follow if queries else None
        return Grid(
            name,
            leading,
            None,
            cells,
            shape,
            skipped_rows,
            skipped_columns,
            tuple(row_words[r] for r in rows) if row_words else (),
            tuple(column_words[c] for c in columns) if column_words else (),
            rows.index(followed) if followed in rows and len(rows) > 1 else None,
        )

    def _kept(self, length: int) -> tuple[list[int], int | None]:
        """The positions that are shown, and after which of them some are left out."""
        if length <= LARGEST or self.page.values:
            return list(range(length)), None
        return [*range(LARGEST - 2), length - 1], LARGEST - 2

    def axis_words(self, name: str) -> list[tuple[str, ...]]:
        """The words along each axis of a tensor; nothing for an axis without words."""
        sizes = self.program.shapes[name]
        keys = [self.axis_key(a, n) for a, n in zip(self.axes(name), sizes, strict=True)]
        return [self.words.get(k, ()) for k in keys]

    def axes(self, name: str) -> tuple[sp.Expr, ...]:
        """The indices of a tensor: those of its statement, or the subscripts (``2*c + 1``) by which an input is first read."""
        if name in self.program:
            return self.program[name].indices
        found = (x for s in self.program for e in (s.expr, s.where) for x in all_reads(e) if name_of(x) == name)
        return subscripts_of(next(found))


def decided(enclosure: Callable[[int], tuple[Fraction, Fraction]], digits: int, what: str) -> str:
    """The decimal of a number that can be enclosed with any number of bits.

    Raises
    ------
    LimitError
        When the number is beyond what can be represented.
    UndecidedError
        When the enclosure does not decide it at the largest precision.
    """
    last: tuple[Fraction, Fraction] | None = None
    for bits in BITS:
        try:
            last = mid, rad = enclosure(bits)
        except UndecidedError:
            continue  # not finite with so few bits
        except LimitError as error:
            raise LimitError(f"the value at {what} is beyond what can be represented: {error}") from None
        found = enclosed_decimal(mid, rad, digits)
        if found is not None:
            return found
    if last is None:
        raise LimitError(f"the value at {what} is beyond what can be represented: no enclosure of it is finite")
    zero = fixed(Fraction(0), digits)
    if {fixed(x, digits).lstrip("-") for x in (last[0] - last[1], last[0] + last[1])} == {zero}:
        return zero  # not told apart from 0, and 0 in every place that is printed
    raise UndecidedError(f"{what}: {digits} decimals are not decided at {BITS[-1]} bits")


def _has_item(node: Node) -> bool:
    return isinstance(node, Item) or any(map(_has_item, children(node)))


def _has_function(node: Node) -> bool:
    return (isinstance(node, Apply) and node.name != "sqrt") or any(map(_has_function, children(node)))
