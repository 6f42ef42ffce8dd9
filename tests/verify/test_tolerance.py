"""A-priori bounds hold for the worst inputs that were found, pairs cover what they are made of, and what is missed is missed."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from symattn import arithmetic
from symattn.binding import bind
from symattn.definition import Definition
from symattn.errors import DefinitionError, InputValueError, LimitError, ShapeError, UnknownNameError
from symattn.readings import slopes
from symattn.truth.truth import truth
from symattn.verify.inputs import KINDS, Shape, fields_for
from symattn.verify.kernels.call import Call
from symattn.verify.kernels.ours import Naive
from symattn.verify.programs import followed
from symattn.verify.tolerance.apriori import apriori
from symattn.verify.tolerance.pairs import covering, magnitude, tolerances
from tests.readings import declared as kernels
from tests.readings import simulated as sim
from tests.readings.declared import How, rounded

BF16 = arithmetic.flash("bfloat16", tile=16)
HOW = {
    "flash-bf16": (How(), BF16, "bfloat16"),
    "cut": (How(cut=True, p_cut=True, block=8), replace(BF16, truncate=("accumulate", "probability"), block=8), "bfloat16"),
    "scaled before": (How(prescale="bfloat16"), replace(BF16, scale_before=1), "bfloat16"),
    "row sum of the cast": (How(sum_cast=True), replace(BF16, sum_from_cast=True), "bfloat16"),
    "stale": (How(stale=2.0), replace(BF16, stale=2.0), "bfloat16"),
    "fp8": (How(p="e4m3", p_scale=256.0), arithmetic.flash_fp8(tile=16), "e4m3"),
    "tf32": (
        How(p="tf32", p_cut=True, operand="tf32", operand_cut=True, cut=True, out="float32"),
        arithmetic.flash_tf32(tile=16),
        "float32",
    ),
    "exp": (How(exp_error=1e-4), replace(BF16, exp_error=1.01e-4), "bfloat16"),
}


def extremes(fmt, magnitudes, seed, n=6, m=40, d=16):
    """Inputs within the magnitudes that try to make errors large: corners, few large entries, values of one sign and of two."""
    rng = np.random.default_rng(seed)
    top = [float(rounded(x * 0.999, fmt)) for x in magnitudes]
    signs = lambda *shape: rng.choice([-1.0, 1.0], size=shape)
    q, k, v = (rng.uniform(-1, 1, (2, rows, d)) for rows in (n, m, m))
    if seed % 3 == 0:
        q, k = signs(2, n, d), signs(2, m, d)
    if seed % 3 == 1:
        q, k = q * (rng.random(q.shape) < 0.2), k * (rng.random(k.shape) < 0.2)
    v = signs(2, m, d) if seed % 2 else np.ones((2, m, d))
    return [np.clip(rounded(x * t, fmt), -t, t) for x, t in zip((q, k, v), top, strict=True)]


@pytest.mark.parametrize("size", [0.5, 2.0, 3.5])
@pytest.mark.parametrize("name", HOW)
def test_no_conforming_kernel_exceeds_the_bounded_error_on_any_input_within_the_magnitudes(name, size):
    how, declared, fmt = HOW[name]
    program = followed(Definition(heads=2).program(), declared, gradient=False)
    largest = {"O": 0.0, "L": 0.0}
    for seed in range(6):
        q, k, v = extremes(fmt, (size, size, size), seed)
        found = apriori(program, {"Q": q, "K": k, "V": v}, {"Q": size, "K": size, "V": size}, declared)
        out, lse = kernels.flash(q, k, v, 0.25, how)
        true = sim.exact(q, k, v, np.ones((6, 40), bool), 0.25)
        for tensor, x in (("O", out), ("L", lse)):
            off = float(np.max(np.abs(x - true[tensor])))
            largest[tensor] = max(largest[tensor], off / found[tensor].error)
            assert off <= found[tensor].error
            assert float(np.max(np.abs(true[tensor]))) <= found[tensor].size
    assert largest["O"] > 0.01 or size > 1


@pytest.mark.parametrize(
    ("fields", "given"),
    [
        ({}, {}),
        ({"causal": "bottom-right", "sink": True}, {"sinks": 3}),
        ({"softcap": "20", "alibi": True}, {}),
        ({"bias": True, "lse_base": "2", "window": (4, 0)}, {"bias": 2}),
        ({"dropout": True, "dropout_p": "0.25", "empty_row": "uniform", "causal": "bottom-right"}, {}),
        ({"attn_mask": "boolean"}, {}),
        ({"normalizer": "sigmoid"}, {}),
    ],
)
@pytest.mark.parametrize("preset", ["flash-bf16", "eager-fp32"])
def test_the_bounded_error_holds_on_the_inputs_of_the_law_and_is_not_vacuous(preset, fields, given):
    d = Definition(**fields)
    t = tolerances(d, "1,2,1,7,9,4", preset, magnitudes={"query": 4, "key": 4, "value": 4, **given})
    for name, row in t.tensors.items():
        assert row.bounded < row.size / 4, name
    if preset == "eager-fp32":
        for seed in range(3):
            arrays = fields_for(d, Shape.parse("1,2,1,7,9,4"), "float32", seed)
            narrow, wide = (Naive().forward(Call(d, {k: _wide(a, w) for k, a in arrays.items()})) for w in (False, True))
            for name, row in t.tensors.items():
                with np.errstate(invalid="ignore"):
                    off = np.abs(np.float64(narrow[name]) - wide[name])
                assert np.nanmax(off, initial=0.0) <= row.bounded


def _wide(a, wide):
    return a.astype(np.float64) if wide and a.dtype.kind == "f" else a


def test_a_larger_magnitude_or_a_coarser_arithmetic_never_gives_a_smaller_bound():
    sizes = [
        tolerances(Definition(), "1,1,1,3,16,8", "flash-bf16", magnitudes={"query": x, "key": 2, "value": 1}) for x in (1, 2, 4)
    ]
    found = [t.tensors["out"].bounded for t in sizes]
    assert found == sorted(found) and found[0] < found[2]
    for coarse in ({"truncate": ["accumulate"]}, {"exp_error": 1e-3}, {"probability": "e4m3"}, {"tile": 1}, {"stale": 3.0}):
        more = tolerances(
            Definition(),
            "1,1,1,3,16,8",
            {"preset": "flash-bf16", **coarse},
            magnitudes={"query": 1, "key": 2, "value": 1},
        )
        assert more.tensors["out"].bounded > found[0], coarse


def test_what_no_rule_covers_has_no_bound():
    for fields in ({"normalizer": "sparsemax"}, {"qk_norm": "rms"}):
        t = tolerances(Definition(**fields), "1,1,1,3,5,4", "flash-bf16")
        assert math.isinf(t.tensors["out"].bounded) and "none can be had" in t.to_text()
        assert t.tensors["out"].missed["bounded"] is None and t.tensors["out"].atol > 0
    t = tolerances(Definition(), "1,2,1,4,4,8", "eager-bf16", magnitudes={"query": 10, "key": 10, "value": 1})
    assert 1 < t.tensors["out"].bounded < math.inf and "says nothing" in t.to_text()


@pytest.mark.parametrize("seed", range(20))
def test_a_pair_covers_and_none_with_two_digits_less_does(seed):
    rng = np.random.default_rng(seed)
    x = np.abs(rng.standard_normal(50)) * 10.0 ** rng.integers(-3, 3)
    y = 0.01 * x + 0.001 * np.abs(rng.standard_normal(50))
    atol, rtol = covering(x, y)
    allowed = [Fraction(atol) + Fraction(rtol) * Fraction(a) for a in x]
    assert all(a >= Fraction(b) for a, b in zip(allowed, y, strict=True))
    height = atol + rtol * x.mean()
    for other_atol, other_rtol in ((float(y.max()), 0.0), (0.0, float((y / x).max()))):
        assert height <= 1.25 * (other_atol + other_rtol * x.mean())
    assert any(a * Fraction(8, 10) < Fraction(b) for a, b in zip(allowed, y, strict=True))


def test_pairs_of_nothing_and_of_infinity():
    assert covering(np.array([]), np.array([])) == (0.0, 0.0)
    assert math.isnan(covering(np.array([1.0]), np.array([np.inf]))[0])


def test_the_pair_of_a_law_covers_the_derived_bounds_of_verify():
    d, a = Definition(causal="top-left"), arithmetic.get("flash-bf16")
    t = tolerances(d, "1,2,1,5,9,8", a, law="large", seed=3).tensors
    kind = next(k for k in KINDS if k.name == "large")
    fields = {k: x for k, x in fields_for(d, Shape.parse("1,2,1,5,9,8"), "bfloat16", 3, kind).items() if k[:5] != "grad_"}
    b = bind(d, fields)
    boxes = slopes.bounds(followed(b.program, a, gradient=False), dict(b.inputs), a, sizes=dict(b.sizes))
    exact = truth(b.program, dict(b.inputs), bits=128, outputs=("O",), sizes=dict(b.sizes))["O"]
    pair = t["out"]
    for need, mid in zip(boxes["O"].bound.ravel(), np.asarray(exact.mid, object).ravel(), strict=True):
        assert need <= pair.atol + pair.rtol * abs(float(mid)) * (1 + 1e-12)


def test_a_scale_error_beyond_what_is_missed_is_seen_and_one_below_is_not():
    t = tolerances(Definition(), "1,2,1,8,16,8", "flash-bf16")
    fields = fields_for(Definition(), Shape.parse("1,2,1,8,16,8"), "bfloat16", 0)
    q, k, v = (fields[n].astype(np.float64)[0] for n in ("query", "key", "value"))
    k, v = k.repeat(2, 0), v.repeat(2, 0)
    keep = np.ones((8, 16), bool)
    base = sim.exact(q, k, v, keep, 8**-0.5)
    for field, letter in (("out", "O"), ("lse", "L")):
        row = t.tensors[field]
        missed = row.missed["pair"]
        for error, seen in ((missed * 0.9, False), (missed * 2, True)):
            off = np.abs(sim.exact(q * (1 + error), k, v, keep, 8**-0.5)[letter] - base[letter])
            assert bool((off > row.atol + row.rtol * np.abs(base[letter])).any()) is seen, (field, error)
        assert row.missed["derived"] <= row.missed["pair"] <= row.missed["bounded"]


def test_the_document_and_the_text_say_which_is_which():
    t = tolerances(Definition(sink=True), "1,2,1,3,5,4", "flash-bf16", magnitudes={"query": "0.1", "sinks": 1})
    entry = json.loads(t.to_json())
    assert entry["magnitudes"]["query"] == "0.1" and set(entry["tensors"]) == {"out", "lse"}
    assert set(entry["tensors"]["out"]["estimated"]) == {"atol", "rtol", "greatest_bound"}
    text = t.to_text()
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "bounded: no correct kernel errs by more" in text and "estimated: atol + rtol" in text and "missed:" in text
    assert t.magnitudes["query"] >= 0.1 and "arithmetic  flash-bf16: flash;" in text


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"shape": "1,2"}, ShapeError, "six or seven"),
        ({"shape": "1,64,64,4096,4096,64"}, LimitError, "give fewer"),
        ({"arithmetic": "flash-bf61"}, UnknownNameError, "flash-bf16"),
        ({"arithmetic": None}, DefinitionError, "name one"),
        ({"law": "norml"}, UnknownNameError, "normal"),
        ({"magnitudes": {"quer": 1}}, InputValueError, "query"),
        ({"magnitudes": {"query": 0}}, InputValueError, "positive"),
        ({"magnitudes": {"query": "x"}}, InputValueError, "positive"),
        ({"magnitudes": {"query": float("inf")}}, InputValueError, "positive"),
        ({"magnitudes": {"query": "1/0"}}, InputValueError, "positive"),
    ],
)
def test_what_is_refused(change, error, message):
    given = {"shape": "1,2,1,3,5,4", "arithmetic": "flash-bf16"} | change
    with pytest.raises(error, match=message):
        tolerances(Definition(), given.pop("shape"), given.pop("arithmetic"), **given)


@pytest.mark.parametrize("text", ["0.1", "0.3", "1/3", "7"])
def test_magnitudes_are_rounded_up(text):
    assert 0 <= Fraction(magnitude("query", text)) - Fraction(text) < Fraction(1, 2**52)
