"""`symattn prove`: the list, one theorem at length, a table of 80 columns, JSON, exit codes, a definition of one's own."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from symattn.theorems import catalogue
from symattn.theorems.catalogue import THEOREMS
from symattn.theorems.claim import OPEN, Decision
from symattn.theorems.theorem import Theorem
from symattn_cli import app


def run(*arguments, code=0):
    done = CliRunner().invoke(app, ["prove", *arguments])
    assert done.exit_code == code, done.output
    assert all(len(line) <= 80 for line in done.stdout.splitlines()) or "--json" in arguments, done.stdout
    return done.stdout


@pytest.fixture
def few(monkeypatch):
    """The commands see a few fast theorems only."""
    names = ("rows-sum-to-one", "value-total", "temperature-derivative")
    monkeypatch.setattr(catalogue, "THEOREMS", {n: THEOREMS[n] for n in names})
    return names


def fault(monkeypatch, name, claim):
    """A theorem with another claim in the place of its own."""
    row = THEOREMS[name]
    wrong = Theorem(
        row.name, row.title, row.text, row.latex, row.source, lambda s: (claim(row.claims(s)[0]),), row.needs, row.home
    )
    monkeypatch.setattr(catalogue, "THEOREMS", {**THEOREMS, name: wrong})


def test_without_names_all_are_listed():
    text = run()
    for row in THEOREMS.values():
        assert f"{row.name} " in text and row.title in text


def test_one_theorem_at_length_and_what_becomes_of_it_outside_its_condition():
    text = run("rows-sum-to-one")
    assert "PROVED for all sizes, by normal form" in text
    assert "where no query is without keys" in text
    assert "outside its condition, for sink=True:" in text
    assert "difference = -1/3" in text


def test_a_definition_of_ones_own_is_asked():
    text = run("rows-sum-to-one", "--score", "s - slope*(i - j)", "--mask", "j <= i")
    assert "PROVED for all sizes" in text and "slope" in text and "outside" not in text
    text = run("rows-sum-to-one", "--score", "s - slope*(i - j)", "--sink")
    assert "NOT APPLICABLE" in text and "rowsum_P" in text
    assert "NOT APPLICABLE" in run("rows-sum-to-one", "--variant", "sink")


def test_the_table(few):
    lines = run("--all").splitlines()
    assert lines[0].split() == ["theorem", "verdict", "scope", "seconds", "method"]
    assert [line.split()[0] for line in lines[1:-1]] == list(few)
    assert all("proved" in line and "all sizes" in line for line in lines[1:-1])
    assert lines[-1].startswith("3 proved in ")
    lines = run("--all", "--sink").splitlines()
    assert [line[24:38].strip() for line in lines[1:-1]] == ["not applicable", "not applicable", "proved"]


def test_json():
    (row,) = json.loads(run("rows-sum-to-one", "--sink", "--json"))
    assert row["verdict"] == "not applicable" and row["definition"] == "sink=True"
    found = row["counterexample"]
    assert (found["left"], found["right"], found["difference"]) == ("2/3", "1", "-1/3")
    assert found["inputs"]["sink"] == "0" and found["sizes"]["n"] == 1
    (row,) = json.loads(run("temperature-derivative", "--json"))
    assert row["verdict"] == "proved" and row["scope"] == "all sizes" and row["counterexample"] is None


def test_a_refuted_theorem_sets_the_exit_code(monkeypatch):
    fault(monkeypatch, "rows-sum-to-one", lambda claim: claim.planted())
    text = run("rows-sum-to-one", "--causal", "top-left", code=1)
    assert "REFUTED" in text and "difference = 2" in text


def test_an_open_theorem_has_its_own_exit_code(monkeypatch):
    class Undecided:
        text = "nobody knows"

        def decide(self):
            return Decision(OPEN, "no method settles it")

        def counterexample(self):
            return None

    fault(monkeypatch, "rows-sum-to-one", lambda claim: Undecided())
    assert "OPEN: no method settles it" in run("rows-sum-to-one", "--causal", "top-left", code=3)


def test_a_name_that_does_not_exist(capsys):
    done = CliRunner().invoke(app, ["prove", "row-sum-to-one"])
    assert done.exit_code == 2 and "Did you mean 'rows-sum-to-one'" in done.output
    assert CliRunner().invoke(app, ["prove", "row-dot", "--all"]).exit_code == 2
