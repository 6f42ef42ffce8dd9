"""A planted fault of the catalogue is named by its id, alone or among those that coincide with it on the inputs."""

from __future__ import annotations

import pytest

from symattn.verify.diagnosis.diagnose import diagnose
from symattn.verify.faults.catalogue import CATALOGUE
from tests.quality import backward_rows, forward_rows, further_rows
from tests.quality.row import Row
from tests.quality.running import observed, pack

QUICK = ("F13", "F34", "F42", "B02", "B28")
ROWS = (*forward_rows.ROWS, *backward_rows.ROWS)
OUTSIDE = ("X13", "X14", "X28")
SECOND = {"F32b": "F32", "F49b": "F49"}


def named(row: Row) -> str:
    return f"{row.id} {row.title}"


def kinds_of(row: Row, dtype: str) -> list[str]:
    """Those that show it, and some on which most faults differ."""
    if row.id == "F03":
        return list(row.kinds)  # it is no kernel at all where there are more keys than queries
    applies = pack(row.definition, dtype)
    return [k for k in dict.fromkeys([*row.kinds[:2], "normal", "tall"]) if k in applies]


def found(row: Row, plan: str, dtype: str) -> list[tuple[str, ...]]:
    return [f.fault for f in diagnose(observed(row, plan, dtype, kinds_of(row, dtype)))]


def chosen(row: Row) -> tuple[str, str]:
    runs = [r for r in row.runs() if r[1] == "bfloat16"] or row.runs()
    return runs[min(2, len(runs) - 1)]


@pytest.mark.parametrize("row", [r for r in ROWS if r.id in QUICK], ids=named)
def test_it_is_named(row):
    assert (SECOND.get(row.id, row.id),) in found(row, *chosen(row))


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=named)
def test_it_is_named_in_every_dtype(row):
    plan, _ = chosen(row)
    for dtype in (d for p, d in row.runs() if p == plan):
        assert (SECOND.get(row.id, row.id),) in found(row, plan, dtype), dtype


@pytest.mark.slow
@pytest.mark.parametrize("id", OUTSIDE)
def test_what_the_catalogue_lacks_is_described(id):
    row = next(r for r in further_rows.ROWS if r.id == id)
    first = diagnose(observed(row, "online-16", "bfloat16", kinds_of(row, "bfloat16")))[0]
    assert first.text and (first.fault == () or set(first.fault) <= set(CATALOGUE))


def test_every_row_of_the_table_is_in_the_catalogue():
    ids = {SECOND.get(r.id, r.id) for r in (*forward_rows.ROWS, *backward_rows.ROWS)}
    assert ids <= set(CATALOGUE)
