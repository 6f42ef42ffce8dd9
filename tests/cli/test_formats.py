"""`symattn verify --format`, `-o` and `--save` as a user types them: where each form goes, and what errors become in it."""

from __future__ import annotations

import json
import shlex
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from typer.testing import CliRunner

from symattn_cli.app import app

SMALL = ["--shape", "1,2,1,3,4,2", "--only", "shape"]
ON = "on shape float32 B=1 H=2 HKV=1 N=3 M=4 D=2 DV=2: "
RAISES = "def raises(query, key, value, **options):\n    raise RuntimeError('no such device')\n"


@pytest.fixture
def run(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(RAISES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    return lambda *words: CliRunner().invoke(app, ["verify", *words])


def begins(format, text):
    return text.startswith({"json": "{", "junit": "<?xml", "html": "<!doctype html>", "github": "### symattn verify"}[format])


@pytest.mark.parametrize("format", ["json", "junit", "html", "github"])
def test_a_form_on_stdout(run, format):
    done = run("numpy:flash", *SMALL, "--format", format)
    assert done.exit_code == 0 and begins(format, done.stdout) and done.stdout.endswith("\n") and not done.stderr


@pytest.mark.parametrize("format", ["text", "json", "junit", "html"])
def test_a_form_in_a_file_and_the_text_on_stdout(run, tmp_path, format):
    done = run("numpy:flash", *SMALL, "--format", format, "-o", "report")
    text = (tmp_path / "report").read_text()
    assert (done.exit_code, "verdict: pass" in done.stdout) == (0, True)
    assert text.startswith("kernel ") if format == "text" else begins(format, text)
    if format == "html":
        assert "data:image/png" in text


def test_github_writes_commands_to_stdout_and_markdown_to_the_summary(run, tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    (tmp_path / "summary.md").write_text("before\n")
    done = run("mine.py:raises", *SMALL, "--format", "github")
    command, _, rest = done.stdout.partition("\n")
    said = f"::error file=mine.py,title=symattn verify mine.py%3Araises::{ON}mine.py:raises raised RuntimeError: no such device; "
    assert done.exit_code == 1 and command.startswith(said) and "--require 'd %25 8 == 0'" in command
    assert (tmp_path / "summary.md").read_text() == "before\n" + rest and begins("github", rest)
    done = run("mine.py:raises", *SMALL, "--format", "github", "-o", "out.md")
    assert done.stdout == command + "\n" and (tmp_path / "out.md").read_text() == rest


@pytest.mark.parametrize("format", ["junit", "html", "github", "json"])
def test_a_kernel_that_raises_is_a_document_too(run, tmp_path, format):
    done = run("mine.py:raises", *SMALL, "--format", format)
    assert done.exit_code == 1 and "no such device" in done.stdout and done.stderr.startswith(f"error: {ON}mine.py:raises raised")
    if format == "junit":
        (error,) = ET.fromstring(done.stdout.encode()).iter("error")
        assert error.get("message", "").startswith(
            f"{ON}mine.py:raises raised RuntimeError: no such device; none of these inputs"
        )
    run("mine.py:raises", *SMALL, "--format", format, "-o", "file")
    assert "no such device" in (tmp_path / "file").read_text()


@pytest.mark.parametrize("flag", ["-o", "--save"])
@pytest.mark.parametrize("target, text", [("no/file.npz", "there is no folder no"), (".", "is a folder")])
def test_a_file_that_cannot_be_written_is_said_before_anything_runs(run, flag, target, text):
    done = run("mine.py:raises", flag, target)
    assert (done.exit_code, text in done.stderr, done.stdout) == (4, True, "")


def test_errors_of_usage_write_no_document(run):
    for words in (["--format", "xml"], ["--causal", "left", "--format", "junit"]):
        done = run("numpy:flash", *words)
        assert done.exit_code == 2 and not done.stdout


def test_save(run, tmp_path):
    done = run("numpy:flash", *SMALL, "--backward", "--save", "run.npz")
    assert done.exit_code == 0, done.output
    with np.load(tmp_path / "run.npz") as file:
        assert {"shape/query", "shape/out", "shape/out.exact", "shape/grad_key.bound"} <= set(file.files)
        replay = json.loads(str(file["report"]))["replay"]
    assert replay == "symattn verify numpy:flash --shape 1,2,1,3,4,2 --only shape --backward"
    assert run("--recorded", "run.npz").exit_code == 0


HOSTILE = r"""
def hostile(query, key, value, **options):
    raise ValueError("a \x1b[31m \x00 \ud800 \u202e \xfc\r\n::set-output name=a::b\nlast")
"""


@pytest.mark.parametrize("format", ["json", "junit", "html", "github", "text"])
def test_an_error_that_no_stream_can_hold_as_it_is(run, tmp_path, format):
    (tmp_path / "hostile.py").write_text(HOSTILE)
    done = run("hostile.py:hostile", *SMALL, "--format", format)
    said = r"a \x1b[31m \x00 \ud800 \u202e ü\r\n::set-output name=a::b"
    assert done.exit_code == 1
    assert done.stderr.startswith(f"error: {ON}hostile.py:hostile raised ValueError: {said}\nlast; none of these inputs fulfils")
    if format == "json":
        assert "\ud800" in json.loads(done.stdout)["error"]
    assert not any(line.lstrip().startswith("::set-output") for line in done.stderr.splitlines())


def test_an_error_of_usage_is_escaped_too(run):
    done = run("--no\x1b[31m\n::error::x")
    assert done.exit_code == 2 and "\x1b" not in done.stderr
    assert not any(line.lstrip().startswith("::") for line in done.stderr.splitlines())


def test_a_report_that_is_replayed_writes_no_file(run, tmp_path):
    line = shlex.join(["symattn", "verify", "numpy:flash", *SMALL, "--format", "json", "-o", "planted", "--save", "planted.npz"])
    (tmp_path / "report.json").write_text(json.dumps({"replay": line}))
    done = run("--replay", "report.json")
    assert (done.exit_code, done.stdout.startswith("kernel ")) == (0, True), done.output
    assert not list(tmp_path.glob("planted*"))
    assert run("--replay", "report.json", "-o", "mine").exit_code == 0 and (tmp_path / "mine").is_file()
