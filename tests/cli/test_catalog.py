"""``symattn catalog``: the list, an entry, JSON, names that do not exist."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from symattn import variants
from symattn_cli.app import app

RUN = CliRunner()


def test_the_list_names_every_variant_and_fits_the_terminal():
    result = RUN.invoke(app, ["catalog"])
    assert result.exit_code == 0
    words = result.stdout.split()
    assert set(variants.names()) <= set(words)
    assert all(f"{family}:" in words for family in variants.families())
    assert max(map(len, result.stdout.splitlines())) < 80


@pytest.mark.parametrize("name", ["self-attention", "alibi", "grouped-query", "scalable-softmax"])
def test_an_entry_says_all_there_is(name):
    result = RUN.invoke(app, ["catalog", name])
    row = variants.get(name)
    assert result.exit_code == 0
    flat = " ".join(result.stdout.split())
    assert row.source in flat and row.idea in flat
    assert "P" in result.stdout.partition("Formula (LaTeX)")[2] and "Conventions" in result.stdout
    assert all(r.to in flat and r.at in flat for r in row.reduces)
    plain = [line for line in result.stdout.splitlines() if "\\" not in line]
    assert max(map(len, plain)) < 80


def test_json_is_data():
    rows = json.loads(RUN.invoke(app, ["catalog", "--json"]).stdout)
    assert [r["name"] for r in rows] == list(variants.names())
    one = json.loads(RUN.invoke(app, ["catalog", "sink", "--json"]).stdout)
    assert one["reads"]["sinks"] == "(H)" and one["gives"]["out"] == "(B, H, n, dv)"
    assert "off-by-one where sink = 0" in one["becomes"]
    assert all(set(f) == {"step", "latex"} for f in one["formulas"])


def test_an_unknown_name_is_usage_and_names_the_nearest():
    result = RUN.invoke(app, ["catalog", "alib"])
    assert result.exit_code == 2
    assert "'alibi'" in result.output
