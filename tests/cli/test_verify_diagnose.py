"""`symattn verify --diagnose`: said by the replay line, refused where nothing is diagnosed."""

from __future__ import annotations

import shlex

import pytest
from typer.testing import CliRunner

from symattn import arithmetic
from symattn.verify.report import Report
from symattn_cli.app import app


@pytest.fixture
def given(monkeypatch):
    """How runs are asked for, without running anything."""
    found = []

    def run(kernel, definition, **options):
        found.append(options["diagnosis"])
        return Report(kernel, {}, arithmetic.get("flash-fp32").to_dict(), (), "")

    monkeypatch.setattr("symattn.verify.judge.verify", run)
    return found


def invoke(*words):
    return CliRunner().invoke(app, ["verify", *words])


def test_it_reaches_the_run_and_the_replay_line(given):
    plain, bounded, whole = (invoke("numpy:flash", *more) for more in ([], ["--diagnose", "bounded"], ["--diagnose", "all"]))
    assert [r.exit_code for r in (plain, bounded, whole)] == [0, 0, 0] and given == ["bounded", "bounded", "all"]
    lines = [shlex.split(r.stdout.splitlines()[-1]) for r in (plain, bounded, whole)]
    assert [words[-2:] == ["--diagnose", "all"] for words in lines] == [False, False, True]


@pytest.mark.parametrize("words", [["numpy:flash", "--diagnose", "some"], ["--diagnose", "all"]])
def test_what_cannot_be_is_refused(given, words):
    assert invoke(*words).exit_code == 2 and given == []
