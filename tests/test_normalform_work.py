"""The work of a normal form is bounded by terms that are made, not only by terms that are left."""

from __future__ import annotations

import pytest

from symattn.errors import LimitError
from symattn.indexed import indices, size, tensor
from symattn.normalform import NormalForm
from symattn.presentation.proof import proved
from symattn.program import Program, Statement

ROW, N = indices("i")[0], size("n")
FACTORS = 12


def many(reads):
    """``A = (sum of 12)(sum of 12)``, and a sum of so many reads of it: each product is small, all of them are not."""
    left, right = (sum(tensor(f"{x}{k}", ROW) for k in range(FACTORS)) for x in "xy")
    inner = Statement(tensor("A", ROW), left * right)
    outer = Statement(tensor("B", ROW), sum(tensor(f"c{k}", ROW) * tensor("A", ROW) for k in range(reads)))
    return [inner, outer]


def test_a_sum_of_many_products_within_the_limit_ends():
    statements = many(40)
    form = NormalForm(statements, {ROW: N}, work=600)
    with pytest.raises(LimitError, match="on the way"):
        form.is_zero(tensor("B", ROW))
    assert form._made <= 600 + FACTORS**2
    assert not NormalForm(statements, {ROW: N}, work=600).equal(tensor("B", ROW), tensor("B", ROW) + 1)


def test_the_bound_may_be_given_and_what_fits_it_is_proved():
    statements = many(3)
    for work, found in ((None, True), (10_000, True), (300, False)):
        form = NormalForm(statements, {ROW: N}, work=work)
        assert form.equal(tensor("B", ROW), sum(tensor(f"c{k}", ROW) for k in range(3)) * tensor("A", ROW)) is found
    assert NormalForm(statements, {ROW: N}, work=2).equal(2 * tensor("d", ROW), tensor("d", ROW) + tensor("d", ROW))


def test_a_rewriting_whose_proof_is_too_long_is_not_proved(monkeypatch):
    """And so left out: a list is judged as it is written where no proof is had."""
    old = many(40)
    new = [old[0], Statement(old[1].target, sum(tensor(f"c{k}", ROW) for k in range(40)) * tensor("A", ROW))]
    program = Program(old, {ROW: N}, ("B",))
    assert proved(old, new, program)  # the product stays one tensor
    short = [*old[:1], Statement(old[1].target, old[1].expr.xreplace({tensor("A", ROW): old[0].expr}))]
    monkeypatch.setattr("symattn.normalform.WORK", 600)
    assert not proved(old, short, program)
