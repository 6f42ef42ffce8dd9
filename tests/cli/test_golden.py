"""`symattn golden` and `symattn verify --golden` as a user types them."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from typer.testing import CliRunner

from symattn_cli.app import app

SMALL = ["--shape", "1,2,1,3,4,2", "--only", "shape"]


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(app, list(words))


def copied(tmp_path, name="float32/shape"):
    (tmp_path / "o" / name).mkdir(parents=True)
    shutil.copy(tmp_path / "g" / name / "out.npy", tmp_path / "o" / name)


def test_written_and_judged(run, tmp_path):
    done = run("golden", "-o", "g", "--variant", "causal", "--dtype", "fp32", "--dtype", "float32", "--round", "bf16", *SMALL)
    assert (done.exit_code, done.stdout) == (0, "float32/shape\n1 cases, 13 files in g\n"), done.output
    m = json.loads((tmp_path / "g" / "manifest.json").read_text())
    assert m["definition"]["fields"] == {"causal": "top-left"}
    assert {t["name"] for t in m["cases"][0]["tensors"]} == {
        *("query", "key", "value", "out", "out.bfloat16", "out.float64", "out.bound", "lse", "lse.bfloat16", "lse.float64"),
        "lse.bound",
    }
    copied(tmp_path)
    done = run("verify", "--golden", "g", "--outputs", "o")
    assert done.exit_code == 0 and done.stdout.splitlines()[-1] == "again:   symattn verify --golden g --outputs o"


def test_8_bits(run, tmp_path):
    assert run("golden", "-o", "g", "--dtype", "e4m3", *SMALL).exit_code == 0
    assert np.load(tmp_path / "g/float8_e4m3fn/shape/query.npy").dtype == np.uint8
    copied(tmp_path, "float8_e4m3fn/shape")
    assert run("verify", "--golden", "g", "--outputs", "o").exit_code == 0


def test_the_same_seed_gives_the_same_bytes(run, tmp_path):
    for target, seed in (("a", "3"), ("b", "3"), ("c", "4")):
        assert run("golden", "-o", target, "--seed", seed, *SMALL).exit_code == 0
    read = {t: (tmp_path / t / "float32" / "shape.safetensors").read_bytes() for t in "abc"}
    assert read["a"] == read["b"] != read["c"]


def test_a_wrong_shape_is_a_document_with_exit_code_1(run, tmp_path):
    run("golden", "-o", "g", *SMALL)
    copied(tmp_path)
    np.save("o/float32/shape/out.npy", np.zeros((1, 3, 2, 2), "f4"))
    done = run("verify", "--golden", "g", "--outputs", "o", "--format", "json")
    doc = json.loads(done.stdout)
    assert (done.exit_code, doc["verdict"], doc["kernel"]) == (1, "fail", "o")
    assert "has shape (1, 3, 2, 2); it should be (1, 2, 3, 2) (batch, head, query, channel)" in doc["error"]


BAD = {
    "folder in use": (["golden", "-o", "."], 4, "not an empty folder"),
    "no folder": (["golden"], 2, "--output"),
    "unknown dtype": (["golden", "-o", "h", "--dtype", "bf61"], 2, "bf16"),
    "no dtype of arrays": (["golden", "-o", "h", "--dtype", "tf32"], 2, "tf32 is no dtype"),
    "unknown kind": (["golden", "-o", "h", "--only", "nrmal"], 2, "normal"),
    "unknown preset": (["golden", "-o", "h", "--arithmetic", "falsh-bf16", *SMALL], 2, "flash-bf16"),
    "parameter without a value": (["golden", "-o", "h", "--score", "slope*s"], 2, "--param slope="),
    "no outputs": (["verify", "--golden", "g"], 2, "goes with --outputs"),
    "no golden": (["verify", "--outputs", "o"], 2, "goes with --golden"),
    "a kernel": (["verify", "numpy:flash", "--golden", "g", "--outputs", "o"], 2, "inputs of their own"),
    "a seed": (["verify", "--seed", "1", "--golden", "g", "--outputs", "o"], 2, "inputs of their own"),
    "a definition": (["verify", "--causal", "top-left", "--golden", "g", "--outputs", "o"], 2, "definition of their own"),
    "no such golden": (["verify", "--golden", "nosuch", "--outputs", "."], 4, "holds no manifest.json"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(run, tmp_path, name):
    words, code, text = BAD[name]
    (tmp_path / "mine.txt").write_text("mine")
    done = run(*words)
    assert (done.exit_code, done.stdout) == (code, ""), done.output
    assert text in " ".join(done.stderr.replace("│", "").split()) and "Traceback" not in done.stderr
    assert not list((tmp_path / "h").rglob("*.npy"))
