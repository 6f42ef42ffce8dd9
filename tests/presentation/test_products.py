"""Products without a factor: the quotient is proved where the factor is positive, and not offered where it may be 0."""

from __future__ import annotations

import sympy as sp

from symattn.adjoint import adjoint
from symattn.functions import sigmoid
from symattn.presentation import present
from symattn.presentation.products import complements
from symattn.presentation.proof import PROVED, proved
from symattn.program import Program, Statement, indices, size
from symattn.program import tensor as T

i, j, k = indices("i j k")
n = size("n")


def program(factor: sp.Expr) -> Program:
    return Program((Statement(T("p"), factor, (j,), "prod"), Statement(T("y"), T("p") ** 2)), {j: n}, ("y",))


def test_a_positive_factor_is_divided_by_and_the_step_is_proved() -> None:
    p = program(sigmoid(T("x", j)))
    shown = present(p, adjoint(p))
    assert not any("others" in s.name for s in shown.derived)
    assert {s.status for s in shown.steps} == {PROVED}


def test_a_factor_that_may_be_zero_is_not() -> None:
    p = program(T("x", j))
    shown = present(p, adjoint(p))
    assert any("others" in s.name for s in shown.derived)


def test_a_quotient_of_another_product_is_not_proved() -> None:
    x = lambda a: sp.exp(T("x", a))
    whole = Statement(T("p"), x(j), (j,), "prod")
    others = Statement(T("o", i), x(k), (k,), "prod", sp.Ne(k, i))
    read = Statement(T("y", i), T("o", i))
    dims = Program((whole, others, read), {i: n, j: n, k: n}, ("y",))
    good = Statement(T("y", i), T("p") / x(i))
    bad = Statement(T("y", i), T("p") * x(i))
    assert proved([whole, others, read], [whole, others, good], dims)
    assert not proved([whole, others, read], [whole, others, bad], dims)


def test_a_read_outside_the_product_is_not_a_quotient() -> None:
    """Where i is no factor of the product, all factors are others."""
    x = lambda a: sp.exp(T("x", a))
    whole = Statement(T("p"), x(j), (j,), "prod", sp.Ge(j, 1))
    others = Statement(T("o", i), x(k), (k,), "prod", sp.And(sp.Ne(k, i), sp.Ge(k, 1)))
    assert complements([whole, others, Statement(T("y", i), T("o", i), where=sp.Ge(i, 1))])
    assert not complements([whole, others, Statement(T("y", i), T("o", i))])
