"""Parts of the keys put together through their log-sum-exps: within the bound where that is declared, outside where not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from symattn.verify.judge import run_case
from symattn.verify.kernels.registry import resolve
from tests.quality.kernels.correct import CORRECT, DEFINITIONS
from tests.quality.running import reference, run

ROWS = (
    ("window", "split", "float32"),
    ("two-sided window", "split-tiles", "float64"),
    ("two-sided window", "split-tiles", "float32"),
)


@pytest.mark.parametrize(("name", "plan", "dtype"), ROWS)
def test_parts_far_from_0_conform_as_they_are_declared_and_not_otherwise(name, plan, dtype):
    definition = DEFINITIONS[name]
    assert run(definition, plan, "deep", dtype, {}, backward=True).verdict == "pass"
    alone = replace(CORRECT[plan].declares(dtype), merged=False)
    ref = reference(definition, "deep", dtype)
    case = run_case(resolve(CORRECT[plan].kernel(dtype, {})), ref, "deep", backward=False, arithmetic=alone)
    assert [t.name for t in case.tensors if t.verdict == "fail"] == ["out"]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_scale_that_is_off_is_still_caught(dtype):
    right = run({}, "split", "normal", dtype, {}, backward=False)
    wrong = run({}, "split", "normal", dtype, {"scale": lambda c, d, heads: 1.01 * c}, backward=False)
    assert (right.verdict, wrong.verdict) == ("pass", "fail")
