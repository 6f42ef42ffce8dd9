"""What a page leaves out of a formula: a factor in the softmax, or the axis along which it goes, with which its digits hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from symattn.audit.arrays import shape
from symattn.audit.article import Article
from symattn.audit.findings import Alternative
from symattn.audit.language_nodes import Apply, Array, Name, Node, Number, apply
from symattn.audit.links import Run
from symattn.audit.outcome import Outcome, said_of
from symattn.audit.said import Page, evaluated
from symattn.audit.statements import Chain
from symattn.errors import SymattnError

Rewriting = Callable[[Apply], Node]
NOWHERE = -1
"""The place of numbers that are not in the text."""


def unstated(article: Article, page: Page, chain: Chain, outcome: Outcome) -> list[Alternative]:
    """The readings of a chain that is wrong as it stands under which all of its numbers are right.

    Parameters
    ----------
    article, page, chain
        As for the check.
    outcome
        Of the check.
    """
    wrong = [m for m in outcome.marks if m.finding.verdict.wrong]
    softmax = next((n for s in chain.sides if s.node is not None for n in _softmaxes(s.node)), None)
    if len(wrong) < 2 or softmax is None:
        return []
    found = []
    for title, rewriting in _rewritings(page, softmax):
        sides = (s if s.node is None else replace(s, node=_rewritten(s.node, rewriting)) for s in chain.sides)
        try:
            again = Run(article, page, replace(chain, sides=tuple(sides)), 20).outcome()
        except SymattnError:
            continue
        n = len(again.marks)
        if n >= len(outcome.marks) and all(m.finding.verdict.correct for m in again.marks):
            found.append(Alternative(title, (said_of(article, chain.sides[0]),), n, False))
    return found[:1]


def _softmaxes(node: Node) -> Iterator[Apply]:
    if isinstance(node, Apply) and node.op == "call:softmax":
        yield node
    for part in node.items if isinstance(node, Array) else node.args if isinstance(node, Apply) else ():
        yield from _softmaxes(part)


def _rewritings(page: Page, softmax: Apply) -> Iterator[tuple[str, Rewriting]]:
    """The readings that are tried, the usual ones first."""
    widths = []
    for node in (Name("K", NOWHERE, NOWHERE), Name("Q", NOWHERE, NOWHERE), softmax.args[0]):
        try:
            widths += list(shape(evaluated(page, node, {}).printed))[-1:]
        except SymattnError:
            continue
    for d in dict.fromkeys(widths):
        yield f"a factor 1/√{d} in the softmax", partial(_scaled, op="divide", by=_root(d))
    for d in dict.fromkeys((2, 4, 8, *widths)):
        yield f"a factor 1/{d} in the softmax", partial(_scaled, op="divide", by=_whole(d))
    for d in dict.fromkeys((4, *widths)):
        yield f"a factor √{d} in the softmax", partial(_scaled, op="times", by=_root(d))
    yield "a softmax of columns", lambda node: replace(node, op="call:softmax_columns")


def _scaled(node: Apply, op: str, by: Node) -> Node:
    """The softmax of its argument times or by a number."""
    argument = apply(op, (node.args[0], by), node.args[0].start, node.args[0].end)
    return replace(node, args=(argument, *node.args[1:]))


def _whole(d: int) -> Node:
    return Number(str(d), NOWHERE, NOWHERE)


def _root(d: int) -> Node:
    return apply("call:sqrt", (_whole(d),), NOWHERE, NOWHERE)


def _rewritten(node: Node, rewriting: Rewriting) -> Node:
    if isinstance(node, Array):
        return replace(node, items=tuple(_rewritten(x, rewriting) for x in node.items))
    if not isinstance(node, Apply):
        return node
    inner = replace(node, args=tuple(_rewritten(x, rewriting) for x in node.args))
    return rewriting(inner) if inner.op == "call:softmax" else inner
