"""Seeded arrays for whatever a definition's program reads: shapes from the program, numbers by the kind of each tensor.

Used for the further tensors of a variant (gates, tables, weights), and for forms that do not start from query, key and value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np
import sympy as sp

from symattn import declared, forms
from symattn.axes import Axes
from symattn.definition import Definition
from symattn.fields import BY_LETTER, Field, field_of
from symattn.intake import Array
from symattn.program import Program

if TYPE_CHECKING:
    from symattn.verify.inputs import Shape

Draw = Callable[[np.random.Generator, tuple[int, ...]], Array]
FURTHER = (4, 6, 8, 10)
"""Sizes that the command line has no letter for, in the order of their names: even where a rotation may want pairs."""

WEIGHTS = {"tok": "bp", "Emb": "", "X": "bia", "C": "bju", "WQ": "Hac", "WK": "Kuc", "WV": "Kue", "WO": "Hef"}
"""Sources that make query, key and value, and their axes (``a`` or ``u`` is the width of what is projected)."""


def with_heads(definition: Definition, shape: Shape) -> Definition:
    """The definition with the numbers of heads of a shape, where it fixes none."""
    return definition if definition.heads is not None else definition.replace(heads=shape.h, kv_heads=shape.hkv)


def sizes_of(program: Program, shape: Shape) -> dict[str, int]:
    """A number for every size of a program.

    >>> from symattn.verify.inputs import Shape
    >>> sizes_of(Definition(start="x").program(), Shape.parse("2,1,1,3,3,4"))
    {'d': 4, 'dmodel': 4, 'dv': 4, 'n': 3}
    """
    s = shape
    known = {"B": s.b, "H": s.h, "Hkv": s.hkv, "G": s.h // s.hkv, "n": s.n, "m": s.m, "d": s.d, "dv": s.dv}
    others = [str(x) for x in program.sizes if str(x) not in known]
    return {str(x): known[str(x)] if str(x) in known else FURTHER[others.index(str(x)) % 4] for x in program.sizes}


def drawn(definition: Definition, shape: Shape, letters: Iterable[str], r: np.random.Generator, draw: Draw) -> dict[str, Array]:
    """Arrays in the layout of fields, by field name, for some inputs of a definition's program.

    Parameters
    ----------
    definition
        The attention that is judged.
    shape
        Sizes; those that it does not name are :data:`FURTHER`.
    letters
        Tensors of the program; those that it does not read are left out.
    r, draw
        The generator, and how real numbers are drawn.
    """
    d = with_heads(definition, shape)
    program = d.program(batch=True)
    sizes, axes = sizes_of(program, shape), Axes(*d.head_counts, True, d.grouping == "tiled")
    found: dict[str, Array] = {}
    for letter in letters:
        if letter in program.shapes:
            row, extent = BY_LETTER[letter], _extent(program, letter, sizes)
            found[row.field] = axes.back(_numbers(row, extent, sizes, r, draw), WEIGHTS.get(letter, row.axes))
    return found


def _extent(program: Program, letter: str, sizes: dict[str, int]) -> tuple[int, ...]:
    """The shape of a tensor in the axes of the program."""
    numbers = {x: sp.Integer(sizes[str(x)]) for x in program.sizes}
    return tuple(int(n.xreplace(numbers)) for n in program.shapes[letter])


def _numbers(row: Field, shape: tuple[int, ...], sizes: dict[str, int], r: np.random.Generator, draw: Draw) -> Array:
    if row.kind == "integer":
        below = sizes.get(row.below, 2)
        count = int(np.prod(shape))
        return r.permutation(below)[:count].reshape(shape) if count <= below else r.integers(0, below, size=shape)
    if row.kind == "boolean":
        return r.random(shape) < 0.7
    if row.kind in ("unit", "factor"):
        return r.integers(1, 16, size=shape) / 16
    if row.kind == "positive":
        return r.integers(4, 13, size=shape) / 8
    # weights as they are at the start of training: what they make has the size of what they are applied to
    return draw(r, shape) / 4 if row.letter.startswith("W") else draw(r, shape)


def further(definition: Definition) -> tuple[str, ...]:
    """The letters of declared inputs that a definition reads beside its sources."""
    program = definition.program(batch=True)
    own = forms.sources_of(definition)
    return tuple(n for n in program.inputs if n in declared.LETTERS and n not in own)


def from_scratch(definition: Definition, shape: Shape, r: np.random.Generator, draw: Draw) -> dict[str, Array]:
    """All arrays of a form that starts from other tensors than query, key and value, incoming gradients among them."""
    d = with_heads(definition, shape)
    program = d.program(batch=True)
    own = forms.sources_of(definition)
    letters = (*own, *(n for n in program.inputs if n in WEIGHTS and n not in own), *further(definition))
    found = drawn(definition, shape, letters, r, draw)
    sizes, axes = sizes_of(program, shape), Axes(*d.head_counts, True, d.grouping == "tiled")
    for name in program.outputs:
        found["grad_" + field_of(name)] = axes.back(draw(r, _extent(program, name, sizes)), BY_LETTER[name].axes)
    return found
