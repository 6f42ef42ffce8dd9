"""How much a page says: levels of detail, symbols and numbers, followed queries, whole matrices, shapes, how a step is known."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest

from symattn.definition import Definition
from symattn.derivation import Derivation, derive, examples
from symattn.derivation.document import Step
from symattn.derivation.escaping import display_width
from symattn.derivation.nodeprint import text
from symattn.derivation.page import DETAILS, SHOWN, Page
from symattn.derivation.unicodemath import unicode_math
from symattn.errors import DefinitionError
from symattn.variants import CATALOGUE
from tests.derivation.cases import TWO_HEADS, variant
from tests.derivation.tex import compiled, complaints

NINE = b"X = [" + b", ".join(b"[%d, 1]" % k for k in range(9)) + b"]\n[definition]\nscale = 1\n"
FEW = b"Q = [[1, 2], [0.5, 1]]\nK = [[1, 0], [0, 1]]\nV = [[3], [1]]\ngrad_out = [[1], [2]]"
KNOWN = ("by definition", "derivative rule")


def elements(d: Derivation, tensor: str) -> list[str]:
    return [text(x.item, d.style) for x in d[tensor].lines]


# --- detail


def test_a_brief_page_has_formulas_with_names_and_the_matrices_of_the_outputs() -> None:
    d = derive(example="two-words", detail="brief", gradient=True)
    whole = derive(example="two-words", gradient=True)
    assert [s.formulas for s in d.steps] == [s.formulas for s in whole.steps] and not d.inputs and not d.rewritings
    assert not any(s.lines or s.reason or s.remark or s.known for s in d.steps)
    assert [s.tensors[-1] for s in d.steps if s.grids] == ["O", "dEmb", "dWQ", "dWK", "dWV"] and all(
        g.row is None for g in d["O"].grids
    )
    assert "\nRaw scores\n    R = Q Kᵀ" in d.to_text() and "----" not in d.to_text().partition("Notes")[0]
    assert len(d.to_text().splitlines()) < len(whole.to_text().splitlines()) / 2


def test_a_full_page_has_every_helper_every_element_and_shapes() -> None:
    d = derive(example=examples.parse(NINE, "nine"), detail="full")
    assert [s.tensors for s in d.steps][-5:] == [("m",), ("E",), ("l",), ("P",), ("O",)]
    assert elements(d, "P") == [f"P[9,{k}]" for k in range(1, 10)] and not any(x.row for s in d.steps for x in s.lines)
    steps = derive(example=examples.parse(NINE, "nine"))
    assert len(elements(steps, "P")) == 1 + 8 and steps["P"].cut(steps["P"].lines[-1]) == "8 of 9 elements are worked out."
    assert not any(s.shapes for s in steps.steps) and all(s.shapes for s in d.steps)


@pytest.mark.parametrize("detail", DETAILS)
@pytest.mark.parametrize("show", SHOWN)
def test_every_page_is_written_in_every_form(detail: str, show: str) -> None:
    d = derive(example=examples.parse(FEW, "few"), detail=detail, show=show, gradient=True, follow="all")
    page = d.to_text()
    assert max(map(display_width, page.splitlines())) <= 80
    for form in (d.to_latex(), d.to_markdown(), d.to_html(), page):
        assert d.steps[-1].name in form
    assert json.loads(d.to_json())["steps"][-1]["name"] == d.steps[-1].name


@pytest.mark.parametrize("detail", ["brief", "full"])
def test_pages_compile(detail: str, tmp_path: Path) -> None:
    d = derive(example=examples.parse(TWO_HEADS, "two heads"), detail=detail, show="side-by-side", gradient=True)
    assert complaints(compiled(d.to_latex(), tmp_path)) == []


@pytest.mark.parametrize(("name", "value"), [("detail", "ful"), ("show", "numbers")])
def test_levels_that_do_not_exist(name: str, value: str) -> None:
    with pytest.raises(DefinitionError, match=f"{name} is one of .*, got '{value}'"):
        Page(detail=value) if name == "detail" else Page(show=value)


# --- symbols and numbers


def test_symbols_or_numbers_alone() -> None:
    symbolic, numeric = (derive(example="the-cat-sat", show=x) for x in ("symbolic", "numeric"))
    assert not any(s.lines or s.grids for s in symbolic.steps) and all(s.formulas for s in symbolic.steps)
    assert not any(s.formulas for s in numeric.steps) and all(s.grids for s in numeric.steps)
    with pytest.raises(DefinitionError, match="there are no numbers to show"):
        derive(show="numeric")


def test_a_brief_page_of_numbers_has_no_empty_steps_and_says_nothing_of_lines() -> None:
    page = derive(example="the-cat-sat", detail="brief", show="numeric")
    assert [s.tensors[-1] for s in page.steps] == ["O"] and all(s.grids for s in page.steps)
    said = " ".join(page.notes)
    assert "rounded once" in said and "In a line" not in said and "embedding table" not in said
    assert "Raw scores" not in page.to_text()


def test_formula_numbers_value_and_decimal_stand_side_by_side() -> None:
    page = derive(example="the-cat-sat", show="side-by-side", gradient=True).to_text()
    assert "    R[5,1] = Σ_c Q[5,c] K[1,c] = 1·1 + 0·0 + 3·3 = 10 " in page
    assert "    S[5,1] = R[5,1]/√d_k = 10/√3 ≈ 5.7735 " in page
    joined = re.sub(r"\s+", " ", page)
    assert "P[5,1] = exp(S[5,1])/(Σ_j' exp(S[5,j'])) = e^(10/√3)/ℓ[5] ≈" in joined
    latex = derive(example="the-cat-sat", show="side-by-side").to_latex()
    assert r"R_{5,1} &= \sum_c Q_{5,c} K_{1,c} = 1 \cdot 1 + 0 \cdot 0 + 3 \cdot 3 = 10" in latex


def test_a_formula_beside_numbers_names_the_head_and_counts_as_the_page_does() -> None:
    d = derive(example=examples.parse(TWO_HEADS, "two heads"), show="side-by-side")
    assert d["S"].lines[0].formula is not None
    assert d["R"].lines[0].formula is not None and d["R"].lines[0].formula.latex == r"\sum_c Q^{(1)}_{5,c} K^{(1)}_{1,c}"
    zero = derive(Definition(score="(i + 1)*s"), example=examples.parse(NINE, "nine"), show="side-by-side", follow=2)
    assert zero.style.origin == 0 and zero["Z"].lines[1].formula is not None
    assert unicode_math(zero["Z"].lines[1].formula.latex) == "(2 + 1) R[2,1]"


# --- the followed query


@pytest.mark.parametrize(("follow", "row"), [(1, 0), ("2", 1), ("cat", 1), ("the", 4), (5, 4)])
def test_a_query_is_followed_by_position_or_word(follow: int | str, row: int) -> None:
    d = derive(example="the-cat-sat", follow=follow)
    assert d.follow == row and {x.item.index[0] for x in d["R"].lines} == {row}
    assert [g.row for g in d["R"].grids] == [row, None]


@pytest.mark.parametrize("follow", [0, 6, -1, "dog", "", "1.5", "\u0661"])
def test_what_cannot_be_followed_is_refused_with_what_can(follow: int | str) -> None:
    with pytest.raises(DefinitionError, match=r"no query is meant; there are 1 \(the\), 2 \(cat\).* and 'all'"):
        derive(example="the-cat-sat", follow=follow)


def test_positions_are_counted_as_on_the_page() -> None:
    example = examples.parse(NINE, "nine")
    assert derive(Definition(score="(i + 1)*s"), example, follow=0).follow == 0
    with pytest.raises(DefinitionError, match="there are 0 to 8, and 'all'"):
        derive(Definition(score="(i + 1)*s"), example, follow=9)
    with pytest.raises(DefinitionError, match="no numbers to follow"):
        derive(follow=1)


def test_the_whole_matrix_is_worked_out() -> None:
    d = derive(example=examples.parse(TWO_HEADS, "two heads"), follow="all", gradient=True)
    seen = [x.item.index for x in d["R"].lines]
    assert seen == [(0, i, j) for i in range(5) for j in range(i + 1)]  # causal: what is not computed is no line
    assert d.follow is None and d["O"].name == "Context vectors" and all(g.row is None for s in d.steps for g in s.grids)
    nine = derive(example=examples.parse(NINE, "nine"), follow="all")
    assert [x.row for x in nine["R"].lines].count(9) == 9 and len(nine["R"].lines) == 72


# --- whole matrices


def test_large_matrices_are_elided_unless_values_are_asked_for() -> None:
    example = examples.parse(NINE, "nine")
    some, whole = derive(example=example), derive(example=example, values=True)
    for form in (some.to_text(), some.to_latex(), some.to_markdown(), some.to_html()):
        assert re.search(r"⋯|\\cdots", form)
    for form in (whole.to_text(), whole.to_latex(), whole.to_markdown(), whole.to_html()):
        assert not re.search(r"⋯|\\cdots", form)
    shown = [(g.block, len(g.cells), len(g.cells[0])) for g in whole["R"].grids if g.row is None]
    assert shown == [((0, 8, 0, 5), 9, 6), ((0, 8, 6, 8), 9, 3)]
    table = {(r, c): g.cells[r - g.block[0]][c - g.block[2]].decimal for g in whole["R"].grids if g.row is None and g.block
             for r in range(g.block[0], g.block[1] + 1) for c in range(g.block[2], g.block[3] + 1)}  # fmt: skip
    assert table == {(r, c): str(r * c + 1) for r in range(9) for c in range(9)}
    assert "R[:,1…6] =" in whole.to_text() and "R[9,7…9] =" in whole.to_text() and r"R_{:,7 \dots 9}" in whole.to_latex()
    assert "R[:" not in some.to_text()


# --- shapes


def test_shapes_stand_under_the_symbols() -> None:
    d = derive(shapes=True)
    assert (
        d["R"].matrix[0].latex
        == r"\underset{n \times m}{R} = \underset{n \times d_k}{Q} \enspace \underset{d_k \times m}{K^{\top}}"
    )
    assert "Shapes: R: n × m, Q: n × d_k, K: m × d_k." in d.to_text() and "underset" not in d.to_text()
    assert d["R"].index == derive()["R"].index and derive(detail="full", shapes=False)["R"].shapes == ()
    assert "    R = Q Kᵀ " in d.to_text()  # text has its shapes on a line of their own, and no room for them between letters


@pytest.mark.parametrize("name", ["multi-head", "flash", "sink", "scalar-gated-linear-attention"])
def test_shapes_of_neighbours_fit(name: str) -> None:
    """In a product of two letters, the columns of the first are the rows of the second."""
    d = derive(CATALOGUE[name].definition, shapes=True, gradient=True)
    braced = r"\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}"
    under = re.compile(rf"\\underset{braced}{braced}")
    found = 0
    for s in d.steps:
        for f in s.matrix:
            letters = list(under.finditer(f.latex))
            for a, b in itertools.pairwise(letters):
                if f.latex[a.end() : b.start()] in (r" \enspace ", r"\,"):
                    found += 1
                    assert a[1].split(r" \times ")[1] == b[1].split(r" \times ")[0], (s.tensors, f.latex)
    assert found > 2


# --- how a step is known


def test_every_step_says_how_it_is_known_and_from_what() -> None:
    d = derive(example="two-words", gradient=True, lse=True)
    assert all(s.known.startswith(KNOWN) and s.name and s.reason for s in d.steps)
    number = {t: s.number for s in d.steps for t in s.tensors}
    assert d["R"].uses == (number["Q"], number["K"]) and d["O"].uses == (number["V"], number["P"])
    assert d["dS"].uses == tuple(sorted({number["P"], number["dP"], number["D"]}))
    assert "How known: by definition, from (2) and (3); the numbers are exact." in d.to_text()
    assert "How known: by definition, from (6); the numbers are enclosed." in d.to_text()
    assert r"from \eqref{symattn:2} and \eqref{symattn:3}" in d.to_latex() and r"\tag{3}\label{symattn:3}" in d.to_latex()


@pytest.mark.parametrize("name", ["alibi", "sink", "online-softmax"])
def test_references_lead_to_what_is_read(name: str) -> None:
    d = variant(name)
    left = {re.split(r"\[|\^\(", unicode_math(f.latex).partition(" = ")[0])[0]: s.number for s in d.steps[::-1] for f in s.index}
    for s in d.steps:
        assert all(0 < k < s.number for k in s.uses) and s.known.startswith(KNOWN)
        right = " ".join(unicode_math(f.latex).partition(" = ")[2] for f in s.index)
        read = set(re.findall(r"[^\W\d](?:[\w'\u0300-\u036f])*(?=\[|\^\()", right))
        assert {left[x] for x in read if left.get(x, s.number) < s.number} == set(s.uses), s.tensors
    tex = d.to_latex()
    labels, references = (re.findall(rf"\\{x}\{{symattn:(\d+)\}}", tex) for x in ("label", "eqref"))
    assert len(labels) == len(set(labels)) and set(references) <= set(labels)


def test_exact_and_enclosed() -> None:
    d = derive(example="the-cat-sat")
    assert {s.tensors[-1]: s.numbers for s in d.steps} == {
        **dict.fromkeys("XQKVRS", "exact"), "P": "enclosed", "O": "enclosed",
    }  # fmt: skip
    assert not any(s.numbers for s in derive().steps)
    assert Step(1, ("S",), "", "").how_known() == ""


# --- long formulas


@pytest.mark.parametrize(
    "name",
    ["block-diffusion", pytest.param("talking-heads", marks=pytest.mark.slow), pytest.param("yarn", marks=pytest.mark.slow)],
)
def test_long_formulas_are_broken_with_shapes_under_them_too(name: str, tmp_path: Path) -> None:
    d = derive(CATALOGUE[name].definition, gradient=True, show_max=True, shapes=True)
    assert max(map(display_width, d.to_text().splitlines())) <= 80
    assert complaints(compiled(d.to_latex(), tmp_path)) == []
