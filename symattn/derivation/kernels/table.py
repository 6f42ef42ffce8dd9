"""The kernels that are derived, a row each: its algorithm, the theorem that proves it, and faults that are to be refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import sympy as sp

from symattn.errors import UnknownNameError, nearest
from symattn.indexed import name_of, reads
from symattn.program import Program, Statement

__all__ = ["KERNELS", "Fault", "Row", "get"]


@dataclass(frozen=True)
class Fault:
    """A kernel that is wrong: what was done to it in words, the statement, and what stands there instead."""

    says: str
    name: str
    change: Callable[[Statement], sp.Expr]

    def planted(self, program: Program) -> Program | None:
        """The program with the fault; None where it has no such statement."""
        if self.name not in program:
            return None
        wrong = self.change(program[self.name])
        if wrong == program[self.name].expr:
            return None
        return program.with_statements([replace(s, expr=wrong) if s.name == self.name else s for s in program])


@dataclass(frozen=True)
class Row:
    """A kernel.

    Parameters
    ----------
    name, title
        As on the command line; as a heading.
    idea
        What it is about, in a sentence or two.
    algorithm
        The value of the field ``algorithm``.
    theorem
        The row of :mod:`symattn.theorems` that says that it is right.
    forward, backward
        Which of its lists are shown.
    source
        Where it was published.
    faults
        Wrong kernels that the proof must refuse, of the forward and of the backward list.
    """

    name: str
    title: str
    idea: str
    algorithm: str
    theorem: str
    source: str
    forward: bool = True
    backward: bool = False
    faults: tuple[Fault, ...] = ()


def _upside_down(s: Statement) -> sp.Expr:
    return 1 / s.expr


def _plain_mean(_: Statement) -> sp.Expr:
    return sp.S.One


def _row_sum_left_out(s: Statement) -> sp.Expr:
    return s.expr.xreplace({x: sp.S.Zero for x in reads(s.expr) if name_of(x) == "D"})


RESCALED = Fault("The factor that brings older sums to the new maximum is turned upside down", "rs", _upside_down)
MEAN = Fault("The parts are merged with equal shares and not with those of their log-sum-exps", "wt", _plain_mean)
NO_ROW_SUM = tuple(
    Fault("The row sum D is left out of the gradient of the scores", name, _row_sum_left_out) for name in ("dS", "dZ", "dA", "dR")
)
"""The first statement of these that reads D is the gradient of what the softmax is taken of."""

KERNELS: Mapping[str, Row] = {
    r.name: r
    for r in (
        Row(
            "online-softmax",
            "Online softmax",
            "One pass over the keys: a running maximum, and sums that are rescaled when it grows. "
            "Nothing that is as long as a row of scores is kept.",
            "online",
            "online-program",
            "Milakov and Gimelshein, Online normalizer calculation for softmax, arXiv 1805.02867, algorithm 3",
            faults=(RESCALED,),
        ),
        Row(
            "flash-forward",
            "Flash attention, forward",
            "The keys come in tiles that fit on the chip. Weights exist for one tile at a time; "
            "what is kept of a row is a maximum, a sum and an output.",
            "flash",
            "flash-forward",
            "Dao et al., FlashAttention, arXiv 2205.14135, algorithm 1; Dao, FlashAttention-2, arXiv 2307.08691, algorithm 1",
            faults=(RESCALED,),
        ),
        Row(
            "flash-backward",
            "Flash attention, backward",
            "The weights of a tile are found again from the log-sum-exp of their row, and the row sum D from the output: "
            "nothing of the size of the weights is read or written.",
            "flash",
            "flash-backward",
            "Dao et al., FlashAttention, arXiv 2205.14135, algorithm 4; Dao, FlashAttention-2, arXiv 2307.08691, algorithm 2",
            forward=False,
            backward=True,
            faults=NO_ROW_SUM,
        ),
        Row(
            "split-k",
            "Split keys, merged",
            "Every part of the keys gives an output and a log-sum-exp of its own, independently of the others; "
            "the outputs are averaged with the exponentials of the log-sum-exps.",
            "split",
            "split-program",
            "Flash-Decoding, pytorch.org/blog/flash-decoding, 2023; Rabe and Staats, arXiv 2112.05682, section 2",
            faults=(MEAN,),
        ),
        Row(
            "ring",
            "Ring attention",
            "Keys and values are spread over devices in shards that go round; each device keeps the running sums of its queries. "
            "Backward, each shard uses the log-sum-exp of the whole row.",
            "ring",
            "ring-program",
            "Liu et al., Ring Attention, arXiv 2310.01889, section 3, algorithm 1",
            backward=True,
            faults=(RESCALED, *NO_ROW_SUM),
        ),
    )
}
"""Name -> kernel."""


def get(name: str) -> Row:
    """A kernel by its name.

    Raises
    ------
    UnknownNameError
        When there is none of this name.

    >>> get("ring").theorem
    'ring-program'
    """
    if name not in KERNELS:
        raise UnknownNameError(f"no kernel is called {name!r}. {nearest(name, KERNELS)}")
    return KERNELS[name]
