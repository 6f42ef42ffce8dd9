"""A-priori bounds of gradients hold for kernels with every rounding explicit, on inputs that make gradients and errors large."""

from __future__ import annotations

import numpy as np
import pytest

from symattn import arithmetic
from symattn.definition import Definition
from symattn.verify.programs import followed
from symattn.verify.tolerance.apriori import apriori
from symattn.verify.tolerance.pairs import tolerances
from tests.readings import simulated as sim

NAMES = ("dQ", "dK", "dV")
KEEP = np.ones((24, 40), bool)


def one_key(io, seed):
    """Every query finds the same key, far ahead of the others; values and incoming gradients of one size."""
    rng = np.random.default_rng(seed)
    q, k = np.ones((2, 24, 16)), np.full((2, 40, 16), -1.0)
    k[:, 7] = 3.0
    v, do = rng.choice([-2.0, 2.0], (2, 40, 16)), np.full((2, 24, 16), 1.5)
    return tuple(sim.cast(x, io) for x in (q, k, v, do))


def two_kinds(io, seed):
    """All scores are 0, and keys and values have one sign or the other together: dQ is as large as it can be."""
    sign = np.where(np.arange(40) % 2, 1.0, -1.0)[None, :, None]
    q = np.zeros((2, 24, 16)) + np.where(np.arange(16) % 2, 1.0, -1.0)
    k, v = np.zeros((2, 40, 16)) + 0.5 * sign, np.zeros((2, 40, 16)) + 2.0 * sign
    return tuple(sim.cast(x, io) for x in (q, k, v, np.full((2, 24, 16), 1.5)))


CASES = {
    "one key": one_key,
    "two kinds": two_kinds,
    **{law: lambda io, seed, law=law: sim.inputs(law, io, seed) for law in ("normal", "cancelV", "onehot", "meanV")},
}


def prior(q, k, v, do, declared, **fields):
    program = followed(Definition(heads=2, **fields).program(), declared, gradient=True)
    given = {"Q": q, "K": k, "V": v, "dO": do, "dL": np.zeros(q.shape[:2])}
    magnitudes = {n: float(np.abs(given[n]).max()) for n in ("Q", "K", "V", "dO")}
    return apriori(program, {n: given[n] for n in program.inputs}, magnitudes, declared)


@pytest.mark.parametrize("io", ["bfloat16", "float32"])
@pytest.mark.parametrize("case", CASES)
def test_no_tiled_kernel_exceeds_the_bounded_error_of_its_gradients(case, io):
    how = sim.How(io=io, p=io if io != "float32" else None)
    declared = arithmetic.flash(io, tile=16)
    for seed in range(3):
        q, k, v, do = CASES[case](io, seed)
        out, lse = sim.flash(q, k, v, KEEP, 0.25, how)
        grads = sim.flash_backward(q, k, v, do, KEEP, 0.25, out, lse, how)
        true, found = sim.exact(q, k, v, KEEP, 0.25, do), prior(q, k, v, do, declared)
        for name, x in zip(NAMES, grads, strict=True):
            assert np.abs(x - true[name]).max() <= found[name].error, name
            assert np.abs(true[name]).max() <= found[name].size, name


@pytest.mark.parametrize("case", CASES)
def test_no_eager_kernel_exceeds_it(case):
    declared = arithmetic.get("eager-fp32")
    q, k, v, do = CASES[case]("float32", 0)
    _, *grads = sim.eager(q, k, v, do, KEEP, 0.25, "float32")
    true, found = sim.exact(q, k, v, KEEP, 0.25, do), prior(q, k, v, do, declared)
    for name, x in zip(NAMES, grads, strict=True):
        assert np.abs(x - true[name]).max() <= found[name].error, name


def test_sums_over_queries_count_every_query_and_sums_over_keys_count_a_row_once():
    q, k, v, do = one_key("float32", 0)
    found, true = prior(q, k, v, do, arithmetic.get("flash-fp32")), sim.exact(q, k, v, KEEP, 0.25, do)
    assert np.abs(true["dV"]).max() == pytest.approx(24 * 1.5, rel=1e-4)  # 24 queries find one key
    assert 24 * 1.499 < found["dV"].size < 1.6 * 24 * 1.5
    q, k, v, do = two_kinds("float32", 0)
    found, true = prior(q, k, v, do, arithmetic.get("flash-fp32")), sim.exact(q, k, v, KEEP, 0.25, do)
    row, alone = np.abs(true["dQ"]).max(), 0.25 * 0.5 * 16 * 2 * 1.5  # scale K dP of one key, which has all the weight
    assert 0.9 * alone < row <= found["dQ"].size < 8 * alone  # and not 40 keys times it


def test_gradients_are_among_the_tolerances_where_they_are_asked_for():
    given = {"query": 2, "key": 2, "value": 2, "grad_out": 1}
    plain = tolerances(Definition(causal="top-left", sink=True), "1,2,1,8,16,8", "flash-fp32")
    assert set(plain.tensors) == {"out", "lse"}
    t = tolerances(Definition(causal="top-left", sink=True), "1,2,1,8,16,8", "flash-fp32", magnitudes=given, gradient=True)
    assert set(t.tensors) == {"out", "lse", "grad_query", "grad_key", "grad_value", "grad_sinks"}
    for name, row in t.tensors.items():
        assert row.bounded < row.size / 50, name
        assert row.greatest <= row.bounded, name
        assert 0 < row.missed["derived"] <= row.missed["bounded"], name
    assert "dSink" in t.to_text() and "|grad_out| <= 1" in t.to_text()


@pytest.mark.parametrize("fields", [{"softcap": "20"}, {"lse_base": "2"}, {"window": (4, 0)}, {"normalizer": "sigmoid"}])
def test_bounded_gradients_of_other_definitions_are_no_less_than_the_derived_bounds_of_an_input(fields):
    t = tolerances(Definition(**fields), "1,2,1,8,16,8", "flash-fp32", gradient=True)
    for name, row in t.tensors.items():
        assert row.greatest <= row.bounded < row.size, name


def merged_at_worst(q, k, v, parts):
    """Exact but for the log-sum-exps of the parts: each errs by two roundings to float32, towards one sign of the values."""
    wide, outs, sums = np.longdouble, [], []
    for t in np.array_split(np.arange(k.shape[1]), parts):
        found = sim.exact(q, k[:, t], v[:, t], np.ones((q.shape[1], len(t)), bool), 1.0)
        sign = np.sign(v[0, t[0], 0])
        outs.append(found["O"])
        sums.append(found["L"] + sign * 2 * 2.0**-24 * np.abs(found["L"]))
    top = np.max(sums, axis=0)
    weights = [np.exp(x - top)[..., None] for x in sums]
    return sum(w * o for w, o in zip(weights, outs, strict=True)) / sum(weights, wide(0))


def test_parts_that_are_merged_cost_what_their_log_sum_exps_err_by():
    rng = np.random.default_rng(3)
    q, k = np.full((2, 24, 1), 1.0), -190.0 - 0.1 * rng.random((2, 40, 1))
    v = np.repeat(np.where(np.arange(40) // 10 % 2, 1.0, -1.0)[None, :, None], 2, 0)
    q, k, v, do = (sim.cast(x, "float32") for x in (q, k, v, np.ones((2, 24, 1))))
    merged, whole = (prior(q, k, v, do, arithmetic.get(n))["O"].error for n in ("split-fp32", "flash-fp32"))
    off = np.abs(merged_at_worst(q, k, v, 4) - sim.exact(q, k, v, KEEP, 1.0)["O"]).max()
    assert 1e-6 < off <= merged - whole
