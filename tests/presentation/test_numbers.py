"""Presented lists and the lists that kernels run, against the raw gradient by numbers: an evaluator at 80 digits of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from symattn.presentation import normalise_last, recompute, refold
from symattn.readings import mpmath as reading
from tests.presentation.cases import DEFINITIONS, listed, sizes_of, values
from tests.tiny import MP, run


def floats(inputs: dict[str, Any]) -> dict[str, Any]:
    """The inputs, multiples of 1/64, as the floats that they are."""
    return {n: np.array(v, dtype=np.float64) for n, v in inputs.items()}


def near(a: Any, b: Any) -> bool:
    """Within 1e-45, infinities and NaN alike."""
    x, y = np.ravel(a), np.ravel(b)
    assert x.shape == y.shape and x.size
    return all(u == v or (u != u and v != v) or abs(MP.mpf(u) - MP.mpf(v)) < MP.mpf(10) ** -45 for u, v in zip(x, y, strict=True))


@pytest.mark.parametrize("name", DEFINITIONS)
def test_presented_and_raw_gradients_agree(name: str) -> None:
    program, gradient, presented = listed(name)
    sizes, inputs = sizes_of(gradient), values(gradient)
    raw = reading.evaluate(gradient, floats(inputs), digits=60, sizes=sizes)
    kernel = recompute(program, presented)
    for new in (presented.program, refold(presented).program, kernel):
        found = run(new, inputs, sizes)  # no value is undefined here: a division by the sum of an empty row would raise
        assert all(near(raw[o], found[o]) for o in gradient.outputs)
    forward = run(kernel, inputs, sizes)
    whole = reading.evaluate(program, floats({n: inputs[n] for n in program.inputs}), digits=60, sizes=sizes)
    assert all(near(whole[o], forward[o]) for o in program.outputs)
    for o in gradient.outputs:  # and the comparison can fail
        wrong = np.array(raw[o], dtype=object)
        wrong[(0,) * wrong.ndim] += MP.mpf(10) ** -40
        assert not near(wrong, raw[o])


@pytest.mark.parametrize("name", ["empty rows", "additive mask", "boolean mask", "uniform empty rows", "sink base 2"])
def test_empty_rows(name: str) -> None:
    """Rows 0 (and 1) see no key: their gradients are 0 and finite, their output is what the definition says."""
    program, gradient, presented = listed(name)
    sizes, inputs = sizes_of(gradient), values(gradient)
    forward = run(normalise_last(program), inputs, sizes)
    assert all(p == 0 for p in np.ravel(run(program, inputs | {"l": 1}, sizes)["P"][0]))
    assert (forward["L"][0] == MP.mpf("-inf")) == ("sink" not in name)
    found = run(recompute(program, presented), inputs, sizes)
    assert all(x == 0 for x in (*np.ravel(found["dQ"][0]), *np.ravel(found["P_b"][0])))
    mean = sum(inputs["V"][j] for j in range(sizes["m"])) / sizes["m"]
    assert all(near(a, b) for a, b in zip(found["O"][0], mean if "uniform" in name else [0] * sizes["dv"], strict=True))
