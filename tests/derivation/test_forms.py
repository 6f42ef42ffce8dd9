from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest

from symattn.definition import Definition
from symattn.derivation import Derivation, derive, examples
from symattn.derivation.escaping import display_width
from tests.derivation.cases import HOSTILE, TWO_HEADS, hostile, variant, wide
from tests.derivation.tex import compiled, complaints
from tests.support import rows

CASES = [(name, gradient) for name in examples.shipped() for gradient in (False, True)]


@cache
def made(name: str, gradient: bool) -> Derivation:
    return derive(example=name, gradient=gradient)


# --- LaTeX


@pytest.mark.parametrize(("name", "gradient"), CASES)
def test_latex_compiles(name: str, gradient: bool, tmp_path: Path) -> None:
    assert complaints(compiled(made(name, gradient).to_latex(), tmp_path)) == []


def test_latex_of_hostile_words_and_of_wide_numbers_compiles(tmp_path: Path) -> None:
    assert complaints(compiled(hostile().to_latex(), tmp_path)) == []
    assert complaints(compiled(wide().to_latex(), tmp_path)) == []


@pytest.mark.parametrize("name", rows())
def test_latex_of_every_variant_compiles(name: str, tmp_path: Path) -> None:
    assert complaints(compiled(variant(name).to_latex(), tmp_path)) == []


def test_a_line_that_sticks_out_is_noticed(tmp_path: Path) -> None:
    tex = made("the-cat-sat", False).to_latex()
    broken = tex.replace(r"\begin{align*}", r"\begin{align*} " + "+ x" * 150 + r" \\", 1)
    assert complaints(compiled(broken, tmp_path))


def test_latex_needs_amsmath_only() -> None:
    for d in (made("the-cat-sat", True), hostile()):
        assert re.findall(r"\\usepackage.*", d.to_latex()) == [r"\usepackage{amsmath}"]
        assert r"\input" not in d.to_latex() and d.to_latex().isascii()


def test_latex_matrices_have_the_words_at_their_rows_and_columns() -> None:
    tex = made("two-words-causal", True).to_latex()
    assert r"R_{2,:} &= \begin{array}{rr} \text{thinking} & \text{machines} \\ \hline \rule{0pt}{11pt}{4} & 4 \end{array}" in tex
    table = r"\begin{array}{r|rr}  & \text{thinking} & \text{machines} \\ \hline "
    table += r"\text{thinking} & \rule{0pt}{11pt}{1} & \cdot \\ "
    assert table + r"\text{machines} & 4 & 4 \end{array}" in tex
    assert r"X &= \begin{array}{r|rrr} \text{thinking} & 1 & 0 & 1 \\ \text{machines} & 0 & 2 & 1 \end{array}" in tex
    assert r"W_Q &= \left[ \begin{array}{rrr} 1 & 0 & 1 \\ 0 & 1 & 0 \\ 1 & 0 & 0 \end{array} \right]" in tex
    assert r"\text{\textless{}script\textgreater{}ale\dots{}} & 1 & 0.5 & " in hostile().to_latex()


def test_words_are_left_out_where_only_they_make_a_matrix_too_wide() -> None:
    words = ["extraordinarily" + c for c in "abcdefg"]
    rows = "\n".join(f"{w} = [{k}, 1]" for k, w in enumerate(words))
    d = derive(example=examples.parse(f"tokens = {words}\n[embedding]\n{rows}".encode(), "long words"))
    tex = d.to_latex()
    assert (
        r"R &= \left[ \begin{array}{rrrrrrr} 1 & 1" in tex
        and r"X &= \begin{array}{r|rr} \text{extraordina\dots{}} & 0 & 1" in tex
    )


# --- Markdown


def math_blocks(markdown: str) -> list[str]:
    parts = markdown.split("$$")
    assert len(parts) % 2
    return parts[1::2]


