"""Programs as plain functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from symattn.errors import ProgramError, UnknownNameError
from symattn.lambdify import READINGS, lambdify
from tests.programs import attention

GIVEN: dict[str, Any] = {"Q": [[1.0, 2.0]], "K": [[0.5, 0.25], [1.0, 1.0]], "V": [[1.0], [3.0]], "scale": 0.5}


@pytest.mark.parametrize("reading", READINGS)
def test_a_function_of_every_reading(reading: str) -> None:
    f = lambdify(attention(lse="e"), reading)
    assert f.outputs == ("O", "L") and set(f.inputs) == set(GIVEN)  # type: ignore[attr-defined]
    o, lse = f(**GIVEN)
    assert abs(float(o[0, 0]) - 2.46211715726) < 1e-10 and o.shape == (1, 1) and lse.shape == (1,)
    by_position = f(*(GIVEN[k] for k in f.inputs))  # type: ignore[attr-defined]
    assert float(by_position[0][0, 0]) == float(o[0, 0])


def test_options_and_outputs() -> None:
    f = lambdify(attention(), "numpy", "P", dtype="float32")
    p = f(**{k: v for k, v in GIVEN.items() if k != "V"})  # V is not needed for P
    assert p.dtype == np.float32 and p.shape == (1, 2)
    digits = lambdify(attention(), "mpmath", "O", digits=80)(**GIVEN)[0, 0]
    assert digits.context.dps == 90
    assert lambdify(attention(), "balls", ["P", "l"], bits=333)(**GIVEN)[1][0].rel_accuracy_bits() > 320


def test_what_does_not_exist() -> None:
    with pytest.raises(UnknownNameError, match="mpmath"):
        lambdify(attention(), "mpmat")
    with pytest.raises(UnknownNameError, match="digits"):
        lambdify(attention(), "mpmath", digit=3)
    with pytest.raises(ProgramError, match="Q"):
        lambdify(attention(), "numpy", "Qq")
    f = lambdify(attention())
    with pytest.raises(TypeError, match="by position and by name"):
        f(1, **GIVEN)
    with pytest.raises(TypeError, match="arguments"):
        f(1, 2, 3, 4, 5)
