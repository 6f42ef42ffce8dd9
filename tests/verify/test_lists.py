"""The lists that kernels follow, for many definitions: computed in float32 and 16 bits they stay within their bounds."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import sympy as sp

from symattn import arithmetic
from symattn.adjoint import adjoint
from symattn.definition import Definition
from symattn.presentation import present
from symattn.readings import numpy as reading
from symattn.readings import rounding
from symattn.verify.lists import kernel_program, staged
from tests.readings.simulated import DTYPES

DEFINITIONS = {
    "plain": {},
    "causal softcap": {"causal": "bottom-right", "softcap": 20},
    "grouped alibi sink": {"heads": 4, "kv_heads": 2, "alibi": True, "sink": True},
    "window": {"causal": "top-left", "window": (2, 0)},
    "bias, base 2": {"bias": True, "lse_base": 2},
    "boolean mask": {"attn_mask": "boolean"},
    "additive mask": {"attn_mask": "additive"},
    "uniform empty row": {"causal": "bottom-right", "empty_row": "uniform"},
    "score text": {"score": "20*tanh(s/20) - 0.5*(i - j)"},
    "from X with projections": {"start": "x", "heads": 2, "output_projection": True, "causal": "top-left"},
    "dropout": {"dropout": True},
    "no lse": {"lse": False},
}
NUMBERS = {"B": 1, "H": 2, "Hkv": 2, "G": 2, "n": 5, "m": 4, "d": 4, "dv": 3, "dmodel": 6, "dout": 5}


@cache
def lists(name):
    program = Definition(**DEFINITIONS[name]).program()
    gradient = present(program, adjoint(program))
    return {a: kernel_program(program, gradient, arithmetic.get(f"{a}-bf16")) for a in ("flash", "eager", "log")}, program.outputs


def given_for(program, rng, dtype):
    sizes = {s: NUMBERS[str(s)] for s in program.sizes}
    found = {}
    for x in program.inputs:
        shape = [int(sp.sympify(v).xreplace({k: sp.Integer(q) for k, q in sizes.items()})) for v in program.shapes[x]]
        a = np.abs(rng.standard_normal(shape)) % 1 if x == "p" else rng.standard_normal(shape)
        found[x] = rng.integers(0, 2, shape) if x in program.discrete else a.astype(DTYPES[dtype])
    if "B" in found:
        found["B"][0] = -np.inf
    return found, sizes


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("algorithm", ["flash", "eager", "log"])
@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_list_computed_in_a_dtype_stays_within_its_bound(name, algorithm, dtype):
    program = lists(name)[0][algorithm]
    for seed in range(2):
        given, sizes = given_for(program, np.random.default_rng(seed), dtype)
        with np.errstate(all="ignore"):
            low = reading.evaluate(program, given, sizes=sizes, dtype=DTYPES[dtype])
        box = rounding.evaluate(program, given, arithmetic.rounded_throughout(dtype), sizes=sizes)
        for o in program.outputs:
            x, b = low[o].astype(np.float64), box[o]
            finite = np.isfinite(b.value)
            assert np.array_equal(x[~finite], b.value[~finite], equal_nan=True), o
            x, value, bound = x[finite], b.value[finite], b.bound[finite]
            assert np.isfinite(bound).all() and (np.abs(x - value) <= bound).all(), o
            if dtype == "float32":
                assert bound.max(initial=0) < 1e-2 * max(1.0, np.abs(value).max(initial=0)), o


@pytest.mark.parametrize("name", [n for n in DEFINITIONS if n != "no lse"])
def test_a_staged_list_starts_from_the_saved_outputs(name):
    found, outputs = lists(name)
    part = staged(found["flash"], outputs)
    assert not set(part.outputs) & set(outputs) and "L" in part.inputs
    if outputs[0] == "O" and "empty_row" not in DEFINITIONS[name]:
        assert "O" in part.inputs and "E" not in part


@pytest.mark.parametrize("name", ["from X with projections", "uniform empty row"])
def test_the_row_sums_read_an_average_rounded_as_a_kernel_saves_it(name):
    program = lists(name)[0]["flash"]
    given, sizes = given_for(program, np.random.default_rng(0), "bfloat16")
    average = "O" if name.startswith("from X") else "O0"
    box = rounding.evaluate(program, given, arithmetic.get("flash-bf16"), sizes=sizes)[average]
    assert average not in program.outputs and box.held == "bfloat16"
    assert (box.bound >= 2.0**-9 * np.abs(box.value)).all()


def test_the_lists_differ_as_their_algorithms_do():
    found, _ = lists("plain")
    assert {"P"} <= {s.name for s in found["eager"]} and "N" not in found["eager"]
    assert {"N", "P_b"} <= {s.name for s in found["flash"]} and "P" not in found["flash"]
    assert "L" in found["log"]["P"].needs and "L" not in found["eager"]["P"].needs
