"""Sections of a page in text and in LaTeX: every kind of block, at its place, in the width of the page, whatever words say."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from symattn.derivation import Derivation, derive
from symattn.derivation.blocks import Algorithm, Block, Box, CodeLine, Display, Picture, Prose, Section, Table
from symattn.derivation.document import Formula
from symattn.derivation.escaping import display_width
from symattn.derivation.latexblocks import section as section_in_latex
from symattn.derivation.layout import formula_parts
from symattn.derivation.textblocks import section
from tests.derivation.cases import HOSTILE
from tests.derivation.test_forms import compiled, complaints


def f(latex: str) -> Formula:
    return Formula(latex, latex)


LONG = "words that go on and on until the line is full, and then some more of them, so that it has to be broken somewhere"
CODE = Algorithm(
    "Online softmax",
    ("keys and values",),
    (f("O"), " and the log-sum-exp"),
    (
        CodeLine(0, (f(r"m \gets -\infty"), ", ", f(r"\ell \gets 0"))),
        CodeLine(1, (f(r"m' \gets \max(m, \max_{j} S_{ij})"), " ", LONG)),
    ),
)
BLOCKS: tuple[Block, ...] = (
    Prose(("Let ", f(r"P_{ij}"), f" be weights: {LONG} ", f(r"dS = P \circ (dP - D \mathbf{1}^{\top})"), ".")),
    Display((f(r"\mathcal{E} = \sum_{i} dO_{ie} O_{ie}"), f(r"\max_j S_{ij} \le m_i")), ("definition", "")),
    Table(("what", "cost"), (("scores", f("2 n m d")), ("weights", LONG)), caption="What it costs."),
    CODE,
    Picture("<svg/>", "weights as a heat map"),
    Box("In short", (Prose(("All of it.",)), Display((f("dQ = dS K"),)))),
)


def page(*found: Section) -> Derivation:
    return replace(derive(), sections=found)


def hostile() -> Section:
    words = [w.replace(" ", "_") for w in HOSTILE]
    rows = tuple((w, LONG + w) for w in HOSTILE)
    code = Algorithm(words[0], (words[1],), (), tuple(CodeLine(k, (w,)) for k, w in enumerate(HOSTILE)))
    inside = (Prose((" ".join(HOSTILE),)), Table((HOSTILE[0], HOSTILE[2]), rows, HOSTILE[3]), code, Picture("", HOSTILE[4]))
    return Section(HOSTILE[0], (*inside, Box(HOSTILE[7], inside), Display((f("x = 1"),), (HOSTILE[2],))), HOSTILE[2])


def test_sections_stand_above_their_step_and_below_the_last_one() -> None:
    d = page(Section("Middle", (Prose(("m",)),), before=2), Section("End", (Prose(("e",)),), "by hand"))
    for form in (d.to_text(), d.to_latex()):
        at = [form.index(w) for w in ("1. ", "Middle", "2. ", "4. ", "End", "How known: by hand.", "Conventions")]
        assert at == sorted(at)


def test_blocks_as_text() -> None:
    lines = section(Section("A section", BLOCKS))
    assert max(map(display_width, lines)) == 80
    for want in (
        "    ℰ = Σ_i dO[i,e] O[i,e]                                            definition",
        "    max_j S[i,j] ≤ m[i]",
        "Algorithm: Online softmax",
        "  gives  O and the log-sum-exp",
        "  1  m ← -∞, ℓ ← 0",
        "[Picture: weights as a heat map]",
        "│     dQ = dS K" + " " * 64 + "│",
    ):
        assert want in lines
    head = next(k for k, x in enumerate(lines) if x.startswith("what "))
    column = lines[head].index("cost")
    assert lines[head + 2][:column].strip() == "scores" and lines[head + 2][column:] == "2 n m d"
    assert lines[head + 4][:column].strip() == "" and lines[head + 4][column:] in LONG  # the cell goes on
    second = next(k for k, x in enumerate(lines) if x.startswith("  2  "))
    assert lines[second].startswith("  2      m' ← max(m, max_j S[i,j])") and lines[second + 1].startswith(" " * 11)


def test_nothing_of_a_paragraph_is_lost_and_short_formulas_are_whole() -> None:
    lines = section(Section("", BLOCKS[:1]))[2:]
    assert " ".join(lines) == f"Let P[i,j] be weights: {LONG} dS = P ∘ (dP - D 𝟏ᵀ)."
    assert any("dS = P ∘ (dP - D 𝟏ᵀ)." in x for x in lines)


def test_hostile_words_fit_in_text() -> None:
    text = page(hostile()).to_text()
    assert max(map(display_width, text.splitlines())) <= 80
    assert not {"\u202e", "\x07", "\u00a0"} & set(text)
    assert "w" * 60 in text and text.count("w") > 5 * 150


@pytest.mark.parametrize("found", [Section("A section", BLOCKS), hostile()], ids=["blocks", "hostile"])
def test_blocks_compile(found: Section, tmp_path: Path) -> None:
    tex = page(found).to_latex()
    assert r"\input{x}" not in tex and not re.search(r"\\usepackage(?!\{amsmath\})", tex)
    assert complaints(compiled(tex, tmp_path)) == []


def test_long_tables_and_boxes_can_be_broken_between_pages(tmp_path: Path) -> None:
    long = Table(("n", "what"), tuple((str(k), "row") for k in range(95)))
    many = Box("Long", tuple(Prose((f"{k}: {LONG}",)) for k in range(60)))
    tex = page(Section("Long", (long, many))).to_latex()
    assert tex.count(r"\begin{tabular}") == 4 and r"\fbox" not in tex
    log = compiled(tex, tmp_path)
    assert complaints(log) == [] and r"Overfull \vbox" not in log


def test_rules_stay_with_what_they_open_and_close_and_touch_no_letters() -> None:
    code = section_in_latex(Section("", (CODE,)))
    assert code[1].endswith(r"\nopagebreak") and code[-1].startswith(r"\par\nopagebreak")
    rows = section_in_latex(Section("", (Table(("n", "what"), (("1", "a"), ("2", "b"))),)))
    assert [r.startswith(r"\rule{0pt}") for r in rows if "tabularnewline" in r] == [True, True, False]


@pytest.mark.parametrize(
    ("latex", "relations"),
    [
        (r"a \le b = c", ["≤", "="]),
        (r"m \gets \max(a, b)", ["←"]),
        (r"\sum_{j \le i} x_j \ge [i < j] y", ["≥"]),
        (r"x \approx y \quad\text{where } j \le i", ["≈"]),
    ],
)
def test_formulas_are_torn_at_every_relation_outside_brackets(latex: str, relations: list[str]) -> None:
    assert [p.relation for p in formula_parts(latex)][1:] == relations