def test_markdown_has_its_own_macros_and_tables() -> None:
    markdown = made("two-words-causal", True).to_markdown()
    assert r"\operatorname" not in markdown and r"\mathrm{softmax}" in markdown
    assert any(r"\begin{array}{r|r" in b and r" \text{" in b for b in math_blocks(markdown))


def test_markdown_of_hostile_words() -> None:
    markdown = hostile().to_markdown()
    outside = "".join(markdown.split("$$")[::2])
    assert not re.search(r"<\w|\$|`|\*\*|\[a\]", outside)
    assert "&#60;script&#62;" in outside
    labels = {x for b in math_blocks(markdown) for x in re.findall(r"\\text\{([^}]*)\}", b)} - {"where ", " and "}
    assert "[U+0024]x[U+0024] [U+0026] 5[U+0025] [U+0023]1" in labels and len(labels) > len(HOSTILE)
    assert not [x for x in labels if re.search(r"[\\{}$&#%_^~<>`*|]", x)]


# --- text


@pytest.mark.parametrize(("name", "gradient"), CASES)
def test_text_fits_in_eighty_columns(name: str, gradient: bool) -> None:
    lines = made(name, gradient).to_text().splitlines()
    assert max(map(display_width, lines)) <= 80 and all(x == x.rstrip() for x in lines)
    assert any("= 1·1 + 0·0 + 3·3 = 10" in x for x in lines) or name != "the-cat-sat"


def test_text_of_hostile_words_and_of_wide_numbers_fits() -> None:
    for d in (hostile(), wide()):
        assert max(map(display_width, d.to_text().splitlines())) <= 80
    assert "\u202e" not in hostile().to_text() and "\x07" not in hostile().to_text()


@pytest.mark.parametrize("name", rows())
def test_text_of_every_variant_fits(name: str) -> None:
    text = variant(name).to_text()
    assert max(map(display_width, text.splitlines())) <= 80
    assert "\\" not in text and "{" not in text


def test_notes_stand_beside_all_lines_of_a_step_or_above_all() -> None:
    page = derive(example=examples.parse(TWO_HEADS, "two heads"), gradient=True).to_text()
    for part in page.split("\n---"):
        beside = len(re.findall(r"(?m)\S {3,}\w+ → \w+$", part))
        above = len(re.findall(r"(?m)^ {4}\w+ → \w+:$", part))
        assert not (beside and above)
    assert "mat → the:" in page and re.search(r" {3,}mat → the\n", page)
    assert not re.search(r"(?m) [+-]$", page) and re.search(r"(?m)^ +\+ \S+.*\)/√2$", page)


def test_a_name_is_not_bracketed_before_its_subscripts() -> None:
    page = made("two-words", True).to_text()
    assert "Q[i,c] = Σ_a X[i,a] W_Q[a,c]" in page and "dX_Q[p,a] = Σ_c dQ[p,c] W_Q[a,c]" in page
    assert not re.search(r"\(\w+\)\[", page)


# --- JSON and notebooks


def test_json_of_the_first_article() -> None:
    data = json.loads(made("the-cat-sat", False).to_json())
    line = next(s for s in data["steps"] if s["name"] == "Scaled scores")["lines"][0]
    assert line == {
        "element": "S[5,1]",
        "formula_latex": None,
        "work": None,
        "work_latex": None,
        "exact": "10/√3",
        "exact_latex": r"\frac{10}{\sqrt{3}}",
        "approximate": None,
        "decimal": "5.7735",
        "decimal_is_exact": False,
        "note": "the → the",
        "row": None,
    }


def test_notebooks() -> None:
    d = made("the-cat-sat", True)
    assert repr(d) == f"<Derivation of 'the cat sat on the': {len(d.steps)} steps>"
    assert len(d._repr_latex_()) <= 5 * 1024 and d._repr_latex_().startswith("$$\\begin{aligned}")
    many = derive(Definition(score="+".join(f"s*tanh({k}*s)" for k in range(1, 14))), gradient=True, lse=True, show_max=True)
    assert len(many._repr_latex_()) <= 5 * 1024 and many._repr_latex_().endswith("\\end{aligned}$$")
