"""Elements that lines of numbers read by name: each has a line of its own in the step that makes it.

A helper, such as the sum of a softmax, has no matrix on the page. The step that makes it works out its elements for the followed
query; a line elsewhere (of another head, or of a gradient, which sums over queries) may name another of its elements.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from symattn.derivation.document import Line, Step
from symattn.derivation.numbersteps import Item, Node, children
from symattn.derivation.page import how_exact
from symattn.derivation.values import Numbers

Place = tuple[str, tuple[int, ...]]


def introduced(steps: Sequence[Step], numbers: Numbers, helpers: Collection[str]) -> list[Step]:
    """The steps, with a line for every element of a helper that a line names.

    Parameters
    ----------
    steps
        All of them, in order.
    numbers
        What works out an element.
    helpers
        Tensors without a step of their own.

    >>> from symattn.derivation import derive
    >>> page = derive(example="two-words", gradient=True)
    >>> [line.item.index for line in page["P"].lines if line.item.tensor == "l"]
    [(0,)]
    """
    found = {s.number: list(s.lines) for s in steps}
    home = {name: s.number for s in steps for name in s.tensors if name in helpers}
    shown = {(x.item.tensor, x.item.index) for s in steps for x in s.lines}
    waiting = [x for s in steps for x in s.lines]
    more: set[str] = set()
    while waiting:
        for name, index in sorted({p for x in waiting for p in named(x)} - shown):
            if name in home:
                found[home[name]].append(numbers.line(numbers.program[name], index))
                more.add(name)
            shown.add((name, index))
        waiting = [x for lines in found.values() for x in lines if not {*named(x)} <= shown]
    return [_ordered(s, found[s.number]) if more & {*s.tensors} else s for s in steps]


def named(x: Line) -> Iterator[Place]:
    """The elements that a line reads by name."""
    for node in (x.work, x.cell.value, x.approximate):
        if node is not None:
            yield from _items(node)


def _items(node: Node) -> Iterator[Place]:
    if isinstance(node, Item):
        yield node.tensor, node.index
    for child in children(node):
        yield from _items(child)


def _ordered(s: Step, lines: Sequence[Line]) -> Step:
    """The step with these lines: tensors in the order of the step, elements in theirs; a row says how much of it is shown."""
    order = {name: k for k, name in enumerate(s.tensors)}
    placed = sorted(lines, key=lambda x: (order[x.item.tensor], x.item.index))
    lengths = {_row(x): x.row for x in lines if x.row}
    rows = {row: [x for x in placed if _row(x) == row] for row in lengths}
    made = []
    for x in placed:
        row = rows.get(_row(x), [])
        cut = bool(row) and x is row[-1] and len(row) < lengths[_row(x)]
        made.append(replace(x, row=lengths[_row(x)], shown=len(row)) if cut else replace(x, row=0, shown=0))
    return replace(s, lines=tuple(made), numbers=how_exact(made, s.grids))


def _row(x: Line) -> Place:
    """The tensor of a line, and the leading indices of the row that it is in."""
    return x.item.tensor, x.item.index[:-1]
