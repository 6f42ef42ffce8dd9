"""The replay never rejects a kernel of its declaration, rejects what the bound on O lets through, and finds tiles."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import sympy as sp

from symattn import arithmetic, variants
from symattn.definition import Definition
from symattn.program import Program, Statement, indices, size, tensor
from symattn.readings import rounding
from symattn.readings.degrees import degrees_of
from symattn.verify.inputs import Shape, fields_for
from symattn.verify.judge import run_case
from symattn.verify.kernels.ours import Flash
from symattn.verify.lists import kernel_program
from symattn.verify.reference import Reference
from symattn.verify.replay.bounds import Replay
from symattn.verify.replay.maxima import running
from symattn.verify.replay.plan import plan
from symattn.verify.replay.replayed import fingerprints
from symattn.verify.report import Report
from tests.readings import declared as kernels
from tests.readings import simulated as sim
from tests.readings.declared import How, rounded

DECLARED = {"order": "forward", "shift": "running", "folded": False, "shift_roundings": 0, "scalar_roundings": 0}
BASE = arithmetic.flash("bfloat16", tile=16, **DECLARED)
FP16, FP8 = arithmetic.flash("float16", tile=16, **DECLARED), arithmetic.flash_fp8(tile=16, truncate=(), **DECLARED)
LAWS = ("normal", "large", "cancelV", "onehot", "uniform", "meanV", "hugelogit", "subnormal")


@cache
def listed(**fields):
    return kernel_program(Definition(heads=2, **fields).program(), None, BASE)


def drawn(law, fmt, seed=2, n=6, m=72, d=12):
    q, k, v, _ = sim.inputs(law, "float32", seed=seed, n=n, m=m, d=d)
    return [rounded(x, fmt) for x in (q, k, v)]


def replay(q, k, v, declared):
    return Replay(listed(), {"Q": q, "K": k, "V": v}, declared)


CONFORMING = {
    "bfloat16": (How(), BASE),
    "float16": (How(p="float16", out="float16"), FP16),
    "reverse": (How(reverse=True), replace(BASE, order="reverse")),
    "tile 7": (How(tile=7), replace(BASE, tile=7)),
    "one tile": (How(tile=72), replace(BASE, tile=None)),
    "maximum of the row": (How(tile=72), replace(BASE, tile=16, shift="row")),
    "weights cut off": (How(p_cut=True), replace(BASE, truncate=("probability",))),
    "row sum of the cast": (How(sum_cast=True), replace(BASE, sum_from_cast=True)),
    "truncating blocks": (How(cut=True, block=8), replace(BASE, truncate=("accumulate",), block=8)),
    "exp": (How(exp_error=1e-4), replace(BASE, exp_error=1.01e-4)),
    "exp low": (How(exp_error=-1e-4), replace(BASE, exp_error=1.01e-4)),
    "scaled before": (How(prescale="bfloat16"), replace(BASE, scale_before=1)),
    "fp8": (How(p="e4m3", p_scale=256.0), FP8),
    "fp8, a scale that is no power of two": (How(p="e4m3", p_scale=300.0), replace(FP8, probability_scale=300.0)),
    "tf32": (
        How(p="tf32", p_cut=True, operand="tf32", operand_cut=True, cut=True, out="float32"),
        arithmetic.flash_tf32(tile=16, **DECLARED),
    ),
}


@pytest.mark.parametrize("name", CONFORMING)
def test_a_kernel_that_does_what_is_declared_is_possible_everywhere(name):
    how, declared = CONFORMING[name]
    equal = []
    for law in LAWS:
        q, k, v = drawn(law, {"float8_e4m3fn": "e4m3"}.get(declared.input, declared.input))
        found = replay(q, k, v, declared).intervals()["O"]
        out, _ = kernels.flash(q, k, v, 1 / np.sqrt(12), how)
        assert found.inside(out).all(), law
        equal.append(np.mean(replay(q, k, v, declared).values(declared)["O"] == out))
    assert name in ("scaled before", "tf32", "exp", "exp low") or np.median(equal) > 0.9


@pytest.mark.parametrize("io", ["bfloat16", "float16"])
def test_kernels_that_fold_the_scale_are_possible_everywhere(io):
    folded = arithmetic.flash(io, tile=16, order="forward", shift="running")
    for law in LAWS:
        q, k, v, _ = sim.inputs(law, io, seed=3, m=72)
        out, _ = sim.flash(q, k, v, np.ones((24, 72), bool), 0.25, sim.How(io=io, p=io, fold=True))
        assert replay(q, k, v, folded).intervals()["O"].inside(out).all(), law


NOTCHES = {
    "another tile": (How(tile=32), BASE, "normal"),
    "another order": (How(reverse=True), BASE, "normal"),
    "the maximum of the row": (How(tile=72), BASE, "normal"),
    "float32 weights": (How(p=None), BASE, "normal"),
    "weights cut off": (How(p_cut=True), BASE, "uniform"),
    "row sum of the cast": (How(sum_cast=True), BASE, "normal"),
    "scale off by a thousandth": (How(scale_error=1e-3), BASE, "normal"),
    "scale off by a thousandth, float16": (How(p="float16", out="float16", scale_error=1e-3), FP16, "normal"),
    "queries scaled and rounded": (How(prescale="float16"), BASE, "normal"),
    "8-bit weights without their scale": (How(p="e4m3"), FP8, "normal"),
}


@pytest.mark.parametrize("name", NOTCHES)
def test_a_notch_more_is_impossible_and_the_bound_lets_it_through(name):
    how, declared, law = NOTCHES[name]
    q, k, v = drawn(law, {"float8_e4m3fn": "e4m3"}.get(declared.input, declared.input))
    out, _ = kernels.flash(q, k, v, 1 / np.sqrt(12), how)
    assert not replay(q, k, v, declared).intervals()["O"].inside(out).all()
    true = sim.exact(q, k, v, np.ones((6, 72), bool), 1 / np.sqrt(12))["O"]
    box = rounding.evaluate(listed(), {"Q": q, "K": k, "V": v}, declared)["O"]
    assert (np.abs(out - true) <= box.bound).all()


def test_a_lost_key_of_little_weight_is_impossible():
    q, k, v = drawn("normal", "bfloat16")
    out, _ = kernels.flash(q, k[:, :-1], v[:, :-1], 12**-0.5, How())
    assert not replay(q, k, v, BASE).intervals()["O"].inside(out).all()


def test_midpoints_may_go_either_way():
    """One weight is exactly between two numbers of the format: both kernels are possible, and nothing between."""
    low, high = 0.5, 0.5 + 2.0**-8
    e = (low + high) / 2
    q, k, v = np.zeros((2, 1, 2)), np.zeros((2, 2, 2)), np.zeros((2, 2, 2))
    q[..., 0], k[:, 1, 0], v[:, 1] = 1.0, np.log(e) * np.sqrt(2), 1.0
    found = replay(q, k, v, replace(BASE, input="float64", output="float32")).intervals()["O"]
    for w in (low, high):
        assert found.inside(np.full((2, 1, 2), np.float32(w / (1 + e)))).all()
    assert found.high.max() < (high + 1e-5) / (1 + e) and found.low.min() > (low - 1e-5) / (1 + e)


@pytest.mark.parametrize(("tile", "order"), [(16, "forward"), (32, "forward"), (32, "reverse"), (64, "reverse")])
def test_the_fingerprint_finds_tile_and_order(tile, order):
    q, k, v = drawn("normal", "bfloat16", m=150)
    out, _ = kernels.flash(q, k, v, 12**-0.5, How(tile=tile, reverse=order == "reverse"))
    r = Replay(listed(), {"Q": q, "K": k, "V": v}, replace(BASE, order=None, shift=None))
    first, second = fingerprints(r, "O", out, lambda name, x: x)[:2]
    assert (first.tile, first.order) == (tile, order) and first.equal > 0.95 * out.size > 1.02 * second.equal


DEFINITIONS = [
    {},
    {"softcap": "5", "causal": "bottom-right"},
    {"sink": True, "window": (3, 0)},
    {"attn_mask": "additive", "bias": True},
    {"attn_mask": "boolean", "alibi": True, "lse_base": "2"},
    {"dropout": True, "dropout_p": "1/2", "causal": "top-left", "empty_row": "uniform"},
]


class Tiled(Flash):
    """The built-in kernel with another tile than it declares."""

    def __init__(self, tile):
        self.tile = tile

    def arithmetic(self, call):
        return replace(super().arithmetic(call), tile=4)


def case(kernel, d, dtype, shape, declared=None):
    """A kernel on standard normal numbers of a shape, judged."""
    ref = Reference(d, fields_for(d, Shape.parse(shape), dtype, 0))
    return run_case(kernel, ref, "shape", backward=False, arithmetic=declared)


@pytest.mark.parametrize("fields", DEFINITIONS)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_variants_of_the_built_in_kernel_are_possible_and_another_tile_is_not(fields, dtype):
    d = Definition(**fields)
    good = case(Flash(), d, dtype, "1,4,2,12,24,6").tensors[0].replayed
    assert good is not None and not good.failing and good.equal > 0.9 * good.total
    if dtype == "bfloat16":
        bad = case(Tiled(7), d, dtype, "1,4,2,12,24,6").tensors[0]
        assert bad.replayed.failing and bad.verdict == "fail" and not bad.comparison.failing


def test_a_scalar_that_may_come_before_the_cast_or_after_the_product_is_not_replayed():
    """Kernels multiply by 1/(1-p) in either place, and both are right; a power of two makes no difference."""
    for p, there in (("1/4", False), ("1/2", True), (None, False)):
        d = Definition(dropout=True, dropout_p=p)
        assert (case(Flash(), d, "bfloat16", "1,4,2,12,24,6").tensors[0].replayed is not None) is there


def test_a_sink_may_come_in_at_the_end():
    """The weights are then relative to the maxima of the keys alone; both ways are tried, and a wrong tile fits neither."""
    q, k, v = drawn("normal", "bfloat16", m=48)
    sink = np.array([3.0, 6.0])
    out = []
    for tile in (16, 12):
        o, lse = kernels.flash(q, k, v, 12**-0.5, How(tile=tile, out="float32"))
        out.append(rounded(rounded(o / (1 + np.exp(sink[:, None] - lse))[..., None], "float32"), "bfloat16"))
    r = Replay(listed(sink=True), {"Q": q, "K": k, "V": v, "sink": sink}, BASE)
    assert r.shifts() == ("row", "keys")
    inside = [[r.intervals(start=s)["O"].inside(o).all() for s in r.shifts()] for o in out]
    assert inside == [[False, True], [False, False]]


def report_of(found):
    return Report(kernel="tiled", definition=found.definition, arithmetic=found.arithmetic, cases=(found,), replay="")


def test_the_report_says_what_the_replay_found():
    report = report_of(case(Tiled(7), Definition(), "bfloat16", "1,2,2,16,40,6"))
    text, entry = report.to_text(), json.loads(report.to_json())["cases"][0]["tensors"]["out"]
    assert report.verdict == "fail" and "O replayed (tile 4, forward): " in text and "the replay gives" in text
    assert entry["verdict"] == "fail" and entry["failing"] == 0 and entry["replayed"]["failing"] > 0
    assert set(entry["replayed"]["worst"]) == {"index", "kernel", "least", "greatest"}
    silent = report_of(case(Tiled(32), Definition(), "bfloat16", "1,2,2,16,72,6", arithmetic.get("flash-bf16")))
    assert silent.verdict == "pass" and "O fits best to tiles of 32 keys, forward" in silent.to_text()
    assert silent.cases[0].tensors[0].replayed.declared is None


def test_what_only_the_replay_sees_is_no_leak_of_nan():
    """Ledgers of kernels explain what is NaN: an element outside of the replay is none."""
    [out] = [t for t in case(Tiled(7), Definition(), "bfloat16", "1,2,2,16,40,6").tensors if t.name == "out"]
    assert out.verdict == "fail" and not out.only_nan


def test_degrees_follow_from_the_statements():
    i, j = indices("i j")
    n, m = size("n"), size("m")
    t = tensor
    s, top, e = t("s", i, j), t("m", i), t("E", i, j)
    head = (
        Statement(top, s, (j,), "max", range_only=True),
        Statement(e, sp.exp(s - top)),
    )
    rows = {
        "sum": (Statement(t("x", i), e, (j,)), {"m": 1}),
        "square": (Statement(t("x", i, j), e**2), {"m": 2}),
        "quotient": (Statement(t("x", i), e / t("w", j) ** 2, (j,)), {"m": 1}),
        "mean": (Statement(t("x", i, j), e / e), {}),
        "with a number added": (Statement(t("x", i, j), e + 1), None),
        "maximum of weights": (Statement(t("x", i), e, (j,), "max"), None),
        "product of weights": (Statement(t("x", i), e, (j,), "prod"), None),
        "the maximum itself": (Statement(t("x", i, j), e * top), None),
        "sine": (Statement(t("x", i, j), sp.sin(e)), None),
        "half": (Statement(t("x", i, j), sp.exp((s - top) / 2)), {"m": sp.Rational(1, 2)}),
        "twice": (Statement(t("x", i, j), sp.exp(s - 2 * top)), {"m": 2}),
        "compared with a number": (Statement(t("x", i, j), s, where=sp.Gt(e, 2)), None),
        "compared with nothing": (Statement(t("x", i, j), s, where=sp.Gt(e, 0)), {}),
    }
    for name, (row, want) in rows.items():
        assert degrees_of(Program((*head, row), {i: n, j: m}, ("x",)))["x"] == want, name


def test_running_maxima_by_hand():
    scores = np.array([[0.0, 3.0, 1.0, 2.0, 5.0]])
    assert running(scores, 2, "forward").tolist() == [[3.0, 3.0, 5.0]]
    assert running(scores, 2, "reverse").tolist() == [[5.0, 5.0, 5.0]]
    assert running(-scores, 2, "reverse").tolist() == [[0.0, -1.0, -5.0]]
    assert running(scores, None, "forward").tolist() == [[5.0]]


def test_nothing_to_replay():
    q, k, v = drawn("normal", "float32")
    assert not replay(q, k, v, arithmetic.flash("float32", tile=16, **DECLARED)).possible
    assert plan(Definition.of(**variants.get("online-softmax").fields).program()) is None
    assert case(Flash(), Definition(), "float32", "1,2,2,3,5,4").tensors[0].replayed is None
