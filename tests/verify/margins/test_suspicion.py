"""Small faults that bounds miss are suspected, and correct kernels are not."""

from __future__ import annotations

import numpy as np
import pytest

from symattn.definition import Definition
from symattn.verify.inputs import Shape
from symattn.verify.judge import verify
from symattn.verify.margins.samples import Sample, fit, samples
from symattn.verify.margins.suspicion import suspicions
from tests.verify.margins.kernels import kernel, seen_of

D = Definition()
WIDE = Shape(1, 4, 4, 16, 64, 16, 16)


def alone(f):
    """The output without the LSE."""
    return lambda query, key, value, enable_gqa=False: f(query, key, value)[0]


def suspected(dtype="bfloat16", **wrong):
    seen = seen_of(alone(kernel(**wrong)), D, dtype, ("normal",), shape=WIDE)
    assert not seen[0].failing
    return {s.kind: s for s in suspicions(seen)}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_a_correct_kernel_is_not_suspected(dtype):
    assert suspected(dtype) == {}


def test_a_scale_that_is_off_by_a_thousandth_through_the_output_alone():
    found = suspected(scale=1.001)
    assert set(found) == {"scale"} and found["scale"].size == pytest.approx(1e-3, rel=0.3)


def test_an_exponential_with_a_bias():
    assert "scale" in suspected(bias=2e-3)


def test_a_gain():
    assert suspected(gain=1.002)["gain"].size == pytest.approx(2e-3, rel=0.2)


def test_sums_in_the_dtype_of_the_input_over_tiles():
    assert "noise" in suspected(tiles=8)


@pytest.mark.slow
def test_a_key_of_little_weight_that_is_lost_everywhere():
    def last(query, key, value, enable_gqa=False, scale=None):
        return kernel(scale=scale * query.shape[3] ** 0.5)(query, key[:, :, :-1], value[:, :, :-1])[0]

    seen = seen_of(last, Definition(scale="1/16"), "bfloat16", ("normal",), shape=Shape(1, 4, 4, 5, 1100, 4, 8))
    assert not seen[0].failing
    assert any("F87" in s.text for s in suspicions(seen) if s.kind == "fault")


def test_nothing_is_suspected_of_what_fails():
    seen = seen_of(kernel(scale=1.001, gain=1.1), D, "bfloat16", ("normal",), shape=WIDE)
    assert seen[0].failing and suspicions(seen) == ()


def test_what_is_expected_is_what_is_found():
    (o,) = seen_of(kernel(), D, "bfloat16", ("normal",), shape=WIDE)
    for s in samples(o):
        ratio = np.sqrt(np.mean((s.error / s.rms) ** 2))
        assert ratio < 1.15 and (ratio > 0.6 or s.tensor == "lse")
        assert (np.abs(s.error) <= s.chance).all()


def test_a_float64_output_says_nothing():
    (o,) = seen_of("numpy:flash", D, "float64", ("normal",))
    assert samples(o) == []


def sample(error):
    return Sample("", "out", error, np.ones_like(error), np.full_like(error, np.inf))


def test_a_fit_finds_its_amplitude_and_counts_rows():
    rng = np.random.default_rng(0)
    direction, noise = rng.normal(size=(2, 40, 8))
    x = fit([(sample(0.5 * direction + noise), direction)])
    assert x.amplitude == pytest.approx(0.5, abs=0.2) and x.t > 6
    shared = np.repeat(rng.normal(size=(40, 1)), 8, axis=1)  # one error a row: eight times the elements prove no more
    one = fit([(sample(shared[:, :1]), np.ones((40, 1)))])
    many = fit([(sample(shared), np.ones((40, 8)))])
    assert many.t == pytest.approx(one.t) and many.amplitude == pytest.approx(one.amplitude)


def test_few_rows_fit_nothing():
    assert fit([(sample(np.ones((5, 8))), np.ones((5, 8)))]) is None
    assert fit([]) is None


def test_a_run_is_suspect_and_fails_only_when_strict():
    report = verify(alone(kernel(scale=1.001)), D, dtype="bfloat16", shape=str(WIDE), only="shape")
    assert report.verdict == "suspect" and report.exit_code() == 0 and report.exit_code(strict=True) == 1
    assert any(line.startswith("suspect (estimated): O") for line in report.margins.lines())
    entry = report.margins.to_dict()["suspicions"][0]
    assert entry["estimated"] is True and entry["kind"] == "scale"
    assert all(c.verdict == "pass" for c in report.cases)
