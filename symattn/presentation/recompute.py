"""The list that flash kernels run: nothing of size n times m is kept; the backward recomputes the weights from the log-sum-exp.

Forward: averages divided last (:mod:`symattn.presentation.normalise`), and ``L = m + log(l)`` saved. Backward: the scores once
more, ``P_b = exp(S_b - L)``, ``D = sum_e dO O`` from the saved output. A name with ``_b`` is a forward tensor recomputed in the
backward: another source of rounding than the forward's own, even if a kernel happens to get the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import sympy as sp

from symattn.presentation.driver import refold
from symattn.presentation.listing import in_order
from symattn.presentation.normalise import normalise_last
from symattn.presentation.presented import DROPPED, NOT_APPLICABLE, Presented, Step
from symattn.presentation.proof import changed_names, verdict
from symattn.presentation.saved import Saved, with_lse
from symattn.presentation.softmax import softmaxes
from symattn.program import Program, Statement, Tensor, name_of, reads, subscripts_of, tensor

__all__ = ["recompute"]

_RULE = "recompute"


def recompute(program: Program, presented: Presented, *, steps: list[Step] | None = None) -> Program:
    """Forward and backward as a flash kernel runs them, as one program.

    Parameters
    ----------
    program
        The forward program that was presented.
    presented
        What :func:`symattn.presentation.present` gives for it.
    steps
        A list that takes what was done, or why something was not.

    Returns
    -------
    Program
        Outputs: those of ``program``, then the gradients. The forward statements divide last; the log-sum-exp is the program's
        own statement for it, in its base, or a new one ``L = m + log(l)``; with a sink it includes the sink. Then come, named
        with ``_b``, the scores recomputed, ``P_b = exp(.. - L)`` and, with a sink, ``P0_b = exp(sink - L)``; and the presented
        statements on these, ``D`` read from the output. Rows (projections, outputs, ``L``) are saved and read as they are.
        Without a softmax the presented program is returned with the outputs of ``program`` added.

    Notes
    -----
    The rewritings are proved for all sizes, or checked in balls; one that is neither is not made.
    Source: Dao et al., *FlashAttention*, 2022, algorithm 4; Dao, *FlashAttention-2*, 2023, algorithm 2 (L in place of m and l).
    """
    log: list[Step] = [] if steps is None else steps
    outputs = tuple(dict.fromkeys((*program.outputs, *presented.program.outputs)))
    plain = presented.program.with_statements(presented.program.statements, outputs)
    found = softmaxes(program)
    if not found:
        log.append(Step(_RULE, NOT_APPLICABLE, (), "no exponential is divided by the sum of its kind"))
        return plain
    folded = refold(presented)
    log.extend(folded.steps[len(presented.steps) :])
    forward, saved = with_lse(folded.program.with_statements(program.statements, program.outputs), found)
    old = forward.with_statements((*forward, *folded.derived), outputs)
    copies = _Copies(forward, saved, {n for s in folded.derived for n in (s.name, *s.needs)})
    derived = [copies.read(s) for s in folded.derived]
    new = old.with_statements(in_order((*forward, *copies.made, *derived)))
    once = copies.without_duplicates(new)
    status = verdict(old, once, presented.program.outputs)
    names = changed_names(old.statements, once.statements)
    log.append(Step(_RULE, status, names, "the weights are exponentials of recomputed scores less the saved log-sum-exp"))
    if status == DROPPED:
        return plain
    last = normalise_last(_keeping(forward, new), steps=log)
    whole = last.with_statements((*last, *[s for s in new if s.name not in forward]), outputs)
    return whole.live()


def _keeping(forward: Program, whole: Program) -> Program:
    """The forward program with everything as output that the rest of the whole program reads of it."""
    needed = {n for s in whole if s.name not in forward for n in s.needs if n in forward}
    return forward.with_statements(forward.statements, dict.fromkeys((*forward.outputs, *sorted(needed))))


@dataclass
class _Copies:
    """The statements that recompute forward tensors in the backward, made as they are needed."""

    forward: Program
    saved: tuple[Saved, ...]
    taken: set[str]
    made: list[Statement] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)

    def needed(self, name: str) -> bool:
        """Whether a forward tensor is not saved: it has the size of the weights, or divides by a normaliser without summing."""
        if name not in self.forward:
            return False
        s = self.forward[name]
        if s.scan is not None or (s.over and s.reduce != "sum"):
            return False
        if any(s.target == x.lse for x in self.saved):
            return False
        large = any(set(x.base.weight.indices) <= set(s.indices) for x in self.saved)
        return large or (not s.over and any(x.through(s.expr, self.forward) != s.expr for x in self.saved))

    def read(self, s: Statement) -> Statement:
        """The statement with every tensor that is not saved read by the name of its copy."""
        expr = s.expr
        for x in self.saved:
            expr = x.through(expr, self.forward)
        return replace(s, expr=self._renamed(expr), where=self._renamed(s.where))

    def without_duplicates(self, whole: Program) -> Program:
        """The whole program with every copy that repeats its forward statement word for word read from the forward list instead.

        Repeating a statement changes no value, so the two programs are equal; what is left to prove is the copies that differ.
        """
        back = {copy: name for name, copy in self.names.items()}
        kept: list[Statement] = []
        for s in whole:
            s = replace(s, expr=_with_names(s.expr, back), where=_with_names(s.where, back))
            if s.name in back and replace(s, target=self.forward[back[s.name]].target) == self.forward[back[s.name]]:
                continue
            back.pop(s.name, None)
            kept.append(s)
        return whole.with_statements(in_order(kept))

    def _renamed(self, expr: sp.Basic) -> sp.Basic:
        table: dict[Tensor, Tensor] = {}
        for r in reads(expr):
            if self.needed(name_of(r)):
                table[r] = tensor(self._copy(name_of(r)), *subscripts_of(r))
        return expr.xreplace(table)

    def _copy(self, name: str) -> str:
        if name not in self.names:
            wish = name + "_b"
            while wish in self.taken or wish in self.forward or wish in self.forward.inputs:
                wish += "'"
            s = self.read(self.forward[name])
            self.names[name] = wish
            self.made.append(replace(s, target=tensor(wish, *s.indices)))
        return self.names[name]


def _with_names(expr: sp.Basic, names: dict[str, str]) -> sp.Basic:
    """``expr`` with tensors renamed."""
    return expr.xreplace({r: tensor(names[name_of(r)], *subscripts_of(r)) for r in reads(expr) if name_of(r) in names})
