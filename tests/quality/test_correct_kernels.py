"""Correct kernels in several algorithms and all dtypes pass on the default pack under what they declare."""

from __future__ import annotations

import pytest

from tests.quality import equal_rows
from tests.quality.kernels.correct import CORRECT, DEFINITIONS
from tests.quality.running import judges, pack, run

QUICK = ("tall", "poison", "square")
PAIRS = [(k + j, name, plan) for k, name in enumerate(DEFINITIONS) for j, plan in enumerate(CORRECT.values())]
CASES = [(name, plan.name, plan.dtypes[k % len(plan.dtypes)]) for k, name, plan in PAIRS]
"""Every kernel with every definition, the dtypes in turn; all of them are in ``python -m benchmarks.rounding``."""


def checked(case, *, bounded):
    failing = [(t.name, t.comparison.worst) for t in case.tensors if t.verdict == "fail"]
    assert not failing
    if bounded:
        assert case.verdict == "pass"


def on(name, plan, dtype, kinds):
    applies = pack(DEFINITIONS[name], dtype)
    for kind in (k for k in applies if kinds is None or k in kinds):
        if judges(plan, kind, dtype):
            case = run(DEFINITIONS[name], plan, kind, dtype, {}, backward=True)
            checked(case, bounded=CORRECT[plan].algorithm != "eager")


@pytest.mark.parametrize("plan", CORRECT)
def test_a_correct_kernel_passes(plan):
    on("all", plan, CORRECT[plan].dtypes[-1], QUICK)


@pytest.mark.parametrize("name", DEFINITIONS)
def test_every_option_of_the_convention(name):
    on(name, "online-4", "float32", QUICK[:1])
    on(name, "eager", "bfloat16", QUICK[:1])


@pytest.mark.slow
@pytest.mark.parametrize("name, plan, dtype", CASES)
def test_it_passes_on_the_whole_pack(name, plan, dtype):
    on(name, plan, dtype, None)


@pytest.mark.parametrize("row", equal_rows.ROWS, ids=lambda r: f"{r.id} {r.title}")
def test_what_exact_algebra_settles_passes(row):
    for k, (plan, dtype) in enumerate(row.runs()):
        if k % 7:
            continue
        for kind in row.kinds[:2]:
            case = run(row.definition, plan, kind, dtype, row.planted(dtype), backward=not row.wrong)
            checked(case, bounded=plan != "eager")


@pytest.mark.slow
@pytest.mark.parametrize("row", equal_rows.ROWS, ids=lambda r: f"{r.id} {r.title}")
def test_it_passes_in_every_kernel_and_dtype(row):
    for plan, dtype in row.runs():
        for kind in row.kinds:
            if judges(plan, kind, dtype):
                case = run(row.definition, plan, kind, dtype, row.planted(dtype), backward=not row.wrong)
                checked(case, bounded=plan != "eager")
