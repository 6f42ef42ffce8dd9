"""What theorems are about: the program of a definition, what is derived from it, and the parts that its tensors play.

The parts (scores, weights, output) are found in the statements: the score is what the row maximum is taken of, the weights are
what multiplies V. A theorem about a tensor that a program does not have says nothing of it.
"""

from __future__ import annotations

from functools import cached_property

import sympy as sp

from symattn.adjoint import adjoint
from symattn.definition import Definition
from symattn.errors import NotStatedError
from symattn.indexed import Tensor, integer_symbols, name_of, subscripts_of, tensor
from symattn.program import Program, Statement

__all__ = ["ANY_MASK", "GROUPED", "Subject", "gradient_of", "starred"]

GROUPED = {"heads": 4, "kv_heads": 2}
ANY_MASK = {**GROUPED, "attn_mask": "boolean"}
"""Grouped heads and a given mask: what is proved of it holds for every mask and every number of heads."""


class Subject:
    """A definition under study.

    Parameters
    ----------
    definition
        Any definition; the log-sum-exp is among the outputs of :attr:`program` and not among those of :attr:`plain`.

    >>> from symattn.definition import Definition
    >>> s = Subject(Definition(heads=4, kv_heads=2, softcap=20))
    >>> s.score, s.weights, s.row, s.key_index, s.group
    (A[k, g, i, j], P[k, g, i, j], (k, g, i), j, (g,))
    """

    def __init__(self, definition: Definition) -> None:
        self.definition = definition

    @cached_property
    def program(self) -> Program:
        """The forward statements, with the log-sum-exp as a second output."""
        return self.definition.replace(lse=True).program()

    @cached_property
    def plain(self) -> Program:
        """The forward statements of the output alone."""
        return self.definition.replace(lse=False).program()

    def has(self, *names: str) -> bool:
        """Whether the program defines or reads all these tensors."""
        return all(n in self.program or n in self.program.inputs for n in names)

    def need(self, *names: str) -> None:
        """Raise NotStatedError unless the program has these tensors."""
        for n in names:
            if not self.has(n):
                raise NotStatedError(f"this definition has no {n}")

    def read(self, name: str) -> Tensor:
        """A tensor with the indices of its statement, or those with which it is first read."""
        if name in self.program:
            return self.program[name].target
        for s in self.program:
            for x in s.reads:
                if name_of(x) == name and all(a in s.domain for a in subscripts_of(x)):
                    return x
        raise NotStatedError(f"this definition has no {name}")

    def statement(self, name: str) -> Statement:
        """The statement of a tensor; NotStatedError where there is none."""
        if name not in self.program:
            raise NotStatedError(f"this definition has no statement of {name}")
        return self.program[name]

    # ---------------------------------------------------------------- the parts
    @cached_property
    def weights(self) -> Tensor:
        """The normalised weights ``P``."""
        return self.statement("P").target

    @cached_property
    def score(self) -> Tensor:
        """The score that the normaliser sees: what the row maximum is taken of, else the last scores before the weights."""
        for s in self.program:
            if (
                s.range_only
                and s.over
                and s.reduce == "max"
                and isinstance(s.expr, sp.Indexed)
                and s.over == self.weights.indices[-1:]
            ):
                return s.expr
        for name in ("Z", "A", "S", "R"):
            if name in self.program:
                return self.program[name].target
        raise NotStatedError("this definition has no scores")

    @property
    def row(self) -> tuple[sp.Symbol, ...]:
        """The indices of a row of weights: heads and query."""
        return tuple(self.weights.indices[:-1])

    @property
    def query_index(self) -> sp.Symbol:
        """The index of the query."""
        return self.weights.indices[-2]

    @property
    def key_index(self) -> sp.Symbol:
        """The index of the key."""
        return self.weights.indices[-1]

    @cached_property
    def where(self) -> sp.Basic:
        """Which keys a query may see: the conditions of the scores, without those on what they are summed over."""
        s = self.statement(name_of(self.score))
        return sp.And(*[c for c in s.conditions if not integer_symbols(c) & set(s.over)])

    @cached_property
    def group(self) -> tuple[sp.Symbol, ...]:
        """The head indices of queries that keys have not: one key head serves them all."""
        own = subscripts_of(self.read("K"))
        return tuple(a for a in self.row[:-1] if a not in own)

    @cached_property
    def out(self) -> Tensor:
        """The output ``O``."""
        return self.statement("O").target

    @cached_property
    def multiplying(self) -> Tensor:
        """The weights that multiply V: ``P``, or what dropout makes of it."""
        for s in self.program:
            if any(name_of(x) == "V" for x in s.reads) and self.key_index in s.over:
                for x in s.reads:
                    if name_of(x) != "V" and self.key_index in subscripts_of(x):
                        return x
        raise NotStatedError("no statement multiplies weights and V")

    # ---------------------------------------------------------------- what is derived
    @cached_property
    def incoming(self) -> str:
        """The incoming gradient of the output: ``dO``, or ``dY`` after W_O."""
        return "d" + self.plain.outputs[0]

    @cached_property
    def seeds(self) -> dict[str, str]:
        """Output -> name of its incoming gradient, of :attr:`plain`."""
        return {self.plain.outputs[0]: self.incoming}

    def gradient(self, *names: str) -> Program:
        """The forward statements and the gradient by ``names``, with the output alone as output."""
        self.need(*names)
        return adjoint(self.plain, [n for n in dict.fromkeys(("O", *names)) if not (n == "O" and "O" in self.plain.outputs)])

    def fresh(self, name: str) -> str:
        """``name``, or with underscores where the program has one of that name."""
        while self.has(name):
            name += "_"
        return name

    def tensor(self, name: str, *at: sp.Basic) -> Tensor:
        """A new input of a claim; its name is free."""
        return tensor(self.fresh(name), *at)


def gradient_of(x: Tensor) -> Tensor:
    """The gradient with respect to a tensor, at the same place.

    >>> from symattn.indexed import index
    >>> gradient_of(tensor("S", index("i"), index("j")))
    dS[i, j]
    """
    return tensor("d" + name_of(x), *subscripts_of(x))


def starred(x: Tensor) -> Tensor:
    """The tensor of a copy of the program, at the same place.

    >>> from symattn.indexed import index
    >>> starred(tensor("S", index("i"), index("j"))).base
    S*
    """
    return tensor(name_of(x) + "*", *subscripts_of(x))
