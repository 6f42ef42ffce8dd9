"""Every field of an arithmetic: a kernel that does what is declared is within the bound, one that does a notch more is not."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import sympy as sp

from symattn import arithmetic
from symattn.definition import Definition
from symattn.program import Program, Statement, indices, size, tensor
from symattn.readings import rounding, slopes
from symattn.verify.lists import kernel_program
from tests.readings import declared as kernels
from tests.readings import simulated as sim
from tests.readings.declared import How, rounded

BASE = arithmetic.flash("bfloat16", tile=16, folded=False, shift_roundings=0, scalar_roundings=0)
FP8 = arithmetic.flash_fp8(tile=16, truncate=())


@cache
def listed():
    return kernel_program(Definition(heads=2).program(), None, BASE)


def plain(q, k, v, declared):
    return rounding.evaluate(listed(), {"Q": q, "K": k, "V": v}, declared)


def by_slopes(q, k, v, declared):
    return slopes.bounds(listed(), {"Q": q, "K": k, "V": v}, declared)


def shares(q, k, v, how, declared, reading=plain):
    """The greatest error of output and LSE as a share of the bound."""
    scale = 1 / np.sqrt(q.shape[-1])
    out, lse = kernels.flash(q, k, v, scale, how)
    true = sim.exact(q, k, v, np.ones((q.shape[1], k.shape[1]), bool), scale)
    box = reading(q, k, v, declared)
    assert np.isfinite(box["O"].bound).all() and np.isfinite(box["L"].bound).all()
    found = []
    for name, x in (("O", out), ("L", lse)):
        error = np.abs(np.asarray(x - true[name], np.float64))
        with np.errstate(divide="ignore", invalid="ignore"):
            found.append(float(np.max(np.where(error == 0, 0, error / box[name].bound))))
    return found


def drawn(law, fmt="bfloat16", m=40, seed=1, d=16):
    q, k, v, _ = sim.inputs(law, "float32", seed=seed, n=6, m=m, d=d)
    return [rounded(x, fmt) for x in (q, k, v)]


def levels(weights, values, fmt="float32"):
    """One query whose weights relative to the first key are given (scale 1/4, d = 16), and values of width 16."""
    z = 4 * np.log(np.asarray(weights, np.float64))
    q, k = np.zeros((2, 1, 16)), np.zeros((2, len(z), 16))
    q[..., 0], k[..., 0] = 1, rounded(z, fmt)
    v = np.repeat(rounded(values, fmt)[None, :, None], 16, -1).repeat(2, 0)
    return q, k, v


CONFORMING = {
    "bfloat16 weights": (How(), BASE),
    "reversed tiles": (How(reverse=True, tile=7), replace(BASE, tile=7)),
    "float32 weights": (How(p=None), BASE),
    "weights cut off": (How(p_cut=True), replace(BASE, truncate=("probability",))),
    "row sum of the cast": (How(sum_cast=True), replace(BASE, sum_from_cast=True)),
    "scaled before": (How(prescale="bfloat16"), replace(BASE, scale_before=1)),
    "stale": (How(stale=2.0), replace(BASE, stale=2.0)),
    "truncating": (How(cut=True), replace(BASE, truncate=("accumulate",))),
    "blocks": (How(cut=True, block=8, bits=24), replace(BASE, truncate=("accumulate",), block=8, block_bits=24)),
    "short blocks": (How(cut=True, block=8, bits=13), replace(BASE, truncate=("accumulate",), block=8, block_bits=13)),
    "exp": (How(exp_error=1e-4), replace(BASE, exp_error=1.01e-4)),
    "exp low": (How(exp_error=-1e-4), replace(BASE, exp_error=1.01e-4)),
}
EIGHT = {
    "fp8": (How(p="e4m3", p_scale=256.0), FP8),
    "fp8 unscaled": (How(p="e4m3"), replace(FP8, probability_scale=1.0)),
    "fp8, a scale that is no power of two": (How(p="e4m3", p_scale=300.0), replace(FP8, probability_scale=300.0)),
    "fp8 late": (How(p="e4m3", p_scale=256.0, stale=1.5), replace(FP8, stale=1.5)),
    "fp8 sum": (How(p="e4m3", p_scale=256.0, sum_cast=True), replace(FP8, sum_from_cast=True)),
}
TF32 = {
    "tf32": (How(p="tf32", operand="tf32", out="float32"), arithmetic.flash_tf32(tile=16, truncate=())),
    "tf32 cut off": (
        How(p="tf32", p_cut=True, operand="tf32", operand_cut=True, cut=True, out="float32"),
        arithmetic.flash_tf32(tile=16),
    ),
}
LAWS = ("normal", "large", "cancelV", "onehot", "uniform", "meanV", "subnormal")


@pytest.mark.parametrize("width", [16, 12])
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    ("how", "declared", "fmt"),
    [
        *(pytest.param(*x, "bfloat16", id=n) for n, x in CONFORMING.items()),
        *(pytest.param(*x, "e4m3", id=n) for n, x in EIGHT.items()),
        *(pytest.param(*x, "float32", id=n) for n, x in TF32.items()),
    ],
)
def test_a_kernel_that_does_what_is_declared_stays_within_the_bound(how, declared, fmt, law, width):
    q, k, v = drawn(law, fmt, d=width)
    assert max(shares(q, k, v, how, declared)) <= 1


@pytest.mark.parametrize("law", ["normal", "meanV"])
@pytest.mark.parametrize("name", [*CONFORMING, *EIGHT])
def test_so_it_does_within_the_bound_from_slopes(name, law):
    how, declared = {**CONFORMING, **EIGHT}[name]
    q, k, v = drawn(law, "e4m3" if name in EIGHT else "bfloat16", d=12)
    assert max(shares(q, k, v, how, declared, by_slopes)) <= 1


SPARSE = levels([1.0] + [2.0**-23 * 0.99] * 800, np.ones(801))
"""A sum of 1 and of many numbers below its last place: cut off, all are lost."""
HALVES = levels([1.0] + [0.5 + 2.0**-8 - 2.0**-14] * 63, [0.0] + [1.0] * 63)
"""Weights just below the next number of bfloat16."""
DUST = levels([1.0] + [2.0**-11] * 1000, [1.0] + [-1.0] * 1000)
"""Half of the row in weights that 8-bit floats without a scale round to 0."""
RISING = levels([np.exp(-1.5)] * 16 + [1.0] * 16, np.linspace(-1, 1, 32))


def spread(bits):
    """A product of one large number and many that the accumulator cuts off, for queries and keys of width 16."""
    q, k = np.ones((2, 1, 16)), np.zeros((2, 3, 16))
    k[:, 0, 0], k[:, 0, 1:] = 64.0, 64.0 * 2.0**-bits * (1 - 2.0**-8)
    return q, k, np.ones((2, 3, 16))


WIDER = replace(BASE, input="float32")
NOTCHES = {
    "additions cut off": (SPARSE, How(cut=True, tile=801), replace(WIDER, tile=801), 1),
    "weights cut off": (HALVES, How(p_cut=True, tile=64, out="float32"), replace(WIDER, tile=64, output="float32"), 0),
    "a shorter accumulator": (spread(13), How(cut=True, block=16, bits=13), replace(BASE, block=16, block_bits=14), 1),
    "weights without their scale": (DUST, How(p="e4m3", tile=1001), replace(FP8, input="float32", tile=1001), 0),
    "a row sum of the cast": (drawn("normal"), How(sum_cast=True), BASE, 1),
    "queries scaled and rounded": (drawn("normal", d=12), How(prescale="float16"), BASE, 1),
    "a late maximum": (RISING, How(p="e4m3", p_scale=256.0, stale=2.0), replace(FP8, input="float32"), 0),
    "tf32": (drawn("large", "float32"), How(p=None, operand="tf32", out="float32"), arithmetic.flash("float32", tile=16), 0),
    "exp": (drawn("uniform"), How(exp_error=1.2e-4, tile=40), replace(BASE, exp_error=1e-4, tile=40), 1),
    "8-bit weights": (drawn("uniform"), How(p="e4m3"), replace(BASE, probability="float16"), 0),
}


@pytest.mark.parametrize("name", NOTCHES)
def test_a_kernel_that_does_a_notch_more_leaves_the_bound(name):
    (q, k, v), how, declared, tensor = NOTCHES[name]
    assert shares(q, k, v, how, declared)[tensor] > 1


def test_overflow_of_scaled_weights():
    q, k, v = drawn("normal", "e4m3")
    late = replace(FP8, stale=3.0, probability_overflow="nan")
    box = rounding.evaluate(listed(), {"Q": q, "K": k, "V": v}, late)["O"]
    assert np.isinf(box.bound).all()
    assert np.isfinite(rounding.evaluate(listed(), {"Q": q, "K": k, "V": v}, replace(late, stale=0.0))["O"].bound).all()


def test_weights_that_a_maximum_may_leave_behind_are_rounded_once():
    """The row sum of the cast reads the same rounded weights as the product: not rounded twice."""
    q, k, v = drawn("normal")
    both, one = (rounding.evaluate(listed(), {"Q": q, "K": k, "V": v}, a) for a in (replace(BASE, sum_from_cast=True), BASE))
    assert both["E"].bound.max() > 2.0**-9 > one["E"].bound.max()
    assert (both["N"].bound <= one["N"].bound * 1.001).all() and (both["l"].bound > 100 * one["l"].bound).all()


def test_blocks_count_steps_and_not_terms():
    a = replace(BASE, block=16)
    assert a.additions(100, 100) == 7 and a.additions(2, 100) == 4 and BASE.additions(100, 100) == 99
    assert replace(a, depth=3).additions(100, 100) == 3
    assert a.step_error == pytest.approx(17 * 2.0**-24 + 2.0**-24, rel=1e-6)
    assert replace(a, truncate=("accumulate",), block_bits=13).step_error == pytest.approx(17 * 2.0**-13, rel=1e-3)


def test_a_late_maximum_costs_what_it_rounds_and_no_more():
    """What is late is common to a row: the bound grows by some roundings of it, and not by its exponential."""
    q, k, v = drawn("normal")
    late, now = (rounding.evaluate(listed(), {"Q": q, "K": k, "V": v}, replace(BASE, stale=s)) for s in (6.0, 0.0))
    assert (late["O"].bound < 1.001 * now["O"].bound).all() and (late["O"].bound > now["O"].bound).all()
    assert (late["L"].bound > now["L"].bound + 6 * 2.0**-24).all() and (late["L"].bound < 3 * now["L"].bound).all()


def test_where_a_tensor_has_no_degree_a_late_maximum_costs_its_exponential():
    i, j = indices("i j")
    e = tensor("E", i, j)
    program = Program(
        (
            Statement(tensor("m", i), tensor("s", i, j), (j,), "max", range_only=True),
            Statement(e, sp.exp(tensor("s", i, j) - tensor("m", i))),
            Statement(tensor("x", i), e + e**2, (j,)),
        ),
        {i: size("n"), j: size("k")},
        ("x",),
    )
    box = rounding.evaluate(program, {"s": np.zeros((1, 3), np.float32)}, replace(BASE, stale=2.0))["x"]
    assert box.own > 3 * np.exp(2)
