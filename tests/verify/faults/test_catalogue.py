"""The rows of the catalogue, what is written of them, and what makes sense where."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from symattn.arithmetic import get
from symattn.definition import Definition
from symattn.errors import UnknownNameError
from symattn.verify.faults.catalogue import CATALOGUE, FAMILIES, find
from symattn.verify.faults.fault import KINDS, Situation
from symattn.verify.faults.page import COMMAND, page
from symattn.verify.inputs import Shape, fields_for
from symattn.verify.reference import Reference
from symattn_cli.app import app

PAGE = Path(__file__).resolve().parents[3] / "docs" / "faults.md"
PUBLIC = (
    *[
        "F01",
        "F02",
        "F03",
        "F05",
        "F06",
        "F07",
        "F09",
        "F11",
        "F12",
        "F13",
        "F14",
        "F15",
        "F16",
        "F18",
        "F19",
        "F20",
        "F21",
        "F22a",
        "F22b",
        "F22c",
        "F23",
        "F25",
        "F26",
        "F27",
        "F28",
        "F30",
        "F31",
        "F32",
        "F33",
    ],
    *["F34", "F35", "F38", "F40", "F41", "F42", "F43", "F45", "F46", "F47", "F49", "F50", "F52", "F54", "F55", "F56"],
    *[
        "B01",
        "B02",
        "B03",
        "B04",
        "B06",
        "B07",
        "B09",
        "B11",
        "B12",
        "B13",
        "B15",
        "B16",
        "B17",
        "B19",
        "B20",
        "B22",
        "B25",
        "B26",
        "B27",
        "B28",
        "B29",
    ],
)
"""The faults that public threads describe."""


def situation(**fields):
    d = Definition(**fields)
    inputs = fields_for(d, Shape.parse("1,4,2,3,5,4"), "float32", 0)
    return Situation(Reference(d, inputs), get("flash-fp32"))


def test_every_public_fault_is_there_once():
    assert set(PUBLIC) <= set(CATALOGUE)
    assert len(CATALOGUE) == sum(map(len, FAMILIES.values()))


@pytest.mark.parametrize("fault", CATALOGUE.values(), ids=lambda f: f.id)
def test_a_row_says_what_it_is(fault):
    assert fault.title and fault.wrong and fault.right and fault.look and fault.kind in KINDS
    assert all(re.fullmatch(r"[\w.-]+#\d+( \(disputed\))?", t) for t in fault.threads)
    assert fault.wrong != fault.right


def test_what_makes_no_sense_yields_nothing():
    plain = situation()
    other = ("F115", "F123", "F175", "F176", "F177", "B58", "B59", "B61")
    for id in ("F13", "F18", "F20", "F21", "F23", "F30", "F35", "F50", "F52", "F54", "B09", "B12", "B19", "F22a", *other):
        assert not list(find(id).alternatives(plain)), id


@pytest.mark.parametrize(
    ("id", "fields"),
    [
        ("F13", {"causal": "bottom-right"}),
        ("F18", {"mask": "j <= i and i - j < 3"}),
        ("F13", {"mask": "j <= i + 2"}),
        ("F23", {"sink": True}),
        ("F54", {"prefix": 2}),
    ],
)
def test_rows_apply_by_structure(id, fields):
    assert list(find(id).alternatives(situation(**fields)))


def test_an_unknown_id_names_the_nearest():
    with pytest.raises(UnknownNameError, match="F13"):
        find("F133x")
    assert find("f22A").id == "F22a"


def test_the_page_is_what_the_rows_generate():
    assert PAGE.read_text(encoding="utf-8") == page(), f"run `{COMMAND}`"


def test_the_command_explains():
    run = CliRunner()
    listed = run.invoke(app, ["explain"])
    assert listed.exit_code == 0 and set(CATALOGUE) <= set(listed.stdout.split())
    assert max(map(len, listed.stdout.splitlines())) < 80
    one = run.invoke(app, ["explain", "f13"]).stdout
    assert "j <= i + m - n" in one and "flash-attention#436" in one
    data = json.loads(run.invoke(app, ["explain", "B07", "--json"]).stdout)
    assert data["id"] == "B07" and data["threads"] == ["FlagAttention#1"]
    assert run.invoke(app, ["explain", "F999"]).exit_code == 2


def test_a_formula_is_that_of_the_alternative():
    """``wrong`` of the row, or of the label that was found; what is right is the same."""
    row = CATALOGUE["B04"]
    found = {label: row.formulas(None, label) for label in ("the last one", "the first one", "the mean", "")}
    assert {label: wrong for label, (wrong, _) in found.items()} == {
        "the last one": "x[g - 1]", "the first one": "x[0]", "the mean": "(sum over g of x)/g", "": "x[g - 1]",
    }  # fmt: skip
    assert {right for _, right in found.values()} == {"sum over g of x"}
