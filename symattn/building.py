"""From a definition to its program: the builder that forms and stages add their statements to.

Statements that would be copies are left out (no ``S`` where the scale is 1), and every statement over (i, j) carries the
condition of :mod:`symattn.keep`, so that nothing is ever evaluated for a key that is masked out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import sympy as sp

from symattn.errors import DefinitionError
from symattn.fields import BY_LETTER
from symattn.indexed import Tensor, size, tensor
from symattn.keep import keep
from symattn.letters import Letters
from symattn.program import Program, Statement

if TYPE_CHECKING:
    from symattn.definition import Definition


@dataclass(frozen=True)
class Parameters:
    """What stands for each parameter in the statements: its number, a scalar input, or an input with a value per head."""

    d: Definition
    at: Letters

    def scalar(self, name: str, per_batch: bool = False) -> sp.Expr:
        """The number or the scalar input (one per batch entry where ``per_batch``) of a parameter."""
        value = self.d.params.get(name)
        if isinstance(value, Fraction):
            return sp.Rational(value.numerator, value.denominator)
        return self.at.per_batch(name) if per_batch else tensor(name)

    def number(self, value: Fraction | str) -> sp.Expr:
        """A field that holds a number or the name of a parameter."""
        return self.scalar(value) if isinstance(value, str) else sp.Rational(value.numerator, value.denominator)

    def bind(self, expr: sp.Basic) -> sp.Basic:
        """An expression with every parameter replaced by what stands for it."""
        table: dict[sp.Basic, sp.Basic] = {}
        for name in self.d.parameters:
            value = self.d.params.get(name)
            per_head = value == "head" or isinstance(value, tuple)
            if name == self.d.prefix:
                table[tensor(name)] = self.scalar(name, per_batch=True)
            else:
                table[tensor(name)] = self.at.per_head(name) if per_head else self.scalar(name)
        return expr.xreplace(table)


@dataclass
class Builder:
    """What a form adds its statements to.

    ``d`` is the definition, ``at`` the indices and axes of its tensors, ``where`` the condition under which query i attends to
    key j. ``query``, ``key`` and ``value`` are the names of the tensors that stand for Q, K and V at this point: a stage that
    changes them (a rotation, a norm) adds statements for a new tensor and puts its name there.
    """

    d: Definition
    at: Letters
    parameters: Parameters
    where: sp.Basic
    statements: list[Statement] = field(default_factory=list)
    shapes: dict[str, tuple[sp.Expr, ...]] = field(default_factory=dict)
    query: str = "Q"
    key: str = "K"
    value: str = "V"
    raw: Tensor | None = None
    """Raw scores that a form has made itself, in place of the similarity of queries and keys."""
    width: sp.Expr = field(default_factory=lambda: size("d"))
    """The number of channels that a score is a sum over: the scale is one over its root."""

    def add(
        self, target: Tensor, expr: Any, *over: sp.Symbol, where: sp.Basic = sp.true, reduce: str = "sum", **marks: Any
    ) -> Tensor:
        """Add a statement, once where two stages need it; its target."""
        new = Statement(target, expr, over, reduce, where, **marks)  # type: ignore[arg-type]
        if new not in self.statements:
            self.statements.append(new)
        return target

    def second(self) -> Builder:
        """The builder of a second map, with queries and keys of its own and everything else in common."""
        return replace(self, at=self.at.suffixed("2"))

    def masked(self, target: Tensor, expr: Any, *over: sp.Symbol, reduce: str = "sum", **marks: Any) -> Tensor:
        """Add a statement over (i, j), which is evaluated where query i attends to key j."""
        return self.add(target, expr, *over, where=self.where, reduce=reduce, **marks)


def start(d: Definition, batch: bool = False) -> Builder:
    """The builder of a definition, before any statement."""
    from symattn.forms.algorithms import key_count

    at = Letters(
        *d.head_counts, batch, d.start != "qkv" and not d.cross, d.grouping == "tiled", frozenset(d.parameters)
    )  # fmt: skip
    if (keys := key_count(d)) is not None:
        at.sized("j", keys)
    parameters = Parameters(d, at)
    return Builder(d, at, parameters, keep(d, at, parameters))


@lru_cache(maxsize=256)
def build(d: Definition, batch: bool = False) -> Program:
    """The program of a definition; see :meth:`symattn.definition.Definition.program`."""
    from symattn import forms

    b = start(d, batch)
    at = b.at
    outputs = forms.get(d.form).build(b)
    if clash := {x.name for x in b.statements} & set(d.parameters):
        raise DefinitionError(
            f"{min(clash)!r} is the name of a tensor of the program and cannot be a parameter; choose another name"
        )
    program = Program(tuple(b.statements), at.dims, outputs, b.shapes)
    own = {BY_LETTER[n].field for n in program.inputs if n in BY_LETTER and n not in d.parameters}
    if clash := own & set(d.parameters):
        raise DefinitionError(
            f"{min(clash)!r} is the name of a tensor that this definition reads; choose another name for the parameter"
        )
    return program
