"""A constant factor of the scores: fitted where it is there, and not found where something else is wrong or nothing is."""

from __future__ import annotations

import numpy as np
import pytest

from symattn.verify.diagnosis.diagnose import diagnose
from symattn.verify.diagnosis.fitting import Fit, fitted_scale
from symattn.verify.faults.catalogue import CATALOGUE
from tests.verify.faults.running import seen
from tests.verify.planted import kernel

FEW = {k: CATALOGUE[k] for k in ("F05", "F13", "F87", "F166")}


def times(factor):
    """The correct kernel with its scores multiplied."""

    def run(query, key, value, **options):
        return kernel()(query, key, value, **{**options, "scale": factor * query.shape[3] ** -0.5})

    run.arrays = "numpy"
    return run


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("factor", "said"), [(1.01, "1.01"), (2**0.5, "sqrt(2)"), (2.0, "2"), (np.log(2), "ln 2")])
def test_a_factor_is_found(factor, said, dtype):
    (found,) = diagnose(seen(times(factor), {}, ("normal", "large"), dtype), None, FEW)
    assert found.fault == ("F166",) and found.kind == "mathematics"
    if (factor, dtype) != (1.01, "bfloat16"):
        assert found.title == f"scores times {said} (fitted)"
    else:
        assert found.title.startswith("scores times 1.0")


def test_something_else_is_no_factor():
    found = diagnose(seen(kernel("a row wrong"), {}, ("normal",)), None, {k: FEW[k] for k in ("F05", "F166")})
    assert [f.fault for f in found] == [()]


def test_no_factor_of_a_correct_kernel():
    (o,) = seen(kernel(), {}, ("normal",))
    fit = fitted_scale(o)
    assert fit.low <= 1 <= fit.high and fit.constant is None


def test_an_empty_interval_has_no_constant():
    assert Fit(1.5, 0.1, 1.6, 1.4).constant is None
