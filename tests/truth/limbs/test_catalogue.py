"""Every row of the catalogue: the radii hold the balls, forward and backward, or the engine says why it does not take it."""

import numpy as np
import pytest

from symattn import variants
from symattn.errors import SymattnError
from symattn.truth.derived import with_gradient
from symattn.truth.limbs import unfit
from tests.support import FAST
from tests.truth.limbs import enclosing
from tests.variants.entries import numbers_for, sizes_for

TAKEN = {"self-attention", "grouped-query", "causal", "alibi", "sink", "sliding-window"}
ROWS = [n if n in FAST | TAKEN else pytest.param(n, marks=pytest.mark.slow) for n in variants.names()]


@pytest.mark.parametrize("name", ROWS)
def test_a_row_is_right_or_refused(name):
    forward = variants.get(name).definition.program()
    for program in (forward, with_gradient(forward)):
        sizes = sizes_for(name, program)
        given = {n: enclosing.as_floats(x, n in program.discrete) for n, x in numbers_for(program, sizes, 3).items()}
        why = unfit(program, given, sizes)
        assert why is None or (name not in TAKEN and isinstance(why, str))
        if why is None:
            enclosing.check(program, given, bits=120, sizes=sizes)


@pytest.mark.slow
def test_much_of_the_catalogue_is_taken():
    programs = (variants.get(n).definition.program() for n in variants.names())
    rows = {n: np.ones((1, 1)) for n in "QKV"}
    taken = 0
    for p in programs:
        try:
            taken += unfit(p, {n: rows.get(n, np.ones((1,) * len(p.shapes[n]))) for n in p.inputs}) is None
        except SymattnError:
            continue
    assert taken >= 25
