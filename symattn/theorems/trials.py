"""Exact numbers in which two programs with the same inputs differ: small sizes, small rational entries, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import sympy as sp

from symattn.errors import SymattnError
from symattn.fields import BY_LETTER
from symattn.program import Program
from symattn.readings import exact
from symattn.theorems.claim import Counterexample

__all__ = ["first_difference"]

SIZES = ({"n": 4}, {"n": 5, "d": 2}, {"n": 7, "d": 2, "dv": 2})
"""The sizes that are tried; those not named are 1, heads 2."""
CHUNKS = (2, 3)
_SEEN = sp.Rational(1, 10**20)
"""Differences of exact values above this are seen at 40 digits."""


def first_difference(program: Program, other: Program, seed: int = 0) -> Counterexample | None:
    """The first entry in which an output of two programs differs, over small exact inputs; None where none was found.

    >>> from symattn.definition import Definition
    >>> a, b = (Definition(form="linear", causal=True, decay=x, scale=1).program() for x in ("head", "retention"))
    >>> first_difference(b, b) is None
    True
    """
    draw = np.random.default_rng(seed)
    for sizes in _sizes(program, other):
        inputs = {n: _numbers(n, [int(a.xreplace(sizes)) for a in program.shapes[n]], draw) for n in program.inputs}
        try:
            left, right = (_values(p, inputs, sizes) for p in (program, other))
        except (SymattnError, ZeroDivisionError):
            continue
        for a, b in zip(program.outputs, other.outputs, strict=True):
            for at in np.ndindex(left[a].shape):
                gap = sp.N(left[a][at] - right[b][at], 40)
                if gap.is_finite and abs(gap) > _SEEN:
                    named = {str(k): int(v) for k, v in sizes.items()}
                    place = f"{a}[{', '.join(map(str, at))}]"
                    return Counterexample(
                        {n: x.tolist() for n, x in inputs.items()}, named, place, left[a][at], right[b][at], f"{a} = {b}"
                    )
    return None


def _sizes(*programs: Program) -> Iterator[dict[sp.Symbol, sp.Integer]]:
    symbols = {a for p in programs for a in p.sizes}
    lengths = CHUNKS if any(str(a) == "chunk" for a in symbols) else (1,)
    for sizes in SIZES:
        for length in lengths:
            base = {"chunk": length, "H": 2, "Hkv": 2, "G": 2, **sizes}
            yield {a: sp.Integer(base.get(str(a), 1)) for a in symbols}


def _values(program: Program, inputs: Mapping[str, Any], sizes: Mapping[sp.Symbol, sp.Integer]) -> dict[str, Any]:
    own = {str(a): int(sizes[a]) for a in program.sizes}
    return dict(exact.evaluate(program, {n: inputs[n] for n in program.inputs}, sizes=own))


def _numbers(letter: str, shape: list[int], draw: np.random.Generator) -> Any:
    out = np.empty(shape, dtype=object)
    kind = BY_LETTER[letter].kind if letter in BY_LETTER else "real"
    for at in np.ndindex(*shape):
        out[at] = (
            Fraction(int(draw.integers(1, 4)), 4)
            if kind in ("unit", "factor")
            else Fraction(int(draw.choice((-3, -2, -1, 1, 2, 3))))
        )
    return out
