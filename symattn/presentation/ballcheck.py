"""Two programs compared by numbers: balls of 400 bits at a small size, on random inputs, where no proof was found.

Balls that do not meet refute; balls that meet with radii below 2^-200, at two sets of inputs, are taken as agreement and called
"checked", never "proved".
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sp

from symattn.errors import SymattnError
from symattn.program import Program

__all__ = ["agree", "random_inputs", "small_sizes"]

_BITS, _TOLERANCE, _RUNS = 400, Fraction(1, 2**200), 2


def small_sizes(program: Program) -> dict[str, int]:
    """A size of 2 or 3 for every size symbol."""
    return {a.name: 2 + k % 2 for k, a in enumerate(program.sizes)}


def random_inputs(program: Program, sizes: dict[str, int], seed: int) -> dict[str, npt.NDArray[np.object_]]:
    """Random inputs: 0 or 1 where only conditions and subscripts read them, else fractions in (-1, 1), scalars in (0, 1)."""
    rng = random.Random(seed)  # noqa: S311 - nothing secret
    table = {a: sp.Integer(sizes[a.name]) for a in program.sizes}
    out = {}
    for name in program.inputs:
        v = np.empty(tuple(int(n.xreplace(table)) for n in program.shapes[name]), dtype=object)
        for at in np.ndindex(*v.shape):
            if name in program.discrete:
                v[at] = rng.randint(0, 1)
            else:
                v[at] = Fraction(rng.randint(1, 96), 97) * (rng.choice((-1, 1)) if v.shape else 1)
        out[name] = v
    return out


def agree(old: Program, new: Program, outputs: Sequence[str]) -> bool:
    """Whether two programs give the same ``outputs`` at a small size: balls that meet, of radius below 2^-200.

    Where a reading cannot say (a condition undecided, a value undefined), the answer is no.
    """
    from symattn.readings import balls  # a reading is built on programs; only this check looks up to it

    sizes = small_sizes(old)
    for seed in range(_RUNS):
        inputs = random_inputs(old, sizes, seed)
        try:
            a = balls.evaluate(old, inputs, sizes=sizes, bits=_BITS)
            b = balls.evaluate(new, {n: inputs[n] for n in new.inputs}, sizes=sizes, bits=_BITS)
            pairs = [(balls.parts(x), balls.parts(y)) for n in outputs for x, y in zip(a[n].flat, b[n].flat, strict=True)]
        except SymattnError:
            return False
        if not all(_meet(x, y) for x, y in pairs):
            return False
    return True


def _meet(x: tuple[Any, Any], y: tuple[Any, Any]) -> bool:
    (a, r), (b, s) = x, y
    return bool(max(r, s) < _TOLERANCE and abs(a - b) <= r + s)
