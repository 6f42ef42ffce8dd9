"""What a run says it would have shown, it shows; and what is much smaller it does not."""

from __future__ import annotations

import numpy as np
import pytest

from symattn.arithmetic import default_for
from symattn.definition import Definition
from symattn.verify.faults.fault import Prediction
from symattn.verify.inputs import Shape
from symattn.verify.margins.directions import weights
from symattn.verify.margins.power import gain, power
from tests.verify.margins.kernels import kernel, seen_of

D = Definition()
CASES = ("normal", "large")
DTYPES = ("bfloat16", "float32")


@pytest.fixture(scope="module", params=DTYPES)
def run(request):
    return request.param, power(seen_of(kernel(), D, request.param, CASES))


def failing(dtype, **wrong):
    return {n for o in seen_of(kernel(**wrong), D, dtype, CASES, arithmetic=default_for(dtype)) for n in o.failing}


def test_a_scale_of_that_error_fails(run):
    dtype, p = run
    assert set(p.scale) == {"out", "lse"}
    for name, shown in p.scale.items():
        assert name in failing(dtype, scale=1 + shown.size)
        assert name in failing(dtype, scale=1 - 1.01 * shown.size)


def test_what_fails_a_kernel_that_declares_its_arithmetic_shows_in_one_that_does_not(run):
    dtype, p = run
    wrong = kernel(gain=1 + 1.01 * p.gain["out"].size)
    shown = {t.name: t.verdict for o in seen_of(wrong, D, dtype, (p.gain["out"].case,)) for t in o.reports}
    assert shown["out"] in ("suspect", "fail")


def test_a_scale_of_a_hundredth_passes(run):
    dtype, p = run
    assert not failing(dtype, scale=1 + min(x.size for x in p.scale.values()) / 100)


def test_a_gain_of_that_size_fails(run):
    dtype, p = run
    assert "out" in failing(dtype, gain=1 + 1.01 * p.gain["out"].size)
    assert "out" not in failing(dtype, gain=1 + p.gain["out"].size / 100)


def test_a_lost_key_of_that_weight_fails():
    seen = seen_of(kernel(), D, "float32", ("large",))
    p = power(seen)
    table = weights(seen[0].situation)
    at = np.argwhere((table >= p.key.size / 1.1) & (table <= p.key.size))
    assert len(at)
    *_, i, j = at[0]
    lost = seen_of(kernel(lost=(i, j)), D, "float32", ("large",))[0]
    assert p.key.tensor in lost.failing


def test_weights_are_those_of_the_softmax():
    (o,) = seen_of(kernel(), D, "float32", ("normal",))
    q, k = (o.situation.fields[n].astype(np.float64) for n in ("query", "key"))
    s = q @ k.repeat(2, 1).swapaxes(2, 3) / np.sqrt(q.shape[3])
    e = np.exp(s - s.max(3, keepdims=True))
    assert np.allclose(weights(o.situation), e / e.sum(3, keepdims=True), atol=1e-14)


def test_a_better_arithmetic_has_more_power():
    found = {t: power(seen_of(kernel(), D, t, ("normal",), shape=Shape(1, 2, 2, 5, 7, 4, 4))) for t in DTYPES}
    narrow, wide = (found[t] for t in DTYPES)
    assert wide.scale["out"].size < narrow.scale["out"].size / 100
    assert wide.gain["out"].size < narrow.gain["out"].size / 100


def test_a_gain_of_nothing_never_shows():
    assert gain(Prediction(np.zeros(3), np.full(3, 1e-3))) == np.inf


def test_the_line_fits_what_it_says(run):
    line = run[1].line
    assert line.startswith("this run would have shown: scale off by ") and "gain of" in line
