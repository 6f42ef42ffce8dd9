"""How a rewriting of a list of statements is known to be right: proved for all sizes, or checked in balls at a small size.

**Proof.** Old and new list share some names. Take the values that the old list gives to all its names, and those that the new
list's own helpers then have. If these values satisfy every equation of the new list, they are the values that the new list
gives, since its equations determine them one after the other. So each statement that changed is proved by itself: the tensor,
spelled out by the old equations, equals the new expression, spelled out by the old equations and those of new helpers. Names in
common need not be spelled out, which keeps the proofs small; where that is not enough more of them are. The equations of a scan
determine its tensors step by step; those stay names, and no scan is made, dissolved or turned around.

**Side conditions.** The proof is of formal identities: a divisor is not 0 where its quotient is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import sympy as sp

from symattn.abstraction import abstracted
from symattn.normalform import NormalForm, SumOver
from symattn.presentation.ballcheck import agree
from symattn.presentation.presented import CHECKED, DROPPED, PROVED
from symattn.presentation.products import complements
from symattn.presentation.scalars import replace_reads
from symattn.program import Program, Statement, name_of, reads

__all__ = ["changed_names", "proved", "verdict"]

_STEPS = 4  # from the weights it is that many to the raw scores
_TERMS = 2000  # a proof that needs more is not tried


def changed_names(old: Sequence[Statement], new: Sequence[Statement]) -> tuple[str, ...]:
    """The names whose statements differ between two lists, made or left out included."""
    a, b = {s.name: s for s in old}, {s.name: s for s in new}
    return tuple(n for n in dict.fromkeys((*a, *b)) if a.get(n) != b.get(n))


def _opaque(old: Sequence[Statement], common: frozenset[str], a: Statement, b: Statement) -> Iterator[frozenset[str]]:
    """Which names to leave as they are, from nearly all to the fewest; those far from where ``a`` and ``b`` differ stay names."""
    never = frozenset(s.name for s in old if s.over and s.reduce != "sum") | frozenset(s.name for s in old if s.range_only)
    differ = a.needs ^ b.needs if a.where == b.where else a.needs | b.needs
    near = _near(old, differ)
    yield (common | never) - {a.name}
    yield (common | never) - {a.name, *(differ - never)}
    far = common - near
    yield (frozenset(s.name for s in old if s.over and s.name in common) | never | far) - {a.name}
    powers = [p for s in old for p in s.expr.atoms(sp.Pow) if p.exp.could_extract_minus_sign()]
    yield (never | far | {name_of(x) for p in powers for x in reads(p.base)}) - {a.name}


def _near(old: Sequence[Statement], names: frozenset[str]) -> frozenset[str]:
    """The names that can be reached from ``names`` in a few steps, from a statement to what it reads."""
    by_name = {s.name: s for s in old}
    found, edge = set(names), set(names)
    for _ in range(_STEPS):
        edge = {n for e in edge if e in by_name for n in by_name[e].needs} - found
        found |= edge
    return frozenset(found)


def _defined(s: Statement) -> sp.Expr:
    return SumOver(s.expr, *s.over, where=s.where)


def proved(old: Sequence[Statement], new: Sequence[Statement], program: Program) -> bool:
    """Whether ``new`` gives the values of ``old`` to every name in common, for all sizes.

    Parameters
    ----------
    old, new
        Whole lists of statements, forward ones included.
    program
        Holds the sizes of all indices.

    Returns
    -------
    bool
        False means "not proved", which is not "false".
    """
    both = abstracted([*old, *new], program.dims)
    old, new = both[: len(old)], both[len(old) :]
    before, after = {s.name: s for s in old}, {s.name: s for s in new}
    common = frozenset(before) & frozenset(after)
    everything = [*old, *(s for s in new if s.name not in common)]
    logs = [s for s in everything if not s.over and s.scan is None and s.where == sp.true and s.expr.has(sp.log)]
    everything = [_logarithms_met(s, logs) for s in everything]
    return all(
        _same(_logarithms_met(before[n], logs), _logarithms_met(after[n], logs), everything, common, program)
        for n in sorted(common)
        if before[n] != after[n]
    )


def _logarithms_met(s: Statement, logs: Sequence[Statement]) -> Statement:
    """The statement with logarithms that have a name spelled out inside exponentials, where they cancel."""
    table = {}
    for e in s.expr.atoms(sp.exp):
        inside = e.args[0]
        for t in logs:
            inside = replace_reads(inside, t.target, t.expr)
        if inside != e.args[0]:
            table[e] = sp.exp(sp.expand(inside))
    return replace(s, expr=s.expr.xreplace(table)) if table else s


def _same(a: Statement, b: Statement, everything: list[Statement], common: frozenset[str], program: Program) -> bool:
    if a.indices != b.indices or a.scan != b.scan or any(s.over and s.reduce != "sum" for s in (a, b)):
        return False
    known = complements(everything)
    for opaque in _opaque(everything, common, a, b):
        if NormalForm(everything, program.dims, opaque=opaque, subst=known, limit=_TERMS).equal(_defined(a), _defined(b)):
            return True
    return False


def verdict(old: Program, new: Program, outputs: Sequence[str]) -> str:
    """How a rewriting is known to be right: ``PROVED``, ``CHECKED`` (``outputs`` agree in balls), or ``DROPPED`` (neither)."""
    if proved(old.statements, new.statements, old):
        return PROVED
    return CHECKED if agree(old, new, outputs) else DROPPED
