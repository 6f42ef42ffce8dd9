"""Float64 with its bound against balls of 200 bits, which share no arithmetic with it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from symattn.readings import balls
from symattn.readings.balls import parts
from symattn.truth import double


def violations(
    program: Any, inputs: Mapping[str, Any], *, sizes: Any = None, outputs: Iterable[str] | None = None, **options: Any
) -> tuple[list[tuple[Any, ...]], float]:
    """Elements that do not hold the exact value, and the share of elements of which something is known."""
    wanted = tuple(program.outputs if outputs is None else outputs)
    right = balls.evaluate(program, inputs, sizes=sizes, bits=200)
    found = double.evaluate(program, inputs, sizes=sizes, outputs=wanted, **options)
    wrong: list[tuple[Any, ...]] = []
    known = total = 0
    for name in wanted:
        want = np.asarray(right[name], dtype=object)
        assert found[name].mid.shape == found[name].rad.shape == want.shape
        for at in np.ndindex(*want.shape):
            v, r = float(found[name].mid[at]), float(found[name].rad[at])
            total += 1
            known += r < math.inf
            if not encloses(v, r, want[at]):
                wrong.append((name, at, v, r, str(want[at])))
    return wrong, known / max(total, 1)


def encloses(v: float, r: float, ball: Any) -> bool:
    """Whether ``v +- r`` meets a ball (of 200 bits: nearly a point)."""
    mid, width = parts(ball)
    if r == math.inf:
        return True
    if math.isnan(v) or r < 0:
        return False
    if isinstance(mid, float) or math.isinf(v):
        return isinstance(mid, float) and v == mid
    return isinstance(width, float) or abs(Fraction(v) - mid) <= Fraction(r) + width
