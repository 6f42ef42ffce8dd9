"""Proof that attention over a paged cache is attention over the keys and values that its table of pages lists."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import sympy as sp

from symattn.algorithms import plain
from symattn.building import start
from symattn.definition import Definition
from symattn.forms.algorithms import block_of
from symattn.indexed import all_reads, name_of, size, subscripts_of, tensor
from symattn.program import Program, Statement
from symattn.theorems.proofs import Part

__all__ = ["looked_up", "paged_parts"]

PUT_IN = "the look-up is put in"


def looked_up(definition: Definition, batch: bool = False) -> Program:
    """The contiguous program of a paged definition, behind two statements that gather its K and V from their pages.

    >>> print(*looked_up(Definition(algorithm="paged", block=4)).statements[:2], sep=chr(10))
    K[j, c] = Kc[page[floor(j/4)], Mod(j, 4), c]
    V[j, e] = Vc[page[floor(j/4)], Mod(j, 4), e]
    """
    at = start(definition, batch).at
    j, width = at["j"], block_of(definition)
    slots = {size("m"): at.size_of("j")}
    program = plain(definition).program(batch)
    gathered = []
    for name, channel in (("K", at["c"]), ("V", at["e"])):
        page = tensor("page", *at.batch_axes, sp.floor(j / width))
        found = tensor(name + "c", *at.key_heads, page, sp.Mod(j, width), channel)
        gathered.append(Statement(at.key(name, channel), found))
    listed = (*gathered, *(s.xreplace(slots) for s in program))
    mine = definition.replace(lse=True).program(batch)
    dims = {**at.dims, **{a: n.xreplace(slots) for a, n in program.dims.items()}}
    shapes = {n: v for n, v in mine.shapes.items() if n in mine.inputs}
    return Program(listed, dims, program.outputs, shapes)


def paged_parts(definition: Definition, program: Program | None = None) -> Iterator[Part]:
    """The steps: statement by statement, the paged list is the contiguous one with the look-up put in."""
    judged = definition.replace(lse=True, **({} if program is not None else {"block": None}))
    own = judged.program() if program is None else program
    reference = looked_up(judged)
    for s in reference:
        if s.name not in ("K", "V"):
            fine = s.name in own and _put_in(s, reference) == own[s.name]
            yield Part(f"{s.name} reads keys and values where the table has them, or no keys", PUT_IN, fine)
    yield Part("the list defines nothing else", "word for word", {s.name for s in own} <= {s.name for s in reference})


def _put_in(s: Statement, program: Program) -> Statement:
    """A statement with K and V as they are gathered."""
    table = {}
    for x in (x for e in (s.expr, s.where) for x in all_reads(e) if name_of(x) in ("K", "V")):
        gathered = program[name_of(x)]
        table[x] = gathered.expr.xreplace(dict(zip(gathered.indices, subscripts_of(x), strict=True)))
    return replace(s, expr=s.expr.xreplace(table), where=s.where.xreplace(table))
