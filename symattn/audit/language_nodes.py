"""Formulas as trees: numbers as printed, names, arrays, and operations on them, each with its place in the text.

Nothing here has a value yet: :mod:`symattn.audit.evaluate` gives one. A tree knows how deep it is, so that no text leads to an
endless recursion.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from symattn.errors import LimitError

DEEPEST = 60
"""Operations inside of operations."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it is printed, without a sign.

    Attributes
    ----------
    text
        What is printed: ``0.1908``, ``2.``, ``6.3e-02``, without a percent sign or an ellipsis.
    start, end
        Its place in the text, signs before it not included.
    percent
        Whether a percent sign follows: it says ``text / 100``.
    cut
        Whether an ellipsis follows directly: further digits are left out.
    """

    text: str
    start: int
    end: int
    percent: bool = False
    cut: bool = False
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Name:
    """A name: ``Q``, ``W_Q``, ``raw scores``; ``index`` are the whole numbers of its subscript, counted as the page does."""

    text: str
    start: int
    end: int
    index: tuple[int, ...] = ()
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Gap:
    """An ellipsis among the elements of an array or the terms of a sum: something is left out there."""

    start: int
    end: int
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Array:
    """A vector, or a matrix as a vector of its rows; ``column`` where it was written as a column of one entry a row."""

    items: tuple[Node, ...]
    start: int
    end: int
    depth: int = field(default=0)


@dataclass(frozen=True, slots=True)
class Apply:
    """An operation or a function: ``op`` is ``sum``, ``neg``, ``times``, ``dot``, ``call:softmax`` ... of ``args``."""

    op: str
    args: tuple[Node, ...]
    start: int
    end: int
    depth: int = 0
    options: tuple[tuple[str, Node], ...] = ()


Node: TypeAlias = Number | Name | Gap | Array | Apply


def apply(op: str, args: tuple[Node, ...], start: int, end: int, options: tuple[tuple[str, Node], ...] = ()) -> Apply:
    """An operation on nodes.

    Raises
    ------
    LimitError
        When it would be nested too deeply.
    """
    return Apply(op, args, start, end, _deeper(args), options)


def array(items: tuple[Node, ...], start: int, end: int) -> Array:
    """An array of nodes.

    Raises
    ------
    LimitError
        When it would be nested too deeply.
    """
    return Array(items, start, end, _deeper(items))


def _deeper(nodes: tuple[Node, ...]) -> int:
    depth = 1 + max((n.depth for n in nodes), default=0)
    if depth > DEEPEST:
        raise LimitError(f"a formula is nested more than {DEEPEST} operations deep; write it in several steps")
    return depth


def is_number(node: Node) -> bool:
    """Whether a node is a printed number, a sign before it allowed.

    >>> is_number(Number("1", 0, 1)), is_number(Apply("neg", (Number("1", 1, 2),), 0, 2, 1)), is_number(Name("x", 0, 1))
    (True, True, False)
    """
    return isinstance(node, Number) or (isinstance(node, Apply) and node.op == "neg" and isinstance(node.args[0], Number))


def is_literal(node: Node) -> bool:
    """Whether a node is a printed number or an array of nothing but printed numbers (and ellipses)."""
    if isinstance(node, Array):
        return all(isinstance(x, Gap) or is_literal(x) for x in node.items)
    return is_number(node)


def numbers(node: Node) -> list[Number]:
    """All printed numbers of a node, in order."""
    if isinstance(node, Number):
        return [node]
    parts = node.items if isinstance(node, Array) else node.args if isinstance(node, Apply) else ()
    return [n for p in parts for n in numbers(p)]


def names_in(node: Node) -> list[Name]:
    """All names of a node, in order."""
    if isinstance(node, Name):
        return [node]
    parts = node.items if isinstance(node, Array) else node.args if isinstance(node, Apply) else ()
    return [n for p in parts for n in names_in(p)]


def parts_of(node: Node, op: str) -> list[Apply]:
    """All operations of one kind in a node, outermost first."""
    parts = node.items if isinstance(node, Array) else node.args if isinstance(node, Apply) else ()
    inner = [n for p in parts for n in parts_of(p, op)]
    return [node, *inner] if isinstance(node, Apply) and node.op == op else inner


def key(node: Node) -> str:
    r"""A text that is the same for formulas that are written alike, whatever the blanks, fonts and brackets.

    >>> from symattn.audit.language import parse
    >>> key(parse(r"\mathbf{Q} K^{\top}")) == key(parse("QKᵀ"))
    True
    """
    if isinstance(node, Number):
        return node.text + "%" * node.percent
    if isinstance(node, Name):
        return node.text + ("_" + ",".join(map(str, node.index)) if node.index else "")
    if isinstance(node, Gap):
        return "..."
    if isinstance(node, Array):
        return "[" + ",".join(map(key, node.items)) + "]"
    options = "".join(f";{k}={key(v)}" for k, v in node.options)
    return f"{node.op}({','.join(map(key, node.args))}{options})"
