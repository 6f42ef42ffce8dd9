"""Every planted fault is caught on the default pack, in the dtypes and kernels in which it shows, and in the right tensors."""

from __future__ import annotations

import pytest

from symattn.definition import Definition
from symattn.verify.judge import verify
from tests.quality import backward_rows, equal_rows, forward_rows, further_rows
from tests.quality.kernels.correct import CORRECT
from tests.quality.row import NARROW, Row
from tests.quality.running import judged, pack, run

ROWS = (*forward_rows.ROWS, *backward_rows.ROWS, *further_rows.ROWS)
CANNOT = ("F03",)
"""Rows whose kernels end in an error on other sizes."""
BACKWARD = [r for r in ROWS if r.backward]
ALL = [(row, plan, dtype) for row in ROWS for plan, dtype in row.runs()]


def named(row: Row) -> str:
    return f"{row.id} {row.title}"


def label(run_: tuple[Row, str, str]) -> str:
    row, plan, dtype = run_
    return f"{named(row)}-{plan}-{dtype}"


def quick(k: int, row: Row) -> tuple[Row, str, str]:
    """One kernel in one dtype for every row, 16-bit where it shows there: bounds are widest there."""
    runs = [r for r in row.runs() if r[1] == "bfloat16"] or [r for r in row.runs() if r[1] in NARROW] or row.runs()
    return (row, *runs[k % len(runs)])


@pytest.mark.parametrize("planted", [quick(k, r) for k, r in enumerate(ROWS)], ids=label)
def test_a_planted_fault_is_caught(planted):
    kind, _ = judged(*planted)
    assert kind


@pytest.mark.slow
@pytest.mark.parametrize("planted", ALL, ids=label)
def test_it_is_caught_in_every_kernel_and_dtype_where_it_shows(planted):
    kind, shown = judged(*planted)
    assert kind
    if planted[0].backward:
        assert not {"out", "lse"} & set(shown)


@pytest.mark.parametrize("row", BACKWARD[::5], ids=named)
def test_faults_of_the_backward_leave_the_forward_alone(row):
    plan, dtype = next(r for r in row.runs() if r[1] == "float32") if ("float32" in row.dtypes) else row.runs()[0]
    kind, shown = judged(row, plan, dtype)
    assert kind and not {"out", "lse"} & set(shown)


@pytest.mark.slow
@pytest.mark.parametrize("row", [r for r in ROWS if r.expected == "fail"], ids=named)
def test_verify_says_so_on_the_whole_pack(row):
    plan, dtype = row.runs()[-1]
    kernel = CORRECT[plan].kernel(dtype, row.planted(dtype))
    only = row.kinds if row.id in CANNOT else None
    report = verify(kernel, Definition.of(**row.definition), dtype=dtype, backward=row.backward, only=only, guard=False)
    assert report.verdict == "fail" and report.exit_code() == 1


@pytest.mark.parametrize("row", equal_rows.NEAR, ids=named)
def test_what_exact_algebra_allows_has_a_condition(row):
    kind, _ = judged(row, "online-16", "float32")
    assert kind


def test_a_shift_of_scores_shows_in_the_lse_alone():
    row = equal_rows.ROWS[0]
    definition = {**row.definition, "lse": True}
    case = run(definition, "online-16", "normal", "float32", row.planted("float32"), backward=False)
    assert {t.name: t.verdict for t in case.tensors} == {"out": "pass", "lse": "fail"}


def test_each_row_names_kinds_of_the_pack():
    for row in ROWS:
        assert set(row.kinds) <= set(pack(row.definition, row.dtypes[-1])) | {"poison"}, named(row)
