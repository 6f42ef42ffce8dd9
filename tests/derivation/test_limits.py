"""Large scores: derived within seconds, refused by name where a value cannot be represented, and never wider than the page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import flint
import pytest

from symattn.definition import Definition
from symattn.derivation import derive, examples
from symattn.derivation.enclose import MOST_BITS, bounds
from symattn.derivation.layout import formula_parts
from symattn.errors import LimitError
from tests.support import require_program

MATRIX = "[[1, 2], [3, 4]]"


def example(score: str):
    text = f"Q = {MATRIX}\nK = {MATRIX}\nV = {MATRIX}\n[definition]\nscore = '{score}'"
    return examples.parse(text.encode(), "example.toml")


def nested(function: str, depth: int) -> str:
    return f"{function}(" * depth + "s" + ")" * depth


@pytest.mark.parametrize(("depth", "name"), [(2, "Z"), (3, "Z"), (4, "F1"), (9, "F1")])
def test_a_value_beyond_what_can_be_represented_is_refused_by_its_name(depth: int, name: str) -> None:
    with pytest.raises(LimitError, match=rf"the value at {name}\[[12](,[12])?\] is beyond what can be represented"):
        derive(example=example(nested("exp", depth)))


def test_a_weight_too_close_to_zero_is_zero_in_every_place() -> None:
    page = derive(example=example("9999*s"), show_max=True).to_text()
    assert "0.0000" in page or "≈ 0" in page


def test_bounds_of_large_and_tiny_numbers() -> None:
    with pytest.raises(LimitError, match="larger than"):
        bounds(flint.arb(2) ** (MOST_BITS + 10))
    tiny = flint.arb(2) ** (-3 * MOST_BITS)
    mid, rad = bounds(tiny)
    assert mid == 0 and rad > 0 and flint.arb(1) / 2**MOST_BITS >= tiny
    assert bounds(flint.arb(2) ** (MOST_BITS - 10)) == (2 ** (MOST_BITS - 10), 0)


WIDE = [
    "s**3+exp(-s**2/2)/(1+exp(-s))*cos(s)*sin(s)-floor(s)",
    "*".join(f"tanh({k}*s)" for k in range(1, 13)),
    "+".join(f"tanh({k}*s)" for k in range(1, 31)),
]


@pytest.mark.parametrize("score", WIDE)
def test_a_long_formula_stays_inside_the_page(score: str, tmp_path: Path) -> None:
    program = require_program("pdflatex")
    page = derive(Definition(score=score), gradient=True).to_latex()
    (tmp_path / "d.tex").write_text(page, encoding="ascii")
    subprocess.run(
        [program, "-interaction=nonstopmode", "-halt-on-error", "d.tex"], cwd=tmp_path, check=True, capture_output=True
    )
    log = (tmp_path / "d.log").read_bytes().decode("latin-1")
    assert [m[0] for m in re.finditer(r"Overfull \\hbox \((\d+)\.\d+pt.*", log) if int(m[1]) > 5] == []


def test_a_torn_formula_says_the_same() -> None:
    latex = r"y = a \left(" + " + ".join(rf"x_{k} \cos(z)" for k in range(9)) + r"\right) b"
    _, right = formula_parts(latex)
    assert len(right.pieces) > 3
    joined = " ".join(p.latex for p in right.pieces)
    assert joined == latex.removeprefix("y = ").replace(r"\left(", "(").replace(r"\right)", ")")


LARGE = [
    *(["--score", nested(f, n)] for f in ("tanh", "exp", "sigmoid") for n in (10, 40)),
    ["--score", "s**50"],
    ["--score", "*".join(["s"] * 15 + [f"(s+{k})" for k in range(1, 16)])],
    ["--score", "*".join(f"tanh({k}*s)" for k in range(1, 31))],
    ["--score", "(" * 20 + "s" + "**2+1)" * 20],
    ["--score", "1/(1+" * 30 + "s" + ")" * 30],
    ["--mask", " or ".join(f"i-j=={k}" for k in range(30))],
    ["--mask", " and ".join(f"(i-j!={k} or j=={k + 1})" for k in range(20))],
]


@pytest.mark.slow
@pytest.mark.parametrize("options", LARGE, ids=range(len(LARGE)))
def test_whatever_the_grammar_takes_is_derived_in_time(options: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", "symattn", "derive", "--gradient", *options], capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr[-500:]
