"""`symattn tolerance` on the command line: what it prints, what it refuses."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from symattn_cli.app import app

SMALL = ["tolerance", "--shape", "1,2,1,3,6,4"]


def run(*words):
    done = CliRunner().invoke(app, [*SMALL, *words])
    return done.exit_code, done.output


def test_text_says_which_number_is_which():
    given = ["--max-query", "4", "--max-key", "4", "--max-value", "1", "--max", "sinks=3"]
    code, out = run("--arithmetic", "flash-bf16", "--sink", *given)
    assert code == 0 and all(len(line) <= 80 for line in out.splitlines())
    assert "|query| <= 4" in out and "|sinks| <= 3" in out and "arithmetic  flash-bf16: flash;" in out
    assert [k in out for k in ("bounded: no correct kernel", "estimated: atol", "missed: a test")] == [True] * 3


def test_json_is_one_document_and_a_larger_magnitude_asks_for_less():
    def bounded(x):
        code, out = run("--arithmetic", "flash-fp32", "--format", "json", "--max-query", x, "--causal", "top-left")
        assert code == 0
        return float(json.loads(out)["tensors"]["out"]["bounded"])

    assert bounded("1") < bounded("8")


def test_a_law_and_a_file(tmp_path):
    file = tmp_path / "a.toml"
    file.write_text('preset = "flash-bf16"\nname = "mine"\ntile = 2\n')
    code, out = run("--arithmetic", str(file), "--law", "large", "--seed", "3")
    assert code == 0 and "mine: flash" in out and "law large, seed 3" in out.replace("\n  ", " ")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--arithmetic", "flash-bf61"], 2, "flash-bf16"),
        (["--arithmetic", "none.toml"], 4, "none.toml: cannot be read"),
        (["--arithmetic", "flash-bf16", "--law", "nrmal"], 2, "normal"),
        (["--arithmetic", "flash-bf16", "--max-query", "many"], 4, "positive number"),
        (["--arithmetic", "flash-bf16", "--max", "sinks=3"], 4, "no magnitude of 'sinks'"),
        (["--arithmetic", "flash-bf16", "--max", "sinks"], 2, "FIELD=X"),
        (["--arithmetic", "flash-bf16", "--format", "xml"], 2, "text or json"),
        (["--arithmetic", "flash-bf16", "--score", "t*s"], 2, "the parameter t has no value"),
        ([], 2, "--arithmetic"),
    ],
)
def test_what_is_refused(words, code, message):
    got, out = run(*words)
    assert got == code and message in out, out


def test_a_dtype_stands_for_its_tiled_kernel():
    assert run("--dtype", "bfloat16") == run("--arithmetic", "flash-bf16")
    code, out = run("--dtype", "bf61")
    assert code == 2 and "bf16" in out


@pytest.mark.parametrize("words, said", [([], "give one of"), (["--dtype", "float32", "--arithmetic", "flash-fp32"], "not both")])
def test_either_a_dtype_or_an_arithmetic(words, said):
    code, out = run(*words)
    assert code == 2 and said in out
