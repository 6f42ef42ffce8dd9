"""Vectors that a page gives in one way and uses in another: a misprint where they are defined, which no equation shows.

A page that defines its vectors and then writes them out in every formula can print one wrong in its definition, and all of its
equations still hold. It shows when the vector as defined is used nowhere, and one that differs in a single digit is used
again without being defined, in equations that hold.
"""

from __future__ import annotations

from collections.abc import Sequence

from symattn.audit.article import Article
from symattn.audit.findings import Finding
from symattn.audit.language_nodes import Array, Name, Node, names_in
from symattn.audit.outcome import Mark, said_of
from symattn.audit.printed import Printed, verdict
from symattn.audit.provenance import literal_arrays, one_digit, texts_of
from symattn.audit.said import known_as, literals
from symattn.audit.statements import Chain


def strays(article: Article, chains: Sequence[Chain], given: Sequence[Node], bad: Sequence[int], digits: int) -> list[Mark]:
    """Findings on the numbers of definitions that the rest of the page contradicts.

    Parameters
    ----------
    article, chains
        The page.
    given
        The literals that define names and follow from nothing.
    bad
        Where the numbers stand that are not right.
    digits
        Significant digits of exact values.
    """
    definitions = {texts_of(g): g for g in given if isinstance(g, Array)}
    places = {g.start for g in given}
    sides = [s.node for c in chains for s in c.sides if s.node is not None and not any(c.start <= b < c.end for b in bad)]
    used = {texts_of(a) for node in sides for a in literal_arrays(node) if a.start not in places and _is_vector(a)}
    formulas = [s.node for c in chains for k, s in enumerate(c.sides) if s.node and (k or not isinstance(s.node, Name))]
    names = {known_as(n) for node in formulas for n in names_in(node)}
    if not any(t in used for t in definitions):
        return []
    out = []
    for c in chains:
        first, last = c.sides[0].node, c.sides[-1].node
        if last is None or last.start not in places or not isinstance(first, Name) or known_as(first) in names:
            continue
        if not _is_vector(last):
            continue
        texts = texts_of(last)
        if texts in used:
            continue
        meant = [u for u in used if u not in definitions and _nearly(texts, u)]
        if len(meant) == 1:
            out.append(_mark(article, c, last, meant[0], digits))
    return out


def _is_vector(a: Node) -> bool:
    return isinstance(a, Array) and not any(isinstance(x, Array) for x in a.items)


def _nearly(a: Sequence[str], b: Sequence[str]) -> bool:
    differing = [(x, y) for x, y in zip(a, b, strict=False) if x != y]
    return len(a) == len(b) >= 2 and len(differing) == 1 and one_digit(*differing[0])


def _mark(article: Article, chain: Chain, literal: Node, meant: Sequence[str], digits: int) -> Mark:
    x, right = next((x, m) for x, m in zip(literals(literal), meant, strict=True) if x is not None and x.text != m)
    line = article.line(x.node.start)
    name = f"{line}:{article.column(x.node.start)}"
    v = verdict(x.printed(), Printed(right).value, digits=digits)
    note = f"wherever the page uses this vector it has {right}"
    finding = Finding(name, said_of(article, chain.sides[0]), right, v, place=str(line), note=note)
    return Mark(x.node.start, x.node.end, finding)
