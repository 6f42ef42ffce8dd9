"""Proof of ``range_only`` claims: no output depends on the value of the tensor, which is there to keep exponentials in range.

The claimed tensors are taken as inputs, and their gradient is reduced to 0 for all sizes, by facts that the program itself gives.
"""

from __future__ import annotations

from functools import lru_cache

import sympy as sp

from symattn.abstraction import abstracted
from symattn.cancelling import shifts_cancel
from symattn.derivative import Transposed, backward
from symattn.errors import LimitError, NotDifferentiableError, ProofError
from symattn.facts import knowing
from symattn.indexed import Tensor, all_reads, condition_text, conjuncts, name_of, reads, subscripts_of
from symattn.normalform import NormalForm
from symattn.program import Program, Statement

__all__ = ["prove_range_only"]

LONGEST = 8
"""Where more statements than this depend on a claim, a derivative of the outputs would carry too much along."""


def prove_range_only(program: Program) -> None:
    """Prove that the outputs do not depend on the values of the ``range_only`` tensors; nothing to do where there are none.

    Raises
    ------
    ProofError
        When a claim is false, or is not proved; the message names the tensor. A claim that conditions, subscripts or rounding to
        integers depend on is refused as well: a derivative cannot see them.

    Notes
    -----
    Each claimed tensor becomes an input. Where it only scales or shifts what depends on it, it is seen to cancel, in scans too
    (:mod:`symattn.cancelling`); else the output's derivative in it is shown to be 0 for all sizes by the normal form of sums of
    products. Where an output is infinite (the log-sum-exp of a row that keeps no key) its incoming gradient counts as 0.

    >>> from symattn.indexed import indices, size, tensor
    >>> i, j = indices("i j")
    >>> x, m, l = tensor("x", i, j), tensor("m", i), tensor("l", i)
    >>> def lse(expr):
    ...     top = Statement(m, x, (j,), "max", range_only=True)
    ...     total = Statement(l, sp.exp(x - m), (j,))
    ...     return Program((top, total, Statement(tensor("L", i), expr)), {i: size("n"), j: size("m")}, ("L",))
    >>> prove_range_only(lse(m + sp.log(l)))
    >>> prove_range_only(lse(sp.log(l)))
    Traceback (most recent call last):
    ...
    symattn.errors.ProofError: m is range_only, but the outputs are not proved to be independent of its value
    """
    _prove(program)


@lru_cache(maxsize=256)
def _prove(program: Program) -> None:
    claimed = [s for s in program if s.range_only]
    if not claimed:
        return
    names = {s.name for s in claimed}
    for n in program.outputs:
        if n in names:
            raise ProofError(f"{n} is range_only, but it is an output")
    cut = program.with_statements(s for s in program if not s.range_only)
    read = [s for s in claimed if s.name in cut.inputs]
    long = len(cut) - len(_independent(cut, {s.name for s in read})) > LONGEST
    long |= len(read) > 1 or any(s.scan is not None or _hidden(s) for s in cut) or _nested(program, names)
    if long and shifts_cancel(cut, {s.name for s in read}):
        return
    for s in read:
        _refuse_hidden(s, cut)
    try:
        todo = _derived(program, [s.name for s in read])
    except NotDifferentiableError as error:
        raise ProofError(f"range_only cannot be proved: {error}") from error
    free = _independent(cut, {s.name for s in read})
    for s in read:
        if not any(
            _vanishes(knowing(p, g.program, g.seeds, frozen=f, limit=limit), g.program[g.gradients[s.name]].target)
            for (p, g), limit in zip(todo, (20_000, 100), strict=False)
            for f in (free, ())
        ):
            raise ProofError(
                f"{s.name} is range_only, but the outputs are not proved to be independent of its value{_advice(program)}"
            )


def _nested(program: Program, claimed: set[str]) -> bool:
    """Whether one claim is made of others: a maximum of log-sum-exps, each with a maximum of its own."""
    live: set[str] = set()
    for s in program:
        if s.range_only and s.needs & live - claimed:
            return True
        if s.needs & (claimed | live):
            live.add(s.name)
    return False


def _advice(program: Program) -> str:
    """What can be done about it: the conditions that may be too hard for a proof, and how to give them otherwise."""
    hard = {c for s in program for c in conjuncts(s.where) if isinstance(c, (sp.And, sp.Or, sp.Not)) or c.atoms(sp.Function)}
    if not hard:
        return ""
    return (
        ". A gradient needs this proof, a value does not. What stands in its way may be the condition "
        + "; ".join(sorted(condition_text(c) for c in hard))
        + ": write it as comparisons joined by 'and', or give the mask as a boolean array"
    )


def _derived(program: Program, claimed: list[str]) -> list[tuple[Program, Transposed]]:
    """The program and its gradient by the claimed tensors: first with long conditions held as one, then as it is."""
    short = abstracted(program, program.dims)
    todo = [program] if short == program.statements else [program.with_statements(short), program]
    return [(p, backward(p.with_statements(s for s in p if not s.range_only), claimed)) for p in todo]


def _vanishes(form: NormalForm, target: Tensor) -> bool:
    try:
        return form.is_zero(target)
    except LimitError:
        return False


def _independent(cut: Program, claimed: set[str]) -> frozenset[str]:
    """The statements that read no claimed tensor, directly or through others: most proofs need not know what they hold."""
    live = set(claimed)
    for s in cut:
        if s.needs & live:
            live.add(s.name)
    return frozenset(s.name for s in cut if s.name not in live)


def _refuse_hidden(claim: Statement, cut: Program) -> None:
    """A claim that something not differentiable depends on: a condition, a subscript, a sign, a rounding to integers."""
    live = {claim.name}
    for s in cut:
        hidden = _hidden(s)
        if hidden & live:
            raise ProofError(
                f"{claim.name} is range_only, but {s.name} reads {', '.join(sorted(hidden & live))} in a condition or subscript"
            )
        if any(name_of(x) in live for x in s.reads):
            live.add(s.name)


def _hidden(s: Statement) -> set[str]:
    """What a statement reads where a derivative does not see it."""
    hidden = {name_of(x) for x in all_reads(s.where)}
    hidden |= {name_of(y) for x in reads(s.expr) for a in subscripts_of(x) for y in all_reads(a)}
    flat = s.expr.atoms(sp.sign, sp.floor, sp.ceiling, sp.Heaviside, sp.Piecewise)
    return hidden | {name_of(x) for f in flat for x in all_reads(f)}
