"""``symattn cost``: what it prints, in which forms, and what is wrong with what it is asked."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from symattn_cli.app import app


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["cost", *words])


def test_one_variant() -> None:
    found = run("causal")
    assert found.exit_code == 0 and found.stdout.startswith("Cost: causal\n")
    assert "The multiplications are O(n² d)." in found.stdout and "flash, forward" in found.stdout
    assert max(sum(not unicodedata.combining(c) for c in line) for line in found.stdout.splitlines()) <= 80
    assert "flash, backward" in run("causal", "--gradient").stdout
    assert "4 n - 6" in run("causal", "--window", "4,0").stdout


def test_several() -> None:
    found = run("self-attention", "sliding-window").stdout
    assert "recurrent layer" in found and "⌈1/3 (n - 1)⌉" in found
    assert "recurrent layer" not in run("self-attention", "sliding-window", "--no-baseline").stdout


@pytest.mark.parametrize(("form", "start"), [("latex", "\\documentclass"), ("markdown", "# Cost"), ("html", "<!"), ("json", "{")])
def test_forms(form: str, start: str, tmp_path: Path) -> None:
    target = tmp_path / "cost"
    assert run("self-attention", "causal", "--format", form, "-o", str(target)).exit_code == 0
    text = target.read_text(encoding="utf-8")
    assert text.lower().startswith(start.lower())
    if form == "json":
        assert json.loads(text)["title"] == "Costs compared"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("causl",), "Did you mean 'causal'"),
        (("causal", "causal"), "named twice"),
        (("causal", "--format", "pdf"), "--format is one of"),
    ],
)
def test_what_is_wrong_is_said(words: tuple[str, ...], says: str) -> None:
    found = run(*words)
    assert found.exit_code == 2 and says in found.output
