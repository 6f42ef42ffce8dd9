"""The tensors of an example, exact: what weights, scores and Jacobians are drawn from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp

from symattn.definition import Definition
from symattn.derivation.binding import definition_of, inputs_of
from symattn.derivation.decimals import enclosed_decimal
from symattn.derivation.enclose import BITS, bounds
from symattn.derivation.examples import Array, Example, load
from symattn.derivation.shaping import computable, with_constants_in_place, without_maxima
from symattn.derivation.values import VOCABULARY
from symattn.errors import DefinitionError, InputValueError, LimitError, UndecidedError
from symattn.pictures.chart import WRITTEN
from symattn.program import Program
from symattn.readings import balls
from symattn.readings.sizes import size_value
from symattn.readings.typesetting.softmax import Softmax, find_softmax

MOST = 200_000
"""Elements of all scores of an example."""


@dataclass(frozen=True)
class Bound:
    """An example under its definition.

    Parameters
    ----------
    example, definition
        What was loaded.
    program
        The forward program, without what cancels.
    arrays, sizes
        The inputs by the names of the program, and the sizes.
    """

    example: Example
    definition: Definition
    program: Program
    arrays: Mapping[str, Array]
    sizes: Mapping[sp.Symbol, int]

    @property
    def title(self) -> str:
        """The heading of the example."""
        return self.example.title or self.example.name

    @property
    def origin(self) -> int:
        """Positions are counted from 1."""
        return 1

    def softmaxes(self) -> tuple[Softmax, ...]:
        """Every softmax over keys whose scores are a tensor.

        Raises
        ------
        DefinitionError
            When there is none: another normalizer, or an algorithm in tiles.
        """
        found = tuple(s for s in find_softmax(self.program) if isinstance(s.score, sp.Indexed) and len(s.weights.indices) >= 2)
        if not found:
            raise DefinitionError(f"{self.example.name}: this definition has no softmax of scores that could be drawn")
        return found

    def shape(self, name: str, program: Program | None = None) -> tuple[int, ...]:
        """The sizes of a tensor."""
        return tuple(size_value(d, self.sizes) for d in (program or self.program).shapes[name])

    def words(self, axis: sp.Expr, program: Program) -> tuple[str, ...]:
        """The words at the positions of an axis, or nothing."""
        table = {
            "i": self.example.tokens,
            "p": self.example.tokens,
            "j": self.example.memory,
            VOCABULARY: self.example.vocabulary,
        }
        if axis not in program.dims:
            return ()
        key = VOCABULARY if str(program.dims[axis]) == "vocab" else str(axis)
        words = table.get(key, ())
        return words if len(words) == size_value(program.dims[axis], self.sizes) else ()

    def evaluate(self, program: Program, names: Iterable[str], more: Mapping[str, Any] | None = None, bits: int = 200) -> Any:
        """Some tensors as balls."""
        needed = program.with_statements(program.statements, tuple(names)).live()
        given = {**self.arrays, **(more or {})}
        return balls.evaluate(needed, {n: given[n] for n in needed.inputs}, sizes=self.sizes, bits=bits)


def bind(source: str | Path | Example, definition: Definition | None = None) -> Bound:
    """An example, by name, path or as itself, under its own definition with the changed fields of another.

    Raises
    ------
    FileFormatError, InputValueError, UnknownNameError
        When it cannot be read or does not fit the definition, or lacks numbers.
    LimitError
        When its scores are too many to be evaluated exactly for a picture.

    >>> bind("two-words").title
    'two words'
    """
    example = source if isinstance(source, Example) else load(source)
    definition = definition_of(example, definition).replace(lse=False)
    program = with_constants_in_place(without_maxima(definition.program()))
    arrays, sizes = inputs_of(example, program, definition)
    reachable = computable(program, set(arrays))
    if len(reachable) < len(program):
        raise InputValueError(f"{example.name}: some inputs have no numbers, so that there is nothing to draw")
    found = Bound(example, definition, program, arrays, sizes)
    for s in find_softmax(program):
        if (count := int(np.prod(found.shape(s.name), dtype=float))) > MOST:
            raise LimitError(f"{example.name}: {count} scores; at most {MOST} are evaluated exactly for a picture")
    return found


def floats(values: Any) -> Any:
    """Midpoints of balls as float64; what is not finite is NaN."""
    out = np.full(np.shape(values), np.nan)
    for at in np.ndindex(out.shape):
        try:
            mid, _ = bounds(values[at])
        except (UndecidedError, LimitError):
            continue
        out[at] = float(mid)
    return out


def written(values: Any, digits: int = 2) -> tuple[tuple[str, ...], ...]:
    """The decimals of a small matrix of balls, right in every digit; nothing for a larger one, and none where undecided."""
    if max(values.shape) > WRITTEN:
        return ()
    return tuple(tuple(_decimal(x, digits) for x in row) for row in values)


def _decimal(x: Any, digits: int) -> str:
    try:
        return enclosed_decimal(*bounds(x), digits) or ""
    except (UndecidedError, LimitError):
        return ""


__all__ = ["BITS", "Bound", "bind", "floats", "written"]
