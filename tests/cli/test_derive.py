"""``symattn derive``: what it prints, and the exit code and message of everything that can be wrong."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from symattn import variants
from symattn.derivation import shipped
from symattn_cli.app import app
from tests.support import require_program, rows


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["derive", *words])


def test_the_first_article() -> None:
    result = run("--example", "the-cat-sat")
    assert result.exit_code == 0
    for line in (
        "R[5,1] = 1·1 + 0·0 + 3·3 = 10",
        "S[5,1] = 10/√3 ≈ 5.7735",
        "P = softmax(S)",
        "P[5,:] ≈ [0.1906   0.0106   0.0033   0.6048   0.1906]",
        "O[5,:] ≈ [0.4125   1.2762   3.5735]",
    ):
        assert line in result.stdout
    assert "max" not in result.stdout.partition("Notes")[0].replace("softmax", "")


def test_the_options_reach_the_derivation() -> None:
    base = run("--example", "two-words").stdout
    assert "m = rowmax(S)" in run("--example", "two-words", "--show-max").stdout
    assert "Log-sum-exp" in run("--example", "two-words", "--lse").stdout and "Log-sum-exp" not in base
    assert "dS = P ∘ (dP - D𝟏ᵀ)" in run("--example", "two-words", "--gradient").stdout and "dS" not in base
    weight = f"{1 / (1 + math.exp(4 / math.sqrt(3))):.12f}"
    assert weight in run("--example", "two-words", "--digits", "12").stdout and weight not in base
    index, matrix = run("causal", "--form", "index").stdout, run("causal", "--form", "matrix").stdout
    assert "R[i,j] = Σ_c Q[i,c] K[j,c]   where j ≤ i" in index and "Q Kᵀ" not in index
    assert "R = Q Kᵀ   where j ≤ i" in matrix and "Σ_c" not in matrix


def test_flags_go_over_the_example_and_the_variant() -> None:
    masked = run("--example", "two-words", "--causal", "top-left").stdout
    assert "causal=top-left" in masked and "P[1,1] = e^(1/√3)/ℓ[1] = 1 " in masked
    assert "softcap=30" in run("softcap", "--softcap", "30").stdout
    assert "param t=1/3" in run("--score", "t*s", "--param", "t=1/3").stdout


@pytest.mark.parametrize("name", rows())
def test_every_variant(name: str) -> None:
    result = run(name)
    assert result.exit_code == 0 and result.stdout.startswith(name + "\n") and "Context vectors" in result.stdout


@pytest.mark.parametrize("form", ["text", "latex", "markdown", "myst", "html", "ipynb", "json"])
def test_formats_and_output_file(form: str, tmp_path: Path) -> None:
    printed = run("--example", "translation", "--format", form)
    file = tmp_path / "out"
    written = run("--example", "translation", "--format", form, "-o", str(file))
    assert printed.exit_code == written.exit_code == 0
    assert written.stdout == "" and f"written: {file}" in written.stderr
    assert file.read_text(encoding="utf-8") == printed.stdout
    head = {
        "text": "translation\n",
        "latex": r"\documentclass",
        "markdown": "# translation",
        "myst": "# translation",
        "html": "<!DOCTYPE html>",
        "ipynb": "{",
        "json": "{",
    }
    assert printed.stdout.startswith(head[form])
    if form in ("json", "ipynb"):
        json.loads(printed.stdout)


def test_a_variant_that_flags_change_does_not_keep_its_heading() -> None:
    assert run("causal", "--causal", "none").stdout.startswith("causal, changed\n===============\n\n1.")
    assert run("causal", "--lse").stdout.startswith("causal\n======\nno key after the query")
    none = run("--example", "two-words-causal", "--causal", "none").stdout
    assert none.startswith("two words, causal, changed\n") and "causal=" not in none
    assert "where j" not in none and "0.0903     0.9097" in none  # the first row sees both keys


def test_a_kernel() -> None:
    result = run("causal", "--kernel", "flash-forward", "--form", "matrix")
    assert result.exit_code == 0 and result.stdout.startswith("Flash attention, forward: causal\n")
    assert "in parallel for each query" in result.stdout and "proved for all sizes" in result.stdout
    assert max(sum(not unicodedata.combining(c) for c in line) for line in result.stdout.splitlines()) <= 80
    for words, says in (
        (("linear-attention", "--kernel", "ring"), "there is no ring for this definition"),
        (("causal", "--kernel", "ring", "--jvp"), "leave --jvp out"),
        (("--kernel", "ring", "--digits", "3"), "leave --digits out"),
        (("--kernel", "ring", "--seed", "1"), "--seed"),
        (("--kernel", "flashy"), "no kernel is called 'flashy'"),
    ):
        wrong = run(*words)
        assert wrong.exit_code == 2 and says in wrong.output


def test_the_schema_is_printed() -> None:
    result = run("--schema")
    assert result.exit_code == 0 and json.loads(result.stdout)["title"] == "symattn derivation"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--pdf"], "give -o FILE.pdf"),
        (["--pdf", "--format", "html", "-o", "x.pdf"], "a PDF is made of LaTeX"),
        (["--pdf", "--fragment", "-o", "x.pdf"], "a fragment is no whole document"),
        (["-o", "x.pdf"], "a PDF is asked for by --pdf"),
        (["--pdf", "-o", "x.html"], "x.html: a PDF is written to a file that ends in .pdf"),
        (["--fragment"], "is for --format latex and html, got text"),
        (["--prefix", "x"], "labels have a prefix in a fragment"),
        (["--page", "a5"], "is for LaTeX"),
        (["--format", "latex", "--page", "a3"], "--page is one of a4, letter, a5, narrow, got 'a3'"),
        (["--format", "latex", "--fragment", "--prefix", "a}"], "a prefix of labels is made of"),
    ],
)
def test_options_of_forms_that_do_not_belong_together(words: list[str], says: str, tmp_path: Path) -> None:
    result = run("causal", *words)
    assert result.exit_code == 2 and says in " ".join(result.stderr.split()) and result.stdout == ""


def test_a_pdf_and_fragments(tmp_path: Path) -> None:
    require_program("pdflatex")
    result = run("causal", "--pdf", "--page", "a5", "-o", str(tmp_path / "x.pdf"))
    assert result.exit_code == 0 and (tmp_path / "x.pdf").read_bytes().startswith(b"%PDF-")
    tex = run("causal", "--format", "latex", "--fragment", "--prefix", "mine").stdout
    assert tex.startswith("% causal\n") and r"\label{mine:1}" in tex
    html = run("causal", "--format", "html", "--fragment", "--prefix", "mine").stdout
    assert html.startswith("<style>") and '<section id="mine-step-1">' in html


def test_list() -> None:
    result = run("--list")
    assert result.exit_code == 0
    assert all(f"  {name} " in result.stdout for name in (*variants.names(), *shipped()))


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["causl"], 2, "Did you mean 'causal'"),
        (["causal", "--variant", "sink"], 2, "given twice"),
        (["--variant", "causl"], 2, "Did you mean 'causal'"),
        (["--example", "the-cat"], 2, "Did you mean 'the-cat-sat'"),
        (["--example", "none.toml"], 4, "none.toml: cannot be read"),
        (["--form", "indices"], 2, "--form is one of index, matrix, both, got 'indices'"),
        (["--format", "pdf"], 2, "--format is one of text, latex, markdown, myst"),
        (["--size", "d=0"], 2, "a size is an integer from 1 on, got 'd=0'"),
        (["--dmodel", "0"], 2, "--dmodel"),
        (["--size", "dff=3"], 2, "this definition has no such size"),
        (["--seed", "1", "--mask", "1/(i-j)<2"], 2, "has no value at i=0, j=0"),
        (["--digits", "0"], 2, "digits is from 1 to 200, got 0"),
        (["--digits", "x"], 2, "--digits"),
        (["--causal", "left"], 2, "top-left"),
        (["--score", "__import__('os')"], 2, "score"),
        (["--example", "the-cat-sat", "--sink"], 4, "missing: sinks"),
        (["--nonsense"], 2, "--nonsense"),
        (["--tokens", " "], 2, "there are no words in ' '"),
        (["--tokens", "a b", "--memory", ""], 2, "there are no words in ''"),
        (["-o", "/nonexistent/x", "causal"], 2, "cannot be written"),
    ],
)
def test_what_is_wrong_is_said(words: list[str], code: int, says: str) -> None:
    result = run(*words)
    assert result.exit_code == code and says in result.stderr and result.stdout == ""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("X = [[1, 2]", "is no TOML file"),
        ("X = [[1, 'a']]", "X: 'a' is no number"),
        ("X = [[nan]]", "X: got nan; allowed: finite numbers"),
        ("tokns = ['a']", "unknown key 'tokns'"),
        ("tokens = ['a']\n[embedding]\nb = [1]", "the word 'a' has no row"),
        ("Q = [[1, 2]]\nK = [[1], [3]]\nV = [[1], [2]]", "K: has length 1 where d is 2 elsewhere"),
        ("X = [[1, 2]]\nW_Q = [[1, 0]]", "W_Q: has length 1"),
        ("Q = [[1]]\nK = [[[[1]]], [[[2]]]]\nV = [[1]]", "K: got an array of shape"),
        ("X = [[1]]\n[definition]\ncausl = 'top-left'", "[definition]: a definition has no field 'causl'"),
        ("X = [[1]]\n[definition]\nscore = 's +'", "[definition]: "),
        ("X = [[1], [2]]\n[definition]\nmask = 'j < i'\nempty_row = 'error'", "query 1 (counted from 1) sees no key"),
    ],
)
def test_a_bad_file_is_named(text: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(text)
    result = run("--example", str(file))
    assert result.exit_code == 4 and says in result.stderr and "bad.toml" in result.stderr


def test_a_terminal_that_is_not_utf8_gets_utf8() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "symattn", "derive", "causal"],
        capture_output=True,
        env={"PYTHONIOENCODING": "ascii", "PATH": "/usr/bin"},
    )
    assert done.returncode == 0 and "R = Q Kᵀ   where j ≤ i" in done.stdout.decode("utf-8")


def test_the_usage_line_has_plain_brackets() -> None:
    help_ = run("--help").stdout
    assert "derive [OPTIONS] [VARIANT]\n" in help_ and "VARIANT is a row of the catalogue" in help_
    assert "[[" not in help_ and "<str>" not in help_
