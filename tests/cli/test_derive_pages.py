"""``symattn derive``: how much a page says and in which notation, by flags; exit codes and messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_derive import run


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            ["--detail", "full", "--form", "index"],
            "    R[1,2] = 2·2 + 0·1 + 1·1 = 5                             thinking → machines",
        ),
        (["--detail", "brief"], "Raw scores"),
        (["--show", "side-by-side"], "    R[1,2] = Σ_c Q[1,c] K[2,c] = 2·2 + 0·1 + 1·1 = 5         thinking → machines"),
        (["--follow", "machines"], "    R[2,1] = 1·0 + 2·2 + 0·1 = 4                             machines → thinking"),
        (["--follow", "2"], "Followed: query 2, machines"),
        (["--shapes"], "Shapes: R: n × n, Q: n × d_k, K: n × d_k."),
        (["--notation", "lecture"], "    𝐎 = P 𝐕                                                                  (8)"),
    ],
)
def test_the_options_reach_the_page(words: list[str], line: str) -> None:
    result = run("--example", "two-words", *words)
    assert result.exit_code == 0 and line in result.stdout.splitlines()


def test_numbers_alone_and_whole_matrices() -> None:
    words = ["--tokens", "a b c d e f g h i", "--seed", "1", "--dmodel", "1", "--show", "numeric"]
    some, whole = run(*words).stdout, run(*words, "--values").stdout
    assert "softmax(S)" not in some and "⋯" in some and "⋯" not in whole and "  P[:,7…9] = " in whole


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--detail", "ful"], 2, "--detail is one of brief, steps, full, got 'ful'. Did you mean 'full'?"),
        (["--show", "numbers"], 2, "--show is one of symbolic, numeric, both, side-by-side, got 'numbers'"),
        (["--show", "numeric"], 2, "there are no numbers to show"),
        (["--follow", "1"], 2, "there are no numbers to follow"),
        (["--example", "two-words", "--follow", "3"], 2, "no query is meant; there are 1 (thinking), 2 (machines), and 'all'"),
        (["--notation", "lectures"], 2, "there is no notation 'lectures'. Did you mean 'lecture'?"),
        (["--notation", "none.toml"], 4, "none.toml: cannot be read"),
    ],
)
def test_what_is_wrong(words: list[str], code: int, said: str) -> None:
    result = run(*words)
    assert result.exit_code == code and said in result.stderr and result.stdout == ""


def test_a_notation_that_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text("# mine\n[letters]\nquery = '\\input{x}'\n", encoding="utf-8")
    result = run("--notation", str(path))
    assert result.exit_code == 4 and "own.toml: line 3: letters.query: got '\\input{x}'; allowed: a letter (q, " in result.stderr
    path.write_text("[letters]\nquery = 'K'\n", encoding="utf-8")
    result = run("--notation", str(path))
    assert (
        result.exit_code == 2 and "K would stand for the tensor Q and for the tensor K; give one of them another" in result.stderr
    )
