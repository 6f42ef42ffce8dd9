"""Where a kernel loads what it reads of memory: once, in the outermost loop in which the place is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import sympy as sp

from symattn.derivation.kernels.loops import Assign, For, Load, Node, walked
from symattn.indexed import Tensor, all_reads, integer_symbols, name_of, reads, subscripts_of

__all__ = ["with_loads"]


def with_loads(body: tuple[Node, ...], own: frozenset[str], discrete: frozenset[str]) -> tuple[Node, ...]:
    """The body with a load of every row of memory in the outermost loop in which its place is known."""
    return _loaded(body, (), own, discrete)


def _loaded(
    body: tuple[Node, ...], loops: tuple[sp.Symbol, ...], own: frozenset[str], discrete: frozenset[str]
) -> tuple[Node, ...]:
    out: list[Node] = []
    for n in body:
        if not isinstance(n, For):
            out.append(n)
            continue
        inner = (*loops, n.index)
        wanted: dict[Tensor, None] = {}
        for node, inside in walked(n.body, inner):
            if isinstance(node, Assign):
                for x in (x for e in (node.expr, node.where) for x in reads(e)):
                    if name_of(x).rstrip("'") not in own and _deepest(x, inside, n.body) == n.index:
                        wanted.setdefault(x)
        inside_body = _loaded(n.body, inner, own, discrete)
        if wanted:
            at = _position(inside_body, wanted)
            inside_body = (*inside_body[:at], Load(tuple(sorted(wanted, key=str))), *inside_body[at:])
        out.append(replace(n, body=inside_body))
    return tuple(out)


def _deepest(x: Tensor, loops: Sequence[sp.Symbol], body: tuple[Node, ...]) -> sp.Symbol | None:
    """The innermost loop that the place of a read depends on; variables in subscripts are assigned in some loop."""
    found = {a for at in subscripts_of(x) for a in integer_symbols(at)}
    for at in subscripts_of(x):
        for y in all_reads(at):
            for n, inside in walked(body):
                if isinstance(n, Assign) and name_of(n.target) == name_of(y):
                    found |= set(inside) or set(loops[-1:])
    return next((a for a in reversed(loops) if a in found), None)


def _position(body: tuple[Node, ...], wanted: Iterable[Tensor]) -> int:
    """Behind the assignments that the places of reads need."""
    needed = {name_of(y) for x in wanted for at in subscripts_of(x) for y in all_reads(at)}
    return max((k + 1 for k, n in enumerate(body) if isinstance(n, Assign) and name_of(n.target) in needed), default=0)
