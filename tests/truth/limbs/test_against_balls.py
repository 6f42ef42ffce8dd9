"""The limb engine against balls at 200 more bits: every definition that it takes, forward and both lists of its gradient."""

import numpy as np
import pytest

from symattn.adjoint import adjoint
from symattn.definition import Definition
from symattn.presentation import present, refold
from symattn.truth.derived import with_tangent
from tests.truth.limbs import enclosing


@pytest.mark.parametrize("which", [0, 1, 2], ids=["forward", "gradient", "presented"])
@pytest.mark.parametrize("name", enclosing.DEFINITIONS)
def test_every_value_is_within_the_radius(name, which):
    definition = enclosing.DEFINITIONS[name]
    program = enclosing.programs(definition)[which]
    sizes = dict(enclosing.SIZES, H=definition.heads or 1)
    given = {"M": enclosing.booleans, "B": enclosing.additive, "drop": lambda s, r: r.random(s) < 0.7}
    given |= {n: lambda s, r: r.integers(0, 2, s) for n in ("doc_q", "doc_k")}
    given |= {"len_k": lambda s, r: np.full(s, 4), "klen": lambda s, r: np.full(s, 4)}
    inputs = enclosing.draw(program, 3, sizes=sizes, **given)
    assert enclosing.check(program, inputs, bits=130) > 0


@pytest.mark.parametrize("name", ["plain", "boolean mask", "sink", "dropout", "alibi"])
def test_tangents(name):
    definition = enclosing.DEFINITIONS[name]
    program = with_tangent(definition.program(), ("Q", "K", "V"))
    given = {"M": enclosing.booleans, "drop": lambda s, r: r.random(s) < 0.7}
    inputs = enclosing.draw(program, 4, sizes=dict(enclosing.SIZES, H=definition.heads or 1), **given)
    enclosing.check(program, inputs, bits=130)


def test_the_list_that_reads_the_output_again():
    program = Definition(causal="bottom-right").program()
    again = refold(present(program, adjoint(program))).program
    assert "sum over e" in str(again["D"])
    enclosing.check(again, enclosing.draw(again, 5, sizes=dict(enclosing.SIZES, n=7)), bits=130)
