"""The limb engine against balls at 200 more bits: every definition that it takes, forward and both lists of its gradient."""

import numpy as np
import pytest

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
