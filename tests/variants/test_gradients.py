"""Every row of the catalogue: its gradient is SymPy's derivative of the unrolled expression, and that of central differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sp

from symattn.readings import exact, mpmath
from tests import unroll
from tests.support import rows
from tests.variants.entries import DEEP, Entry, entry


def loss(e: Entry, values: dict[str, Any]) -> Any:
    """The sum of all products of an output and its incoming gradient, over what is finite: a row without keys has no LSE."""
    pairs = [
        (x, g)
        for o in e.forward.outputs
        if "d" + o in e.inputs
        for x, g in zip(np.ravel(np.asarray(values[o], dtype=object)), np.ravel(e.inputs["d" + o]), strict=True)
    ]
    return sum(x * g for x, g in pairs if not _infinite(x))


def _infinite(x: Any) -> bool:
    return bool(x.has(sp.oo, -sp.oo, sp.zoo)) if isinstance(x, sp.Basic) else bool(x.context.isinf(x))


def directions(e: Entry, n: str) -> Any:
    """A prime for every entry of an input: a wrong entry of the gradient shows along it."""
    shape = np.shape(e.inputs[n])
    out = np.empty(shape, dtype=object)
    for k, at in enumerate(np.ndindex(*shape)):
        out[at] = sp.Integer(sp.prime(k + 5))
    return out if shape else out[()]


def unrolled_slope(e: Entry, n: str) -> Any:
    """SymPy's derivative of the unrolled loss along the direction of an input, at the numbers of the entry."""
    t = sp.Symbol("t", real=True)
    given = {**e.inputs, n: e.inputs[n] + t * directions(e, n)}
    return loss(e, unroll.run(e.forward, given, {t: sp.S.Zero}, e.sizes)).diff(t).xreplace({t: sp.S.Zero})


@pytest.mark.parametrize("name", rows(*DEEP))
def test_gradient_is_sympys_derivative_of_the_unrolled_expression(name: str) -> None:
    e = entry(name)
    found = exact.evaluate(e.program, e.inputs, sizes=e.sizes)
    for n in e.real:
        along = sum(a * b for a, b in zip(np.ravel(found["d" + n]), np.ravel(directions(e, n)), strict=True))
        assert unroll.is_zero(along - unrolled_slope(e, n)), (name, n)


H = sp.Rational(1, 10**20)


@pytest.mark.parametrize("name", rows())
def test_gradient_agrees_with_central_differences(name: str) -> None:
    e = entry(name, seed=1)
    digits = {"digits": 80}
    gradient = mpmath.evaluate(e.program, e.inputs, sizes=e.sizes, **digits)
    for n in e.real:
        direction = directions(e, n)
        sides = []
        for sign in (1, -1):
            moved = {**e.inputs, n: e.inputs[n] + sign * H * direction}
            given = {k: moved[k] for k in e.forward.inputs}
            values = mpmath.evaluate(e.forward, given, sizes=e.sizes, **digits)
            sides.append(loss(e, values))
        slope = (sides[0] - sides[1]) / (2 * _like(sides[0], H))
        along = sum(a * _like(a, b) for a, b in zip(np.ravel(gradient["d" + n]), np.ravel(direction), strict=True))
        assert abs(slope - along) <= 1e-35 * (1 + abs(along)), (name, n)


def _like(x: Any, q: Any) -> Any:
    """A rational in the number type of ``x``."""
    return x.context.mpf(int(q.p)) / int(q.q)
