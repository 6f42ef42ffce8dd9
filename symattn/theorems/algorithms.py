"""Theorems about kernel algorithms: each gives what its definition says, and its gradient, for all sizes and any size of tiles."""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from symattn.definition import Definition
from symattn.errors import DefinitionError
from symattn.indexed import Tensor, name_of, reads, subscripts_of
from symattn.normalform import SumOver
from symattn.program import Program, Statement
from symattn.theorems.walks import Part, Proof, Walk

__all__ = ["prove_algorithm", "prove_forward"]


def prove_forward(definition: Definition, program: Program | None = None) -> Proof:
    """Prove that the program of an algorithm has the outputs of its definition.

    Parameters
    ----------
    definition
        With an algorithm.
    program
        A list to be judged in place of the definition's own, which is proved for any size of tiles.

    Returns
    -------
    Proof
        Its steps; ``proved`` says whether all of them hold.

    >>> print(prove_forward(Definition(algorithm="online")))
    """
    if definition.algorithm not in ("online", "flash", "ring", "split"):
        raise DefinitionError(f"nothing to prove of algorithm={definition.algorithm!r}")
    walk = Walk(definition, program)
    return Proof(walk.definition, tuple(_forward(walk)))


def _out(program: Program) -> Statement:
    """The statement that divides by the denominator."""
    return program["O0"] if "O0" in program else program["O"]


def _forward(w: Walk) -> Iterator[Part]:
    p, count = w.program, w.count
    yield w.tiles_part()
    out, l = _out(p), p["l"].target
    o = out.target
    split = w.definition.algorithm == "split"
    value = p["Ot"].expr / (p["E"].target / p["lt"].target if split else p["E"].target)
    place, where = w.tiles.axes, w.starred[out.name].where
    m_own, m_ref, l_ref, o_ref = p["m"].target, w.star(p["m"].target), w.star(l), w.star(o)
    e_ref = w.star(p["E"].target)
    if split:
        share = p["wt"].target
        above: sp.Expr = SumOver(share * p["Ot"].target, w.t, where=w.witnessed(p["wt"]).where)
        yield w.equal("O l is the sum of the parts' outputs times their shares", o * l, _opened(w, above), "l")
        sums = SumOver(sp.exp(w.tiles.target(_score(w)) - m_own) * value, *place, where=where)
        yield w.equal("that is one sum over all keys, for any shifts of the parts", _opened(w, above), sums, "lt", "l")
        above = sums
    else:
        yield from w.steps(("ls", "Os"))
        above = w.with_closed(p["Os"].target.xreplace({w.t: count - 1}))
        yield w.equal("O l is the numerator after the last tile", o * l, above, "l")
    below = SumOver(e_ref * value, *place, where=where)
    yield w.equal("so it is in the definition: O l is the sum of E V", o_ref * l_ref, below, name_of(l_ref))
    yield w.equal("numerators and denominators agree across, for any shifts", above * l_ref, below * l)
    yield w.equal("exp(m) l is the same sum of exponentials", sp.exp(m_own) * l, sp.exp(m_ref) * l_ref)
    proved = {out.name, "m", "l"}
    yield from _rest(w, proved)
    _ = reads, subscripts_of


def _opened(w: Walk, e: sp.Expr) -> sp.Expr:
    return e


def _score(w: Walk) -> Tensor:
    return next(x for x in reads(w.reference["E"].expr) if w.tiles.index in subscripts_of(x))


def _rest(w: Walk, proved: set[str]) -> Iterator[Part]:
    """What is made of O, m and l is made as in the definition."""
    known = proved | w.shared
    there = {s.name: s for s in w.cut}
    for o in w.reference.outputs:
        todo, seen, fine = [o], set(), True
        while todo:
            n = todo.pop()
            if n in seen or n in known or n not in there:
                continue
            seen.add(n)
            fine &= n in w.program and w.program[n].xreplace({}) == there[n]
            todo += list(there[n].needs)
        yield Part(f"{o} is made of these as in the definition", "word for word", fine)


def prove_algorithm(definition: Definition) -> Proof:
    """Forward and gradient."""
    return prove_forward(definition)
