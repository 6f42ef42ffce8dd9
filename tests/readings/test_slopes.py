"""The bound from slopes: as sharp as the one derived by hand, sound for computed values, plain where nothing is shared."""

from __future__ import annotations

import numpy as np
import pytest

from symattn import arithmetic
from symattn.definition import Definition
from symattn.errors import UnknownNameError
from symattn.readings import rounding, slopes
from symattn.readings.slopes.bounded import within
from symattn.verify import programs
from tests.readings import handbound
from tests.readings import simulated as sim

LAWS = sim.LAWS[:7]


def listed(how, gradient=False, **fields):
    return programs.followed(Definition(heads=2, **fields).program(), how, gradient=gradient)


@pytest.mark.parametrize("io", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("law", LAWS)
def test_it_is_the_bound_derived_by_hand(law, io):
    q, k, v, _ = sim.inputs(law, io, seed=1, n=8, m=192, d=64)
    how = arithmetic.flash(io, tile=64)
    program = listed(how)
    of_o, of_l = handbound.forward(q, k, v, 0.125, io, 64)
    exact = slopes.bounds(program, {"Q": q, "K": k, "V": v}, how)
    for name, by_hand in (("O", of_o), ("L", of_l)):
        share = exact[name].bound / by_hand
        assert np.median(share) < 1.05 and share.max() < 1.05 and share.min() > 0.8, (name, np.median(share), share.max())
    weighted = within(program, {"Q": q, "K": k, "V": v}, how, each=0)
    share = weighted["O"].bound / of_o
    assert np.median(share) < 1.28 and share.max() < 5
