"""The numbers of a recurrence in a worksheet: every element by its own statement, 0 before the first step."""

import numpy as np
import pytest

from symattn.derivation.work import Worksheet
from symattn.derivative import backward
from tests.scans import EXAMPLES, D, E, N, d, e, n

RATIONAL = [name for name, example in EXAMPLES.items() if example.rational]


@pytest.mark.parametrize("name", RATIONAL)
def test_elements_are_those_of_a_plain_loop(name):
    example = EXAMPLES[name]
    x = example.inputs(1)
    want = example.loop(x, None)
    sheet = Worksheet(example.program, x, {n: N, d: D, e: E})
    for o in example.program.outputs:
        for at in np.ndindex(*want[o].shape):
            assert sheet.full(o, at).rational == want[o][at], (o, at)


def test_a_gradient_walks_the_other_way():
    example = EXAMPLES["linear attention"]
    x = example.inputs(1)
    seed = np.ones((N, E), dtype=int)  # every later query counts once
    sheet = Worksheet(backward(example.program).program, {**x, "do": seed}, {n: N, d: D, e: E})
    for k in range(N):
        later = [sum(x["q"][t, i] for t in range(k, N)) for i in range(D)]
        assert sheet.full("dv", (k, 0)).rational == sum(x["k"][k, i] * later[i] for i in range(D))
        assert [sheet.full("dW", (k, i, 0)).rational for i in range(D)] == later
