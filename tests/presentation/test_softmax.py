"""Where a program normalises, found by structure: with and without sink, in any base, and not where nothing is normalised."""

from __future__ import annotations

import pytest
import sympy as sp

from symattn.definition import Definition
from symattn.presentation.softmax import exponent, log_sum_exp, normalisations, shift, sign_of
from symattn.program import Program, Statement, indices, size
from symattn.program import tensor as T
from tests.programs import OTHER

i, j = indices("i j")


def renamed(program: Program, names: dict[str, str]) -> Program:
    """The program with tensors under names that say nothing."""
    out = []
    for s in program:
        table = {
            x: T(names.get(str(x.base), str(x.base)), *x.indices)
            for x in (*s.expr.atoms(sp.Indexed), s.target)
            if isinstance(x, sp.Indexed)
        }
        out.append(
            Statement(table.get(s.target, s.target), s.expr.xreplace(table), s.over, s.reduce, s.where, s.range_only, s.aux)
        )
    return Program(tuple(out), program.dims, [names.get(o, o) for o in program.outputs])


@pytest.mark.parametrize(
    ("definition", "over"),
    [(Definition(), "j"), (Definition(sink=True), "j"), (Definition(causal=True, sink=True, lse_base=2), "j")],
)
def test_found_with_its_log_sum_exp(definition: Definition, over: str) -> None:
    program = definition.program()
    (n,) = normalisations(program)
    assert n.weight.name == "P" and n.divisor == T("l", i) and n.numerator == T("E", i, j)
    assert n.over == (sp.Symbol(over, integer=True),)
    lse, k = log_sum_exp(n, program)
    assert lse.name == "L" and k == (1 / sp.log(2) if definition.lse_base == "2" or definition.lse_base == 2 else 1)
    e = exponent(n.numerator, program)
    assert shift(e, program) == T("m", i)


def test_names_say_nothing() -> None:
    program = renamed(Definition(sink=True).program(), {"E": "alpha", "l": "beta", "P": "gamma", "m": "delta", "L": "eps"})
    (n,) = normalisations(program)
    assert (n.weight.name, str(n.numerator), str(n.divisor)) == ("gamma", "alpha[i, j]", "beta[i]")
    assert log_sum_exp(n, program)[0].name == "eps"


def test_no_log_sum_exp_where_the_maximum_is_forgotten() -> None:
    program = Definition(lse=False).program()
    (n,) = normalisations(program)
    assert log_sum_exp(n, program) is None
    wrong = program.with_statements((*program, Statement(T("L", i), sp.log(T("l", i)))))
    assert log_sum_exp(n, wrong) is None
    right = program.with_statements((*program, Statement(T("L", i), 3 * T("m", i) + 3 * sp.log(T("l", i)))))
    assert log_sum_exp(n, right)[1] == 3


@pytest.mark.parametrize("name", ["sigmoid weights", "RMS norm", "sparsemax", "gram"])
def test_not_found_where_nothing_is_divided_by_its_sum(name: str) -> None:
    assert normalisations(OTHER[name].program) == ()


def test_a_division_by_another_sum_is_none() -> None:
    other = (
        Statement(T("l", i), T("E", i, j) ** 2, (j,)),
        Statement(T("P", i, j), T("E", i, j) / T("l", i)),
    )
    assert normalisations(Program(other, {i: size("n"), j: size("m")}, ("P",))) == ()


def test_signs() -> None:
    m, w = size("m"), sp.Le(j, i)
    rows = (
        Statement(T("E", i, j), sp.exp(T("x", i, j))),
        Statement(T("Em", i, j), sp.exp(T("x", i, j)), where=w),
        Statement(T("l", i), T("E", i, j), (j,)),
        Statement(T("lm", i), T("E", i, j), (j,), where=w),
        Statement(T("s", i), T("x", i, j), (j,)),
        Statement(T("top", i), T("E", i, j), (j,), "max"),
        Statement(T("both", i), T("lm", i) + T("l", i)),
    )
    p = Program(rows, {i: size("n"), j: m}, ("both",))
    signs = {n: sign_of(p[n].target, p) for n in ("E", "Em", "l", "lm", "s", "top", "both")}
    assert [n for n in signs if signs[n] == "positive"] == ["E", "l", "both"]
    assert [n for n in signs if signs[n] == "nonnegative"] == ["Em", "lm"]
    assert [n for n in signs if signs[n] == "unknown"] == ["s", "top"]
    assert sign_of(T("x", i, j), p) == "unknown" and sign_of(sp.Integer(0), p) == "nonnegative"
    assert sign_of(-T("l", i), p) == "unknown" and sign_of(T("l", i) ** -2, p) == "positive"
    assert sign_of(T("l", i) - T("lm", i), p) == "unknown"
