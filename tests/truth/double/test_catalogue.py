"""Every row of the catalogue with its presented gradient: the radii hold what balls say, whole and in blocks of one row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from symattn import variants
from symattn.verify.programs import presented
from tests.support import rows
from tests.truth.double.enclosing import violations
from tests.variants.entries import numbers_for, sizes_for


def with_gradient(name: str) -> Any:
    program = variants.get(name).definition.program()
    found = presented(program).program
    return found.with_statements(found.statements, dict.fromkeys((*program.outputs, *found.outputs)))


@pytest.mark.parametrize(("points", "owned"), [(1 << 20, False), (1, True)])
@pytest.mark.parametrize("name", rows())
def test_radii_hold_the_exact_values(name: str, points: int, owned: bool) -> None:
    program = with_gradient(name)
    sizes = sizes_for(name, program)
    wrong, known = violations(program, numbers_for(program, sizes, 3), sizes=sizes, points=points, owned_exp=owned)
    assert not wrong
    assert known == 1


@pytest.mark.parametrize("name", rows())
def test_float32_inputs_of_any_size(name: str) -> None:
    """Numbers as kernels get them, 2^20 times larger or smaller: a radius may be infinite, never wrong."""
    program = with_gradient(name)
    sizes = sizes_for(name, program)
    given = numbers_for(program, sizes, 5)
    for power in (-20, 20):
        scaled = {}
        for n, x in given.items():
            floats = np.vectorize(float, otypes=[np.float64])(np.asarray(x))
            scaled[n] = floats.astype(np.int64) if n in program.discrete else (floats * 2.0**power / 3).astype(np.float32)
        wrong, _ = violations(program, scaled, sizes=sizes)
        assert not wrong
