"""The emulated kernel without a fault is correct attention, against kernels that share no code with it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from symattn import formats
from symattn.verify.emulators import backward, forward
from symattn.verify.emulators.machine import Machine, round_to, within
from symattn.verify.kernels.ours import Flash
from tests.quality.kernels.correct import CORRECT, DEFINITIONS
from tests.quality.running import reference

KINDS = ("normal", "tall", "deep")
NAMES = tuple(n for n in DEFINITIONS if n != "nan empty row")


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("tile", [None, 4])
@pytest.mark.parametrize("name", NAMES)
def test_without_a_fault_it_is_attention(name, tile):
    from symattn.verify.kernels.registry import resolve

    for kind in KINDS:
        call = reference(DEFINITIONS[name], kind, "float64").call
        kernel = resolve(CORRECT["three-pass"].kernel("float64"))
        wanted = kernel.forward(call)
        setting, machine = Flash().setting(call), Machine(range="float64", tile=tile, query_tile=tile)
        out, lse = forward.forward(call.query, call.key, call.value, setting, machine)
        close(out, wanted["out"])
        close(lse, wanted["lse"])
        given = {k: call.fields[k] for k in ("grad_out", "grad_lse")}
        gradients = kernel.backward(call, given)
        saved = (given["grad_out"], out, lse, given["grad_lse"])
        found = backward.backward(call.query, call.key, call.value, *saved, setting, machine)
        for n in ("grad_query", "grad_key", "grad_value"):
            close(found[n], gradients[n])
        if "sinks" in found:
            close(found["sinks"], gradients["grad_sinks"])


@pytest.mark.parametrize("format", ["tf32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_rounding_is_that_of_exact_numbers(format):
    r = np.random.default_rng(0)
    f = formats.get(format)
    x = r.normal(size=400) * 2.0 ** r.integers(f.emin - f.precision - 2, f.emax + 2, size=400)
    ties = (r.integers(-40, 40, size=100) + 0.5) * float(f.smallest_subnormal)
    for values in (x, ties, np.array([0.0, np.inf, -np.inf, np.nan, float(f.max)])):
        wanted = [float(formats.round_exact(Fraction(v) if np.isfinite(v) else v, f)) for v in values.tolist()]
        finite = np.isfinite(values) | f.infinities
        np.testing.assert_array_equal(round_to(values, f)[finite], np.array(wanted)[finite])


def test_the_range_of_float32_is_that_of_numpy():
    x = np.array([1e39, -1e39, 3.4e38, 1e-46, 1e-45, 7e-46, 1.0])
    with np.errstate(over="ignore"):
        wanted = x.astype(np.float32)
    found = within(x, formats.get("float32"))
    np.testing.assert_array_equal(np.isinf(found), np.isinf(wanted))
    np.testing.assert_array_equal(found == 0, wanted == 0)
    assert (within(x, formats.get("float64")) == x).all()


def test_a_step_that_is_rounded_is_nudged_before():
    half = np.array([1 + 2.0**-8])  # a tie of bfloat16
    machine = Machine(rounded={"score": "bfloat16"})
    assert machine("score", half) == 1 and machine.nudged(1e-6)("score", half) > 1 and machine("exp", half) == half
