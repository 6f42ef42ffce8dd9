"""The comparison by balls: it refutes what is wrong by 1e-55, accepts what is equal, and says no where nothing can be said."""

from __future__ import annotations

from fractions import Fraction

import pytest
import sympy as sp

from symattn.presentation.ballcheck import agree, random_inputs, small_sizes
from symattn.program import Program, Statement, indices, size
from symattn.program import tensor as T
from tests.presentation.cases import listed

i, j = indices("i j")


def one(expr: sp.Expr, where: sp.Basic = sp.true) -> Program:
    return Program((Statement(T("y", i), expr, where=where),), {i: size("n")}, ("y",))


def test_equal_and_not_equal() -> None:
    x = T("x", i)
    a, b = one(sp.sin(2 * x)), one(2 * sp.sin(x) * sp.cos(x))
    assert agree(a, b, ("y",))
    assert not agree(a, one(2 * sp.sin(x) * sp.cos(x) * (1 + sp.Rational(1, 10**55))), ("y",))
    assert not agree(one(sp.Abs(x)), one(x), ("y",))


@pytest.mark.parametrize("name", ["causal", "sink base 2", "additive mask", "tokens", "grouped"])
def test_presented_gradients_agree(name: str) -> None:
    _, gradient, presented = listed(name)
    assert agree(gradient, presented.program, gradient.outputs)
    s = presented.program["dP"]
    half = [t if t is not s else Statement(s.target, s.expr / 2, s.over, where=s.where) for t in presented.program]
    assert not agree(gradient, presented.program.with_statements(half), gradient.outputs)


def test_what_cannot_be_said_is_no() -> None:
    x = T("x", i)
    assert not agree(one(sp.log(-(x**2))), one(sp.log(-(x**2))), ("y",))  # undefined
    assert not agree(one(sp.log(x - x + T("z") * 0) + x), one(x), ("y",))  # -oo


def test_inputs() -> None:
    _, gradient, _ = listed("tokens")
    sizes = small_sizes(gradient)
    assert set(sizes.values()) <= {2, 3}
    first, again, other = (random_inputs(gradient, sizes, k) for k in (1, 1, 2))
    assert all((first[n] == again[n]).all() for n in first) and any((first[n] != other[n]).any() for n in first)
    assert set(first["tok"].flat) <= {0, 1}
    assert all(isinstance(v, Fraction) and 0 < abs(v) < 1 for v in first["WQ"].flat)
