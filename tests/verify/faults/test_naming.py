"""Planted faults are named, and named first; correct kernels get no diagnosis."""

from __future__ import annotations

import numpy as np
import pytest

from symattn.verify.diagnosis.diagnose import diagnose
from symattn.verify.faults.catalogue import CATALOGUE
from tests.verify.faults.running import diagnosis, seen
from tests.verify.planted import BACKWARD, FORWARD, kernel

IDS = {
    "heads tiled": "F01", "no scale": "F05", "scale 1/d": "F06", "model width": "F07", "top-left": "F13",
    "strict causal": "F14",
    "one future key": "F15", "causal per 4 rows": "F16", "window + 1": "F18", "window - 1": "F19", "softcap dropped": "F20",
    "softcap after mask": "F21", "alibi sign": "F22c", "alibi exponent": "F22a", "sink dropped": "F23",
    "mask after softmax": "F26",
    "mask -1e-9": "F28", "polarity": "F30", "padded key": "F33", "softmax over queries": "F38", "lse base 2": "F40",
    "lse without maximum": "F41", "additive mask dropped": "F79",
    "dK without scale": "B01", "dQ without scale": "B02", "dQ times log2e": "B03", "last head of the group": "B04",
    "group by remainder": "B06", "D omitted": "B07", "mask ignored": "B09", "window + 1 backward": "B11",
    "softcap derivative": "B12",
    "dSink 0": "B13", "dSink of the last batch": "B17", "dLSE ignored": "B16", "dMask of the last batch": "B17",
    "swapped dK dV": "B43",
}  # fmt: skip
ROWS = {**FORWARD, **BACKWARD}
QUICK = ("top-left", "softcap after mask", "sink dropped", "D omitted", "mask ignored")


def named(fault, dtype):
    fields, kind = ROWS[fault]
    kinds = dict.fromkeys((kind, "normal", "tall"))
    return diagnosis(kernel(fault), fields, kinds, dtype, backward=fault in BACKWARD)


@pytest.mark.parametrize("fault", QUICK)
def test_a_planted_fault_is_named(fault):
    found = named(fault, "bfloat16")
    assert found[0].fault == (IDS[fault],)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64"])
@pytest.mark.parametrize("fault", IDS)
def test_its_class_is_named_first_in_every_dtype(fault, dtype):
    found = named(fault, dtype)
    first = [f.fault for f in found if len(f.fault) == 1]
    assert (IDS[fault],) in first[:3]


@pytest.mark.parametrize(
    ("fields", "backward"),
    [({}, True), ({"causal": "bottom-right", "softcap": 2, "sink": True}, False), ({"attn_mask": "boolean"}, True)],
)
def test_a_correct_kernel_gets_no_diagnosis(fields, backward):
    assert diagnosis(kernel(), fields, backward=backward) == ()


def test_a_finding_says_formula_place_and_what_it_explains():
    (found,) = diagnosis(kernel("top-left"), {"causal": "bottom-right"}, ("normal", "tall"))
    assert found.kind == "convention" and found.title == "causal mask aligned top-left"
    text = str(found)
    assert text.startswith("F13 causal mask aligned top-left; the definition says bottom-right")
    assert "computes j <= i; right is j <= i + m - n" in text and "symattn explain F13" in text
    assert "O, LSE in 2 cases" in found.explains and "of case" in found.where
    assert set(found.to_dict()) == {"fault", "title", "kind", "explains", "where", "text"}


def test_faults_that_coincide_are_named_together_with_what_tells_them_apart():
    found = diagnosis(kernel("scale 1/d"), {}, ("normal",))
    assert [f.fault for f in found] == [("F06",), ("F61",)]  # the scale twice is the same number, whatever the shape
    assert "F61 explains it as well" in str(found[0]) and "F06 and F61 are the same formula here" in str(found[0])
    assert "nowhere" not in str(found[0])


@pytest.mark.slow
def test_a_fault_in_both_passes_is_one_fault():
    def forward(query, key, value, **options):
        return kernel("heads tiled")(query, key, value, **options)

    forward.backward, forward.arrays = kernel("heads tiled").backward, "numpy"
    found = diagnosis(forward, {}, backward=True)
    assert [f.fault for f in found] == [("F01",)] and "alone" not in found[0].title


def test_a_fault_of_the_forward_in_one_pass_says_so():
    def forward(query, key, value, **options):
        return kernel()(query, key, value, **options)

    forward.backward, forward.arrays = kernel("no scale").backward, "numpy"
    found = diagnosis(forward, {}, ("normal",), backward=True)
    assert found[0].fault == ("F05",) and found[0].title.endswith("in the backward pass alone")


@pytest.mark.slow
def test_two_faults_at_once_are_a_pair():
    def forward(query, key, value, **options):
        out, lse = kernel("no scale")(query, key, value, **{**options, "causal_alignment": "top-left"})
        return out, lse

    forward.arrays = "numpy"
    found = diagnosis(forward, {"causal": "bottom-right"}, ("normal",))
    assert set(found[0].fault) == {"F05", "F13"}


def test_a_shift_that_the_softmax_does_not_see_is_a_convention():
    def forward(query, key, value, **options):
        out, lse = kernel()(query, key, value, **options)
        rows = np.arange(query.shape[2]) + key.shape[2] - query.shape[2]
        return out, lse + options["alibi_slopes"].astype(lse.dtype)[:, None] * rows.astype(lse.dtype)

    forward.arrays = "numpy"
    (found,) = diagnosis(forward, {"alibi": True, "causal": "bottom-right"}, ("normal",))
    assert found.fault == ("C1",) and found.kind == "convention"


def test_what_nothing_explains_is_described():
    found = diagnosis(kernel("a row wrong"), {}, ("normal",))
    assert len(found) == 1 and found[0].fault == () and found[0].kind == "pattern"
    assert "O is wrong and the LSE is right" in str(found[0]) and "row 1 of" in str(found[0])


def test_what_a_run_saw_is_kept_for_a_diagnosis():
    (o,) = seen(kernel("dQ without scale"), {}, ("normal",), backward=True)
    assert o.failing == ("grad_query",) and o.situation.saved is not None and o.situation.with_lse


def test_a_place_is_shown_on_ordinary_inputs_first():
    failing = seen(kernel("top-left"), {"causal": "bottom-right"}, ("paired", "large", "normal"))
    for kinds, case in (((0, 1, 2), "normal"), ((0, 1), "large"), ((0,), "paired")):
        (found, *_) = diagnose([failing[k] for k in kinds], None, {"F13": CATALOGUE["F13"]})
        assert found.where.endswith(f"of case {case}")


def test_the_declared_tile_is_the_one_that_is_named():
    def forward(query, key, value, **options):
        m = key.shape[2] // 32 * 32 or key.shape[2]
        return kernel()(query, key[:, :, :m], value[:, :, :m], **options)

    forward.arrays = "numpy"
    cases = seen(forward, {}, ("square",))
    assert cases[0].situation.arithmetic.tile == 32 and cases[0].situation.sizes["M"] == 33
    (found,) = diagnose(cases, None, {"F89": CATALOGUE["F89"]})
    assert found.title.endswith("(tile 32)")
