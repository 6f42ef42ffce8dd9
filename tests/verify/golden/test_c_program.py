"""A kernel in C reads golden files, computes in float, writes `.npy` files, and is judged by them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from symattn_cli.app import app

SOURCE = Path(__file__).with_name("attention.c")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    cc = shutil.which("cc")
    if cc is None:
        assert "CI" not in os.environ, "a C compiler belongs to what CI has"
        pytest.skip("no C compiler (cc) here")
    target = tmp_path_factory.mktemp("c") / "attention"
    subprocess.run([cc, "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-o", target, SOURCE, "-lm"], check=True)
    return target


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    folder = tmp_path_factory.mktemp("golden") / "g"
    words = ["golden", "-o", str(folder), "--causal", "bottom-right", "--only", "normal,tall,deep"]
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, done.stdout.splitlines()[:3]) == (0, ["float32/normal", "float32/tall", "float32/deep"]), done.output
    return folder


def judged(program, golden, target, mask, *words):
    for case in ("normal", "tall", "deep"):
        (target / "float32" / case).mkdir(parents=True)
        subprocess.run([program, golden / "float32" / case, target / "float32" / case, mask], check=True)
    return CliRunner().invoke(app, ["verify", "--golden", str(golden), "--outputs", str(target), *words])


def test_a_correct_kernel_passes(program, golden, tmp_path):
    done = judged(program, golden, tmp_path / "o", "bottom-right")
    assert (done.exit_code, "verdict: pass" in done.stdout) == (0, True), done.output
    assert done.stdout.splitlines()[-1] == f"again:   symattn verify --golden {golden} --outputs {tmp_path / 'o'}"


def test_a_fault_is_found_and_named(program, golden, tmp_path):
    done = judged(program, golden, tmp_path / "o", "top-left")
    assert (done.exit_code, "verdict: fail" in done.stdout) == (1, True), done.output
    assert "diagnosis: F13 causal mask aligned top-left" in done.stdout
