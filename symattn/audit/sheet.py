"""What a page computes, as a program with its numbers: any tensor of it, from the inputs on or from printed intermediates.

Printed numbers stand in for a tensor by cutting the program there: what is computed from it reads them instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sp

from symattn.audit.claimsfile import Example
from symattn.audit.quantities import letter_named, tensor_named
from symattn.audit.start import implied, start_of
from symattn.binding import Bound, bind
from symattn.definition import Definition
from symattn.errors import InputValueError, ShapeError
from symattn.program import Program, Statement
from symattn.readings import exact
from symattn.truth.derived import with_gradient
from symattn.truth.fields import with_seeds

Array = npt.NDArray[Any]
Rewrite = Callable[[Program], Program]
Run = Callable[[Program, dict[str, Array], str], Array]

STEPS = ("R", "S", "A", "Z")
"""Scores, scaled, capped, and as the softmax takes them."""
BEFORE_MASK = ("R", "S", "A")
"""Tensors that pages print for all keys, those that a mask hides included."""


class Sheet:
    r"""The program of an example and its values.

    Parameters
    ----------
    example
        Inputs and fields of the definition.
    changes
        Fields of the definition that replace those of the example.
    rewrite
        A change of the program, for conventions that no field of a definition says.

    Raises
    ------
    SymattnError
        When the inputs and the definition make no program; the message says why.

    >>> from symattn.audit.claimsfile import parse
    >>> page = parse(b'[inputs]\nd_k = "1"\nscores = ["0", "0", "0"]\nV = [["1"], ["2"], ["6"]]\n[claims]\nw = "1"', "demo")
    >>> Sheet(page.examples[0]).tensor("O").tolist()
    [[3]]
    """

    def __init__(self, example: Example, changes: Mapping[str, Any] | None = None, rewrite: Rewrite | None = None) -> None:
        self.example, self.changes, self.rewrite = example, changes or {}, rewrite
        typed = {**example.definition, **self.changes}
        self.start = start_of(example.inputs, typed)
        self.bound: Bound = bind(Definition(**{**implied(self.start.fields), **typed}), self.start.fields)

    @cached_property
    def forward(self) -> Program:
        """The program, rewritten."""
        return self.bound.program if self.rewrite is None else self.rewrite(self.bound.program)

    @cached_property
    def gradient(self) -> Program:
        """The program with the gradients of its inputs and tensors."""
        return with_gradient(self.forward)

    @cached_property
    def inputs(self) -> dict[str, Array]:
        """The inputs of the program, tensors in the middle included."""
        return {**self.bound.inputs, **{self.statement(name): self.placed(name, x) for name, x in self.start.midway.items()}}

    def letter(self, name: str) -> str:
        """The tensor that a page's name stands for.

        Raises
        ------
        UnknownNameError
            When there is none.
        """
        program = self.forward
        letters = {s.name for s in program} | set(program.inputs)
        if name[:1] == "d" or name.startswith("grad_"):
            letters |= {s.name for s in self.gradient if s.name.startswith("d")} | {"d" + n for n in program.outputs}
        return tensor_named(name, letters, self.bound.definition.parameters)

    def hidden(self) -> Array:
        """Where a mask hides key j from query i, in the axes of the scores."""
        return np.asarray(~self.bound.keep())

    def tensor(self, letter: str, printed: Mapping[str, Array] | None = None) -> Array:
        """The exact values of a tensor, as SymPy numbers, without a batch axis.

        Parameters
        ----------
        letter
            As :meth:`letter` gives it; ``heads`` are the outputs of the heads.
        printed
            Tensors of which a page prints numbers, ``Fraction`` or None where it prints none: they stand in for the exact ones
            in everything that is computed from them.

        Raises
        ------
        InputValueError
            When the inputs do not determine it.
        """
        return self.evaluate(letter, printed or {}, self._exact)

    def evaluate(self, base: str, printed: Mapping[str, Array], run: Run) -> Array:
        """A quantity in any number type: ``run`` evaluates a tensor of a program with its inputs."""
        wanted = self.statement(base)
        program = self._wanted(wanted)
        inputs = dict(self.inputs)
        for name in map(self.statement, self.start.midway):
            program = _cut(program, name, wanted)
        shown = {self.statement(b): (b, x) for b, x in printed.items()}
        for name in sorted(shown.keys() & inputs.keys()):
            inputs[name] = _filled(self.placed(*shown[name]), inputs[name])
        for name in [s.name for s in program if s.name in shown and s.name != wanted]:
            x = self.placed(*shown[name])
            inputs[name] = _filled(x, run(program, inputs, name)) if any(v is None for v in x.ravel().tolist()) else x
            program = _cut(program, name, wanted)
        return self.back(base, inputs[wanted] if wanted in inputs else run(program, inputs, wanted))

    def statement(self, base: str) -> str:
        """The statement or input that a quantity is: ``O`` is the last output, ``heads`` what the heads give."""
        if base in STEPS:  # a step that the definition leaves out leaves the scores as the step before it
            return next(x for x in reversed(STEPS[: STEPS.index(base) + 1]) if x in self.forward or x == "R")
        if base == "heads":
            return "O"
        return "Y" if base == "O" and "Y" in self.forward else base

    def direct(self, base: str) -> frozenset[str]:
        """The quantities that a quantity is computed from at once."""
        name = self.statement(base)
        if name in self.inputs:
            return frozenset()
        program = self.forward if name in self.forward else self.gradient
        bases = {"Y": "O", "O": "heads" if "Y" in self.forward else "O"}
        needs = program[name].needs if name in program else frozenset()
        return frozenset(bases.get(n, n) for n in needs) | {x for x in STEPS if self.statement(x) in needs}

    def _wanted(self, letter: str) -> Program:
        program = self.gradient if letter not in {s.name for s in self.forward} and letter[:1] == "d" else self.forward
        if letter not in BEFORE_MASK:
            return program
        open_ = [_unmasked(s) if s.name in BEFORE_MASK else s for s in program.statements]
        return program.with_statements(open_)

    def _exact(self, program: Program, inputs: Mapping[str, Array], letter: str) -> Array:
        lean = self.checked(program, letter)
        return exact.evaluate(lean, self.seeded(lean, inputs), sizes=self.sizes_of(lean))[letter]

    def seeded(self, lean: Program, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The inputs that a program reads; gradients that come in and are not given are 0.

        Raises
        ------
        InputValueError
            When none is given.
        """
        seeds = with_seeds(self.bound) if any(n not in inputs for n in lean.inputs) else {}
        return {n: inputs[n] if n in inputs else seeds[n] for n in lean.inputs}

    def sizes_of(self, program: Program) -> dict[str, int]:
        """The sizes that a part of the program has."""
        names = {str(s) for s in program.sizes}
        return {
            **{k: v for k, v in self.bound.sizes.items() if k in names},
            **{k: v for k, v in self.start.sizes.items() if k in names},
        }

    def checked(self, program: Program, letter: str) -> Program:
        """The statements that a tensor needs.

        Raises
        ------
        InputValueError
            When they read what the page does not give.
        """
        lean = program.with_statements(program.statements, (letter,)).live()
        lacking = [f for f in sorted(self.start.filled) if letter_named(f) in lean.inputs]
        reads = {str(a) for s in lean for a in s.expr.free_symbols}
        if "d" in reads and "query" in self.start.filled and "d" not in self.start.sizes:
            lacking.append("d_k")
        if lacking:
            raise InputValueError(f"the inputs do not determine it: {', '.join(lacking)} is not given")
        return lean

    # axes

    def _batch(self, letter: str) -> bool:
        program = self.forward if letter in self.forward.shapes or letter in self.forward else self.gradient
        shape = program.shape_of(program[letter]) if letter in program else program.shapes.get(letter, ())
        return bool(shape) and str(shape[0]) == "B"

    def placed(self, base: str, x: Array) -> Array:
        """A page's array in the axes of the program."""
        name = self.statement(base)
        program = self.forward if name in self.forward or name in self.forward.shapes else self.gradient
        if name not in program and name not in program.shapes:
            raise InputValueError(f"this definition has no {base}: {', '.join(s.name for s in program)} are its steps")
        rank = len(program[name].indices) if name in program else len(program.shapes[name])
        heads = self.bound.axes.heads
        if base == "O" and name == "O" and heads > 1 and x.ndim == 2:
            x = np.moveaxis(x.reshape(x.shape[0], heads, -1), 1, 0)
        while x.ndim < rank:
            x = x[None]
        if x.ndim > rank:
            raise ShapeError(f"{base} has {rank} axes here, and its numbers {x.ndim}")
        return x

    def back(self, base: str, x: Array) -> Array:
        """An array of the program in the axes of the page: without a batch, the outputs of heads side by side."""
        name = self.statement(base)
        x = x[0] if self._batch(name) else x
        if base == "O" and name == "O" and self.bound.axes.heads > 1:
            return np.moveaxis(x, 0, 1).reshape(x.shape[1], -1)
        return x


def _cut(program: Program, name: str, wanted: str) -> Program:
    """The program in which a tensor is an input."""
    kept = [s for s in program.statements if s.name != name]
    outputs = [n for n in program.outputs if n != name]
    return (
        program.with_statements(kept, outputs or (kept[-1].name,), shapes={name: program.shape_of(program[name])})
        if name in program
        else program
    )


def _unmasked(s: Statement) -> Statement:
    return replace(s, where=sp.true)


def _filled(x: Array, rest: Array) -> Array:
    """An array with the rest where it has None."""
    out = np.empty(rest.shape, dtype=object)
    try:
        wide = np.broadcast_to(x, rest.shape)
    except ValueError as why:
        raise ShapeError(f"the printed numbers have shape {x.shape}, the quantity {rest.shape}") from why
    out.ravel()[:] = [r if v is None else v for v, r in zip(wide.ravel().tolist(), rest.ravel().tolist(), strict=True)]
    return out
