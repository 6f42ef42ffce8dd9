"""How a claim of two equal tensors is decided: by the normal form for all sizes, by a counterexample, or entry by entry.

The order is that of what can be said: a proof for all sizes; the same where no query is without keys; exact numbers for which
the sides differ; a proof at small sizes. What none of them settles is open, which is never false.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import sympy as sp

from symattn.claims import prove_range_only
from symattn.conditions import Exists
from symattn.errors import LimitError, ProgramError, SymattnError
from symattn.facts import knowing
from symattn.indexed import integer_symbols, name_of, reads, subscripts_of, tensor
from symattn.normalform import NormalForm, Support
from symattn.program import Program, Statement
from symattn.theorems.claim import ALL, OPEN, PROVED, REFUTED, Decision, Equal, upto
from symattn.theorems.duality import called
from symattn.theorems.entrywise import equal_entries

__all__ = ["NO_EMPTY_ROW", "decide", "proved_for_all_sizes"]

NO_EMPTY_ROW = "no query is without keys"
LIMIT = 500
"""The greatest number of terms of a claim; the theorems here have fewer than fifty."""
FEW = 50
"""The same for one statement beside its copy."""


def decide(claim: Equal) -> Decision:
    """What is known of ``claim``; see :class:`symattn.theorems.claim.Equal`."""
    side = proved_for_all_sizes(claim)
    if side is not None:
        return Decision(PROVED, _method(claim), ALL, side)
    found = claim.counterexample()
    if found is not None:
        return Decision(REFUTED, "exact values", counterexample=found)
    largest = equal_entries(claim)
    if largest:
        return Decision(PROVED, "entry by entry, exponentials as positive symbols", upto(largest))
    return Decision(OPEN, "neither the normal form nor small sizes settle it")


def _method(claim: Equal) -> str:
    if claim.by:
        return claim.by
    if claim.steps or claim.pairs:
        return "normal form, stepwise"
    return "normal form"


def proved_for_all_sizes(claim: Equal) -> str | None:
    """The side condition ("" for none) under which the normal form proves the claim for all sizes; None where it does not."""
    try:
        program, forward = _stepped(claim)
        program, forward, names = _identified(program, forward, claim)
    except (SymattnError, KeyError):
        return None
    left, right = names.get(claim.left, claim.left), names.get(claim.right, claim.right)
    if left == right:
        return ""
    target = program[left].target
    difference = target - tensor(right, *program[left].indices)
    if len(program[right].indices) != len(program[left].indices):
        raise ProgramError(f"{claim.left} and {claim.right} have not the same number of indices")
    for side in ("", NO_EMPTY_ROW):
        if any(_vanishes(_form(program, forward, claim, o, side), difference) for o in claim.opaque):
            return side
    return None


def _form(program: Program, forward: Program, claim: Equal, opaque: frozenset[str] | None, side: str) -> NormalForm:
    form = knowing(forward, program, dict(claim.seeds), opaque, limit=LIMIT)
    if side:
        form.support = {
            n: Support(s.at, tuple(c for c in s.conditions if not isinstance(c, Exists))) for n, s in form.support.items()
        }
    return form


def _vanishes(form: NormalForm, e: sp.Expr) -> bool:
    try:
        return form.is_zero(e)
    except LimitError:
        return False


# ---------------------------------------------------------------- steps: one statement in the place of another
def _stepped(claim: Equal) -> tuple[Program, Program]:
    """Program and forward list with the steps of the claim taken; ProgramError where one is not proved."""
    program, forward = claim.program, claim.forward or claim.program
    taken: dict[str, Statement] = {}
    for step in claim.steps:
        old = program[step.name]
        if old.range_only:
            prove_range_only(forward)
        elif not _replaces(step, reindexed(old, taken, claim.bijections), program, forward):
            raise ProgramError(f"{step} is not proved")
        taken[step.name] = step
        program, forward = (p.with_statements([step if s.name == step.name else s for s in p]) for p in (program, forward))
    return program, forward


def _replaces(step: Statement, old: Statement, program: Program, forward: Program) -> bool:
    new = replace(step, target=tensor(old.name + "?", *old.indices))
    both = program.with_statements([x for s in program for x in ((old, new) if s.name == old.name else (s,))])
    known = forward.with_statements([old if s.name == old.name else s for s in forward])
    return _same(old.name, new.name, both, known)


def reindexed(s: Statement, taken: Mapping[str, Statement], bijections: frozenset[str]) -> Statement:
    """The statement with its bound index ``j`` for ``pi[j]``: ``pi`` is a bijection of its range, ``j`` occurs in no other way.

    Sums, products and maxima do not change when their index runs through the same values in another order. Tensors that are known
    to be others at ``pi[j]`` are written out first.
    """
    table = {}
    for x in (*reads(s.expr), *reads(s.where)):
        if name_of(x) in taken and not taken[name_of(x)].over:
            step = taken[name_of(x)]
            table[x] = step.expr.xreplace(dict(zip(step.indices, subscripts_of(x), strict=True)))
    out = s.xreplace(table)
    for j in s.over:
        for name in bijections:
            held = sp.Dummy(integer=True)
            moved = out.xreplace({tensor(name, j): held})
            if not (integer_symbols(moved.expr) | integer_symbols(moved.where)) & {j}:
                out = moved.xreplace({held: j})
    return out


# ---------------------------------------------------------------- pairs: tensors shown to be equal one after the other
def _identified(program: Program, forward: Program, claim: Equal) -> tuple[Program, Program, dict[str, str]]:
    """The lists with every pair that is proved equal made one tensor; pairs that are not are left as they are."""
    names: dict[str, str] = {}
    for a, b in claim.pairs:
        if a not in program or b not in program:
            continue
        if _alike(program[a], program[b]) or _same(a, b, program, forward):
            names[a] = b
            program, forward = (_without(p, a, b) for p in (program, forward))
    return program, forward, names


def _without(program: Program, a: str, b: str) -> Program:
    kept = [called(s, {a: b}) for s in program if s.name != a]
    outputs = tuple(dict.fromkeys(b if o == a else o for o in program.outputs if o != a or b in program))
    return program.with_statements(kept, outputs)


def _alike(s: Statement, t: Statement) -> bool:
    """The same statement under two names."""
    return (s.indices, s.expr, s.over, s.reduce, s.where) == (t.indices, t.expr, t.over, t.reduce, t.where)


def _same(a: str, b: str, program: Program, forward: Program) -> bool:
    """Whether the normal form shows two tensors to be equal from what their own statements say."""
    left, right = program[a], program[b]
    if len(left.indices) != len(right.indices) or {left.reduce, right.reduce} != {"sum"}:
        return False
    if left.range_only or right.range_only:
        return False
    difference = tensor(a, *left.indices) - tensor(b, *left.indices)
    every = frozenset(s.name for s in program)
    tried: Iterable[frozenset[str] | None] = (every - {a, b}, None, frozenset())
    return any(_vanishes(knowing(forward, program, None, o, limit=FEW), difference) for o in tried)
