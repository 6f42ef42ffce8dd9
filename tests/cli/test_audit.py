"""`symattn audit`: both kinds of input, the forms, the exit codes, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from symattn_cli.app import app

PAGES = {
    "right.md": ("The sum is $1 + 1 = 2$.\n", 0),
    "wrong.md": ("The sum is $1 + 1 = 3$.\n", 1),
    "open.md": ("$\\text{softmax}(s) = [0.33, 0.67]$ and $0.33 \\times 10 + 0.67 \\times 20 = 16.68$\n", 3),
    "empty.txt": ("Nothing is computed here.\n", 0),
    "right.toml": ('[inputs]\nscores = ["0", "1"]\n[claims]\n"softmax(scores)" = ["0.27", "0.73"]\n', 0),
    "wrong.toml": ('[inputs]\nscores = ["0", "1"]\n[claims]\n"softmax(scores)" = ["0.27", "0.75"]\n', 1),
    "broken.toml": ("[inputs\n", 4),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, (text, _) in PAGES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _run(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["audit", *arguments])
    assert done.exit_code == code, done.output
    return done.output


@pytest.mark.parametrize(("name", "code"), [(n, c) for n, (_, c) in PAGES.items()])
def test_exit_codes(folder: Path, name: str, code: int) -> None:
    out = _run(name, code=code)
    assert "Traceback" not in out and out.strip()


def test_what_is_wrong_is_said(folder: Path) -> None:
    assert "exact 2  wrong" in _run("wrong.md", code=1)
    assert "nothing wrong" in _run("right.md")
    assert "1 + 1" not in _run("right.md") and "1 + 1" in _run("right.md", "--all")


def test_forms_and_files(folder: Path) -> None:
    assert json.loads(_run("wrong.md", "--format", "json", code=1))["counts"] == {"wrong": 1}
    assert _run("wrong.md", "--format", "markdown", code=1).startswith("# wrong.md")
    out = _run("wrong.md", "--format", "html", "-o", "page.html", code=1)
    assert out.startswith("wrong.md: 1 printed number") and "<math>" in (folder / "page.html").read_text(encoding="utf-8")


def test_a_draft(folder: Path) -> None:
    _run("wrong.md", "--extract", "-o", "draft.toml")
    assert "exact 2  wrong" in _run("draft.toml", code=1)
    assert "one already" in _run("right.toml", "--extract", code=2)


def test_digits(folder: Path) -> None:
    assert "exact 0.731058578630004879251159" in _run("wrong.toml", "--digits", "24", code=1)
    assert len(json.loads(_run("wrong.toml", "--format", "json", "--digits", "100", code=1))["findings"][1]["exact"]) == 102


def test_standard_input(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "symattn_cli", "audit", "-"], input="so 1 + 1 = 3", capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and done.stdout.startswith("standard input: 1 printed number checked, 1 wrong")


def test_files_that_cannot_be_read(folder: Path) -> None:
    (folder / "binary.md").write_bytes(b"\x00\x01")
    (folder / "latin.md").write_bytes(b"caf\xe9 = 1")
    for name in ("binary.md", "latin.md", "absent.md", "absent.toml", "."):
        assert "error:" in _run(name, code=4)


def test_usage(folder: Path) -> None:
    _run("right.md", "--format", "pdf", code=2)
    _run("right.md", "--digits", "0", code=2)
    _run("right.md", "-o", "no/such/folder.txt", code=4)
    _run(code=2)
