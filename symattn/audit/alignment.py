"""Two sides of an equality laid side by side: which printed number stands for which part of the other side.

``2 + 0 + 3`` after ``1×2 + 0×5 + 3×1`` prints the three products; ``2.718 / (2.718 + 7.389)`` after ``e^1 / (e^1 + e^2)``
prints the exponentials; ``1×2 + 0×5`` after ``[1, 0] · [2, 5]`` repeats the elements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from symattn.audit.language_nodes import Apply, Array, Name, Node, apply, is_literal, is_number

PRODUCTS = frozenset({"times", "dot", "star", "juxtaposed", "matmul", "hadamard"})


@dataclass(frozen=True, slots=True)
class Pair:
    """A printed literal and the formula that it is printed for; ``repeats`` where it must be the very same number."""

    printed: Node
    stands_for: Node
    repeats: bool = False


Written = Callable[[Name], Node | None]
"""The vector by which the page defines a name; None where it does not."""


def aligned(before: Node, after: Node, written: Written = lambda name: None) -> list[Pair] | None:
    """The pairs of two sides; None where the sides are not built alike.

    Parameters
    ----------
    before, after
        The sides.
    written
        The vectors of names.

    >>> from symattn.audit.language import parse
    >>> from symattn.audit.language_nodes import key
    >>> def pairs(a, b):
    ...     return [(key(p.printed), key(p.stands_for)) for p in aligned(parse(a), parse(b)) or ()]
    >>> pairs("1 × 2 + 0 × 5", "2 + 0")
    [('2', 'times(1,2)'), ('0', 'times(0,5)')]
    >>> pairs("[1, 0] · [2, 5]", "1 × 2 + 0 × 5")
    [('1', '1'), ('2', '2'), ('0', '0'), ('5', '5')]
    """
    before, after = plain(before), plain(after)
    if is_literal(after):
        return [Pair(after, before)]
    expanded = _expanded(before, after, written)
    if expanded is not None:
        return expanded
    if isinstance(before, Array) and isinstance(after, Array):
        return _together(before.items, after.items, written)
    if not (isinstance(before, Apply) and isinstance(after, Apply)):
        return [] if before == after else None
    alike = before.op == after.op or {before.op, after.op} <= PRODUCTS
    if not alike or len(before.args) != len(after.args) or before.options != after.options:
        return None
    return _together(before.args, after.args, written)


def _together(before: tuple[Node, ...], after: tuple[Node, ...], written: Written) -> list[Pair] | None:
    if len(before) != len(after):
        return None
    out: list[Pair] = []
    for a, b in zip(before, after, strict=True):
        found = aligned(a, b, written)
        if found is None:
            return None
        out += found
    return out


def plain(node: Node) -> Node:
    """A formula without the brackets around it."""
    while isinstance(node, Apply) and node.op in ("group", "braced"):
        node = node.args[0]
    return node


def terms(node: Node) -> tuple[Node, ...]:
    """The terms of a sum; of anything else that itself."""
    node = plain(node)
    return node.args if isinstance(node, Apply) and node.op == "sum" else (node,)


def _expanded(before: Node, after: Node, written: Written) -> list[Pair] | None:
    """A scalar product of two written vectors, and its terms."""
    if not (isinstance(before, Apply) and before.op in PRODUCTS and len(before.args) == 2):
        return None
    left, right = (written(x) or x if isinstance(x, Name) else x for x in map(_untransposed, before.args))
    found = [_factors(t) for t in terms(after)]
    if not (isinstance(left, Array) and isinstance(right, Array)) or any(f is None for f in found):
        return None
    if not len(left.items) == len(right.items) == len(found) or not (is_literal(left) and is_literal(right)):
        return None
    if any(isinstance(x, Array) for x in (*left.items, *right.items)):
        return None
    out: list[Pair] = []
    for x, y, factors in zip(left.items, right.items, found, strict=True):
        assert factors is not None
        out += [Pair(factors[0], x, repeats=True), Pair(factors[1], y, repeats=True)]
    return out


def _untransposed(node: Node) -> Node:
    """A vector without the sign of a transpose: `q kᵀ` is `q · k`."""
    node = plain(node)
    return plain(node.args[0]) if isinstance(node, Apply) and node.op == "transpose" else node


def _factors(term: Node) -> tuple[Node, Node] | None:
    """The two numbers of a product."""
    term = plain(term)
    if isinstance(term, Apply) and term.op == "neg" and isinstance(term.args[0], Apply):  # -(2 × 3) is (-2) × 3
        inner = _factors(term.args[0])
        return inner and (apply("neg", (inner[0],), term.start, inner[0].end), inner[1])
    if not (isinstance(term, Apply) and term.op in PRODUCTS and len(term.args) == 2):
        return None
    a, b = map(plain, term.args)
    return (a, b) if is_number(a) and is_number(b) else None
