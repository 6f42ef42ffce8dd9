"""Scores of nested functions: taken apart without a change of value, and derived in time that does not grow with the nesting."""

from __future__ import annotations

from fractions import Fraction

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from symattn.adjoint import adjoint
from symattn.definition import Definition
from symattn.errors import DefinitionError
from symattn.nesting import MOST, split, weight
from symattn.presentation import present
from symattn.readings import mpmath as reading

s = sp.Symbol("s", real=True)


def nested(function: str, depth: int, inner: str = "s") -> str:
    return f"{function}(" * depth + inner + ")" * depth


def pieces(expr: sp.Expr) -> tuple[sp.Expr, dict[sp.Symbol, sp.Expr]]:
    named: dict[sp.Symbol, sp.Expr] = {}

    def name(piece: sp.Expr) -> sp.Expr:
        symbol = sp.Symbol(f"F{len(named)}", real=True)
        named[symbol] = piece
        return symbol

    return split(expr, name), named


_functions = [sp.tanh, sp.sin, lambda x: 1 / (2 + sp.exp(-x)), sp.erf, lambda x: (x + 2) ** 2, sp.Abs]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(_functions), max_size=9), st.integers(0, 3))
def test_the_pieces_put_together_are_the_expression_and_each_is_light(chain: list, extra: int) -> None:
    expr = s
    for f in chain:
        expr = f(expr) + extra * s
    rest, named = pieces(expr)
    for piece in (rest, *named.values()):
        assert weight(piece) <= MOST
    for symbol in reversed(named):
        rest = rest.xreplace({symbol: named[symbol]})
    assert rest == expr
    assert bool(named) == (weight(expr) > MOST)


def test_equal_pieces_are_named_once_and_light_expressions_not_at_all() -> None:
    e = s
    for _ in range(4):
        e = sp.tanh(e)
    _, named = pieces(e + sp.exp(e))
    assert len(named) == len(set(named.values()))
    assert pieces(s * sp.tanh(sp.log(1 + sp.exp(s))))[1] == {}


@pytest.mark.parametrize(("text", "names"), [(nested("tanh", 3), []), (nested("tanh", 5), ["F0", "F1", "F2", "F3"])])
def test_statements_of_a_nested_score(text: str, names: list[str]) -> None:
    program = Definition(score=text, lse=False).program()
    assert [x.name for x in program if x.name[0] == "F"] == names


def test_a_maximum_inside_is_a_choice_in_its_own_piece() -> None:
    program = Definition(score=f"max({nested('tanh', 3)}, exp({nested('tanh', 4, 'min(s, 1)')}))", lse=False).program()
    assert not any(x.expr.has(sp.Max, sp.Min) for x in program if not x.range_only)
    q = [[1, 2], [Fraction(1, 3), -1]]
    z = reading.evaluate(program, {"Q": q, "K": q, "V": q}, digits=30)
    for i, j in ((0, 0), (0, 1), (1, 1)):
        x = z["S"][i, j]
        with_python = sp.Max(sp.tanh(sp.tanh(sp.tanh(x))), sp.exp(sp.tanh(sp.tanh(sp.tanh(sp.tanh(sp.Min(x, 1)))))))
        assert abs(sp.N(with_python, 25) - z["Z"][i, j]) < 1e-20


def test_the_name_of_a_piece_is_no_parameter() -> None:
    with pytest.raises(DefinitionError, match="F0"):
        Definition(score="F0*s")


@pytest.mark.parametrize("function", ["tanh", "sigmoid", "exp", "log", "sqrt", "erf", "sin"])
def test_statements_grow_with_the_nesting_and_not_with_its_powers(function: str) -> None:
    def size(depth: int) -> tuple[int, int]:
        program = Definition(score=nested(function, depth), lse=False).program()
        backward = adjoint(program)
        return max(x.expr.count_ops() for x in backward), sum(x.expr.count_ops() for x in backward)

    (widest, total), (widest2, total2) = size(8), size(16)
    assert widest2 <= widest + 4
    assert total2 <= 2 * total + 20


@pytest.mark.parametrize("function", ["tanh", "sigmoid"])
def test_presented_gradients_of_nested_functions_stay_proved_and_short(function: str) -> None:
    program = Definition(score=nested(function, 8), lse=False).program()
    presented = present(program, adjoint(program))
    assert presented.proved
    assert max(x.expr.count_ops() for x in presented.derived) < 40
    # tanh' = 1 - tanh^2 is read by name
    if function == "tanh":
        assert not any(x.expr.has(sp.tanh) for x in presented.derived)
